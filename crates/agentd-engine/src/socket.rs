//! The life of one socket: where it stands, and where each event takes it.
//!
//! [`SocketState::next`] is total and touches only the facts of its own unit; what the world must do is pushed to `out`,
//! and what only the manager can do (start the service) is left as a [`Wish`] for it.
//!
//! # Invariants
//! - From `start-chown` to the end the sockets are the shell's to keep: whatever becomes of the service, they stay.
//! - It is armed only while it listens and its service is at rest, or takes each connection for itself.
//! - What comes too fast is left waiting in the kernel for a while, and is told of once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentd_unit::Unit;
use agentd_unit::sections::SocketSection;

use crate::clock::Monotonic;
use crate::effect::{Effect, Level};
use crate::event::Connection;
use crate::ids::EffectId;
use crate::out::Out;
use crate::rate::Rate;
use crate::state::{ActiveState, ServiceResult};

/// How long a socket waits before it tries again what was not possible: to start its service, to take a connection.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(2);

/// How long the answer about a connection may take; then the socket is armed all the same.
const ACCEPT_WITHIN: Duration = Duration::from_secs(10);

/// How many wake-ups a socket may have in `PollLimitIntervalSec`, and how many starts in `TriggerLimitIntervalSec`,
/// where its file says nothing: systemd's numbers, more for sockets that accept.
const POLL_BURST: [u32; 2] = [15, 150];
const TRIGGER_BURST: [u32; 2] = [20, 200];

/// Where a socket stands, systemd's `SubState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SocketState {
    /// There is none.
    #[default]
    Dead,
    /// It is being made; `until` is TimeoutSec.
    StartChown { id: EffectId, until: Option<Monotonic> },
    /// It waits for traffic. With `again` it is not armed before that.
    Listening { again: Option<Monotonic> },
    /// Its service is there, and has the sockets.
    Running,
    /// There is none, after something went wrong.
    Failed,
}

/// How the unit stands that is started by a socket or a path unit, and whether it may be started now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// It is at rest and has no job.
    pub(crate) idle: bool,
    /// It was started too often: only a person brings it back.
    pub(crate) given_up: bool,
    /// What would start it is to be stopped itself.
    pub(crate) stopping: bool,
}

/// What can happen to a socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// Make it.
    Start(Arc<Unit>),
    /// Close it.
    Stop,
    /// It was made, or not.
    Listened { id: EffectId, result: Result<(), String>, target: Target },
    /// Something came in.
    Traffic(Target),
    /// A connection was taken.
    Accepted { id: EffectId, result: Result<Option<Box<Connection>>, String> },
    /// Its service is something else than before.
    Target(Target),
    /// The start that it wished for is not possible now.
    NotStarted,
    /// Time went on.
    Tick,
}

/// What the manager is to do for it.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Start its service.
    Service,
    /// Start this instance for this connection.
    Instance { id: EffectId, unit: Arc<Unit> },
}

/// Everything about a socket but its state.
#[derive(Debug, Default)]
pub(crate) struct SocketFacts {
    pub(crate) result: ServiceResult,
    pub(crate) wish: Option<Wish>,
    /// How many connections it took, and how many it refused.
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    /// The connections that have an instance, with where they come from.
    pub(crate) connections: BTreeMap<EffectId, Option<String>>,
    /// Why it could not be made.
    pub(crate) failure: Option<String>,
    /// The definition that it listens by.
    pub(crate) unit: Option<Arc<Unit>>,
    /// The connection that is being taken.
    pub(crate) taking: Option<EffectId>,
    /// The sockets of another manager are being taken up.
    pub(crate) resuming: Option<EffectId>,
    pub(crate) polls: Rate,
    pub(crate) triggers: Rate,
    armed_at: Monotonic,
    /// It was said that too much comes in.
    flooded: bool,
}

/// One socket.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    pub(crate) state: SocketState,
    pub(crate) facts: SocketFacts,
}

