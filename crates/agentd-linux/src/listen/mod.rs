//! What socket units listen on: sockets, FIFOs, message queues and special files, made as their unit says. socket(7), unix(7), ip(7),
//! fifo(7), systemd.socket(5).
//!
//! # Invariants
//! - Everything is close-on-exec and never blocks from birth.
//! - At a path nothing is removed but a socket that nobody listens on; symbolic links are not followed.

mod connection;
mod file;
mod lent;
mod node;
mod options;
mod queue;

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use agentd_unit::sections::{BindIpv6Only, Listen, ListenAddress, ListenKind, SocketSection};
use nix::sys::socket::{
    AddressFamily, Backlog, NetlinkAddr, SockFlag, SockType, SockaddrLike, SockaddrStorage, UnixAddr,
    VsockAddr,
};

pub use connection::{Accepted, Origin, accept, flush};
pub use node::{Node, Owner};
use options::Options;
pub use queue::unlink_queue;

/// A context of vsock(7) that stands for every one.
const VMADDR_CID_ANY: u32 = u32::MAX;

/// Why something cannot be listened on: the key and address, the call, and what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{key}={address}: {call}{hint}")]
pub struct ListenError {
    key: &'static str,
    address: String,
    call: String,
    hint: &'static str,
    #[source]
    source: io::Error,
}

/// A step that failed: what was called, what to do about it, and the error.
#[derive(Debug)]
struct Failure {
    call: String,
    hint: &'static str,
    error: io::Error,
}

impl Failure {
    fn of(call: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let call = call.to_string();
        move |error| Self { call, hint: hint(&error), error }
    }
}

/// What to do about the errors that people meet.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => ", as another process has this address; stop it or take another one",
        Some(libc::EADDRNOTAVAIL) => ", as no interface has this address; FreeBind=yes listens all the same",
        Some(libc::EACCES | libc::EPERM) => ", as the manager may not",
        _ => "",
    }
}

/// One open socket, FIFO, queue or file.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    node: Option<Node>,
}

impl Listener {
    /// Makes what one `Listen…` line of a unit says. `owner` is who gets the file.
    ///
    /// # Errors
    /// The address is in use, the manager may not, an option is not there for this kind of socket.
    pub fn open(listen: &Listen, section: &SocketSection, owner: Owner) -> Result<Self, ListenError> {
        let made = match &listen.address {
            ListenAddress::Path(path) => match listen.kind {
                ListenKind::Fifo => file::fifo(path, section, owner),
                ListenKind::Special => file::special(path, section).map(|fd| Self { fd, node: None }),
                ListenKind::MessageQueue => queue::queue(path, section, owner),
                _ => at_path(path, listen.kind, section, owner),
            },
            address => elsewhere(address, listen.kind, section).map(|fd| Self { fd, node: None }),
        };
        made.map_err(|failure| ListenError {
            key: listen.kind.key(),
            address: listen.address.to_string(),
            call: failure.call,
            hint: failure.hint,
            source: failure.error,
        })
    }

    /// One that was made before this program was executed, with its file.
    #[must_use]
    pub const fn resumed(fd: OwnedFd, node: Option<Node>) -> Self {
        Self { fd, node }
    }

    /// Makes the links to its file, in the place of other links but of nothing else: `Symlinks`. What could not be made.
    #[must_use]
    pub fn link(&self, section: &SocketSection) -> Vec<ListenError> {
        let Some(node) = &self.node else { return Vec::new() };
        let failed = |(link, failure): (&PathBuf, Failure)| ListenError {
            key: "Symlinks",
            address: link.display().to_string(),
            call: failure.call,
            hint: failure.hint,
            source: failure.error,
        };
        let links = section.symlinks.iter();
        let made = links.map(|link| (link, node::link(&node.path, link, section.directory_mode)));
        made.filter_map(|(link, made)| Some(failed((link, made.err()?)))).collect()
    }

