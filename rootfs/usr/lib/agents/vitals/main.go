// Vitals: a timer's agent that notes how the machine is, one line of JSON a run, and warns when it is short of something.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentd/agent"
)

func main() {
	root := flag.String("root", "/", "file system to look at")
	keep := flag.Int("keep", 1000, "how many lines to keep")
	flag.Parse()
	if flag.NArg() > 0 || *keep < 1 {
		flag.Usage()
		os.Exit(2)
	}
	agent.Run(agent.Agent{Start: func(context.Context) error {
		return report("/proc", *root, agent.StateDirectory("/var/lib/agents/vitals"), *keep)
	}})
}

// report takes one measurement, logs it and adds it to the file.
func report(proc, root, state string, keep int) error {
	vitals, err := measure(proc, root)
	if err != nil {
		return err
	}
	vitals.Time = time.Now().UTC().Truncate(time.Second)
	agent.Log(agent.Info, vitals.String())
	for _, warning := range vitals.warnings() {
		agent.Log(agent.Warning, warning)
	}
	line, err := json.Marshal(vitals)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	return appendBounded(filepath.Join(state, "vitals.jsonl"), line, keep)
}

// appendBounded adds a line and drops the oldest beyond keep; the file is whole whenever the power goes.
func appendBounded(path string, line []byte, keep int) error {
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := bytes.SplitAfter(before, []byte("\n"))
	lines[len(lines)-1] = append(line, '\n') // What follows the last line break is empty, or was cut off.
	if len(lines) > keep {
		lines = lines[len(lines)-keep:]
	}
	scratch := path + ".new"
	file, err := os.Create(scratch)
	if err != nil {
		return err
	}
	_, err = file.Write(bytes.Join(lines, nil))
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", scratch, err)
	}
	return os.Rename(scratch, path)
}
