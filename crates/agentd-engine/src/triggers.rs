//! Sockets and path units among units: what starts them, what they start, and when they hear of it.

use std::sync::Arc;

use agentd_unit::{Body, LoadState, UnitName};

use crate::effect::{Effect, Level, Trigger};
use crate::event::Connection;
use crate::graph::{Relation, UnitId};
use crate::ids::EffectId;
use crate::manager::{Manager, Work};
use crate::out::Out;
use crate::path::PathEvent;
use crate::socket::{SocketEvent, Target, Wish};
use crate::state::{ActiveState, ServiceResult};
use crate::unit::{Core, Entry};

impl Manager {
    /// How the unit stands that this one starts; a socket with `Accept` starts many, and has none to look at.
    pub(crate) fn target_of_trigger(&self, id: UnitId) -> Target {
        let stopping = self.job_of(id).is_some_and(|job| job.takes_down());
        match self.target_of(id).and_then(|target| self.entry(target)) {
            Some(entry) => Target {
                idle: entry.is_at_rest() && entry.job.is_none(),
                given_up: entry.is_given_up(),
                stopping,
            },
            None => Target { idle: true, given_up: false, stopping },
        }
    }

    /// Why a unit that starts another one cannot begin.
    pub(crate) fn cannot_trigger(&self, id: UnitId) -> Option<String> {
        let entry = self.entry(id)?;
        let name = entry.unit.triggered()?;
        let target = self.id(&name).and_then(|target| self.entry(target));
        match target.map(|entry| &entry.newest().load) {
            Some(LoadState::Loaded) => {}
            Some(LoadState::BadSetting(reason) | LoadState::Error(reason)) => {
                return Some(format!("it starts {name}, which could not be loaded: {reason}"));
            }
            Some(LoadState::Masked) => return Some(format!("it starts {name}, which is masked")),
            Some(LoadState::NotFound) | None => {
                return Some(format!("it starts {name}, which does not exist"));
            }
        }
        let is_up = target.is_some_and(|target| !target.is_at_rest());
        (is_up && matches!(entry.core, Core::Socket(_)))
            .then(|| format!("its service {name} runs already, without this socket; stop it first"))
    }

    /// A socket or a path unit begins.
    pub(crate) fn start_trigger(&mut self, id: UnitId, out: &mut Out<'_>) {
        if let Some(reason) = self.cannot_trigger(id) {
            self.refuse_trigger(id, reason, out);
            return;
        }
        let Some(entry) = self.entry(id) else { return };
        let unit = Arc::clone(&entry.unit);
        match entry.core {
            Core::Socket(_) => self.drive_socket(id, SocketEvent::Start(unit), out),
            Core::Path(_) => self.drive_path(id, PathEvent::Start(unit), out),
            Core::Service(_) | Core::Timer(_) | Core::Plain(_) => {}
        }
    }

    /// It cannot begin: said, and its job fails also where it was failed before.
    fn refuse_trigger(&mut self, id: UnitId, reason: String, out: &mut Out<'_>) {
        let name = self.name(id);
        out.log(Level::Error, &name, None, None, format!("{name}: {reason}"));
        let was_failed = self.entry(id).is_some_and(|entry| entry.active() == ActiveState::Failed);
        self.set(
            id,
            |entry, _| {
                entry.failure = Some(reason);
                entry.fail(ServiceResult::Resources);
            },
            out,
        );
        if was_failed {
            let (old, new) = (ActiveState::Inactive, ActiveState::Failed);
            self.work.push_back(Work::Changed { unit: id, old, new });
        }
    }

    pub(crate) fn stop_trigger(&mut self, id: UnitId, out: &mut Out<'_>) {
        match self.entry(id).map(|entry| &entry.core) {
            Some(Core::Socket(_)) => self.drive_socket(id, SocketEvent::Stop, out),
            Some(Core::Path(_)) => self.drive_path(id, PathEvent::Stop, out),
            Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
        }
    }

    /// Time went on for whatever this is.
    pub(crate) fn tick_trigger(&mut self, id: UnitId, out: &mut Out<'_>) {
        match self.entry(id).map(|entry| &entry.core) {
            Some(Core::Socket(_)) => self.drive_socket(id, SocketEvent::Tick, out),
            Some(Core::Path(_)) => self.drive_path(id, PathEvent::Tick, out),
            Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
        }
    }

    pub(crate) fn listened(
        &mut self,
        id: EffectId,
        unit: &UnitName,
        result: Result<(), String>,
        out: &mut Out<'_>,
    ) {
        let Some(unit) = self.id(unit) else { return };
        let target = self.target_of_trigger(unit);
        match self.entry(unit).map(|entry| &entry.core) {
            Some(Core::Socket(_)) => {
                self.drive_socket(unit, SocketEvent::Listened { id, result, target }, out);
            }
            Some(Core::Path(_)) => self.drive_path(unit, PathEvent::Watched { id, result }, out),
            Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
        }
    }

