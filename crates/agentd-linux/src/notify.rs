//! The socket that services send READY=1 and the like to: sd_notify(3), unix(7).
//!
//! Who sent a datagram is what the kernel says of the sender (SCM_CREDENTIALS, and from Linux 6.5 SCM_PIDFD), never
//! what the datagram says.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::pidfd::PidFd;

/// The longest datagram that is taken. systemd takes 4096 bytes; descriptions of agents may be longer.
pub const MAX_DATAGRAM: usize = 64 * 1024;

/// SCM_MAX_FD of the kernel: the most descriptors in one datagram.
const MAX_FDS: usize = 253;

/// SO_PASSPIDFD and SCM_PIDFD, Linux 6.5; libc has neither.
const SO_PASSPIDFD: libc::c_int = 76;
const SCM_PIDFD: libc::c_int = 4;

/// Room for 10,000 short messages while the manager is busy or stopped.
const RECEIVE_BUFFER: libc::c_int = 8 * 1024 * 1024;

/// Who sent a datagram, as the kernel says it.
#[derive(Debug)]
pub struct Sender {
    /// Its number, when it sent. It may be gone by now, and the number another's: with a pidfd that can be told.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// The sender held by descriptor, on Linux 6.5 and later.
    pub pidfd: Option<PidFd>,
}

/// One datagram.
#[derive(Debug)]
pub struct Datagram {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Who sent it.
    pub sender: Sender,
    /// Descriptors that came with it, close-on-exec: for FDSTORE=1 and BARRIER=1. Dropping them closes them.
    pub fds: Vec<OwnedFd>,
}

/// What the socket had.
#[derive(Debug)]
pub enum Received {
    /// A whole datagram.
    Datagram(Datagram),
    /// One that was longer than [`MAX_DATAGRAM`], had more descriptors than can be sent, or had no credentials. It
    /// is gone, and so are its descriptors.
    Refused {
        /// The sender, if the kernel said who.
        sender: Option<Sender>,
    },
}

/// The socket. Readable when there is a datagram; never blocks; close-on-exec.
#[derive(Debug)]
pub struct NotifySocket {
    socket: UnixDatagram,
    buffer: Vec<u8>,
}

impl NotifySocket {
    /// Binds the socket at `path`, for everyone to send to. A socket that was left there is replaced, since the lock
    /// of the folder says that no other manager uses it; anything else that stands there is not touched.
    ///
    /// # Errors
    /// EADDRINUSE: something that is no socket is at the path. ENOENT: no such folder. EACCES, EROFS.
    pub fn bind(path: &Path) -> io::Result<Self> {
        crate::socket::remove_socket(path)?;
        let socket = UnixDatagram::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))?;
        socket.set_nonblocking(true)?;
        set_option(&socket, libc::SO_PASSCRED, 1)?;
        if let Err(error) = set_option(&socket, SO_PASSPIDFD, 1)
            && error.raw_os_error() != Some(libc::ENOPROTOOPT)
        {
            return Err(error);
        }
        // Beyond the system's maximum only with CAP_NET_ADMIN; without it the maximum.
        if set_option(&socket, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER).is_err() {
            set_option(&socket, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
        }
        Ok(Self { socket, buffer: vec![0; MAX_DATAGRAM] })
    }

    /// The next datagram, or None. A caller bounds how many it takes in one turn, so that a flood delays nobody.
    ///
    /// # Errors
    /// EMFILE: a descriptor that was sent could not be taken; ENOMEM.
    pub fn receive(&mut self) -> io::Result<Option<Received>> {
        let mut control = [MaybeUninit::<u64>::uninit(); CONTROL_WORDS];
        let mut part = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // SAFETY: all bytes zero is a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the header points to the buffer and the control words, which live, with their true lengths.
        let n = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        if n < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let (sender, fds) = parse_control(&message);
        let cut = message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
        let bytes = self.buffer.get(..n as usize).unwrap_or_default().to_vec();
        Ok(Some(match sender {
            Some(sender) if !cut => Received::Datagram(Datagram { bytes, sender, fds }),
            sender => Received::Refused { sender },
        }))
    }
}

