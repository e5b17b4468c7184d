//! journald's stream socket: what a service writes to it becomes entries of the journal with its own credentials.
//!
//! The protocol is that of sd_journal_stream_fd(3): a header of seven lines, then text.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Where journald takes streams, systemd-journald.service(8).
pub const STREAM_SOCKET: &str = "/run/systemd/journal/stdout";

/// Who speaks on a stream, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speaker<'a> {
    /// Its `SYSLOG_IDENTIFIER`.
    pub identifier: &'a str,
    /// Its unit.
    pub unit: &'a str,
    /// Facility and level of lines that do not begin with `<N>`, as one number: syslog(3).
    pub priority: u8,
    /// Whether `<N>` is a level at all.
    pub prefixes: bool,
}

/// How long the few bytes of the header may take: they always fit an empty socket buffer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Connects streams. A socket that found no journald is kept for the next attempt, and the next begins with a look at the
/// path: where there is no journald, each costs one call, of the cheapest.
#[derive(Debug, Default)]
pub struct Connector {
    unused: Option<OwnedFd>,
}

impl Connector {
    /// Connects a stream for a unit's standard output and standard error.
    ///
    /// # Errors
    /// ENOENT or ECONNREFUSED: no journald is there. EAGAIN: it has more connections waiting than it takes.
    pub fn connect(&mut self, socket: &Path, speaker: Speaker<'_>) -> io::Result<OwnedFd> {
        let fd = match self.unused.take() {
            // connect(2) makes the other end's socket before it looks for the path.
            Some(fd) => match nix::unistd::access(socket, nix::unistd::AccessFlags::F_OK) {
                Ok(()) => fd,
                Err(errno) => {
                    self.unused = Some(fd);
                    return Err(errno.into());
                }
            },
            None => nonblocking_socket()?,
        };
        if let Err(error) = connect_to(&fd, socket) {
            // unix(7): an attempt that failed leaves the socket as it was.
            self.unused = Some(fd);
            return Err(error);
        }
        introduce(fd.into(), speaker)
    }
}

/// Says who speaks on a stream that is connected.
fn introduce(stream: UnixStream, speaker: Speaker<'_>) -> io::Result<OwnedFd> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Speaker { identifier, unit, priority, prefixes } = speaker;
    // Not forwarded to syslog, kernel log, console.
    let header = format!("{identifier}\n{unit}\n{priority}\n{}\n0\n0\n0\n", u8::from(prefixes));
    (&stream).write_all(header.as_bytes())?;
    stream.set_write_timeout(None)?;
    stream.shutdown(std::net::Shutdown::Read)?;
    Ok(stream.into())
}

/// Where journald looks for what a unit's lines may be: links whose targets are the numbers.
const UNITS: &str = "/run/systemd/units";

/// What journald drops of a unit's lines, systemd.exec(5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// `LogLevelMax`: those of a larger level.
    pub level_max: Option<u8>,
    /// `LogRateLimitIntervalSec`.
    pub interval: Option<Duration>,
    /// `LogRateLimitBurst`.
    pub burst: Option<u32>,
}

impl Bounds {
    /// Tells journald of them; what is not set is as journald has it.
    ///
    /// # Errors
    /// The folder that journald reads cannot be written to.
    pub fn tell(&self, unit: &str) -> io::Result<()> {
        self.tell_in(Path::new(UNITS), unit)
    }

    fn tell_in(&self, folder: &Path, unit: &str) -> io::Result<()> {
        for (name, value) in [
            ("log-level-max", self.level_max.map(|level| level.to_string())),
            ("log-rate-limit-interval", self.interval.map(|span| span.as_micros().to_string())),
            ("log-rate-limit-burst", self.burst.map(|burst| burst.to_string())),
        ] {
            let link = folder.join(format!("{name}:{unit}"));
            match std::fs::remove_file(&link) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            if let Some(value) = value {
                std::fs::create_dir_all(folder)?;
                std::os::unix::fs::symlink(value, link)?;
            }
        }
        Ok(())
    }
}

/// Non-blocking until connected: a journald that does not accept must not hold up its own starter.
fn nonblocking_socket() -> io::Result<OwnedFd> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags, None)?)
}

fn connect_to(fd: &OwnedFd, path: &Path) -> io::Result<()> {
    use nix::sys::socket::{UnixAddr, connect};
    use std::os::fd::AsRawFd;
    Ok(connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixListener;

    const WEB: Speaker<'_> = Speaker { identifier: "web", unit: "web.service", priority: 30, prefixes: true };

    #[test]
    fn the_header_names_the_unit_and_the_text_follows() {
        let path = std::env::temp_dir().join(format!("agentd-stream-{}", std::process::id()));
        let mut connector = Connector::default();
        assert!(connector.connect(&path, WEB).is_err(), "nobody is there yet");
        let listener = UnixListener::bind(&path).unwrap();
        let mut stream = File::from(connector.connect(&path, WEB).unwrap());
        stream.write_all(b"<4>hello\n").unwrap();
        drop(stream);
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut header = Vec::new();
        for _ in 0..7 {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            header.push(line.trim_end().to_owned());
        }
        assert_eq!(header, ["web", "web.service", "30", "1", "0", "0", "0"]);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "<4>hello\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn bounds_are_links_that_go_when_they_are_taken_back() {
        let folder = std::env::temp_dir().join(format!("agentd-levels-{}", std::process::id()));
        let target = |name: &str| {
            let link = folder.join(format!("{name}:web.service"));
            std::fs::read_link(link).ok().map(|target| target.display().to_string())
        };
        for level in [4, 6] {
            let (interval, burst) = (Some(Duration::from_secs(2)), Some(7));
            Bounds { level_max: Some(level), interval, burst }.tell_in(&folder, "web.service").unwrap();
            assert_eq!(target("log-level-max"), Some(level.to_string()));
            assert_eq!(target("log-rate-limit-interval").as_deref(), Some("2000000"));
            assert_eq!(target("log-rate-limit-burst").as_deref(), Some("7"));
        }
        Bounds::default().tell_in(&folder, "web.service").unwrap();
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn without_a_journald_there_is_an_error_and_no_further_socket() {
        let mut connector = Connector::default();
        let mut attempt = || connector.connect(Path::new("/nonexistent/stdout"), WEB);
        assert_eq!(attempt().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(attempt().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(connector.unused.is_some());
    }
}
