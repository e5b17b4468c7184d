//! A manager that becomes its successor: the same process, perhaps by a newer program, with the same children, sockets
//! and lock, so that no agent and no client notices.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use agentd_linux::notify::NotifySocket;
use agentd_linux::{descriptor, memfd};

use super::handover::Handover;

/// Names the descriptors that are handed on, as `name=number` with commas between.
const VARIABLE: &str = "AGENTD_HANDOVER";

/// The name of the descriptor that [`Handover`] is read from.
const LIST: &str = "units";

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
    /// What it held for units.
    pub held: Handover<OwnedFd>,
}

impl Inherited {
    /// What the environment says, taken once. For the very beginning of the program.
    #[must_use]
    pub fn take() -> Self {
        let Ok(text) = std::env::var(VARIABLE) else { return Self::default() };
        let mut inherited = Self { is_successor: true, ..Self::default() };
        let own = parse(&text);
        let held = Handover::decode(&list(&own));
        let numbers = held.items.iter().filter_map(|(_, number)| Some((None, (*number)?)));
        let numbers = own.into_iter().map(|(name, number)| (Some(name), number)).chain(numbers).collect();
        let mut others = HashMap::new();
        for (name, fd) in descriptor::handed_over(numbers) {
            match name.as_deref() {
                Some("lock") => inherited.lock = Some(fd.into()),
                Some("control") => inherited.control = Some(fd.into()),
                Some("notify") => inherited.notify = Some(NotifySocket::from(fd)),
                Some(_) => drop::<OwnedFd>(fd),
                None => drop(others.insert(fd.as_raw_fd(), fd)),
            }
        }
        inherited.held = held.owned(|number| others.remove(&number));
        inherited
    }
}

/// What is held for units, as text; it is read by its number, as nobody owns it yet.
fn list(own: &[(String, i32)]) -> String {
    let number = own.iter().find(|(name, _)| name == LIST).map(|(_, number)| number);
    let read = |number| std::fs::read_to_string(format!("/proc/self/fd/{number}"));
    number.and_then(|number| read(number).ok()).unwrap_or_default()
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
pub fn become_successor(
    own: &[(&str, BorrowedFd<'_>)],
    held: &Handover<BorrowedFd<'_>>,
) -> io::Result<Infallible> {
    let program = agentd_linux::exec::own_program()?;
    let list = memfd::sealed(c"agentd-handover", held.encode().as_bytes())?;
    let mut own = own.to_vec();
    own.push((LIST, list.as_fd()));
    let held = held.items.iter().filter_map(|(_, fd)| *fd);
    let all: Vec<BorrowedFd<'_>> = own.iter().map(|(_, fd)| *fd).chain(held).collect();
    for fd in &all {
        descriptor::keep_over_exec(fd, true)?;
    }
    let list: Vec<String> = own.iter().map(|(name, fd)| format!("{name}={}", fd.as_raw_fd())).collect();
    let variables = std::env::vars_os().filter(|(name, _)| name != VARIABLE);
    let variables = variables.chain([(VARIABLE.into(), OsString::from(list.join(",")))]).collect();
    let error = match agentd_linux::exec::replace(&program, std::env::args_os().collect(), variables) {
        Err(error) => io::Error::new(error.kind(), format!("{}: {error}", program.display())),
        Ok(never) => match never {},
    };
    for fd in &all {
        descriptor::keep_over_exec(fd, false)?;
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
