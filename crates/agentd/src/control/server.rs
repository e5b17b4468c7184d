//! Accepts clients and carries their calls to the main loop and the answers back.
//!
//! # Invariants
//!
//! - A frame is at most 1 MiB, a client has one call under way, and there are at most [`CLIENTS`] clients.
//! - A client that does not finish its frame, or does not read its answer, is dropped after [`PATIENCE`].
//! - The main loop never waits for a client.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use agentd_protocol::{Call, CallError, FrameReader, Reply, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::access::Peer;
use super::{Answer, Inbound, Parcel};
use crate::perform::plan::chain;

/// How many clients there are at once; more are told to come back. Each holds two descriptors and a small buffer.
const CLIENTS: usize = 128;

/// How many of them may be of one user other than root.
const CLIENTS_OF_ONE_USER: usize = 64;

/// How long a client may take to send the rest of a frame, or to read what it asked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client may say nothing between two calls.
const IDLE: Duration = Duration::from_secs(300);

/// How many replies wait for a client before it counts as too slow.
const DEPTH: usize = 64;

/// How the server learns who a client is.
pub type Identify = Rc<dyn Fn(&UnixStream) -> io::Result<Peer>>;

/// The control socket: where it is, and who accepts on it.
pub struct Server {
    path: PathBuf,
    identify: Identify,
    to_loop: mpsc::Sender<Inbound>,
    accepting: Option<AbortHandle>,
    /// The listening socket, for a manager that goes on with it.
    listener: Option<OwnedFd>,
}

impl Server {
    /// A server that does not listen yet. `to_loop` is the way to the main loop.
    #[must_use]
    pub fn new(path: PathBuf, identify: Identify, to_loop: mpsc::Sender<Inbound>) -> Self {
        Self { path, identify, to_loop, accepting: None, listener: None }
    }

    /// Binds the socket, in place of one that was bound before or was removed behind our back; clients that are
    /// connected stay. One that a manager before has bound is used as it is. To be called inside of a `LocalSet`.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn listen(&mut self, bound: Option<std::os::unix::net::UnixListener>) -> io::Result<()> {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Everyone may connect: what each may do is decided by who it is.
        let listener = match bound {
            Some(listener) => listener,
            None => agentd_linux::socket::listen(&self.path, 0o666)?,
        };
        listener.set_nonblocking(true)?;
        self.listener = Some(listener.try_clone()?.into());
        let accept =
            serve(UnixListener::from_std(listener)?, Rc::clone(&self.identify), self.to_loop.clone());
        self.accepting = Some(tokio::task::spawn_local(accept).abort_handle());
        Ok(())
    }

    /// Leaves clients that come from now on in the queue of the socket, for the manager after this one.
    pub fn pause(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
    }

    /// Accepts clients again after [`Server::pause`].
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn go_on(&mut self) -> io::Result<()> {
        match &self.listener {
            Some(listener) if self.accepting.is_none() => self.listen(Some(listener.try_clone()?.into())),
            _ => Ok(()),
        }
    }

    /// The listening socket, while there is one.
    #[must_use]
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }
}

/// Accepts clients until the runtime ends. To be spawned on the main loop's own thread.
async fn serve(listener: UnixListener, identify: Identify, to_loop: mpsc::Sender<Inbound>) {
    let clients = Rc::new(Clients::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => admit(stream, &identify, &clients, &to_loop),
            Err(error) => {
                // Out of descriptors: those in use come back as clients leave. A bound on how fast we ask again.
                tracing::warn!(%error, "a client could not be accepted on the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// How many clients there are, and how many of each user.
#[derive(Debug, Default)]
struct Clients {
    all: Cell<usize>,
    users: std::cell::RefCell<std::collections::HashMap<u32, usize>>,
}

impl Clients {
    fn enter(self: &Rc<Self>, uid: u32) -> Option<Seat> {
        let mut users = self.users.borrow_mut();
        let of_user = users.entry(uid).or_default();
        if self.all.get() >= CLIENTS || (uid != 0 && *of_user >= CLIENTS_OF_ONE_USER) {
            return None;
        }
        *of_user += 1;
        self.all.set(self.all.get() + 1);
        Some(Seat { clients: Rc::clone(self), uid })
    }
}

/// A client's place; given back when dropped.
#[derive(Debug)]
struct Seat {
    clients: Rc<Clients>,
    uid: u32,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.all.set(self.clients.all.get().saturating_sub(1));
        let mut users = self.clients.users.borrow_mut();
        if let Some(count) = users.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.uid);
            }
        }
    }
}

