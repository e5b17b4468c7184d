//! Conditions and asserts, and what else a job waits for besides other jobs: asked of the shell when its turn has come.

use std::sync::Arc;
use std::time::Duration;

use crate::effect::{Effect, JobResult, Level};
use crate::event::Checked;
use crate::graph::UnitId;
use crate::ids::{EffectId, JobId};
use crate::job::Check;
use crate::manager::Manager;
use crate::out::Out;

/// How long the answer may take; then it is asked for again.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the conditions of a unit said when it was last to be started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    pub(crate) condition: bool,
    pub(crate) assertion: bool,
    /// What did not hold.
    pub(crate) unmet: Option<String>,
}

impl Manager {
    /// Whether the start may begin: it has no conditions, or they are known to hold. Else they are asked for.
    pub(crate) fn conditions_hold(&mut self, id: JobId, unit: UnitId, out: &mut Out<'_>) -> bool {
        let Some(entry) = self.entry_mut(unit) else { return true };
        if entry.unit.unit.conditions.is_empty() {
            entry.checks = Checks { condition: true, assertion: true, unmet: None };
            return true;
        }
        if self.jobs.get(&id).is_none_or(|job| job.check == Check::Passed) {
            return true;
        }
        self.ask(id, unit, out);
        false
    }

    fn ask(&mut self, id: JobId, unit: UnitId, out: &mut Out<'_>) {
        let Some(definition) = self.entry(unit).map(|entry| Arc::clone(&entry.unit)) else { return };
        let effect = out.ids.effect();
        if let Some(job) = self.jobs.get_mut(&id) {
            job.check = Check::Asked(effect, out.now.monotonic + ANSWER_WITHIN);
        }
        self.set_job_alarm(id);
        out.push(Effect::Check { id: effect, unit: definition });
    }

    /// The answer: the start goes on, is left out, or fails.
    pub(crate) fn checked(&mut self, id: EffectId, checked: Checked, out: &mut Out<'_>) {
        let asks = |check: Check| matches!(check, Check::Asked(asked, _) if asked == id);
        let Some(job) = self.jobs.values_mut().find(|job| asks(job.check)) else { return };
        job.check = Check::Passed;
        let (job, unit) = (job.id, job.unit);
        self.set_job_alarm(job);
        let Some(entry) = self.entry_mut(unit) else { return };
        let name = entry.unit.name.clone();
        let (condition, assertion) = (checked.condition.is_ok(), checked.assertion.is_ok());
        let unmet = checked.condition.err().or(checked.assertion.err());
        entry.checks = Checks { condition, assertion, unmet: unmet.clone() };
        let Some(unmet) = unmet else {
            self.queue.insert(job);
            return;
        };
        (entry.trigger, entry.monitor, entry.failure) = (None, None, None);
        if condition {
            entry.failure = Some(format!("{unmet} does not hold"));
        }
        self.returns_no_more(unit);
        if condition {
            let text = format!("{name}: Start failed, as {unmet} does not hold.");
            out.log(Level::Error, &name, None, None, text);
            self.finish(job, JobResult::Assert, out);
        } else {
            let text = format!("{name}: Start was left out, as {unmet} does not hold.");
            out.log(Level::Info, &name, None, None, text);
            self.finish(job, JobResult::Done, out); // As in systemd: who needs it is started all the same.
        }
    }

    /// Writes down when a job is given up, or asks again.
    pub(crate) fn set_job_alarm(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let asked = if let Check::Asked(_, again) = job.check { Some(again) } else { None };
        let at = job.until.into_iter().chain(job.running_until).chain(asked).min();
        self.job_alarms.set(job.unit, at);
    }

    pub(crate) fn tick_jobs(&mut self, out: &mut Out<'_>) {
        let now = out.now.monotonic;
        for unit in self.job_alarms.due(now) {
            let Some(job) = self.entry(unit).and_then(|entry| entry.job).and_then(|id| self.jobs.get(&id))
            else {
                self.job_alarms.set(unit, None);
                continue;
            };
            let id = job.id;
            if self.shutdown.is_some() {
                // A stop that is given up would never come again; the shutdown has a bound of its own.
                self.job_alarms.set(unit, None);
            } else if let Some(key) = job.overdue(now) {
                let (name, kind) = (self.name(unit), job.shown.as_str());
                let text = format!("{name}: Its {kind} job took longer than {key} and is given up.");
                out.log(Level::Warning, &name, None, None, text);
                self.finish(id, JobResult::Timeout, out);
                self.end_of_job(unit, out);
            } else {
                self.ask(id, unit, out);
            }
        }
    }
}
