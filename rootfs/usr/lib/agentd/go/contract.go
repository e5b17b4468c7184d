package agent

import (
	"os"
	"strconv"
	"time"
)

// contract is what the manager told this process through its environment, sd_notify(3) and sd_listen_fds(3).
type contract struct {
	notifySocket string
	watchdogUsec string
	watchdogPID  string
	listenFDs    string
	listenPID    string
	listenNames  string
}

var inherited = takeContract()

// takeContract reads the variables and removes them, so that child processes do not inherit them.
func takeContract() contract {
	take := func(key string) string {
		value := os.Getenv(key)
		os.Unsetenv(key)
		return value
	}
	return contract{
		notifySocket: take("NOTIFY_SOCKET"),
		watchdogUsec: take("WATCHDOG_USEC"),
		watchdogPID:  take("WATCHDOG_PID"),
		listenFDs:    take("LISTEN_FDS"),
		listenPID:    take("LISTEN_PID"),
		listenNames:  take("LISTEN_FDNAMES"),
	}
}

// watchdog is the longest silence that WatchdogSec allows the process pid; zero without a watchdog.
func (c contract) watchdog(pid int) time.Duration {
	usec, err := strconv.ParseInt(c.watchdogUsec, 10, 64)
	if err != nil || usec <= 0 || usec > int64(1<<63-1)/int64(time.Microsecond) {
		return 0
	}
	if c.watchdogPID != "" && c.watchdogPID != strconv.Itoa(pid) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}
