//! Fake sockets and paths, who knocks at them, and what holds of them: a socket that is up is there, whatever becomes of
//! its service; who waits at it is heard in the end; and nothing is started more often than its limits say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentd_engine::{
    ActiveState, Connection, Effect, EffectId, Event, Monotonic, ServiceResult, Spawn, UnitView,
};
use agentd_unit::{Body, ExecKind, LoadState, Unit, UnitName, UnitType};

use super::dice::{Dice, RUN, SOCKET};
use super::invariants::{Verdict, is_at_rest, law};
use super::{Happening, World};

/// What the kernel has of a socket or path unit.
#[derive(Debug, Default)]
pub(super) struct FakeSocket {
    /// It is there.
    open: bool,
    /// What comes is told of.
    armed: bool,
    /// It will be told of, in a moment.
    told: bool,
    /// So many wait at it.
    waiting: u32,
    /// When it started its unit, since it was opened.
    starts: Vec<Monotonic>,
}

/// How a unit stood before it was told of traffic.
pub(super) struct Told {
    unit: UnitName,
    listened: bool,
    target_was_idle: bool,
}

impl World {
    fn socket(&mut self, unit: &UnitName) -> &mut FakeSocket {
        self.sockets.entry(unit.clone()).or_default()
    }

    pub(super) fn perform_socket(&mut self, effect: Effect) {
        match effect {
            Effect::Listen { id, unit } => {
                if std::mem::replace(
                    self.socket(&unit.name),
                    FakeSocket { open: true, ..FakeSocket::default() },
                )
                .open
                {
                    self.fail(format!("{} is opened twice", unit.name));
                }
                self.answer(id, &unit.name);
            }
            Effect::Watch { id, unit, .. } => {
                let socket = self.socket(&unit.name);
                (socket.open, socket.armed) = (true, true);
                if self.answer(id, &unit.name) {
                    self.tell_of(&unit.name);
                }
            }
            Effect::Unlisten { unit } | Effect::Unwatch { unit } => {
                *self.socket(&unit) = FakeSocket::default()
            }
            Effect::Arm { unit } => {
                let socket = self.socket(&unit);
                socket.armed = true;
                if !socket.open {
                    self.fail(format!("{unit} is armed and not there"));
                }
                self.tell_of(&unit);
            }
            Effect::Disarm { unit } => (self.socket(&unit).armed, self.socket(&unit).told) = (false, false),
            Effect::Flush { unit } => self.socket(&unit).waiting = 0,
            Effect::Accept { id, unit, number } => self.accept(id, &unit, number),
            Effect::Hangup { connection } => {
                let known = self.connections.remove(&connection).is_some();
                self.instances.retain(|_, (_, id)| *id != connection);
                if !known && !self.doubles {
                    self.fail("a connection is closed that is not there".to_owned());
                }
            }
            other => self.fail(format!("nobody carries this out: {other:?}")),
        }
    }

    /// The sockets and connections of another manager are there still, and nobody is told of what comes before they are
    /// armed again.
    pub(super) fn resume_sockets(&mut self, effects: Vec<Effect>) {
        for (unit, socket) in &mut self.sockets {
            (socket.armed, socket.told) = (false, false);
            // What the next manager does not know is closed.
            let goes_on =
                |effect: &Effect| matches!(effect, Effect::Relisten { unit: on, .. } if on.name == *unit);
            if self.manager.unit(unit).is_none_or(|view| is_at_rest(&view)) && !effects.iter().any(goes_on) {
                *socket = FakeSocket::default();
            }
        }
        let mut before = std::mem::take(&mut self.connections);
        for effect in effects {
            match effect {
                Effect::Relisten { id, unit } => {
                    if !self.socket(&unit.name).open {
                        self.fail(format!("{} goes on with sockets that are not there", unit.name));
                    }
                    self.answer(id, &unit.name);
                }
                Effect::Reconnect { connection, unit } => {
                    let Some((_, id)) = self.instances.get_mut(&unit) else {
                        return self.fail(format!("{unit} has no connection to go on with"));
                    };
                    let old = std::mem::replace(id, connection);
                    match before.remove(&old) {
                        Some(socket) => drop(self.connections.insert(connection, socket)),
                        None => self.fail(format!("{unit} goes on with a connection that is closed")),
                    }
                }
                other => self.perform_socket(other),
            }
        }
        if !before.is_empty() && !self.loses {
            self.fail(format!("connections are lost: {before:?}"));
        }
    }