    /// Its file, where it has one.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket with a file.
fn at_path(
    path: &Path,
    kind: ListenKind,
    section: &SocketSection,
    owner: Owner,
) -> Result<Listener, Failure> {
    node::make_folders(path, section.directory_mode)?;
    let socket_type = socket_type(kind);
    node::clear(path, socket_type)?;
    let fd = socket(AddressFamily::Unix, socket_type)?;
    Options { section, family: AddressFamily::Unix, socket_type }.set(&fd)?;
    let address = UnixAddr::new(path).map_err(|e| Failure::of("bind")(e.into()))?;
    bind(&fd, &address)?;
    let settled = Node::settle(path, section.mode, owner);
    match settled.and_then(|node| begin(&fd, socket_type, section.backlog).map(|()| node)) {
        Ok(node) => Ok(Listener { fd, node: Some(node) }),
        Err(failure) => {
            // Nobody will ever listen there. What cannot be removed is replaced by the next start.
            let _left = fs::remove_file(path);
            Err(failure)
        }
    }
}

/// A socket without a file.
fn elsewhere(address: &ListenAddress, kind: ListenKind, section: &SocketSection) -> Result<OwnedFd, Failure> {
    let socket_type = socket_type(kind);
    let finish = |family, address: &dyn SockaddrLike, fd: OwnedFd| {
        Options { section, family, socket_type }.set(&fd)?;
        bind(&fd, address)?;
        begin(&fd, socket_type, section.backlog)?;
        Ok(fd)
    };
    match address {
        ListenAddress::Abstract(name) => {
            let address =
                UnixAddr::new_abstract(name.as_bytes()).map_err(|e| Failure::of("bind")(e.into()))?;
            finish(AddressFamily::Unix, &address, socket(AddressFamily::Unix, socket_type)?)
        }
        ListenAddress::Inet(address) => {
            let family = family_of(address);
            finish(family, &SockaddrStorage::from(*address), socket(family, socket_type)?)
        }
        // All addresses: of both kinds by one socket, where the kernel has IPv6.
        ListenAddress::Port(port) => match socket(AddressFamily::Inet6, socket_type) {
            Ok(fd) => {
                let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port));
                finish(AddressFamily::Inet6, &SockaddrStorage::from(address), fd)
            }
            Err(_) if section.bind_ipv6_only != BindIpv6Only::Ipv6Only => {
                let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port));
                let fd = socket(AddressFamily::Inet, socket_type)?;
                finish(AddressFamily::Inet, &SockaddrStorage::from(address), fd)
            }
            Err(failure) => Err(failure),
        },
        ListenAddress::Vsock(context, port) => {
            let address = VsockAddr::new(context.unwrap_or(VMADDR_CID_ANY), *port);
            finish(AddressFamily::Vsock, &address, socket(AddressFamily::Vsock, socket_type)?)
        }
        ListenAddress::Netlink(family, group) => netlink(family, *group, section),
        ListenAddress::Path(path) => {
            Err(Failure::of(path.display())(io::Error::from_raw_os_error(libc::EINVAL)))
        }
    }
}

/// A socket of netlink(7), with membership in one group; 0: none.
fn netlink(family: &str, group: u32, section: &SocketSection) -> Result<OwnedFd, Failure> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let fd = options::raw_socket(libc::AF_NETLINK, flags, options::netlink_protocol(family))
        .map_err(Failure::of("socket"))?;
    Options { section, family: AddressFamily::Netlink, socket_type: SockType::Raw }.set(&fd)?;
    let groups = if group == 0 { 0 } else { 1u32.checked_shl(group - 1).unwrap_or(0) };
    bind(&fd, &NetlinkAddr::new(0, groups))?;
    Ok(fd)
}

fn family_of(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

const fn socket_type(kind: ListenKind) -> SockType {
    match kind {
        ListenKind::Datagram => SockType::Datagram,
        ListenKind::SequentialPacket => SockType::SeqPacket,
        ListenKind::Netlink => SockType::Raw,
        ListenKind::Stream | ListenKind::Fifo | ListenKind::Special | ListenKind::MessageQueue => {
            SockType::Stream
        }
    }
}

fn socket(family: AddressFamily, socket_type: SockType) -> Result<OwnedFd, Failure> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    nix::sys::socket::socket(family, socket_type, flags, None).map_err(|e| Failure::of("socket")(e.into()))
}

fn bind(fd: &OwnedFd, address: &dyn SockaddrLike) -> Result<(), Failure> {
    nix::sys::socket::bind(fd.as_raw_fd(), address).map_err(|e| Failure::of("bind")(e.into()))
}

/// listen(2), for sockets that have connections. What the kernel bounds it does by itself (`net.core.somaxconn`).
fn begin(fd: &OwnedFd, socket_type: SockType, backlog: u32) -> Result<(), Failure> {
    if !matches!(socket_type, SockType::Stream | SockType::SeqPacket) {
        return Ok(());
    }
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    let backlog = Backlog::new(backlog).unwrap_or(Backlog::MAXCONN);
    nix::sys::socket::listen(fd, backlog).map_err(|e| Failure::of("listen")(e.into()))
}

#[cfg(test)]
mod tests;
