//! Flags of open(2) for `OpenOptionsExt::custom_flags`, so that no other crate needs libc for them.

/// Do not wait for the other end of a FIFO.
pub const NONBLOCK: i32 = libc::O_NONBLOCK;

/// A terminal that is opened does not become the one that we can be interrupted from.
pub const NOCTTY: i32 = libc::O_NOCTTY;
