//! Units that were read again, or for the first time because somebody named them.

use std::collections::VecDeque;

use agentd_engine::{ActiveState, Event, Manager};
use agentd_protocol::manager::ReloadReply;
use agentd_unit::UnitName;

use crate::control::unit_files;
use crate::units::{Loaded, Outcome, Read};
use crate::world::World;

/// Takes what was read: a whole set at once, or a few units and the request that waits for them.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    for read in world.loading.done() {
        match read {
            Read::All(loaded) => swap_in(*loaded, world, events),
            Read::Named { set, inbound } => {
                events.push_back(Event::UnitsFound(set));
                world.looked_up.push(*inbound);
            }
        }
    }
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
        Outcome::Plan(_) => return world.plans.push(loaded),
        Outcome::Swap(None) => {}
    }
    take_up(loaded, world, events);
}

fn take_up(loaded: Loaded, world: &mut World, events: &mut VecDeque<Event>) {
    for problem in &loaded.problems {
        tracing::warn!(unit = problem.unit.as_deref(), "{}", problem.message);
    }
    world.trust.ring = loaded.ring;
    world.problems = loaded.problems;
    world.unit_files = loaded.files;
    world.edges = loaded.edges;
    world.loaded = loaded.set.clone();
    world.tidy = true;
    events.push_back(Event::UnitsLoaded(loaded.set));
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

/// Reads the units for the first time.
pub fn first(world: &mut World, events: &mut VecDeque<Event>) {
    let loaded = world.loading.load(&world.config);
    take_up(loaded, world, events);
}
