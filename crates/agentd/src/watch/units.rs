//! Units that were read again, or for the first time because somebody named them.

use std::collections::VecDeque;
use std::sync::Arc;

use agentd_engine::{ActiveState, Connection, Event, JobKind, JobMode, Manager, Request};
use agentd_protocol::manager::{PlanReply, PlannedChange, Problem, ReloadReply};
use agentd_protocol::words::PlannedAction;
use agentd_unit::{LoadState, Unit, UnitName, UnitSet};

use crate::config::WatchUnits;
use crate::control::{plan, unit_files};
use crate::units::{Loaded, Outcome, Read, Taken};
use crate::world::World;

/// The units that one line of the log names.
const TOLD_MAX: usize = 8;

/// Takes what was read: a whole set at once, or a few units and the request that waits for them.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    for read in world.loading.done() {
        match read {
            Read::All(loaded) => swap_in(*loaded, world, events),
            Read::Named { set, inbound } => {
                world.found_units = true;
                events.push_back(Event::UnitsFound(set));
                world.looked_up.push(*inbound);
            }
            Read::Instance { set, taken } => instance(&set, *taken, world, events),
        }
    }
}

/// The instance for a connection, and before it what it can cause to start.
fn instance(set: &UnitSet, taken: Taken, world: &mut World, events: &mut VecDeque<Event>) {
    world.found_units = true;
    let mut others = UnitSet::new();
    set.iter().filter(|unit| unit.name != taken.instance).for_each(|unit| others.insert(Arc::clone(unit)));
    if !others.is_empty() {
        events.push_back(Event::UnitsFound(others));
    }
    let unit = set.get(&taken.instance);
    let result = match unit.map(|unit| (unit, &unit.load)) {
        Some((unit, LoadState::Loaded)) => {
            Ok(Some(Box::new(Connection { unit: Arc::clone(unit), source: taken.source })))
        }
        Some((_, load)) => {
            Err(format!("{} is {load}: {}", taken.instance, load.reason().unwrap_or("no reason")))
        }
        None => Err(format!("there is no template for {}", taken.instance)),
    };
    if result.is_err() {
        world.sockets.hang_up(taken.id);
    }
    events.push_back(Event::Accepted { id: taken.id, socket: taken.socket, result });
}

/// The whole set, the keys, and the answer to whoever waits.
fn swap_in(loaded: Loaded, world: &mut World, events: &mut VecDeque<Event>) {
    match &loaded.outcome {
        Outcome::Swap(Some(answer)) => {
            answer.result(Ok(ReloadReply { problems: loaded.problems.clone() }));
        }
        Outcome::Changed(wish, done, answer) => {
            answer.result(Ok(unit_files::changed(*wish, done, &loaded)));
        }
        Outcome::Set(done, answer) => {
            let reply = unit_files::set(done, &loaded);
            let answer = answer.clone();
            take_up(loaded, world, events);
            // The answer says that the limits hold, so it comes after them.
            answer.result(Ok(reply));
            return;
        }
        // What is done with it depends on how the units stand.
        Outcome::Plan(_) | Outcome::Watched(_) => return world.plans.push(loaded),
        Outcome::Swap(None) => {}
    }
    take_up(loaded, world, events);
}

/// Answers with what a loading would change, or brings into force what has changed on disk.
pub fn planned(loaded: Loaded, manager: &Manager, world: &mut World, events: &mut VecDeque<Event>) {
    match &loaded.outcome {
        Outcome::Plan(answer) => {
            let changes = plan::changes(manager, &world.loaded, &loaded);
            answer.result(Ok(PlanReply { changes, problems: loaded.problems.clone() }));
        }
        Outcome::Watched(WatchUnits::Apply) => {
            let changes = plan::changes(manager, &world.loaded, &loaded);
            take_up(loaded, world, events);
            for change in changes {
                carry_out(&change, world, events);
            }
        }
        Outcome::Watched(_) | Outcome::Swap(_) | Outcome::Changed(..) | Outcome::Set(..) => {
            take_up(loaded, world, events)
        }
    }
}

