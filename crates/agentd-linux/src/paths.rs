//! Tells when something happens to paths, also to those that are not there yet: inotify(7).
//!
//! A path that is not there is watched by its nearest ancestor that is; the ancestors themselves may be moved away, so
//! each of them is watched too. Who is told looks at the paths anew, and watches them anew.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// Which watch was told of: the kernel's number, which the set keeps as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchId(pub i32);

impl From<WatchDescriptor> for WatchId {
    fn from(watch: WatchDescriptor) -> Self {
        Self(watch.as_raw())
    }
}

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
        let mut nearest: Option<&Path> = None;
        for step in chain {
            let flags = if step == path { interest.flags() } else { F::IN_DELETE_SELF | F::IN_MOVE_SELF };
            let mut watched = self.0.add_watch(step, flags | ADD);
            if let (Err(Errno::ENOENT | Errno::ENOTDIR), Some(above)) = (&watched, nearest) {
                match self.0.add_watch(above, F::IN_CREATE | F::IN_MOVED_TO | F::IN_ATTRIB | ADD) {
                    Ok(_) => {}
                    Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None), // Its end is told of.
                    Err(errno) => return Err(errno.into()),
                }
                // It may have come just before anybody would have been told of it.
                watched = self.0.add_watch(step, flags | ADD);
            }
            match watched {
                Ok(id) if step == path => return Ok(Some(id.into())),
                Ok(_) => nearest = Some(step),
                Err(Errno::ENOENT | Errno::ENOTDIR) => break,
                Err(errno) => return Err(errno.into()),
            }
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
                        .map(|event| WatchId::from(event.wd)),
                ),
                Err(Errno::EAGAIN) => return Ok(told),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl From<OwnedFd> for PathWatch {
    /// A set that was made before this program was executed, with its watches and what they have told since.
    fn from(fd: OwnedFd) -> Self {
        // SAFETY: the descriptor is open and ours. Of one that is no inotify the calls say EINVAL.
        Self(unsafe { Inotify::from_owned_fd(fd) })
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
    use std::time::Duration;

    use super::*;
    use crate::epoll::Epoll;
    use crate::testing::TempDir;

    #[test]
    fn a_path_is_heard_of_however_its_folders_come_meanwhile() {
        let folder = TempDir::new();
        for round in 0..300 {
            let path = folder.path().join(format!("{round}/a/b/c/d/file"));
            let made = path.clone();
            let watch = PathWatch::new().unwrap();
            let epoll = Epoll::new().unwrap();
            epoll.add(&watch, 1).unwrap();
            let maker = std::thread::spawn(move || {
                fs::create_dir_all(made.parent().unwrap()).unwrap();
                fs::write(made, "").unwrap();
            });
            loop {
                watch.watch(&path, Interest::Presence).unwrap();
                if path.exists() {
                    break;
                }
                let mut told = Vec::new();
                epoll.wait(&mut told, Some(Duration::from_secs(60))).unwrap();
                assert!(!told.is_empty(), "nobody told of {} after it came", path.display());
                watch.drain().unwrap();
            }
            maker.join().unwrap();
        }
    }

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
