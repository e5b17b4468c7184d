//! The end of a life: what is left of it, and whether another follows.

use super::facts::Leftover;
use super::{Facts, Run, ServiceState as S};
use crate::effect::{Effect, Level};
use crate::out::{Out, message};
use crate::restart;
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
    let Some(service) = run.unit.as_service().map(|body| &body.service) else { return S::Dead };
    let now = out.now.monotonic;
    if !run.stop_asked && restart::follows(service, facts.result, run.main_status) {
        let up = run.up_since.map_or_else(Default::default, |since| now - since);
        facts.restarts.settle(service, up);
        let mut delay = restart::delay(service, facts.restarts.step);
        if run.spawn_failed {
            delay = delay.max(restart::SPAWN_FAILURE_FLOOR);
        }
        let at = run.ended_at.unwrap_or(now) + delay;
        if facts.restarts.admit(&run.unit.unit, at.max(now)) {
            facts.restart_delay = Some(delay);
            return S::AutoRestart { at, due: false };
        }
        say_limit(&run, out);
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

fn say_limit(run: &Run, out: &mut Out<'_>) {
    let name = &run.unit.name;
    let text = restart::limit_hit(name);
    out.log(Level::Warning, name, Some(run.id), Some(message::UNIT_FAILED), text);
}
