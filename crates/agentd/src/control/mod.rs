//! The control interface: who may ask what, how it is asked, and how the answer finds its way back.
//!
//! - [`server`] accepts clients; each is one small task with bounded frames that no other and no unit waits for.
//! - [`access`] decides by the peer's credentials.
//! - [`handle`] turns a request into an event, or reads and answers at once.
//! - [`replies`] holds who waits for which request, [`ends`] who waits until units have ended.
//! - [`view`] turns the engine's views into the wire's types.

pub mod access;
pub mod edges;
pub mod ends;
pub mod files;
pub mod handle;
pub mod logs;
pub mod pages;
pub mod peers;
pub mod plan;
pub mod replies;
pub mod server;
pub mod status;
pub mod triggers;
pub mod unit_files;
pub mod view;

use agentd_protocol::{CallError, Reply, Request};
use tokio::sync::mpsc;

use access::Peer;

/// One request on its way to the main loop.
#[derive(Debug)]
pub struct Inbound {
    /// What is asked.
    pub request: Request,
    /// By whom.
    pub peer: Peer,
    /// Whether several replies are welcome.
    pub more: bool,
    /// Where the answer goes.
    pub answer: Answer,
}

/// What is sent to a client in one go.
#[derive(Debug)]
pub enum Parcel {
    /// A reply.
    One(Reply),
    /// Replies that are there already and follow each other, however many: the pages of a long list.
    All(Vec<Reply>),
}

impl IntoIterator for Parcel {
    type Item = Reply;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Reply>, std::vec::IntoIter<Reply>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, all) = match self {
            Self::One(reply) => (Some(reply), Vec::new()),
            Self::All(replies) => (None, replies),
        };
        one.into_iter().chain(all)
    }
}

/// The way back to one client, for one call. Dropping it ends the call.
#[derive(Debug, Clone)]
pub struct Answer(mpsc::Sender<Parcel>);

impl Answer {
    /// A way back that holds at most `depth` parcels that the client has not read.
    #[must_use]
    pub fn channel(depth: usize) -> (Self, mpsc::Receiver<Parcel>) {
        let (sender, receiver) = mpsc::channel(depth);
        (Self(sender), receiver)
    }

    /// Sends a reply; false if the client is gone or reads too slowly, which is the client's own loss.
    pub fn send(&self, reply: Reply) -> bool {
        self.0.try_send(Parcel::One(reply)).is_ok()
    }

    /// Sends replies that follow each other, as fast as the client reads them; false as [`Answer::send`] says.
    pub fn send_all(&self, replies: Vec<Reply>) -> bool {
        self.0.try_send(Parcel::All(replies)).is_ok()
    }

    /// Sends the last reply, or the error that kept us from one.
    pub fn result<T: agentd_protocol::Serialize>(&self, result: Result<T, CallError>) -> bool {
        self.send(match result {
            Ok(value) => last(&value),
            Err(error) => error.to_reply(),
        })
    }

    /// A way to see whether the call still goes on, which does not keep it going.
    #[must_use]
    pub fn downgrade(&self) -> Follower {
        Follower(self.0.downgrade())
    }

    /// Whether the client has gone away.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// A call that is answered from elsewhere.
#[derive(Debug, Clone)]
pub struct Follower(mpsc::WeakSender<Parcel>);

impl Follower {
    /// Whether the call has ended, on either side.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.upgrade().is_none_or(|sender| sender.is_closed())
    }
}

/// The last reply of a call. What does not become JSON becomes an error that says so.
#[must_use]
pub fn last<T: agentd_protocol::Serialize>(value: &T) -> Reply {
    Reply::last(value).unwrap_or_else(|e| CallError::Failed { message: e.to_string() }.to_reply())
}

/// A reply after which others come.
#[must_use]
pub fn continued<T: agentd_protocol::Serialize>(value: &T) -> Reply {
    Reply::continued(value).unwrap_or_else(|e| CallError::Failed { message: e.to_string() }.to_reply())
}
