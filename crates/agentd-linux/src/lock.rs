//! One manager a runtime folder: flock(2) on a file in it.
//!
//! The lock is the kernel's and goes with the process, however that ends: a file that is left means nothing. What
//! stands in the file is the holder's number, for the message of the one that comes second.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// A lock that is held until it is dropped or the process ends. Children do not inherit it: the descriptor is
/// close-on-exec.
#[derive(Debug)]
pub struct Lock {
    file: Flock<File>,
    path: PathBuf,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is locked by {}; stop it, or use another runtime directory", path.display(), holder(*pid))]
    Held {
        /// The file.
        path: PathBuf,
        /// The process, if the file says so.
        pid: Option<u32>,
    },
    /// The file cannot be made or locked.
    #[error("cannot lock {}", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

impl Lock {
    /// Takes the lock, making the file if it is missing. Does not wait.
    ///
    /// # Errors
    /// Who holds it, or why it cannot be made. ELOOP: it is a symbolic link, which is not followed.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let access = |source| LockError::Access { path: path.to_owned(), source };
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).mode(0o644).custom_flags(libc::O_NOFOLLOW);
            let file = options.open(path).map_err(access)?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => {
                    let mut lock = Self { file, path: path.to_owned() };
                    // Somebody may have removed or replaced the file between the open and the lock.
                    if lock.is_in_place().map_err(access)? {
                        lock.write_pid().map_err(access)?;
                        return Ok(lock);
                    }
                }
                Err((mut file, Errno::EWOULDBLOCK)) => {
                    return Err(LockError::Held { path: path.to_owned(), pid: read_pid(&mut file) });
                }
                Err((_, errno)) => return Err(access(errno.into())),
            }
        }
    }

    /// Whether the path still names the file that is locked: a cleaner may have removed it. If not, take the lock
    /// anew before somebody else does, and drop this one.
    ///
    /// # Errors
    /// The path cannot be looked at.
    pub fn is_in_place(&self) -> io::Result<bool> {
        let key = |metadata: Metadata| (metadata.dev(), metadata.ino());
        match std::fs::symlink_metadata(&self.path) {
            Ok(there) => Ok(key(there) == key(self.file.metadata()?)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A second descriptor of the same lock, to be kept over an exec of the manager: the lock is held as long as
    /// one of them is open. [`Lock::adopt`] makes a lock of it again.
    ///
    /// # Errors
    /// EMFILE.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// The lock that a former image of this process held through this descriptor.
    ///
    /// # Errors
    /// It is not held, and somebody else has it.
    pub fn adopt(fd: OwnedFd, path: &Path) -> Result<Self, LockError> {
        match Flock::lock(File::from(fd), FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Self { file, path: path.to_owned() }),
            Err((mut file, Errno::EWOULDBLOCK)) => {
                Err(LockError::Held { path: path.to_owned(), pid: read_pid(&mut file) })
            }
            Err((_, errno)) => Err(LockError::Access { path: path.to_owned(), source: errno.into() }),
        }
    }

    fn write_pid(&mut self) -> io::Result<()> {
        let mut file: &File = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    }
}

/// What a holder has written, if it has got that far.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn the_second_is_told_who_was_first() {
        let folder = TempDir::new();
        let path = folder.path().join("lock");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err();
        let text = format!("{} is locked by process {}; ", path.display(), std::process::id());
        assert!(error.to_string().starts_with(&text), "{error}");
        drop(first);
        Lock::take(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_left_locks_nobody_out() {
        let folder = TempDir::new();
        let path = folder.path().join("lock");
        std::fs::write(&path, "1\n").unwrap();
        let lock = Lock::take(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert!(lock.is_in_place().unwrap());
    }

    #[test]
    fn a_file_that_was_removed_is_noticed_and_can_be_taken_anew() {
        let folder = TempDir::new();
        let path = folder.path().join("lock");
        let mut lock = Lock::take(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!lock.is_in_place().unwrap());
        lock = Lock::take(&path).unwrap();
        assert!(lock.is_in_place().unwrap());
        assert!(matches!(Lock::take(&path), Err(LockError::Held { .. })));
    }

    #[test]
    fn a_lock_is_kept_through_another_descriptor() {
        let folder = TempDir::new();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        let kept = lock.duplicate().unwrap();
        // A drop would unlock; an exec closes the descriptor only.
        std::mem::forget(lock);
        assert!(matches!(Lock::take(&path), Err(LockError::Held { .. })));
        let adopted = Lock::adopt(kept, &path).unwrap();
        assert!(adopted.is_in_place().unwrap());
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = TempDir::new();
        let (link, victim) = (folder.path().join("link"), folder.path().join("victim"));
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(matches!(Lock::take(&link), Err(LockError::Access { .. })));
        assert!(!victim.exists());
    }
}
