//! One module per kernel facility: spawn, pidfd, reap, cgroup, mount, capabilities, reboot.

pub mod cgroup;
pub mod datagram;
pub mod descriptor;
pub mod epoll;
pub mod exec;
pub mod executable;
pub mod folder;
pub mod folder_tree;
pub mod ipc;
pub mod journal;
pub mod kmsg;
pub mod listen;
pub mod lock;
pub mod machine;
pub mod memfd;
pub mod memory;
pub mod mount;
pub mod notify;
pub mod open;
pub mod paths;
pub mod pid_file;
pub mod pidfd;
pub mod pipe;
pub mod reap;
pub mod rlimit;
pub mod seccomp;
pub mod signal;
pub mod small;
pub mod socket;
pub mod spawn;
pub mod stamp;
#[cfg(test)]
mod testing;
pub mod timer;
pub mod tree;
pub mod user;
pub mod watchdog;
