//! What a service tells its manager: one sd_notify(3) datagram.
//!
//! Lines `KEY=VALUE`, anyone may send anything. Known keys become typed fields, other keys are kept by name, and a
//! value that makes no sense costs its own line only. Of a key that comes twice the first counts, as in systemd.
//!
//! # Invariants
//!
//! - Nothing here trusts the sender; who may say what is decided elsewhere, by its credentials.
//! - What is kept is no larger than the datagram.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The longest datagram in bytes, as in systemd; receive with MSG_TRUNC to see whether it was longer.
pub const NOTIFY_MAX: usize = 4096;

/// The most lines that are looked at.
const LINES_MAX: usize = 128;

/// The largest pid that Linux gives out (PID_MAX_LIMIT).
const PID_MAX: u32 = 4 << 20;

/// Why a datagram says nothing at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    /// Longer than [`NOTIFY_MAX`].
    #[error("notification is longer than {NOTIFY_MAX} bytes")]
    TooLong,
    /// A NUL before the end: the sender counts its bytes wrongly, and no line can be relied on.
    #[error("notification has a NUL byte in it")]
    Nul,
    /// Nothing in it.
    #[error("notification is empty")]
    Empty,
}

/// A line that was left aside, and why; for one debug record each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyProblem {
    /// The key, or the start of the line where it has none; cut short and without control characters.
    pub key: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for NotifyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// `WATCHDOG=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchdogSign {
    /// `1`: a sign of life.
    Alive,
    /// `trigger`: the service says of itself that it hangs.
    Trigger,
}

/// What one datagram says, sd_notify(3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyMessage {
    /// `READY=1`.
    pub ready: bool,
    /// `RELOADING=1`.
    pub reloading: bool,
    /// `STOPPING=1`.
    pub stopping: bool,
    /// `MONOTONIC_USEC=`: when the reload began, on CLOCK_MONOTONIC.
    pub monotonic: Option<Duration>,
    /// `STATUS=`: one line for people; may be empty.
    pub status: Option<String>,
    /// `NOTIFYACCESS=`: the service changes who may notify: `none`, `main`, `exec`, `all`.
    pub notify_access: Option<String>,
    /// `ERRNO=`: 0 to 4095, errno(3).
    pub errno: Option<i32>,
    /// `BUSERROR=`: an error by its D-Bus name, such as `org.freedesktop.DBus.Error.TimedOut`.
    pub bus_error: Option<String>,
    /// `MAINPID=`: the service says which process is the main one, 1 to 4194304.
    pub main_pid: Option<u32>,
    /// `MAINPIDFD=1`: the descriptor that came along is of the main process.
    pub main_pidfd: bool,
    /// `WATCHDOG=`.
    pub watchdog: Option<WatchdogSign>,
    /// `WATCHDOG_USEC=`: a new watchdog span; zero switches it off.
    pub watchdog_span: Option<Duration>,
    /// `EXTEND_TIMEOUT_USEC=`: the running timeout ends no sooner than this from now.
    pub extend_timeout: Option<Duration>,
    /// `FDSTORE=1`: keep the descriptors that came along.
    pub fd_store: bool,
    /// `FDSTOREREMOVE=1`: let those of this name go.
    pub fd_store_remove: bool,
    /// `FDNAME=`: the name of those descriptors; at most 255 characters, none of them a control character or `:`.
    pub fd_name: Option<String>,
    /// `FDPOLL=0`: keep them even when they hang up.
    pub fd_no_poll: bool,
    /// `BARRIER=1`: the descriptor that came along is to be closed once all before it was handled.
    pub barrier: bool,
    /// Every other key with its first value: `X_AGENTD_PROGRESS` and what later versions bring.
    pub other: BTreeMap<String, String>,
    /// Lines that were left aside.
    pub problems: Vec<NotifyProblem>,
}

impl NotifyMessage {
    /// Reads one datagram.
    ///
    /// # Errors
    /// If no line of it can be relied on.
    pub fn parse(datagram: &[u8]) -> Result<Self, NotifyError> {
        if datagram.len() > NOTIFY_MAX {
            return Err(NotifyError::TooLong);
        }
        // Some senders count the NUL of their C string.
        let text = datagram.strip_suffix(b"\0").unwrap_or(datagram);
        if text.contains(&0) {
            return Err(NotifyError::Nul);
        }
        let mut message = Self::default();
        let mut seen = Vec::new();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (count, line) in lines.enumerate() {
            if count == LINES_MAX {
                message.problem(line, "more lines than are looked at");
                break;
            }
            message.line(line, &mut seen);
        }
        let nothing = message == Self::default();
        if nothing { Err(NotifyError::Empty) } else { Ok(message) }
    }

