//! The planted faults: each is one change of the engine's code that somebody could make by mistake.

use crate::error::{Error, Result};

/// One fault.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// Its name, as docs/simulation.md has it.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) what: &'static str,
    /// The file, below the engine's `src`.
    pub(crate) file: &'static str,
    /// A text that stands there once,
    pub(crate) sound: &'static str,
    /// and what stands in its place.
    pub(crate) faulty: &'static str,
}

impl Mutant {
    /// The text of the file with the fault in it.
    ///
    /// # Errors
    /// What it replaces is not there, or not once: the engine has changed, and the mutant must follow.
    pub(crate) fn plant(&self, text: &str) -> Result<String> {
        match text.matches(self.sound).count() {
            1 => Ok(text.replacen(self.sound, self.faulty, 1)),
            count => Err(Error::new(format!("its text stands {count} times in {}", self.file))),
        }
    }
}

const fn mutant(
    name: &'static str,
    what: &'static str,
    file: &'static str,
    sound: &'static str,
    faulty: &'static str,
) -> Mutant {
    Mutant { name, what, file, sound, faulty }
}

/// All of them.
pub(crate) const PLANTED: &[Mutant] = &[
    mutant(
        "lives-overlap",
        "a new life does not wait until what KillMode left of the last one is dead",
        "service/rise.rs",
        "let Some(leftover) = facts.leftover else",
        "let Some(leftover) = facts.leftover.filter(|_| false) else",
    ),
    mutant(
        "stop-is-not-asked",
        "a stop that somebody asked for is followed by a restart",
        "service/fall.rs",
        "    if let Some(run) = &mut facts.run {\n        run.stop_asked = true;",
        "    if let Some(run) = &mut facts.run {\n        run.stop_asked = false;",
    ),
    mutant(
        "start-without-deadline",
        "TimeoutStartSec is not looked at",
        "service/rise.rs",
        "let until = until.unwrap_or_else(|| facts.until(timeout, out));",
        "let _ = timeout;\n    let until = until.unwrap_or(None);",
    ),
    mutant(
        "sigterm-without-deadline",
        "who ignores SIGTERM is waited for without end",
        "service/fall.rs",
        "let state = phase.sigterm(patience(facts, out));",
        "let state = phase.sigterm(None);",
    ),
    mutant(
        "reload-without-deadline",
        "a killed ExecReload is waited for without end",
        "service/reload.rs",
        "S::Reload { index, until: facts.until(facts.section().and_then(|service| service.timeout_stop), out) }",
        "S::Reload { index, until: None }",
    ),
    mutant(
        "empty-cgroup-is-enough",
        "a stop ends with the empty cgroup, before the end of the main process is known",
        "service/facts.rs",
        "&& (run.main.is_none() || !main_counts)",
        "&& (run.main.is_none() || !main_counts || run.emptied)",
    ),
    mutant(
        "main-exit-is-enough",
        "a stop ends with the main process, while helpers live",
        "service/facts.rs",
        "&& (run.emptied || !run.spawned || !self.must_be_empty())",
        "&& (run.emptied || run.main.is_none() || !run.spawned || !self.must_be_empty())",
    ),
    mutant(
        "released-alive",
        "a run is released while KillMode lets its processes live",
        "service/end.rs",
        "match run.awaiting.filter(|_| !run.emptied) {",
        "match run.awaiting.filter(|_| run.emptied) {",
    ),
    mutant(
        "start-order",
        "a start does not wait for what it comes after",
        "queue.rs",
        "(after && !kind.takes_down())",
        "(after && kind == JobType::Reload)",
    ),
    mutant(
        "stop-order",
        "a stop does not wait for what comes after the unit",
        "queue.rs",
        "|| (before && other_kind.takes_down())",
        "|| (before && other_kind.takes_down() && !kind.takes_down())",
    ),
    mutant(
        "conflict-at-once",
        "a start does not wait until what it conflicts with is down",
        "queue.rs",
        "|| (relation.any(Relation::AGAINST) && kind == JobType::Start && other_kind == JobType::Stop)",
        "",
    ),
    mutant(
        "cycle-kept",
        "an order that is to give way in a cycle does not",
        "queue.rs",
        "if self.graph.give_up(*later, *earlier) {",
        "if false {",
    ),
    mutant(
        "given-up-and-forgotten",
        "jobs that waited for an order that gave way are not looked at again",
        "queue.rs",
        "            self.queue.extend(jobs.into_iter().flatten());",
        "            drop(jobs);",
    ),
    mutant(
        "waiters-sleep",
        "who waited for a job is not looked at again when it is done",
        "queue.rs",
        "        self.queue.extend(&job.waiters);",
        "",
    ),
    mutant(
        "cancel-without-answer",
        "who waited for a job that was canceled hears nothing",
        "queue.rs",
        "for (request, unit) in &job.requests {",
        "for (request, unit) in job.requests.iter().filter(|_| result != JobResult::Canceled) {",
    ),
    mutant(
        "dependents-start",
        "what requires a unit that did not come up is started",
        "queue.rs",
        "JobType::Start | JobType::VerifyActive => self.fail_dependents(unit, Relation::NEEDED_BY, out),",
        "JobType::Start | JobType::VerifyActive => {}",
    ),
    mutant(
        "nobody-returns",
        "a unit that failed only for another does not return with it",
        "queue.rs",
        "entry.returns_with.insert(cause);",
        "let _ = cause;",
    ),
    mutant(
        "bound-stay",
        "what is bound to a unit stays up when that dies",
        "propagate.rs",
        "if !is_up(new) && !coming && !is_at_rest(old) && !",
        "if !is_up(new) && !coming && is_at_rest(old) && !",
    ),
    mutant(
        "put-off-for-ever",
        "a restart that another job stands in the way of is not tried again",
        "propagate.rs",
        "self.put_off.insert(unit);",
        "",
    ),
    mutant(
        "upheld-no-more",
        "an upheld unit is not brought back",
        "propagate.rs",
        "entry.uphold_at = Some(at);",
        "entry.uphold_at = Some(at).filter(|_| false);",
    ),
    mutant(
        "restart-at-once",
        "a restart does not wait for its delay",
        "service/end.rs",
        "let at = ended + delay;",
        "let at = now;",
    ),
    mutant(
        "restart-without-limit",
        "restarts are not counted",
        "service/end.rs",
        "if !spent && facts.restarts.admit(&run.unit.unit, at.max(now)) {",
        "if !spent && (facts.restarts.admit(&run.unit.unit, at.max(now)) || !delay.is_zero()) {",
    ),
    mutant(
        "on-failure-missed",
        "OnFailure does not run at the end",
        "hooks.rs",
        "ActiveState::Failed if old != new => (",
        "ActiveState::Failed if old == new => (",
    ),
    mutant(
        "started-in-shutdown",
        "the manager starts units while everything stops",
        "propagate.rs",
        "        if self.shutdown.is_some() {\n            return false;\n        }",
        "",
    ),
    mutant(
        "alarm-not-set",
        "a service that goes from one state to another is not woken when its patience ends",
        "manager.rs",
        "self.note_change(id, before, after, out);\n        self.set_alarm(id);",
        "self.note_change(id, before, after, out);",
    ),
    mutant(
        "condition-without-answer",
        "a lost answer about conditions is not asked for again",
        "checks.rs",
        "let at = job.until.into_iter().chain(job.running_until).chain(asked).min();",
        "let at = job.until.filter(|_| asked.is_none());",
    ),
    mutant(
        "gone-and-waited-for",
        "the PID file of a daemon that is gone is waited for until the start is over",
        "service/main_process.rs",
        "E::Emptied if facts.lacks_main() => Some(never_wrote(facts, out)),",
        "E::Emptied if facts.lacks_main() => None,",
    ),
    mutant(
        "headless-for-ever",
        "a daemon whose main process nobody knows stays up when nothing of it is left",
        "service/rise.rs",
        "E::Emptied if matches!(state, S::Running { .. }) && facts.is_headless() =>",
        "E::Emptied if matches!(state, S::Dead) && facts.is_headless() =>",
    ),
    mutant(
        "successor-for-ever",
        "a daemon whose main process has died without a successor stays up",
        "service/rise.rs",
        "E::NoMain if matches!(state, S::Running { .. }) =>",
        "E::NoMain if matches!(state, S::Dead) =>",
    ),
    mutant(
        "idle-for-ever",
        "who waits until no other job runs is not told when that is so",
        "manager.rs",
        "quiet.then_some(first)",
        "quiet.then_some(first).filter(|_| false)",
    ),
    mutant(
        "idle-beside-jobs",
        "Type=idle does not wait for the jobs of others",
        "manager.rs",
        "|job| busy(job) && !self.idle",
        "|job| busy(job) && job.id.0 == 0 && !self.idle",
    ),
    mutant(
        "signal-without-deadline",
        "who does not answer to ReloadSignal is waited for without end",
        "service/reload.rs",
        "signal });\n    S::ReloadSignal { until }",
        "signal });\n    S::ReloadSignal { until: None }",
    ),
    mutant(
        "bound-hear-of-it",
        "what is bound to a service goes down although that restarts directly",
        "propagate.rs",
        "&& !is_at_rest(old) && !self.restarts_directly(unit) {",
        "&& !is_at_rest(old) {",
    ),
    mutant(
        "start-fails-at-first",
        "the start of a service that restarts directly fails with its first life",
        "propagate.rs",
        "if restarting && self.restarts_directly(unit) => {",
        "if restarting && self.restarts_directly(unit) && id.0 == 0 => {",
    ),
    mutant(
        "job-waits-for-ever",
        "JobTimeoutSec is not looked at",
        "job.rs",
        "if is_over(self.until) {",
        "if is_over(self.until) && self.id.0 == 0 {",
    ),
    mutant(
        "job-runs-for-ever",
        "JobRunningTimeoutSec is not looked at",
        "start.rs",
        "job.running_until.get_or_insert(out.now.monotonic + span);",
        "job.running_until = job.running_until.filter(|_| span.is_zero());",
    ),
    mutant(
        "given-up-without-action",
        "a job is given up and JobTimeoutAction does not follow",
        "checks.rs",
        "self.finish(id, JobResult::Timeout, out);\n                self.end_of_job(unit, out);",
        "self.finish(id, JobResult::Timeout, out);",
    ),
    mutant(
        "failed-without-action",
        "a unit fails and FailureAction does not follow",
        "actions.rs",
        "ending(\"FailureAction\", system.failure_action, system.failure_exit_status)",
        "ending(\"FailureAction\", Action::None, system.failure_exit_status)",
    ),
    mutant(
        "ended-without-action",
        "a unit ends well and SuccessAction does not follow",
        "actions.rs",
        "ActiveState::Inactive if !was_at_rest && is_success => {",
        "ActiveState::Inactive if was_at_rest && is_success => {",
    ),
    mutant(
        "limit-without-action",
        "a unit was started too often and StartLimitAction does not follow",
        "actions.rs",
        "ActiveState::Failed if entry.is_given_up() && system",
        "ActiveState::Failed if !entry.is_given_up() && system",
    ),
    mutant(
        "isolates-anybody",
        "units are isolated that AllowIsolate does not allow it",
        "transaction.rs",
        "if newest.load == LoadState::Loaded && !newest.unit.system.allow_isolate {",
        "if newest.load != LoadState::Loaded && !newest.unit.system.allow_isolate {",
    ),
    mutant(
        "isolate-stops-all",
        "an isolate stops what IgnoreOnIsolate keeps out of it",
        "transaction.rs",
        "entry.unit.unit.system.ignore_on_isolate.unwrap_or(is_slice)",
        "is_slice",
    ),
    mutant(
        "irreversible-gives-way",
        "another transaction takes the place of an irreversible job",
        "queue.rs",
        "let stays = job.is_some_and(|job| job.irreversible);",
        "let stays = job.is_some_and(|job| job.irreversible && job.id.0 == 0);",
    ),
    mutant(
        "socket-not-armed-again",
        "a socket whose service has ended does not listen again",
        "socket.rs",
        "SocketEvent::Target(target) if target.idle => facts.listen(out),",
        "SocketEvent::Target(target) if target.idle => SocketState::Listening { again: None },",
    ),
    mutant(
        "trigger-limit-ignored",
        "the trigger limit of a socket is not looked at",
        "socket.rs",
        "if !facts.triggers.admit(section.trigger_limit_interval, burst, now) {",
        "if !facts.triggers.admit(section.trigger_limit_interval, burst, now) && false {",
    ),
    mutant(
        "socket-paused-for-ever",
        "a socket that waits a while is not woken when that is over",
        "socket.rs",
        "            Self::Listening { again } => again,\n",
        "            Self::Listening { .. } => None,\n",
    ),
    mutant(
        "end-of-job-unheard",
        "a socket does not hear that the start of its service came to nothing",
        "propagate.rs",
        "        self.schedule_uphold(unit, out);\n        self.triggers_follow(unit, out);\n        self.connection_follows(unit, out);\n",
        "        self.schedule_uphold(unit, out);\n        self.connection_follows(unit, out);\n",
    ),
    mutant(
        "connection-kept",
        "the connection of an instance that has ended is not closed",
        "connections.rs",
        "        out.push(Effect::Hangup { connection });\n    }\n\n    /// Forgets",
        "        let _ = (connection, out);\n    }\n\n    /// Forgets",
    ),
    mutant(
        "abort-without-deadline",
        "who ignores WatchdogSignal after a timeout is waited for without end",
        "service/abort.rs",
        "let state = phase.watchdog(patience(facts, out));",
        "let state = phase.watchdog(None);",
    ),
    mutant(
        "failure-mode-ignored",
        "TimeoutStartFailureMode is not looked at",
        "service/abort.rs",
        "let mode = facts.section().map(|service| service.life.timeout_start_mode).unwrap_or_default();",
        "let mode = TimeoutMode::Terminate;",
    ),
    mutant(
        "main-exit-ends-all",
        "ExitType=cgroup is not looked at",
        "service/rise.rs",
        "        E::Gone { who: Who::Main, .. } if facts.ends_with_cgroup() => lives_on(state, facts, out),\n",
        "",
    ),
    mutant(
        "outlived-for-ever",
        "a service that has outlived its main process stays up when nothing is left",
        "service/rise.rs",
        "    facts.await_empty(out);\n    let empty = facts.run",
        "    let empty = facts.run",
    ),
    mutant(
        "row-without-end",
        "MaxRestarts is not looked at",
        "service/end.rs",
        "let spent = facts.restarts.are_spent(rules);",
        "let spent = false;",
    ),
    mutant(
        "each-life-is-stable",
        "RestartResetSec and MinReadySec are not looked at: each life begins a new row",
        "restart.rs",
        "rules.reset_after().is_some_and(|reset| up >= reset)",
        "rules.reset_after().is_some_and(|reset| up <= reset)",
    ),
    mutant(
        "delay-does-not-grow",
        "RestartFactor is not looked at",
        "restart.rs",
        "Some(factor) => by_factor(self.service, factor, step),",
        "Some(factor) => by_factor(self.service, factor, step / 1000),",
    ),
    mutant(
        "slice-not-needed",
        "what lies in a slice does not require it",
        "definitions.rs",
        "self.list.push((id, slice, R::REQUIRES));",
        "self.list.push((id, slice, R::WANTS));",
    ),
    mutant(
        "failure-kept",
        "a failure that is to be forgotten is kept",
        "collect.rs",
        "let failed = std::mem::take(&mut self.failed);",
        "let failed: BTreeSet<UnitId> = self.failed.clone().into_iter().skip(1).collect();",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::run::root;

    #[test]
    fn each_planted_fault_still_fits_the_engine() {
        for mutant in PLANTED {
            let path = root().join("crates/agentd-engine/src").join(mutant.file);
            let text = fs::read_to_string(&path).unwrap();
            let faulty = mutant.plant(&text).unwrap_or_else(|error| panic!("{}: {error}", mutant.name));
            assert_ne!(faulty, text, "{}", mutant.name);
        }
    }

    #[test]
    fn the_documentation_lists_exactly_the_planted_faults() {
        let text = fs::read_to_string(root().join("docs/simulation.md")).unwrap();
        let listed: BTreeSet<(&str, &str)> = text
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "))
            .collect();
        let planted: BTreeSet<(&str, &str)> =
            PLANTED.iter().map(|mutant| (mutant.name, mutant.what)).collect();
        assert_eq!(listed, planted);
    }
}
