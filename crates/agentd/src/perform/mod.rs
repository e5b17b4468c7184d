//! The only place where effects happen: one at a time, in the order in which the engine pushed them.
//!
//! No unit policy stands here. What can fail answers with exactly one event, pushed to `events`.

pub mod archive;
pub mod births;
pub mod bounds;
pub mod credentials;
pub mod digests;
pub mod disks;
pub mod dynamic_user;
pub mod env_file;
pub mod environment;
pub mod filters;
pub mod folders;
pub mod identity;
pub mod ipc;
pub mod kill;
pub mod landlock;
pub mod mounts;
pub mod namespaces;
pub mod open_file;
pub mod passed;
pub mod paths;
pub mod plan;
pub mod process;
pub mod properties;
pub mod python;
pub mod reach;
pub mod rooted;
pub mod runs;
pub mod sandbox;
pub mod slices;
pub mod sockets;
pub mod stamps;
pub mod start;
pub mod store;
pub mod streams;
pub mod sweeper;
pub mod takeover;
pub mod temporary;
pub mod terminal;
pub mod trust;
pub mod unit_files;
pub mod usage;
pub mod view;

use std::collections::VecDeque;
use std::path::PathBuf;

use agentd_engine::{Checked, Effect, Event};
use agentd_unit::conditions;

use crate::world::World;

pub use agentd_linux::spawn::{Births, Spawner};

/// Whether this kernel executes a descriptor under its program's own name, so that what was hashed can be executed as it
/// is: Linux 6.14.
#[must_use]
pub fn executes_descriptors() -> bool {
    agentd_linux::spawn::Features::probe().execveat_names
}

/// Carries out one effect.
pub fn perform(world: &mut World, effect: Effect, events: &mut VecDeque<Event>) {
    if !births::may_go_on(&effect) {
        births::answer_all(world, events);
    }
    sweeper::settle_before(&effect, world, events);
    match effect {
        Effect::Spawn(spawn) => births::spawn(world, &spawn, events),
        Effect::Kill { run, target, signal, cont } => kill::signal(world, run, target, signal, cont),
        Effect::Freeze { run, frozen } => kill::freeze(world, run, frozen),
        Effect::KillAll { run } => kill::all(world, run),
        Effect::NameSurvivors { run } => kill::name_survivors(world, run),
        Effect::AwaitEmpty { id, run } => {
            if crate::watch::groups::await_empty(id, run, world) {
                events.push_back(Event::Emptied { id, run });
            }
        }
        Effect::FindMain { id, run, by } => {
            let result = crate::watch::mains::find(world, id, run, by);
            // Before what came after the question: it may be the end of the main process so far, or of this one.
            events.push_front(Event::MainFound { id, run, result });
        }
        Effect::AskReload { id, run, process, signal } => {
            let result = kill::ask_reload(world, run, process, signal);
            events.push_back(Event::ReloadAsked { id, run, result });
        }
        Effect::Check { id, unit } => {
            let found = conditions::check(&unit.unit.conditions, &conditions::Machine::default());
            let checked = Checked { condition: found.condition, assertion: found.assertion };
            events.push_back(Event::Checked { id, checked });
        }
        Effect::Listen { id, unit } => {
            let result = sockets::listen(world, &unit);
            events.push_back(Event::Listened { id, unit: unit.name.clone(), result });
        }
        Effect::Relisten { id, unit } => {
            let result = sockets::relisten(world, &unit);
            events.push_back(Event::Listened { id, unit: unit.name.clone(), result });
        }
        Effect::Unlisten { unit } => world.sockets.unlisten(&unit),
        Effect::Arm { unit } => world.sockets.arm(&unit),
        Effect::Disarm { unit } => world.sockets.disarm(&unit),
        Effect::Flush { unit } => world.sockets.flush(&unit),
        Effect::Accept { id, unit, number } => {
            if let Some(said) = sockets::accept(world, id, &unit, number) {
                let result = said.map(|()| None);
                events.push_back(Event::Accepted { id, socket: unit.name.clone(), result });
            }
        }
        Effect::Reconnect { connection, unit } => world.sockets.reconnect(connection, &unit),
        Effect::Hangup { connection } => world.sockets.hang_up(connection),
        Effect::Watch { id, unit, first } => {
            let found = world.paths.watch(&world.sockets.epoll, &unit, first);
            let (result, path) = found.map_or_else(|why| (Err(why), None), |path| (Ok(()), path));
            events.push_back(Event::Listened { id, unit: unit.name.clone(), result });
            let told = |path: PathBuf| Event::Traffic {
                unit: unit.name.clone(),
                path: Some(path.display().to_string()),
            };
            events.extend(path.map(told));
        }
        Effect::Unwatch { unit } => world.paths.unwatch(&world.sockets.epoll, &unit),
        Effect::Release { run } => world.release(run),
        Effect::TakeAttachment { id, unit } => world.take_attachment(id, &unit),
        Effect::DropAttachment { id } => world.stores.discard(id),
        Effect::Accepted { request, job } => world.replies.accepted(request, job),
        Effect::Finished { request, result, .. } => {
            let first = world.first_request == Some(request);
            world.booted |= first;
            world.tidy |= first;
            world.replies.finished(request, result);
        }
        Effect::Done { request } => world.replies.done(request),
        Effect::Refused { request, error } => {
            if world.first_request == Some(request) {
                tracing::error!("the first unit cannot be started: {error}");
                world.booted = true;
            }
            world.replies.refused(request, &error);
        }
        Effect::SaveStamp { timer, at } => world.save_stamp(&timer, at),
        Effect::Keep { unit, memo } => {
            let World { kept, runs, now, .. } = world;
            kept.keep(&unit, memo, runs, now.boottime);
        }
        Effect::TakeOver { id, run, unit, main } => takeover::take_over(world, id, run, unit, main),
        Effect::Log(record) => {
            slices::note_stopped(world, &record);
            world.log(record);
        }
        Effect::Shutdown { kind, argument } => {
            world.ending = Some(kind);
            world.reboot_argument = argument;
        }
    }
}
