//! What the reading thread hands to the writing thread: lines, and questions, in one order.
//!
//! What the manager says of a unit is no hurry: it waits a while, so that the records of a start or a stop are one write to
//! a file, and the files of a thousand units are made when their processes run. Whatever comes after it takes it along.
//!
//! # Invariants
//! - It holds at most [`UNIT_BYTES`] and one chunk a unit, and [`TOTAL_BYTES`] in all, unless chunks of units that
//!   hold nothing else are more than that.
//! - What is asked about a unit is answered after every line of it that was handed over before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentd_linux::epoll::Waker;
use agentd_unit::UnitName;

use super::ring::{Chunk, Ring};
use super::writer::Job;

/// How many bytes of lines one unit may have waiting for the disk.
pub(crate) const UNIT_BYTES: usize = 1 << 20;

/// How many all units together may have.
pub(crate) const TOTAL_BYTES: usize = 16 << 20;

/// Up to this many bytes wait until [`Outbox::publish`], so that the writing thread is woken once for what belongs
/// together.
const HELD_BACK: usize = 64 << 10;

/// How long the manager's records wait for company. Whoever asks for them has them at once.
const RECORDS_WAIT: Duration = Duration::from_secs(1);

/// As many bytes as may wait so.
const RECORDS_BYTES: usize = 1 << 20;

/// For how many units the room is kept; what a start of more has needed goes back once it is written.
const UNITS_ROOM: usize = 256;

/// How many empty buffers are kept for the next chunks.
const SPARE_BUFFERS: usize = 4;

/// Whether what the manager says of a unit waits for what it says next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// It is written with what follows.
    CanWait,
    /// It is written now: nothing is expected to follow.
    Last,
}

/// What the writing thread does next.
pub(crate) enum Work {
    /// Write these lines.
    Write(UnitName, Ring),
    /// Do this.
    Do(Job),
    /// Nothing came in time: look after what could not be written before.
    Retry,
    /// Everything was handed over and nothing will follow.
    End,
}

enum Queued {
    Lines(UnitName),
    Job(Job),
}

/// The lines of one unit.
#[derive(Default)]
struct Waiting {
    ring: Ring,
    /// The unit stands in the queue; else its records wait for their time.
    queued: bool,
}

#[derive(Default)]
struct State {
    lines: HashMap<UnitName, Waiting>,
    /// Each queued unit of `lines` once, where its first line came.
    queue: VecDeque<Queued>,
    /// Units with records that wait, and until when; some may be queued since.
    records: VecDeque<(Instant, UnitName)>,
    /// How many follow a unit: for them nothing waits.
    followers: usize,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    /// The reading thread waits for room.
    wanted: bool,
    /// The writing thread waits for something to do.
    idle: bool,
    ended: bool,
    /// Units stop for good: to give back memory that goes with the program would take time from that.
    last_words: bool,
}

impl State {
    /// Gives back the room of many units, once there is none with lines.
    fn give_back(&mut self) {
        self.lines = HashMap::new();
        self.queue.shrink_to_fit();
        self.records.shrink_to_fit();
    }

    fn queue(&mut self, unit: &UnitName) {
        if let Some(waiting) = self.lines.get_mut(unit)
            && !std::mem::replace(&mut waiting.queued, true)
        {
            self.queue.push_back(Queued::Lines(unit.clone()));
        }
    }

    /// Queues the units whose records have waited until `now`; all of them without a time.
    fn queue_records(&mut self, now: Option<Instant>) {
        let is_due = |(due, _): &(Instant, UnitName)| now.is_none_or(|now| *due <= now);
        while self.records.front().is_some_and(is_due) {
            let Some((_, unit)) = self.records.pop_front() else { return };
            self.queue(&unit);
        }
    }
}

/// Shared by the two threads.
pub(crate) struct Outbox {
    state: Mutex<State>,
    filled: Condvar,
    /// Wakes the reading thread when there is room again.
    room: std::sync::Arc<Waker>,
}

