//! Processes that are being made while the main loop does other work: begun, and later answered.
//!
//! # Invariants
//!
//! - No birth is under way while the sources are looked at: whoever is reaped, or says something, is known by then.
//! - None is under way either while an effect is carried out that acts on the processes of a run.

use std::collections::VecDeque;
use std::sync::Arc;

use agentd_engine::{Effect, EffectId, Event, InvocationId, Spawn, SpawnFailure};
use agentd_unit::{ExecKind, Unit};

use super::plan;
use crate::world::World;

/// A birth that is under way.
#[derive(Debug)]
pub struct Begun {
    id: EffectId,
    run: InvocationId,
    unit: Arc<Unit>,
    kind: ExecKind,
}

impl Begun {
    /// That of a spawn.
    #[must_use]
    pub fn of(spawn: &Spawn) -> Self {
        Self { id: spawn.id, run: spawn.run, unit: spawn.unit.clone(), kind: spawn.kind }
    }

    /// Tells the engine what became of it.
    fn answer(self, result: Result<u32, SpawnFailure>, events: &mut VecDeque<Event>) {
        if let Err(failure) = &result {
            tracing::debug!(unit = %self.unit.name, "{}: {}", self.kind, failure.message);
        }
        events.push_back(Event::Spawned { id: self.id, run: self.run, result });
    }
}

/// Makes the process of a command: at once, or alongside if there is other work.
pub fn spawn(world: &mut World, spawn: &Spawn, events: &mut VecDeque<Event>) {
    for _ in 0..world.births.due() {
        answer(world, events);
    }
    match plan::spawn(world, spawn) {
        Ok(None) => {}
        Ok(Some(pid)) => Begun::of(spawn).answer(Ok(pid), events),
        Err(failure) => Begun::of(spawn).answer(Err(failure), events),
    }
}

/// Waits for the first of the births that are under way; false if there is none.
pub fn answer(world: &mut World, events: &mut VecDeque<Event>) -> bool {
    let Some((begun, result)) = world.births.answer() else { return false };
    let result = plan::born(world, begun.run, begun.id, result);
    begun.answer(result, events);
    true
}

/// Waits for all births that are under way.
pub fn answer_all(world: &mut World, events: &mut VecDeque<Event>) {
    while answer(world, events) {}
}

/// Whether an effect makes a process.
#[must_use]
pub fn is_one(effect: &Effect) -> bool {
    matches!(effect, Effect::Spawn(_))
}

/// Whether an effect can be carried out while births are under way: it has nothing to do with anybody's processes.
#[must_use]
pub fn may_go_on(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Spawn(_)
            | Effect::Check { .. }
            | Effect::Log(_)
            | Effect::Keep { .. }
            | Effect::Accepted { .. }
            | Effect::Finished { .. }
            | Effect::Done { .. }
    )
}
