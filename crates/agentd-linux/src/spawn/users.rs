//! Users of its own: the maps of a user namespace, which only the parent may write, and what the child asks it for.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};

/// Which ids there are within, user_namespaces(7): lines of "first within, first without, how many".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMap {
    /// Of users.
    pub uids: String,
    /// Of groups.
    pub gids: String,
}

impl UserMap {
    /// Writes the maps of a child that waits in its new namespace.
    fn write(&self, pid: u32, keeps_groups: bool) -> io::Result<()> {
        let file = |name: &str, text: &str| fs::write(format!("/proc/{pid}/{name}"), text);
        if keeps_groups {
            file("setgroups", "deny")?;
        }
        file("gid_map", &self.gids)?;
        file("uid_map", &self.uids)
    }
}

/// The parent's end of the pipe on which the child hears whether its maps are written.
#[derive(Debug)]
pub(super) struct Answers {
    reader: io::PipeReader,
    writer: io::PipeWriter,
    /// The child may not change its further groups any more, user_namespaces(7) "deny".
    keeps_groups: bool,
}

/// The child's view of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    /// Where it reads the answer.
    pub(super) reader: RawFd,
    /// Its copy of the parent's end: closed first, so that a parent that goes is noticed.
    pub(super) writer: RawFd,
    /// It is born in the namespace; else it makes it once it has done what needs the machine's privileges.
    pub(super) born_within: bool,
}

impl Answers {
    /// A pipe.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(keeps_groups: bool) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, keeps_groups })
    }

    /// What the child is told of it.
    pub(super) fn ask(&self, born_within: bool) -> Ask {
        Ask { reader: self.reader.as_raw_fd(), writer: self.writer.as_raw_fd(), born_within }
    }

    /// Writes the maps and tells the child what came of it: an errno, or 0.
    ///
    /// # Errors
    /// The child is gone.
    pub(super) fn answer(&mut self, map: &UserMap, pid: u32) -> io::Result<()> {
        let errno = map
            .write(pid, self.keeps_groups)
            .err()
            .map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        self.writer.write_all(&errno.to_ne_bytes())
    }
}
