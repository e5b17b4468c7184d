//! Connections of sockets with `Accept`: each has an instance of its own, which is forgotten when it is over.

use std::sync::Arc;

use agentd_unit::{ExecKind, Unit};

use crate::effect::{Effect, Level, Trigger};
use crate::graph::UnitId;
use crate::ids::EffectId;
use crate::manager::Manager;
use crate::out::Out;
use crate::unit::Core;

impl Manager {
    /// Starts the instance that a connection is for, or closes the connection.
    pub(crate) fn start_instance(
        &mut self,
        socket: UnitId,
        connection: EffectId,
        unit: &Arc<Unit>,
        out: &mut Out<'_>,
    ) {
        let instance = self.id(&unit.name).unwrap_or_else(|| self.add(unit));
        self.graph_is_old = true;
        let trigger = self.name(socket);
        let Some(entry) = self.entry_mut(instance) else { return };
        if entry.connection.is_some() || !entry.is_at_rest() {
            let name = entry.unit.name.clone();
            out.log(
                Level::Error,
                &name,
                None,
                None,
                format!("{name}: is there already for another connection"),
            );
            self.end_connection(socket, connection, out);
            return;
        }
        entry.connection = Some((socket, connection));
        entry.passing = true;
        self.set_trigger(instance, Some(Trigger::new(trigger)));
        if !self.start_by_manager(instance, out) {
            self.connection_follows(instance, out);
        }
    }

    /// What a connection was for has ended: it is closed, and its instance goes.
    pub(crate) fn connection_follows(&mut self, instance: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry_mut(instance) else { return };
        if !entry.passing || !entry.is_at_rest() || entry.job.is_some() {
            return;
        }
        if let Some((socket, connection)) = entry.connection.take() {
            self.end_connection(socket, connection, out);
        }
        self.passed.insert(instance);
    }

    fn end_connection(&mut self, socket: UnitId, connection: EffectId, out: &mut Out<'_>) {
        if let Some(Core::Socket(socket)) = self.entry_mut(socket).map(|entry| &mut entry.core) {
            socket.facts.connections.remove(&connection);
        }
        out.push(Effect::Hangup { connection });
    }

    /// Forgets the instances of connections that are over; true if there were any.
    pub(crate) fn forget_the_passed(&mut self) -> bool {
        let mut any = false;
        for id in std::mem::take(&mut self.passed) {
            let Some(entry) = self.entry(id) else { continue };
            let holds = entry.service().is_some_and(|service| service.facts.leftover.is_some());
            if entry.is_gone
                || !entry.is_at_rest()
                || entry.job.is_some()
                || entry.connection.is_some()
                || holds
            {
                continue;
            }
            self.forget(id);
            any = true;
        }
        any
    }

    /// Completes the commands of a service that were asked for since `from` by what the service knows nothing of.
    pub(crate) fn hand_over(&self, service: UnitId, from: usize, out: &mut Out<'_>) {
        let Some(entry) = self.entry(service) else { return };
        for effect in out.effects.iter_mut().skip(from) {
            let Effect::Spawn(spawn) = effect else { continue };
            spawn.connection = entry.connection.map(|(_, connection)| connection);
            if spawn.kind == ExecKind::Start {
                spawn.sockets = self.sockets_of(service);
            }
        }
    }
}
