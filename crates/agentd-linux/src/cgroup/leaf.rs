//! The cgroup of one run of a unit.
//!
//! # Invariants
//!
//! - Everything goes through the descriptor of the folder: a leaf that was removed and made anew by a later run is
//!   never touched through an older handle.
//! - A process or folder that is gone in the middle of an operation is what the operation wanted.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, fchownat, unlinkat};

use super::detect;
use super::error::CgroupError;
use crate::pidfd::{Delivery, PidFd};
use crate::small;

/// How often the list of processes is read again, at most, for those that were born meanwhile. A tree that still
/// grows then is for `cgroup.kill`, or the next call.
const ROUNDS: usize = 64;

/// The file that lists the processes of a cgroup.
const PROCESSES: &str = "cgroup.procs";

/// How a cgroup is opened.
const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The cgroup of one run of a unit, held by descriptor.
#[derive(Debug)]
pub struct Leaf {
    folder: OwnedFd,
    path: Box<Path>,
    /// Where its name for the kernel begins in the path, of which it is nearly always the end.
    cgroup_at: usize,
    /// That name where it is not.
    cgroup: Option<Box<str>>,
    /// See [`Leaf::was_killed`].
    killed: AtomicBool,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The folder is gone.
    Removed,
    /// There are still processes in it, or the kernel is about to let go of the last: try again when
    /// `cgroup.events` says that it is not populated.
    Busy,
}

impl Leaf {
    pub(super) fn open(path: PathBuf, cgroup: String) -> Result<Self, CgroupError> {
        Self::of(nix::fcntl::open(&path, FOLDER, Mode::empty()), path, cgroup)
    }

    /// The same by its name in a folder that is held.
    pub(super) fn open_below(
        above: &OwnedFd,
        name: &str,
        path: PathBuf,
        cgroup: String,
    ) -> Result<Self, CgroupError> {
        Self::of(openat(above, name, FOLDER, Mode::empty()), path, cgroup)
    }

    fn of(opened: Result<OwnedFd, Errno>, path: PathBuf, cgroup: String) -> Result<Self, CgroupError> {
        match opened {
            Ok(folder) => {
                let cgroup_at = path.to_str().filter(|path| path.ends_with(&cgroup));
                let cgroup_at = cgroup_at.map(|path| path.len() - cgroup.len());
                let cgroup = cgroup_at.is_none().then(|| cgroup.into_boxed_str());
                Ok(Self {
                    folder,
                    path: path.into(),
                    cgroup_at: cgroup_at.unwrap_or_default(),
                    cgroup,
                    killed: AtomicBool::default(),
                })
            }
            Err(errno) => Err(CgroupError::access("open", &path, errno.into())),
        }
    }

