package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deadline is how long anything may take on a loaded machine. Nothing waits this long unless it is broken.
const deadline = time.Minute

// lives are the agents that the tests run as processes of their own: this same program with AGENT_TEST_LIFE set.
var lives = map[string]Agent{
	"returns": {
		Init:  func(context.Context) error { Status("init"); return nil },
		Start: func(context.Context) error { Status("start"); return nil },
		Stop:  func() error { fmt.Println("stopped"); return nil },
	},
	"waits": {
		Start:  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		Stop:   func() error { fmt.Println("stopped"); return nil },
		Reload: func() error { fmt.Println("reloaded"); return nil },
	},
	"deaf":        {Start: func(ctx context.Context) error { <-ctx.Done(); return nil }},
	"empty":       {},
	"init fails":  {Init: func(context.Context) error { return errors.New("no database") }, Start: never},
	"init waits":  {Init: func(ctx context.Context) error { Status("in"); <-ctx.Done(); return ctx.Err() }, Start: never},
	"start fails": {Start: func(context.Context) error { return errors.New("no work") }, Stop: func() error { panic("never") }},
	"panics":      {Start: func(context.Context) error { var m map[string]int; m["x"] = 1; return nil }},
	"canceled":    {Start: func(context.Context) error { return context.Canceled }},
	"stop fails":  {Start: func(context.Context) error { return nil }, Stop: func() error { return errors.New("disk full") }},
	"reload fails": {
		Start:  func(ctx context.Context) error { <-ctx.Done(); return nil },
		Reload: func() error { return errors.New("bad file\nline 3") },
	},
	"reload hangs": {
		Start:  func(ctx context.Context) error { <-ctx.Done(); return nil },
		Reload: func() error { select {} },
	},
	"beats": {Start: func(ctx context.Context) error {
		Wait(ctx, 500*time.Millisecond)
		Status("hang")
		<-ctx.Done()
		return nil
	}},
	"serves": {Start: func(context.Context) error {
		listeners, err := Listeners("web")
		if err != nil || len(listeners) != 1 {
			return fmt.Errorf("%d listeners: %w", len(listeners), err)
		}
		connection, err := listeners[0].Accept()
		if err != nil {
			return err
		}
		_, err = connection.Write([]byte("hello"))
		return err
	}},
	"environment": {Start: func(context.Context) error {
		for _, variable := range os.Environ() {
			for _, prefix := range []string{"NOTIFY", "WATCHDOG", "LISTEN"} {
				if strings.HasPrefix(variable, prefix) {
					return errors.New(variable)
				}
			}
		}
		return nil
	}},
}

func never(context.Context) error { panic("start must not run") }

func TestMain(m *testing.M) {
	if name, found := os.LookupEnv("AGENT_TEST_LIFE"); found {
		Run(lives[name])
	}
	os.Exit(m.Run())
}

// fakeManager is a real notification socket.
type fakeManager struct {
	t       *testing.T
	address string
	socket  *net.UnixConn
}

func newManager(t *testing.T) *fakeManager {
	address := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &fakeManager{t: t, address: address, socket: socket}
}

// receive gives the next message, or "" when none has come in time.
func (m *fakeManager) receive(limit time.Duration) string {
	buffer := make([]byte, 65536)
	m.socket.SetReadDeadline(time.Now().Add(limit))
	n, err := m.socket.Read(buffer)
	if err != nil {
		return ""
	}
	return string(buffer[:n])
}

func (m *fakeManager) expect(messages ...string) {
	m.t.Helper()
	for _, message := range messages {
		if got := m.receive(deadline); got != message {
			m.t.Fatalf("got message %q, not %q", got, message)
		}
	}
}

// process is one agent of lives.
type process struct {
	*exec.Cmd
	t        *testing.T
	out, err bytes.Buffer
}

func (m *fakeManager) start(life string, environment ...string) *process {
	p := &process{Cmd: exec.Command(os.Args[0]), t: m.t}
	p.Env = append([]string{"AGENT_TEST_LIFE=" + life, "NOTIFY_SOCKET=" + m.address}, environment...)
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { p.Process.Kill() })
	return p
}

// finish waits for the end and gives the exit code; -1 if a signal ended it or the deadline passed.
func (p *process) finish() int {
	timer := time.AfterFunc(deadline, func() { p.Process.Kill() })
	defer timer.Stop()
	p.Wait()
	return p.ProcessState.ExitCode()
}

func (p *process) signal(number syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(number); err != nil {
		p.t.Fatal(err)
	}
}

func TestReadyIsSaidAfterInitAndBeforeStart(t *testing.T) {
	manager := newManager(t)
	agent := manager.start("returns")
	manager.expect("STATUS=init", "READY=1", "STATUS=start")
	if code := agent.finish(); code != 0 || agent.out.String() != "stopped\n" {
		t.Fatalf("exit code %d, output %q", code, agent.out.String())
	}
}

