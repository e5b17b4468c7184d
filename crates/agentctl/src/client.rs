//! One connection to the manager: a call goes out, its replies come in, with a bound on size and time.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agentd_protocol::{Call, CallError, FrameError, FrameReader, MessageError, Method, Reply};
use serde::de::DeserializeOwned;

use crate::exit::Exit;

/// How long an answer may take that needs no work of units. D-Bus has the same 25 seconds.
pub(crate) const ANSWER: Duration = Duration::from_secs(25);

/// How long reading all units again may take: ten thousand files on a slow disk.
pub(crate) const RELOAD: Duration = Duration::from_secs(90);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens there.
    #[error("cannot reach the manager at {}: {error}; {}", path.display(), advice(error))]
    Connect {
        /// The socket that was tried.
        path: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the manager broke")]
    Broken(#[source] io::Error),
    /// The manager closed the connection without an answer.
    #[error("the manager closed the connection without an answer; see its log for the reason")]
    Closed,
    /// No answer in time.
    #[error("the manager did not answer within {} s; it may be stopped or overloaded", .0.as_secs())]
    TimedOut(Duration),
    /// Bytes that are no reply.
    #[error("what answers at the control socket does not speak varlink")]
    Frame(#[from] FrameError),
    /// A frame that is no reply, or a call that cannot be sent.
    #[error("what answers at the control socket does not speak varlink")]
    Message(#[from] MessageError),
    /// The manager says no.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// What to do about a socket that cannot be connected to.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "you may not connect there; try it as root",
        _ => "is agentd running? (--user and --runtime-dir DIR choose another manager)",
    }
}

impl ClientError {
    /// The exit code that it ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Connect { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                Exit::NoSuchUnit
            }
            Self::Connect { .. } => Exit::Unreachable,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Broken(_) | Self::Closed | Self::Frame(_) | Self::Message(_) => Exit::Failed,
            Self::Call(error) => Exit::of_call(error),
        }
    }
}

/// A connection to the manager.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    reader: FrameReader,
    /// What was read and not yet taken as a frame: `buffer[taken..filled]`.
    buffer: Box<[u8]>,
    taken: usize,
    filled: usize,
}

impl Client {
    /// Connects to the control socket at `path`.
    pub(crate) fn connect(path: &Path) -> Result<Self, ClientError> {
        UnixStream::connect(path)
            .map(Self::over)
            .map_err(|error| ClientError::Connect { path: path.to_owned(), error })
    }

    /// A client over a connection that is there already.
    pub(crate) fn over(stream: UnixStream) -> Self {
        let buffer = vec![0; 64 * 1024].into_boxed_slice();
        Self { stream, reader: FrameReader::of_answers(), buffer, taken: 0, filled: 0 }
    }

    /// One call with one answer, within `limit` if there is one.
    pub(crate) fn call<M: Method>(
        &mut self,
        parameters: &M::Parameters,
        limit: Option<Duration>,
    ) -> Result<M::Reply, ClientError> {
        self.send(&[M::call(parameters)?])?;
        Ok(self.receive(limit)?.0)
    }

    /// One call with a stream of answers, each handed to `each` as it comes; each within `limit` of the one before.
    ///
    /// Ends with the last answer, or when `each` fails, whose error it hands on.
    pub(crate) fn stream<M: Method, E: From<ClientError>>(
        &mut self,
        parameters: &M::Parameters,
        limit: Option<Duration>,
        each: impl FnMut(M::Reply) -> Result<(), E>,
    ) -> Result<(), E> {
        self.send(&[Self::for_many::<M>(parameters)?])?;
        self.receive_all(limit, each)
    }

    /// A call that several answers are welcome to.
    pub(crate) fn for_many<M: Method>(parameters: &M::Parameters) -> Result<Call, ClientError> {
        Ok(Call { more: true, ..M::call(parameters)? })
    }

    /// The answers to the oldest call that was sent and has none yet, as [`Client::stream`] hands them on.
    pub(crate) fn receive_all<T: DeserializeOwned, E: From<ClientError>>(
        &mut self,
        limit: Option<Duration>,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let (reply, continues) = self.receive(limit)?;
            each(reply)?;
            if !continues {
                return Ok(());
            }
        }
    }

    /// Sends calls, whose answers are to be fetched in their order by [`Client::receive`] or [`Client::receive_all`]. What
    /// is sent together costs one way there and back for all.
    pub(crate) fn send(&mut self, calls: &[Call]) -> Result<(), ClientError> {
        let mut frames = Vec::new();
        for call in calls {
            frames.append(&mut call.to_frame()?);
        }
        self.stream.set_write_timeout(Some(ANSWER)).map_err(ClientError::Broken)?;
        self.stream.write_all(&frames).map_err(|error| broken(error, ANSWER))
    }

    /// The next answer, and whether another one follows it.
    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        limit: Option<Duration>,
    ) -> Result<(T, bool), ClientError> {
        let until = limit.map(|limit| (Instant::now() + limit, limit));
        let frame = self.frame(until)?;
        let reply = Reply::parse(&frame)?;
        let continues = reply.continues;
        Ok((reply.into_result()?, continues))
    }

    fn frame(&mut self, until: Option<(Instant, Duration)>) -> Result<Vec<u8>, ClientError> {
        loop {
            let mut unread = &self.buffer[self.taken..self.filled];
            let frame = self.reader.next_frame(&mut unread)?;
            self.taken = self.filled - unread.len();
            if let Some(frame) = frame {
                return Ok(frame);
            }
            self.fill(until)?;
        }
    }

    /// Reads once. The deadline holds for the whole answer, so a peer that trickles bytes cannot stretch it.
    fn fill(&mut self, until: Option<(Instant, Duration)>) -> Result<(), ClientError> {
        let (left, limit) = match until {
            None => (None, Duration::MAX),
            Some((until, limit)) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ClientError::TimedOut(limit));
                }
                (Some(left), limit)
            }
        };
        self.stream.set_read_timeout(left).map_err(ClientError::Broken)?;
        match self.stream.read(&mut self.buffer) {
            Ok(0) => {
                self.reader.finish()?;
                Err(ClientError::Closed)
            }
            Ok(count) => {
                (self.taken, self.filled) = (0, count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(broken(error, limit)),
        }
    }
}

fn broken(error: io::Error, limit: Duration) -> ClientError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::TimedOut(limit),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ClientError::Closed,
        _ => ClientError::Broken(error),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
