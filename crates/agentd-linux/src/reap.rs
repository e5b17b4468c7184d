//! The one reaper: waitid(2) and wait4(2) over all children, adopted ones too.
//!
//! A wake-up by SIGCHLD or a pidfd is a hint, not a count: the kernel merges signals. So the reaper asks until the
//! kernel has no more. A dead child can be shown to the caller *before* it is consumed; until then its number,
//! its `/proc` folder and its cgroup are its own.
//!
//! # Invariants
//!
//! - Nothing else in the process waits for children, but [`Spawner`](crate::spawn::Spawner) for one that failed
//!   before its exec.

use std::fmt;
use std::io;

use nix::errno::Errno;

/// How a process ended. The two are kept apart: 9 is not 137.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// By itself, with a status of 0 to 255.
    Exited(u8),
    /// By a signal.
    Killed {
        /// Which, 1 to 64.
        signal: i32,
        /// It dumped core.
        core: bool,
    },
}

impl Exit {
    /// In one byte, as a shell has it: 128 and the signal's number for a killed process.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(status) => status,
            Self::Killed { signal, .. } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed { signal, core: true } => write!(f, "killed by signal {signal}, core dumped"),
            Self::Killed { signal, core: false } => write!(f, "killed by signal {signal}"),
        }
    }
}

/// A child that is gone for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// The number it had. It may be another's now.
    pub pid: u32,
    /// How it ended.
    pub exit: Exit,
}

/// Reaps one dead child, if there is any. `look` is called while it is still a zombie, whose number and `/proc`
/// folder are its own: the place to find out whose it was.
///
/// # Errors
/// None that a process without other waiters can have. No children at all is `Ok(None)`.
pub fn reap_one<T>(look: impl FnOnce(u32) -> T) -> io::Result<Option<(Reaped, T)>> {
    let peek = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let seen = match wait_info(libc::P_ALL, 0, peek) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(None),
        Err(e) if e.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(e) => return Err(e),
    };
    let found = look(seen.pid);
    wait_info(libc::P_PID, seen.pid, libc::WEXITED)?;
    Ok(Some((seen, found)))
}

/// Reaps one dead child, if there is any, without a look at it: half the calls of [`reap_one`] for a flood of orphans
/// about whom nothing is to be found out. By wait4(2), for which the kernel writes one word in place of seven.
///
/// # Errors
/// None that a process without other waiters can have. No children at all is `Ok(None)`.
pub fn reap_unseen() -> io::Result<Option<Reaped>> {
    loop {
        let mut status: libc::c_int = 0;
        // SAFETY: the call writes one int to the address of the live local; no usage is asked for.
        let pid = unsafe { libc::syscall(libc::SYS_wait4, -1, &raw mut status, libc::WNOHANG, 0usize) };
        if let Ok(pid) = u32::try_from(pid) {
            return Ok((pid != 0).then(|| Reaped { pid, exit: exit_of(status) }));
        }
        match Errno::last() {
            Errno::EINTR => {}
            Errno::ECHILD => return Ok(None),
            errno => return Err(errno.into()),
        }
    }
}

/// What a status of wait(2) says of a process that is gone.
fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFEXITED(status) {
        return Exit::Exited((libc::WEXITSTATUS(status) & 0xff) as u8);
    }
    Exit::Killed { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
}

/// waitid(2), over interruptions. None: with WNOHANG, nobody is in that state.
pub(crate) fn wait_info(
    kind: libc::idtype_t,
    id: libc::id_t,
    options: libc::c_int,
) -> io::Result<Option<Reaped>> {
    loop {
        // SAFETY: all bytes zero is a valid siginfo_t; waitid leaves it so where there is nobody.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes one siginfo_t to the address of the live local.
        let result = unsafe { libc::waitid(kind, id, &raw mut info, options) };
        if result == 0 {
            return Ok(reaped(&info));
        }
        if Errno::last() != Errno::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
}

/// What waitid wrote.
fn reaped(info: &libc::siginfo_t) -> Option<Reaped> {
    // SAFETY: waitid fills in the fields of SIGCHLD, or leaves the zeroes there were.
    let pid = unsafe { info.si_pid() };
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    let exit = match info.si_code {
        libc::CLD_EXITED => Exit::Exited((status & 0xff) as u8),
        code => Exit::Killed { signal: status, core: code == libc::CLD_DUMPED },
    };
    u32::try_from(pid).ok().filter(|pid| *pid != 0).map(|pid| Reaped { pid, exit })
}

/// Makes this process the parent of all orphans below it. prctl(2) PR_SET_CHILD_SUBREAPER, Linux 3.4. PID 1 is
/// that anyway.
///
/// # Errors
/// EINVAL before Linux 3.4.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: the option takes numbers and touches no memory of ours.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends a signal to every process but this one, kill(2) with pid −1: for the end of an init, when all units are
/// stopped. False: there was none.
///
/// # Errors
/// EPERM: none of them may be signalled.
pub fn signal_everyone(signal: i32) -> io::Result<bool> {
    // SAFETY: the call takes two integers and touches no memory of ours.
    if unsafe { libc::kill(-1, signal) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(false) } else { Err(error) }
}

/// Reaps until no child is left or the time is up; whether none is left. SIGCHLD must be blocked.
///
/// # Errors
/// Children cannot be waited for.
pub fn reap_all_within(most: std::time::Duration) -> io::Result<bool> {
    let deadline = std::time::Instant::now() + most;
    loop {
        while reap_one(|_| ())?.is_some() {}
        if !has_children()? {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        wait_for_sigchld(left);
    }
}

/// Whether there is a child at all, dead or alive.
fn has_children() -> io::Result<bool> {
    match wait_info(libc::P_ALL, 0, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::ECHILD) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Waits for the blocked signal at most this long. Early ends are harmless: the caller looks again.
fn wait_for_sigchld(most: std::time::Duration) {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(nix::sys::signal::Signal::SIGCHLD);
    let time = libc::timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    // SAFETY: both pointers are to live locals; a null siginfo is allowed.
    unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &raw const time) };
}

/// Whether this process is the init of its pid namespace.
#[must_use]
pub fn is_pid1() -> bool {
    std::process::id() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_not_an_exit_status() {
        for (exit, code) in [
            (Exit::Exited(9), 9),
            (Exit::Exited(255), 255),
            (Exit::Killed { signal: 9, core: false }, 137),
            (Exit::Killed { signal: 11, core: true }, 139),
            (Exit::Killed { signal: 64, core: false }, 192),
        ] {
            assert_eq!(exit.code(), code, "{exit}");
        }
    }

    #[test]
    fn a_status_of_wait_is_taken_apart() {
        for (status, exit) in [
            (0, Exit::Exited(0)),
            (255 << 8, Exit::Exited(255)),
            (9, Exit::Killed { signal: 9, core: false }),
            (64, Exit::Killed { signal: 64, core: false }),
            (11 | 0x80, Exit::Killed { signal: 11, core: true }),
        ] {
            assert_eq!(exit_of(status), exit, "{status:#x}");
        }
    }
}
