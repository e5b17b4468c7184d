//! Signals as events, and what others do with theirs: signalfd(2), sigprocmask(2), proc(5).
//!
//! Numbers are the kernel's, 1 to 64. Real-time signals are counted from 34, as glibc programs send them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// SIGRTMIN as glibc programs count it. Not asked of libc: another one would count from 35.
pub const RTMIN: i32 = 34;

/// Halts: what container tools and `machinectl` send to an init.
pub const HALT: i32 = RTMIN + 3;
/// Powers off.
pub const POWEROFF: i32 = RTMIN + 4;
/// Reboots.
pub const REBOOT: i32 = RTMIN + 5;
/// Reboots into another kernel.
pub const KEXEC: i32 = RTMIN + 6;

/// A signal that was sent to this process: signalfd(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalInfo {
    /// Its number.
    pub signal: i32,
    /// Who sent it; 0 for the kernel.
    pub pid: u32,
    /// The sender's real user.
    pub uid: u32,
    /// Why: `SI_USER`, `SI_KERNEL`, `SI_QUEUE` …, sigaction(2).
    pub code: i32,
    /// The value of sigqueue(3), if `code` is `SI_QUEUE`.
    pub value: i32,
}

/// Gives all signals that were ignored when this process was started their default disposition, and blocks these and no
/// others, at once: one that is pending, as from before this program was executed again, stays so.
/// SIGPIPE stays ignored: a peer that goes must be an error of a write, not our end.
///
/// # Errors
/// EINVAL: no such signal.
pub fn reset_inherited(blocked: &[i32]) -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for number in 1..=64 {
        if [libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE].contains(&number) || (32..RTMIN).contains(&number) {
            continue; // Unchangeable, ours, and glibc's own two.
        }
        if is_ignored(number)? {
            set_default(number, &default)?;
        }
    }
    mask(libc::SIG_SETMASK, blocked)
}

/// Whether this process ignores the signal.
fn is_ignored(number: i32) -> io::Result<bool> {
    // SAFETY: all bytes zero is a valid sigaction.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call changes nothing and writes one sigaction to the address of the live local.
    if unsafe { libc::sigaction(number, std::ptr::null(), &raw mut old) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(old.sa_sigaction == libc::SIG_IGN)
}

/// Real-time signals have no value in nix's enumeration.
fn set_default(number: i32, default: &SigAction) -> io::Result<()> {
    if let Ok(signal) = Signal::try_from(number) {
        // SAFETY: the default disposition runs no code of ours.
        unsafe { sigaction(signal, default) }?;
        return Ok(());
    }
    // SAFETY: the call takes a number and the default disposition, which runs no code of ours.
    if unsafe { libc::signal(number, libc::SIG_DFL) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A set of signals by number.
fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    // SAFETY: all bytes zero is a valid sigset_t.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the live local.
    unsafe { libc::sigemptyset(&raw mut set) };
    for number in signals {
        // SAFETY: the call writes to the live local and refuses numbers that are no signals.
        if unsafe { libc::sigaddset(&raw mut set, *number) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(set)
}

/// Blocks these signals for the calling thread and those it will start: they wait until a [`SignalFd`] reads them.
/// Children do not inherit it: a spawn empties their mask.
///
/// # Errors
/// EINVAL: no such signal.
pub fn block(signals: &[i32]) -> io::Result<()> {
    mask(libc::SIG_BLOCK, signals)
}

fn mask(how: i32, signals: &[i32]) -> io::Result<()> {
    let set = set_of(signals)?;
    // SAFETY: the call reads the set from the live local and writes nothing.
    let errno = unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Signals that are read as events. Readable when one is pending; never blocks; close-on-exec.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks the signals as [`block`] does, and reads them from now on.
    ///
    /// # Errors
    /// EINVAL: no such signal. EMFILE, ENFILE, ENOMEM.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        block(signals)?;
        let set = set_of(signals)?;
        // SAFETY: the call reads the set from the live local.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so `fd` is open and we are its only owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next pending signal, or None. Signals other than the real-time ones are merged by the kernel: one
    /// SIGCHLD may stand for many.
    ///
    /// # Errors
    /// None that a signalfd can have.
    pub fn read(&self) -> io::Result<Option<SignalInfo>> {
        // SAFETY: all bytes zero is a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the call writes at most `size` bytes to the live local.
        let n = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        if n < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        Ok(Some(SignalInfo {
            signal: info.ssi_signo as i32,
            pid: info.ssi_pid,
            uid: info.ssi_uid,
            code: info.ssi_code,
            value: info.ssi_int,
        }))
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SignalFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

/// Whether the process has a handler for the signal. A SIGHUP that asks for a reload would kill one without.
/// None: the process is gone.
///
/// # Errors
/// `/proc` cannot be read.
pub fn is_caught(pid: u32, signal: i32) -> io::Result<Option<bool>> {
    let status = match std::fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => status,
        Err(e) if is_gone(&e) => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(status_mask(&status, "SigCgt").map(|mask| has(mask, signal)))
}

/// Whether this is what the kernel says of a process that is no more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// A mask line of `/proc/PID/status`, such as `SigCgt` and `CapBnd`: proc_pid_status(5).
pub(crate) fn status_mask(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Signal N stands at bit N-1.
fn has(mask: u64, signal: i32) -> bool {
    u32::try_from(signal - 1).ok().and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_the_status_file_are_read() {
        let status =
            "Name:\tx\nSigBlk:\t0000000000000000\nSigCgt:\t0000000180004001\nCapBnd:\t000001fffeffffff\n";
        assert_eq!(status_mask(status, "SigCgt"), Some(0x1_8000_4001));
        assert_eq!(status_mask(status, "CapBnd"), Some(0x1ff_feff_ffff));
        assert_eq!(status_mask(status, "Sig"), None);
    }

    #[test]
    fn a_signal_stands_one_bit_below_its_number() {
        for (mask, signal, there) in
            [(1, 1, true), (1, 2, false), (1 << 63, 64, true), (u64::MAX, 65, false), (u64::MAX, 0, false)]
        {
            assert_eq!(has(mask, signal), there, "{signal} in {mask:x}");
        }
    }

    #[test]
    fn a_sent_signal_is_read_with_its_sender() {
        // The mask is that of this test's thread; only a signal to the thread is sure to be read here.
        let fd = SignalFd::new(&[libc::SIGUSR2, RTMIN + 5]).unwrap();
        assert_eq!(fd.read().unwrap(), None);
        nix::sys::signal::raise(Signal::SIGUSR2).unwrap();
        let info = fd.read().unwrap().unwrap();
        assert_eq!((info.signal, info.pid), (libc::SIGUSR2, std::process::id()));
        assert_eq!(fd.read().unwrap(), None);
    }

    #[test]
    fn numbers_that_are_no_signals_are_refused() {
        for number in [0, -1, 65] {
            assert_eq!(block(&[number]).unwrap_err().raw_os_error(), Some(libc::EINVAL), "{number}");
        }
    }

    #[test]
    fn a_process_that_is_gone_catches_nothing() {
        assert_eq!(is_caught(1 << 23, libc::SIGHUP).unwrap(), None);
    }

    #[test]
    fn rusts_own_handler_is_seen() {
        // The runtime catches SIGSEGV to tell of stack overflows.
        assert_eq!(is_caught(std::process::id(), libc::SIGSEGV).unwrap(), Some(true));
        assert_eq!(is_caught(std::process::id(), libc::SIGHUP).unwrap(), Some(false));
    }
}
