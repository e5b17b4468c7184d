//! Between the loop, which never waits, and one outlet, which may: a bounded queue and a thread.
//!
//! # Invariants
//! - Pushing takes no longer than copying a pointer.
//! - A flood of messages wakes the thread a few hundred times in a second and no more.
//! - Messages leave in the order in which they came. Where too many wait the oldest go, and their number takes their
//!   place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::level::LogLevel;
use super::message::Message;

/// How much waits for one outlet.
#[derive(Debug, Clone, Copy)]
struct Bound {
    messages: usize,
    bytes: usize,
}

/// For an outlet that may be there soon: the boot of a machine with a thousand units whose journal comes last.
const HOPEFUL: Bound = Bound { messages: 8192, bytes: 4 << 20 };
/// For one that has not been there for long, and may never be.
const RESIGNED: Bound = Bound { messages: 256, bytes: 256 << 10 };

/// A refused message is offered again after this, then twice this, and so on …
const FIRST_RETRY: Duration = Duration::from_millis(50);
/// … this often: for about half a minute. After that only a new message makes a new attempt, so that a machine
/// without a journal is not woken for it for ever.
const RETRIES: u32 = 9;
/// How long after an attempt a new message may make the next.
const SPACING: Duration = Duration::from_secs(1);

/// How long the thread stays for more before it goes to sleep until it is woken: waking it for each of a thousand
/// messages costs the loop more than all else that it does for them.
const LINGER: Duration = Duration::from_millis(5);

/// Why an outlet did not take a message.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It may take it later; nothing newer overtakes it.
    Later,
    /// Nobody is there to take anything. As `Later`, but whoever is about to end does not wait for it.
    Absent,
    /// It will never take this one.
    Never(io::Error),
}

/// Something that takes messages, and may take its time.
pub(crate) trait Outlet: Send + 'static {
    /// Hands one message over. The outlet may keep what it took for a moment, so that several leave at once.
    fn deliver(&mut self, message: &Message) -> Result<(), Refusal>;

    /// No message follows for now: what is kept goes.
    fn flush(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Message>>,
    bytes: usize,
    dropped: u64,
    /// The thread or the outlet holds one that is not delivered yet.
    busy: bool,
    /// How many wait until everything is delivered.
    flushing: usize,
    /// The thread sleeps until the next message.
    asleep: bool,
    /// An attempt is wanted now.
    poked: bool,
    /// How many attempts have found nobody there.
    absences: u64,
    /// Nobody was ever there, and nobody is expected to come.
    hopeless: bool,
    /// The outlet has taken nothing for long.
    resigned: bool,
    ended: bool,
}

