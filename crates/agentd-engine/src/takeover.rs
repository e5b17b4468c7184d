//! Sockets, path units and connections that another manager of this boot began.
//!
//! # Invariants
//! - Nothing is looked at before all units stand: whether a socket's service runs is known only then.
//! - A socket that goes on is armed anew, so that whoever came meanwhile is told of at once.

use std::sync::Arc;

use agentd_unit::{Unit, UnitName};

use crate::effect::Effect;
use crate::graph::UnitId;
use crate::ids::EffectId;
use crate::manager::Manager;
use crate::memo::{Keeping, Life};
use crate::out::Out;
use crate::path::{PathEvent, PathState, PathUnit};
use crate::rate::Rate;
use crate::socket::{Socket, SocketEvent, SocketState};
use crate::unit::Core;

impl Socket {
    /// What another manager needs to go on with it.
    pub(crate) fn life(&self) -> Keeping {
        let again = match self.state {
            SocketState::Dead => return Keeping::Nothing,
            SocketState::Failed => return Keeping::This(Life::Failed { result: self.facts.result }),
            SocketState::StartChown { .. } => return Keeping::Unchanged,
            SocketState::Listening { again } => again,
            SocketState::Running => None,
        };
        Keeping::This(Life::Socket {
            running: self.state == SocketState::Running,
            again,
            accepted: self.facts.accepted,
            refused: self.facts.refused,
            polls: self.facts.polls.recent().collect(),
            triggers: self.facts.triggers.recent().collect(),
        })
    }

    /// No answer is on its way: a connection that is being taken is nobody's yet.
    pub(crate) const fn is_settled(&self) -> bool {
        !matches!(self.state, SocketState::StartChown { .. }) && self.facts.taking.is_none()
    }

    /// Stands where another manager left it.
    pub(crate) fn go_on(&mut self, unit: Arc<Unit>, life: &Life) -> bool {
        let Life::Socket { running, again, accepted, refused, polls, triggers } = life else { return false };
        self.state = if *running { SocketState::Running } else { SocketState::Listening { again: *again } };
        let facts = &mut self.facts;
        facts.unit = Some(unit);
        (facts.accepted, facts.refused) = (*accepted, *refused);
        facts.polls = Rate::of(polls.iter().copied());
        facts.triggers = Rate::of(triggers.iter().copied());
        true
    }

    fn resume(&mut self, out: &mut Out<'_>) {
        let Some(unit) = self.facts.unit.clone() else { return };
        let id = out.ids.effect();
        self.facts.resuming = Some(id);
        out.push(Effect::Relisten { id, unit });
        if self.state == (SocketState::Listening { again: None }) {
            self.state = self.facts.arm(out);
        }
    }
}

impl PathUnit {
    /// What another manager needs to go on with it.
    pub(crate) fn life(&self) -> Keeping {
        match self.state {
            PathState::Dead => Keeping::Nothing,
            PathState::Failed => Keeping::This(Life::Failed { result: self.facts.result }),
            PathState::Waiting { .. } | PathState::Running => Keeping::This(Life::Path {
                running: self.state == PathState::Running,
                triggers: self.facts.triggers.recent().collect(),
            }),
        }
    }

    /// No answer is on its way.
    pub(crate) const fn is_settled(&self) -> bool {
        self.facts.asked.is_none()
    }

    /// Stands where another manager left it.
    pub(crate) fn go_on(&mut self, unit: Arc<Unit>, life: &Life) -> bool {
        let Life::Path { running, triggers } = life else { return false };
        self.state = if *running { PathState::Running } else { PathState::Waiting { again: None } };
        self.facts.unit = Some(unit);
        self.facts.triggers = Rate::of(triggers.iter().copied());
        true
    }

    fn resume(&mut self, out: &mut Out<'_>) {
        if matches!(self.state, PathState::Waiting { .. }) {
            self.state = self.facts.watch(false, out);
        }
    }
}

impl Manager {
    /// Takes up what these sockets and path units held, now that all units stand.
    pub(crate) fn resume_triggers(&mut self, units: &[UnitId], out: &mut Out<'_>) {
        for unit in units {
            match self.entry_mut(*unit).map(|entry| &mut entry.core) {
                Some(Core::Socket(socket)) => socket.resume(out),
                Some(Core::Path(path)) => path.resume(out),
                Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
            }
        }
        // What their units have come to meanwhile, nobody has told them.
        for unit in units {
            let target = self.target_of_trigger(*unit);
            match self.entry(*unit).map(|entry| &entry.core) {
                Some(Core::Socket(_)) => self.drive_socket(*unit, SocketEvent::Target(target), out),
                Some(Core::Path(_)) => self.drive_path(*unit, PathEvent::Target(target), out),
                Some(Core::Service(_) | Core::Timer(_) | Core::Plain(_)) | None => {}
            }
        }
    }

    /// The socket that a connection came in at, and where it comes from.
    pub(crate) fn origin_of(
        &self,
        socket: UnitId,
        connection: EffectId,
    ) -> Option<(UnitName, Option<String>)> {
        let entry = self.entry(socket)?;
        let Core::Socket(core) = &entry.core else { return None };
        Some((entry.unit.name.clone(), core.facts.connections.get(&connection)?.clone()))
    }

    /// An instance is for a connection again, which counts at its socket.
    pub(crate) fn reconnect(
        &mut self,
        instance: UnitId,
        socket: &UnitName,
        source: Option<String>,
        out: &mut Out<'_>,
    ) {
        let connection = out.ids.effect();
        let socket = self.id(socket);
        let core = socket.and_then(|id| self.entry_mut(id)).map(|entry| &mut entry.core);
        let counts = match core {
            Some(Core::Socket(core)) => core.facts.connections.insert(connection, source).is_none(),
            _ => false, // Its socket is not there any more: the connection goes with the instance's processes.
        };
        let Some(entry) = self.entry_mut(instance) else { return };
        entry.passing = true;
        let Some(socket) = socket.filter(|_| counts) else { return };
        entry.connection = Some((socket, connection));
        out.push(Effect::Reconnect { connection, unit: entry.unit.name.clone() });
    }
}
