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

/// The level of lines that do not begin with `<N>`, syslog(3): info.
const LEVEL: u8 = 6;

/// How long the few bytes of the header may take: they always fit an empty socket buffer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Connects streams. A socket that found no journald is kept for the next attempt, and the next begins with a look at the
/// path: where there is no journald, each costs one call, of the cheapest.
#[derive(Debug, Default)]
pub struct Connector {
    unused: Option<OwnedFd>,
}

impl Connector {
    /// Connects a stream for a unit's standard output and standard error. `identifier` is its `SYSLOG_IDENTIFIER`.
    ///
    /// # Errors
    /// ENOENT or ECONNREFUSED: no journald is there. EAGAIN: it has more connections waiting than it takes.
    pub fn connect(&mut self, socket: &Path, identifier: &str, unit: &str) -> io::Result<OwnedFd> {
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
        introduce(fd.into(), identifier, unit)
    }
}

/// Says who speaks on a stream that is connected.
fn introduce(stream: UnixStream, identifier: &str, unit: &str) -> io::Result<OwnedFd> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Identifier, unit, level, "<N>" prefixes are read; not forwarded to syslog, kernel log, console.
    let header = format!("{identifier}\n{unit}\n{LEVEL}\n1\n0\n0\n0\n");
    (&stream).write_all(header.as_bytes())?;
    stream.set_write_timeout(None)?;
    stream.shutdown(std::net::Shutdown::Read)?;
    Ok(stream.into())
}

/// Where journald looks for the most verbose level of a unit: a link whose target is the number.
const UNITS: &str = "/run/systemd/units";

/// Tells journald which lines of a unit to drop: those above `level`, systemd.exec(5) `LogLevelMax`. None: none.
///
/// # Errors
/// The folder that journald reads cannot be written to.
pub fn limit_level(unit: &str, level: Option<u8>) -> io::Result<()> {
    limit_level_in(Path::new(UNITS), unit, level)
}

fn limit_level_in(folder: &Path, unit: &str, level: Option<u8>) -> io::Result<()> {
    let link = folder.join(format!("log-level-max:{unit}"));
    if let Err(error) = std::fs::remove_file(&link)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let Some(level) = level else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    std::os::unix::fs::symlink(level.to_string(), link)
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

    #[test]
    fn the_header_names_the_unit_and_the_text_follows() {
        let path = std::env::temp_dir().join(format!("agentd-stream-{}", std::process::id()));
        let mut connector = Connector::default();
        assert!(connector.connect(&path, "web", "web.service").is_err(), "nobody is there yet");
        let listener = UnixListener::bind(&path).unwrap();
        let mut stream = File::from(connector.connect(&path, "web", "web.service").unwrap());
        stream.write_all(b"<4>hello\n").unwrap();
        drop(stream);
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut header = Vec::new();
        for _ in 0..7 {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            header.push(line.trim_end().to_owned());
        }
        assert_eq!(header, ["web", "web.service", "6", "1", "0", "0", "0"]);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "<4>hello\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_level_is_a_link_that_goes_when_it_is_taken_back() {
        let folder = std::env::temp_dir().join(format!("agentd-levels-{}", std::process::id()));
        let link = folder.join("log-level-max:web.service");
        for level in [4, 6] {
            limit_level_in(&folder, "web.service", Some(level)).unwrap();
            assert_eq!(std::fs::read_link(&link).unwrap().to_str(), Some(&*level.to_string()));
        }
        limit_level_in(&folder, "web.service", None).unwrap();
        assert!(!link.is_symlink());
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn without_a_journald_there_is_an_error_and_no_further_socket() {
        let mut connector = Connector::default();
        let mut attempt = || connector.connect(Path::new("/nonexistent/stdout"), "a", "a.service");
        assert_eq!(attempt().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(attempt().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(connector.unused.is_some());
    }
}