impl SocketState {
    /// Where this event takes it.
    #[must_use]
    pub(crate) fn next(self, event: SocketEvent, facts: &mut SocketFacts, out: &mut Out<'_>) -> Self {
        match self {
            Self::Dead | Self::Failed => at_rest(self, event, facts, out),
            Self::StartChown { id, until } => start_chown(id, until, event, facts, out),
            Self::Listening { again } => listening(again, event, facts, out),
            Self::Running => running(event, facts, out),
        }
    }

    /// When it must hear a [`SocketEvent::Tick`].
    pub(crate) const fn deadline(self) -> Option<Monotonic> {
        match self {
            Self::StartChown { until, .. } => until,
            Self::Listening { again } => again,
            Self::Dead | Self::Running | Self::Failed => None,
        }
    }

    /// What the socket is for others.
    pub(crate) const fn active(self) -> ActiveState {
        match self {
            Self::Dead => ActiveState::Inactive,
            Self::StartChown { .. } => ActiveState::Activating,
            Self::Listening { .. } | Self::Running => ActiveState::Active,
            Self::Failed => ActiveState::Failed,
        }
    }

    /// systemd's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::StartChown { .. } => "start-chown",
            Self::Listening { .. } => "listening",
            Self::Running => "running",
            Self::Failed => "failed",
        }
    }

    /// The sockets are there, so a service that starts gets them.
    pub(crate) const fn is_there(self) -> bool {
        matches!(self, Self::Listening { .. } | Self::Running)
    }
}

fn at_rest(
    state: SocketState,
    event: SocketEvent,
    facts: &mut SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    match event {
        SocketEvent::Start(unit) => {
            let id = out.ids.effect();
            out.push(Effect::Listen { id, unit: Arc::clone(&unit) });
            // What a failed connection still holds is counted on; all else begins anew.
            facts.unit = Some(unit);
            (facts.result, facts.failure) = (ServiceResult::Success, None);
            (facts.taking, facts.resuming) = (None, None);
            (facts.polls, facts.triggers, facts.flooded) = (Rate::default(), Rate::default(), false);
            let until = facts.section().and_then(|section| section.timeout);
            SocketState::StartChown { id, until: until.map(|span| out.now.monotonic + span) }
        }
        SocketEvent::Accepted { id, result } => late(state, id, &result, facts, out),
        SocketEvent::Stop
        | SocketEvent::Listened { .. }
        | SocketEvent::Traffic(_)
        | SocketEvent::Target(_)
        | SocketEvent::NotStarted
        | SocketEvent::Tick => state,
    }
}

fn start_chown(
    id: EffectId,
    until: Option<Monotonic>,
    event: SocketEvent,
    facts: &mut SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    let state = SocketState::StartChown { id, until };
    match event {
        SocketEvent::Listened { id: answered, result, target } if answered == id => match result {
            Ok(()) if target.idle || facts.accepts() => facts.listen(out),
            Ok(()) => SocketState::Running,
            Err(why) => facts.cannot_listen(why, out),
        },
        SocketEvent::Stop => facts.end(ServiceResult::Success, out),
        SocketEvent::Tick if until.is_some_and(|until| out.now.monotonic >= until) => {
            facts.end(ServiceResult::Timeout, out)
        }
        SocketEvent::Accepted { id, result } => late(state, id, &result, facts, out),
        SocketEvent::Start(_)
        | SocketEvent::Listened { .. }
        | SocketEvent::Traffic(_)
        | SocketEvent::Target(_)
        | SocketEvent::NotStarted
        | SocketEvent::Tick => state,
    }
}

fn listening(
    again: Option<Monotonic>,
    event: SocketEvent,
    facts: &mut SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    let state = SocketState::Listening { again };
    match event {
        SocketEvent::Traffic(_) if again.is_some() => state, // It was told of just before it was paused.
        SocketEvent::Traffic(target) => traffic(target, facts, out),
        SocketEvent::Accepted { id, result } => taken(state, id, result, facts, out),
        SocketEvent::Target(target) if !target.idle && !facts.accepts() => {
            facts.disarm(out);
            SocketState::Running
        }
        SocketEvent::Tick if again.is_some_and(|again| out.now.monotonic >= again) => {
            facts.taking = None;
            facts.arm(out)
        }
        SocketEvent::Stop => facts.end(ServiceResult::Success, out),
        SocketEvent::NotStarted => facts.pause(TRY_AGAIN, out),
        SocketEvent::Listened { id, result, .. } => resumed(state, id, result, facts, out),
        SocketEvent::Start(_) | SocketEvent::Target(_) | SocketEvent::Tick => state,
    }
}

