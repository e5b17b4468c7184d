//! Tells when anything in a set of folders changes, and which files there are still being written: inotify(7).

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

/// Files that are remembered as being written. More than these count as written as soon as they are quiet.
const UNFINISHED_MAX: usize = 1024;

/// Reads of the descriptor in one [`FolderTreeWatch::drain`], each of 4 KiB: the kernel's whole queue by default
/// (`fs.inotify.max_queued_events`), and no more of a flood.
const READS_MAX: usize = 1024;

/// What was told since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Something was made, written, removed or renamed.
    pub any: bool,
    /// A folder among it, or more than the kernel kept: there may be other folders to watch now.
    pub folders: bool,
}

/// Readable when something in one of the folders changes; never blocks; close-on-exec.
#[derive(Debug)]
pub struct FolderTreeWatch {
    inotify: Inotify,
    watched: HashMap<WatchDescriptor, Watched>,
    /// Written to and not closed since.
    unfinished: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// The names that count; `None`: all.
    names: Option<BTreeSet<OsString>>,
}

impl FolderTreeWatch {
    /// A watch of nothing. inotify_init1(2).
    ///
    /// # Errors
    /// EMFILE: `fs.inotify.max_user_instances` of this user are in use. ENOMEM.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self { inotify, watched: HashMap::new(), unfinished: BTreeSet::new() })
    }

    /// Watches everything in a folder, but not in its folders; whether it was not watched before.
    /// inotify_add_watch(2).
    ///
    /// # Errors
    /// ENOENT: there is none. ENOTDIR: it is none. ENOSPC: `fs.inotify.max_user_watches` are in use. EACCES.
    pub fn watch(&mut self, folder: &Path) -> io::Result<bool> {
        let contents = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_ATTRIB;
        let place = self.add(folder, contents)?;
        let was_whole = self.watched.get(&place).is_some_and(|watched| watched.names.is_none());
        self.watched.insert(place, Watched { path: folder.to_owned(), names: None });
        Ok(!was_whole)
    }

    /// Watches for one name to come to a folder.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub fn watch_for(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        let place = self.add(folder, AddWatchFlags::empty())?;
        let new = || Watched { path: folder.to_owned(), names: Some(BTreeSet::new()) };
        if let Some(names) = &mut self.watched.entry(place).or_insert_with(new).names {
            names.insert(name.to_owned());
        }
        Ok(())
    }

    fn add(&self, folder: &Path, more: AddWatchFlags) -> io::Result<WatchDescriptor> {
        let names = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        // A folder can be watched both for a name and whole: the kernel has one watch for both.
        let both = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);
        Ok(self.inotify.add_watch(folder, names | more | both)?)
    }

    /// Whether a file is open that was written to. One that no longer tells (it was written by truncate(2), or its
    /// folder is gone) counts until [`Self::forget_unfinished`].
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// No file counts as being written, until it is written to again.
    pub fn forget_unfinished(&mut self) {
        self.unfinished.clear();
    }

    /// Takes what was told since the last call.
    ///
    /// # Errors
    /// None that an inotify descriptor can have.
    pub fn drain(&mut self) -> io::Result<Changes> {
        let mut changes = Changes::default();
        for _ in 0..READS_MAX {
            match self.inotify.read_events() {
                Ok(events) => events.iter().for_each(|event| self.take(event, &mut changes)),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(changes)
    }

    fn take(&mut self, event: &InotifyEvent, changes: &mut Changes) {
        let is = |flags: AddWatchFlags| event.mask.intersects(flags);
        if is(AddWatchFlags::IN_Q_OVERFLOW) {
            // Which files were closed is not known any more.
            self.unfinished.clear();
            *changes = Changes { any: true, folders: true };
            return;
        }
        let Some(watched) = self.watched.get(&event.wd) else { return };
        if is(AddWatchFlags::IN_IGNORED) {
            self.watched.remove(&event.wd);
            return;
        }
        if is(AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF) {
            *changes = Changes { any: true, folders: true };
            return;
        }
        let Some(name) = &event.name else { return };
        if watched.names.as_ref().is_some_and(|names| !names.contains(name)) {
            return;
        }
        changes.any = true;
        if is(AddWatchFlags::IN_ISDIR) || watched.names.is_some() {
            changes.folders = true;
            return;
        }
        let path = watched.path.join(name);
        if is(AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM) {
            self.unfinished.remove(&path);
        } else if (is(AddWatchFlags::IN_MODIFY) || is(AddWatchFlags::IN_CREATE) && is_opened_anew(&path))
            && self.unfinished.len() < UNFINISHED_MAX
        {
            self.unfinished.insert(path);
        }
    }
}

/// Whether what was just made is a file that somebody has opened to write it: links of both kinds, devices and pipes
/// are whole from the first moment, and nothing would tell of their end.
fn is_opened_anew(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.nlink() == 1)
}

