//! From tracing's events to the outlets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::JournalConfig;
use super::level::LogLevel;
use super::message::Message;
use super::native::Journald;
use super::queue::Queue;
use super::text::{KernelLog, Stream};

/// One outlet and what it is given.
pub(crate) struct Tap {
    /// What is quieter is not for it.
    level: LogLevel,
    /// Nothing is for it while journald is there.
    substitute: bool,
    /// It shows what the kernel shows too: nothing is for it that the kernel's log puts there already.
    beside_kernel: bool,
    pub(crate) queue: Queue,
}

/// All outlets.
pub(crate) struct Hub {
    level: LogLevel,
    journald_is_up: Arc<AtomicBool>,
    /// What has a smaller number than this, the kernel puts on the console by itself when it is in its log.
    kernel_shows: u8,
    taps: Vec<Tap>,
}

impl Hub {
    pub(crate) fn start(config: JournalConfig) -> io::Result<Self> {
        let journald_is_up = Arc::new(AtomicBool::new(false));
        let (mut taps, mut first) = (Vec::new(), None);
        let level = config.level;
        if let Some(out) = config.stderr {
            let queue = Queue::start("log-stderr", true, Stream::stamped(out))?;
            taps.push(Tap { level, substitute: false, beside_kernel: false, queue });
        }
        let mut kernel_shows = config.kmsg.as_ref().and(config.kernel_shows).unwrap_or(0);
        if let Some((level, out)) = config.console {
            let queue = Queue::start("log-console", true, Stream::console(out))?;
            taps.push(Tap { level, substitute: false, beside_kernel: true, queue });
        }
        if let Some(kmsg) = config.kmsg {
            first = unthrottle_kmsg();
            if first.is_some() {
                kernel_shows = 0; // It drops lines, which must be said somewhere.
            }
            let queue = Queue::start("log-kmsg", true, KernelLog(kmsg))?;
            taps.push(Tap { level, substitute: true, beside_kernel: false, queue });
        }
        if let Some(path) = config.journald {
            let outlet = Journald::new(path, config.user, Arc::clone(&journald_is_up));
            let queue = Queue::start("log-journald", config.journald_may_come, outlet)?;
            taps.push(Tap { level, substitute: false, beside_kernel: false, queue });
        }
        let hub = Self { level, journald_is_up, kernel_shows, taps };
        if let Some(message) = first {
            hub.push(|| message, LogLevel::Debug);
        }
        Ok(hub)
    }

    pub(crate) fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter()
    }

    pub(crate) fn journald_is_up(&self) -> bool {
        self.journald_is_up.load(Ordering::Relaxed)
    }

    /// Gives a message of this level, which is made if anybody hears it, to all outlets that are to have it.
    pub(crate) fn push(&self, make: impl FnOnce() -> Message, level: LogLevel) {
        if level > self.level {
            return;
        }
        let message = Arc::new(make());
        let up = self.journald_is_up();
        let shown = !up && message.level.number() < self.kernel_shows;
        for tap in &self.taps {
            if message.level <= tap.level && !(tap.substitute && up) && !(tap.beside_kernel && shown) {
                tap.queue.push(Arc::clone(&message));
            }
        }
    }
}

/// Without being told, the kernel drops all but ten lines in five seconds that one process writes to its log. An init
/// has more to say, printk_devkmsg in the kernel's admin-guide/sysctl/kernel. Returns what there is to say of it.
fn unthrottle_kmsg() -> Option<Message> {
    if std::process::id() != 1 {
        return None;
    }
    // In a container it may be read-only; the kernel's log then says less, and the other outlets say all.
    // The word with its line's end: the kernel refuses it without.
    let error = std::fs::write("/proc/sys/kernel/printk_devkmsg", "on\n").err()?;
    let text = format!("the kernel's log takes only ten lines in five seconds: printk_devkmsg: {error}");
    Some(Message::own(LogLevel::Debug, text))
}

/// Takes every event. Spans are no concern of it: what is said about a unit names the unit itself.
pub(crate) struct Capture {
    hub: Arc<Hub>,
}

impl Capture {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let message = Message::of(event);
        let level = message.level;
        self.hub.push(|| message, level);
    }
}
