//! One descriptor that tells of all leaves: inotify(7) on `cgroup.events` and `memory.events`.
//!
//! The kernel makes an inotify event of each change of these files, at most every 10 ms for each, and the last state
//! is always told. One descriptor a unit would be two for each
//! of a thousand agents, and an epoll entry for each.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

use super::error::CgroupError;
use super::leaf::Leaf;

/// What may have changed. An event is a hint: look at the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Changed {
    /// `cgroup.events` of the leaf with this key: look at [`Leaf::is_populated`].
    Population(u64),
    /// `memory.events` of the leaf with this key: look at [`Leaf::memory_events`].
    Memory(u64),
    /// The kernel's queue ran over: look at all leaves.
    Everything,
}

/// Tells of the leaves that were added. Readable when something has changed; never blocks; close-on-exec.
#[derive(Debug)]
pub struct EventsWatch {
    inotify: Inotify,
    watches: HashMap<WatchDescriptor, Changed>,
    by_key: HashMap<u64, Vec<WatchDescriptor>>,
}

impl EventsWatch {
    /// A watch of nothing. inotify_init1(2).
    ///
    /// # Errors
    /// EMFILE: `fs.inotify.max_user_instances` of this user are in use. ENOMEM.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self { inotify, watches: HashMap::new(), by_key: HashMap::new() })
    }

    /// Watches under the name `key` whether a leaf becomes empty. What changed before is not told: look at the leaf
    /// once afterwards.
    ///
    /// # Errors
    /// ENOSPC: `fs.inotify.max_user_watches` are in use. ENOENT: the leaf is gone.
    pub fn add(&mut self, leaf: &Leaf, key: u64) -> Result<(), CgroupError> {
        self.add_file(leaf, "cgroup.events", Changed::Population(key))
    }

    /// Watches under the name `key` what the memory limits of a leaf do, as [`EventsWatch::add`] does.
    ///
    /// # Errors
    /// Those of [`EventsWatch::add`].
    pub fn add_memory(&mut self, leaf: &Leaf, key: u64) -> Result<(), CgroupError> {
        match self.add_file(leaf, "memory.events", Changed::Memory(key)) {
            // Without the memory controller there is nothing to watch.
            Err(e) if e.errno() == Some(libc::ENOENT) => Ok(()),
            result => result,
        }
    }

    fn add_file(&mut self, leaf: &Leaf, file: &str, changed: Changed) -> Result<(), CgroupError> {
        let path = leaf.path().join(file);
        let watch = self
            .inotify
            .add_watch(&path, AddWatchFlags::IN_MODIFY)
            .map_err(|errno| CgroupError::access("watch", &path, errno.into()))?;
        let (Changed::Population(key) | Changed::Memory(key)) = changed else { return Ok(()) };
        self.watches.insert(watch, changed);
        let of_key = self.by_key.entry(key).or_default();
        if !of_key.contains(&watch) {
            of_key.push(watch);
        }
        Ok(())
    }

    /// Watches it no longer. One that is not watched, or whose leaf is gone, is no error.
    pub fn remove(&mut self, key: u64) {
        for watch in self.by_key.remove(&key).unwrap_or_default() {
            self.watches.remove(&watch);
            // EINVAL: the kernel has dropped the watch with the file.
            let _dropped = self.inotify.rm_watch(watch);
        }
    }

    /// Appends what has changed since the last call. Several changes of one file may be one event.
    ///
    /// # Errors
    /// None that an inotify descriptor can have.
    pub fn read(&self, changes: &mut Vec<Changed>) -> io::Result<()> {
        loop {
            match self.inotify.read_events() {
                Ok(events) => changes.extend(events.into_iter().filter_map(|event| {
                    if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                        return Some(Changed::Everything);
                    }
                    // The file went with its leaf: whoever removed it knows.
                    let modified = event.mask.contains(AddWatchFlags::IN_MODIFY);
                    self.watches.get(&event.wd).copied().filter(|_| modified)
                })),
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for EventsWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl AsRawFd for EventsWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_fd().as_raw_fd()
    }
}
