//! What the parent hears of a child that does not share its memory: what it asks for, and how it ended.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::child::Report;
use super::users::{Answers, UserMap};

/// Who listens to one child.
#[derive(Debug)]
pub(super) struct Ear<'a> {
    /// Where its reports come from.
    pub(super) reader: io::PipeReader,
    /// Its number, for its maps.
    pub(super) pid: u32,
    /// The maps that it will ask for.
    pub(super) users: Option<(&'a UserMap, &'a mut Answers)>,
}

impl Ear<'_> {
    /// The report that says how it failed, or an empty one when the exec shuts the pipe. It has until the deadline, which
    /// was this long after its birth.
    ///
    /// # Errors
    /// TimedOut: it did neither in time. The child is still there.
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
            let left = PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)], left) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// What is said of a child that is killed for it.
pub(super) fn too_late(timeout: Duration) -> io::Error {
    let text = format!("it did not reach its exec within {timeout:?} and was killed");
    io::Error::new(io::ErrorKind::TimedOut, text)
}
