//! Tells when something happens to paths, also to those that are not there yet: inotify(7).
//!
//! A path that is not there is watched by its nearest ancestor that is; the ancestors themselves may be moved away, so
//! each of them is watched too. Who is told looks at the paths anew, and watches them anew.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// What is asked of a path adds to what was asked of it before; nix does not have the flag.
const ADD: AddWatchFlags = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);

/// What is told of a path itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That it goes.
    Presence,
    /// That something comes into the folder, or it goes.
    Entries,
    /// That it was written and closed, or its entries have changed, or it goes.
    Changes,
    /// The same, and each writing.
    Writes,
}

impl Interest {
    fn flags(self) -> AddWatchFlags {
        use AddWatchFlags as F;
        let presence = F::IN_DELETE_SELF | F::IN_MOVE_SELF | F::IN_ATTRIB;
        let changes =
            presence | F::IN_CLOSE_WRITE | F::IN_CREATE | F::IN_DELETE | F::IN_MOVED_FROM | F::IN_MOVED_TO;
        match self {
            Self::Presence => presence,
            Self::Entries => presence | F::IN_CREATE | F::IN_MOVED_TO,
            Self::Changes => changes,
            Self::Writes => changes | F::IN_MODIFY,
        }
    }
}

/// Which watch was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchId(WatchDescriptor);

/// A set of watched paths; readable when something has happened. Never blocks; close-on-exec.
#[derive(Debug)]
pub struct PathWatch(Inotify);

impl PathWatch {
    /// A watch of nothing. inotify_init1(2).
    ///
    /// # Errors
    /// EMFILE: `fs.inotify.max_user_instances` of this user are in use. ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?))
    }

    /// Watches an absolute path and its ancestors as they stand now; the watch of the path itself, if it is there.
    /// inotify_add_watch(2).
    ///
    /// # Errors
    /// ENOSPC: `fs.inotify.max_user_watches` are in use. EACCES.
    pub fn watch(&self, path: &Path, interest: Interest) -> io::Result<Option<WatchId>> {
        use AddWatchFlags as F;
        let mut chain: Vec<&Path> = path.ancestors().collect();
        chain.reverse();
        let mut last: Option<&Path> = None;
        for step in &chain {
            let flags = if *step == path { interest.flags() } else { F::IN_DELETE_SELF | F::IN_MOVE_SELF };
            match self.0.add_watch(*step, flags | ADD) {
                Ok(id) if *step == path => return Ok(Some(WatchId(id))),
                Ok(_) => last = Some(step),
                Err(Errno::ENOENT | Errno::ENOTDIR) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        if let Some(nearest) = last {
            self.0.add_watch(nearest, F::IN_CREATE | F::IN_MOVED_TO | F::IN_ATTRIB | ADD)?;
        }
        Ok(None)
    }

    /// Takes all that was told since the last call: the watches, in order.
    ///
    /// # Errors
    /// None that an inotify descriptor can have.
    pub fn drain(&self) -> io::Result<Vec<WatchId>> {
        let mut told = Vec::new();
        loop {
            match self.0.read_events() {
                // That a watch is over is no news: what ended it was told before.
                Ok(events) => told.extend(
                    events
                        .iter()
                        .filter(|event| !event.mask.contains(AddWatchFlags::IN_IGNORED))
                        .map(|e| WatchId(e.wd)),
                ),
                Err(Errno::EAGAIN) => return Ok(told),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for PathWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_path_is_heard_of_step_by_step_as_it_comes() {
        let folder = TempDir::new();
        let path = folder.path().join("a/b/file");
        let watch = PathWatch::new().unwrap();
        for step in ["a", "a/b"] {
            assert_eq!(watch.watch(&path, Interest::Presence).unwrap(), None);
            fs::create_dir(folder.path().join(step)).unwrap();
            assert!(!watch.drain().unwrap().is_empty(), "{step} comes");
        }
        watch.watch(&path, Interest::Presence).unwrap();
        fs::write(&path, "").unwrap();
        assert!(!watch.drain().unwrap().is_empty(), "the file comes");
        let own = watch.watch(&path, Interest::Changes).unwrap().unwrap();
        assert!(watch.drain().unwrap().is_empty(), "nothing has happened since");
        fs::write(&path, "x").unwrap();
        assert!(watch.drain().unwrap().contains(&own), "it was written");
        fs::rename(folder.path().join("a"), folder.path().join("c")).unwrap();
        assert!(!watch.drain().unwrap().is_empty(), "an ancestor is moved away");
        assert_eq!(watch.watch(&path, Interest::Changes).unwrap(), None);
    }
}
