//! What the loader asks the kernel for, and who asks for it.
//!
//! The unit language talks to the kernel through the standard library alone, which opens files by whole paths and lists
//! folders by way of the C library. Who may talk to the kernel itself hands a [`Door`] in that does the same in fewer
//! steps, and can say where a thread runs. Whether what was opened may be used is decided by the loader, on the descriptor.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;

/// What stands under a name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something else.
    Other,
}

impl Kind {
    /// What it is, with its article.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "something",
        }
    }
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        match found {
            found if found.is_file() => Self::File,
            found if found.is_dir() => Self::Folder,
            found if found.is_symlink() => Self::Link,
            found if found.is_fifo() => Self::Fifo,
            found if found.is_socket() => Self::Socket,
            found if found.is_char_device() || found.is_block_device() => Self::Device,
            _ => Self::Other,
        }
    }
}

/// A folder that was opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenFolder<'f> {
    /// Where it lay.
    pub path: &'f Path,
    /// The folder.
    pub file: &'f File,
}

/// Opens files, lists folders and starts a second thread for the loader. Both threads may ask at once.
pub trait Door: fmt::Debug + Send + Sync {
    /// Opens what lies below an open folder for reading, in that folder or in one below it: close-on-exec, without
    /// waiting for the other end of a FIFO. A link at the end of the name is not followed.
    ///
    /// # Errors
    /// As open(2); ELOOP: it is a link.
    fn open(&self, folder: OpenFolder<'_>, name: &Path) -> io::Result<File>;

    /// Hands on each name in a folder with what stands under it, as the folder itself tells: nothing is looked at for
    /// it. What cannot be told of one name hides none of the others.
    ///
    /// # Errors
    /// The folder cannot be read any further.
    fn list(&self, folder: OpenFolder<'_>, each: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()>;

    /// Does the first, and the second beside it on a thread of its own, if the system lets one be started. Both are over
    /// on return; a panic of either goes on in the caller.
    fn both(&self, first: &mut dyn FnMut(), second: &mut (dyn FnMut() + Send)) {
        thread::scope(|scope| {
            let other = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, second).ok();
            first();
            if let Some(Err(panic)) = other.map(thread::ScopedJoinHandle::join) {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

/// `O_NOFOLLOW` and `O_NONBLOCK` of open(2); `std` sets `O_CLOEXEC` itself. The numbers are the kernel's and differ
/// by architecture.
#[cfg(any(target_arch = "x86", target_arch = "x86_64", target_arch = "riscv64", target_arch = "s390x"))]
const OPEN_FLAGS: i32 = 0o400_000 | 0o4000;
#[cfg(any(target_arch = "arm", target_arch = "aarch64", target_arch = "powerpc64"))]
const OPEN_FLAGS: i32 = 0o100_000 | 0o4000;

/// Opens what stands at a path as [`Door::open`] does.
pub(super) fn open_path(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OPEN_FLAGS).open(path)
}

/// The door of the standard library: what the folder was opened at is what is listed and opened below.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardDoor;

impl Door for StandardDoor {
    fn open(&self, folder: OpenFolder<'_>, name: &Path) -> io::Result<File> {
        open_path(&folder.path.join(name))
    }

    fn list(&self, folder: OpenFolder<'_>, each: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()> {
        for entry in std::fs::read_dir(folder.path)? {
            let entry = entry?;
            each(&entry.file_name(), entry.file_type().map(Kind::from));
        }
        Ok(())
    }
}
