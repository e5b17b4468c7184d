//! What a process sees of the machine: its namespaces, and the mounts in them, prepared by the parent.
//!
//! Everything that is to be attached is first made, detached, from what there is: a copy of a tree keeps its own
//! flags, whatever happens to the place it was copied from. So an exception from a read-only tree is a copy that was
//! made before, attached on top; nothing is ever made writable. open_tree(2), move_mount(2), Linux 5.2;
//! mount_setattr(2), Linux 5.12.

use std::ffi::CString;

/// The namespaces that a process gets of its own.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    /// A network with a loopback device alone, which is up.
    pub network: bool,
    /// A host name.
    pub hostname: bool,
    /// System V IPC and message queues.
    pub ipc: bool,
    /// Mounts, made in this order: an upper one before those in it. None: as the manager.
    pub mounts: Vec<MountEntry>,
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
    /// Nothing: what is there gets the flags.
    InPlace,
    /// Nothing: a folder is made, if there is none, for something to be mounted on.
    Folder,
    /// Nothing: an empty file is made, if there is none.
    File,
}

/// Flags that are set, mount_setattr(2); none is ever taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MountFlags(pub(super) u64);

impl MountFlags {
    /// Nothing can be written.
    pub const READ_ONLY: Self = Self(libc::MOUNT_ATTR_RDONLY);
    /// No set-user-id bits, no devices, no programs.
    pub const INERT: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC);
    /// No set-user-id bits, no devices.
    pub const PLAIN: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
