//! Single connections: taking one, who is at its other end, and throwing away what waits.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockFlag, SockaddrStorage, accept4, getpeername, getsockname, recv};

use crate::socket::peer;

/// A connection that was taken.
#[derive(Debug)]
pub struct Accepted {
    /// It; close-on-exec.
    pub fd: OwnedFd,
    /// Who is at the other end.
    pub from: Origin,
}

/// Where a connection comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Over the internet: our address and theirs.
    Inet(SocketAddr, SocketAddr),
    /// From a process of this machine: its number and its user.
    Local(u32, u32),
    /// From a virtual machine or its host: the context and the port.
    Vsock(u32, u32),
    /// Nothing is known of it.
    Unknown,
}

impl Origin {
    /// What `MaxConnectionsPerSource` counts by.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        match self {
            Self::Inet(_, theirs) => Some(plain(theirs.ip()).to_string()),
            Self::Local(_, uid) => Some(format!("uid {uid}")),
            Self::Vsock(context, _) => Some(format!("vsock:{context}")),
            Self::Unknown => None,
        }
    }

    /// Address and port of the other end, where it has them.
    #[must_use]
    pub fn remote(&self) -> Option<(IpAddr, u16)> {
        match self {
            Self::Inet(_, theirs) => Some((plain(theirs.ip()), theirs.port())),
            Self::Local(..) | Self::Vsock(..) | Self::Unknown => None,
        }
    }
}

/// An IPv4 address that came in by a socket of IPv6 is one of IPv4.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// As the instance of a service is called for it, behind the number: systemd's form.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(ours, theirs) => {
                let (our, their) = (plain(ours.ip()), plain(theirs.ip()));
                write!(f, "{our}:{}-{their}:{}", ours.port(), theirs.port())
            }
            Self::Local(pid, uid) => write!(f, "{pid}-{uid}"),
            Self::Vsock(context, port) => write!(f, "vsock:{context}:{port}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// Takes one connection, without waiting; nothing where nobody is there (any more). accept(2).
///
/// # Errors
/// EMFILE, ENFILE, ENOBUFS, ENOMEM: the connection still waits.
pub fn accept(listener: impl AsFd) -> io::Result<Option<Accepted>> {
    match accept4(&listener, SockFlag::SOCK_CLOEXEC) {
        Ok(fd) => Ok(from(&fd).map(|from| Accepted { fd, from })),
        Err(errno @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM)) => Err(errno.into()),
        // Who came has gone, or the network said something about it: accept(2), "Error handling".
        Err(_) => Ok(None),
    }
}

impl Accepted {
    /// A connection that was taken before this program was executed.
    #[must_use]
    pub fn resumed(fd: OwnedFd) -> Self {
        let from = from(&fd).unwrap_or(Origin::Unknown);
        Self { fd, from }
    }
}

/// Nothing where the other end has gone already.
fn from(fd: &OwnedFd) -> Option<Origin> {
    let theirs: SockaddrStorage = getpeername(fd.as_raw_fd()).ok()?;
    if theirs.as_unix_addr().is_some() {
        return Some(peer(fd).map_or(Origin::Unknown, |peer| Origin::Local(peer.pid, peer.uid)));
    }
    if let Some(vsock) = theirs.as_vsock_addr() {
        return Some(Origin::Vsock(vsock.cid(), vsock.port()));
    }
    let ours: SockaddrStorage = getsockname(fd.as_raw_fd()).ok()?;
    Some(match (address(&ours), address(&theirs)) {
        (Some(ours), Some(theirs)) => Origin::Inet(ours, theirs),
        _ => Origin::Unknown,
    })
}

pub(super) fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage.as_sockaddr_in().map(|four| SocketAddr::V4((*four).into()));
    four.or_else(|| storage.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into())))
}

/// Throws away all that waits: connections are taken and closed, datagrams, messages and bytes are read. A service may
/// have made what it shares with us wait, so it is told first that it does not.
///
/// # Errors
/// EMFILE and the like.
pub fn flush(listener: impl AsFd) -> io::Result<()> {
    let fd = listener.as_fd();
    crate::descriptor::set_nonblocking(fd)?;
    if super::queue::flush(fd) {
        return Ok(());
    }
    // Bounded, so that whoever keeps sending keeps nobody else from being served.
    for _ in 0..10_000 {
        match accept4(fd, SockFlag::SOCK_CLOEXEC) {
            Ok(connection) => drop(connection),
            Err(Errno::ECONNABORTED | Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(()),
            Err(Errno::EINVAL | Errno::EOPNOTSUPP | Errno::ENOTSOCK) => match read_away(fd) {
                Ok(()) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            },
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn read_away(fd: impl AsFd) -> Result<(), Errno> {
    let mut buffer = [0; 4096];
    match recv(fd.as_fd().as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
        Err(Errno::ENOTSOCK) => nix::unistd::read(fd, &mut buffer).map(|_| ()),
        other => other.map(|_| ()),
    }
}
