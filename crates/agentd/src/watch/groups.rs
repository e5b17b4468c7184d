//! What the cgroups tell: that a run has no process left, that the OOM killer took one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use agentd_engine::{EffectId, Event, InvocationId};
use agentd_linux::cgroup::{CgroupError, Changed, EventsWatch, Leaf, Removal};
use agentd_unit::UnitName;

use crate::perform::runs::Run;
use crate::world::World;

/// Which leaves are watched, and which wait to be removed.
#[derive(Debug, Default)]
pub struct Watches {
    watch: Option<EventsWatch>,
    keys: HashMap<InvocationId, u64>,
    runs: HashMap<u64, InvocationId>,
    next: u64,
    /// Cgroups of ended runs that the kernel still held when we wanted to remove them.
    left: HashMap<u64, (UnitName, Leaf)>,
}

impl Watches {
    /// Watches nothing yet; one inotify descriptor for all runs.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { watch: Some(EventsWatch::new()?), ..Self::default() })
    }

    /// The descriptor that becomes readable when something changed; none where there are no cgroups.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn descriptor(&self) -> io::Result<Option<OwnedFd>> {
        self.watch.as_ref().map(|watch| watch.as_fd().try_clone_to_owned()).transpose()
    }

    /// Watches from now on whether a run's cgroup becomes empty; what changed before is not told.
    pub fn add(&mut self, run: InvocationId, leaf: &Leaf) {
        self.watch(run, |watch, key| watch.add(leaf, key));
    }

    /// Watches from now on what the memory limits of a run's cgroup do.
    pub fn add_memory(&mut self, run: InvocationId, leaf: &Leaf) {
        self.watch(run, |watch, key| watch.add_memory(leaf, key));
    }

    fn watch(
        &mut self,
        run: InvocationId,
        add: impl FnOnce(&mut EventsWatch, u64) -> Result<(), CgroupError>,
    ) {
        let key = self.keys.get(&run).copied().unwrap_or_else(|| self.key());
        let Some(watch) = &mut self.watch else { return };
        if let Err(error) = add(watch, key) {
            tracing::error!(%error, "a cgroup cannot be watched");
            return;
        }
        self.keys.insert(run, key);
        self.runs.insert(key, run);
    }

    /// Forgets a run that is over.
    pub fn forget(&mut self, run: InvocationId) {
        let Some(key) = self.keys.remove(&run) else { return };
        self.runs.remove(&key);
        if let Some(watch) = &mut self.watch {
            watch.remove(key);
        }
    }

    /// Removes the cgroup of a run that is over; one that the kernel still holds is tried again when it is let go.
    pub fn remove(&mut self, unit: &UnitName, leaf: Leaf) {
        match leaf.remove() {
            Ok(Removal::Removed) => {}
            Ok(Removal::Busy) => {
                let key = self.key();
                if let Some(Err(error)) = self.watch.as_mut().map(|watch| watch.add(&leaf, key)) {
                    tracing::warn!(unit = %unit, %error, "the cgroup is left over");
                    return;
                }
                // It may have been let go before we watched.
                if !matches!(leaf.remove(), Ok(Removal::Removed)) {
                    self.left.insert(key, (unit.clone(), leaf));
                }
            }
            Err(error) => tracing::warn!(unit = %unit, %error, "the cgroup is left over"),
        }
    }

    /// A new run of the unit uses its cgroup again: it is not left over any more.
    pub fn keep(&mut self, unit: &UnitName) {
        let keys: Vec<u64> =
            self.left.iter().filter(|(_, (left, _))| left == unit).map(|(key, _)| *key).collect();
        for key in keys {
            self.left.remove(&key);
            if let Some(watch) = &mut self.watch {
                watch.remove(key);
            }
        }
    }

    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn try_left(&mut self, key: u64) {
        let removed =
            self.left.get(&key).is_some_and(|(_, leaf)| !matches!(leaf.remove(), Ok(Removal::Busy)));
        if removed {
            self.left.remove(&key);
            if let Some(watch) = &mut self.watch {
                watch.remove(key);
            }
        }
    }
}