    /// Whether it could be opened, which the manager hears later.
    fn answer(&mut self, id: EffectId, unit: &UnitName) -> bool {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        let mut dice = Dice::of(self.seed, &[RUN, self.number(unit), id.0, 2]);
        let fails = dice.once_in(8) && !self.is_calm;
        if fails {
            *self.socket(unit) = FakeSocket::default();
        }
        let result = if fails { Err("bind: address in use".to_owned()) } else { Ok(()) };
        let delay = Duration::from_millis(dice.below(30));
        self.tell(Event::Listened { id, unit: unit.clone(), result }, delay, &mut dice);
        !fails
    }

    /// Takes one of those that wait; some have gone meanwhile.
    fn accept(&mut self, id: EffectId, unit: &Arc<Unit>, number: u64) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        let mut dice = Dice::of(self.seed, &[RUN, self.number(&unit.name), id.0, 3]);
        let socket = self.socket(&unit.name);
        socket.waiting = socket.waiting.saturating_sub(1);
        let result = match dice.below(10) {
            0 => Ok(None),
            1 if !self.is_calm => Err("no descriptor is left".to_owned()),
            _ => {
                self.connections.insert(id, unit.name.clone());
                let name = format!("{}@{number}-{}.service", unit.name.stem(), id.0);
                let mut instance = Unit::not_found(UnitName::parse(&name).unwrap());
                instance.load = LoadState::Loaded;
                instance.unit.default_dependencies = false;
                if let Body::Service(body) = &mut instance.body {
                    body.service.exec_start = vec![super::graph::command(&mut dice)];
                    body.service.runtime_max = Some(Duration::from_secs(1 + dice.below(5)));
                    body.service.timeout_stop = Some(Duration::from_secs(2));
                    body.service.timeout_start = Some(Duration::from_secs(2));
                }
                let source = Some(format!("10.0.0.{}", dice.below(3))).filter(|_| !dice.once_in(5));
                let instance = Arc::new(instance);
                self.instances.insert(instance.name.clone(), (Arc::clone(&instance), id));
                Ok(Some(Box::new(Connection { unit: instance, source })))
            }
        };
        let delay = Duration::from_millis(dice.below(30));
        self.tell(Event::Accepted { id, socket: unit.name.clone(), result }, delay, &mut dice);
    }

    /// Somebody comes to a socket, or puts a file where it is waited for.
    pub(super) fn knock(&mut self, dice: &mut Dice) {
        let open: Vec<UnitName> =
            self.sockets.iter().filter(|(_, s)| s.open).map(|(name, _)| name.clone()).collect();
        if open.is_empty() {
            return;
        }
        let unit = dice.pick(&open).clone();
        self.socket(&unit).waiting += 1 + dice.below(3) as u32;
        self.tell_of(&unit);
    }

    /// What waits at an armed socket is told of in a moment.
    fn tell_of(&mut self, unit: &UnitName) {
        let number = self.number(unit);
        let mut dice = Dice::of(self.seed, &[SOCKET, number, self.counter]);
        let socket = self.socket(unit);
        if socket.open && socket.armed && socket.waiting > 0 && !socket.told {
            socket.told = true;
            self.after(Duration::from_millis(dice.below(20)), Happening::Traffic(unit.clone()));
        }
    }

    pub(super) fn traffic(&mut self, unit: UnitName) {
        let socket = self.socket(&unit);
        if !std::mem::take(&mut socket.told) || !socket.armed {
            return; // It was disarmed or closed meanwhile.
        }
        socket.armed = false;
        if unit.unit_type() == UnitType::Path {
            (socket.open, socket.waiting) = (false, socket.waiting - 1);
        }
        self.event(Event::Traffic { unit, path: None });
    }

    /// The main process of a service takes what waits, mostly.
    pub(super) fn serve(&mut self, spawn: &Spawn) {
        let mut dice = Dice::of(self.seed, &[SOCKET, self.number(&spawn.unit.name), spawn.id.0]);
        if spawn.kind != ExecKind::Start || (dice.once_in(4) && !self.is_calm) {
            return;
        }
        for socket in &spawn.sockets {
            if !self.socket(socket).open {
                self.fail(format!("{} gets {socket}, which is not there", spawn.unit.name));
            }
            self.socket(socket).waiting = 0;
        }
    }

    pub(super) fn before_traffic(&self, event: &Event) -> Option<Told> {
        let Event::Traffic { unit, .. } = event else { return None };
        let view = self.manager.unit(unit)?;
        let target = view.triggers.as_ref().and_then(|target| self.manager.unit(target))?;
        let target_was_idle = is_at_rest(&target) && target.job.is_none();
        let listened = matches!(view.sub, "listening" | "waiting");
        Some(Told { unit: unit.clone(), listened, target_was_idle })
    }

    /// A start that traffic has brought about counts.
    pub(super) fn after_traffic(&mut self, told: Option<Told>) {
        let Some(told) = told.filter(|told| told.listened && told.target_was_idle) else { return };
        let Some(view) = self.manager.unit(&told.unit).filter(|view| view.sub == "running") else { return };
        let now = self.now.monotonic;
        let limits = match &view.unit.body {
            Body::Socket(s) => [
                (s.trigger_limit_interval, s.trigger_limit_burst.unwrap_or(20)),
                (s.poll_limit_interval, s.poll_limit_burst.unwrap_or(15)),
            ],
            Body::Path(p) => [(p.trigger_limit_interval, p.trigger_limit_burst), (Duration::ZERO, 0)],
            _ => return,
        };
        let starts = &mut self.socket(&told.unit).starts;
        starts.push(now);
        for (interval, burst) in limits.into_iter().filter(|(_, burst)| *burst > 0) {
            let recent = starts.iter().filter(|at| **at + interval > now).count();
            if recent > burst as usize {
                let unit = &told.unit;
                return self.fail(format!("{unit} started its unit {recent} times within {interval:?}"));
            }
        }
    }

    pub(super) fn check_sockets(&self, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        for view in views.values() {
            match &view.unit.body {
                Body::Socket(section) => self.check_socket(view, section.accept, views)?,
                Body::Path(_) => self.check_path(view, views)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn check_socket(&self, view: &UnitView, accept: bool, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        let name = &view.unit.name;
        let default = FakeSocket::default();
        let socket = self.sockets.get(name).unwrap_or(&default);
        if view.active == ActiveState::Active {
            law(socket.open, || format!("{name} is up, and its sockets are lost"))?;
        } else if is_at_rest(view) {
            law(!socket.open, || format!("{name} is down, and its sockets are open"))?;
        }
        let heard = socket.armed || socket.told || view.deadline.is_some();
        law(view.sub != "listening" || heard, || format!("{name} listens and hears nothing"))?;
        let target = view.triggers.as_ref().and_then(|target| views.get(target));
        let idle = target.is_none_or(|target| is_at_rest(target) && target.job.is_none());
        law(view.sub != "running" || !idle, || format!("{name} leaves all to a service that is at rest"))?;
        let at_rest = target.is_none_or(is_at_rest);
        law(view.sub != "listening" || accept || at_rest || !socket.armed || socket.told, || {
            format!("{name} is armed while its service is there")
        })?;
        // By the definition that it has lived by: a newer one may be in force by now.
        let Some(lived_by) =
            self.busy.get(name).filter(|_| view.result == ServiceResult::ServiceStartLimitHit)
        else {
            return Ok(());
        };
        let target = lived_by.triggered().and_then(|target| views.get(&target).cloned());
        let given_up = target.is_some_and(|target| {
            target.result == ServiceResult::StartLimitHit || self.watch.forgotten.contains(&target.unit.name)
        });
        law(view.active != ActiveState::Failed || given_up, || {
            format!("{name} fails with a service that is well")
        })
    }

    fn check_path(&self, view: &UnitView, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        let name = &view.unit.name;
        let watched = self.sockets.get(name).is_some_and(|socket| socket.armed || socket.told);
        law(view.sub != "waiting" || watched || view.deadline.is_some(), || {
            format!("{name} waits for nothing")
        })?;
        let target = view.triggers.as_ref().and_then(|target| views.get(target));
        let idle = target.is_none_or(|target| is_at_rest(target) && target.job.is_none());
        law(view.sub != "running" || !idle, || format!("{name} leaves all to a unit that is at rest"))
    }

    /// After the end no socket and no connection is open. Where answers are lost, connections are lost with them.
    pub(super) fn check_closed(&self) -> Verdict {
        if let Some((name, _)) =
            self.sockets.iter().find(|(name, s)| s.open && name.unit_type() == UnitType::Socket)
        {
            return Err(format!("{name} is open after the end"));
        }
        law(self.connections.is_empty() || self.loses || self.doubles, || {
            format!("connections of {:?} are open after the end", self.connections.values())
        })
    }
}