fn running(event: SocketEvent, facts: &mut SocketFacts, out: &mut Out<'_>) -> SocketState {
    match event {
        SocketEvent::Target(target) if target.idle && target.given_up => {
            facts.say(Level::Warning, "Its service was started too often.".to_owned(), out);
            facts.end(ServiceResult::ServiceStartLimitHit, out)
        }
        SocketEvent::Target(target) if target.idle => facts.listen(out),
        SocketEvent::NotStarted => facts.pause(TRY_AGAIN, out),
        SocketEvent::Stop => facts.end(ServiceResult::Success, out),
        SocketEvent::Accepted { id, result } => late(SocketState::Running, id, &result, facts, out),
        SocketEvent::Listened { id, result, .. } => resumed(SocketState::Running, id, result, facts, out),
        SocketEvent::Start(_) | SocketEvent::Traffic(_) | SocketEvent::Target(_) | SocketEvent::Tick => {
            SocketState::Running
        }
    }
}

/// The sockets of another manager were taken up, or are lost.
fn resumed(
    state: SocketState,
    id: EffectId,
    result: Result<(), String>,
    facts: &mut SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    if facts.resuming != Some(id) {
        return state;
    }
    facts.resuming = None;
    match result {
        Ok(()) => state,
        Err(why) => facts.cannot_listen(why, out),
    }
}

/// Something came in while it was armed.
fn traffic(target: Target, facts: &mut SocketFacts, out: &mut Out<'_>) -> SocketState {
    if target.stopping {
        return facts.pause(TRY_AGAIN, out);
    }
    if !facts.accepts() && !target.idle {
        return SocketState::Running;
    }
    let Some(unit) = facts.unit.clone() else { return SocketState::Listening { again: None } };
    let Some(section) = unit.as_socket() else { return SocketState::Listening { again: None } };
    let (now, by_accept) = (out.now.monotonic, usize::from(section.accept));
    if now - facts.armed_at >= section.poll_limit_interval {
        facts.flooded = false;
    }
    let burst = or_default(section.poll_limit_burst, POLL_BURST[by_accept]);
    if !facts.polls.admit(section.poll_limit_interval, burst, now) {
        if !std::mem::replace(&mut facts.flooded, true) {
            let text = format!(
                "More than {burst} times woken within {:?}; what comes waits.",
                section.poll_limit_interval
            );
            facts.say(Level::Warning, text, out);
        }
        return facts.pause(section.poll_limit_interval, out);
    }
    let burst = or_default(section.trigger_limit_burst, TRIGGER_BURST[by_accept]);
    if !facts.triggers.admit(section.trigger_limit_interval, burst, now) {
        let text = format!(
            "Trigger limit hit, more than {burst} starts within {:?}.",
            section.trigger_limit_interval
        );
        facts.say(Level::Warning, text, out);
        return facts.end(ServiceResult::TriggerLimitHit, out);
    }
    if !section.accept {
        facts.wish = Some(Wish::Service);
        return SocketState::Running;
    }
    let id = out.ids.effect();
    out.push(Effect::Accept { id, unit: Arc::clone(&unit), number: facts.accepted });
    facts.taking = Some(id);
    SocketState::Listening { again: Some(now + ACCEPT_WITHIN) }
}

const fn or_default(burst: Option<u32>, default: u32) -> u32 {
    match burst {
        Some(burst) => burst,
        None => default,
    }
}

/// A connection was taken, or there was none.
fn taken(
    state: SocketState,
    id: EffectId,
    result: Result<Option<Box<Connection>>, String>,
    facts: &mut SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    if facts.taking != Some(id) {
        return late(state, id, &result, facts, out);
    }
    facts.taking = None;
    match result {
        Ok(None) => facts.arm(out), // Who connected has gone again.
        Ok(Some(connection)) => {
            facts.admit(id, *connection, out);
            facts.arm(out)
        }
        Err(why) => {
            facts.say(Level::Warning, format!("A connection is not served: {why}"), out);
            facts.refused += 1;
            facts.pause(TRY_AGAIN, out)
        }
    }
}

