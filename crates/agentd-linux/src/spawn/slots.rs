//! Low numbers for the descriptors that children need.
//!
//! A child that shares the manager's table of descriptors takes its own copy of the numbers below a bound
//! (close_range(2), CLOSE_RANGE_UNSHARE), and pays for these alone. So what it needs must lie below the bound, however
//! many descriptors the manager has: it is put into one of a few numbers that are kept for this.
//!
//! # Invariants
//!
//! - A slot that no child needs is a copy of `/dev/null`: none keeps a pipe open, or loses its number.
//! - What a child that goes on by itself needs lies in slots that are its own until it has left, so that the manager may
//!   close everything else meanwhile. Only `/dev/null` and the first three descriptors are the manager's.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::raw;

/// How many: each child pays for all of them. A plan that needs more pays for a copy of the whole table.
const SLOTS: usize = 20;

/// The numbers.
#[derive(Debug)]
pub(super) struct Slots {
    fds: Vec<OwnedFd>,
    /// Those that no child needs: number N at bit N.
    free: u32,
}

/// The slots of one child.
#[derive(Debug, Default)]
#[must_use = "they are to be given back"]
pub(super) struct Placed(u32);

impl Slots {
    /// Takes the lowest numbers that are free.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn take(null: BorrowedFd<'_>) -> io::Result<Self> {
        let fds = (0..SLOTS).map(|_| null.try_clone_to_owned()).collect::<io::Result<_>>()?;
        Ok(Self { fds, free: (1 << SLOTS) - 1 })
    }

    /// The bound: everything that was placed is below it.
    pub(super) fn end(&self) -> u32 {
        self.fds.iter().map(|fd| fd.as_raw_fd() as u32 + 1).max().unwrap_or(0)
    }

    /// Whether so many more can be placed.
    pub(super) fn have(&self, count: usize) -> bool {
        self.free.count_ones() as usize >= count
    }

    /// Puts each descriptor into a slot, and its new number in its place. None, and nothing is changed, if there are too few
    /// slots.
    ///
    /// # Errors
    /// A descriptor is not open.
    pub(super) fn place<'f>(
        &mut self,
        needed: impl Iterator<Item = &'f mut RawFd>,
        null: RawFd,
    ) -> io::Result<Option<Placed>> {
        let mut needed: Vec<&mut RawFd> = needed.filter(|fd| **fd > 2 && **fd != null).collect();
        let mut sources: Vec<RawFd> = needed.iter().map(|fd| **fd).collect();
        sources.sort_unstable();
        sources.dedup();
        if !self.have(sources.len()) {
            return Ok(None);
        }
        let mut placed = Placed::default();
        let free = (0..SLOTS).filter(|slot| self.free & (1 << slot) != 0);
        let pairs: Vec<(RawFd, usize)> = sources.into_iter().zip(free).collect();
        for (source, slot) in &pairs {
            if let Err(errno) = raw::place(*source, self.fds[*slot].as_raw_fd()) {
                self.clear(placed, null);
                return Err(io::Error::from_raw_os_error(errno));
            }
            placed.0 |= 1 << slot;
            self.free &= !(1 << slot);
        }
        for fd in &mut needed {
            if let Some((_, slot)) = pairs.iter().find(|(source, _)| *source == **fd) {
                **fd = self.fds[*slot].as_raw_fd();
            }
        }
        Ok(Some(placed))
    }

    /// Takes the slots of a child back, and empties them.
    pub(super) fn clear(&mut self, placed: Placed, null: RawFd) {
        for (slot, fd) in self.fds.iter().enumerate().filter(|(slot, _)| placed.0 & (1 << slot) != 0) {
            let cleared = raw::place(null, fd.as_raw_fd());
            debug_assert!(cleared.is_ok(), "both are open");
            self.free |= 1 << slot;
        }
    }
}
