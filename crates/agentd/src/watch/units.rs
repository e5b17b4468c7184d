//! Units that were read again.

use std::collections::VecDeque;

use agentd_engine::Event;
use agentd_protocol::manager::ReloadReply;

use crate::world::World;

/// Takes what was loaded: the whole set at once, the keys, and the answer to whoever waits.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    for loaded in world.loading.done() {
        world.trust.ring = loaded.ring;
        for problem in &loaded.problems {
            tracing::warn!(unit = problem.unit.as_deref(), "{}", problem.message);
        }
        world.problems.clone_from(&loaded.problems);
        if let Some(answer) = loaded.answer {
            answer.result(Ok(ReloadReply { problems: loaded.problems }));
        }
        events.push_back(Event::UnitsLoaded(loaded.set));
    }
}

/// Reads the units for the first time.
pub fn first(world: &mut World, events: &mut VecDeque<Event>) {
    let loaded = world.loading.load(&world.config);
    for problem in &loaded.problems {
        tracing::warn!(unit = problem.unit.as_deref(), "{}", problem.message);
    }
    world.trust.ring = loaded.ring;
    world.problems = loaded.problems;
    events.push_back(Event::UnitsLoaded(loaded.set));
}
