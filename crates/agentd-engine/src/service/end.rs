//! The end of a life: what is left of it, and whether another follows.

use std::time::Duration;

use super::facts::Leftover;
use super::{Facts, Run, ServiceState as S};
use crate::effect::{Effect, Level};
use crate::out::{Out, message};
use crate::restart::{self, Rules};
use crate::state::ServiceResult as R;

/// The run is over: what comes next.
pub(super) fn settle(facts: &mut Facts, out: &mut Out<'_>) -> S {
    if facts.run.as_ref().is_some_and(|run| run.spawned) {
        facts.await_empty(out);
    }
    let Some(run) = facts.run.take() else { return S::Dead };
    match run.awaiting.filter(|_| !run.emptied) {
        Some(awaiting) => facts.leftover = Some(Leftover { run: run.id, awaiting }),
        None if run.spawned => out.push(Effect::Release { run: run.id }),
        None => {}
    }
    facts.last_status = run.main_status;
    say_end(facts, &run, out);
    let Some(body) = run.unit.as_service() else { return S::Dead };
    let rules = Rules::of(body);
    let now = out.now.monotonic;
    if !run.stop_asked && restart::follows(&body.service, facts.result, run.main_status) {
        let ended = run.ended_at.unwrap_or(now);
        facts.restarts.settle(rules, run.up_since.map_or(Duration::ZERO, |since| ended - since));
        let mut delay = rules.delay(facts.restarts.step) + out.ids.up_to(rules.extra());
        if run.spawn_failed {
            delay = delay.max(restart::SPAWN_FAILURE_FLOOR);
        }
        let at = ended + delay;
        let spent = facts.restarts.are_spent(rules);
        if !spent && facts.restarts.admit(&run.unit.unit, at.max(now)) {
            facts.restart_delay = Some(delay);
            return S::AutoRestart { at, due: false };
        }
        say_limit(&run, spent, out);
        facts.result = R::StartLimitHit;
    }
    if matches!(facts.result, R::Success | R::ExecCondition) { S::Dead } else { S::Failed }
}

fn say_end(facts: &Facts, run: &Run, out: &mut Out<'_>) {
    let name = &run.unit.name;
    let (level, id, text) = match facts.result {
        R::Success => (Level::Info, message::DEACTIVATED, format!("{name}: Deactivated successfully.")),
        R::ExecCondition => {
            (Level::Info, message::DEACTIVATED, format!("{name}: Start was left out by ExecCondition."))
        }
        result => (Level::Warning, message::UNIT_FAILED, format!("{name}: Failed with result '{result}'.")),
    };
    out.log(level, name, Some(run.id), Some(id), text);
}

fn say_limit(run: &Run, spent: bool, out: &mut Out<'_>) {
    let name = &run.unit.name;
    let text = if spent { restart::spent(name) } else { restart::limit_hit(name) };
    out.log(Level::Warning, name, Some(run.id), Some(message::UNIT_FAILED), text);
}