fn admit(stream: UnixStream, identify: &Identify, clients: &Rc<Clients>, to_loop: &mpsc::Sender<Inbound>) {
    let peer = match identify(&stream) {
        Ok(peer) => peer,
        Err(error) => {
            tracing::debug!(%error, "a client left before it was known");
            return;
        }
    };
    let seat = clients.enter(peer.uid);
    let to_loop = to_loop.clone();
    tokio::task::spawn_local(async move {
        let mut client = Client { stream, peer, to_loop };
        let end = match seat {
            Some(_seat) => client.run().await,
            None => {
                let message = "the manager has too many clients; try again in a moment".to_owned();
                client.write(&CallError::Busy { message }.to_reply()).await
            }
        };
        if let Err(error) = end {
            tracing::debug!(%error, pid = client.peer.pid, "a client of the control socket was dropped");
        }
    });
}

/// One client.
struct Client {
    stream: UnixStream,
    peer: Peer,
    to_loop: mpsc::Sender<Inbound>,
}

impl Client {
    async fn run(&mut self) -> io::Result<()> {
        let mut frames = FrameReader::new();
        let mut buffer = [0_u8; 4096];
        loop {
            let patience = if frames.held() > 0 { PATIENCE } else { IDLE };
            let n = timeout(patience, self.stream.read(&mut buffer)).await??;
            if n == 0 {
                return Ok(());
            }
            let mut input = &buffer[..n];
            while !input.is_empty() {
                match frames.next_frame(&mut input) {
                    Ok(Some(frame)) => self.call(&frame).await?,
                    Ok(None) => {}
                    Err(error) => {
                        self.write(&CallError::Failed { message: error.to_string() }.to_reply()).await?;
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn call(&mut self, frame: &[u8]) -> io::Result<()> {
        let call = match Call::parse(frame) {
            Ok(call) => call,
            Err(error) => {
                let message = format!("the call is not valid: {}", chain(&error));
                return self.write(&CallError::Failed { message }.to_reply()).await;
            }
        };
        let (oneway, more) = (call.oneway, call.more);
        let request = match Request::from_call(call) {
            Ok(request) => request,
            Err(_) if oneway => return Ok(()),
            Err(error) => return self.write(&error.to_reply()).await,
        };
        let (answer, replies) = Answer::channel(DEPTH);
        let inbound = Inbound { request, peer: self.peer.clone(), more, answer };
        if self.to_loop.send(inbound).await.is_err() {
            return Err(io::Error::other("the main loop has ended"));
        }
        if oneway { Ok(()) } else { self.answer(replies).await }
    }

    /// Hands replies on until the last one. A client that hangs up meanwhile is noticed: its call ends, its job goes on.
    async fn answer(&mut self, mut replies: mpsc::Receiver<Parcel>) -> io::Result<()> {
        loop {
            let parcel = tokio::select! {
                biased;
                parcel = replies.recv() => parcel,
                gone = hung_up(&self.stream) => {
                    gone?;
                    replies.recv().await
                }
            };
            let Some(parcel) = parcel else {
                let message = "the manager dropped the call, as its answers were not read".to_owned();
                return self.write(&CallError::Busy { message }.to_reply()).await;
            };
            for reply in parcel {
                self.write(&reply).await?;
                if !reply.continues {
                    return Ok(());
                }
            }
        }
    }

    async fn write(&mut self, reply: &Reply) -> io::Result<()> {
        let frame = match reply.to_frame() {
            Ok(frame) => frame,
            Err(error) => {
                let message = format!("the answer is too long: {error}");
                CallError::Failed { message }.to_reply().to_frame().map_err(io::Error::other)?
            }
        };
        timeout(PATIENCE, self.stream.write_all(&frame)).await?
    }
}

/// Ends with an error when the client hangs up; with Ok when it sent more (the next call, early) or only closed its
/// sending half, as one-shot clients do.
async fn hung_up(stream: &UnixStream) -> io::Result<()> {
    let ready = stream.ready(tokio::io::Interest::READABLE).await?;
    if ready.is_write_closed() {
        return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
    }
    Ok(())
}
