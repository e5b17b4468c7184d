package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDescriptorsAreForOneProcess(t *testing.T) {
	for name, given := range map[string]contract{
		"nothing":         {},
		"no pid":          {listenFDs: "1"},
		"another process": {listenFDs: "1", listenPID: "1"},
		"none":            {listenFDs: "0", listenPID: "77"},
	} {
		if found, err := given.descriptors(77); len(found) != 0 || err != nil {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
}

func TestNonsenseIsRefusedByName(t *testing.T) {
	for reason, given := range map[string]contract{
		`LISTEN_FDS="x"`:             {listenFDs: "x", listenPID: "77"},
		`LISTEN_FDS="-1"`:            {listenFDs: "-1", listenPID: "77"},
		`LISTEN_PID="self"`:          {listenFDs: "1", listenPID: "self"},
		`does not name 1 descriptor`: {listenFDs: "1", listenPID: "77", listenNames: "a:b"},
	} {
		if _, err := given.descriptors(77); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}

func TestAWatchdogIsForOneProcess(t *testing.T) {
	for name, row := range map[string]struct {
		given    contract
		expected time.Duration
	}{
		"ours":      {contract{watchdogUsec: "3000000", watchdogPID: "77"}, 3 * time.Second},
		"any's":     {contract{watchdogUsec: "3000000"}, 3 * time.Second},
		"another":   {contract{watchdogUsec: "3000000", watchdogPID: "1"}, 0},
		"none":      {contract{}, 0},
		"zero":      {contract{watchdogUsec: "0"}, 0},
		"negative":  {contract{watchdogUsec: "-5"}, 0},
		"too long":  {contract{watchdogUsec: "9223372036854775807"}, 0},
		"no number": {contract{watchdogUsec: "x"}, 0},
	} {
		if got := row.given.watchdog(77); got != row.expected {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestBeatsAreAtMostFourAnInterval(t *testing.T) {
	start := time.Now()
	p := pulse{last: start}
	for after, expected := range map[time.Duration]bool{
		0: false, 249 * time.Millisecond: false, 250 * time.Millisecond: true, time.Hour: true,
	} {
		if due := p.due(time.Second, start.Add(after)); due != expected {
			t.Errorf("after %v: due is %v", after, due)
		}
	}
	if (&pulse{}).due(0, start) || !(&pulse{}).due(time.Second, start) {
		t.Error("the first beat is due exactly with a watchdog")
	}
}

func TestPathsAndAbstractNamesAreAddresses(t *testing.T) {
	for _, address := range []string{filepath.Join(t.TempDir(), "notify"), "@agentd-kit-" + strconv.Itoa(os.Getpid())} {
		socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		if !(&notifier{address: address}).send(true, "A=1", "B=2") {
			t.Errorf("%s: not sent", address)
		}
		buffer := make([]byte, 100)
		if n, err := socket.Read(buffer); err != nil || string(buffer[:n]) != "A=1\nB=2" {
			t.Errorf("%s: got %q, %v", address, buffer[:n], err)
		}
	}
}

func TestOtherAddressesAreRefusedByName(t *testing.T) {
	for _, address := range []string{"relative/path", "@", "vsock:2:1"} {
		if err := sendDatagram(address, "READY=1", false); err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestAFullQueueNeverHoldsUpStatus(t *testing.T) {
	address := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	sender := &notifier{address: address}
	for i := 0; i < 100_000; i++ {
		if !sender.send(false, "STATUS=flood") {
			return
		}
	}
	t.Fatal("the queue never filled")
}

func TestWithoutAManagerNothingHappens(t *testing.T) {
	if (&notifier{}).send(true, "READY=1") {
		t.Error("sent to nobody")
	}
}

func TestAStatusIsOneLineWhateverItHolds(t *testing.T) {
	if got := oneLine("a\nREADY=0\r\nb\rc"); got != "a READY=0 b c" {
		t.Errorf("got %q", got)
	}
}

func TestEveryLineHasItsPriority(t *testing.T) {
	for text, expected := range map[string]string{"a\nb": "<4>a\n<4>b\n", "a\n": "<4>a\n", "": "<4>\n"} {
		if got := render(Warning, text, true); got != expected {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestCredentialsAreReadByNameOnly(t *testing.T) {
	if _, err := Credential("token"); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("without a folder: got %v", err)
	}
	folder := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", folder)
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("s3cret"), 0o400); err != nil {
		t.Fatal(err)
	}
	if got, err := Credential("token"); err != nil || string(got) != "s3cret" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "missing"} {
		if _, err := Credential(name); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
}

func TestTheStateDirectoryIsTheUnitsFirst(t *testing.T) {
	if got := StateDirectory("/fallback"); got != "/fallback" {
		t.Errorf("got %s", got)
	}
	t.Setenv("STATE_DIRECTORY", "/a:/b")
	if got := StateDirectory("/fallback"); got != "/a" {
		t.Errorf("got %s", got)
	}
	t.Setenv("AGENTD_STATE_DIRECTORY", "/own")
	if got := StateDirectory("/fallback"); got != "/own" {
		t.Errorf("got %s", got)
	}
}
