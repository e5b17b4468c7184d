package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeProc is a folder with the three files that are read.
func fakeProc(t *testing.T, available string) string {
	proc := t.TempDir()
	for name, content := range map[string]string{
		"loadavg": "0.42 0.30 0.20 3/117 4242\n",
		"uptime":  "1234.56 2000.00\n",
		"meminfo": "MemTotal:        1000 kB\nMemFree: 1 kB\nMemAvailable:    " + available + " kB\nHugePages_Total: 0\n",
	} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestTheMachinesFilesAreRead(t *testing.T) {
	vitals, err := measure(fakeProc(t, "750"), "/")
	if err != nil {
		t.Fatal(err)
	}
	if vitals.Load != 0.42 || vitals.Processes != 117 || vitals.Uptime != 1234.56 ||
		vitals.MemoryTotal != 1000<<10 || vitals.MemoryAvailable != 750<<10 || vitals.DiskTotal == 0 {
		t.Errorf("got %+v", vitals)
	}
	if !strings.HasPrefix(vitals.String(), "load 0.42, 117 tasks, memory 75% available of 0 MiB") {
		t.Errorf("got %s", vitals)
	}
}

func TestThisMachineCanBeMeasured(t *testing.T) {
	if vitals, err := measure("/proc", "/"); err != nil || vitals.MemoryAvailable == 0 {
		t.Errorf("got %+v, %v", vitals, err)
	}
}

func TestShortagesAreWarnedOf(t *testing.T) {
	for name, row := range map[string]struct {
		vitals   Vitals
		expected int
	}{
		"well":        {Vitals{MemoryTotal: 100, MemoryAvailable: 50, DiskTotal: 100, DiskFree: 50}, 0},
		"at the line": {Vitals{MemoryTotal: 100, MemoryAvailable: 10, DiskTotal: 100, DiskFree: 10}, 0},
		"memory":      {Vitals{MemoryTotal: 100, MemoryAvailable: 9, DiskTotal: 100, DiskFree: 50}, 1},
		"both":        {Vitals{MemoryTotal: 100, MemoryAvailable: 9, DiskTotal: 100, DiskFree: 9}, 2},
		"no disk":     {Vitals{MemoryTotal: 100, MemoryAvailable: 50}, 0},
	} {
		if got := row.vitals.warnings(); len(got) != row.expected {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestTheFileKeepsTheNewestLinesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vitals.jsonl")
	if err := os.WriteFile(path, []byte("1\n2\ncut o"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"3", "4"} {
		if err := appendBounded(path, []byte(line), 3); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "2\n3\n4\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAReportIsOneLineOfJSON(t *testing.T) {
	state := filepath.Join(t.TempDir(), "made", "here")
	if err := report(fakeProc(t, "750"), "/", state, 10); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(state, "vitals.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var vitals Vitals
	if err := json.Unmarshal(data, &vitals); err != nil || vitals.Processes != 117 || vitals.Time.IsZero() {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestAFileThatMakesNoSenseIsNamed(t *testing.T) {
	for _, name := range []string{"loadavg", "uptime", "meminfo"} {
		proc := fakeProc(t, "750")
		if err := os.WriteFile(filepath.Join(proc, name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := measure(proc, "/"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
