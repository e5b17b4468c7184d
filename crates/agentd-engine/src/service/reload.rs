//! Reading the configuration again: by commands, by a signal, or because the service says that it does.

use agentd_unit::{ExecKind, ServiceType, Signal};

use super::{Facts, ServiceEvent as E, ServiceState as S, Who, abort, expired, fall, rise};
use crate::clock::Monotonic;
use crate::effect::{Effect, KillTarget, Level};
use crate::ids::EffectId;
use crate::out::Out;
use crate::state::ServiceResult as R;

type Until = Option<Monotonic>;

/// Where the reload of one run stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reloading {
    /// When it was asked for.
    began: Monotonic,
    /// The request for the signal that is not answered yet.
    pub(crate) asked: Option<EffectId>,
    /// The service said that it reloads, and has not said since that it is ready.
    said: bool,
}

impl Facts {
    /// Keeps what the service says of its reload, in whatever state it is.
    pub(crate) fn note_reload(&mut self, reloading: bool, ready: bool) {
        if let Some(run) = &mut self.run {
            run.reload.said = reloading || (run.reload.said && !ready);
        }
    }

    fn reloads_by_signal(&self) -> bool {
        self.service_type() == ServiceType::NotifyReload
    }

    fn reload_patience(&self, out: &Out<'_>) -> Until {
        self.until(self.section().and_then(|service| service.timeout_start), out)
    }
}

/// Somebody asks for it: ExecReload first, then ReloadSignal where the type has one.
pub(super) fn begin(state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if let Some(run) = &mut facts.run {
        run.reload_failed = false;
        run.reload.began = out.now.monotonic;
        run.reload.said = false;
    }
    if facts.commands(ExecKind::Reload) > 0 {
        return run_command(0, facts, out);
    }
    let nobody = facts.run.as_ref().is_none_or(|run| run.main.is_none());
    match facts.reloads_by_signal() {
        false => state,
        true if nobody => S::ReloadSignal { until: Some(out.now.monotonic) }, // It fails at once.
        true => send_signal(facts, out),
    }
}

/// The service says of itself that it reloads.
pub(super) fn announced(facts: &mut Facts, out: &mut Out<'_>) -> S {
    S::Reload { index: None, until: facts.reload_patience(out) }
}

fn run_command(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> S {
    facts.spawn(ExecKind::Reload, index, out);
    S::Reload { index: Some(index), until: facts.reload_patience(out) }
}

fn send_signal(facts: &mut Facts, out: &mut Out<'_>) -> S {
    let signal = facts.section().and_then(|service| service.life.reload_signal).unwrap_or(Signal::HUP);
    let until = facts.reload_patience(out);
    let Some(run) = &mut facts.run else { return S::Dead };
    let Some(main) = run.main else { return done(true, facts, out) };
    let id = out.ids.effect();
    run.reload.asked = Some(id);
    out.push(Effect::AskReload { id, run: run.id, process: main.id, signal });
    S::ReloadSignal { until }
}

/// The last command has ended.
fn commands_done(failed: bool, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let said = facts.run.as_ref().is_some_and(|run| run.reload.said);
    if !failed && facts.reloads_by_signal() {
        return send_signal(facts, out);
    }
    if !failed && said {
        return announced(facts, out); // What it was asked for is not done before it says so.
    }
    done(failed, facts, out)
}

fn done(failed: bool, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if let Some(run) = &mut facts.run {
        run.reload_failed |= failed;
        run.reload.asked = None;
    }
    let runtime_max = facts.runtime_max();
    let up_since = facts.run.as_ref().and_then(|run| run.up_since);
    let until = runtime_max.zip(up_since).map(|(span, since)| since + span);
    if facts.run.as_ref().is_some_and(|run| run.main.is_some()) {
        facts.find_successor(out);
    }
    rise::enter_running(until, facts, out)
}

/// `ReloadSignal`: only what it says of a reload that began after the signal counts.
pub(super) fn signalled(until: Until, event: E, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let state = S::ReloadSignal { until };
    let began = facts.run.as_ref().map(|run| run.reload.began);
    match event {
        E::Reloading(at) if at.is_some() && at >= began => S::Reload { index: None, until },
        E::ReloadRefused | E::Gone { who: Who::Main, .. } => done(true, facts, out),
        E::Stop => fall::asked(facts, |facts| fall::signal(facts, out)),
        E::Force => fall::force(facts, out),
        E::Oom => fall::fail(R::OomKill, facts, out),
        E::Stopping => fall::announced(facts, out),
        E::Hung => abort::hung(facts, out),
        E::Tick if facts.run.as_ref().is_none_or(|run| run.main.is_none()) => done(true, facts, out),
        E::Tick if expired(until, out) => timed_out(None, facts, out),
        E::Tick if facts.is_hung(out) => abort::hung(facts, out),
        E::Start(_)
        | E::Reload
        | E::Up(_)
        | E::Gone { .. }
        | E::NoMain
        | E::PidFile
        | E::Quiet
        | E::Emptied
        | E::Cleared
        | E::Ready
        | E::Reloading(_)
        | E::Tick => state,
    }
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
            run_command(index + 1, facts, out)
        }
        (E::Gone { who: Who::Control, outcome }, Some(_)) => commands_done(outcome != R::Success, facts, out),
        (E::Gone { who: Who::Main, .. } | E::Ready, None) => done(false, facts, out),
        (E::Stop, _) => fall::asked(facts, |facts| fall::signal(facts, out)),
        (E::Force, _) => fall::force(facts, out),
        (E::Oom, _) => fall::fail(R::OomKill, facts, out),
        (E::Stopping, None) => fall::announced(facts, out),
        (E::Hung, _) => abort::hung(facts, out),
        (E::Tick, _) if expired(until, out) => timed_out(index, facts, out),
        (E::Tick, _) if facts.is_hung(out) => abort::hung(facts, out),
        (
            E::Start(_)
            | E::Reload
            | E::Up(_)
            | E::Gone { .. }
            | E::NoMain
            | E::PidFile
            | E::Quiet
            | E::Emptied
            | E::Cleared
            | E::Ready
            | E::Reloading(_)
            | E::ReloadRefused
            | E::Stopping
            | E::Tick,
            _,
        ) => state,
    }
}

fn timed_out(index: Option<usize>, facts: &mut Facts, out: &mut Out<'_>) -> S {
    let what = if index.is_some() { " Killing reload process." } else { "" };
    fall::say(facts, Level::Warning, out, format_args!("Reload operation timed out.{what}"));
    let Some(run) = &mut facts.run else { return S::Dead };
    if run.reload_failed {
        run.control = None; // It was killed already: of its end we never heard.
    }
    let control = run.control.filter(|_| index.is_some());
    let Some(control) = control else { return done(true, facts, out) };
    facts.kill(KillTarget::Process(control.id), Signal::KILL, out);
    if let Some(run) = &mut facts.run {
        run.reload_failed = true;
    }
    // No further command of the list: SIGKILL is not a clean end, so the list stops there.
    S::Reload { index, until: facts.until(facts.section().and_then(|service| service.timeout_stop), out) }
}