/// A connection that nobody waits for any more; one that is served keeps on.
fn late(
    state: SocketState,
    id: EffectId,
    result: &Result<Option<Box<Connection>>, String>,
    facts: &SocketFacts,
    out: &mut Out<'_>,
) -> SocketState {
    if matches!(result, Ok(Some(_))) && !facts.connections.contains_key(&id) {
        out.push(Effect::Hangup { connection: id });
    }
    state
}

impl SocketFacts {
    fn section(&self) -> Option<&SocketSection> {
        self.unit.as_ref()?.as_socket()
    }

    /// How many connections it took, and how many it refused.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.accepted, self.refused)
    }

    /// Each connection has an instance of its own.
    fn accepts(&self) -> bool {
        self.section().is_some_and(|section| section.accept)
    }

    /// Waits for traffic anew.
    fn listen(&mut self, out: &mut Out<'_>) -> SocketState {
        let flushes = self.section().is_some_and(|section| section.options.flush_pending && !section.accept);
        if let Some(unit) = self.unit.as_ref().filter(|_| flushes) {
            out.push(Effect::Flush { unit: unit.name.clone() });
        }
        self.arm(out)
    }

    pub(crate) fn arm(&mut self, out: &mut Out<'_>) -> SocketState {
        self.armed_at = out.now.monotonic;
        if let Some(unit) = &self.unit {
            out.push(Effect::Arm { unit: unit.name.clone() });
        }
        SocketState::Listening { again: None }
    }

    fn disarm(&self, out: &mut Out<'_>) {
        if let Some(unit) = &self.unit {
            out.push(Effect::Disarm { unit: unit.name.clone() });
        }
    }

    /// Listens, and is armed later.
    fn pause(&self, span: Duration, out: &Out<'_>) -> SocketState {
        SocketState::Listening { again: Some(out.now.monotonic + span.max(Duration::from_millis(100))) }
    }

    fn cannot_listen(&mut self, why: String, out: &mut Out<'_>) -> SocketState {
        self.say(Level::Error, format!("Failed to listen: {why}"), out);
        self.failure = Some(why);
        self.end(ServiceResult::Resources, out)
    }

    fn end(&mut self, result: ServiceResult, out: &mut Out<'_>) -> SocketState {
        if let Some(unit) = &self.unit {
            out.push(Effect::Unlisten { unit: unit.name.clone() });
        }
        self.result = result;
        if result == ServiceResult::Success { SocketState::Dead } else { SocketState::Failed }
    }

    /// A connection gets its instance, or is closed where there are too many.
    fn admit(&mut self, id: EffectId, connection: Connection, out: &mut Out<'_>) {
        let Some(section) = self.section() else { return };
        let from_there = || self.connections.values().filter(|source| **source == connection.source).count();
        let per_source = section.max_connections_per_source as usize;
        let too_many = if self.connections.len() >= section.max_connections as usize {
            Some(format!("all {} connections are in use", section.max_connections))
        } else if per_source > 0 && connection.source.is_some() && from_there() >= per_source {
            let source = connection.source.as_deref().unwrap_or_default();
            Some(format!("{source} has {per_source} connections already"))
        } else {
            None
        };
        if let Some(why) = too_many {
            self.refused += 1;
            self.say(Level::Warning, format!("A connection is refused: {why}."), out);
            return out.push(Effect::Hangup { connection: id });
        }
        self.accepted += 1;
        self.connections.insert(id, connection.source);
        self.wish = Some(Wish::Instance { id, unit: connection.unit });
    }

    fn say(&self, level: Level, text: String, out: &mut Out<'_>) {
        if let Some(unit) = &self.unit {
            let name = unit.name.clone();
            out.log(level, &name, None, None, format!("{name}: {text}"));
        }
    }
}
