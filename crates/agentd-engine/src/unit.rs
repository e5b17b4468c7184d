//! One unit in the manager's table.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentd_unit::{Body, Realtime, Unit};

use crate::checks::Checks;
use crate::clock::{Boottime, Monotonic, Now};
use crate::effect::{Monitor, Trigger};
use crate::graph::UnitId;
use crate::ids::{EffectId, JobId};
use crate::path::{PathState, PathUnit};
use crate::restart::Restarts;
use crate::service::{Facts, ServiceState};
use crate::socket::{Socket, SocketState};
use crate::state::{ActiveState, ServiceResult};
use crate::timer::Timer;

/// A unit as people read it in messages: `web.service - The web server`.
pub(crate) fn title(unit: &Unit) -> String {
    match &unit.unit.description {
        Some(description) => format!("{} - {description}", unit.name),
        None => unit.name.to_string(),
    }
}

/// A unit without processes of its own: a target or a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PlainState {
    #[default]
    Dead,
    Active,
    /// Active as long as the manager is there: the root slice.
    Perpetual,
    /// Its start was not possible, for this reason.
    Failed(ServiceResult),
}

/// The state of a unit by its type.
#[derive(Debug)]
pub(crate) enum Core {
    Service(Box<ServiceCore>),
    Timer(Box<Timer>),
    Socket(Box<Socket>),
    Path(Box<PathUnit>),
    Plain(PlainState),
}

#[derive(Debug, Default)]
pub(crate) struct ServiceCore {
    pub(crate) state: ServiceState,
    pub(crate) facts: Facts,
}

/// When a unit last changed, for displays and for timers that count from it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) active_enter: Option<Realtime>,
    pub(crate) active_exit: Option<Realtime>,
    pub(crate) inactive_exit: Option<Realtime>,
    pub(crate) inactive_enter: Option<Realtime>,
    pub(crate) state_change: Option<Realtime>,
    /// When it was last activated, for OnUnitActiveSec.
    pub(crate) activated: Option<Boottime>,
    /// When it last came to rest, for OnUnitInactiveSec.
    pub(crate) rested: Option<Boottime>,
}

impl Times {
    /// Notes the step from one state to the next.
    pub(crate) fn note(&mut self, old: ActiveState, new: ActiveState, now: Now) {
        let at_rest = |state| matches!(state, ActiveState::Inactive | ActiveState::Failed);
        let up = |state| matches!(state, ActiveState::Active | ActiveState::Reloading);
        let at = Some(now.realtime);
        if at_rest(old) && !at_rest(new) {
            self.inactive_exit = at;
            self.activated = Some(now.boottime);
        }
        if !at_rest(old) && at_rest(new) {
            self.inactive_enter = at;
            self.rested = Some(now.boottime);
        }
        if !up(old) && up(new) {
            self.active_enter = at;
        }
        if up(old) && !up(new) {
            self.active_exit = at;
        }
    }
}

/// One unit.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The definition that it lives by.
    pub(crate) unit: Arc<Unit>,
    /// A newer one, for when it is down.
    pub(crate) newer: Option<Arc<Unit>>,
    pub(crate) core: Core,
    /// No definition and no other unit names it any more: its place is free.
    pub(crate) is_gone: bool,
    pub(crate) job: Option<JobId>,
    pub(crate) times: Times,
    /// Why the last start was not possible.
    pub(crate) failure: Option<String>,
    /// It went down, or did not come up, because of these: it returns with any of them.
    pub(crate) returns_with: BTreeSet<UnitId>,
    /// The timer, socket or path unit that the next start is for.
    pub(crate) trigger: Option<Box<Trigger>>,
    /// The unit whose end the next start is for.
    pub(crate) monitor: Option<Box<Monitor>>,
    /// How often a unit without processes was started by the manager (a service counts with its restarts).
    starts: Restarts,
    /// What its conditions said when it was last to be started.
    pub(crate) checks: Checks,
    /// Its last life got as far as being up.
    pub(crate) came_up: bool,
    /// Its last life has failed so, and `CollectMode` has had that forgotten.
    pub(crate) forgotten: Option<ServiceResult>,
    /// It is made for one connection, of this socket, and forgotten with it.
    pub(crate) passing: bool,
    pub(crate) connection: Option<(UnitId, EffectId)>,
    /// When it is next started because an active unit upholds it.
    pub(crate) uphold_at: Option<Monotonic>,
    /// Something is kept of it for a manager after this one.
    pub(crate) is_kept: bool,
}