impl State {
    /// Drops the oldest messages that are too many.
    fn trim(&mut self) {
        let bound = if self.resigned { RESIGNED } else { HOPEFUL };
        while self.waiting.len() > bound.messages || self.bytes > bound.bytes {
            let Some(oldest) = self.waiting.pop_front() else { return };
            self.bytes -= oldest.bytes();
            self.dropped += 1;
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    delivered: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// Whose threads are to be woken later; `None`: nobody's.
    static LATER: RefCell<Option<Vec<Arc<Shared>>>> = const { RefCell::new(None) };
}

/// Notes that a thread is to be woken; whether this thread does that later.
fn wake_later(shared: &Arc<Shared>) -> bool {
    let note = |later: &RefCell<Option<Vec<Arc<Shared>>>>| match &mut *later.borrow_mut() {
        Some(later) => {
            later.push(Arc::clone(shared));
            true
        }
        None => false,
    };
    // A thread that ends has no such list any more.
    LATER.try_with(note).unwrap_or(false)
}

/// While this lives, what its thread says wakes no outlet: that takes longer than all else that is done for a message, and
/// other work is more urgent. It is for a turn of the main loop, which ends soon.
pub struct LateWaking(PhantomData<*const ()>);

impl LateWaking {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        LATER.set(Some(Vec::new()));
        Self(PhantomData)
    }

    /// Wakes all that wait for it.
    pub fn wake(&self) {
        let waiting = LATER.with(|later| later.borrow_mut().as_mut().map(std::mem::take));
        waiting.into_iter().flatten().for_each(|shared| shared.changed.notify_one());
    }
}

impl Drop for LateWaking {
    fn drop(&mut self) {
        self.wake();
        LATER.set(None);
    }
}

/// The loop's end of a queue. Dropping it ends the thread once it has delivered what the outlet takes at once.
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    /// Starts the thread of an outlet. If it is not there, and not `expected` to come, less is kept for it, and the clock
    /// makes no attempts.
    pub(crate) fn start(name: &str, expected: bool, outlet: impl Outlet) -> io::Result<Self> {
        let state = State { hopeless: !expected, resigned: !expected, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), ..Shared::default() });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        thread.spawn(move || run(&theirs, outlet))?;
        Ok(Self { shared })
    }

    pub(crate) fn push(&self, message: Arc<Message>) {
        let mut state = self.shared.lock();
        state.bytes += message.bytes();
        state.waiting.push_back(message);
        state.trim();
        let asleep = std::mem::take(&mut state.asleep);
        // Who is woken while the lock is held only waits for it.
        drop(state);
        if asleep && !wake_later(&self.shared) {
            self.shared.changed.notify_one();
        }
    }

    /// Has the outlet tried now, as it may be there now.
    pub(crate) fn poke(&self) {
        self.shared.lock().poked = true;
        self.shared.changed.notify_one();
    }

    /// Waits until everything was delivered; whether it was before `deadline`. One more attempt is made, and where
    /// that finds nobody there is nothing to wait for.
    pub(crate) fn flush(&self, deadline: Instant) -> bool {
        let mut state = self.shared.lock();
        // Asked for and counted under one lock, or the attempt could be over before it is waited for.
        let absences = state.absences;
        state.poked = true;
        state.flushing += 1;
        self.shared.changed.notify_one();
        let delivered = loop {
            if !(state.busy || !state.waiting.is_empty() || state.dropped > 0) {
                break true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.absences > absences {
                break false;
            }
            state = self.shared.delivered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        state.flushing -= 1;
        delivered
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared, mut outlet: impl Outlet) {
    let mut told = false;
    let mut kept = false;
    loop {
        let message = match next(shared, kept) {
            Next::Message(message) => Some(message),
            Next::Flush => None,
            Next::End => return,
        };
        kept = message.is_some();
        for attempt in 1.. {
            let mut absent = false;
            let result = match &message {
                Some(message) => outlet.deliver(message),
                None => outlet.flush(),
            };
            match result {
                Ok(()) if kept => {
                    let mut state = shared.lock();
                    (state.hopeless, state.resigned) = (false, false);
                    break;
                }
                Ok(()) => break,
                Err(Refusal::Later) => {}
                Err(Refusal::Absent) => {
                    absent = true;
                    shared.lock().absences += 1;
                    shared.delivered.notify_all();
                }
                Err(Refusal::Never(error)) => {
                    // Once: the next message will fare no better, and the other outlets have it.
                    if !std::mem::replace(&mut told, true) {
                        eprintln!("agentd: an outlet of the log takes no messages: {error}");
                    }
                    break;
                }
            }
            if !wait(shared, attempt, absent) {
                return;
            }
        }
    }
}

/// What the thread does next.
enum Next {
    /// Deliver this message, or what tells of those that were dropped before it.
    Message(Arc<Message>),
    /// Have the outlet let go of what it keeps.
    Flush,
    /// Nothing will follow.
    End,
}

/// What is next, once there is something. `kept`: the outlet may keep messages.
fn next(shared: &Shared, kept: bool) -> Next {
    let mut state = shared.lock();
    state.busy = kept;
    let mut lingered = false;
    loop {
        if state.dropped > 0 {
            let text = format!("{} messages of agentd were dropped before this one", state.dropped);
            state.dropped = 0;
            state.busy = true;
            return Next::Message(Arc::new(Message::own(LogLevel::Warning, text)));
        }
        if let Some(message) = state.waiting.pop_front() {
            state.bytes -= message.bytes();
            state.busy = true;
            return Next::Message(message);
        }
        if kept {
            return Next::Flush;
        }
        if state.flushing > 0 {
            shared.delivered.notify_all();
        }
        if state.ended {
            return Next::End;
        }
        state = if std::mem::replace(&mut lingered, true) {
            state.asleep = true;
            shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
        } else {
            shared.changed.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner).0
        };
    }
}

/// Waits until a refused message is to be offered again; false once there is nobody to wait for.
fn wait(shared: &Shared, attempt: u32, absent: bool) -> bool {
    let start = Instant::now();
    let mut state = shared.lock();
    let patient = attempt <= RETRIES;
    // Where nobody ever was, the clock would only wake the machine: a new message or a poke may find somebody.
    let due = (patient && !(absent && state.hopeless)).then(|| start + FIRST_RETRY * (1 << (attempt - 1)));
    if !patient && !std::mem::replace(&mut state.resigned, true) {
        state.trim();
        state.waiting.shrink_to_fit();
    }
    let seen = state.waiting.len() as u64 + state.dropped;
    loop {
        if std::mem::take(&mut state.poked) {
            return true;
        }
        if state.ended {
            return false;
        }
        let news = state.waiting.len() as u64 + state.dropped > seen;
        let until = match due {
            Some(due) if news => Some(due.min(start + SPACING)),
            None if news => Some(start + SPACING),
            due => due,
        };
        let now = Instant::now();
        // Only the first of new messages changes until when we wait.
        state.asleep = !news;
        state = match until {
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) if until <= now => return true,
            Some(until) => {
                shared.changed.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// An outlet that takes nothing until it is opened.
    struct Gate {
        open: mpsc::Receiver<()>,
        is_open: bool,
        taken: mpsc::Sender<String>,
    }

    impl Outlet for Gate {
        fn deliver(&mut self, message: &Message) -> Result<(), Refusal> {
            self.is_open |= self.open.try_recv().is_ok();
            if !self.is_open {
                return Err(Refusal::Later);
            }
            self.taken.send(message.text.clone()).map_err(|_| Refusal::Later)
        }
    }

    fn gate() -> (mpsc::Sender<()>, mpsc::Receiver<String>, Gate) {
        let (opener, open) = mpsc::channel();
        let (taken, takes) = mpsc::channel();
        (opener, takes, Gate { open, is_open: false, taken })
    }

    fn message(number: usize) -> Arc<Message> {
        Arc::new(Message::own(LogLevel::Info, number.to_string()))
    }

    /// An outlet that is not there, and tells of each attempt.
    struct Nobody(mpsc::Sender<()>);

    impl Outlet for Nobody {
        fn deliver(&mut self, _message: &Message) -> Result<(), Refusal> {
            self.0.send(()).map_err(|_| Refusal::Later)?;
            Err(Refusal::Absent)
        }
    }

    #[test]
    fn an_outlet_that_never_was_there_is_tried_for_a_message_and_not_by_the_clock() {
        let soon = FIRST_RETRY * 4;
        for (expected, again) in [(false, Err(mpsc::RecvTimeoutError::Timeout)), (true, Ok(()))] {
            let (attempts, tried) = mpsc::channel();
            let queue = Queue::start("test", expected, Nobody(attempts)).unwrap();
            queue.push(message(1));
            assert_eq!(tried.recv_timeout(Duration::from_secs(60)), Ok(()), "expected: {expected}");
            assert_eq!(tried.recv_timeout(soon), again, "expected: {expected}");
            queue.push(message(2));
            assert_eq!(tried.recv_timeout(Duration::from_secs(60)), Ok(()), "expected: {expected}");
        }
    }

    #[test]
    fn what_a_turn_says_leaves_at_its_end_or_when_it_is_waited_for() {
        let (opener, taken, outlet) = gate();
        opener.send(()).unwrap();
        let queue = Queue::start("test", true, outlet).unwrap();
        let sleeps = || queue.shared.lock().asleep;
        let wait_for_sleep = || {
            while !sleeps() {
                thread::yield_now();
            }
        };
        let next = || taken.recv_timeout(Duration::from_secs(60)).unwrap();
        wait_for_sleep();
        {
            let late = LateWaking::begin();
            queue.push(message(1));
            assert_eq!(taken.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
            late.wake();
            assert_eq!(next(), "1");
            wait_for_sleep();
            queue.push(message(2));
            assert!(queue.flush(Instant::now() + Duration::from_secs(60)), "who waits is not made to wait");
            assert_eq!(next(), "2");
            wait_for_sleep();
            queue.push(message(3));
        }
        assert_eq!(next(), "3");
        wait_for_sleep();
        queue.push(message(4));
        assert_eq!(next(), "4", "outside of a turn nobody waits for its end");
    }

    #[test]
    fn whoever_ends_never_waits_for_an_outlet_that_is_not_there() {
        let (attempts, _tried) = mpsc::channel();
        let queue = Queue::start("test", true, Nobody(attempts)).unwrap();
        queue.push(message(0));
        let long = Instant::now() + Duration::from_secs(600);
        // An attempt that is over before it is waited for would be waited for to the end.
        assert!((0..10_000).all(|_| !queue.flush(long)));
        assert!(Instant::now() < long);
    }

    #[test]
    fn an_outlet_that_stays_away_costs_little_memory_and_nothing_is_lost_uncounted() {
        let (opener, takes, gate) = gate();
        let queue = Queue::start("test", true, gate).unwrap();
        (0..2000).for_each(|number| queue.push(message(number)));
        // Each poke is an attempt, so that the half minute of them is over at once.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !queue.shared.lock().resigned {
            assert!(Instant::now() < deadline);
            queue.poke();
            thread::yield_now();
        }
        queue.push(message(2000));
        assert!(queue.shared.lock().waiting.len() <= RESIGNED.messages);
        opener.send(()).unwrap();
        assert!(queue.flush(deadline));
        let taken: Vec<String> = takes.try_iter().collect();
        let dropped = 2001 - RESIGNED.messages - 1;
        assert_eq!(
            taken[..2],
            ["0".to_owned(), format!("{dropped} messages of agentd were dropped before this one")]
        );
        let rest: Vec<String> = (2001 - RESIGNED.messages..2001).map(|n| n.to_string()).collect();
        assert_eq!(taken[2..], rest);
        assert!(!queue.shared.lock().resigned, "and there is room again");
    }
}
