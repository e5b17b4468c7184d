//! Tells when something is taken out of a folder: inotify(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// Readable when a name has gone from the folder, or the folder itself; never blocks; close-on-exec.
#[derive(Debug)]
pub struct FolderWatch {
    inotify: Inotify,
}

impl FolderWatch {
    /// A watch of nothing. inotify_init1(2).
    ///
    /// # Errors
    /// EMFILE: `fs.inotify.max_user_instances` of this user are in use. ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self { inotify: Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)? })
    }

    /// Watches the folder that stands at `path` now; again after it was made anew. inotify_add_watch(2).
    ///
    /// # Errors
    /// ENOENT: there is none. ENOSPC: `fs.inotify.max_user_watches` are in use.
    pub fn watch(&self, path: &Path) -> io::Result<()> {
        let gone = AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        self.inotify.add_watch(path, gone)?;
        Ok(())
    }

    /// Takes all that was told since the last call; whether that was anything.
    ///
    /// # Errors
    /// None that an inotify descriptor can have.
    pub fn drain(&self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.inotify.read_events() {
                Ok(events) => any |= !events.is_empty(),
                Err(Errno::EAGAIN) => return Ok(any),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl AsRawFd for FolderWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn what_leaves_the_folder_is_told_and_what_comes_is_not() {
        let folder = TempDir::new();
        let path = folder.path().join("watched");
        fs::create_dir(&path).unwrap();
        let watch = FolderWatch::new().unwrap();
        watch.watch(&path).unwrap();
        fs::write(path.join("a"), "").unwrap();
        assert!(!watch.drain().unwrap(), "a file that comes");
        fs::rename(path.join("a"), folder.path().join("b")).unwrap();
        assert!(watch.drain().unwrap(), "a file that is moved away");
        fs::remove_dir(&path).unwrap();
        assert!(watch.drain().unwrap(), "the folder itself");
        assert!(watch.watch(&path).is_err(), "there is none");
        fs::create_dir(&path).unwrap();
        watch.watch(&path).unwrap();
        fs::write(path.join("c"), "").unwrap();
        fs::remove_file(path.join("c")).unwrap();
        assert!(watch.drain().unwrap(), "a file of the new folder");
    }
}
