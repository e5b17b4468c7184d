//! The life of one path unit: where it stands, and where each event takes it.
//!
//! [`PathState::next`] is total; what only the manager can do (start the unit) is left as a wish for it.
//!
//! # Invariants
//! - It waits for its paths only while its unit is at rest: what the unit itself does to them starts nothing.
//! - Whoever ends is looked at again: what is still there starts the unit anew.

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::Unit;

use crate::clock::Monotonic;
use crate::effect::{Effect, Level};
use crate::ids::EffectId;
use crate::out::Out;
use crate::rate::Rate;
use crate::socket::{TRY_AGAIN, Target};
use crate::state::{ActiveState, ServiceResult};

/// How long the answer about a watch may take; then it is asked for again.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Where a path unit stands, systemd's `SubState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PathState {
    /// It waits for nothing.
    #[default]
    Dead,
    /// It waits for its paths; looks at them anew at `again`, where something was not possible.
    Waiting { again: Option<Monotonic> },
    /// Its unit was started.
    Running,
    /// It waits for nothing, after something went wrong.
    Failed,
}

/// What can happen to a path unit.
#[derive(Debug)]
pub(crate) enum PathEvent {
    /// Wait.
    Start(Arc<Unit>),
    /// Do not wait.
    Stop,
    /// It is being waited for, or cannot be.
    Watched { id: EffectId, result: Result<(), String> },
    /// What it waits for has happened, there.
    Traffic { target: Target, path: Option<String> },
    /// Its unit is something else than before.
    Target(Target),
    /// The start that it wished for is not possible now.
    NotStarted,
    /// Time went on.
    Tick,
}

/// Everything about a path unit but its state.
#[derive(Debug, Default)]
pub(crate) struct PathFacts {
    pub(crate) result: ServiceResult,
    /// The unit is to be started, since this has happened there.
    pub(crate) wish: Option<String>,
    /// Why nothing can be waited for.
    pub(crate) failure: Option<String>,
    /// The definition that it waits by.
    pub(crate) unit: Option<Arc<Unit>>,
    pub(crate) asked: Option<EffectId>,
    pub(crate) triggers: Rate,
}

/// One path unit.
#[derive(Debug, Default)]
pub(crate) struct PathUnit {
    pub(crate) state: PathState,
    pub(crate) facts: PathFacts,
}

impl PathState {
    /// Where this event takes it.
    #[must_use]
    pub(crate) fn next(self, event: PathEvent, facts: &mut PathFacts, out: &mut Out<'_>) -> Self {
        match self {
            Self::Dead | Self::Failed => at_rest(self, event, facts, out),
            Self::Waiting { again } => waiting(again, event, facts, out),
            Self::Running => running(event, facts, out),
        }
    }

    /// When it must hear a [`PathEvent::Tick`].
    pub(crate) const fn deadline(self) -> Option<Monotonic> {
        match self {
            Self::Waiting { again } => again,
            Self::Dead | Self::Running | Self::Failed => None,
        }
    }

    /// What the path unit is for others.
    pub(crate) const fn active(self) -> ActiveState {
        match self {
            Self::Dead => ActiveState::Inactive,
            Self::Waiting { .. } | Self::Running => ActiveState::Active,
            Self::Failed => ActiveState::Failed,
        }
    }

    /// systemd's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Waiting { .. } => "waiting",
            Self::Running => "running",
            Self::Failed => "failed",
        }
    }
}

fn at_rest(state: PathState, event: PathEvent, facts: &mut PathFacts, out: &mut Out<'_>) -> PathState {
    match event {
        PathEvent::Start(unit) => {
            *facts = PathFacts { unit: Some(unit), ..PathFacts::default() };
            facts.watch(true, out)
        }
        PathEvent::Stop
        | PathEvent::Watched { .. }
        | PathEvent::Traffic { .. }
        | PathEvent::Target(_)
        | PathEvent::NotStarted
        | PathEvent::Tick => state,
    }
}

