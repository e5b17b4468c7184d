package agent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Ready says that the agent is up. Run says it for you once Init has returned.
func Ready() { manager.send(true, "READY=1") }

// Status sets the line that `agentctl status` shows. A busy manager may miss it; the next one counts.
func Status(text string) { manager.send(false, "STATUS="+oneLine(text)) }

// Statusf is Status with a format.
func Statusf(format string, arguments ...any) { Status(fmt.Sprintf(format, arguments...)) }

// Stopping says that the agent is about to end. Run says it for you.
func Stopping() { manager.send(true, "STOPPING=1") }

// Progress says how much work is done so far: a number that grows with each piece, never a clock.
func Progress(count uint64) { manager.send(false, "X_AGENTD_PROGRESS="+strconv.FormatUint(count, 10)) }

// WatchdogInterval is the longest silence that WatchdogSec allows this process; zero without a watchdog.
func WatchdogInterval() time.Duration { return inherited.watchdog(os.Getpid()) }

// pulse remembers when the last beat was sent.
type pulse struct {
	mutex sync.Mutex
	last  time.Time
}

var heart pulse

// due tells whether a beat is wanted now, at most four an interval.
func (p *pulse) due(interval time.Duration, now time.Time) bool {
	return interval > 0 && (p.last.IsZero() || now.Sub(p.last) >= interval/4)
}

// Alive tells the watchdog that work goes on. Call it on each pass of the agent's own loop, as often as you like: it
// sends at most four beats an interval. Never call it from a goroutine that only beats: an agent that hangs would look
// well.
func Alive() {
	heart.mutex.Lock()
	defer heart.mutex.Unlock()
	now := time.Now()
	if heart.due(WatchdogInterval(), now) && manager.send(false, "WATCHDOG=1") {
		heart.last = now
	}
}

// Wait waits this long and tells whether the agent shall go on; it returns false at once when ctx is cancelled. It
// beats meanwhile: an idle agent is alive.
func Wait(ctx context.Context, duration time.Duration) bool {
	deadline := time.Now().Add(duration)
	for {
		Alive()
		left := time.Until(deadline)
		step := left
		if interval := WatchdogInterval(); interval > 0 && interval/2 < step {
			step = interval / 2
		}
		timer := time.NewTimer(step)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		if step == left {
			return ctx.Err() == nil
		}
	}
}
