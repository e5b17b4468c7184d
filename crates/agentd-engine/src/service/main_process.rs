//! Which process of a service is the main one, where the manager did not execute it as such: `Type=forking`, and what
//! the service says itself (`MAINPID=`).
//!
//! The engine asks, the shell looks: into the PID file, for the one process whose parent is the manager, at the one that
//! was named. What is found must live in the run, else it is not found.

use agentd_unit::{ExecKind, ServiceType};

use super::facts::Process;
use super::{Facts, ServiceEvent, ServiceState as S, fall, rise};
use crate::clock::Monotonic;
use crate::effect::{Effect, Level, MainSource};
use crate::event::{ClaimedMain, MainProcess};
use crate::ids::EffectId;
use crate::out::Out;
use crate::state::ServiceResult as R;
use crate::view::ExecStatusView;

/// Where the search for the main process of one run stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Search {
    /// The question that is not answered yet.
    asked: Option<EffectId>,
    /// It was found once.
    found: bool,
    /// The question whether what the service said is so.
    claimed: Option<EffectId>,
}

impl S {
    /// Whether the service may say in this state which process is its main one.
    const fn may_name_main(self) -> bool {
        matches!(
            self,
            S::Start { .. }
                | S::StartPost { .. }
                | S::Running { .. }
                | S::ReloadSignal { .. }
                | S::Reload { .. }
                | S::Stop { .. }
                | S::StopSigterm { .. }
        )
    }
}

impl Facts {
    pub(crate) fn is_forking(&self) -> bool {
        self.service_type() == ServiceType::Forking
    }

    fn has_pid_file(&self) -> bool {
        self.section().is_some_and(|service| service.life.pid_file.is_some())
    }

    /// The command has left its daemon behind, and which process that is is not known.
    fn lacks_main(&self) -> bool {
        let lacks = |run: &super::Run| run.main.is_none() && run.control.is_none() && !run.search.found;
        self.is_forking() && self.run.as_deref().is_some_and(lacks)
    }

    /// The question which process it is has no answer yet.
    fn is_looked_for(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.search.asked.is_some())
    }

    /// It runs without a main process that we know: it is up as long as any of its processes is.
    pub(crate) fn is_headless(&self) -> bool {
        let by_group = self.ends_with_cgroup();
        let outlived =
            |run: &super::Run| (run.taken_over || by_group) && run.main.is_none() && run.control.is_none();
        self.run.as_deref().is_some_and(outlived) || (self.lacks_main() && !self.has_pid_file())
    }

    /// Asks which process is the main one; false if there is nobody to ask.
    fn find_main(&mut self, out: &mut Out<'_>) -> bool {
        let Some(service) = self.section() else { return false };
        let by = match (&service.life.pid_file, service.life.guess_main_pid) {
            (Some(_), _) => MainSource::PidFile,
            (None, Some(false)) => return false,
            (None, None | Some(true)) => MainSource::Guess,
        };
        let Some(run) = &mut self.run else { return false };
        let id = out.ids.effect();
        run.search.asked = Some(id);
        out.push(Effect::FindMain { id, run: run.id, by });
        true
    }

    /// Its main process has ended, or it has read its configuration again: a daemon that replaces itself has written the
    /// new one into its PID file by now. True if that is looked at.
    pub(super) fn find_successor(&mut self, out: &mut Out<'_>) -> bool {
        let asks =
            self.is_forking() && self.has_pid_file() && self.run.as_ref().is_some_and(|r| r.search.found);
        asks && self.find_main(out)
    }

    /// The service says which process is its main one. That is looked at, unless it is known.
    pub(crate) fn claim_main(&mut self, state: S, claim: ClaimedMain, out: &mut Out<'_>) {
        let Some(run) = &mut self.run else { return };
        let is_known = run.main.is_some_and(|main| main.pid.is_none_or(|pid| pid == claim.pid));
        if is_known || !state.may_name_main() {
            return;
        }
        let id = out.ids.effect();
        run.search.claimed = Some(id);
        out.push(Effect::FindMain { id, run: run.id, by: MainSource::Said(claim) });
    }

    /// What the service said is so, or is not: nothing but the main process changes by it.
    fn claim_answered(
        &mut self,
        result: Result<MainProcess, String>,
        out: &mut Out<'_>,
    ) -> Option<ServiceEvent> {
        let run = self.run.as_ref()?;
        match result {
            Ok(main) if run.control.is_some_and(|control| control.id == main.process) => {
                fall::say(
                    self,
                    Level::Debug,
                    out,
                    format_args!("Its control process cannot be its main process."),
                );
                None
            }
            Ok(main) if run.main.is_none_or(|known| known.id != main.process) => {
                self.set_main(main, Level::Debug, out);
                Some(ServiceEvent::Up(super::Who::Main)).filter(|_| self.is_forking())
            }
            Ok(_) => None,
            Err(reason) => {
                fall::say(self, Level::Debug, out, format_args!("Its main process stays: {reason}"));
                None
            }
        }
    }

    fn set_main(&mut self, main: MainProcess, level: Level, out: &mut Out<'_>) {
        let Some(run) = &mut self.run else { return };
        let index = run.main.map_or(0, |before| before.index);
        run.search.found = true;
        run.emptied = false;
        run.main = Some(Process { id: main.process, pid: Some(main.pid), kind: ExecKind::Start, index });
        self.failure = None;
        let (pid, start) = (main.pid, out.now.realtime);
        self.exec_main = Some(ExecStatusView { pid, start, exit: None, status: None });
        fall::say(self, level, out, format_args!("Main process is {pid}."));
    }

    /// The answer to a search: what the state machine must hear of it.
    pub(crate) fn main_found(
        &mut self,
        id: EffectId,
        result: Result<MainProcess, String>,
        out: &mut Out<'_>,
    ) -> Option<ServiceEvent> {
        let run = self.run.as_mut()?;
        if run.search.claimed.take_if(|claimed| *claimed == id).is_some() {
            return self.claim_answered(result, out);
        }
        run.search.asked.take_if(|asked| *asked == id)?;
        let main = match result {
            Ok(main) => main,
            Err(reason) => {
                if run.main.is_none() {
                    fall::say(self, Level::Debug, out, format_args!("No main process: {reason}"));
                    self.failure = Some(reason).filter(|_| self.lacks_main() && self.has_pid_file());
                }
                return Some(ServiceEvent::NoMain);
            }
        };
        let known = [run.main, run.control].into_iter().flatten();
        if known.into_iter().any(|known| known.id == main.process) {
            return None;
        }
        self.set_main(main, Level::Info, out);
        Some(ServiceEvent::Up(super::Who::Main))
    }
}