impl Outbox {
    pub(crate) fn new(room: std::sync::Arc<Waker>) -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), room }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether lines of the unit can be taken without dropping any; if not, the reading thread is woken once
    /// something was taken out. While lines are being dropped (`dropping`), only when half of the room is free: what dropping
    /// itself makes free does not count.
    pub(crate) fn has_room(&self, unit: &UnitName, dropping: bool) -> bool {
        let mut state = self.lock();
        let held = state.lines.get(unit).map_or(0, |waiting| waiting.ring.bytes());
        let part = if dropping { 2 } else { 1 };
        let room = held < UNIT_BYTES / part && state.bytes < TOTAL_BYTES / part;
        state.wanted |= !room;
        room
    }

    /// Takes lines. Where there is no room, older lines of the same unit are dropped and counted.
    pub(crate) fn push(&self, unit: &UnitName, chunk: Chunk) {
        let mut state = self.lock();
        self.hold(&mut state, unit, chunk);
        state.queue(unit);
        if state.bytes > HELD_BACK {
            self.fill(&mut state);
        }
    }

    /// Takes what the manager says of a unit, as [`Outbox::push`] does; it may wait a while.
    pub(crate) fn push_record(&self, unit: &UnitName, chunk: Chunk, haste: Haste) {
        let mut state = self.lock();
        let is_new = !state.lines.contains_key(unit);
        self.hold(&mut state, unit, chunk);
        state.last_words |= haste == Haste::Last;
        if state.followers > 0 || haste == Haste::Last {
            state.queue(unit);
        } else if state.bytes > RECORDS_BYTES {
            state.queue_records(None);
            state.queue(unit);
        } else if is_new {
            let was_empty = state.records.is_empty();
            state.records.push_back((Instant::now() + RECORDS_WAIT, unit.clone()));
            if was_empty {
                // It does not know yet until when to sleep.
                self.fill(&mut state);
            }
        }
    }

    fn hold(&self, state: &mut State, unit: &UnitName, chunk: Chunk) {
        let added = chunk.bytes.len();
        if !state.lines.contains_key(unit) {
            state.lines.insert(unit.clone(), Waiting::default());
        }
        let Some(Waiting { ring, .. }) = state.lines.get_mut(unit) else { return };
        let before = ring.bytes();
        ring.shrink(UNIT_BYTES.min(before.saturating_sub((state.bytes + added).saturating_sub(TOTAL_BYTES))));
        let joined = ring.push(chunk);
        state.bytes = state.bytes - before + ring.bytes();
        if let Some(buffer) = joined
            && state.spare.len() < SPARE_BUFFERS
        {
            state.spare.push(buffer);
        }
    }

    /// Asks the writing thread for something.
    pub(crate) fn ask(&self, job: Job) {
        let mut state = self.lock();
        match job {
            Job::Follow { .. } => state.followers += 1,
            Job::Unfollow { .. } => state.followers = state.followers.saturating_sub(1),
            Job::Read { .. } | Job::Flush { .. } => {}
        }
        state.queue_records(None);
        state.queue.push_back(Queued::Job(job));
        self.fill(&mut state);
    }

    /// Has the writing thread take up the lines that were pushed: to be called before the reading thread waits.
    pub(crate) fn publish(&self) {
        let mut state = self.lock();
        if !state.queue.is_empty() {
            self.fill(&mut state);
        }
    }

    /// Wakes the writing thread, if it is not on its way already.
    fn fill(&self, state: &mut State) {
        if std::mem::take(&mut state.idle) {
            self.filled.notify_one();
        }
    }

    /// Nothing will follow.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.queue_records(None);
        state.ended = true;
        drop(state);
        self.filled.notify_one();
    }

    /// What is to be done next; waits for it, but no longer than `timeout`.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Work {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.lock();
        loop {
            match state.queue.pop_front() {
                Some(Queued::Job(job)) => return Work::Do(job),
                Some(Queued::Lines(unit)) => {
                    let ring = state.lines.remove(&unit).unwrap_or_default().ring;
                    state.bytes -= ring.bytes();
                    if std::mem::take(&mut state.wanted) {
                        self.room.wake();
                    }
                    return Work::Write(unit, ring);
                }
                None if state.ended => return Work::End,
                None => {}
            }
            let due = state.records.front().map(|(due, _)| *due);
            let Some(wake) = until.into_iter().chain(due).min() else {
                if state.lines.is_empty() && state.lines.capacity() > UNITS_ROOM && !state.last_words {
                    state.give_back();
                    drop(state);
                    agentd_linux::memory::trim();
                    agentd_linux::memory::let_file_go();
                    state = self.lock();
                    continue;
                }
                state.idle = true;
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let now = Instant::now();
            state.queue_records(Some(now));
            if !state.queue.is_empty() {
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                return Work::Retry;
            }
            state.idle = true;
            let waited = self.filled.wait_timeout(state, wake.saturating_duration_since(now));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// An empty buffer, used before if there is one.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(crate) fn reuse(&self, mut buffer: Vec<u8>) {
        let mut state = self.lock();
        if state.spare.len() < SPARE_BUFFERS {
            buffer.clear();
            state.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_engine::InvocationId;

    use super::super::store;
    use super::*;

    fn chunk(text: &str) -> Chunk {
        let bytes = text.as_bytes().to_vec();
        Chunk { run: Some(InvocationId(1)), dropped_before: 0, lines: 1, bytes }
    }

    fn unit(name: &str) -> UnitName {
        UnitName::parse(name).unwrap()
    }

    /// What the writing thread is given next, without waiting: the unit and its lines, or what else.
    fn next(outbox: &Outbox) -> String {
        match outbox.next(Some(Duration::ZERO)) {
            Work::Write(unit, mut ring) => {
                let mut text = format!("{unit}: ");
                while let Some(chunk) = ring.pop() {
                    text.push_str(&String::from_utf8(chunk.bytes).unwrap());
                }
                text
            }
            Work::Do(_) => "job".into(),
            Work::Retry => "nothing".into(),
            Work::End => "end".into(),
        }
    }

    fn outbox() -> Outbox {
        Outbox::new(Arc::new(Waker::new().unwrap()))
    }

    #[test]
    fn records_wait_for_what_takes_them_along_in_their_order() {
        let outbox = outbox();
        let (a, b) = (unit("a.service"), unit("b.service"));
        outbox.push_record(&a, chunk("started "), Haste::CanWait);
        outbox.push_record(&b, chunk("started "), Haste::CanWait);
        assert_eq!(next(&outbox), "nothing");
        outbox.push(&a, chunk("said "));
        outbox.push_record(&a, chunk("stopped"), Haste::CanWait);
        assert_eq!(next(&outbox), "a.service: started said stopped");
        assert_eq!(next(&outbox), "nothing");
        outbox.ask(Job::Flush { done: Box::new(|| {}) });
        assert_eq!([next(&outbox), next(&outbox)], ["b.service: started ", "job"]);
        outbox.push_record(&b, chunk("stopped"), Haste::CanWait);
        outbox.end();
        assert_eq!([next(&outbox), next(&outbox)], ["b.service: stopped", "end"]);
    }

    #[test]
    fn the_last_record_of_a_unit_takes_those_along_that_wait() {
        let outbox = outbox();
        let (a, b) = (unit("a.service"), unit("b.service"));
        for unit in [&a, &b] {
            outbox.push_record(unit, chunk("stopping "), Haste::CanWait);
        }
        outbox.push_record(&b, chunk("stopped"), Haste::Last);
        assert_eq!([next(&outbox), next(&outbox)], ["b.service: stopping stopped", "nothing"]);
    }

    #[test]
    fn records_wait_no_longer_than_their_time_nor_where_somebody_follows() {
        let outbox = outbox();
        let a = unit("a.service");
        let begun = Instant::now();
        outbox.push_record(&a, chunk("started"), Haste::CanWait);
        assert!(matches!(outbox.next(None), Work::Write(..)));
        assert!(begun.elapsed() >= RECORDS_WAIT);
        outbox.ask(Job::Follow {
            id: store::FollowId::first(),
            unit: a.clone(),
            last: 0,
            sink: Box::new(|_| {}),
        });
        assert_eq!(next(&outbox), "job");
        outbox.push_record(&a, chunk("stopped"), Haste::CanWait);
        assert_eq!(next(&outbox), "a.service: stopped");
    }

    #[test]
    fn many_records_do_not_wait() {
        let outbox = outbox();
        let text = "x".repeat(1000);
        for number in 0..=RECORDS_BYTES / 1000 {
            assert_eq!(next(&outbox), "nothing", "{number}");
            outbox.push_record(&unit(&format!("u{number}.service")), chunk(&text), Haste::CanWait);
        }
        assert!(next(&outbox).starts_with("u0.service"));
    }
}
