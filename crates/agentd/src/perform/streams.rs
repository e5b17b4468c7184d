//! The standard descriptors of a command: `StandardInput`, `StandardOutput`, `StandardError`, `TTYPath`,
//! `StandardInputText`, `StandardInputData`.
//!
//! What is named by `fd:` is for the main process, which is passed it; other commands have nothing to read and the log.
//!
//! Files are opened in the manager, without waiting for anybody: a FIFO without a reader is an error and no pause.

use std::fs::{self, OpenOptions};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use agentd_engine::SpawnFailure;
use agentd_linux::descriptor::set_blocking;
use agentd_linux::memfd;
use agentd_linux::open::{NOCTTY, NONBLOCK};
use agentd_linux::socket::connect_to;
use agentd_linux::spawn::{Stdio, Terminal};
use agentd_unit::ExecKind;
use agentd_unit::sections::{Execution, Input, Output, Seize};

use super::passed::Passed;
use super::plan::step;
use super::sockets::Named;

const EXIT_STDIN: u8 = 208;
const EXIT_STDOUT: u8 = 209;
const EXIT_STDERR: u8 = 222;

/// Where one descriptor leads.
#[derive(Debug)]
enum Stream {
    Null,
    /// What the run has as its output, which is kept for all of its commands.
    Log,
    File(OwnedFd),
    /// The socket of the service, or its connection.
    Socket,
    /// The descriptor of this number.
    Same(usize),
}

/// The three, open.
#[derive(Debug)]
pub struct Streams {
    streams: [Stream; 3],
    /// Descriptor 0 is a terminal that is to be the controlling one.
    pub terminal: Option<Terminal>,
    socket: Option<OwnedFd>,
}

impl Streams {
    /// Opens what the keys name; `socket` is for `socket`.
    ///
    /// # Errors
    /// What cannot be opened, or is not passed, under the descriptor's exit status.
    pub fn open(
        how: &Execution,
        is_main: bool,
        passed: &Passed,
        socket: Option<OwnedFd>,
    ) -> Result<Self, SpawnFailure> {
        let named = |key, exit_status, name: &str| match is_main {
            true => passed_stream(key, exit_status, name, passed).map(Some),
            false => Ok(None),
        };
        let (input, terminal) = match &how.input {
            Input::Null if how.input_data.is_empty() => (Stream::Null, None),
            Input::Null | Input::Data => (data(&how.input_data)?, None),
            Input::Named(name) => (named("StandardInput", EXIT_STDIN, name)?.unwrap_or(Stream::Null), None),
            Input::Socket => (Stream::Socket, None),
            Input::Terminal(Seize::Ask) => (tty("StandardInput", EXIT_STDIN, how)?, Some(Terminal::Ask)),
            Input::Terminal(Seize::Force) => (tty("StandardInput", EXIT_STDIN, how)?, Some(Terminal::Force)),
            Input::File(path) => {
                let mut options = OpenOptions::new();
                options.read(true).mode(0o644);
                // One file for both is opened once.
                let both = leads_to(how.output(), path) || leads_to(&how.error, path);
                options.write(both).create(both);
                let unused = (!both).then_some(Shutdown::Write);
                (file(("StandardInput", EXIT_STDIN), path, &mut options, unused)?, None)
            }
        };
        let both = |output: &Output| matches!(&how.input, Input::File(path) if leads_to(output, path));
        let output = match how.output() {
            Output::Inherit => Stream::Same(0),
            output if both(output) => Stream::Same(0),
            Output::Named(name) => named("StandardOutput", EXIT_STDOUT, name)?.unwrap_or(Stream::Log),
            other => leading("StandardOutput", EXIT_STDOUT, other, how)?,
        };
        let error = match &how.error {
            Output::Inherit => Stream::Same(1),
            // Two descriptors of one file would write over each other.
            same if same == how.output() => Stream::Same(1),
            error if both(error) => Stream::Same(0),
            Output::Named(name) => named("StandardError", EXIT_STDERR, name)?.unwrap_or(Stream::Log),
            other => leading("StandardError", EXIT_STDERR, other, how)?,
        };
        Ok(Self { streams: [input, output, error], terminal, socket })
    }

    /// As a plan has them. `log` is the run's output.
    #[must_use]
    pub fn stdio<'a>(&'a self, log: Option<BorrowedFd<'a>>) -> [Stdio<'a>; 3] {
        [0, 1, 2].map(|number| self.one(number, log))
    }

    fn one<'a>(&'a self, number: usize, log: Option<BorrowedFd<'a>>) -> Stdio<'a> {
        match &self.streams[number] {
            Stream::Null => Stdio::Null,
            Stream::Log => log.map_or(Stdio::Null, Stdio::Fd),
            Stream::File(fd) => Stdio::Fd(fd.as_fd()),
            Stream::Socket => self.socket.as_ref().map_or(Stdio::Null, |fd| Stdio::Fd(fd.as_fd())),
            // The number is a lower one.
            Stream::Same(other) => self.one(*other, log),
        }
    }
}

