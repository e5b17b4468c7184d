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
    fn a_signal_that_does_not_exist_is_an_error() {
        let own = PidFd::open(std::process::id()).unwrap().unwrap();
        assert_eq!(own.send_signal(65).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
