//! Small questions and settings of any descriptor: fcntl(2), ioctl(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::rlimit::{self, Resource};

/// The major and minor number of a device, makedev(3).
#[must_use]
pub fn device_numbers(device: u64) -> (u64, u64) {
    (nix::sys::stat::major(device), nix::sys::stat::minor(device))
}

/// Makes reads and writes return WouldBlock instead of waiting. ioctl FIONBIO, one call where fcntl(2) takes two.
///
/// # Errors
/// None that an open descriptor can have.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: FIONBIO reads one int from the address, which is that of a live local.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONBIO, &raw const on) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes reads and writes wait again, for a descriptor that was opened without waiting.
///
/// # Errors
/// None that an open descriptor can have.
pub fn set_blocking(fd: impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags & !OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Lets a pipe hold this many bytes, rounded up to a power of two of pages. fcntl F_SETPIPE_SZ, Linux 2.6.35, pipe(7).
///
/// # Errors
/// EPERM: more than `pipe-max-size`, or than the pipes of this user may hold together. EBUSY: it holds more now.
pub fn set_pipe_size(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    fcntl(&fd, FcntlArg::F_SETPIPE_SZ(bytes))?;
    Ok(())
}

/// Whether two descriptors are copies of each other: of one open file, not only of one file. Where the kernel does not
/// say, they are not. kcmp(2), Linux 3.5.
#[must_use]
pub fn is_same_open_file(one: impl AsFd, other: impl AsFd) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let own = std::process::id();
    let (one, other) = (one.as_fd().as_raw_fd(), other.as_fd().as_raw_fd());
    // SAFETY: the call takes five integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, own, own, KCMP_FILE, one, other) };
    result == 0
}

/// Has a descriptor stay open over the next execve(2), or closes it there again.
///
/// # Errors
/// None that an open descriptor can have.
pub fn keep_over_exec(fd: impl AsFd, keep: bool) -> io::Result<()> {
    let flags = if keep { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
    fcntl(&fd, FcntlArg::F_SETFD(flags))?;
    Ok(())
}

/// Takes descriptors over that this process had before it was executed, by their numbers, which whoever executed it has
/// handed on; close-on-exec from now on. One that is not open is left out. For the very beginning of a program: the
/// second call gives none, and so does one for a standard stream.
#[must_use]
pub fn handed_over<K>(numbers: Vec<(K, RawFd)>) -> Vec<(K, OwnedFd)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    let mut seen = Vec::new();
    let mut own = |number: RawFd| {
        let fresh = number > libc::STDERR_FILENO && !seen.contains(&number);
        seen.push(number);
        // SAFETY: the call takes three integers and touches no memory of ours.
        let open = fresh && unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == 0;
        // SAFETY: it is open, and nobody else owns it: it came with the program, and it is taken once.
        open.then(|| unsafe { OwnedFd::from_raw_fd(number) })
    };
    numbers.into_iter().filter_map(|(key, number)| own(number).map(|fd| (key, fd))).collect()
}

/// Makes room for `count` descriptors in the kernel's table of this process, 8 bytes each, or for as many as the limit
/// lets it have. The table grows as it fills; for a process of more than one thread the kernel waits a grace period of
/// RCU each time (`expand_files` in fs/file.c), some ten milliseconds in which a manager starts nothing. For the
/// beginning of a program, before its second thread.
///
/// # Errors
/// EMFILE: no descriptor is left. ENOMEM.
pub fn make_room(count: usize) -> io::Result<()> {
    let limit = rlimit::get(Resource::Nofile)?.soft;
    let count = usize::try_from(limit).unwrap_or(usize::MAX).min(count);
    let highest = RawFd::try_from(count.saturating_sub(1)).unwrap_or(RawFd::MAX);
    let any = EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?;
    let number = fcntl(&any, FcntlArg::F_DUPFD_CLOEXEC(highest))?;
    // SAFETY: the call has just made it, and nobody else knows its number.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(())
}

/// How many bytes can be read from a pipe or a stream socket without waiting. ioctl FIONREAD, pipe(7).
///
/// # Errors
/// ENOTTY: the descriptor has no such question.
pub fn bytes_ready(fd: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to the address, which is that of a live local.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_nonblocking_pipe_says_that_it_is_empty() {
        let (mut read, _write) = std::io::pipe().unwrap();
        set_nonblocking(&read).unwrap();
        assert_eq!(read.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn copies_are_told_from_others() {
        let (read, write) = std::io::pipe().unwrap();
        let copy = read.try_clone().unwrap();
        assert!(!is_same_open_file(&read, &write));
        // Kernels without CONFIG_KCMP say nothing.
        if is_same_open_file(&read, &read) {
            assert!(is_same_open_file(&read, &copy));
        }
    }

    #[test]
    fn descriptors_are_taken_over_once_and_only_if_they_are_open() {
        use std::os::fd::IntoRawFd;
        let (read, write) = std::io::pipe().unwrap();
        keep_over_exec(&write, true).unwrap();
        let number = OwnedFd::from(write).into_raw_fd();
        let taken = handed_over(vec![("out", 1), ("none", 999_999), ("pipe", number), ("again", number)]);
        assert_eq!(taken.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["pipe"]);
        let flags = fcntl(&taken[0].1, FcntlArg::F_GETFD).unwrap();
        assert_eq!(FdFlag::from_bits_retain(flags), FdFlag::FD_CLOEXEC);
        assert!(handed_over(vec![("pipe", number)]).is_empty(), "it has an owner now");
        drop((read, taken));
    }

    #[test]
    fn room_for_descriptors_is_made_up_to_the_limit() {
        let size = || {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
            line.trim().parse::<usize>().unwrap()
        };
        make_room(512).unwrap();
        assert!(size() >= 512, "{}", size());
        let limit = rlimit::get(Resource::Nofile).unwrap();
        rlimit::set(rlimit::Rlimit { soft: limit.soft.min(700), ..limit }).unwrap();
        make_room(1 << 20).unwrap();
        assert!((513..=1024).contains(&size()), "{}", size());
    }

    #[test]
    fn the_bytes_in_a_pipe_are_counted() {
        let (read, mut write) = std::io::pipe().unwrap();
        assert_eq!(bytes_ready(&read).unwrap(), 0);
        write.write_all(b"hello").unwrap();
        assert_eq!(bytes_ready(&read).unwrap(), 5);
    }

    #[test]
    fn a_wide_pipe_takes_more_without_a_reader() {
        let (_read, mut write) = std::io::pipe().unwrap();
        set_pipe_size(&write, 256 << 10).unwrap();
        write.write_all(&[b'x'; 256 << 10]).unwrap();
    }
}
