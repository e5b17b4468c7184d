// The library: an agent that takes texts in over HTTP, hands them to workers, and keeps what they make of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agentd/agent"
)

// pulse is how often the library looks at itself when nothing happens.
const pulse = 10 * time.Second

type server struct {
	address  string
	limits   Limits
	library  *Library
	listener net.Listener
}

func main() {
	s := &server{}
	flag.StringVar(&s.address, "listen", fromEnvironment("LIBRARY_LISTEN", "127.0.0.1:8080"),
		"address to listen on, if the manager passes no socket")
	flag.DurationVar(&s.limits.Lease, "lease", 30*time.Second, "how long a worker may have a document")
	flag.IntVar(&s.limits.Attempts, "attempts", 5, "how many workers may fail on a document")
	flag.IntVar(&s.limits.Documents, "documents", 2_000, "how many documents to keep")
	flag.Parse()
	if flag.NArg() > 0 || s.limits.Lease <= 0 || s.limits.Attempts <= 0 || s.limits.Documents <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	agent.Run(agent.Agent{Init: s.open, Start: s.serve})
}

func fromEnvironment(key, fallback string) string {
	if value := os.Getenv(key); value != "" {
		return value
	}
	return fallback
}

// open makes everything ready that may fail: after it, a connection is answered.
func (s *server) open(context.Context) (err error) {
	folder := filepath.Join(agent.StateDirectory("/var/lib/agents/library"), "documents")
	if s.library, err = OpenLibrary(folder, s.limits); err != nil {
		return fmt.Errorf("the documents in %s: %w", folder, err)
	}
	listeners, err := agent.Listeners("")
	switch {
	case err != nil:
		return err
	case len(listeners) > 1:
		return fmt.Errorf("the manager passes %d sockets; the library serves one", len(listeners))
	case len(listeners) == 1:
		s.listener = listeners[0]
	default:
		if s.listener, err = net.Listen("tcp", s.address); err != nil {
			return err
		}
	}
	agent.Logf(agent.Info, "serving %d documents from %s on %s", len(s.library.List()), folder, s.listener.Addr())
	return nil
}

func (s *server) serve(ctx context.Context) error {
	// Requests end with the agent: who waits for work or a summary is answered at once.
	web := &http.Server{
		Handler: newAPI(s.library), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: maxWait, IdleTimeout: time.Minute,
		WriteTimeout: 2 * maxWait, MaxHeaderBytes: envelope,
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(s.listener) }()
	for alive := true; alive; alive = agent.Wait(ctx, pulse) {
		s.library.Counts() // Takes the one lock: a library that is stuck stops beating.
		select {
		case err := <-failed:
			return err
		default:
		}
	}
	// Shutdown waits for the answers under way.
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
