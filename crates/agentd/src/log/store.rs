//! The manager's end of the log: everything is said here and nothing is waited for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use agentd_engine::InvocationId;
use agentd_linux::epoll::Waker;
use agentd_unit::UnitName;

use super::carried::Carried;
use super::config::LogConfig;
use super::entry::Entry;
use super::outbox::{Haste, Outbox};
use super::reader::{Command, Orders, Reader};
use super::split::LineRules;
use super::writer::{Job, Writer};

/// Room for the two threads' stacks: their calls are shallow, and their buffers are on the heap.
const STACK_BYTES: usize = 256 << 10;

/// So many last words about units are taken up together.
const LAST_WORDS: u64 = 32;

/// One follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FollowId(u64);

#[cfg(test)]
impl FollowId {
    /// One for tests.
    pub(crate) fn first() -> Self {
        Self(0)
    }
}

/// The log of all units. What is said about one unit through one store happens in the order in which it was said.
///
/// Dropping it ends the threads in their own time; [`LogStore::stop`] waits for them.
#[derive(Debug)]
pub struct LogStore {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    /// The reading thread was woken and has not looked yet.
    woken: Arc<AtomicBool>,
    /// What can wait does so until [`LogStore::publish`].
    held_back: bool,
    /// Something was said that waits for it.
    unpublished: AtomicBool,
    /// So many last words were said.
    last_words: AtomicU64,
    /// Its other end goes when the writing thread ends.
    ended: Mutex<mpsc::Receiver<()>>,
    next_follow: AtomicU64,
    /// How many files the writing thread has open.
    open_files: Arc<AtomicUsize>,
    most_open: usize,
}

impl LogStore {
    /// Starts the threads. The folder need not exist or be writable yet: until it is, the newest lines are held.
    ///
    /// # Errors
    /// Bounds that contradict each other, or no descriptor or thread left.
    pub fn start(config: LogConfig) -> io::Result<Self> {
        config.check()?;
        let waker = Arc::new(Waker::new()?);
        let outbox = Arc::new(Outbox::new(Arc::clone(&waker)));
        let (commands, received) = mpsc::channel();
        let (alive, ended) = mpsc::channel();
        let woken = Arc::new(AtomicBool::new(false));
        let orders = Orders { received, woken: Arc::clone(&woken) };
        let reader =
            Reader::new(Arc::clone(&waker), orders, Arc::clone(&outbox), config.max_line, config.rate)?;
        let (open_files, most_open) = (Arc::new(AtomicUsize::new(0)), config.open_files);
        let writer = Writer::new(config, outbox, Arc::clone(&open_files));
        spawn("log-read", move || reader.run())?;
        spawn("log-write", move || {
            writer.run();
            drop(alive);
        })?;
        let (ended, next_follow) = (Mutex::new(ended), AtomicU64::new(0));
        let unpublished = AtomicBool::new(false);
        let last_words = AtomicU64::new(0);
        Ok(Self {
            commands,
            waker,
            woken,
            held_back: false,
            unpublished,
            last_words,
            ended,
            next_follow,
            open_files,
            most_open,
        })
    }

    /// How many more files it may open than it has open now.
    #[must_use]
    pub fn may_open(&self) -> usize {
        self.most_open.saturating_sub(self.open_files.load(Ordering::Relaxed))
    }

    /// The same, but new pipes, records and drains are taken up only after [`LogStore::publish`] or the next question: for
    /// a loop that says much in each turn, and would pay for a wake-up with each.
    #[must_use]
    pub fn held_back(mut self) -> Self {
        self.held_back = true;
        self
    }

