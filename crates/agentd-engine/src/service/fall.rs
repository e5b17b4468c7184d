//! The way down: stop commands, signals, the wait for the empty cgroup, and what follows an end.

use std::fmt;

use agentd_unit::{ExecKind, KillMode, Signal};

use super::end::settle;
use super::{Facts, ServiceEvent as E, ServiceState as S, Who, abort, expired};
use crate::clock::Monotonic;
use crate::effect::{Effect, KillTarget, Level};
use crate::out::Out;
use crate::state::ServiceResult as R;

pub(super) type Until = Option<Monotonic>;

/// Which of the two rounds of signals: before ExecStopPost or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Stop,
    Final,
}

impl Phase {
    pub(super) const fn watchdog(self, until: Until) -> S {
        match self {
            Self::Stop => S::StopWatchdog { until },
            Self::Final => S::FinalWatchdog { until },
        }
    }

    const fn sigterm(self, until: Until) -> S {
        match self {
            Self::Stop => S::StopSigterm { until },
            Self::Final => S::FinalSigterm { until },
        }
    }

    const fn sigkill(self, until: Until) -> S {
        match self {
            Self::Stop => S::StopSigkill { until },
            Self::Final => S::FinalSigkill { until },
        }
    }
}

/// Says something about the present run.
pub(super) fn say(facts: &Facts, level: Level, out: &mut Out<'_>, what: fmt::Arguments<'_>) {
    if let Some(run) = &facts.run {
        let name = &run.unit.name;
        out.log(level, name, Some(run.id), None, format!("{name}: {what}"));
    }
}

/// Goes down because somebody asked: no restart follows.
pub(super) fn asked(facts: &mut Facts, go: impl FnOnce(&mut Facts) -> S) -> S {
    if let Some(run) = &mut facts.run {
        run.stop_asked = true;
    }
    go(facts)
}

/// Goes down at once because something went wrong.
pub(super) fn fail(result: R, facts: &mut Facts, out: &mut Out<'_>) -> S {
    note_end(facts, out);
    facts.worsen(result);
    signal(facts, out)
}

/// Goes down from being up, the polite way: ExecStop first.
pub(super) fn enter_stop(result: R, facts: &mut Facts, out: &mut Out<'_>) -> S {
    note_end(facts, out);
    facts.worsen(result);
    stop_command(0, facts, out)
}

fn stop_command(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index < facts.commands(ExecKind::Stop) {
        facts.spawn(ExecKind::Stop, index, out);
        return S::Stop { index, until: patience(facts, out) };
    }
    signal(facts, out)
}

/// From when the restart delay counts, if the end of the main process does not say.
pub(super) fn note_end(facts: &mut Facts, out: &Out<'_>) {
    if let Some(run) = &mut facts.run {
        run.ended_at.get_or_insert(out.now.monotonic);
    }
}

pub(super) fn patience(facts: &Facts, out: &Out<'_>) -> Until {
    facts.until(facts.section().and_then(|service| service.timeout_stop), out)
}

/// It said that it stops by itself: no signal, but no endless patience either.
pub(super) fn announced(facts: &mut Facts, out: &mut Out<'_>) -> S {
    facts.await_empty(out);
    S::StopSigterm { until: patience(facts, out) }
}

/// Asks what KillMode says to ask.
pub(super) fn signal(facts: &mut Facts, out: &mut Out<'_>) -> S {
    terminate(Phase::Stop, facts, out)
}

pub(super) fn terminate(phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if facts.run.as_ref().is_none_or(|run| !run.spawned) {
        return settle(facts, out); // There is nobody to ask.
    }
    let asked = who_is_asked(facts);
    if facts.kill_mode() == KillMode::Mixed && asked.is_empty() {
        return kill(phase, facts, out);
    }
    let signal = stop_signal(facts);
    for target in asked {
        ask(target, signal, facts, out);
    }
    if facts.must_be_empty() {
        facts.await_empty(out);
    }
    let state = phase.sigterm(patience(facts, out));
    if facts.is_gone() { gone(phase, facts, out) } else { state }
}

/// KillSignal, and the SIGHUP after it for those that act on nothing else.
fn ask(target: KillTarget, signal: Signal, facts: &Facts, out: &mut Out<'_>) {
    facts.kill(target, signal, out);
    if signal != Signal::HUP && facts.section().is_some_and(|service| service.life.send_sighup) {
        facts.kill(target, Signal::HUP, out);
    }
}

