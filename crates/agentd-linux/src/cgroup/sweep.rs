//! What a manager that was killed has left behind: its units' processes, in cgroups that nobody watches any more.
//!
//! A new life beside an old one would be two writers of one state, so the old ones end before the first unit starts.

use std::fs;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::CgroupError;
use super::leaf::{Leaf, Removal};
use super::root::{CgroupRoot, INIT_SCOPE};

impl CgroupRoot {
    /// Kills and removes every cgroup below our root but the manager's own and those of units that `keep` says yes to, and
    /// waits at most `most` for their processes to be gone. How many had processes, and the names of those that are left.
    /// For the start of a manager, before anything of its own runs.
    ///
    /// # Errors
    /// Our part of the tree cannot be listed.
    pub fn sweep(
        &self,
        most: Duration,
        keep: &dyn Fn(&str) -> bool,
    ) -> Result<(usize, Vec<String>), CgroupError> {
        let deadline = Instant::now() + most;
        let (mut populated, mut left) = (0, Vec::new());
        // Slices are looked into; what else there is belongs to one unit, or to nobody.
        let mut slices = vec![self.folder().to_owned()];
        let mut leaves = Vec::new();
        while let Some(slice) = slices.pop() {
            let entries = fs::read_dir(&slice).map_err(|e| CgroupError::access("list", &slice, e))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name == INIT_SCOPE || keep(&name) || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if name.ends_with(".slice") {
                    slices.push(entry.path());
                }
                leaves.push((name, entry.path()));
            }
        }
        // The deepest first, so that a slice is empty of units by its turn. One with a unit that is kept stays.
        for (name, path) in leaves.into_iter().rev() {
            let leaf = Leaf::open(path, name.clone())?;
            if name.ends_with(".slice") {
                if !leaf.has_children() && !matches!(leaf.remove(), Ok(Removal::Removed)) {
                    left.push(name);
                }
                continue;
            }
            if leaf.is_populated()? {
                populated += 1;
                leaf.kill()?;
                leaf.wait_empty(deadline)?;
            }
            if !matches!(leaf.remove(), Ok(Removal::Removed)) {
                left.push(name);
            }
        }
        Ok((populated, left))
    }
}

impl Leaf {
    /// Waits until no process is left or the time has come; whether none is. The kernel tells of a change of
    /// `cgroup.events` by POLLPRI (cgroup-v2.rst).
    fn wait_empty(&self, deadline: Instant) -> Result<bool, CgroupError> {
        let path = self.path().join("cgroup.events");
        let file = fs::File::open(&path).map_err(|e| CgroupError::access("open", &path, e))?;
        while self.is_populated()? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLPRI)];
            poll(&mut fds, timeout).map_err(|errno| CgroupError::access("watch", &path, errno.into()))?;
        }
        Ok(true)
    }
}
