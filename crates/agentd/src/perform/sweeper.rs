//! The cgroups of runs that end together are removed, and what these runs held is let go of, on a thread of its own: the
//! kernel takes more time for that than the main loop for all else that an end means.
//!
//! # Invariants
//!
//! - Nothing waits for a removal for ever: the main loop takes all answers before it rests, and before it carries out an
//!   effect that could make a cgroup of the same name.
//! - A run counts as empty once the answer was taken, and not before.
//! - What a run held is handed over only while removals are under way, so that never more of it waits than of them; a
//!   new process is made only once nothing of it waits, so that its descriptors can be had again.
//! - Of the runs that ended alone one at most is held, until the main loop has nothing else to do or looks at its
//!   sources.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use agentd_engine::{Effect, Event, InvocationId};
use agentd_linux::cgroup::{Removal, remove_empty};

use super::births;
use super::runs::Run;
use crate::world::World;

/// The thread's stack: its calls are shallow.
const STACK_BYTES: usize = 128 * 1024;

/// What the thread does, in this order.
enum Task {
    /// Remove the cgroup of a run, if it is empty.
    Remove(InvocationId, PathBuf),
    /// Let go of a run.
    Drop(Box<Run>),
}

/// The main loop's end. The thread ends when this is dropped.
#[derive(Debug, Default)]
pub struct Sweeper {
    desk: Option<Desk>,
    under_way: HashSet<InvocationId>,
    /// How many runs were handed over and are not known to be closed.
    letting_go: usize,
    /// The run that was over last, if it ended alone: the birth of the next one is more urgent than letting go of this.
    last: Option<Box<Run>>,
}

/// What the thread has done.
enum Answer {
    /// Looked at the cgroup of a run; and whether it is gone.
    Looked(InvocationId, bool),
    /// Let go of a run.
    LetGo,
}

#[derive(Debug)]
struct Desk {
    tasks: Sender<Task>,
    answers: Receiver<Answer>,
}

impl Sweeper {
    /// Begins to remove the cgroup of a run, if it is empty; false if there is no thread for it.
    pub fn begin(&mut self, run: InvocationId, cgroup: PathBuf) -> bool {
        if self.desk.is_none() {
            self.desk = Desk::open()
                .inspect_err(|error| {
                    tracing::warn!(%error, "there is no thread that removes cgroups; the main loop does it");
                })
                .ok();
        }
        let Some(desk) = &self.desk else { return false };
        if self.under_way.contains(&run) {
            return true;
        }
        let begun = desk.tasks.send(Task::Remove(run, cgroup)).is_ok();
        if begun {
            self.under_way.insert(run);
        }
        begun
    }

    /// Lets go of what a run held: alongside while there is more of the kind, else with [`Sweeper::let_go`].
    pub fn discard(&mut self, run: Box<Run>) {
        let Some(desk) = self.desk.as_ref().filter(|_| !self.under_way.is_empty()) else {
            self.last = Some(run);
            return;
        };
        // A thread that is gone gives it back, and it is dropped here.
        let handed_over = desk.tasks.send(Task::Drop(run)).is_ok();
        self.letting_go += usize::from(handed_over);
    }

    /// Whether the run that ended alone is held still.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.last.is_some()
    }

    /// Lets go of the run that ended alone.
    pub fn let_go(&mut self) {
        self.last = None;
    }

    /// Waits until nothing that was discarded is held any more; nothing else is under way.
    fn close_all(&mut self) {
        while self.letting_go > 0 {
            match self.next() {
                Some(Answer::LetGo) => self.letting_go -= 1,
                // Who looks at nothing has nothing else to say, unless it is gone and has dropped all.
                Some(Answer::Looked(..)) | None => self.letting_go = 0,
            }
        }
    }

    fn next(&self) -> Option<Answer> {
        self.desk.as_ref().and_then(|desk| desk.answers.recv().ok())
    }

    /// Waits for the first of the answers; none if nothing is under way.
    fn answer(&mut self) -> Option<(InvocationId, bool)> {
        let first = *self.under_way.iter().next()?;
        let (run, removed) = loop {
            match self.next() {
                Some(Answer::LetGo) => self.letting_go = self.letting_go.saturating_sub(1),
                Some(Answer::Looked(run, removed)) => break (run, removed),
                // A thread that is gone has removed nothing more.
                None => break (first, false),
            }
        };
        self.under_way.remove(&run);
        Some((run, removed))
    }
}

impl Desk {
    fn open() -> io::Result<Self> {
        let (tasks, todo) = channel();
        let (done, answers) = channel();
        let thread = thread::Builder::new().name("sweeper".into()).stack_size(STACK_BYTES);
        thread.spawn(move || sweep(&todo, &done))?;
        Ok(Self { tasks, answers })
    }
}

fn sweep(todo: &Receiver<Task>, done: &Sender<Answer>) {
    for task in todo {
        let answer = match task {
            // Where it fails the main loop tries again, and says why.
            Task::Remove(run, cgroup) => {
                Answer::Looked(run, matches!(remove_empty(&cgroup), Ok(Removal::Removed)))
            }
            Task::Drop(run) => {
                drop(run);
                Answer::LetGo
            }
        };
        if done.send(answer).is_err() {
            return;
        }
    }
}

/// Waits for the first of the removals that are under way, and tells if its run is empty; false if there is none.
pub fn answer(world: &mut World, events: &mut VecDeque<Event>) -> bool {
    let Some((run, removed)) = world.sweeper.answer() else { return false };
    if let Some(entry) = world.runs.get_mut(run).filter(|entry| removed && entry.processes.is_empty()) {
        (entry.removed, entry.emptied) = (true, true);
    }
    crate::watch::groups::reaped(run, world, events);
    true
}

/// Takes all answers before an effect that may have to do with a run whose cgroup is being removed.
pub fn settle_before(effect: &Effect, world: &mut World, events: &mut VecDeque<Event>) {
    if may_go_on(effect, &world.sweeper) {
        return;
    }
    while answer(world, events) {}
    if births::is_one(effect) {
        world.sweeper.close_all();
    }
}

fn may_go_on(effect: &Effect, sweeper: &Sweeper) -> bool {
    match effect {
        Effect::Log(_)
        | Effect::Keep { .. }
        | Effect::Accepted { .. }
        | Effect::Finished { .. }
        | Effect::Done { .. } => true,
        Effect::Release { run }
        | Effect::Kill { run, .. }
        | Effect::KillAll { run }
        | Effect::AwaitEmpty { run, .. } => !sweeper.under_way.contains(run),
        _ => false,
    }
}