func TestEachEndHasItsExitCodeAndItsReason(t *testing.T) {
	for life, expected := range map[string]struct {
		code   int
		reason string
	}{
		"returns":     {0, ""},
		"empty":       {2, "<3>agent.Run: the Agent has no Start function"},
		"init fails":  {1, "<3>init: no database"},
		"start fails": {1, "<3>start: no work"},
		"panics":      {1, "<3>start: panic: assignment to entry in nil map"},
		"canceled":    {1, "<3>start: context canceled"},
		"stop fails":  {1, "<3>stop: disk full"},
		"environment": {0, ""},
	} {
		agent := newManager(t).start(life, "WATCHDOG_USEC=1000000", "LISTEN_FDS=0", "LISTEN_PID=1")
		code := agent.finish()
		first, _, _ := strings.Cut(agent.err.String(), "\n")
		if code != expected.code || first != expected.reason {
			t.Errorf("%s: exit code %d, error %q", life, code, first)
		}
	}
}

func TestAStopCancelsCallsStopAndExitsCleanly(t *testing.T) {
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		manager := newManager(t)
		agent := manager.start("waits")
		manager.expect("READY=1")
		agent.signal(number)
		manager.expect("STOPPING=1")
		if code := agent.finish(); code != 0 || agent.out.String() != "stopped\n" {
			t.Errorf("%v: exit code %d, output %q", number, code, agent.out.String())
		}
	}
}

func TestAStopDuringInitEndsItWithoutReady(t *testing.T) {
	manager := newManager(t)
	agent := manager.start("init waits")
	manager.expect("STATUS=in")
	agent.signal(syscall.SIGTERM)
	manager.expect("STOPPING=1")
	if code := agent.finish(); code != 0 {
		t.Fatalf("exit code %d: %s", code, agent.err.String())
	}
}

func TestReloadStandsBetweenReloadingAndReady(t *testing.T) {
	manager := newManager(t)
	agent := manager.start("waits")
	manager.expect("READY=1")
	before := monotonicUsec()
	agent.signal(syscall.SIGHUP)
	first, second, _ := strings.Cut(manager.receive(deadline), "\n")
	at, err := strconv.ParseInt(strings.TrimPrefix(second, "MONOTONIC_USEC="), 10, 64)
	if first != "RELOADING=1" || err != nil || at < before {
		t.Fatalf("got %q, %q", first, second)
	}
	manager.expect("READY=1")
	agent.signal(syscall.SIGTERM)
	if code := agent.finish(); code != 0 || agent.out.String() != "reloaded\nstopped\n" {
		t.Fatalf("exit code %d, output %q", code, agent.out.String())
	}
}

func TestAReloadThatFailsIsToldAndTheAgentRunsOn(t *testing.T) {
	manager := newManager(t)
	agent := manager.start("reload fails")
	manager.expect("READY=1")
	agent.signal(syscall.SIGHUP)
	manager.receive(deadline)
	manager.expect("READY=1\nSTATUS=reload failed: bad file line 3; running on as before")
	agent.signal(syscall.SIGTERM)
	if code := agent.finish(); code != 0 {
		t.Fatalf("exit code %d: %s", code, agent.err.String())
	}
}

func TestAReloadThatHangsDoesNotHoldUpTheStop(t *testing.T) {
	manager := newManager(t)
	agent := manager.start("reload hangs")
	manager.expect("READY=1")
	agent.signal(syscall.SIGHUP)
	manager.receive(deadline)
	agent.signal(syscall.SIGTERM)
	if code := agent.finish(); code != 0 {
		t.Fatalf("exit code %d: %s", code, agent.err.String())
	}
}

func TestHangupIsCaughtExactlyWhenThereIsAReload(t *testing.T) {
	for life, expected := range map[string]bool{"waits": true, "deaf": false} {
		manager := newManager(t)
		agent := manager.start(life)
		manager.expect("READY=1")
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agent.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "SigCgt:\t")
		text, _, _ := strings.Cut(rest, "\n")
		mask, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if caught := mask&(1<<(syscall.SIGHUP-1)) != 0; caught != expected {
			t.Errorf("%s: caught is %v", life, caught)
		}
	}
}

func TestWaitingBeatsAndAHangDoesNot(t *testing.T) {
	manager := newManager(t)
	manager.start("beats", "WATCHDOG_USEC=200000")
	manager.expect("READY=1")
	beats := 0
	for message := manager.receive(deadline); message == "WATCHDOG=1"; message = manager.receive(deadline) {
		beats++
	}
	if beats < 3 {
		t.Errorf("%d beats in half a second with an interval of 200 ms", beats)
	}
	if message := manager.receive(time.Second); message != "" {
		t.Errorf("a hanging agent said %q", message)
	}
}

func TestAConnectionMadeBeforeTheStartIsServed(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file, err := server.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.DialTimeout("tcp", server.Addr().String(), deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// A shell says for which process the descriptor is; it becomes that process.
	command := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
	command.Env = []string{"AGENT_TEST_LIFE=serves", "LISTEN_FDS=1", "LISTEN_FDNAMES=web"}
	command.ExtraFiles = []*os.File{file}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	client.SetReadDeadline(time.Now().Add(deadline))
	buffer := make([]byte, 10)
	if n, _ := client.Read(buffer); string(buffer[:n]) != "hello" {
		t.Errorf("got %q", buffer[:n])
	}
}
