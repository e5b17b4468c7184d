//! FIFOs and special files, fifo(7).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use agentd_unit::sections::SocketSection;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::node::{self, Node, Owner};
use super::{Failure, Listener};

const FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;

/// A FIFO: made, or taken as it is if it is one and nobody else's.
pub(super) fn fifo(path: &Path, section: &SocketSection, owner: Owner) -> Result<Listener, Failure> {
    node::make_folders(path, section.directory_mode)?;
    match mkfifo(path, Mode::from_bits_truncate(0o600)) {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
        Err(errno) => return Err(Failure::of("mkfifo")(errno.into())),
    }
    let meta = fs::symlink_metadata(path).map_err(Failure::of("lstat"))?;
    let mine = meta.uid() == nix::unistd::geteuid().as_raw() || owner.uid == Some(meta.uid());
    if !meta.file_type().is_fifo() || !mine {
        let error = io::Error::from_raw_os_error(libc::EEXIST);
        let hint = ", as another file, or somebody else's, is in its place; move it away";
        return Err(Failure { call: "mkfifo".into(), hint, error });
    }
    // With a writer of our own readers never see an end when the last of the others goes.
    let file = OpenOptions::new().read(true).write(true).custom_flags(FLAGS).open(path);
    let file = file.map_err(Failure::of("open"))?;
    if let Some(size) = section.options.pipe_size {
        pipe_size(&file, size).map_err(Failure::of("PipeSize"))?;
    }
    let node = Node::settle(path, section.mode, owner)?;
    Ok(Listener { fd: file.into(), node: Some(node) })
}

/// A device, or a file that tells when it changes.
pub(super) fn special(path: &Path, section: &SocketSection) -> Result<OwnedFd, Failure> {
    let mut options = OpenOptions::new();
    options.read(true).write(section.options.writable).custom_flags(FLAGS);
    let file = options.open(path).map_err(Failure::of("open"))?;
    let kind = file.metadata().map_err(Failure::of("fstat"))?.file_type();
    if !kind.is_char_device() && !kind.is_file() {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        return Err(Failure { call: "open".into(), hint: ", as it is neither a device nor a file", error });
    }
    Ok(file.into())
}

/// F_SETPIPE_SZ, fcntl(2).
fn pipe_size(file: &File, size: u64) -> io::Result<()> {
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    // SAFETY: the call takes two integers and touches no memory of ours.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
