//! What the manager says of itself: console and kernel log early, journald as soon as it is there.
//!
//! ```text
//! tracing event ─> Message ─┬─ queue ─> console, standard error      text
//!                           ├─ queue ─> kernel log                   while journald is not there
//!                           └─ queue ─> journald                     with all fields
//! ```
//!
//! Every outlet has a thread and a bounded queue of its own, so that whoever logs never waits: the journal may be one
//! of our own units, and a console may be a terminal that somebody has stopped. What is said before journald is there
//! is kept and sent to it later; what does not fit is counted, and the count is said.
//!
//! An event's fields `unit`, `invocation_id`, `message_id` and `priority` (0 to 7, where the level of the event does
//! not say it) have a meaning of their own; all others go along under their names.

mod layer;
mod level;
mod message;
mod native;
mod queue;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_engine::Record;
use agentd_linux::kmsg::Kmsg;
use tracing::Dispatch;
use tracing_subscriber::layer::SubscriberExt as _;

pub use level::{LogLevel, LogLevelError};
pub use queue::LateWaking;

use layer::Hub;
use message::Message;

/// Where journald takes messages, systemd-journald.service(8).
pub const JOURNALD_SOCKET: &str = "/run/systemd/journal/socket";

/// Where messages go. What is `None` gets none.
#[derive(Default)]
pub struct JournalConfig {
    /// What is quieter than this goes nowhere.
    pub level: LogLevel,
    /// The unit fields are those of a user manager.
    pub user: bool,
    /// Lines with time and level, for a manager that was started by somebody; standard error.
    pub stderr: Option<Box<dyn Write + Send>>,
    /// Bare lines; only those this loud or louder (`quiet` on the kernel command line: warnings).
    pub console: Option<(LogLevel, Box<dyn Write + Send>)>,
    /// The kernel's log, for as long as journald does not take messages.
    pub kmsg: Option<Kmsg>,
    /// The kernel's console_loglevel, proc(5) /proc/sys/kernel/printk: lines in its log with a priority below this it
    /// puts on the console by itself, and the console gets none of them a second time.
    pub kernel_shows: Option<u8>,
    /// The socket of journald, there or not; [`JOURNALD_SOCKET`] save in tests.
    pub journald: Option<PathBuf>,
    /// It may be one of our own units: thousands of messages are kept for it until it is there, else some hundreds.
    pub journald_may_come: bool,
}

/// The outlets. Kept for as long as anything is logged.
pub struct Journal {
    hub: Arc<Hub>,
}

impl Journal {
    /// Has waiting messages offered to journald now: to be called when its unit becomes active.
    pub fn poke(&self) {
        self.hub.taps().for_each(|tap| tap.queue.poke());
    }

    /// Logs what the engine says, with its unit, run and kind. It goes to the outlets as it is: an event of tracing would
    /// be made of it, and a message of that, for each of the thousands of a start.
    pub fn say(&self, record: Record) {
        let level = LogLevel::from(record.level);
        self.hub.push(|| Message::of_engine(record), level);
    }

    /// Whether journald took the last message that it was offered.
    #[must_use]
    pub fn journald_is_up(&self) -> bool {
        self.hub.journald_is_up()
    }

    /// Waits until every outlet has taken everything, at most `timeout`; whether that was so. For the moment before
    /// the process ends or executes another program.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut all = true;
        for tap in self.hub.taps() {
            // Each gets its chance, also after one that takes nothing.
            all &= tap.queue.flush(deadline);
        }
        all
    }
}

/// Starts the outlets and makes them those of the whole process.
///
/// # Errors
/// No thread can be started, or this was called before.
pub fn init(config: JournalConfig) -> io::Result<Journal> {
    let (dispatch, journal) = build(config)?;
    tracing::dispatcher::set_global_default(dispatch).map_err(io::Error::other)?;
    Ok(journal)
}

/// Starts the outlets; messages reach them where the dispatcher is the default one.
///
/// # Errors
/// No thread can be started.
pub fn build(config: JournalConfig) -> io::Result<(Dispatch, Journal)> {
    let level = config.level;
    let hub = Arc::new(Hub::start(config)?);
    let layer = layer::Capture::new(Arc::clone(&hub));
    let subscriber = tracing_subscriber::registry().with(layer).with(level.filter());
    Ok((Dispatch::new(subscriber), Journal { hub }))
}