    pub(crate) fn traffic(&mut self, unit: &UnitName, path: Option<String>, out: &mut Out<'_>) {
        let Some(unit) = self.id(unit) else { return };
        let target = self.target_of_trigger(unit);
        match self.entry(unit).map(|entry| &entry.core) {
            Some(Core::Socket(_)) => self.drive_socket(unit, SocketEvent::Traffic(target), out),
            Some(Core::Path(_)) => self.drive_path(unit, PathEvent::Traffic { target, path }, out),
            Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
        }
    }

    pub(crate) fn accepted(
        &mut self,
        id: EffectId,
        socket: &UnitName,
        result: Result<Option<Box<Connection>>, String>,
        out: &mut Out<'_>,
    ) {
        let is_socket =
            |unit: &UnitId| self.entry(*unit).is_some_and(|entry| matches!(entry.core, Core::Socket(_)));
        match self.id(socket).filter(is_socket) {
            Some(unit) => self.drive_socket(unit, SocketEvent::Accepted { id, result }, out),
            None if matches!(result, Ok(Some(_))) => out.push(Effect::Hangup { connection: id }),
            None => {}
        }
    }

    /// The sockets and path units of a unit look again when it changes, or when its job is done.
    pub(crate) fn triggers_follow(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let triggers: Vec<UnitId> = self.graph.related(unit, Relation::TRIGGERED_BY).collect();
        for id in triggers {
            let target = self.target_of_trigger(id);
            match self.entry(id).map(|entry| &entry.core) {
                Some(Core::Socket(_)) => self.drive_socket(id, SocketEvent::Target(target), out),
                Some(Core::Path(_)) => self.drive_path(id, PathEvent::Target(target), out),
                Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
            }
        }
    }

    pub(crate) fn drive_socket(&mut self, id: UnitId, event: SocketEvent, out: &mut Out<'_>) {
        let (mut wish, mut counted) = (None, false);
        self.set(
            id,
            |entry, out| {
                let Core::Socket(socket) = &mut entry.core else { return };
                let before = socket.facts.counts();
                socket.state = socket.state.next(event, &mut socket.facts, out);
                counted = socket.facts.counts() != before;
                wish = socket.facts.wish.take();
                if socket.facts.failure.is_some() {
                    entry.failure = socket.facts.failure.take();
                }
            },
            out,
        );
        if counted {
            self.touch(id);
        }
        self.set_alarm(id);
        match wish {
            Some(Wish::Service) if !self.start_triggered(id, None, false, out) => {
                self.drive_socket(id, SocketEvent::NotStarted, out);
            }
            Some(Wish::Instance { id: connection, unit }) => self.start_instance(id, connection, &unit, out),
            Some(Wish::Service) | None => {}
        }
    }

    pub(crate) fn drive_path(&mut self, id: UnitId, event: PathEvent, out: &mut Out<'_>) {
        let mut wish = None;
        self.set(
            id,
            |entry, out| {
                let Core::Path(path) = &mut entry.core else { return };
                path.state = path.state.next(event, &mut path.facts, out);
                wish = path.facts.wish.take();
                if path.facts.failure.is_some() {
                    entry.failure = path.facts.failure.take();
                }
            },
            out,
        );
        self.set_alarm(id);
        if wish.is_some_and(|path| !self.start_triggered(id, Some(path), true, out)) {
            self.drive_path(id, PathEvent::NotStarted, out);
        }
    }

    /// Starts what a socket or path unit starts. Each start of a path unit counts for the unit's start limit; of a socket
    /// only those after a start in vain, as clients must not be able to take a service down by coming and going.
    fn start_triggered(
        &mut self,
        id: UnitId,
        path: Option<String>,
        always_counts: bool,
        out: &mut Out<'_>,
    ) -> bool {
        let trigger = Trigger { path: path.filter(|path| !path.is_empty()), ..Trigger::new(self.name(id)) };
        let Some(target) = self.target_of(id) else { return false };
        let in_vain = self.entry(target).is_some_and(|entry| {
            let failed = entry.result() != ServiceResult::Success && !entry.came_up;
            failed || entry.failure.is_some() || entry.checks.unmet.is_some()
        });
        if (always_counts || in_vain) && self.shutdown.is_none() && !self.admit(target, out) {
            self.triggers_follow(target, out); // It may have been failed before: nothing else would tell of it.
            return true;
        }
        self.set_trigger(target, Some(trigger));
        let starts = self.start_by_manager(target, out);
        if !starts {
            self.set_trigger(target, None);
        }
        starts
    }

    /// The sockets that a service gets, in the order of their names.
    pub(crate) fn sockets_of(&self, service: UnitId) -> Vec<UnitName> {
        let has_sockets = |entry: &&Entry| match (&entry.core, &entry.unit.body) {
            (Core::Socket(socket), Body::Socket(section)) => socket.state.is_there() && !section.accept,
            _ => false,
        };
        let triggers = self.graph.related(service, Relation::TRIGGERED_BY);
        triggers.filter_map(|id| self.entry(id)).filter(has_sockets).map(|e| e.unit.name.clone()).collect()
    }
}
