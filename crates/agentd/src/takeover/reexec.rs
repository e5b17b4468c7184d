//! A manager that becomes its successor: the same process, perhaps by a newer program, with the same children, sockets
//! and lock, so that no agent and no client notices.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use agentd_linux::descriptor;
use agentd_linux::notify::NotifySocket;

/// Names the descriptors that are handed on, as `name=number` with commas between.
const VARIABLE: &str = "AGENTD_HANDOVER";

/// What a manager has handed to this one.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Whether there was one.
    pub is_successor: bool,
    /// The lock of the runtime folder.
    pub lock: Option<File>,
    /// The control socket.
    pub control: Option<UnixListener>,
    /// The socket for sd_notify(3).
    pub notify: Option<NotifySocket>,
}

impl Inherited {
    /// What the environment says, taken once. For the very beginning of the program.
    #[must_use]
    pub fn take() -> Self {
        let Ok(text) = std::env::var(VARIABLE) else { return Self::default() };
        let mut inherited = Self { is_successor: true, ..Self::default() };
        for (name, fd) in descriptor::handed_over(parse(&text)) {
            match name.as_str() {
                "lock" => inherited.lock = Some(fd.into()),
                "control" => inherited.control = Some(fd.into()),
                "notify" => inherited.notify = Some(NotifySocket::from(fd)),
                _ => drop::<OwnedFd>(fd),
            }
        }
        inherited
    }
}

fn parse(text: &str) -> Vec<(String, i32)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?))).collect()
}

/// Executes the program that stands where ours stood, with our arguments. It comes back only with the error, and then
/// nothing has changed.
///
/// # Errors
/// Those of execve(2); /proc is not mounted.
pub fn become_successor(handed: &[(&str, BorrowedFd<'_>)]) -> io::Result<Infallible> {
    let program = agentd_linux::exec::own_program()?;
    for (_, fd) in handed {
        descriptor::keep_over_exec(fd.as_fd(), true)?;
    }
    let list: Vec<String> = handed.iter().map(|(name, fd)| format!("{name}={}", fd.as_raw_fd())).collect();
    let variables = std::env::vars_os().filter(|(name, _)| name != VARIABLE);
    let variables = variables.chain([(VARIABLE.into(), OsString::from(list.join(",")))]).collect();
    let error = match agentd_linux::exec::replace(&program, std::env::args_os().collect(), variables) {
        Err(error) => io::Error::new(error.kind(), format!("{}: {error}", program.display())),
        Ok(never) => match never {},
    };
    for (_, fd) in handed {
        descriptor::keep_over_exec(fd.as_fd(), false)?;
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_on_is_named() {
        assert_eq!(
            parse("lock=3,control=5,odd,notify=x"),
            [("lock".to_owned(), 3), ("control".to_owned(), 5)]
        );
    }
}
