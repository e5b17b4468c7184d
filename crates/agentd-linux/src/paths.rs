//! Tells when something happens to paths, also to those that are not there yet: inotify(7).
//!
//! A path that is not there is watched by its nearest ancestor that is; the ancestors themselves may be moved away, so
//! each of them is watched too, and each symbolic link on the way may be another one. Who is told looks at the paths anew,
//! and watches them anew.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

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

    /// Watches an absolute path as it stands now, and all that leads to it: its ancestors, each symbolic link on the way and
    /// what leads to where that points; the watch of what the path means, if it is there. inotify_add_watch(2).
    ///
    /// # Errors
    /// ENOSPC: `fs.inotify.max_user_watches` are in use. EACCES.
    pub fn watch(&self, path: &Path, interest: Interest) -> io::Result<Option<WatchId>> {
        let mut way = Way::to(path);
        loop {
            let Some(step) = way.step() else { return Ok(Some(self.add(&way.at, interest.flags())?.into())) };
            let flags = if way.is_last() { interest.flags() } else { AddWatchFlags::empty() };
            let Some(watched) = self.watch_step(&way.at, &step, flags)? else { return Ok(None) };
            match fs::read_link(&step) {
                Ok(target) => match way.follow(&target) {
                    Ok(()) => {}
                    Err(TooManyLinks) => return Ok(None), // Each of them is watched.
                },
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && way.is_last() => {
                    return Ok(Some(watched.into()));
                }
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => way.at = step,
                Err(error) if is_gone(&error) => return Ok(None), // Its end is told of.
                Err(error) => return Err(error),
            }
        }
    }

    /// Watches what lies at a step, or that it comes into the folder above; without its watch where it is not there.
    fn watch_step(
        &self,
        above: &Path,
        step: &Path,
        flags: AddWatchFlags,
    ) -> io::Result<Option<WatchDescriptor>> {
        use AddWatchFlags as F;
        // The link and not what it points to: that is a step of its own.
        let flags = flags | F::IN_DELETE_SELF | F::IN_MOVE_SELF | F::IN_DONT_FOLLOW;
        let absent = |result: io::Result<WatchDescriptor>| match result {
            Ok(watched) => Ok(Some(watched)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(watched) = absent(self.add(step, flags))? {
            return Ok(Some(watched));
        }
        if absent(self.add(above, F::IN_CREATE | F::IN_MOVED_TO | F::IN_ATTRIB))?.is_none() {
            return Ok(None); // The end of what is above is told of.
        }
        // It may have come just before anybody would have been told of it.
        absent(self.add(step, flags))
    }

    fn add(&self, path: &Path, flags: AddWatchFlags) -> io::Result<WatchDescriptor> {
        Ok(self.0.add_watch(path, flags | ADD)?)
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

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// The most symbolic links on one way, as the kernel has it: path_resolution(7).
const MAX_LINKS: u32 = 40;

struct TooManyLinks;

/// The way to a path, step by step: what is behind, without links, and the names that are still to go, the next one last.
struct Way {
    at: PathBuf,
    left: Vec<OsString>,
    links: u32,
}

impl Way {
    fn to(path: &Path) -> Self {
        let mut way = Self { at: PathBuf::from("/"), left: Vec::new(), links: 0 };
        way.go_by(path);
        way
    }

    fn go_by(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        });
        self.left.extend(names);
    }

    /// The path of the next step; nothing where the way is at its end.
    fn step(&mut self) -> Option<PathBuf> {
        loop {
            let name = self.left.pop()?;
            if name != ".." {
                return Some(self.at.join(name));
            }
            self.at.pop(); // Rightly so: there is no link in it.
        }
    }

    const fn is_last(&self) -> bool {
        self.left.is_empty()
    }

    fn follow(&mut self, target: &Path) -> Result<(), TooManyLinks> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(TooManyLinks);
        }
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.go_by(target);
        Ok(())
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
    fn links_on_the_way_are_watched_and_what_they_point_to() {
        use std::os::unix::fs::symlink;
        let folder = TempDir::new();
        let at = |name: &str| folder.path().join(name);
        for version in ["one", "two"] {
            fs::create_dir_all(at("versions").join(version)).unwrap();
            fs::write(at("versions").join(version).join("file"), version).unwrap();
        }
        symlink("versions/../versions/one", at("current")).unwrap();
        symlink(at("current/file"), at("link")).unwrap();
        let watch = PathWatch::new().unwrap();
        let told = |path: &str, what: &dyn Fn()| {
            let before = watch.watch(&at(path), Interest::Changes).unwrap();
            watch.drain().unwrap();
            what();
            assert!(!watch.drain().unwrap().is_empty(), "nothing was told of {path}");
            (before, watch.watch(&at(path), Interest::Changes).unwrap())
        };
        let swap = |target: &str, name: &str| {
            symlink(target, at("new")).unwrap();
            fs::rename(at("new"), at(name)).unwrap();
        };
        let (one, two) = told("current/file", &|| swap("versions/two", "current"));
        assert!(one.is_some() && two.is_some() && one != two, "it is another file");
        let (same, gone) = told("link", &|| fs::remove_file(at("current")).unwrap());
        assert_eq!((same, gone), (two, None), "the last link's way leads over the other one");
        let (_, back) = told("link", &|| symlink("versions/two", at("current")).unwrap());
        assert_eq!(back, two);
        let (_, dangling) = told("current", &|| swap("versions/three/four", "current"));
        assert_eq!(dangling, None);
        told("current", &|| fs::create_dir(at("versions/three")).unwrap());
        let (_, there) = told("current", &|| fs::create_dir(at("versions/three/four")).unwrap());
        assert!(there.is_some(), "what a link points to may come later");
        let (_, moved) = told("current", &|| fs::rename(at("versions"), at("elsewhere")).unwrap());
        assert_eq!(moved, None, "what leads to where it points may go");
        let (_, looped) = told("current", &|| swap("current", "current"));
        assert_eq!(looped, None);
        let (_, found) = told("current", &|| swap("elsewhere/one", "current"));
        assert!(found.is_some());
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
