//! What a process sees of the machine: its namespaces, and the mounts in them, prepared by the parent.
//!
//! Everything that is to be attached is first made, detached, from what there is: a copy of a tree keeps its own
//! flags, whatever happens to the place it was copied from. So an exception from a read-only tree is a copy that was
//! made before, attached on top; nothing is ever made writable. open_tree(2), move_mount(2), Linux 5.2;
//! mount_setattr(2), Linux 5.12.

use std::ffi::CString;

use super::users::UserMap;

/// The namespaces that a process gets of its own.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    /// A network with a loopback device alone, which is up.
    pub network: bool,
    /// A host name.
    pub hostname: bool,
    /// System V IPC and message queues.
    pub ipc: bool,
    /// Users, whose ids are mapped like this.
    pub users: Option<UserMap>,
    /// Numbers of processes: it is number 1. `/proc` has to be mounted anew to show them.
    pub pids: bool,
    /// Mounts, though `mounts` changes nothing in them.
    pub own_mounts: bool,
    /// How mounts travel, once all are made; None: what the machine mounts is seen.
    pub propagation: Option<Propagation>,
    /// Mounts, made in this order: an upper one before those in it. None: as the manager.
    pub mounts: Vec<MountEntry>,
}

impl Namespaces {
    /// The keys of unit files by which it has namespaces, for errors.
    pub(super) fn keys(&self) -> Vec<&'static str> {
        let keys = [
            (self.users.is_some(), "PrivateUsers"),
            (self.pids, "PrivatePIDs"),
            (self.hostname, "ProtectHostname"),
            (self.ipc, "PrivateIPC"),
            (self.own_mounts, "PrivateMounts"),
            (self.propagation.is_some(), "MountFlags"),
        ];
        let mut found: Vec<_> = keys.into_iter().filter_map(|(wanted, key)| wanted.then_some(key)).collect();
        if found.is_empty() {
            // It has them for its mounts alone.
            for entry in &self.mounts {
                if !found.contains(&entry.key) {
                    found.push(entry.key);
                }
            }
        }
        found
    }
}

/// How mounts travel between namespaces, mount_namespaces(7) "SHARED SUBTREES".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// What the machine mounts is seen, and what is mounted within is seen in namespaces made within.
    Shared,
    /// What the machine mounts is seen.
    Slave,
    /// Nothing of it is.
    Private,
}

/// One change of what is mounted.
#[derive(Debug, Clone)]
pub struct MountEntry {
    /// The key of the unit file that it is for, for errors.
    pub key: &'static str,
    /// Where, without links in it.
    pub target: CString,
    /// What.
    pub mount: Mount,
    /// Its flags.
    pub flags: MountFlags,
    /// Programs can be run from it, though what it is made of forbids that.
    pub executable: bool,
    /// What is missing is left out. For [`Mount::Tree`] alone.
    pub optional: bool,
}

/// What is mounted.
#[derive(Debug, Clone)]
pub enum Mount {
    /// What is at `source` in the manager's view, with what is mounted below it.
    Tree {
        /// Without links in it.
        source: CString,
        /// With what is mounted below.
        recursive: bool,
    },
    /// A new file system: its type, and its options.
    New {
        /// `tmpfs`, `proc`.
        fstype: CString,
        /// As the file system takes them.
        options: CString,
    },
    /// What is there by then, with what is mounted below, on top of itself: for flags of its own.
    Again,
    /// Nothing: what is there gets the flags.
    InPlace {
        /// With what is mounted below.
        recursive: bool,
    },
    /// Nothing: a folder is made, if there is none, for something to be mounted on.
    Folder,
    /// Nothing: an empty file is made, if there is none.
    File,
}

/// Flags that are set, mount_setattr(2); but for [`MountEntry::executable`] none is ever taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MountFlags(pub(super) u64);

impl MountFlags {
    /// Nothing can be written.
    pub const READ_ONLY: Self = Self(libc::MOUNT_ATTR_RDONLY);
    /// No programs.
    pub const NO_EXEC: Self = Self(libc::MOUNT_ATTR_NOEXEC);
    /// No set-user-id bits, no devices, no programs.
    pub const INERT: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC);
    /// No set-user-id bits, no devices.
    pub const PLAIN: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);

    /// Whether nothing can be written under it.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        self.0 & libc::MOUNT_ATTR_RDONLY != 0
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
