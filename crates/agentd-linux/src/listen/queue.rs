//! Message queues, mq_overview(7).

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use agentd_unit::sections::SocketSection;
use nix::unistd::{Gid, Uid, fchown};

use super::{Failure, Listener, Owner};

/// A queue: made, or taken as it is if it is nobody else's. mq_open(3).
pub(super) fn queue(path: &Path, section: &SocketSection, owner: Owner) -> Result<Listener, Failure> {
    let fd = open(path, section).map_err(Failure::of("mq_open"))?;
    let file = File::from(fd);
    let meta = file.metadata().map_err(Failure::of("fstat"))?;
    let mine = meta.uid() == nix::unistd::geteuid().as_raw() || owner.uid == Some(meta.uid());
    if !mine {
        let error = io::Error::from_raw_os_error(libc::EEXIST);
        let hint = ", as somebody else's queue has this name; take another one";
        return Err(Failure { call: "mq_open".into(), hint, error });
    }
    let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
    fchown(&file, uid, gid).map_err(|e| Failure::of("SocketUser, SocketGroup: fchown")(e.into()))?;
    file.set_permissions(Permissions::from_mode(section.mode)).map_err(Failure::of("SocketMode: fchmod"))?;
    Ok(Listener { fd: file.into(), node: None })
}

fn open(path: &Path, section: &SocketSection) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let options = &section.options;
    // As systemd has it: one without the other is none.
    let sizes = options.queue_messages.zip(options.queue_message_size);
    // SAFETY: all bytes zero is a valid mq_attr.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    let attributes = sizes.map_or(std::ptr::null(), |(messages, size)| {
        attributes.mq_maxmsg = messages.into();
        attributes.mq_msgsize = size.into();
        &raw const attributes
    });
    let mode: libc::mode_t = 0o600;
    // SAFETY: the call reads the name and the attributes, which live until it is over.
    let fd = unsafe { libc::mq_open(name.as_ptr(), flags, mode, attributes) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: on Linux it is a descriptor; the call succeeded, so it is open and we are its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes a queue's name away; what has it open keeps it. One that is not there is none to remove. mq_unlink(3).
///
/// # Errors
/// EACCES: the manager may not.
pub fn unlink_queue(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the call reads the name, which lives until it is over.
    if unsafe { libc::mq_unlink(name.as_ptr()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Throws away what waits in a queue; false if it is none. mq_receive(3).
pub(super) fn flush(fd: impl AsFd) -> bool {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: all bytes zero is a valid mq_attr.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one mq_attr to the live local.
    if unsafe { libc::mq_getattr(fd, &raw mut attributes) } != 0 {
        return false;
    }
    let size = usize::try_from(attributes.mq_msgsize).unwrap_or(0);
    let mut message = vec![0u8; size];
    for _ in 0..attributes.mq_curmsgs {
        let to = message.as_mut_ptr().cast();
        // SAFETY: the call writes at most `size` bytes to the live buffer, and no priority.
        if unsafe { libc::mq_receive(fd, to, size, std::ptr::null_mut()) } < 0 {
            break;
        }
    }
    true
}