    /// Gives the cgroup to a user, who may make others in it and move processes between them: cgroup-v2.rst
    /// "Delegation Containment". The limits stay ours.
    ///
    /// # Errors
    /// The cgroup is not ours to give.
    pub fn delegate(&self, uid: u32, gid: u32) -> Result<(), CgroupError> {
        let owner = (Some(uid.into()), Some(gid.into()));
        for file in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            let flags = if file.is_empty() { AtFlags::AT_EMPTY_PATH } else { AtFlags::AT_SYMLINK_NOFOLLOW };
            match fchownat(&self.folder, file, owner.0, owner.1, flags) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(errno) => {
                    return Err(CgroupError::access("give away", &self.path.join(file), errno.into()));
                }
            }
        }
        Ok(())
    }

    /// Whether other cgroups are in it.
    pub(super) fn has_children(&self) -> bool {
        children(self.folder.as_fd(), &self.path).is_ok_and(|names| !names.is_empty())
    }

    /// Where it is in the file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number, as a pidfd tells it of a process ([`crate::pidfd::PidFd::cgroup_id`]): the inode of its folder. None where
    /// fstat(2) fails, which it does not.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        fstat(&self.folder).ok().map(|status| status.st_ino)
    }

    /// Whether a cgroup below it has this number now. What goes while we look, or cannot be looked at, has it not.
    #[must_use]
    pub fn has_below(&self, id: u64) -> bool {
        let mut found = false;
        let looked = walk(self.folder.as_fd(), &self.path, &mut |folder, _| {
            found |= fstat(folder).is_ok_and(|status| status.st_ino == id);
            Ok(())
        });
        found && looked.is_ok()
    }

    /// Its path as `/proc/PID/cgroup` and systemd's `ControlGroup` say it.
    #[must_use]
    pub fn cgroup(&self) -> &str {
        match &self.cgroup {
            Some(cgroup) => cgroup,
            None => self.path.to_str().and_then(|path| path.get(self.cgroup_at..)).unwrap_or_default(),
        }
    }

    /// Whether a process that is no zombie is in it or below. One that is gone is not populated.
    ///
    /// # Errors
    /// `cgroup.events` cannot be read.
    pub fn is_populated(&self) -> Result<bool, CgroupError> {
        match self.read("cgroup.events") {
            Ok(text) => Ok(text.lines().any(|line| line == "populated 1")),
            Err(e) if is_gone(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The processes in it and below, in no order. Those outside of our pid namespace are left out.
    ///
    /// # Errors
    /// A list cannot be read. Folders that go while we look are no error.
    pub fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        self.list(&mut None)
    }

    /// The processes; `own` keeps the list of the cgroup itself open for the next time.
    fn list(&self, own: &mut Option<File>) -> Result<Vec<u32>, CgroupError> {
        let mut found = Vec::new();
        walk(self.folder.as_fd(), &self.path, &mut |folder, path| {
            let text =
                if *path == *self.path { self.read_list(own) } else { read_at(folder, path, PROCESSES) };
            match text {
                Ok(text) => {
                    found.extend(
                        text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0),
                    );
                    Ok(())
                }
                Err(e) if is_gone(&e) => Ok(()),
                // A threaded cgroup lists its processes at the head of its domain.
                Err(e) if e.errno() == Some(libc::EOPNOTSUPP) => Ok(()),
                Err(e) => Err(e),
            }
        })?;
        Ok(found)
    }

    fn read_list(&self, open: &mut Option<File>) -> Result<String, CgroupError> {
        let file = match open.take() {
            Some(file) => file,
            None => open_at(self.folder.as_fd(), &self.path, PROCESSES)?,
        };
        small::read(small::FromStart::of(open.insert(file)))
            .map_err(|e| CgroupError::access("read", &self.path.join(PROCESSES), e))
    }

    /// SIGKILLs everything in it and below, at once and beyond the race with fork: `cgroup.kill`, Linux 5.14.
    /// On older kernels the tree is frozen and its processes are killed one by one.
    ///
    /// It comes back before they are gone; [`EventsWatch`](super::EventsWatch) tells when.
    ///
    /// # Errors
    /// The cgroup is not ours to kill.
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.killed.store(true, Ordering::Relaxed);
        match self.write("cgroup.kill", "1") {
            Err(e) if e.errno() == Some(libc::ENOENT) => self.kill_one_by_one(),
            Err(e) if is_gone(&e) => Ok(()),
            result => result,
        }
    }

    /// Whether it was killed as a whole. Newer kernels (seen with Linux 6.18) count that for each cgroup, so that what is born
    /// meanwhile dies too, and compare the count of the parent's cgroup with that of the one that a child is born in: what
    /// is born here is killed ever after, unless it moves in later. `cgroup_post_fork` in kernel/cgroup/cgroup.c.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Without `cgroup.kill`: a frozen process forks no more, and SIGKILL works on it.
    fn kill_one_by_one(&self) -> Result<(), CgroupError> {
        // Linux 5.2. Without the freezer the rounds below have to win the race.
        let frozen = self.write("cgroup.freeze", "1").is_ok();
        let killed = self.signal(&[libc::SIGKILL], []);
        if frozen {
            self.thaw()?;
        }
        killed.map(|_count| ())
    }

    /// Has everything in it and below stand still, what is born or comes later too: `cgroup.freeze`, Linux 5.2. SIGKILL
    /// still works. It comes back before the last process stands; `frozen` in `cgroup.events` tells when.
    ///
    /// # Errors
    /// ENOENT: the kernel has no freezer. The cgroup is not ours.
    pub fn freeze(&self) -> Result<(), CgroupError> {
        self.write("cgroup.freeze", "1")
    }

    /// Lets what was frozen run. Without the freezer, or a cgroup, nothing is frozen.
    ///
    /// # Errors
    /// The cgroup is not ours.
    pub fn thaw(&self) -> Result<(), CgroupError> {
        match self.write("cgroup.freeze", "0") {
            Err(e) if is_gone(&e) => Ok(()),
            result => result,
        }
    }

    /// Sends signals, in their order, to each process in it and below, each once, also to those that are born while we
    /// go. Gives how many got them. `known` are processes of it that the caller holds, with their numbers: they get them
    /// first, wherever they have gone, and in most cgroups there is no other.
    ///
    /// # Errors
    /// A list cannot be read, or a process is not ours to signal. The others get the signal all the same.
    pub fn signal<'k>(
        &self,
        signals: &[i32],
        known: impl IntoIterator<Item = (u32, &'k PidFd)>,
    ) -> Result<usize, CgroupError> {
        let mut seen = HashSet::new();
        let mut list = None;
        let mut sent = 0;
        let mut refused = None;
        let mut count = |sending: io::Result<Delivery>| match sending {
            Ok(Delivery::Sent) => sent += 1,
            Ok(Delivery::Gone) => {}
            Err(e) => refused = Some(e),
        };
        for (pid, process) in known {
            seen.insert(pid);
            count(send(process, signals));
        }
        for _ in 0..ROUNDS {
            let born: Vec<u32> = self.list(&mut list)?.into_iter().filter(|pid| seen.insert(*pid)).collect();
            if born.is_empty() {
                break;
            }
            born.into_iter().for_each(|pid| count(self.signal_one(pid, signals)));
        }
        match refused {
            None => Ok(sent),
            Some(e) => Err(CgroupError::access("signal all of", &self.path, e)),
        }
    }

    /// Between the list and the pidfd the number may have become another's: once held, it is asked where it lives.
    fn signal_one(&self, pid: u32, signals: &[i32]) -> io::Result<Delivery> {
        let Some(process) = PidFd::open(pid)? else { return Ok(Delivery::Gone) };
        let lives_here = detect::of_process(pid)?.is_some_and(|cgroup| self.contains(&cgroup));
        if lives_here { send(&process, signals) } else { Ok(Delivery::Gone) }
    }

    /// Whether a cgroup path, as `/proc/PID/cgroup` says it, is this one or below it.
    #[must_use]
    pub fn contains(&self, cgroup: &str) -> bool {
        cgroup.strip_prefix(self.cgroup()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Removes it if nothing is in it, neither a process nor a cgroup: one call.
    ///
    /// # Errors
    /// It cannot be removed for another reason.
    pub fn remove_empty(&self) -> Result<Removal, CgroupError> {
        remove_empty(&self.path)
    }

    /// Removes it with the cgroups that the unit has made in it, the deepest first.
    ///
    /// # Errors
    /// A folder cannot be removed for another reason than that something lives in it.
    pub fn remove(&self) -> Result<Removal, CgroupError> {
        // Most units have made none: then the one call is all.
        if self.remove_empty()? == Removal::Removed {
            return Ok(Removal::Removed);
        }
        match remove_below(self.folder.as_fd(), &self.path)? {
            Removal::Removed => self.remove_empty(),
            Removal::Busy => Ok(Removal::Busy),
        }
    }

    pub(super) fn read(&self, file: &str) -> Result<String, CgroupError> {
        read_at(self.folder.as_fd(), &self.path, file)
    }

    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        let fail = |e| CgroupError::write(&self.path.join(file), value, e);
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let fd = openat(&self.folder, file, flags, Mode::empty()).map_err(|errno| fail(errno.into()))?;
        File::from(fd).write_all(value.as_bytes()).map_err(fail)
    }
}

