//! Durable files: timer stamps and the fencing token. Atomic, checksummed, bounded.
//!
//! All calls block on the disk; the daemon decides on which thread it makes them. The state directory belongs to one
//! manager at a time, which whoever opens it must see to.
//!
//! # Invariants
//! - A file is replaced as a whole or not at all, also when the process is killed or the disk is full.
//! - A file that fails its checksum is never used and never overwritten: it is moved aside and reported.
//! - A fencing token is on the disk, or covered by a reservation that is, before it is handed out. Where the disk takes
//!   none, it is no lower than the wall clock, and whoever asks is told.
#![forbid(unsafe_code)]

mod atomic;
mod dir;
mod fencing;
mod record;
mod stamps;
#[cfg(test)]
mod testing;

pub use atomic::write_atomic;
pub use dir::{Problem, ProblemKind, StateDir, StateError};
pub use fencing::Token;