/// The command of a forking service has ended well: it is up once its main process is known, or cannot be told.
pub(super) fn forked(index: usize, until: Option<Monotonic>, facts: &mut Facts, out: &mut Out<'_>) -> S {
    if facts.lacks_main() && facts.find_main(out) {
        return S::Start { index, until };
    }
    rise::enter_start_post(0, until, facts, out)
}

/// After ExecStartPost, which may be what writes the PID file. None: nothing is to be waited for.
pub(super) fn search_after_post(
    index: usize,
    until: Option<Monotonic>,
    facts: &mut Facts,
    out: &mut Out<'_>,
) -> Option<S> {
    (index > 0 && facts.lacks_main() && facts.find_main(out)).then_some(S::StartPost { index, until })
}

/// In `Start` and `StartPost`, while no command runs: what the search brings. None: the event says nothing about it.
pub(super) fn searching(state: S, event: &ServiceEvent, facts: &mut Facts, out: &mut Out<'_>) -> Option<S> {
    use ServiceEvent as E;
    let control = facts.run.as_ref().is_some_and(|run| run.control.is_some());
    if !facts.is_forking() || control {
        return None;
    }
    match event {
        E::Up(super::Who::Main) => Some(go_on(state, facts, out)),
        E::NoMain if !facts.lacks_main() => None,
        E::NoMain if !facts.has_pid_file() || may_come_later(state, facts) => Some(go_on(state, facts, out)),
        E::NoMain if facts.run.as_ref().is_some_and(|run| run.emptied) => Some(never_wrote(facts, out)),
        E::NoMain => {
            facts.await_empty(out); // A daemon that is gone writes nothing any more.
            Some(state)
        }
        E::PidFile if facts.lacks_main() && facts.has_pid_file() => {
            facts.find_main(out);
            Some(state)
        }
        // Where it is being looked for, the answer may be one that has ended since, and how.
        E::Emptied if facts.lacks_main() && facts.is_looked_for() => Some(state),
        E::Emptied if facts.lacks_main() => Some(never_wrote(facts, out)),
        _ => None,
    }
}

/// An ExecStartPost may be what writes the PID file.
fn may_come_later(state: S, facts: &Facts) -> bool {
    matches!(state, S::Start { .. }) && facts.commands(ExecKind::StartPost) > 0
}

fn go_on(state: S, facts: &mut Facts, out: &mut Out<'_>) -> S {
    match state {
        S::Start { until, .. } => rise::enter_start_post(0, until, facts, out),
        _ => rise::began(facts, out),
    }
}

fn never_wrote(facts: &mut Facts, out: &mut Out<'_>) -> S {
    fall::say(facts, Level::Warning, out, format_args!("Daemon never wrote its PID file. Failing."));
    fall::fail(R::Protocol, facts, out)
}
