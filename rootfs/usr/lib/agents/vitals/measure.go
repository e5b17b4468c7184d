package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Vitals is how the machine is at one moment.
type Vitals struct {
	Time time.Time `json:"time"`
	// Load is the number of tasks that want to run, averaged over a minute, proc_loadavg(5).
	Load float64 `json:"load"`
	// Processes is how many tasks there are.
	Processes int `json:"processes"`
	// MemoryTotal and MemoryAvailable are in bytes, proc_meminfo(5).
	MemoryTotal     uint64 `json:"memory_total"`
	MemoryAvailable uint64 `json:"memory_available"`
	// DiskTotal and DiskFree are in bytes, statvfs(3).
	DiskTotal uint64 `json:"disk_total"`
	DiskFree  uint64 `json:"disk_free"`
	// Uptime is in seconds, proc_uptime(5).
	Uptime float64 `json:"uptime"`
}

// Where the warnings begin, in percent.
const (
	leastMemory = 10
	leastDisk   = 10
)

func measure(proc, root string) (Vitals, error) {
	var v Vitals
	load, err := fields(filepath.Join(proc, "loadavg"), 4)
	if err != nil {
		return v, err
	}
	if v.Load, err = strconv.ParseFloat(load[0], 64); err != nil {
		return v, fmt.Errorf("loadavg: %w", err)
	}
	_, tasks, _ := strings.Cut(load[3], "/")
	if v.Processes, err = strconv.Atoi(tasks); err != nil {
		return v, fmt.Errorf("loadavg: %w", err)
	}
	uptime, err := fields(filepath.Join(proc, "uptime"), 1)
	if err != nil {
		return v, err
	}
	if v.Uptime, err = strconv.ParseFloat(uptime[0], 64); err != nil {
		return v, fmt.Errorf("uptime: %w", err)
	}
	if v.MemoryTotal, v.MemoryAvailable, err = memory(filepath.Join(proc, "meminfo")); err != nil {
		return v, err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(root, &disk); err != nil {
		return v, fmt.Errorf("%s: %w", root, err)
	}
	v.DiskTotal, v.DiskFree = disk.Blocks*uint64(disk.Bsize), disk.Bavail*uint64(disk.Bsize)
	return v, nil
}

// fields gives at least so many words of a file of one line.
func fields(path string, least int) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(data))
	if len(words) < least {
		return nil, fmt.Errorf("%s: %d words where %d belong", path, len(words), least)
	}
	return words, nil
}

func memory(path string) (total, available uint64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	found := map[string]uint64{}
	for _, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) == 3 && words[2] == "kB" {
			kib, err := strconv.ParseUint(words[1], 10, 53)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", path, err)
			}
			found[words[0]] = kib << 10
		}
	}
	if found["MemTotal:"] == 0 {
		return 0, 0, fmt.Errorf("%s: no MemTotal", path)
	}
	return found["MemTotal:"], found["MemAvailable:"], nil
}

func percent(part, whole uint64) uint64 {
	if whole == 0 {
		return 100 // A file system without blocks cannot be full.
	}
	return uint64(float64(part) / float64(whole) * 100)
}

// String is the line for the log.
func (v Vitals) String() string {
	return fmt.Sprintf("load %.2f, %d tasks, memory %d%% available of %d MiB, disk %d%% free of %d MiB",
		v.Load, v.Processes, percent(v.MemoryAvailable, v.MemoryTotal), v.MemoryTotal>>20,
		percent(v.DiskFree, v.DiskTotal), v.DiskTotal>>20)
}

func (v Vitals) warnings() []string {
	var found []string
	if left := percent(v.MemoryAvailable, v.MemoryTotal); left < leastMemory {
		found = append(found, fmt.Sprintf("only %d%% of the memory is available", left))
	}
	if left := percent(v.DiskFree, v.DiskTotal); left < leastDisk {
		found = append(found, fmt.Sprintf("only %d%% of the disk is free", left))
	}
	return found
}
