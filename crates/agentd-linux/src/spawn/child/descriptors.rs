//! The descriptors that the program finds open, and no others.

use std::os::fd::RawFd;

use super::super::raw::{self, Errno};
use super::super::step::Step;
use super::{At, Failure, Shut, Target, Walk};

impl Walk<'_> {
    /// Puts the descriptors at 0 and up and ends all others with the exec.
    pub(super) fn place_descriptors(&mut self) -> Result<(), Failure> {
        let count = self.sources.len() as RawFd;
        // Out of the range of numbers first, so that no placing overwrites a source.
        if let Some(fd) = self.report_fd.filter(|fd| *fd < count) {
            self.report_fd = Some(raw::duplicate_above(fd, count).at(Step::Fds)? as RawFd);
        }
        if let Some(ask) = self.ask.as_mut().filter(|ask| ask.reader < count) {
            ask.reader = raw::duplicate_above(ask.reader, count).at(Step::Fds)? as RawFd;
        }
        if let Target::Fd(fd) = self.target
            && fd < count
        {
            self.target = Target::Fd(raw::duplicate_above(fd, count).at(Step::Fds)? as RawFd);
        }
        for (number, source) in (0..).zip(self.sources.iter_mut()) {
            if *source < count {
                *source = raw::duplicate_above(*source, count).at(placing(number))? as RawFd;
            }
        }
        for (number, source) in (0..).zip(self.sources.iter()) {
            raw::duplicate_to(*source, number).at(placing(number))?;
        }
        self.shut_others(count).at(Step::Fds)
    }

    /// Marks all from `first` up: what the exec itself needs is used before it is closed.
    fn shut_others(&self, first: RawFd) -> Result<(), Errno> {
        match self.shut {
            Shut::Range => {
                raw::cloexec_from(first as u32)?;
            }
            Shut::EachTo(last) => {
                for fd in first..=last {
                    match raw::set_cloexec(fd) {
                        Ok(_) | Err(libc::EBADF) => {}
                        Err(errno) => return Err(errno),
                    }
                }
            }
        }
        Ok(())
    }
}

/// Which step the placing of this descriptor is.
fn placing(number: RawFd) -> Step {
    match number {
        0 => Step::Stdin,
        1 => Step::Stdout,
        2 => Step::Stderr,
        _ => Step::Fds,
    }
}