impl AsFd for Leaf {
    /// The folder: for [`SpawnPlan::cgroup`](crate::spawn::SpawnPlan::cgroup).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// The delivery of the first signal: a process may end of it before it gets the next.
fn send(process: &PidFd, signals: &[i32]) -> io::Result<Delivery> {
    let mut first = None;
    for signal in signals {
        let delivery = process.send_signal(*signal)?;
        first.get_or_insert(delivery);
    }
    Ok(first.unwrap_or(Delivery::Gone))
}

/// Whether the cgroup was removed while we held it.
fn is_gone(error: &CgroupError) -> bool {
    matches!(error.errno(), Some(libc::ENODEV | libc::ENOENT))
}

/// Whether what is in the cgroup of this folder stands still, by itself or by one above it: `frozen` in `cgroup.events`.
pub(crate) fn is_frozen(folder: BorrowedFd<'_>) -> bool {
    let events = read_at(folder, Path::new(""), "cgroup.events").unwrap_or_default();
    events.lines().any(|line| line == "frozen 1")
}

fn read_at(folder: BorrowedFd<'_>, path: &Path, file: &str) -> Result<String, CgroupError> {
    small::read(open_at(folder, path, file)?).map_err(|e| CgroupError::access("read", &path.join(file), e))
}

fn open_at(folder: BorrowedFd<'_>, path: &Path, file: &str) -> Result<File, CgroupError> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let fd = openat(folder, file, flags, Mode::empty())
        .map_err(|errno| CgroupError::access("read", &path.join(file), errno.into()))?;
    Ok(File::from(fd))
}

/// What a walk does at each folder.
type Visit<'v> = dyn FnMut(BorrowedFd<'_>, &Path) -> Result<(), CgroupError> + 'v;

