//! One module per kernel facility: spawn, pidfd, reap, cgroup, mount, capabilities, reboot.
