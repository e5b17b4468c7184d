//! PID files: what daemons that go into the background write to say which process is the main one.
//!
//! Such a file is a stranger's word. It is read and removed only where nobody but those whom the caller names could
//! have put it or the way to it, and what it says is no more than a number to be checked.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

/// More than a number, and the lines that PostgreSQL writes below it, need.
const MOST_BYTES: u64 = 4096;

/// What such a file says, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The number in its first line.
    pub pid: u32,
    /// The user whom the file belongs to.
    pub owner: u32,
}

/// The number in the first line of the file, if its owner may say that number.
///
/// # Errors
/// It is not there, not readable, no regular file, empty so far or no number; it belongs to somebody whom `may_say`
/// refuses; a link on the way to it was made by somebody who is neither root nor us.
pub fn read(path: &Path, may_say: impl FnOnce(Named) -> bool) -> io::Result<Named> {
    let mut text = String::new();
    let (file, owner) = open(path)?;
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    let pid = parse(&text).ok_or_else(|| {
        let what =
            if text.is_empty() { "it is empty so far" } else { "its first line is no number of a process" };
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    let named = Named { pid, owner };
    if may_say(named) { Ok(named) } else { Err(not_theirs(owner)) }
}

fn not_theirs(owner: u32) -> io::Error {
    let what = format!("it belongs to user {owner}, who is neither the service's nor that of the process");
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

/// Removes what a daemon has left behind.
///
/// # Errors
/// As [`read`], but for what is in it; it belongs to nobody among `owners`; those of unlink(2). That there is none is no
/// error.
pub fn remove(path: &Path, owners: &[u32]) -> io::Result<()> {
    match open(path) {
        Ok((_, owner)) if owners.contains(&owner) => fs::remove_file(path),
        Ok((_, owner)) => Err(not_theirs(owner)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Digits alone, but for the spaces around them and the end of the line.
fn parse(text: &str) -> Option<u32> {
    let line = text.lines().next()?.trim();
    let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    line.parse().ok().filter(|pid: &u32| digits && i32::try_from(*pid).is_ok_and(|pid| pid > 0))
}

/// The file, and whose it is.
fn open(path: &Path) -> io::Result<(File, u32)> {
    let own = nix::unistd::geteuid().as_raw();
    for part in path.ancestors().skip(1) {
        let Ok(meta) = fs::symlink_metadata(part) else { continue };
        if meta.is_symlink() && ![0, own].contains(&meta.uid()) {
            let what = format!("{} is a link that user {} made", part.display(), meta.uid());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    Ok((file, meta.uid()))
}

/// Tells when a file that somebody waits for may be there, or may say something else: inotify(7). While the folder is
/// missing, the nearest one that is there is watched.
#[derive(Debug)]
pub struct PidFileWatch {
    inotify: Inotify,
    waits: HashMap<u64, Wait>,
}

/// One file that is waited for.
#[derive(Debug)]
struct Wait {
    path: PathBuf,
    folder: WatchDescriptor,
    /// What must appear there.
    name: std::ffi::OsString,
}

impl PidFileWatch {
    /// A watch of nothing. inotify_init1(2).
    ///
    /// # Errors
    /// EMFILE: `fs.inotify.max_user_instances` of this user are in use. ENOMEM.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self { inotify, waits: HashMap::new() })
    }

    /// Watches for the file from now on, under the name `key`: look at it after this.
    ///
    /// # Errors
    /// ENOSPC: `fs.inotify.max_user_watches` are in use. The path leads nowhere.
    pub fn add(&mut self, key: u64, path: &Path) -> io::Result<()> {
        let (folder, name) = self.watch_nearest(path)?;
        let old = self.waits.insert(key, Wait { path: path.to_owned(), folder, name });
        self.let_go(old.filter(|old| old.folder != folder));
        Ok(())
    }

    fn watch_nearest(&self, path: &Path) -> io::Result<(WatchDescriptor, std::ffi::OsString)> {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        for below in path.ancestors() {
            let (Some(folder), Some(name)) = (below.parent(), below.file_name()) else { break };
            match self.inotify.add_watch(folder, flags) {
                Ok(watch) => return Ok((watch, name.to_owned())),
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Waits for it no longer.
    pub fn remove(&mut self, key: u64) {
        let old = self.waits.remove(&key);
        self.let_go(old);
    }

    /// The watch of a folder that nobody else waits in ends.
    fn let_go(&self, old: Option<Wait>) {
        let Some(old) = old else { return };
        if !self.waits.values().any(|wait| wait.folder == old.folder) {
            let _gone = self.inotify.rm_watch(old.folder); // EINVAL: the folder itself is gone, and its watch with it.
        }
    }

    /// The names of those whose file may have changed since the last call.
    ///
    /// # Errors
    /// None that an inotify descriptor can have.
    pub fn drain(&mut self) -> io::Result<Vec<u64>> {
        let mut events: Vec<InotifyEvent> = Vec::new();
        loop {
            match self.inotify.read_events() {
                Ok(more) => events.extend(more),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let touches = |wait: &Wait, event: &InotifyEvent| {
            event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)
                || event.wd == wait.folder && event.name.as_ref().is_none_or(|name| *name == wait.name)
        };
        let touched = |wait: &Wait| events.iter().any(|event| touches(wait, event));
        let keys: Vec<u64> =
            self.waits.iter().filter(|(_, wait)| touched(wait)).map(|(key, _)| *key).collect();
        for key in &keys {
            // A folder on the way may have come or gone.
            let Some(path) = self.waits.get(key).map(|wait| wait.path.clone()) else { continue };
            self.add(*key, &path)?;
        }
        Ok(keys)
    }
}

impl AsFd for PidFileWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    fn ours(named: Named) -> bool {
        own().contains(&named.owner)
    }

    fn own() -> Vec<u32> {
        vec![0, nix::unistd::geteuid().as_raw()]
    }

    #[test]
    fn only_a_number_of_a_process_is_one() {
        for (text, pid) in [
            ("42", Some(42)),
            ("42\n", Some(42)),
            ("42 \n/var/lib/postgresql\n", Some(42)),
            ("", None),
            ("\n42", None),
            ("       42\n", Some(42)),
            ("\t42\n43", Some(42)),
            ("4 2", None),
            ("+42", None),
            ("-1", None),
            ("0", None),
            ("9223372036854775808", None),
            ("4294967295", None),
            ("0x2a", None),
        ] {
            assert_eq!(parse(text), pid, "{text:?}");
        }
    }

    #[test]
    fn only_a_file_of_those_who_may_write_it_is_read_and_removed() {
        let folder = TempDir::new();
        let path = folder.path().join("a.pid");
        assert_eq!(read(&path, ours).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(remove(&path, &own()).is_ok(), "there is none");
        fs::write(&path, "17\n").unwrap();
        assert_eq!(read(&path, ours).unwrap().pid, 17);
        assert!(read(&path, |_| false).is_err(), "another's file");
        let link = folder.path().join("link.pid");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read(&link, ours).is_err(), "a link in its place");
        let fifo = folder.path().join("fifo.pid");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read(&fifo, ours).is_err(), "a pipe that nobody writes to");
        assert!(remove(&link, &own()).is_err() && remove(&path, &own()).is_ok());
        assert!(!path.exists());
    }

    #[test]
    fn a_link_on_the_way_counts_only_if_it_is_trusted() {
        let folder = TempDir::new();
        fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("way")).unwrap();
        let path = folder.path().join("way/a.pid");
        fs::write(&path, "17\n").unwrap();
        assert_eq!(read(&path, ours).unwrap().pid, 17);
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::lchown(folder.path().join("way"), Some(65_534), None).unwrap();
            assert!(read(&path, ours).unwrap_err().to_string().contains("is a link that user 65534"));
        }
    }

    #[test]
    fn what_happens_to_the_file_or_on_the_way_to_it_is_told_and_nothing_else() {
        let folder = TempDir::new();
        let path = folder.path().join("run/daemon/a.pid");
        let mut watch = PidFileWatch::new().unwrap();
        watch.add(7, &path).unwrap();
        fs::write(folder.path().join("other"), "").unwrap();
        assert!(watch.drain().unwrap().is_empty(), "another name");
        fs::create_dir(folder.path().join("run")).unwrap();
        assert_eq!(watch.drain().unwrap(), [7], "the first folder");
        fs::create_dir(folder.path().join("run/daemon")).unwrap();
        assert_eq!(watch.drain().unwrap(), [7], "the second");
        let mut file = File::create(&path).unwrap();
        assert_eq!(watch.drain().unwrap(), [7], "an empty file");
        io::Write::write_all(&mut file, b"1\n").unwrap();
        assert_eq!(watch.drain().unwrap(), [7], "a line, while it is held open");
        watch.remove(7);
        fs::write(&path, "2\n").unwrap();
        assert!(watch.drain().unwrap().is_empty(), "nobody waits");
    }
}