/// One step of a plan, as `agentctl apply` does it. What is kept is told as a problem of its files already.
fn carry_out(change: &PlannedChange, world: &mut World, events: &mut VecDeque<Event>) {
    let kind = match change.action {
        PlannedAction::Stop => JobKind::Stop,
        PlannedAction::Restart => JobKind::Restart,
        PlannedAction::Start => JobKind::Start,
        PlannedAction::Reload | PlannedAction::Keep => return,
    };
    let Ok(unit) = UnitName::parse(&change.unit) else { return };
    tracing::info!(unit = %unit, "{unit}: {} (WatchUnits), as {}", change.action, change.reason);
    let id = world.replies.unattended();
    events.push_back(Event::Request { id, request: Request::Job { kind, unit, mode: JobMode::Replace } });
}

fn take_up(loaded: Loaded, world: &mut World, events: &mut VecDeque<Event>) {
    let by_itself = matches!(loaded.outcome, Outcome::Watched(_));
    if by_itself {
        tell(&loaded.set, &world.loaded);
    }
    // A loading that nobody has asked for says of each fault once that it is there.
    let is_known = |problem: &&Problem| !by_itself || !world.problems.contains(problem);
    for problem in loaded.problems.iter().filter(is_known) {
        tracing::warn!(unit = problem.unit.as_deref(), "{}", problem.message);
    }
    world.trust.ring = loaded.ring;
    world.problems = loaded.problems;
    world.unit_files = loaded.files;
    world.edges = loaded.edges;
    world.loaded = loaded.set.clone();
    world.take_up_limits();
    world.tidy = true;
    events.push_back(Event::UnitsLoaded(loaded.set));
}

/// Says which definitions are others now, if any.
fn tell(new: &UnitSet, old: &UnitSet) {
    let is_other = |new: &Unit, old: Option<&Arc<Unit>>| {
        old.is_none_or(|old| (&old.digest, &old.load, old.enabled) != (&new.digest, &new.load, new.enabled))
    };
    // What cannot be used is told by its fault.
    let usable = new.iter().filter(|unit| unit.load.reason().is_none());
    let changed = usable.filter(|unit| is_other(unit, old.get(&unit.name))).map(|unit| &unit.name);
    let gone = old.iter().filter(|unit| new.get(&unit.name).is_none()).map(|unit| &unit.name);
    let names: Vec<&str> = changed.chain(gone).map(UnitName::as_str).collect();
    let shown = names.iter().take(TOLD_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(TOLD_MAX) {
        0 if names.is_empty() => {}
        0 => tracing::info!("changed on disk and loaded (WatchUnits): {shown}"),
        more => tracing::info!("changed on disk and loaded (WatchUnits): {shown} and {more} more"),
    }
}

/// The instances of templates that are in use: a reload makes them anew, also where no unit names them.
pub fn instances_in_use(manager: &Manager) -> Vec<UnitName> {
    manager
        .units()
        .filter(|unit| unit.active != ActiveState::Inactive || unit.job.is_some())
        .filter(|unit| unit.unit.name.template().is_some())
        .map(|unit| unit.unit.name.clone())
        .collect()
}

/// What a manager before has left of its units.
#[must_use]
pub fn taken_over(world: &World) -> Event {
    let (memos, born) = world.kept.memos();
    Event::TakenOver { memos, born }
}

/// Reads the units for the first time. Where units of the manager before live by other definitions than those, theirs are
/// taken up, and the newest set is given back, for when they have been taken over.
#[must_use]
pub fn first(world: &mut World, events: &mut VecDeque<Event>) -> Option<UnitSet> {
    // What a thread has come to grief over, the main loop meets as well.
    let ahead = world.loaded_ahead.take().and_then(|thread| thread.join().ok());
    let mut loaded = ahead.unwrap_or_else(|| world.loading.load(&world.config, &world.kept.instances()));
    let definitions = std::mem::take(&mut world.held.definitions);
    let before = world.loading.lived_by(&world.config, definitions, &loaded.set);
    let newest = before.map(|before| std::mem::replace(&mut loaded.set, before));
    take_up(loaded, world, events);
    newest
}

/// The newest definitions: what runs goes on with its own, as after each loading.
pub fn newest(set: UnitSet, world: &mut World, events: &mut VecDeque<Event>) {
    world.loaded = set.clone();
    world.take_up_limits();
    events.push_back(Event::UnitsLoaded(set));
}