impl Entry {
    pub(crate) fn new(unit: Arc<Unit>) -> Self {
        let core = match &unit.body {
            Body::Service(_) => Core::Service(Box::default()),
            Body::Timer(_) => Core::Timer(Box::default()),
            Body::Socket(_) => Core::Socket(Box::default()),
            Body::Path(_) => Core::Path(Box::default()),
            Body::Slice(_) if unit.name.is_perpetual() => Core::Plain(PlainState::Perpetual),
            Body::Target | Body::Slice(_) => Core::Plain(PlainState::Dead),
        };
        Self {
            unit,
            newer: None,
            core,
            is_gone: false,
            job: None,
            times: Times::default(),
            failure: None,
            returns_with: BTreeSet::new(),
            trigger: None,
            monitor: None,
            starts: Restarts::default(),
            checks: Checks::default(),
            came_up: false,
            forgotten: None,
            passing: false,
            connection: None,
            uphold_at: None,
            is_kept: false,
        }
    }

    /// What the unit is for others.
    pub(crate) fn active(&self) -> ActiveState {
        match &self.core {
            Core::Service(service) => service.state.active(),
            Core::Timer(timer) => timer.active(),
            Core::Socket(socket) => socket.state.active(),
            Core::Path(path) => path.state.active(),
            Core::Plain(PlainState::Dead) => ActiveState::Inactive,
            Core::Plain(PlainState::Active | PlainState::Perpetual) => ActiveState::Active,
            Core::Plain(PlainState::Failed(_)) => ActiveState::Failed,
        }
    }

    /// systemd's `SubState`.
    pub(crate) fn sub(&self) -> &'static str {
        match &self.core {
            Core::Service(service) => service.state.as_str(),
            Core::Timer(timer) => timer.state.as_str(),
            Core::Socket(socket) => socket.state.as_str(),
            Core::Path(path) => path.state.as_str(),
            Core::Plain(PlainState::Dead) => "dead",
            Core::Plain(PlainState::Active | PlainState::Perpetual) => "active",
            Core::Plain(PlainState::Failed(_)) => "failed",
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.active(), ActiveState::Active | ActiveState::Reloading)
    }

    /// Nothing runs and nothing is due.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.active(), ActiveState::Inactive | ActiveState::Failed)
    }

    pub(crate) fn result(&self) -> ServiceResult {
        match &self.core {
            Core::Service(service) => service.facts.result,
            Core::Timer(timer) => timer.result,
            Core::Socket(socket) => socket.facts.result,
            Core::Path(path) => path.facts.result,
            Core::Plain(PlainState::Failed(result)) => *result,
            Core::Plain(PlainState::Dead | PlainState::Active | PlainState::Perpetual) => {
                ServiceResult::Success
            }
        }
    }

    /// It is never stopped.
    pub(crate) const fn is_perpetual(&self) -> bool {
        matches!(self.core, Core::Plain(PlainState::Perpetual))
    }

    /// It was started too often: only a person brings it back.
    pub(crate) fn is_given_up(&self) -> bool {
        self.active() == ActiveState::Failed && self.result() == ServiceResult::StartLimitHit
    }

    /// Nothing lives by its definition just now.
    pub(crate) fn is_between_lives(&self) -> bool {
        self.is_at_rest() || self.is_restarting()
    }

    /// Down for now: the next life of the service waits for its delay or its turn.
    pub(crate) fn is_restarting(&self) -> bool {
        matches!(&self.core, Core::Service(service) if matches!(service.state, ServiceState::AutoRestart { .. }))
    }

    /// What it was started by stays in force until it is down: it has processes, sockets or watches.
    pub(crate) const fn keeps_definition(&self) -> bool {
        matches!(self.core, Core::Service(_) | Core::Socket(_) | Core::Path(_))
    }

    pub(crate) fn service(&self) -> Option<&ServiceCore> {
        if let Core::Service(service) = &self.core { Some(service) } else { None }
    }

    pub(crate) fn service_mut(&mut self) -> Option<&mut ServiceCore> {
        if let Core::Service(service) = &mut self.core { Some(service) } else { None }
    }

    /// What the start limit counts.
    pub(crate) fn restarts(&mut self) -> &mut Restarts {
        match &mut self.core {
            Core::Service(service) => &mut service.facts.restarts,
            Core::Timer(_) | Core::Socket(_) | Core::Path(_) | Core::Plain(_) => &mut self.starts,
        }
    }

    /// It is failed without having been begun, for this reason.
    pub(crate) fn fail(&mut self, result: ServiceResult) {
        match &mut self.core {
            Core::Service(service) => {
                service.state = ServiceState::Failed;
                service.facts.result = result;
            }
            Core::Timer(timer) => timer.stop(result),
            Core::Socket(socket) => {
                socket.state = SocketState::Failed;
                socket.facts.result = result;
            }
            Core::Path(path) => {
                path.state = PathState::Failed;
                path.facts.result = result;
            }
            Core::Plain(PlainState::Perpetual) => {}
            Core::Plain(plain) => *plain = PlainState::Failed(result),
        }
    }

    /// The definition that its next start is made by.
    pub(crate) fn newest(&self) -> &Arc<Unit> {
        self.newer.as_ref().unwrap_or(&self.unit)
    }
}
