//! A process held by descriptor: its signals never reach a later owner of the number. pidfd_open(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::reap::{Exit, wait_info};

/// A process held by descriptor. Readable, as poll(2) says it, once the process has ended.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The process has it.
    Sent,
    /// The process had ended, reaped or not. For a stop that is as good as done.
    Gone,
}

/// What is asked of PIDFD_GET_INFO, and what was told.
const PIDFD_INFO_CGROUPID: u64 = 1 << 2;
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// `_IOWR(0xFF, 11, struct pidfd_info)` with the size of [`Info`], the first version of the structure: later kernels take it.
const PIDFD_GET_INFO: libc::Ioctl = (3 << 30 | size_of::<Info>() << 16 | 0xff << 8 | 11) as libc::Ioctl;

/// `struct pidfd_info` as Linux 6.13 has it.
#[derive(Debug, Default)]
#[repr(C)]
struct Info {
    mask: u64,
    cgroup_id: u64,
    pids: [u32; 3],
    ids: [u32; 8],
    exit_code: i32,
}

impl PidFd {
    /// Opens a process by its number. None: there is no such process, or it is half gone.
    ///
    /// The number of our own child is safe until the child is reaped. Of any other process check after this, by
    /// what `/proc` says, that it is the one that was meant: from here on it stays that one.
    ///
    /// Linux 5.3, pidfd_open(2). The descriptor is close-on-exec from birth.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM; ENOSYS or EPERM where the call is not allowed. EINVAL is *not* among them for a
    /// number that can be a process: a task that is about to go answers so.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        let number = i32::try_from(pid).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the call takes two integers and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            let gone = matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL | libc::ENOENT));
            return if gone { Ok(None) } else { Err(error) };
        }
        // SAFETY: the call succeeded, so `fd` is open and we are its only owner.
        Ok(Some(Self(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })))
    }

    /// Sends a signal, 1 to 64, or 0 to ask whether the process is there. Linux 5.1, pidfd_send_signal(2).
    ///
    /// # Errors
    /// EPERM: the process is another user's. EINVAL: no such signal. A process that is gone is no error.
    pub fn send_signal(&self, signal: i32) -> io::Result<Delivery> {
        let info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: with a null siginfo the kernel fills in what kill(2) would and reads no memory of ours.
        let result =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, info, 0) };
        if result == 0 {
            return Ok(Delivery::Sent);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ESRCH) { Ok(Delivery::Gone) } else { Err(error) }
    }

    /// Whether the process has ended, reaped or not, without waiting.
    ///
    /// # Errors
    /// None that a pidfd can have.
    pub fn has_ended(&self) -> io::Result<bool> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        Ok(poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO)? > 0)
    }

    /// The number of the process that a descriptor of anybody's is of, from its `fdinfo`, proc_pid_fdinfo(5). None: it is of
    /// no process, or the process is gone.
    #[must_use]
    pub fn pid_of(fd: BorrowedFd<'_>) -> Option<u32> {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()?;
        let line = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
        // -1 stands for one that was reaped, 0 for one that we cannot see.
        line.trim().parse().ok().filter(|pid| *pid != 0)
    }

    /// The number of the cgroup that the process is in, or was in when it ended: the inode of its folder in the version 2
    /// hierarchy. Linux 6.13, and 6.16 for a process that is reaped already; None where the kernel cannot tell.
    /// PIDFD_GET_INFO of ioctl(2), include/uapi/linux/pidfd.h.
    #[must_use]
    pub fn cgroup_id(&self) -> Option<u64> {
        let mut info = Info { mask: PIDFD_INFO_CGROUPID | PIDFD_INFO_EXIT, ..Info::default() };
        // SAFETY: the call writes no more than the size that is part of its number, into the live local.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
        let told = result == 0 && info.mask & PIDFD_INFO_CGROUPID != 0 && info.cgroup_id != 0;
        told.then_some(info.cgroup_id)
    }

    /// Whether the process is gone altogether, so that its number may be another's. One that has ended and is not reaped
    /// is not gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // EPERM says that it is there.
        matches!(self.send_signal(0), Ok(Delivery::Gone))
    }

    /// Whether it is a child of ours that is not reaped: of the end of any other process we are told nothing but that it
    /// came. Linux 5.4, waitid(2) P_PIDFD.
    ///
    /// # Errors
    /// None that a pidfd can have.
    pub fn is_child(&self) -> io::Result<bool> {
        let id = self.0.as_raw_fd() as libc::id_t;
        match wait_info(libc::P_PIDFD, id, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ECHILD) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A copy of one of its descriptors, of the same open file; close-on-exec. pidfd_getfd(2), Linux 5.6.
    ///
    /// # Errors
    /// EBADF: it has none of this number. EPERM: it may not be traced by us, ptrace(2). ESRCH: it has ended.
    pub fn copy_descriptor(&self, number: RawFd) -> io::Result<OwnedFd> {
        // SAFETY: the call takes three integers and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, self.0.as_raw_fd(), number, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so `fd` is open and we are its only owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }

    /// Waits for our child to end and consumes its status. Linux 5.4, waitid(2) P_PIDFD. Only for children that
    /// the reaper is not to see.
    ///
    /// # Errors
    /// ECHILD: it is no child of ours, or was reaped already.
    pub(crate) fn reap(&self) -> io::Result<Exit> {
        let id = self.0.as_raw_fd() as libc::id_t;
        let info = wait_info(libc::P_PIDFD, id, libc::WEXITED)?;
        // Without WNOHANG the call comes back with a child or an error.
        info.map(|reaped| reaped.exit).ok_or_else(|| io::Error::from_raw_os_error(libc::ECHILD))
    }
}

impl From<OwnedFd> for PidFd {
    /// Takes over a pidfd that a call such as clone3(2) or recvmsg(2) has given us.
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_mean_many_processes_are_refused() {
        for pid in [0, u32::MAX, 1 << 31] {
            assert_eq!(PidFd::open(pid).unwrap_err().raw_os_error(), Some(libc::EINVAL), "{pid}");
        }
    }

    #[test]
    fn a_number_without_a_process_is_gone() {
        // The kernel's highest pid_max is 2^22.
        assert!(PidFd::open(1 << 23).unwrap().is_none());
    }

    #[test]
    fn we_can_be_signalled_and_have_not_ended() {
        let own = PidFd::open(std::process::id()).unwrap().unwrap();
        assert_eq!(own.send_signal(0).unwrap(), Delivery::Sent);
        assert!(!own.has_ended().unwrap());
    }

    #[test]
    fn the_cgroup_of_a_living_process_is_the_inode_of_its_folder() {
        let own = PidFd::open(std::process::id()).unwrap().unwrap();
        assert!(!own.is_gone());
        let mount = crate::cgroup::find_mount().unwrap();
        if let (Some(id), Some(mount)) = (own.cgroup_id(), mount) {
            let path = crate::cgroup::of_process(std::process::id()).unwrap().unwrap();
            let folder = mount.path.join(path.trim_start_matches('/'));
            assert_eq!(std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(folder).unwrap()), id);
        }
        assert_eq!(own.cgroup_id().is_some(), crate::spawn::release() >= (6, 13));
    }

    #[test]
    fn a_signal_that_does_not_exist_is_an_error() {
        let own = PidFd::open(std::process::id()).unwrap().unwrap();
        assert_eq!(own.send_signal(65).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