fn waiting(
    again: Option<Monotonic>,
    event: PathEvent,
    facts: &mut PathFacts,
    out: &mut Out<'_>,
) -> PathState {
    let state = PathState::Waiting { again };
    if matches!(event, PathEvent::Traffic { .. }) {
        facts.asked = None; // It was watched, or it would not have been told of.
    }
    match event {
        PathEvent::Watched { id, result } if facts.asked == Some(id) => match result {
            Ok(()) => {
                facts.asked = None;
                PathState::Waiting { again: None }
            }
            Err(why) => {
                facts.say(Level::Error, format!("Failed to watch: {why}"), out);
                facts.failure = Some(why);
                facts.end(ServiceResult::Resources, out)
            }
        },
        PathEvent::Traffic { target, .. } if target.stopping => {
            PathState::Waiting { again: Some(out.now.monotonic + TRY_AGAIN) }
        }
        PathEvent::Traffic { target, .. } if !target.idle => PathState::Running,
        PathEvent::Traffic { path, .. } => traffic(path, facts, out),
        PathEvent::Tick if again.is_some_and(|again| out.now.monotonic >= again) => facts.watch(false, out),
        PathEvent::NotStarted => PathState::Waiting { again: Some(out.now.monotonic + TRY_AGAIN) },
        PathEvent::Stop => facts.end(ServiceResult::Success, out),
        PathEvent::Start(_) | PathEvent::Watched { .. } | PathEvent::Target(_) | PathEvent::Tick => state,
    }
}

fn running(event: PathEvent, facts: &mut PathFacts, out: &mut Out<'_>) -> PathState {
    match event {
        PathEvent::Target(target) if target.idle && target.given_up => {
            facts.say(Level::Warning, "Its unit was started too often.".to_owned(), out);
            facts.end(ServiceResult::UnitStartLimitHit, out)
        }
        PathEvent::Target(target) if target.idle => facts.watch(false, out),
        PathEvent::NotStarted => PathState::Waiting { again: Some(out.now.monotonic + TRY_AGAIN) },
        PathEvent::Stop => facts.end(ServiceResult::Success, out),
        PathEvent::Start(_)
        | PathEvent::Watched { .. }
        | PathEvent::Traffic { .. }
        | PathEvent::Target(_)
        | PathEvent::Tick => PathState::Running,
    }
}

fn traffic(path: Option<String>, facts: &mut PathFacts, out: &mut Out<'_>) -> PathState {
    let section = facts.unit.as_ref().and_then(|unit| unit.as_path());
    let limit = section.map(|section| (section.trigger_limit_interval, section.trigger_limit_burst));
    let (interval, burst) = limit.unwrap_or_default();
    if !facts.triggers.admit(interval, burst, out.now.monotonic) {
        let text = format!("Trigger limit hit, more than {burst} starts within {interval:?}.");
        facts.say(Level::Warning, text, out);
        return facts.end(ServiceResult::TriggerLimitHit, out);
    }
    facts.wish = Some(path.unwrap_or_default());
    PathState::Running
}

impl PathFacts {
    pub(crate) fn watch(&mut self, first: bool, out: &mut Out<'_>) -> PathState {
        let id = out.ids.effect();
        if let Some(unit) = &self.unit {
            out.push(Effect::Watch { id, unit: Arc::clone(unit), first });
        }
        self.asked = Some(id);
        PathState::Waiting { again: Some(out.now.monotonic + ANSWER_WITHIN) }
    }

    fn end(&mut self, result: ServiceResult, out: &mut Out<'_>) -> PathState {
        if let Some(unit) = &self.unit {
            out.push(Effect::Unwatch { unit: unit.name.clone() });
        }
        self.result = result;
        if result == ServiceResult::Success { PathState::Dead } else { PathState::Failed }
    }

    fn say(&self, level: Level, text: String, out: &mut Out<'_>) {
        if let Some(unit) = &self.unit {
            let name = unit.name.clone();
            out.log(level, &name, None, None, format!("{name}: {text}"));
        }
    }
}
