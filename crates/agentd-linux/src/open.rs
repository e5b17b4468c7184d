//! Flags of open(2) for `OpenOptionsExt::custom_flags`, so that no other crate needs libc for them.

/// Do not wait for the other end of a FIFO.
pub const NONBLOCK: i32 = libc::O_NONBLOCK;

/// A terminal that is opened does not become the one that we can be interrupted from.
pub const NOCTTY: i32 = libc::O_NOCTTY;

/// Nothing but a folder is opened.
pub const DIRECTORY: i32 = libc::O_DIRECTORY;

/// A link at the end of the path is an error.
pub const NOFOLLOW: i32 = libc::O_NOFOLLOW;
