//! What agents say: the embedded log, bounded files per unit, written by threads of its own.
//!
//! Where no journald takes the agents' standard output, each run gets a pipe, and a [`LogStore`] reads all of them:
//!
//! ```text
//! agent ─pipe─> reading thread ─bounded─> writing thread ──> DIR/UNIT.log, .1, .2 …
//! manager ─────>       │                        └──────────> followers, answers to reads
//! ```
//!
//! The manager never waits for either thread. The reading thread never waits for a disk, so an agent is never held up
//! by one (save for a fifth of a second where the disk is merely behind): what the disk does not take is held in
//! memory, then dropped oldest first, counted, and the count stands in the file. The file's format is that of
//! [`entry`]; people read it with `less`, `agentctl logs` through the manager.
//!
//! Both threads inherit the signal mask of the one that starts them; the manager blocks its signals first.

mod budget;
mod carried;
mod config;
mod entry;
mod file;
mod outbox;
mod rate;
mod reader;
mod ring;
mod split;
pub(crate) mod stamp;
mod store;
mod tail;
mod writer;

pub use carried::{Carried, Counted, Unfinished};
pub use config::LogConfig;
pub use entry::{Ending, Entry, Origin};
pub use rate::RateLimit;
pub use split::LineRules;
pub use store::{FollowId, LogStore};

/// The most entries that one read returns.
pub const MAX_READ: usize = 65_536;

/// CLOCK_REALTIME as the log has it.
pub(crate) fn now() -> agentd_unit::Realtime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    agentd_unit::Realtime(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