/// Visits a cgroup and all below it, the upper first. The depth is bounded by the kernel's `cgroup.max.depth` and
/// by path lengths; what cannot be opened because it is gone is left out.
fn walk(folder: BorrowedFd<'_>, path: &Path, visit: &mut Visit<'_>) -> Result<(), CgroupError> {
    visit(folder, path)?;
    for name in children(folder, path)? {
        let below = path.join(&name);
        match open_child(folder, &name) {
            Ok(child) => walk(child.as_fd(), &below, visit)?,
            Err(Errno::ENOENT | Errno::ENODEV) => {}
            Err(errno) => return Err(CgroupError::access("open", &below, errno.into())),
        }
    }
    Ok(())
}

fn open_child(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    openat(folder, name, flags, Mode::empty())
}

/// The names of the cgroups in this one.
fn children(folder: BorrowedFd<'_>, path: &Path) -> Result<Vec<String>, CgroupError> {
    let fail = |errno: Errno| CgroupError::access("list", path, errno.into());
    // The kernel counts a cgroup's folders in its links, as other file systems do: most have none, and need no listing.
    match fstat(folder) {
        Ok(found) if found.st_nlink == 2 => return Ok(Vec::new()),
        Ok(_) => {}
        Err(Errno::ENOENT | Errno::ENODEV) => return Ok(Vec::new()),
        Err(errno) => return Err(fail(errno)),
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut dir = match Dir::openat(folder, ".", flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::ENOENT | Errno::ENODEV) => return Ok(Vec::new()),
        Err(errno) => return Err(fail(errno)),
    };
    let mut names = Vec::new();
    for entry in dir.iter() {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type() == Some(Type::Directory) && name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes everything below a cgroup, and not itself.
fn remove_below(folder: BorrowedFd<'_>, path: &Path) -> Result<Removal, CgroupError> {
    let mut result = Removal::Removed;
    for name in children(folder, path)? {
        let below = path.join(&name);
        let removal = match open_child(folder, &name) {
            Ok(child) => match remove_below(child.as_fd(), &below)? {
                Removal::Removed => remove_folder(folder, Path::new(&name), &below)?,
                Removal::Busy => Removal::Busy,
            },
            Err(Errno::ENOENT | Errno::ENODEV) => Removal::Removed,
            Err(errno) => return Err(CgroupError::access("open", &below, errno.into())),
        };
        if removal == Removal::Busy {
            result = Removal::Busy;
        }
    }
    Ok(result)
}

/// Removes the cgroup at a path if nothing is in it: [`Leaf::remove_empty`] for a thread that does not hold it. Whoever calls
/// it sees to it that no other is made there meanwhile.
///
/// # Errors
/// As [`Leaf::remove_empty`].
pub fn remove_empty(path: &Path) -> Result<Removal, CgroupError> {
    remove_folder(nix::fcntl::AT_FDCWD, path, path)
}

fn remove_folder(at: BorrowedFd<'_>, name: &Path, shown: &Path) -> Result<Removal, CgroupError> {
    match unlinkat(at, name, UnlinkatFlags::RemoveDir) {
        Ok(()) | Err(Errno::ENOENT | Errno::ENODEV) => Ok(Removal::Removed),
        // ENOTEMPTY: a cgroup was made in it since we looked.
        Err(Errno::EBUSY | Errno::ENOTEMPTY) => Ok(Removal::Busy),
        Err(errno) => Err(CgroupError::access("remove", shown, errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::super::{CgroupRoot, Place};
    use super::*;

    fn sleeper(folder: &Path) -> Child {
        let child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        std::fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
        child
    }

    #[test]
    fn without_cgroup_kill_each_process_is_killed_and_the_tree_is_thawed() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "this test needs root");
            return;
        }
        let mut root = CgroupRoot::set_up(Place::Folder("agentd-test-one-by-one")).unwrap();
        let leaf = root.leaf("system.slice", "old.service").unwrap();
        let below = leaf.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let children = [sleeper(leaf.path()), sleeper(&below), sleeper(&below)];
        leaf.kill_one_by_one().unwrap();
        for mut child in children {
            use std::os::unix::process::ExitStatusExt;
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        }
        assert!(leaf.read("cgroup.freeze").unwrap().starts_with('0'));
        leaf.write("cgroup.freeze", "1").unwrap();
        let again = root.leaf("system.slice", "old.service").unwrap();
        assert!(again.read("cgroup.freeze").unwrap().starts_with('0'), "a left-over is thawed");
        assert_eq!(again.remove().unwrap(), Removal::Removed);
        root.leave();
    }
}