    /// Has all that was said so far taken up.
    pub fn publish(&self) {
        if self.held_back && self.unpublished.swap(false, Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Reads the pipe of a run from now on, until its last writer is gone. `pipe` is its read end; the write end is
    /// both standard output and standard error of every process of the run.
    pub fn attach(&self, unit: &UnitName, run: InvocationId, pipe: OwnedFd, rules: LineRules) {
        self.say_in_turn(Command::Attach(unit.clone(), run, pipe, rules));
    }

    /// Writes what the manager says of a unit into the unit's log; each line of `text` is an entry. `priority` is 0 to
    /// 7, syslog(3). It may be in the file a second later, with what is said next.
    pub fn record(&self, unit: &UnitName, run: Option<InvocationId>, priority: u8, text: &str) {
        self.say_in_turn(record(unit, run, priority, text, Haste::CanWait));
    }

    /// The same for the last words about a unit, which wait for nothing: where all units stop, their files are written while
    /// others still do.
    pub fn last_record(&self, unit: &UnitName, run: Option<InvocationId>, priority: u8, text: &str) {
        self.say_in_turn(record(unit, run, priority, text, Haste::Last));
        if self.last_words.fetch_add(1, Ordering::Relaxed) % LAST_WORDS == LAST_WORDS - 1 {
            self.publish();
        }
    }

    /// Reads what is in the pipe of a run now, and ends a line that has no end. After it, a record comes after the
    /// last words of a process that has exited.
    pub fn drain(&self, run: InvocationId) {
        self.say_in_turn(Command::Drain(run));
    }

    /// Has the newest entries of a unit, oldest of them first and at most [`MAX_READ`](super::MAX_READ), given to
    /// `reply`, on a thread of the log: it must not wait for anything.
    ///
    /// `reply` gets the error of the system where a file cannot be read; a unit without a log has no entries.
    pub fn read(
        &self,
        unit: &UnitName,
        last: usize,
        reply: impl FnOnce(io::Result<Vec<Entry>>) + Send + 'static,
    ) {
        self.say(Command::Ask(Job::Read { unit: unit.clone(), last, reply: Box::new(reply) }));
    }

    /// Gives the newest `last` entries of a unit to `sink`, in one call even if there are none, and then each new one,
    /// with nothing missing and nothing twice between them. `sink` runs on a thread of the log: it must not wait for
    /// anything. It is called until it is dropped after [`LogStore::unfollow`].
    pub fn follow(
        &self,
        unit: &UnitName,
        last: usize,
        sink: impl FnMut(Vec<Entry>) + Send + 'static,
    ) -> FollowId {
        let id = FollowId(self.next_follow.fetch_add(1, Ordering::Relaxed));
        self.say(Command::Ask(Job::Follow { id, unit: unit.clone(), last, sink: Box::new(sink) }));
        id
    }

    /// Ends a follower. Entries that are under way may still reach it.
    pub fn unfollow(&self, id: FollowId) {
        self.say(Command::Ask(Job::Unfollow { id }));
    }

    /// Has `done` called, on a thread of the log, once all that pipes hold and all that was said so far is in the
    /// files, or held in memory because they cannot be written.
    pub fn flush(&self, done: impl FnOnce() + Send + 'static) {
        self.say(Command::DrainAll);
        self.say(Command::Ask(Job::Flush { done: Box::new(done) }));
    }

    /// Reads what the pipes hold, writes everything and ends; whether that was done within `timeout`. What is said
    /// afterwards is lost. An init syncs all disks at once before the machine ends; the others leave it to the kernel as
    /// with every line before, since to wait for the disk with each file would take longer than all else that an end does.
    #[must_use]
    pub fn stop(&self, timeout: Duration) -> bool {
        self.say(Command::Stop);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(ended.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected))
    }

    /// Ends like [`LogStore::stop`], but cuts no line: what has no end yet is for the log after this one. None: that was not
    /// done within `timeout`.
    #[must_use]
    pub fn hand_on(&self, timeout: Duration) -> Option<Carried> {
        let (heir, carried) = mpsc::channel();
        self.say(Command::HandOn(heir));
        let carried = carried.recv_timeout(timeout).ok();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        carried.filter(|_| matches!(ended.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected)))
    }

    /// Goes on with what the log before has handed on, as soon as pipes of the same runs are attached.
    pub fn carry_on(&self, carried: Carried) {
        self.say_in_turn(Command::CarryOn(carried));
    }

    /// No further pipe goes on with what the log before has handed on: what is left of it is written as it is.
    pub fn settle(&self) {
        self.say_in_turn(Command::Settle);
    }

    fn say(&self, command: Command) {
        self.send(command);
        self.wake();
    }

    /// Says what can wait until the others of the turn are said.
    fn say_in_turn(&self, command: Command) {
        self.send(command);
        if self.held_back {
            self.unpublished.store(true, Ordering::Relaxed);
        } else {
            self.wake();
        }
    }

    fn send(&self, command: Command) {
        if self.commands.send(command).is_err() {
            tracing::error!("the log of the agents' output has ended; what they say is lost");
        }
    }

    /// Once for all that is said until it looks.
    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }
}

impl Drop for LogStore {
    fn drop(&mut self) {
        // An error says that the thread has ended already.
        let _ended = self.commands.send(Command::Stop);
        self.waker.wake();
    }
}

fn record(unit: &UnitName, run: Option<InvocationId>, priority: u8, text: &str, haste: Haste) -> Command {
    Command::Record(unit.clone(), run, priority, text.as_bytes().to_vec(), haste)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run)?;
    Ok(())
}
