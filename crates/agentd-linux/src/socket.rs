//! Unix sockets of the manager's own: binding them safely, and who is at the other end. unix(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};

use crate::pidfd::PidFd;

/// Who connected, as the kernel noted it at connect(2).
#[derive(Debug)]
pub struct Peer {
    /// Its number then.
    pub pid: u32,
    /// Its effective user then.
    pub uid: u32,
    /// Its effective group then.
    pub gid: u32,
    /// The process held by descriptor, on Linux 6.5 and later; None also where it is gone.
    pub pidfd: Option<PidFd>,
}

/// Who is at the other end: SO_PEERCRED, and SO_PEERPIDFD where there is one.
///
/// # Errors
/// None that a connected stream can have.
pub fn peer(stream: &impl AsFd) -> io::Result<Peer> {
    let who = getsockopt(stream, PeerCredentials)?;
    let pid = u32::try_from(who.pid()).unwrap_or(0);
    Ok(Peer { pid, uid: who.uid(), gid: who.gid(), pidfd: peer_pidfd(stream) })
}

/// SO_PEERPIDFD, Linux 6.5; libc does not have it.
const SO_PEERPIDFD: libc::c_int = 77;

/// None on older kernels and where the peer was reaped already.
fn peer_pidfd(stream: &impl AsFd) -> Option<PidFd> {
    let mut fd: RawFd = -1;
    let mut length = size_of::<RawFd>() as libc::socklen_t;
    let (value, length) = ((&raw mut fd).cast(), &raw mut length);
    // SAFETY: the call writes at most `length` bytes, one int, to the live local.
    let result = unsafe {
        libc::getsockopt(stream.as_fd().as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, value, length)
    };
    if result != 0 || fd < 0 {
        return None;
    }
    // SAFETY: the call succeeded, so `fd` is open and we are its only owner.
    Some(PidFd::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Connects to a socket with a path, of whichever kind it is, without waiting for anybody.
///
/// # Errors
/// Those of connect(2): EAGAIN where its queue is full, ECONNREFUSED where nobody listens.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let address = UnixAddr::new(path)?;
    let mut last = Errno::EPROTOTYPE;
    for kind in [SockType::Stream, SockType::SeqPacket, SockType::Datagram] {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Unix, kind, flags, None)?;
        match connect(fd.as_raw_fd(), &address) {
            Ok(()) => {
                crate::descriptor::set_blocking(&fd)?;
                return Ok(fd);
            }
            Err(Errno::EPROTOTYPE) => {}
            Err(errno) => last = errno,
        }
        if last != Errno::EPROTOTYPE {
            break;
        }
    }
    Err(last.into())
}

/// Removes a socket at `path`, and nothing but a socket; symbolic links are not followed. Nothing there is fine.
/// Whether somebody still listens is not asked: hold the lock of the folder first.
///
/// # Errors
/// EADDRINUSE: what stands there is no socket. EACCES, EROFS.
pub(crate) fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Binds a listener at `path` with this mode. A socket that nobody listens on is a left-over of a former run and
/// is replaced. The mode stands before anyone can connect. Never blocks; close-on-exec.
///
/// # Errors
/// EADDRINUSE: what stands there is no socket, or somebody listens on it. EACCES, EROFS, ENOENT; ENAMETOOLONG for
/// more than 107 bytes.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if is_listening(path)? {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    remove_socket(path)?;
    let socket = stream_socket()?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    nix::sys::socket::listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(UnixListener::from(socket))
}

/// Clients that may wait for an accept: the most that a kernel before 5.4 takes unasked.
const BACKLOG: i32 = 128;

fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags, None)?)
}

/// Whether somebody listens at the path. Asked without waiting: a listener whose queue is full is one too.
fn is_listening(path: &Path) -> io::Result<bool> {
    match connect(stream_socket()?.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) | Err(Errno::EAGAIN) => Ok(true),
        // EPROTOTYPE: a socket of another type, which its owner has bound and may be reading.
        Err(Errno::EPROTOTYPE) => Ok(true),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_socket_that_nobody_listens_on_is_replaced() {
        let folder = TempDir::new();
        let path = folder.path().join("s");
        drop(listen(&path, 0o600).unwrap());
        let _listener = listen(&path, 0o600).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn what_is_not_ours_is_refused_and_untouched() {
        let folder = TempDir::new();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "x").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let live = folder.path().join("live");
        let _live = UnixListener::bind(&live).unwrap();
        for path in [&victim, &link, &live] {
            let error = listen(path, 0o600).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{}", path.display());
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"x");
        assert!(link.is_symlink());
        UnixStream::connect(&live).unwrap();
    }

    #[test]
    fn a_listener_with_a_full_queue_is_alive() {
        let folder = TempDir::new();
        let path = folder.path().join("full");
        let socket = stream_socket().unwrap();
        bind(socket.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        nix::sys::socket::listen(&socket, Backlog::new(0).unwrap()).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        assert_eq!(listen(&path, 0o600).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
    }

    #[test]
    fn the_mode_is_the_one_asked_for() {
        let folder = TempDir::new();
        let path = folder.path().join("s");
        let _listener = listen(&path, 0o660).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
    }

    #[test]
    fn the_peer_is_the_one_that_connected() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = peer(&ours).unwrap();
        assert_eq!((peer.pid, peer.uid), (std::process::id(), nix::unistd::getuid().as_raw()));
        assert_eq!(peer.pidfd.is_some(), crate::spawn::release() >= (6, 5));
    }
}