    fn line<'a>(&mut self, line: &'a [u8], seen: &mut Vec<&'a [u8]>) {
        let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
            return self.problem(line, "no '=' in the line");
        };
        let (key, value) = (&line[..equals], &line[equals + 1..]);
        if seen.contains(&key) {
            return self.problem(key, "comes twice; the first one counts");
        }
        seen.push(key);
        let (Ok(name), Ok(value)) = (str::from_utf8(key), str::from_utf8(value)) else {
            return self.problem(key, "is not UTF-8");
        };
        if !is_key(name) {
            return self.problem(key, "is no key; keys are made of A-Z, 0-9 and _");
        }
        if let Err(reason) = self.assign(name, value) {
            self.problem(key, reason);
        }
    }

    fn assign(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "READY" => self.ready = flag(value)?,
            "RELOADING" => self.reloading = flag(value)?,
            "STOPPING" => self.stopping = flag(value)?,
            "BARRIER" => self.barrier = flag(value)?,
            "FDSTORE" => self.fd_store = flag(value)?,
            "FDSTOREREMOVE" => self.fd_store_remove = flag(value)?,
            "FDPOLL" => self.fd_no_poll = value == "0",
            "FDNAME" => self.fd_name = Some(fd_name(value)?),
            "STATUS" => self.status = Some(value.to_owned()),
            "NOTIFYACCESS" => self.notify_access = Some(access(value)?),
            "ERRNO" => self.errno = Some(number(value, 4095)? as i32),
            "BUSERROR" => self.bus_error = Some(value.to_owned()),
            "MAINPID" => match number(value, PID_MAX.into())? as u32 {
                0 => return Err("0 is no pid"),
                pid => self.main_pid = Some(pid),
            },
            "MAINPIDFD" => self.main_pidfd = flag(value)?,
            "WATCHDOG" => self.watchdog = Some(sign(value)?),
            "MONOTONIC_USEC" => self.monotonic = Some(micros(value)?),
            "WATCHDOG_USEC" => self.watchdog_span = Some(micros(value)?),
            "EXTEND_TIMEOUT_USEC" => self.extend_timeout = Some(micros(value)?),
            _ => {
                self.other.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn problem(&mut self, key: &[u8], reason: &'static str) {
        let start = &key[..key.len().min(40)];
        let key = String::from_utf8_lossy(start).escape_default().to_string();
        self.problems.push(NotifyProblem { key, reason });
    }
}

fn is_key(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// `1` is the only value that sd_notify(3) gives a meaning to; others are ignored, as systemd does.
fn flag(value: &str) -> Result<bool, &'static str> {
    if value == "1" { Ok(true) } else { Err("only the value 1 means something") }
}

fn sign(value: &str) -> Result<WatchdogSign, &'static str> {
    match value {
        "1" => Ok(WatchdogSign::Alive),
        "trigger" => Ok(WatchdogSign::Trigger),
        _ => Err("only the values 1 and trigger mean something"),
    }
}

fn access(value: &str) -> Result<String, &'static str> {
    match value {
        "none" | "main" | "exec" | "all" => Ok(value.to_owned()),
        _ => Err("is none of none, main, exec, all"),
    }
}

/// Digits only: no sign, no space, no second line of thought.
fn number(value: &str, most: u64) -> Result<u64, &'static str> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is no number");
    }
    value.parse().ok().filter(|number| *number <= most).ok_or("is too large")
}

/// Microseconds; the largest value is systemd's infinity and no span.
fn micros(value: &str) -> Result<Duration, &'static str> {
    number(value, u64::MAX - 1).map(Duration::from_micros)
}

/// The rule of sd_notify(3) for FDNAME.
fn fd_name(value: &str) -> Result<String, &'static str> {
    let good = |c: char| c.is_ascii_graphic() && c != ':' || c == ' ';
    if value.is_empty() || value.len() > 255 || !value.chars().all(good) {
        return Err("is no descriptor's name");
    }
    Ok(value.to_owned())
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
