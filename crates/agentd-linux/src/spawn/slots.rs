//! Low numbers for the descriptors that a child needs.
//!
//! A child that shares the manager's table of descriptors takes its own copy of the numbers below a bound
//! (close_range(2), CLOSE_RANGE_UNSHARE), and pays for these alone. So what it needs must lie below the bound, however
//! many descriptors the manager has: it is put into one of a few numbers that are kept for this.
//!
//! # Invariants
//!
//! - Between two births every slot is a copy of `/dev/null`: none keeps a pipe open, or loses its number.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::raw;

/// How many. A plan that needs more pays for a copy of the whole table.
const SLOTS: usize = 16;

/// The numbers.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<OwnedFd>);

impl Slots {
    /// Takes the lowest numbers that are free.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn take(null: BorrowedFd<'_>) -> io::Result<Self> {
        (0..SLOTS).map(|_| null.try_clone_to_owned()).collect::<io::Result<_>>().map(Self)
    }

    /// The bound: everything that was placed is below it.
    pub(super) fn end(&self) -> u32 {
        self.0.iter().map(|fd| fd.as_raw_fd() as u32 + 1).max().unwrap_or(0)
    }

    /// Puts each descriptor that is not below the bound into a slot, and its new number in its place. Returns how many
    /// slots are used; None, and nothing is changed, if there are too few.
    ///
    /// # Errors
    /// A descriptor is not open.
    pub(super) fn place<'f>(
        &self,
        needed: impl Iterator<Item = &'f mut RawFd>,
        null: RawFd,
    ) -> io::Result<Option<usize>> {
        let end = self.end() as RawFd;
        let mut high: Vec<&mut RawFd> = needed.filter(|fd| **fd >= end).collect();
        let mut sources: Vec<RawFd> = high.iter().map(|fd| **fd).collect();
        sources.sort_unstable();
        sources.dedup();
        if sources.len() > self.0.len() {
            return Ok(None);
        }
        for (used, (source, slot)) in sources.iter().zip(&self.0).enumerate() {
            if let Err(errno) = raw::place(*source, slot.as_raw_fd()) {
                self.clear(used, null);
                return Err(io::Error::from_raw_os_error(errno));
            }
        }
        for fd in &mut high {
            if let Some((_, slot)) = sources.iter().zip(&self.0).find(|(source, _)| **source == **fd) {
                **fd = slot.as_raw_fd();
            }
        }
        Ok(Some(sources.len()))
    }

    /// Empties the first `used` slots.
    pub(super) fn clear(&self, used: usize, null: RawFd) {
        for slot in self.0.iter().take(used) {
            let cleared = raw::place(null, slot.as_raw_fd());
            debug_assert!(cleared.is_ok(), "both are open");
        }
    }
}
