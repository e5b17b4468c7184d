//! The one reaper of the process.

use std::collections::VecDeque;

use agentd_engine::{EffectId, Event, ExitStatus, InvocationId};
use agentd_linux::cgroup::CgroupRoot;
use agentd_linux::reap::{Exit, reap_one};
use agentd_unit::{Signal, UnitName};

use super::groups;
use crate::world::World;

/// How many children are reaped in one turn at most, so that a flood of orphans delays nobody.
const TURN: usize = 4096;

/// Reaps what has ended. Returns whether there may be more.
pub fn reap(world: &mut World, events: &mut VecDeque<Event>) -> bool {
    for _ in 0..TURN {
        let runs = &world.runs;
        let cgroups = world.cgroups.as_ref();
        // Look before reaping: once reaped, the number may already belong to another process, and its cgroup is gone.
        let look = |pid| match runs.find(pid) {
            Some(known) => Look::Ours(known),
            None => Look::Orphan(cgroups.and_then(|cgroups| unit_of(cgroups, pid))),
        };
        match reap_one(look) {
            Ok(Some((reaped, Look::Ours((run, id))))) => {
                world.runs.leave(reaped.pid);
                // A record of the exit comes after the last words, and an OOM kill before the exit that it caused.
                world.drain_log(run);
                groups::check_oom(run, world, events);
                events.push_back(Event::Exited { id, run, status: status(reaped.exit) });
            }
            Ok(Some((reaped, Look::Orphan(unit)))) => world.adopted(reaped.pid, unit),
            Ok(None) => {
                groups::check_empty_by_walk(world, events);
                return false;
            }
            Err(error) => {
                tracing::error!(%error, "children cannot be waited for");
                return false;
            }
        }
    }
    true
}

/// What a dead child is, seen before it is consumed.
enum Look {
    /// A process that we spawned.
    Ours((InvocationId, EffectId)),
    /// One that we adopted, with the unit in whose cgroup it lived.
    Orphan(Option<UnitName>),
}

fn unit_of(cgroups: &CgroupRoot, pid: u32) -> Option<UnitName> {
    let path = agentd_linux::cgroup::of_process(pid).ok().flatten()?;
    UnitName::parse(cgroups.unit_of(&path)?).ok()
}

/// The engine's word for how a process ended.
fn status(exit: Exit) -> ExitStatus {
    match exit {
        Exit::Exited(code) => ExitStatus::Exited(code),
        Exit::Killed { signal, core } => {
            let signal = Signal::from_number(signal).unwrap_or(Signal::KILL);
            if core { ExitStatus::Dumped(signal) } else { ExitStatus::Killed(signal) }
        }
    }
}
