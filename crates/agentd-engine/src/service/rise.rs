//! The way up: from rest to running, and reloading.

use agentd_unit::{ExecKind, ServiceType, Signal};

use super::{Facts, Run, ServiceEvent as E, ServiceState as S, Who, end, expired, fall};
use crate::clock::Monotonic;
use crate::effect::{Effect, KillTarget, Level};
use crate::out::{Out, message};
use crate::state::ServiceResult as R;

type Until = Option<Monotonic>;

/// `Dead` and `Failed`: only a start leads out of them.
pub(super) fn at_rest(state: S, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Start(run) => begin(*run, facts, out),
        E::Stop
        | E::Force
        | E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::Emptied
        | E::Cleared
        | E::Oom
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

/// `AutoRestart`: a stop beats the restart that is due.
pub(super) fn auto_restart(at: Monotonic, due: bool, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = S::AutoRestart { at, due };
    match event {
        E::Start(run) => begin(*run, facts, out),
        E::Stop | E::Force => S::Dead,
        E::Tick if !due && expired(Some(at), out) => S::AutoRestart { at, due: true },
        E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::Emptied
        | E::Cleared
        | E::Oom
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

fn begin(run: Run, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let (id, name) = (run.id, run.unit.name.clone());
    let text = format!("Starting {}...", crate::unit::title(&run.unit));
    out.log(Level::Info, &name, Some(id), Some(message::STARTING), text);
    facts.last_run = Some(id);
    facts.result = R::Success;
    facts.status_text = None;
    facts.status_errno = None;
    facts.status_bus_error = None;
    facts.failure = None;
    facts.restart_delay = None;
    facts.generation += 1;
    facts.run = Some(run);
    let Some(leftover) = facts.leftover else { return enter_condition(0, None, facts, out) };
    out.push(Effect::KillAll { run: leftover.run });
    S::Clearing { until: facts.until(facts.section().and_then(|service| service.timeout_stop), out) }
}

/// `Clearing`: two lives of one unit never overlap.
pub(super) fn clearing(until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Cleared => enter_condition(0, None, facts, out),
        E::Stop => fall::asked(facts, |facts| end::settle(facts, out)),
        E::Force => fall::force(facts, out),
        E::Tick if expired(until, out) => {
            facts.failure = Some("processes of its last run cannot be killed".to_owned());
            facts.worsen(R::Resources);
            end::settle(facts, out)
        }
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::Emptied
        | E::Oom
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => S::Clearing { until },
    }
}

/// Runs the next ExecCondition, or goes on. One TimeoutStartSec covers the whole start.
fn enter_condition(index: usize, until: Option<Until>, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let timeout = facts.section().and_then(|service| service.timeout_start);
    let until = until.unwrap_or_else(|| facts.until(timeout, out));
    if index < facts.commands(ExecKind::Condition) {
        facts.spawn(ExecKind::Condition, index, out);
        return S::Condition { index, until };
    }
    enter_start_pre(0, until, facts, out)
}

/// Runs the next ExecStartPre, or goes on.
fn enter_start_pre(index: usize, until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index < facts.commands(ExecKind::StartPre) {
        facts.spawn(ExecKind::StartPre, index, out);
        return S::StartPre { index, until };
    }
    enter_start(0, until, facts, out)
}

/// Runs the next ExecStart, or goes on. A oneshot's run is its start, so RuntimeMaxSec bounds that too.
fn enter_start(index: usize, until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index >= facts.commands(ExecKind::Start) {
        return enter_start_post(0, until, facts, out);
    }
    facts.spawn(ExecKind::Start, index, out);
    let oneshot = facts.service_type() == ServiceType::Oneshot;
    let bound = facts.section().and_then(|service| service.runtime_max).filter(|_| oneshot && index == 0);
    S::Start { index, until: until.into_iter().chain(facts.until(bound, out)).min() }
}

fn enter_start_post(index: usize, until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index == 0 {
        facts.arm_watchdog(out);
    }
    if index < facts.commands(ExecKind::StartPost) {
        facts.spawn(ExecKind::StartPost, index, out);
        return S::StartPost { index, until };
    }
    let bound = facts.section().and_then(|service| service.runtime_max);
    let until = facts.until(bound, out);
    enter_running(until, facts, out)
}

/// Running if the main process is, else what its end left.
fn enter_running(until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let now = out.now.monotonic;
    let Some(run) = &mut facts.run else { return S::Dead };
    run.up_since.get_or_insert(now);
    if run.main.is_some() {
        return S::Running { until };
    }
    main_ended(run.main_outcome, facts, out)
}

/// What follows from the end of the main process of a service that was up.
fn main_ended(outcome: R, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if outcome == R::Success && facts.remain_after_exit() {
        return S::Exited;
    }
    fall::enter_stop(outcome, facts, out)
}

fn timed_out(what: &str, facts: &mut Facts, out: &mut Out<'_>) -> S {
    fall::say(facts, Level::Warning, out, format_args!("{what} operation timed out. Terminating."));
    fall::fail(R::Timeout, facts, out)
}

/// `Condition`: an exit code from 1 to 254 leaves the start out.
pub(super) fn condition(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => {
            enter_condition(index + 1, Some(until), facts, out)
        }
        E::Gone { who: Who::Control, outcome } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Tick if expired(until, out) => timed_out("condition", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => S::Condition { index, until },
    }
}

/// `StartPre`.
pub(super) fn start_pre(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => enter_start_pre(index + 1, until, facts, out),
        E::Gone { who: Who::Control, outcome } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Tick if expired(until, out) => timed_out("start-pre", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => S::StartPre { index, until },
    }
}

/// `Start`: when it counts as started depends on Type.
pub(super) fn start(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let service_type = facts.service_type();
    match event {
        E::Up(Who::Main) if matches!(service_type, ServiceType::Simple | ServiceType::Exec) => {
            enter_start_post(0, until, facts, out)
        }
        E::Ready if service_type == ServiceType::Notify => enter_start_post(0, until, facts, out),
        E::Gone { who: Who::Main, outcome: R::Success } => match service_type {
            ServiceType::Oneshot => enter_start(index + 1, until, facts, out),
            ServiceType::Simple | ServiceType::Exec => enter_start_post(0, until, facts, out),
            ServiceType::Notify => fall::fail(R::Protocol, facts, out),
        },
        E::Gone { who: Who::Main, outcome } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Tick if expired(until, out) => timed_out("start", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Control, .. }
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Hung
        | E::Tick => S::Start { index, until },
    }
}

/// `StartPost`: an end of the main process is looked at when the command is done.
pub(super) fn start_post(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => enter_start_post(index + 1, until, facts, out),
        E::Gone { who: Who::Control, outcome } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Hung => fall::hung(facts, out),
        E::Tick if expired(until, out) => timed_out("start-post", facts, out),
        E::Tick if facts.is_hung(out) => fall::hung(facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Tick => S::StartPost { index, until },
    }
}

/// `Running` and `Exited`.
pub(super) fn up(state: S, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let until = if let S::Running { until } = state { until } else { None };
    match event {
        E::Gone { who: Who::Main, outcome } => main_ended(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::enter_stop(R::Success, facts, out)),
        E::Force => fall::force(facts, out),
        E::Reload if facts.commands(ExecKind::Reload) > 0 => enter_reload(0, facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Reloading if facts.service_type() == ServiceType::Notify => {
            let timeout = facts.section().and_then(|service| service.timeout_start);
            S::Reload { index: None, until: facts.until(timeout, out) }
        }
        E::Stopping if matches!(state, S::Running { .. }) => fall::announced(facts, out),
        E::Hung => fall::hung(facts, out),
        E::Tick if expired(until, out) => {
            fall::say(
                facts,
                Level::Warning,
                out,
                format_args!("Service reached runtime time limit. Stopping."),
            );
            fall::enter_stop(R::Timeout, facts, out)
        }
        E::Tick if matches!(state, S::Running { .. }) && facts.is_hung(out) => fall::hung(facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Control, .. }
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading
        | E::Stopping
        | E::Tick => state,
    }
}

fn enter_reload(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index == 0
        && let Some(run) = &mut facts.run
    {
        run.reload_failed = false;
    }
    facts.spawn(ExecKind::Reload, index, out);
    let timeout = facts.section().and_then(|service| service.timeout_start);
    S::Reload { index: Some(index), until: facts.until(timeout, out) }
}

fn reloaded(failed: bool, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if let Some(run) = &mut facts.run {
        run.reload_failed |= failed;
    }
    let runtime_max = facts.section().and_then(|service| service.runtime_max);
    let up_since = facts.run.as_ref().and_then(|run| run.up_since);
    let until = runtime_max.zip(up_since).map(|(span, since)| since + span);
    enter_running(until, facts, out)
}

/// `Reload`: whatever comes of it, the service stays up.
pub(super) fn reload(
    index: Option<usize>,
    until: Until,
    event: E,
    facts: &mut Facts,
    out: &mut Out<'_>,
) -> S {
    let state = S::Reload { index, until };
    match (event, index) {
        (E::Gone { who: Who::Control, outcome: R::Success }, Some(index))
            if index + 1 < facts.commands(ExecKind::Reload) =>
        {
            enter_reload(index + 1, facts, out)
        }
        (E::Gone { who: Who::Control, outcome }, Some(_)) => reloaded(outcome != R::Success, facts, out),
        (E::Gone { who: Who::Main, .. } | E::Ready, None) => reloaded(false, facts, out),
        (E::Stop, _) => fall::asked(facts, |facts| fall::signal(facts, out)),
        (E::Force, _) => fall::force(facts, out),
        (E::Oom, _) => fall::fail(R::OomKill, facts, out),
        (E::Stopping, None) => fall::announced(facts, out),
        (E::Hung, _) => fall::hung(facts, out),
        (E::Tick, _) if expired(until, out) => reload_timed_out(index, facts, out),
        (E::Tick, _) if facts.is_hung(out) => fall::hung(facts, out),
        (
            E::Start(_)
            | E::Reload
            | E::Up(_)
            | E::Gone { .. }
            | E::Emptied
            | E::Cleared
            | E::Ready
            | E::Reloading
            | E::Stopping
            | E::Tick,
            _,
        ) => state,
    }
}

fn reload_timed_out(index: Option<usize>, facts: &mut Facts, out: &mut Out<'_>) -> S {
    fall::say(
        facts,
        Level::Warning,
        out,
        format_args!("Reload operation timed out. Killing reload process."),
    );
    let Some(run) = &mut facts.run else { return S::Dead };
    if run.reload_failed {
        run.control = None; // It was killed already: of its end we never heard.
    }
    let control = run.control.filter(|_| index.is_some());
    let Some(control) = control else { return reloaded(true, facts, out) };
    facts.kill(KillTarget::Process(control.id), Signal::KILL, out);
    if let Some(run) = &mut facts.run {
        run.reload_failed = true;
    }
    // No further command of the list: SIGKILL is not a clean end, so the list stops there.
    S::Reload { index, until: facts.until(facts.section().and_then(|service| service.timeout_stop), out) }
}