/// Whom KillMode says to ask.
pub(super) fn who_is_asked(facts: &Facts) -> Vec<KillTarget> {
    let Some(run) = &facts.run else { return Vec::new() };
    match facts.kill_mode() {
        KillMode::ControlGroup => vec![KillTarget::All],
        KillMode::Mixed | KillMode::Process => {
            run.main.into_iter().chain(run.control).map(|process| KillTarget::Process(process.id)).collect()
        }
        KillMode::None => Vec::new(),
    }
}

/// KillSignal, or RestartKillSignal where the stop is the first half of a restart.
fn stop_signal(facts: &Facts) -> Signal {
    let Some(service) = facts.section() else { return Signal::TERM };
    let restarts = facts.run.as_ref().is_some_and(|run| run.for_restart);
    service.life.restart_kill_signal.filter(|_| restarts).unwrap_or(service.kill_signal)
}

/// Kills what KillMode says to kill.
pub(super) fn kill(phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let forced = facts.run.as_ref().is_some_and(|run| run.forced);
    if !forced && facts.section().is_some_and(|service| service.life.send_sigkill == Some(false)) {
        say(facts, Level::Warning, out, format_args!("Leaving what is left, as SendSIGKILL says."));
        return gone(phase, facts, out);
    }
    kill_now(facts, out);
    let state = phase.sigkill(patience(facts, out));
    if facts.is_gone() { gone(phase, facts, out) } else { state }
}

fn kill_now(facts: &mut Facts, out: &mut Out<'_>) {
    let Some(run) = &facts.run else { return };
    let service = facts.section().filter(|_| !run.forced);
    let signal = service.and_then(|service| service.life.final_kill_signal).unwrap_or(Signal::KILL);
    match facts.kill_mode() {
        _ if facts.must_be_empty() && signal != Signal::KILL => {
            facts.kill(KillTarget::All, signal, out);
            facts.await_empty(out);
        }
        _ if facts.must_be_empty() => {
            out.push(Effect::KillAll { run: run.id });
            facts.await_empty(out);
        }
        KillMode::ControlGroup | KillMode::Mixed | KillMode::Process | KillMode::None => {
            let main = run.main.filter(|_| facts.kill_mode() == KillMode::Process);
            for process in main.into_iter().chain(run.control) {
                facts.kill(KillTarget::Process(process.id), signal, out);
            }
        }
    }
}

/// Everything dies now, without stop commands, whatever KillMode says.
pub(super) fn force(facts: &mut Facts, out: &mut Out<'_>) -> S {
    let Some(run) = &mut facts.run else { return S::Dead };
    run.stop_asked = true;
    run.forced = true;
    if !run.spawned {
        return settle(facts, out);
    }
    let run = run.id;
    out.push(Effect::KillAll { run });
    facts.await_empty(out);
    if facts.is_gone() { settle(facts, out) } else { S::FinalSigkill { until: patience(facts, out) } }
}

pub(super) fn gone(phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match phase {
        Phase::Stop => stop_post_command(0, facts, out),
        Phase::Final => settle(facts, out),
    }
}

fn stop_post_command(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if index < facts.commands(ExecKind::StopPost) {
        if let Some(run) = &mut facts.run {
            run.aborted = false; // These were not.
        }
        facts.spawn(ExecKind::StopPost, index, out);
        return S::StopPost { index, until: patience(facts, out) };
    }
    if index == 0 { settle(facts, out) } else { terminate(Phase::Final, facts, out) }
}

