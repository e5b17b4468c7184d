//! Who is at the other end of a connection, as the kernel noted it at connect(2).

use std::io;

use tokio::net::UnixStream;

use super::access::Peer;

/// Reads the peer's credentials (SO_PEERCRED, unix(7)) and its groups as they are now.
///
/// # Errors
/// The peer is gone.
pub fn identify(stream: &UnixStream) -> io::Result<Peer> {
    let peer = agentd_linux::socket::peer(stream)?;
    // A peer that ended keeps its user, but has no groups that could help it, and lives in no unit.
    let gone = peer.pidfd.as_ref().is_some_and(|pidfd| pidfd.has_ended().unwrap_or(true));
    let mut groups = if gone { Vec::new() } else { groups(peer.pid) };
    groups.push(peer.gid);
    Ok(Peer { pid: peer.pid, uid: peer.uid, groups })
}

/// The `Groups` line of proc_pid_status(5).
fn groups(pid: u32) -> Vec<u32> {
    let status = agentd_linux::small::read_path(&format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    line.into_iter().flat_map(str::split_whitespace).filter_map(|gid| gid.parse().ok()).collect()
}
