package agent

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstFD is the first descriptor that is handed over (SD_LISTEN_FDS_START).
const firstFD = 3

// passed is one descriptor and the name that its socket unit gave it.
type passed struct {
	fd   int
	name string
}

// descriptors are those that are for the process pid; none if they are for another, or there are none.
func (c contract) descriptors(pid int) ([]passed, error) {
	if c.listenFDs == "" || c.listenPID == "" {
		return nil, nil
	}
	owner, err := strconv.ParseUint(c.listenPID, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("LISTEN_PID=%q is not a process id", c.listenPID)
	}
	if int(owner) != pid {
		return nil, nil
	}
	count, err := strconv.ParseUint(c.listenFDs, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("LISTEN_FDS=%q is not a number of descriptors", c.listenFDs)
	}
	var names []string
	if c.listenNames != "" {
		names = strings.Split(c.listenNames, ":")
		if uint64(len(names)) != count {
			return nil, fmt.Errorf("LISTEN_FDNAMES=%q does not name %d descriptors", c.listenNames, count)
		}
	}
	found := make([]passed, count)
	for index := range found {
		found[index] = passed{fd: firstFD + index, name: "unknown"}
		if names != nil {
			found[index].name = names[index]
		}
		syscall.CloseOnExec(found[index].fd)
	}
	return found, nil
}

// Files gives the descriptors that the manager handed over, in order; only those of one FileDescriptorName if name is
// not empty. Each call gives duplicates that the caller may close.
func Files(name string) ([]*os.File, error) {
	all, err := inherited.descriptors(os.Getpid())
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, item := range all {
		if name != "" && name != item.name {
			continue
		}
		duplicate, err := duplicateCloexec(item.fd)
		if err != nil {
			return nil, fmt.Errorf("descriptor %d of LISTEN_FDS=%s: %w", item.fd, inherited.listenFDs, err)
		}
		files = append(files, os.NewFile(uintptr(duplicate), item.name))
	}
	return files, nil
}

// Listeners gives the same as stream listeners, bound and ready to accept. A connection made before the agent was
// there waits in them.
func Listeners(name string) ([]net.Listener, error) {
	files, err := Files(name)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	for _, file := range files {
		listener, err := net.FileListener(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("descriptor %q is no stream listener: %w", file.Name(), err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func duplicateCloexec(fd int) (int, error) {
	duplicate, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, firstFD)
	if errno != 0 {
		return -1, errno
	}
	return int(duplicate), nil
}