/// Reads what changed, and tells of runs that have become empty or have lost a process to the OOM killer.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    let mut changes = Vec::new();
    if let Some(Err(error)) = world.watches.watch.as_ref().map(|watch| watch.read(&mut changes)) {
        tracing::error!(%error, "changes of cgroups cannot be read");
    }
    if changes.contains(&Changed::Everything) {
        let all: Vec<u64> = world.watches.runs.keys().chain(world.watches.left.keys()).copied().collect();
        changes.extend(all.iter().flat_map(|key| [Changed::Population(*key), Changed::Memory(*key)]));
    }
    for change in changes {
        match change {
            Changed::Population(key) => match world.watches.runs.get(&key).copied() {
                Some(run) => check_empty(run, world, events),
                None => world.watches.try_left(key),
            },
            Changed::Memory(key) => {
                if let Some(run) = world.watches.runs.get(&key).copied() {
                    check_oom(run, world, events);
                }
            }
            Changed::Everything => {}
        }
    }
}

/// Has an effect answered when a run has no process left. True if that is so already.
pub fn await_empty(id: EffectId, run: InvocationId, world: &mut World) -> bool {
    if world.runs.await_empty(id, run) {
        return true;
    }
    if watch_if_all_reaped(run, world) {
        world.runs.answer_awaiting(run, id);
        return true;
    }
    false
}

/// Watches the cgroup of a run that somebody waits for, once all processes that we made for it are reaped: until then
/// their reaping tells enough. True if it has become empty before it was watched.
fn watch_if_all_reaped(id: InvocationId, world: &mut World) -> bool {
    let Some(run) = world.runs.get_mut(id).filter(|run| run.processes.is_empty()) else { return false };
    let Some(leaf) = &run.cgroup else { return false };
    world.watches.add(id, leaf);
    run.is_empty(id)
}

/// A process that we made for one of several runs was reaped, see [`reaped`]. If that was its last, its cgroup is removed
/// alongside, where one call does that and says that nobody is left.
pub fn reaped_among_others(id: InvocationId, world: &mut World, events: &mut VecDeque<Event>) {
    let cgroup = world.runs.get(id).filter(|run| waits(run)).and_then(Run::one_call);
    if !cgroup.is_some_and(|cgroup| world.sweeper.begin(id, cgroup)) {
        reaped(id, world, events);
    }
}

/// Whether somebody waits for the end of a run whose processes are all reaped.
fn waits(run: &Run) -> bool {
    run.processes.is_empty() && run.cgroup.is_some() && !run.awaiting.is_empty()
}

/// A process that we made for a run was reaped. If it was the last, and somebody waits for the end of the run, looks
/// whether others are left.
pub fn reaped(id: InvocationId, world: &mut World, events: &mut VecDeque<Event>) {
    if !world.runs.get(id).is_some_and(waits) {
        return;
    }
    check_empty(id, world, events);
    if world.runs.get(id).is_some_and(waits) && watch_if_all_reaped(id, world) {
        check_empty(id, world, events);
    }
}

/// Tells of a run that has become empty, if somebody waits for that.
fn check_empty(id: InvocationId, world: &mut World, events: &mut VecDeque<Event>) {
    let Some(run) = world.runs.get_mut(id) else { return };
    if !run.awaiting.is_empty() && run.is_empty(id) {
        events.extend(run.awaiting.drain(..).map(|effect| Event::Emptied { id: effect, run: id }));
    }
}

/// Where there are no cgroups, looks at all runs that somebody waits for: the last process of a tree is reaped by us.
pub fn check_empty_by_walk(world: &mut World, events: &mut VecDeque<Event>) {
    let waiting: Vec<InvocationId> = world
        .runs
        .iter()
        .filter(|(_, run)| run.cgroup.is_none() && !run.awaiting.is_empty())
        .map(|(id, _)| id)
        .collect();
    for id in waiting {
        check_empty(id, world, events);
    }
}

/// Tells if the OOM killer took processes of a run since we last looked.
pub fn check_oom(id: InvocationId, world: &mut World, events: &mut VecDeque<Event>) {
    if !world.counts_memory() {
        return;
    }
    let Some(run) = world.runs.get_mut(id) else { return };
    let Some(leaf) = &run.cgroup else { return };
    match leaf.memory_events() {
        Ok(Some(counters)) if counters.oom_kill > run.oom_kills => {
            run.oom_kills = counters.oom_kill;
            events.push_back(Event::OomKilled { run: id });
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(unit = %run.unit.name, %error, "OOM kills cannot be counted"),
    }
}
