package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long a message that must arrive may wait for a manager that is busy.
const patience = 5 * time.Second

// notifier sends sd_notify(3) datagrams. It never fails its caller: an agent must outlive its manager's restart.
type notifier struct {
	address    string
	complained atomic.Bool
}

var manager = &notifier{address: inherited.notifySocket}

// send puts the lines into one datagram and tells whether the manager's queue took it. With mustArrive it waits up to
// patience for room; without, a full queue drops it at once, so that a manager that stands still never holds up work.
func (n *notifier) send(mustArrive bool, lines ...string) bool {
	if n.address == "" {
		return false
	}
	err := sendDatagram(n.address, strings.Join(lines, "\n"), mustArrive)
	if err == nil {
		n.complained.Store(false)
		return true
	}
	if mustArrive || !errors.Is(err, syscall.EAGAIN) {
		// Once until the next success: a watchdog beat a second would flood the log.
		if n.complained.CompareAndSwap(false, true) {
			Log(Warning, fmt.Sprintf("cannot send %q to NOTIFY_SOCKET: %v", lines[0], err))
		}
	}
	return false
}

// sendDatagram uses a socket for each message: it cannot leak to children, and survives a manager that binds anew.
func sendDatagram(address, payload string, wait bool) error {
	if !strings.HasPrefix(address, "/") && (!strings.HasPrefix(address, "@") || len(address) < 2) {
		return fmt.Errorf("%q is neither an absolute path nor an abstract name (@name)", address)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer syscall.Close(fd)
	flags := syscall.MSG_NOSIGNAL
	if wait {
		limit := syscall.NsecToTimeval(patience.Nanoseconds())
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	} else {
		flags |= syscall.MSG_DONTWAIT
	}
	for {
		// The system call package turns the leading @ into the zero byte of an abstract name.
		err = syscall.Sendto(fd, []byte(payload), flags, &syscall.SockaddrUnix{Name: address})
		if err != syscall.EINTR {
			return os.NewSyscallError("sendto", err)
		}
	}
}

// oneLine makes text the value of one line: a line break would begin another assignment.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
}
