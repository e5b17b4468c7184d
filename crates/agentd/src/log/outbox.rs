//! What the reading thread hands to the writing thread: lines, and questions, in one order.
//!
//! # Invariants
//! - It holds at most [`UNIT_BYTES`] and one chunk a unit, and [`TOTAL_BYTES`] and one chunk in all.
//! - What is asked about a unit is answered after every line of it that was handed over before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// How many empty buffers are kept for the next chunks.
const SPARE_BUFFERS: usize = 4;

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

#[derive(Default)]
struct State {
    lines: HashMap<UnitName, Ring>,
    /// Each unit of `lines` once, where its first line came.
    queue: VecDeque<Queued>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    /// The reading thread waits for room.
    wanted: bool,
    /// The writing thread waits for something to do.
    idle: bool,
    ended: bool,
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
        let held = state.lines.get(unit).map_or(0, Ring::bytes);
        let part = if dropping { 2 } else { 1 };
        let room = held < UNIT_BYTES / part && state.bytes < TOTAL_BYTES / part;
        state.wanted |= !room;
        room
    }

    /// Takes lines. Where there is no room, older lines of the same unit are dropped and counted.
    pub(crate) fn push(&self, unit: &UnitName, chunk: Chunk) {
        let mut state = self.lock();
        let state = &mut *state;
        let added = chunk.bytes.len();
        if !state.lines.contains_key(unit) {
            state.queue.push_back(Queued::Lines(unit.clone()));
            state.lines.insert(unit.clone(), Ring::default());
        }
        let Some(ring) = state.lines.get_mut(unit) else { return };
        let before = ring.bytes();
        ring.shrink(UNIT_BYTES.min(before.saturating_sub((state.bytes + added).saturating_sub(TOTAL_BYTES))));
        let joined = ring.push(chunk);
        state.bytes = state.bytes - before + ring.bytes();
        if let Some(buffer) = joined
            && state.spare.len() < SPARE_BUFFERS
        {
            state.spare.push(buffer);
        }
        if state.bytes > HELD_BACK {
            self.fill(state);
        }
    }

    /// Asks the writing thread for something.
    pub(crate) fn ask(&self, job: Job) {
        let mut state = self.lock();
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
        self.lock().ended = true;
        self.filled.notify_one();
    }

    /// What is to be done next; waits for it, but no longer than `timeout`.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Work {
        let mut state = self.lock();
        loop {
            match state.queue.pop_front() {
                Some(Queued::Job(job)) => return Work::Do(job),
                Some(Queued::Lines(unit)) => {
                    let ring = state.lines.remove(&unit).unwrap_or_default();
                    state.bytes -= ring.bytes();
                    if std::mem::take(&mut state.wanted) {
                        self.room.wake();
                    }
                    return Work::Write(unit, ring);
                }
                None if state.ended => return Work::End,
                None => {}
            }
            state.idle = true;
            state = match timeout {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let result = self.filled.wait_timeout(state, timeout);
                    let (state, waited) = result.unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() && state.queue.is_empty() && !state.ended {
                        return Work::Retry;
                    }
                    state
                }
            };
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
