//! A manager that follows a script, behind a real socket, and agentctl as a real process before it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use agentd_protocol::{Call, CallError, Reply, Request};
use serde::Serialize;

/// A folder of its own, removed at the end.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("agentctl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The connection on which one call came.
pub(crate) struct Answer {
    stream: UnixStream,
}

impl Answer {
    /// The last or only answer.
    pub(crate) fn done<T: Serialize>(&mut self, value: &T) {
        self.send(&Reply::last(value).expect("an object"));
    }

    /// An answer after which others come.
    pub(crate) fn more<T: Serialize>(&mut self, value: &T) {
        self.send(&Reply::continued(value).expect("an object"));
    }

    pub(crate) fn refuse(&mut self, error: &CallError) {
        self.send(&error.to_reply());
    }

    /// Closes the connection without an answer.
    pub(crate) fn leave(&mut self) {
        self.stream.shutdown(Shutdown::Both).expect("an open connection");
    }

    fn send(&mut self, reply: &Reply) {
        let frame = reply.to_frame().expect("a frame");
        // agentctl may have left already, as after the first line of `head`.
        drop(self.stream.write_all(&frame));
    }
}

/// Serves at `folder/control.sock`, each connection in a thread of its own, until the test ends.
pub(crate) fn serve(folder: &Folder, answer: impl Fn(Request, &mut Answer) + Send + Sync + Clone + 'static) {
    let listener = UnixListener::bind(folder.path().join("control.sock")).expect("a socket");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let answer = answer.clone();
            thread::spawn(move || one_client(stream, answer));
        }
    });
}

fn one_client(stream: UnixStream, answer: impl Fn(Request, &mut Answer)) {
    let calls = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut back = Answer { stream };
    for frame in calls.split(0) {
        let call = Call::parse(&frame.expect("a frame")).expect("a call");
        match Request::from_call(call) {
            Ok(request) => answer(request, &mut back),
            Err(error) => back.refuse(&error),
        }
    }
}

/// agentctl with the words of `line`, talking to the manager of `folder`.
pub(crate) fn command(folder: &Folder, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command.arg("--runtime-dir").arg(folder.path()).args(line.split_whitespace());
    command.env("TZ", "UTC").env_remove("NO_COLOR");
    command
}

/// Runs it to its end: exit code, standard output, standard error.
pub(crate) fn agentctl(folder: &Folder, line: &str) -> (i32, String, String) {
    outcome(command(folder, line).output().expect("agentctl runs"))
}

pub(crate) fn outcome(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}
