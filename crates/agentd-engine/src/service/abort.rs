//! The end of what hangs or takes too long: which signal it gets first, and how long it has.
//!
//! A core dump may say why something hangs. So a missed watchdog sends WatchdogSignal, and so does a timeout where
//! `TimeoutStartFailureMode` or `TimeoutStopFailureMode` is abort, systemd.service(5).

use agentd_unit::sections::TimeoutMode;
use agentd_unit::{KillMode, Signal};

use super::end::settle;
use super::fall::{self, Phase, Until, say};
use super::{Facts, ServiceEvent as E, ServiceState as S, Who, expired};
use crate::effect::{KillTarget, Level};
use crate::out::Out;
use crate::state::ServiceResult as R;

/// It gives no sign of life any more.
pub(super) fn hung(facts: &mut Facts, out: &mut Out<'_>) -> S {
    fall::note_end(facts, out);
    say(facts, Level::Error, out, format_args!("Watchdog timeout!"));
    facts.worsen(R::Watchdog);
    let Some(main) = facts.run.as_ref().and_then(|run| run.main) else { return fall::signal(facts, out) };
    facts.kill(KillTarget::Process(main.id), signal(facts), out);
    S::StopWatchdog { until: patience(facts, out) }
}

/// A command of the start took too long: `TimeoutStartFailureMode`.
pub(super) fn start_timed_out(what: &str, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let mode = facts.section().map(|service| service.life.timeout_start_mode).unwrap_or_default();
    let doing = doing(mode);
    say(facts, Level::Warning, out, format_args!("{what} operation timed out. {doing}."));
    fall::note_end(facts, out);
    end_by(mode, Phase::Stop, facts, out)
}

/// A command of the stop took too long: `TimeoutStopFailureMode`.
pub(super) fn stop_timed_out(what: &str, phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let mode = stop_mode(facts);
    let doing = doing(mode);
    say(facts, Level::Warning, out, format_args!("{what} timed out. {doing}."));
    fall::note_end(facts, out);
    end_by(mode, phase, facts, out)
}

/// What was asked to end did not in time. It is aborted once, then killed.
pub(super) fn ignored(phase: Phase, asked: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let aborted = facts.run.as_ref().is_some_and(|run| run.aborted);
    let aborts = stop_mode(facts) == TimeoutMode::Abort && !aborted;
    let mode = if aborts { TimeoutMode::Abort } else { TimeoutMode::Kill };
    let (name, doing) = (asked.as_str(), doing(mode));
    say(facts, Level::Warning, out, format_args!("State '{name}' timed out. {doing}."));
    end_by(mode, phase, facts, out)
}

fn end_by(mode: TimeoutMode, phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    facts.worsen(R::Timeout);
    match mode {
        TimeoutMode::Terminate => fall::terminate(phase, facts, out),
        TimeoutMode::Abort => abort(phase, facts, out),
        TimeoutMode::Kill => fall::kill(phase, facts, out),
    }
}

/// Sends WatchdogSignal to whom KillMode says.
fn abort(phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let Some(run) = facts.run.as_mut().filter(|run| run.spawned) else { return settle(facts, out) };
    run.aborted = true;
    let asked = fall::who_is_asked(facts);
    if facts.kill_mode() == KillMode::Mixed && asked.is_empty() {
        return fall::kill(phase, facts, out);
    }
    for target in asked {
        facts.kill(target, signal(facts), out);
    }
    if facts.must_be_empty() {
        facts.await_empty(out);
    }
    let state = phase.watchdog(patience(facts, out));
    if facts.is_gone() { fall::gone(phase, facts, out) } else { state }
}

/// `StopWatchdog` and `FinalWatchdog`: once its process is gone, the rest is asked as in any stop.
pub(super) fn aborted(phase: Phase, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = phase.watchdog(until);
    match event {
        E::Gone { who: Who::Main, .. } => fall::terminate(phase, facts, out),
        E::Gone { who: Who::Control, .. } if facts.run.as_ref().is_none_or(|run| run.main.is_none()) => {
            fall::terminate(phase, facts, out)
        }
        E::Emptied if facts.is_gone() => fall::gone(phase, facts, out),
        E::Up(who) => {
            fall::signal_latecomer(who, signal(facts), facts, out);
            state
        }
        E::Stop => fall::asked(facts, |_| state),
        E::Force => fall::force(facts, out),
        E::Tick if expired(until, out) => {
            let name = state.as_str();
            say(facts, Level::Warning, out, format_args!("State '{name}' timed out. Killing."));
            fall::kill(phase, facts, out)
        }
        E::Start(_)
        | E::Reload
        | E::Gone { who: Who::Control, .. }
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

fn signal(facts: &Facts) -> Signal {
    facts.section().and_then(|service| service.life.watchdog_signal).unwrap_or(Signal::ABRT)
}

fn stop_mode(facts: &Facts) -> TimeoutMode {
    facts.section().map(|service| service.life.timeout_stop_mode).unwrap_or_default()
}

/// `TimeoutAbortSec`, or as long as any stop has.
fn patience(facts: &Facts, out: &Out<'_>) -> Until {
    let abort = facts.section().and_then(|service| service.life.timeout_abort);
    abort.map_or_else(|| fall::patience(facts, out), |abort| facts.until(abort, out))
}

const fn doing(mode: TimeoutMode) -> &'static str {
    match mode {
        TimeoutMode::Terminate => "Terminating",
        TimeoutMode::Abort => "Aborting",
        TimeoutMode::Kill => "Killing",
    }
}
