package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// life is one run of one agent, as its signals see it.
type life struct {
	agent  Agent
	cancel context.CancelFunc
	// up is closed when the agent is ready: no Reload and no Stop before.
	up chan struct{}

	once sync.Once
	code int
}

func newLife(agent Agent, cancel context.CancelFunc) *life {
	return &life{agent: agent, cancel: cancel, up: make(chan struct{})}
}

func (l *life) catchSignals() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go l.awaitStop(stop)
	if l.agent.Reload == nil {
		defaultAction(syscall.SIGHUP)
		return
	}
	// One place in the queue: several requests that come during a reload are one.
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	go l.awaitReloads(reload)
}

func (l *life) awaitStop(requests <-chan os.Signal) {
	<-requests
	signal.Reset(syscall.SIGINT)
	Stopping()
	l.cancel()
	select {
	case <-l.up:
		l.end()
	default: // Init is cancelled, and Run leaves when it has returned.
	}
}

func (l *life) awaitReloads(requests <-chan os.Signal) {
	<-l.up
	for range requests {
		manager.send(true, "RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonicUsec(), 10))
		if err := guard(l.agent.Reload); err != nil {
			Logf(Error, "reload: %v", err)
			manager.send(true, "READY=1", "STATUS="+oneLine(fmt.Sprintf("reload failed: %v; running on as before", err)))
			continue
		}
		Ready()
	}
}

// end calls the agent's Stop once and gives the exit code; who comes second waits for the first.
func (l *life) end() int {
	l.once.Do(func() {
		l.cancel()
		if l.agent.Stop == nil {
			return
		}
		if err := guard(l.agent.Stop); err != nil {
			Logf(Error, "stop: %v", err)
			l.code = exitFailed
		}
	})
	return l.code
}

// verdict makes an exit code of what a step returned, and says what went wrong.
func verdict(step string, ctx context.Context, err error) int {
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return exitClean
	}
	Logf(Error, "%s: %v", step, err)
	return exitFailed
}

// guard turns a panic into an error that shows where.
func guard(step func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return step()
}

// defaultAction gives a signal its default disposition. Go's runtime catches every signal, even if only to die of it,
// so a manager that looks at SigCgt would take a program for one that reloads. See rt_sigaction(2); a structure of
// zeros is SIG_DFL with no flags on each architecture of Linux, and none is larger.
func defaultAction(number syscall.Signal) {
	var action [8]uint64
	const maskSize = 8
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(number),
		uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
	if errno != 0 {
		Logf(Warning, "signal %d keeps its handler: %v", number, errno)
	}
}

// monotonicUsec is CLOCK_MONOTONIC in microseconds, which RELOADING=1 must come with; see clock_gettime(2).
func monotonicUsec() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano() / 1000
}
