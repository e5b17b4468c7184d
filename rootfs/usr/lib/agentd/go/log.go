package agent

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Level is a priority of syslog(3).
type Level int

// The priorities.
const (
	Emergency Level = iota
	Alert
	Critical
	Error
	Warning
	Notice
	Info
	Debug
)

// render makes whole lines of the text, each with its priority: the log takes each line for itself.
func render(level Level, text string, prefixed bool) string {
	var lines strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if prefixed {
			fmt.Fprintf(&lines, "<%d>", level)
		}
		lines.WriteString(line)
		lines.WriteByte('\n')
	}
	return lines.String()
}

// Log writes the text to standard error at a level (a terminal gets no prefix), sd-daemon(3).
func Log(level Level, text string) {
	// One write for all lines, so that those of other goroutines do not come in between.
	io.WriteString(os.Stderr, render(level, text, !isTerminal()))
}

// Logf is Log with a format.
func Logf(level Level, format string, arguments ...any) {
	Log(level, fmt.Sprintf(format, arguments...))
}

var terminal struct {
	once sync.Once
	is   bool
}

func isTerminal() bool {
	terminal.once.Do(func() {
		info, err := os.Stderr.Stat()
		terminal.is = err == nil && info.Mode()&os.ModeCharDevice != 0
	})
	return terminal.is
}
