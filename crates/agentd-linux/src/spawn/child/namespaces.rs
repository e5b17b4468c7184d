//! Entering namespaces of its own, and making the mounts in them.

use core::ffi::{CStr, c_int};
use std::os::fd::RawFd;

use super::super::mounts::{Mount, MountEntry, Propagation};
use super::super::raw;
use super::super::step::Step;
use super::{At, Failure, Walk};

impl Walk<'_> {
    /// Network, host name, IPC, mounts.
    pub(super) fn enter_namespaces(&mut self) -> Result<(), Failure> {
        let [network, ipc] = self.joined;
        if let Some(fd) = network {
            raw::enter(fd, libc::CLONE_NEWNET).at(Step::Network)?;
        } else if self.namespaces.network {
            raw::unshare(libc::CLONE_NEWNET).at(Step::Network)?;
            raw::loopback_up().at(Step::Network)?;
        }
        if self.namespaces.hostname {
            raw::unshare(libc::CLONE_NEWUTS).at(Step::Namespace)?;
        }
        if let Some(fd) = ipc {
            raw::enter(fd, libc::CLONE_NEWIPC).at(Step::Namespace)?;
        } else if self.namespaces.ipc {
            raw::unshare(libc::CLONE_NEWIPC).at(Step::Namespace)?;
        }
        let how = self.namespaces.propagation;
        let outside = matches!(how, Some(Propagation::Slave | Propagation::Private));
        if !self.namespaces.mounts.is_empty() || self.namespaces.own_mounts || outside {
            raw::unshare(libc::CLONE_NEWNS).at(Step::Namespace)?;
            // What the machine mounts later is seen; what is mounted here is not seen there.
            // SAFETY: all strings are literals or null.
            unsafe { raw::mount(c"none", c"/", None, libc::MS_REC | libc::MS_SLAVE, None) }
                .at(Step::Namespace)?;
            self.copy_trees()?;
            self.attach_all()?;
        }
        let flag = match how {
            Some(Propagation::Shared) => libc::MS_SHARED,
            Some(Propagation::Private) => libc::MS_PRIVATE,
            Some(Propagation::Slave) | None => return Ok(()),
        };
        // SAFETY: all strings are literals or null.
        unsafe { raw::mount(c"none", c"/", None, libc::MS_REC | flag, None) }.at(Step::Namespace)?;
        Ok(())
    }

    /// Copies every tree as it is now, before the first change.
    fn copy_trees(&mut self) -> Result<(), Failure> {
        for (item, (entry, slot)) in (1..).zip(self.namespaces.mounts.iter().zip(self.trees.iter_mut())) {
            if let Mount::Tree { source, recursive } = &entry.mount {
                *slot = match raw::open_tree(source, *recursive) {
                    Ok(fd) => fd as RawFd,
                    Err(libc::ENOENT) if entry.optional => ABSENT,
                    Err(errno) => return Err(Failure { step: Step::Namespace, errno, item }),
                };
            }
        }
        Ok(())
    }

    fn attach_all(&mut self) -> Result<(), Failure> {
        for (item, (entry, tree)) in (1..).zip(self.namespaces.mounts.iter().zip(self.trees.iter())) {
            attach(entry, *tree).at_item(Step::Namespace, item)?;
        }
        Ok(())
    }
}

/// In the place of a tree that may be missing, and is.
const ABSENT: RawFd = -1;

fn attach(entry: &MountEntry, tree: RawFd) -> Result<(), raw::Errno> {
    let target = entry.target.as_c_str();
    let flags = [entry.flags.0, if entry.executable { libc::MOUNT_ATTR_NOEXEC } else { 0 }];
    match &entry.mount {
        Mount::Tree { .. } if tree == ABSENT => {}
        Mount::Tree { .. } => attach_tree(tree, target, flags)?,
        Mount::Again => attach_tree(raw::open_tree(target, true)? as RawFd, target, flags)?,
        Mount::New { fstype, options } => {
            let inert = libc::MS_NOSUID | libc::MS_NODEV;
            // SAFETY: the strings are of the plan, which outlives the walk.
            unsafe { raw::mount(fstype, target, Some(fstype), inert, Some(options)) }?;
            if flags != NO_FLAGS {
                raw::mount_setattr(libc::AT_FDCWD, target, 0, flags)?;
            }
        }
        Mount::InPlace { recursive } => {
            let how = if *recursive { libc::AT_RECURSIVE } else { 0 };
            raw::mount_setattr(libc::AT_FDCWD, target, how, flags)?;
        }
        Mount::Folder => ignore_existing(raw::make_folder(target))?,
        Mount::File => ignore_existing(raw::make_file(target))?,
    }
    Ok(())
}

/// Those that are set, and those that are taken away.
const NO_FLAGS: [u64; 2] = [0; 2];

fn attach_tree(tree: RawFd, target: &CStr, flags: [u64; 2]) -> Result<(), raw::Errno> {
    let empty: c_int = libc::AT_EMPTY_PATH;
    if flags != NO_FLAGS {
        raw::mount_setattr(tree, c"", empty | libc::AT_RECURSIVE, flags)?;
    }
    raw::move_mount(tree, target)?;
    raw::close(tree)?;
    Ok(())
}

fn ignore_existing(made: raw::Raw) -> Result<(), raw::Errno> {
    match made {
        Ok(_) | Err(libc::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}
