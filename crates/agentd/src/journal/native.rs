//! journald's native protocol: one datagram a message, <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.
//!
//! docs/adr/0003 says why this is not the `tracing-journald` crate.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentd_linux::{datagram, memfd};

use super::message::Message;
use super::queue::{Outlet, Refusal};

/// How long one attempt waits for a journal that does not read. The thread waits, nobody else; but it must see now
/// and then whether the socket is still the one to wait for.
const SEND_TIMEOUT: Duration = Duration::from_millis(200);

/// Fields that only this module writes: an event's field of that name gets `F_` before it.
const RESERVED: [&str; 12] = [
    "MESSAGE",
    "PRIORITY",
    "SYSLOG_IDENTIFIER",
    "SYSLOG_FACILITY",
    "SYSLOG_TIMESTAMP",
    "UNIT",
    "USER_UNIT",
    "INVOCATION_ID",
    "MESSAGE_ID",
    "CODE_FILE",
    "CODE_LINE",
    "TARGET",
];

/// journald, as far as it is there.
pub(crate) struct Journald {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    /// The unit fields are those of a user manager.
    user: bool,
    /// Whether the last message was taken.
    up: Arc<AtomicBool>,
}

impl Journald {
    pub(crate) fn new(path: PathBuf, user: bool, up: Arc<AtomicBool>) -> Self {
        Self { path, socket: None, user, up }
    }

    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(socket)
    }

    fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect()?,
        };
        let sent = match socket.send(payload) {
            // Too large for a datagram, or for the memory that datagrams may take.
            Err(error) if matches!(error.raw_os_error(), Some(EMSGSIZE | ENOBUFS)) => {
                let copy = memfd::sealed(c"agentd-journal", payload)?;
                datagram::send_descriptor(&socket, &copy)
            }
            sent => sent.map(|_| ()),
        };
        // Kept only while it works: whatever went wrong, the next attempt begins with the path.
        if sent.is_ok() {
            self.socket = Some(socket);
        }
        sent
    }
}

/// errno(3) on every architecture of Linux that agentd is built for; the standard library has no kind for them.
const EMSGSIZE: i32 = 90;
const ENOBUFS: i32 = 105;

impl Outlet for Journald {
    fn deliver(&mut self, message: &Message) -> Result<(), Refusal> {
        let payload = encode(message, self.user);
        let mut sent = self.send(&payload);
        if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused) {
            // The old socket is nobody's any more; the path may already lead to a new one.
            sent = self.send(&payload);
        }
        self.up.store(sent.is_ok(), Ordering::Relaxed);
        // Nothing that the journal could say of one message is final, so none is given up for it.
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Refusal::Absent,
            _ => Refusal::Later,
        })
    }
}

/// A message as journald reads it.
pub(crate) fn encode(message: &Message, user: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.bytes() + 256);
    put(&mut out, "MESSAGE", &message.text);
    put(&mut out, "PRIORITY", &message.level.number().to_string());
    put(&mut out, "SYSLOG_IDENTIFIER", "agentd");
    // LOG_DAEMON, as systemd's own.
    put(&mut out, "SYSLOG_FACILITY", "3");
    // When it was said; the journal knows only when it came, which for the first ones of a boot is later.
    let stamp = crate::log::stamp::format(message.realtime.0);
    put(&mut out, "SYSLOG_TIMESTAMP", &String::from_utf8_lossy(&stamp));
    let [unit_name, object_name, run_name] = if user {
        ["USER_UNIT", "OBJECT_SYSTEMD_USER_UNIT", "USER_INVOCATION_ID"]
    } else {
        // `journalctl -u` takes the first from PID 1 and the second from root.
        ["UNIT", "OBJECT_SYSTEMD_UNIT", "INVOCATION_ID"]
    };
    if let Some(unit) = &message.unit {
        put(&mut out, unit_name, unit.as_str());
        put(&mut out, object_name, unit.as_str());
    }
    if let Some(run) = message.invocation {
        put(&mut out, run_name, &run.to_string());
    }
    if let Some(id) = &message.message_id {
        put(&mut out, "MESSAGE_ID", id);
    }
    if let Some((file, line)) = message.code {
        put(&mut out, "CODE_FILE", file);
        put(&mut out, "CODE_LINE", &line.to_string());
    }
    put(&mut out, "TARGET", message.target);
    for (name, value) in &message.fields {
        put(&mut out, &field_name(name), value);
    }
    out
}

/// A field's name as journald allows it: capitals, digits and underscores, no underscore in front.
fn field_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.trim_start_matches('_').chars().map(allowed).collect();
    if RESERVED.contains(&name.as_str()) || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        format!("F_{name}")
    } else {
        name
    }
}

/// One field: in a line where the value has none, else with its length.
fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        out.push(b'=');
    }
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}
