//! Namespaces that more than one process is to have: made before the first, and kept by a descriptor.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use super::raw;

/// A network with a loopback device alone, which is up. network_namespaces(7).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; ENOSPC where there may be no more; `/proc` is not mounted.
pub fn network_of_its_own() -> io::Result<OwnedFd> {
    made(libc::CLONE_NEWNET, "/proc/thread-self/ns/net", || raw::loopback_up().map(|_| ()))
}

/// System V IPC and message queues. ipc_namespaces(7).
///
/// # Errors
/// As [`network_of_its_own`].
pub fn ipc_of_its_own() -> io::Result<OwnedFd> {
    made(libc::CLONE_NEWIPC, "/proc/thread-self/ns/ipc", || Ok(()))
}

/// A thread of its own leaves ours for it, and is gone at once: the rest of us stays where it is.
fn made(
    kind: i32,
    file: &str,
    set_up: impl FnOnce() -> Result<(), raw::Errno> + Send,
) -> io::Result<OwnedFd> {
    let work = || {
        // A signal of the manager is not for this thread.
        raw::set_signal_mask(u64::MAX).map_err(io::Error::from_raw_os_error)?;
        raw::unshare(kind).map_err(io::Error::from_raw_os_error)?;
        set_up().map_err(io::Error::from_raw_os_error)?;
        File::open(file).map(OwnedFd::from)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes it has ended")))
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn it_is_another_one_and_ours_stays() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let link = |path: &str| std::fs::read_link(path).unwrap();
        let of = |fd: &OwnedFd| link(&format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let ours = ["/proc/thread-self/ns/net", "/proc/thread-self/ns/ipc"].map(link);
        let made = [network_of_its_own().unwrap(), ipc_of_its_own().unwrap()];
        let theirs = made.each_ref().map(of);
        assert!(theirs[0] != ours[0] && theirs[1] != ours[1], "{theirs:?} {ours:?}");
        assert_eq!(["/proc/thread-self/ns/net", "/proc/thread-self/ns/ipc"].map(link), ours);
    }
}
