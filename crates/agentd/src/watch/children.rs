//! The one reaper of the process.

use std::collections::VecDeque;
use std::io;

use agentd_engine::{EffectId, Event, ExitStatus, InvocationId};
use agentd_linux::cgroup::CgroupRoot;
use agentd_linux::reap::{Exit, Reaped, reap_one, reap_unseen};
use agentd_unit::{Signal, UnitName};

use super::groups;
use crate::perform::runs::Runs;
use crate::world::World;

/// How many children are reaped in one turn at most, so that a flood of orphans delays nobody.
const TURN: usize = 4096;

/// How many at the beginning of a flood are looked at before they are reaped, to tell in which unit they lived. That costs
/// ten times what the reaping does, so the others of the flood are counted and no more; and none is looked at where the
/// log takes no debug messages, as nobody else is told.
const LOOKED_AT: usize = 64;

/// Reaps what has ended. Returns whether there may be more.
pub fn reap(world: &mut World, events: &mut VecDeque<Event>) -> bool {
    let (mut unseen, mut left) = (0_u64, Left::None);
    let more = loop_over(world, events, &mut unseen, &mut left);
    if let Left::One(run) = left {
        groups::reaped(run, world, events);
    }
    if !more {
        groups::check_empty_by_walk(world, events);
    }
    if unseen > 0 {
        world.orphans += unseen;
        tracing::debug!("reaped {unseen} more orphans at once, without a look at where they lived");
    }
    more
}

/// The runs that a process of ours has left in this turn.
#[derive(Clone, Copy)]
enum Left {
    None,
    /// Whether it is over is looked at once it is known that there is no other.
    One(InvocationId),
    Several,
}

impl Left {
    fn add(&mut self, run: InvocationId, world: &mut World, events: &mut VecDeque<Event>) {
        *self = match *self {
            Self::None => return *self = Self::One(run),
            Self::One(first) => {
                groups::reaped_among_others(first, world, events);
                Self::Several
            }
            Self::Several => Self::Several,
        };
        groups::reaped_among_others(run, world, events);
    }
}

fn loop_over(world: &mut World, events: &mut VecDeque<Event>, unseen: &mut u64, left: &mut Left) -> bool {
    let told = tracing::enabled!(tracing::Level::DEBUG);
    let mut looks = if world.children_left || !told { 0 } else { LOOKED_AT };
    let mut turn = TURN;
    while turn > 0 {
        let result = if looks > 0 {
            (turn, looks) = (turn - 1, looks - 1);
            look_and_reap(world)
        } else {
            reap_ours(&world.runs, &mut turn, unseen)
        };
        match result {
            Ok(Next::Ours(reaped, (run, id))) => {
                world.runs.leave(reaped.pid);
                // A record of the exit comes after the last words, and an OOM kill before the exit that it caused.
                world.drain_log(run);
                groups::check_oom(run, world, events);
                events.push_back(Event::Exited { id, run, status: status(reaped.exit) });
                left.add(run, world, events);
            }
            Ok(Next::Orphan(pid, unit)) => world.adopted(pid, unit),
            Ok(Next::TurnIsOver) => return true,
            Ok(Next::Nobody) => return false,
            Err(error) => {
                tracing::error!(%error, "children cannot be waited for");
                return false;
            }
        }
    }
    true
}

/// Who was reaped. Nobody but this thread makes processes, so the number of one of ours names it until it is taken out of
/// the runs, also once it is reaped.
enum Next {
    /// A process that we spawned.
    Ours(Reaped, (InvocationId, EffectId)),
    /// One that we adopted, with the unit in whose cgroup it lived.
    Orphan(u32, Option<UnitName>),
    /// There may be more, and others have waited long enough.
    TurnIsOver,
    Nobody,
}

/// Reaps one child, seen before it is consumed.
fn look_and_reap(world: &World) -> io::Result<Next> {
    let (runs, cgroups) = (&world.runs, world.cgroups.as_ref());
    // Look before reaping: once reaped, the number may already belong to another process, and its cgroup is gone.
    let look = |pid| runs.find(pid).ok_or_else(|| cgroups.and_then(|cgroups| unit_of(cgroups, pid)));
    Ok(match reap_one(look)? {
        Some((reaped, Ok(ours))) => Next::Ours(reaped, ours),
        Some((reaped, Err(unit))) => Next::Orphan(reaped.pid, unit),
        None => Next::Nobody,
    })
}

/// Reaps until one of ours comes, and counts the orphans before it. Each takes one of the turn.
fn reap_ours(runs: &Runs, turn: &mut usize, unseen: &mut u64) -> io::Result<Next> {
    while *turn > 0 {
        let Some(reaped) = reap_unseen()? else { return Ok(Next::Nobody) };
        *turn -= 1;
        if let Some(ours) = runs.find(reaped.pid) {
            return Ok(Next::Ours(reaped, ours));
        }
        *unseen += 1;
    }
    Ok(Next::TurnIsOver)
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
