//! The way up: from rest to running, and reloading.

use std::time::Duration;

use agentd_unit::{ExecKind, ServiceType};

use super::{
    Facts, Run, ServiceEvent as E, ServiceState as S, Who, abort, end, expired, fall, main_process, reload,
};
use crate::clock::Monotonic;
use crate::effect::{Effect, Level};
use crate::out::{Out, message};
use crate::state::ServiceResult as R;

type Until = Option<Monotonic>;

/// How long `Type=idle` waits for the jobs of others at most, systemd.service(5).
const IDLE_PATIENCE: Duration = Duration::from_secs(5);

/// `Dead` and `Failed`: only a start leads out of them.
pub(super) fn at_rest(state: S, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match event {
        E::Start(run) => begin(run, facts, out),
        E::Stop
        | E::Force
        | E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Oom
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

/// `AutoRestart`: a stop beats the restart that is due.
pub(super) fn auto_restart(at: Monotonic, due: bool, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = S::AutoRestart { at, due };
    match event {
        E::Start(run) => begin(run, facts, out),
        E::Stop | E::Force => S::Dead,
        E::Tick if !due && expired(Some(at), out) => S::AutoRestart { at, due: true },
        E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Oom
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

fn begin(mut run: Box<Run>, facts: &mut Facts, out: &mut Out<'_>) -> S {
    run.limit_runtime(out.ids);
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
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Oom
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
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
    if facts.service_type() == ServiceType::Idle
        && let Some(run) = &mut facts.run
    {
        // The others' time is not its own: TimeoutStartSec counts from when it begins.
        run.idle_until = Some(out.now.monotonic + IDLE_PATIENCE);
        return S::Start { index, until: None };
    }
    execute(index, until, facts, out)
}

/// A service of `Type=idle` has waited enough.
fn stop_idling(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if let Some(run) = &mut facts.run {
        run.idle_until = None;
    }
    let until = facts.until(facts.section().and_then(|service| service.timeout_start), out);
    execute(index, until, facts, out)
}

fn execute(index: usize, until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    facts.spawn(ExecKind::Start, index, out);
    let oneshot = facts.service_type() == ServiceType::Oneshot;
    let bound = facts.runtime_max().filter(|_| oneshot && index == 0);
    S::Start { index, until: until.into_iter().chain(facts.until(bound, out)).min() }
}

pub(super) fn enter_start_post(index: usize, until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index == 0 {
        facts.arm_watchdog(out);
    }
    if index < facts.commands(ExecKind::StartPost) {
        facts.spawn(ExecKind::StartPost, index, out);
        return S::StartPost { index, until };
    }
    if let Some(state) = main_process::search_after_post(index, until, facts, out) {
        return state;
    }
    began(facts, out)
}

/// All that belongs to the start is done.
pub(super) fn began(facts: &mut Facts, out: &mut Out<'_>) -> S {
    let until = facts.until(facts.runtime_max(), out);
    enter_running(until, facts, out)
}

/// Running if the main process is, else what its end left.
pub(super) fn enter_running(until: Until, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let now = out.now.monotonic;
    let Some(run) = &mut facts.run else { return S::Dead };
    run.up_since.get_or_insert(now);
    if run.main.is_some() {
        return S::Running { until };
    }
    if facts.is_headless() {
        facts.await_empty(out);
        let empty = facts.run.as_ref().is_none_or(|run| run.emptied);
        return if empty { headless_end(facts, out) } else { S::Running { until } };
    }
    if facts.find_successor(out) {
        return S::Running { until };
    }
    let Some(run) = &facts.run else { return S::Dead };
    main_ended(run.main_outcome, facts, out)
}

/// The last process of a service without a main process is gone: what that left, if it had one, is its outcome.
fn headless_end(facts: &mut Facts, out: &mut Out<'_>) -> S {
    let now = out.now.monotonic;
    let Some(run) = &mut facts.run else { return S::Dead };
    run.ended_at = Some(now);
    let outcome = run.main_outcome;
    main_ended(outcome, facts, out)
}

/// Its main process has ended, and it is to live as long as any of its processes does (`ExitType=cgroup`).
fn lives_on(state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    facts.await_empty(out);
    let empty = facts.run.as_ref().is_none_or(|run| run.emptied);
    if empty { headless_end(facts, out) } else { state }
}

/// What follows from the end of the main process of a service that was up.
fn main_ended(outcome: R, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if outcome == R::Success && facts.remain_after_exit() {
        return S::Exited;
    }
    fall::enter_stop(outcome, facts, out)
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
        E::Tick if expired(until, out) => abort::start_timed_out("condition", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
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
        E::Tick if expired(until, out) => abort::start_timed_out("start-pre", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => S::StartPre { index, until },
    }
}

/// `Start`: when it counts as started depends on Type.
pub(super) fn start(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let service_type = facts.service_type();
    let state = S::Start { index, until };
    if let Some(state) = main_process::searching(state, &event, facts, out) {
        return state;
    }
    let idles = state.waits_for_quiet(facts);
    match event {
        E::Quiet if idles => stop_idling(index, facts, out),
        E::Tick if idles && expired(facts.run.as_ref().and_then(|run| run.idle_until), out) => {
            stop_idling(index, facts, out)
        }
        E::Up(Who::Main)
            if matches!(service_type, ServiceType::Simple | ServiceType::Exec | ServiceType::Idle) =>
        {
            enter_start_post(0, until, facts, out)
        }
        E::Ready if matches!(service_type, ServiceType::Notify | ServiceType::NotifyReload) => {
            enter_start_post(0, until, facts, out)
        }
        E::Gone { who: Who::Control, outcome: R::Success } => main_process::forked(index, until, facts, out),
        E::Gone { who: Who::Main, outcome: R::Success } => match service_type {
            ServiceType::Oneshot => enter_start(index + 1, until, facts, out),
            ServiceType::Simple | ServiceType::Exec | ServiceType::Idle => {
                enter_start_post(0, until, facts, out)
            }
            ServiceType::Notify | ServiceType::NotifyReload => fall::fail(R::Protocol, facts, out),
            ServiceType::Forking => state, // It was told of too early; the command itself counts.
        },
        E::Gone { outcome, .. } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Tick if expired(until, out) => abort::start_timed_out("start", facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

/// `StartPost`: an end of the main process is looked at when the command is done.
pub(super) fn start_post(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if let Some(state) = main_process::searching(S::StartPost { index, until }, &event, facts, out) {
        return state;
    }
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => enter_start_post(index + 1, until, facts, out),
        E::Gone { who: Who::Control, outcome } => fall::fail(outcome, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Hung => abort::hung(facts, out),
        E::Tick if expired(until, out) => abort::start_timed_out("start-post", facts, out),
        E::Tick if facts.is_hung(out) => abort::hung(facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { who: Who::Main, .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Tick => S::StartPost { index, until },
    }
}

/// `Running` and `Exited`.
pub(super) fn up(state: S, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let until = if let S::Running { until } = state { until } else { None };
    match event {
        E::Gone { who: Who::Main, .. } if facts.find_successor(out) => state,
        E::Gone { who: Who::Main, .. } if facts.ends_with_cgroup() => lives_on(state, facts, out),
        E::Gone { who: Who::Main, outcome } => main_ended(outcome, facts, out),
        E::NoMain if matches!(state, S::Running { .. }) => without_successor(state, facts, out),
        E::Emptied if matches!(state, S::Running { .. }) && facts.is_headless() => headless_end(facts, out),
        E::Stop => fall::asked(facts, |facts| fall::enter_stop(R::Success, facts, out)),
        E::Force => fall::force(facts, out),
        E::Reload => reload::begin(state, facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Reloading(_)
            if matches!(facts.service_type(), ServiceType::Notify | ServiceType::NotifyReload) =>
        {
            reload::announced(facts, out)
        }
        E::Stopping if matches!(state, S::Running { .. }) => fall::announced(facts, out),
        E::Hung => abort::hung(facts, out),
        E::Tick if expired(until, out) => {
            fall::say(
                facts,
                Level::Warning,
                out,
                format_args!("Service reached runtime time limit. Stopping."),
            );
            fall::enter_stop(R::Timeout, facts, out)
        }
        E::Tick if matches!(state, S::Running { .. }) && facts.is_hung(out) => abort::hung(facts, out),
        E::Start(_)
        | E::Up(_)
        | E::Gone { who: Who::Control, .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Tick => state,
    }
}

/// Its main process has ended, and the PID file names no other.
fn without_successor(state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let Some(run) = facts.run.as_ref().filter(|run| run.main.is_none()) else { return state };
    if facts.ends_with_cgroup() {
        return lives_on(state, facts, out);
    }
    main_ended(run.main_outcome, facts, out)
}
