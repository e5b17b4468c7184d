//! Handing a descriptor over a connected datagram socket: unix(7), SCM_RIGHTS.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixDatagram;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

/// Sends an empty datagram that carries `fd` to the peer that `socket` is connected to. The receiver gets a
/// descriptor of its own; ours may be closed afterwards. Never raises SIGPIPE.
///
/// # Errors
/// As for send(2): ECONNREFUSED when nobody holds the other end, EAGAIN when the send timeout of the socket runs out.
pub fn send_descriptor(socket: &UnixDatagram, fd: impl AsFd) -> io::Result<()> {
    let fds = [fd.as_fd().as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&fds)];
    sendmsg::<()>(socket.as_raw_fd(), &[], &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_descriptor_arrives_as_one_of_the_receivers_own() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let (read, mut write) = std::io::pipe().unwrap();
        send_descriptor(&ours, &read).unwrap();
        drop(read);
        // While the descriptor is in flight or received the pipe has a reader, so a write succeeds.
        write.write_all(b"x").unwrap();
        drop(theirs);
        assert_eq!(write.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_peer_that_is_gone_refuses() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        drop(theirs);
        let error = send_descriptor(&ours, &ours).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
