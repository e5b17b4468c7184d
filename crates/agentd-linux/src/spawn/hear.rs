//! What the parent hears of a child that does not share its memory: what it asks for, and how it ended.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::child::Report;
use super::users::{Answers, UserMap};
use crate::cgroup;
use crate::reap::wait_info;

/// After so long a child is looked at that says nothing: nearly all have reached their exec long before.
pub(super) const LONG: Duration = Duration::from_millis(100);

/// Who listens to one child.
#[derive(Debug)]
pub(super) struct Ear<'a> {
    /// Where its reports come from.
    pub(super) reader: io::PipeReader,
    /// Its number, for its maps.
    pub(super) pid: u32,
    /// The maps that it will ask for.
    pub(super) users: Option<(&'a UserMap, &'a mut Answers)>,
    /// The folder of its cgroup, if it has one of its own.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
}

impl Ear<'_> {
    /// The report that says how it failed, or an empty one when the exec shuts the pipe. It has until the deadline, which
    /// was this long after its birth.
    ///
    /// # Errors
    /// TimedOut: it did neither in time. Interrupted: somebody has stopped it, or has frozen its cgroup. The child is still
    /// there.
    pub(super) fn hear(mut self, deadline: Instant, timeout: Duration) -> io::Result<Report> {
        while self.wait(deadline)? {
            let mut bytes = [0; Report::BYTES];
            let report = match self.reader.read_exact(&mut bytes) {
                Ok(()) => Report::from_bytes(bytes),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Report::default()),
                Err(e) => return Err(e),
            };
            match &mut self.users {
                Some((map, answers)) if report.step == Report::ASKS_FOR_MAPS => {
                    answers.answer(map, self.pid)?;
                }
                _ => return Ok(report),
            }
        }
        Err(too_late(timeout))
    }

    /// Whether there is something to read before the deadline.
    fn wait(&self, deadline: Instant) -> io::Result<bool> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let most = left.min(LONG).as_micros().div_ceil(1000);
            let most = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)], most) {
                Ok(0) => {
                    self.can_go_on()?;
                    if left.is_zero() {
                        return Ok(false);
                    }
                }
                Ok(_) => return Ok(true),
                Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Processes of its user may stop it, and whoever freezes its cgroup does: they would have us wait for it.
    fn can_go_on(&self) -> io::Result<()> {
        let asked = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
        if wait_info(libc::P_PID, self.pid, asked)?.is_some() {
            let text = "a process of its user stopped it before its exec, and it was killed";
            return Err(io::Error::new(io::ErrorKind::Interrupted, text));
        }
        if self.cgroup.is_some_and(cgroup::is_frozen) {
            return Err(frozen());
        }
        Ok(())
    }
}

/// What is said of a child that stood in a frozen cgroup.
pub(super) fn frozen() -> io::Error {
    let text = "its cgroup, or one above it, is frozen, and it was killed before its exec: write 0 to the cgroup.freeze of its slice";
    io::Error::new(io::ErrorKind::Interrupted, text)
}

/// What is said of a child that is killed for it.
pub(super) fn too_late(timeout: Duration) -> io::Error {
    let text = format!("it did not reach its exec within {timeout:?} and was killed");
    io::Error::new(io::ErrorKind::TimedOut, text)
}