/// `Stop`: the main process may end meanwhile; what it says counts.
pub(super) fn stop(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = S::Stop { index, until };
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => stop_command(index + 1, facts, out),
        E::Gone { who: Who::Control, outcome } => fail(outcome, facts, out),
        E::Gone { who: Who::Main, outcome } => {
            facts.worsen(outcome);
            state
        }
        E::Stop => asked(facts, |_| state),
        E::Force => force(facts, out),
        E::Oom => fail(R::OomKill, facts, out),
        E::Tick if expired(until, out) => abort::stop_timed_out("Stopping", Phase::Stop, facts, out),
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

/// `StopSigterm` and `FinalSigterm`: exits and the empty cgroup come in any order.
pub(super) fn sigterm(phase: Phase, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = phase.sigterm(until);
    match event {
        E::Gone { who, outcome } => {
            absorb(who, outcome, facts);
            after_exit(phase, state, facts, out)
        }
        E::Emptied => after_exit(phase, state, facts, out),
        E::Up(who) => {
            signal_latecomer(who, stop_signal(facts), facts, out);
            state
        }
        E::Stop => asked(facts, |_| state),
        E::Force => force(facts, out),
        E::Oom => {
            out_of_memory(facts);
            state
        }
        E::Tick if expired(until, out) => abort::ignored(phase, state, facts, out),
        E::Start(_)
        | E::Reload
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

fn after_exit(phase: Phase, state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if facts.is_gone() {
        return gone(phase, facts, out);
    }
    let processes = facts.run.as_ref().is_some_and(|run| run.main.is_some() || run.control.is_some());
    if !processes && facts.kill_mode() == KillMode::Mixed {
        return kill(phase, facts, out);
    }
    if !processes && facts.must_be_empty() {
        facts.await_empty(out); // It was empty before a late process came and went: ask again.
    }
    state
}

fn absorb(who: Who, outcome: R, facts: &mut Facts) {
    if who == Who::Main {
        facts.worsen(outcome);
    }
}

/// The end of a process by the OOM killer may be seen before the reason is.
fn out_of_memory(facts: &mut Facts) {
    if matches!(facts.result, R::Success | R::Signal) {
        facts.result = R::OomKill;
    }
}

/// A command whose execution was under way when the signal was sent.
pub(super) fn signal_latecomer(who: Who, signal: Signal, facts: &Facts, out: &mut Out<'_>) {
    let Some(run) = &facts.run else { return };
    let process = if who == Who::Main { run.main } else { run.control };
    if let Some(process) = process.filter(|_| facts.kill_mode() != KillMode::None) {
        facts.kill(KillTarget::Process(process.id), signal, out);
    }
}

/// `StopSigkill` and `FinalSigkill`: the kernel ends it in its own time.
pub(super) fn sigkill(phase: Phase, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = phase.sigkill(until);
    match event {
        E::Gone { who, outcome } => {
            absorb(who, outcome, facts);
            after_kill(phase, state, facts, out)
        }
        E::Emptied => after_kill(phase, state, facts, out),
        E::Up(_) => {
            kill_now(facts, out);
            state
        }
        E::Stop => asked(facts, |_| state),
        E::Force => force(facts, out),
        E::Oom => {
            out_of_memory(facts);
            state
        }
        E::Tick if expired(until, out) => still_around(phase, facts, out),
        E::Start(_)
        | E::Reload
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::ReloadRefused
        | E::Stopping
        | E::Hung
        | E::Tick => state,
    }
}

/// SIGKILL did not end it in time. Who waits is told, and the question is asked anew as long as it lasts: an answer may
/// have been lost.
fn still_around(phase: Phase, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let Some(run) = &mut facts.run else { return S::Dead };
    if run.emptied {
        // No process is left, so those that we know of have ended and nobody said how.
        (run.main, run.control) = (None, None);
        facts.worsen(R::Resources);
        say(facts, Level::Error, out, format_args!("The end of its processes was never told."));
        return gone(phase, facts, out);
    }
    run.awaiting = None;
    run.unkillable = true;
    if !std::mem::replace(&mut run.said_unkillable, true) {
        let id = run.id;
        say(facts, Level::Error, out, format_args!("Processes still around after SIGKILL."));
        out.push(Effect::NameSurvivors { run: id });
    }
    kill_now(facts, out);
    facts.await_empty(out);
    phase.sigkill(patience(facts, out))
}

fn after_kill(phase: Phase, state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if facts.is_gone() {
        return gone(phase, facts, out);
    }
    if facts.must_be_empty() {
        facts.await_empty(out);
    }
    state
}

/// `StopPost`.
pub(super) fn stop_post(index: usize, until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = S::StopPost { index, until };
    match event {
        E::Gone { who: Who::Control, outcome: R::Success } => stop_post_command(index + 1, facts, out),
        E::Gone { who: Who::Control, outcome } => {
            facts.worsen(outcome);
            terminate(Phase::Final, facts, out)
        }
        E::Stop => asked(facts, |_| state),
        E::Force => force(facts, out),
        E::Oom => {
            out_of_memory(facts);
            terminate(Phase::Final, facts, out)
        }
        E::Tick if expired(until, out) => {
            abort::stop_timed_out("State 'stop-post'", Phase::Final, facts, out)
        }
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
        | E::Tick => state,
    }
}