impl AsFd for FolderTreeWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl AsRawFd for FolderTreeWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::TempDir;

    const NOTHING: Changes = Changes { any: false, folders: false };
    const FILES: Changes = Changes { any: true, folders: false };
    const FOLDERS: Changes = Changes { any: true, folders: true };

    fn watched(folder: &Path) -> FolderTreeWatch {
        let mut watch = FolderTreeWatch::new().unwrap();
        assert!(watch.watch(folder).unwrap(), "it is new");
        assert!(!watch.watch(folder).unwrap(), "it is known");
        watch
    }

    #[test]
    fn a_file_is_unfinished_until_its_writer_closes_it() {
        let folder = TempDir::new();
        let mut watch = watched(folder.path());
        let path = folder.path().join("a");
        let mut file = File::create(&path).unwrap();
        assert_eq!(watch.drain().unwrap(), FILES);
        assert!(watch.is_unfinished(), "made, and still open");
        file.write_all(b"half").unwrap();
        assert_eq!(watch.drain().unwrap(), FILES);
        assert!(watch.is_unfinished());
        drop(file);
        assert_eq!(watch.drain().unwrap(), FILES);
        assert!(!watch.is_unfinished(), "closed");
        assert_eq!(watch.drain().unwrap(), NOTHING);

        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"more").unwrap();
        watch.drain().unwrap();
        assert!(watch.is_unfinished(), "written again");
        fs::remove_file(&path).unwrap();
        watch.drain().unwrap();
        assert!(!watch.is_unfinished(), "gone");
        File::create(&path).and_then(|mut file| file.write_all(b"x")).unwrap();
        let open = File::options().append(true).open(&path).and_then(|mut file| {
            file.write_all(b"x")?;
            Ok(file)
        });
        watch.drain().unwrap();
        assert!(watch.is_unfinished());
        watch.forget_unfinished();
        assert!(!watch.is_unfinished());
        drop(open);
    }

    #[test]
    fn what_is_whole_from_the_first_moment_is_never_unfinished() {
        let folder = TempDir::new();
        let outside = TempDir::new();
        let file = outside.path().join("file");
        fs::write(&file, "whole").unwrap();
        let mut watch = watched(folder.path());
        let path = |name: &str| folder.path().join(name);
        let mut holds = |case: &str, made: io::Result<()>| {
            made.unwrap();
            assert_eq!(watch.drain().unwrap(), FILES, "{case}");
            assert!(!watch.is_unfinished(), "{case}");
        };
        holds("a link", symlink(&file, path("link")));
        holds("a hard link", fs::hard_link(&file, path("hard")));
        holds("a file that is moved in", fs::rename(&file, path("moved")));
    }

    #[test]
    fn folders_are_told_and_of_a_folder_that_is_watched_for_a_name_that_name_alone() {
        let folder = TempDir::new();
        let mut watch = FolderTreeWatch::new().unwrap();
        watch.watch_for(folder.path(), OsStr::new("units")).unwrap();
        fs::write(folder.path().join("other"), "").unwrap();
        fs::create_dir(folder.path().join("others")).unwrap();
        assert_eq!(watch.drain().unwrap(), NOTHING);
        let units = folder.path().join("units");
        fs::create_dir(&units).unwrap();
        assert_eq!(watch.drain().unwrap(), FOLDERS);

        assert!(watch.watch(&units).unwrap());
        fs::create_dir(units.join("a.d")).unwrap();
        assert_eq!(watch.drain().unwrap(), FOLDERS, "a folder in it");
        fs::rename(&units, folder.path().join("elsewhere")).unwrap();
        assert_eq!(watch.drain().unwrap(), FOLDERS, "the folder itself");
        fs::create_dir(&units).unwrap();
        assert!(watch.watch(&units).unwrap(), "another folder of that name");
        assert!(watch.watch(folder.path()).unwrap(), "now whole");
        fs::write(folder.path().join("other"), "x").unwrap();
        assert!(watch.drain().unwrap().any);
    }

    #[test]
    fn what_cannot_be_watched_says_why() {
        let folder = TempDir::new();
        fs::write(folder.path().join("file"), "").unwrap();
        let mut watch = FolderTreeWatch::new().unwrap();
        let error =
            |name: &str, watch: &mut FolderTreeWatch| watch.watch(&folder.path().join(name)).unwrap_err();
        assert_eq!(error("nothing", &mut watch).kind(), io::ErrorKind::NotFound);
        assert_eq!(error("file", &mut watch).kind(), io::ErrorKind::NotADirectory);
    }
}