/// Whether an output goes into this file, from its beginning.
fn leads_to(output: &Output, file: &Path) -> bool {
    matches!(output, Output::File(path) if path == file)
}

/// Whether any of the descriptors is a socket.
#[must_use]
pub fn uses_socket(how: &Execution) -> bool {
    how.input == Input::Socket || how.output() == &Output::Socket || how.error == Output::Socket
}

/// The one socket that can be a standard descriptor. Commands beside the main one have none but a connection.
///
/// # Errors
/// The main command has none, or several.
pub fn only(sockets: &mut Vec<Named>, kind: ExecKind) -> Result<Option<OwnedFd>, SpawnFailure> {
    if sockets.len() > 1 || (sockets.is_empty() && kind == ExecKind::Start) {
        let text = format!(
            "StandardInput, StandardOutput: socket: it has {} sockets and not one; start it by its socket unit",
            sockets.len()
        );
        return Err(step(EXIT_STDIN, text));
    }
    Ok(sockets.pop().map(|(_, fd)| fd))
}

/// Whether any of the descriptors leads to the log.
#[must_use]
pub fn uses_log(how: &Execution) -> bool {
    let may = |output: &Output| matches!(output, Output::Log | Output::Named(_));
    may(how.output()) || may(&how.error)
}

/// What StandardInputText and StandardInputData say, as a file that nobody can change.
fn data(bytes: &[u8]) -> Result<Stream, SpawnFailure> {
    let file = memfd::sealed(c"stdin", bytes).map(Stream::File);
    file.map_err(|error| step(EXIT_STDIN, format!("StandardInput: the text cannot be kept: {error}")))
}

/// A copy of a descriptor that the process is passed.
fn passed_stream(
    key: &'static str,
    exit_status: u8,
    name: &str,
    passed: &Passed,
) -> Result<Stream, SpawnFailure> {
    let Some(fd) = passed.named(name) else {
        let why = format!(
            "{key}=fd:{name}: the service is passed no descriptor of that name; it is to be stored with FDNAME={name} first"
        );
        return Err(step(exit_status, why));
    };
    let copy = fd.try_clone_to_owned().map(Stream::File);
    copy.map_err(|error| step(exit_status, format!("{key}=fd:{name}: cannot be passed: {error}")))
}

fn leading(
    key: &'static str,
    exit_status: u8,
    output: &Output,
    how: &Execution,
) -> Result<Stream, SpawnFailure> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o644);
    let written =
        |path: &Path, options: &mut _| file((key, exit_status), path, options, Some(Shutdown::Read));
    match output {
        Output::Inherit | Output::Null => Ok(Stream::Null),
        Output::Log | Output::Named(_) => Ok(Stream::Log),
        Output::Socket => Ok(Stream::Socket),
        Output::Terminal => tty(key, exit_status, how),
        Output::KernelLog => opened(key, exit_status, Path::new("/dev/kmsg"), &mut options),
        Output::File(path) => written(path, options.create(true).truncate(false)),
        Output::Append(path) => written(path, options.create(true).append(true)),
        Output::Truncate(path) => written(path, options.create(true).truncate(true)),
    }
}

fn tty(key: &'static str, exit_status: u8, how: &Execution) -> Result<Stream, SpawnFailure> {
    opened(key, exit_status, &how.tty, OpenOptions::new().read(true).write(true))
}

/// A file, or a connection to the socket that is there, which is shut for what it is not used for.
fn file(
    (key, exit_status): (&'static str, u8),
    path: &Path,
    options: &mut OpenOptions,
    unused: Option<Shutdown>,
) -> Result<Stream, SpawnFailure> {
    if !fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
        return opened(key, exit_status, path, options);
    }
    let connect = || -> io::Result<OwnedFd> {
        let stream = UnixStream::from(connect_to(path)?);
        unused.map_or(Ok(()), |unused| stream.shutdown(unused))?;
        Ok(stream.into())
    };
    let connection = connect().map(Stream::File);
    connection.map_err(|error| {
        step(exit_status, format!("{key}: {} cannot be connected to: {error}", path.display()))
    })
}

fn opened(
    key: &'static str,
    exit_status: u8,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<Stream, SpawnFailure> {
    let open = |options: &mut OpenOptions| -> io::Result<OwnedFd> {
        let fd: OwnedFd = options.custom_flags(NONBLOCK | NOCTTY).open(path)?.into();
        set_blocking(&fd)?;
        Ok(fd)
    };
    let file = open(options).map(Stream::File);
    file.map_err(|error| step(exit_status, format!("{key}: {} cannot be opened: {error}", path.display())))
}
