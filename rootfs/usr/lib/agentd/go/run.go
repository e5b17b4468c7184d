package agent

import (
	"context"
	"os"
)

// Agent is what an agent does. Only Start is needed.
type Agent struct {
	// Init prepares; the agent is ready once it has returned nil. A stop meanwhile cancels its context.
	Init func(ctx context.Context) error
	// Start works until its context is cancelled. Returning ends the agent; nil, or the context's own error after a
	// stop was asked for, is a clean end.
	Start func(ctx context.Context) error
	// Stop is called once on each orderly way out, beside a Start that may still be on its way back.
	Stop func() error
	// Reload reads the configuration again. Without it SIGHUP is not caught, which a manager can see.
	Reload func() error
}

// Exit codes of Run.
const (
	exitClean  = 0
	exitFailed = 1
	exitUsage  = 2
)

// Run lives the agent's life and exits the process: 0 after a clean end, 1 after an error or a panic (which is shown),
// 2 for an Agent without Start. SIGTERM and SIGINT ask it to stop; a second SIGINT ends it by force.
func Run(agent Agent) { os.Exit(run(agent)) }

func run(agent Agent) int {
	if agent.Start == nil {
		Log(Error, "agent.Run: the Agent has no Start function")
		return exitUsage
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	life := newLife(agent, cancel)
	life.catchSignals()
	if agent.Init != nil {
		if code := verdict("init", ctx, guard(func() error { return agent.Init(ctx) })); code != exitClean {
			return code
		}
	}
	if ctx.Err() != nil {
		return exitClean
	}
	Ready()
	close(life.up)
	if code := verdict("start", ctx, guard(func() error { return agent.Start(ctx) })); code != exitClean {
		return code
	}
	return life.end()
}
