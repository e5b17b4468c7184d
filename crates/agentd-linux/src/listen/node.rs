//! The file of a socket: its folders, who stands in its place already, its mode and owner, and links to it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::socket::{AddressFamily, SockType, UnixAddr, connect};
use nix::unistd::{Gid, Uid, fchownat};

use super::{Failure, socket};

/// Who gets the file; `None`: as the manager makes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// `SocketUser`.
    pub uid: Option<u32>,
    /// `SocketGroup`.
    pub gid: Option<u32>,
}

/// The file of a socket as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it is.
    pub path: PathBuf,
    /// The device that it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl Node {
    /// Gives the file that was just made its owner and its mode. Whatever the path leads to by now, nothing but what
    /// was opened is changed.
    pub(super) fn settle(path: &Path, mode: u32, owner: Owner) -> Result<Self, Failure> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let file =
            OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(Failure::of("open"))?;
        let meta = file.metadata().map_err(Failure::of("fstat"))?;
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        if uid.is_some() || gid.is_some() {
            fchownat(file.as_fd(), "", uid, gid, AtFlags::AT_EMPTY_PATH)
                .map_err(|e| Failure::of("SocketUser, SocketGroup: chown")(e.into()))?;
        }
        let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(by_descriptor, Permissions::from_mode(mode))
            .map_err(Failure::of("SocketMode: chmod"))?;
        Ok(Self { path: path.to_owned(), device: meta.dev(), inode: meta.ino() })
    }

    /// Whether its path still leads to it.
    #[must_use]
    pub fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|meta| meta.dev() == self.device && meta.ino() == self.inode)
    }

    /// Takes it away, with the links to it, unless somebody else has put another file in its place.
    ///
    /// # Errors
    /// EACCES, EROFS.
    pub fn remove(&self, links: &[PathBuf]) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        for link in links {
            if fs::read_link(link).is_ok_and(|target| target == self.path) {
                fs::remove_file(link)?;
            }
        }
        fs::remove_file(&self.path)
    }
}

/// Makes the folders above a path that are not there, with this mode, whatever the umask says.
pub(super) fn make_folders(path: &Path, mode: u32) -> Result<(), Failure> {
    let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) else { return Ok(()) };
    make_folders(parent, mode)?;
    match DirBuilder::new().mode(mode).create(parent) {
        Ok(()) => fs::set_permissions(parent, Permissions::from_mode(mode)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(Failure::of(format!("mkdir {}", parent.display())))
}

/// Makes room for a socket: one that nobody listens on is a left-over of an earlier life and goes.
pub(super) fn clear(path: &Path, socket_type: SockType) -> Result<(), Failure> {
    let refused =
        |hint| Failure { call: "bind".into(), hint, error: io::Error::from_raw_os_error(libc::EADDRINUSE) };
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.file_type().is_socket() => {
            Err(refused(", as a file that is no socket is in its place; move it away"))
        }
        Ok(_) if is_listening(path, socket_type)? => {
            Err(refused(", as another process listens there; stop it or take another path"))
        }
        Ok(_) => fs::remove_file(path).map_err(Failure::of("unlink of the socket that was left there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::of("lstat")(error)),
    }
}

/// Whether somebody has bound the socket. Asked without waiting: one whose queue is full is listened on too.
fn is_listening(path: &Path, socket_type: SockType) -> Result<bool, Failure> {
    let address = UnixAddr::new(path).map_err(|e| Failure::of("connect")(e.into()))?;
    match connect(socket(AddressFamily::Unix, socket_type)?.as_raw_fd(), &address) {
        // EPROTOTYPE: a socket of another type, which its owner has bound and may be reading.
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => Ok(true),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(false),
        Err(errno) => Err(Failure::of("connect, to see whether somebody listens there,")(errno.into())),
    }
}

/// A link to the socket, in the place of another link but of nothing else.
pub(super) fn link(path: &Path, link: &Path, mode: u32) -> Result<(), Failure> {
    make_folders(link, mode)?;
    let failed = Failure::of("symlink");
    match fs::symlink_metadata(link) {
        Ok(meta) if meta.is_symlink() => {
            if fs::read_link(link).is_ok_and(|target| target == path) {
                return Ok(());
            }
            fs::remove_file(link).and_then(|()| std::os::unix::fs::symlink(path, link)).map_err(failed)
        }
        _ => std::os::unix::fs::symlink(path, link).map_err(failed),
    }
}