impl From<OwnedFd> for NotifySocket {
    /// Takes over a socket that [`NotifySocket::bind`] has made in this process before it was executed again.
    fn from(fd: OwnedFd) -> Self {
        Self { socket: UnixDatagram::from(fd), buffer: vec![0; MAX_DATAGRAM] }
    }
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for NotifySocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Room for the credentials, one pidfd and all descriptors, in words, which align it as cmsghdr needs.
const CONTROL_WORDS: usize = {
    let credentials = size_of::<libc::cmsghdr>() + size_of::<libc::ucred>().next_multiple_of(8);
    let pidfd = size_of::<libc::cmsghdr>() + 8;
    let fds = size_of::<libc::cmsghdr>() + (MAX_FDS * 4).next_multiple_of(8);
    (credentials + pidfd + fds) / 8
};

/// Sets an option of SOL_SOCKET that is an int.
fn set_option(socket: &UnixDatagram, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: the call reads one int from the live local.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the sender and every descriptor out of the control data: what is not taken would leak.
fn parse_control(message: &libc::msghdr) -> (Option<Sender>, Vec<OwnedFd>) {
    let (mut credentials, mut pidfd, mut fds) = (None, None, Vec::new());
    // SAFETY: recvmsg has filled in the header and the control data that it points to.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the header is inside the control data, and the kernel aligned it.
        let part = unsafe { *header };
        // SAFETY: as above; the data follow the header.
        let data = unsafe { libc::CMSG_DATA(header) };
        let length = (part.cmsg_len as usize).saturating_sub(data as usize - header as usize);
        if part.cmsg_level == libc::SOL_SOCKET {
            match part.cmsg_type {
                libc::SCM_CREDENTIALS if length >= size_of::<libc::ucred>() => {
                    // SAFETY: the data are a ucred, as type and length say; it may be unaligned.
                    credentials = Some(unsafe { data.cast::<libc::ucred>().read_unaligned() });
                }
                // SAFETY: the kernel wrote as many descriptors as the length says.
                libc::SCM_RIGHTS => fds.extend(unsafe { take_fds(data, length) }),
                // SAFETY: as above, of one descriptor.
                SCM_PIDFD => pidfd = unsafe { take_fds(data, length) }.pop(),
                _ => {}
            }
        }
        // SAFETY: both point into the control data that recvmsg filled in.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    let sender = credentials.and_then(|who| {
        // 0 is a sender outside of our pid namespace.
        let pid = u32::try_from(who.pid).ok()?;
        Some(Sender { pid, uid: who.uid, gid: who.gid, pidfd: pidfd.map(PidFd::from) })
    });
    (sender, fds)
}

/// Takes over the descriptors that the kernel has just opened for us.
///
/// # Safety
/// `data` holds `length` bytes of descriptors that recvmsg(2) wrote and that nobody else has taken.
unsafe fn take_fds(data: *const u8, length: usize) -> Vec<OwnedFd> {
    let numbers = (0..length / size_of::<RawFd>()).map(|index| {
        // SAFETY: the index is below the count that the length makes; the address may be unaligned.
        unsafe { data.cast::<RawFd>().wrapping_add(index).read_unaligned() }
    });
    // A pidfd that could not be made comes as a negative errno.
    numbers
        .filter(|number| *number >= 0)
        .map(|number| {
            // SAFETY: recvmsg opened it for us, and each number is taken once.
            unsafe { OwnedFd::from_raw_fd(number) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::testing::TempDir;

    fn datagram(socket: &mut NotifySocket) -> Datagram {
        match socket.receive().unwrap().unwrap() {
            Received::Datagram(datagram) => datagram,
            Received::Refused { sender } => panic!("refused from {sender:?}"),
        }
    }

    fn pair() -> (TempDir, NotifySocket, UnixDatagram) {
        let folder = TempDir::new();
        let path = folder.path().join("notify");
        let socket = NotifySocket::bind(&path).unwrap();
        let client = UnixDatagram::unbound().unwrap();
        client.connect(&path).unwrap();
        (folder, socket, client)
    }

    #[test]
    fn a_datagram_comes_with_its_sender() {
        let (_folder, mut socket, client) = pair();
        assert!(socket.receive().unwrap().is_none());
        client.send(b"READY=1\n").unwrap();
        let got = datagram(&mut socket);
        assert_eq!(got.bytes, b"READY=1\n");
        assert_eq!(got.sender.pid, std::process::id());
        assert_eq!(got.sender.uid, nix::unistd::getuid().as_raw());
        assert!(got.fds.is_empty());
        assert!(socket.receive().unwrap().is_none());
    }

    #[test]
    fn the_sender_is_held_by_descriptor_where_the_kernel_can() {
        let (_folder, mut socket, client) = pair();
        client.send(b"READY=1").unwrap();
        let got = datagram(&mut socket);
        assert_eq!(got.sender.pidfd.is_some(), crate::spawn::release() >= (6, 5));
        if let Some(pidfd) = got.sender.pidfd {
            assert_eq!(pidfd.send_signal(0).unwrap(), crate::pidfd::Delivery::Sent);
        }
    }

    #[test]
    fn descriptors_come_with_it_and_end_at_an_exec() {
        let (_folder, mut socket, client) = pair();
        let (read, write) = std::io::pipe().unwrap();
        crate::datagram::send_descriptor(&client, &write).unwrap();
        drop(write);
        let got = datagram(&mut socket);
        assert!(got.bytes.is_empty());
        let fd = got.fds.into_iter().next().unwrap();
        let flags = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GETFD).unwrap();
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        std::fs::File::from(fd).write_all(b"x").unwrap();
        drop(read);
    }

    #[test]
    fn a_datagram_that_is_too_long_is_refused_and_the_next_is_whole() {
        let (_folder, mut socket, client) = pair();
        client.send(&vec![b'x'; MAX_DATAGRAM + 1]).unwrap();
        client.send(b"STATUS=short").unwrap();
        assert!(matches!(socket.receive().unwrap(), Some(Received::Refused { sender: Some(_) })));
        assert_eq!(datagram(&mut socket).bytes, b"STATUS=short");
    }

    #[test]
    fn a_socket_left_by_another_run_is_replaced_and_a_file_is_not() {
        let folder = TempDir::new();
        let path = folder.path().join("notify");
        drop(NotifySocket::bind(&path).unwrap());
        drop(NotifySocket::bind(&path).unwrap());
        let file = folder.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert_eq!(NotifySocket::bind(&file).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }

    #[test]
    fn everyone_may_send() {
        let (folder, _socket, _client) = pair();
        let mode = std::fs::metadata(folder.path().join("notify")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o777);
    }
}
