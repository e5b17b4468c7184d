//! Listeners that a manager before has passed to a service which outlived it: taken back from the service.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use agentd_unit::sections::{Listen, ListenAddress, ListenKind};
use nix::sys::socket::{SockaddrStorage, UnixAddr, getsockname, getsockopt, sockopt};

use super::{Listener, Node, socket_type};
use crate::pidfd::PidFd;

impl Listener {
    /// A copy of what a process listens on by this line, if it does: of sockets alone, as FIFOs, files and queues are
    /// opened again by their names, and those of netlink(7) by anybody. pidfd_getfd(2), Linux 5.6.
    ///
    /// # Errors
    /// EPERM: the process may not be traced by us, ptrace(2). EACCES: nor looked at in /proc.
    pub fn lent(listen: &Listen, pid: u32) -> io::Result<Option<Self>> {
        let Some(process) = PidFd::open(pid)? else { return Ok(None) };
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
            let is_socket = fs::read_link(entry.path())
                .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"socket:"));
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(number) = number.filter(|_| is_socket) else { continue };
            // It may have been closed meanwhile.
            let Ok(fd) = process.copy_descriptor(number) else { continue };
            if listens_on(&fd, listen) {
                let node = match &listen.address {
                    ListenAddress::Path(path) => Some(node_at(path)),
                    _ => None,
                };
                return Ok(Some(Self { fd, node }));
            }
        }
        Ok(None)
    }

    /// Whether such a line makes a socket, which only who has it can give back.
    #[must_use]
    pub const fn is_lent(listen: &Listen) -> bool {
        matches!(listen.kind, ListenKind::Stream | ListenKind::Datagram | ListenKind::SequentialPacket)
    }
}

fn listens_on(fd: &OwnedFd, listen: &Listen) -> bool {
    let is_kind = Listener::is_lent(listen)
        && getsockopt(fd, sockopt::SockType).is_ok_and(|kind| kind == socket_type(listen.kind));
    let connects = listen.kind != ListenKind::Datagram;
    if !is_kind || connects && !getsockopt(fd, sockopt::AcceptConn).unwrap_or(false) {
        return false;
    }
    let number = fd.as_fd().as_raw_fd();
    match &listen.address {
        ListenAddress::Path(path) => {
            getsockname::<UnixAddr>(number).is_ok_and(|own| own.path() == Some(path.as_path()))
        }
        ListenAddress::Abstract(name) => {
            getsockname::<UnixAddr>(number).is_ok_and(|own| own.as_abstract() == Some(name.as_bytes()))
        }
        address => getsockname::<SockaddrStorage>(number).is_ok_and(|own| is_at(&own, address)),
    }
}

fn is_at(own: &SockaddrStorage, wanted: &ListenAddress) -> bool {
    match wanted {
        ListenAddress::Inet(address) => super::connection::address(own) == Some(*address),
        ListenAddress::Port(port) => super::connection::address(own)
            .is_some_and(|own| own.port() == *port && own.ip().is_unspecified()),
        ListenAddress::Vsock(context, port) => own
            .as_vsock_addr()
            .is_some_and(|own| own.port() == *port && own.cid() == context.unwrap_or(super::VMADDR_CID_ANY)),
        ListenAddress::Path(_) | ListenAddress::Abstract(_) | ListenAddress::Netlink(..) => false,
    }
}

/// The socket at a path; one that is there no more is made anew when somebody needs it.
fn node_at(path: &Path) -> Node {
    let meta = fs::symlink_metadata(path).ok().filter(|meta| meta.file_type().is_socket());
    let (device, inode) = meta.map_or((0, 0), |meta| (meta.dev(), meta.ino()));
    Node { path: path.to_owned(), device, inode }
}
