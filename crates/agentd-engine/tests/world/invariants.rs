//! What must hold after every step, whatever happened.

use std::collections::BTreeSet;
use std::time::Duration;

use agentd_engine::{ActiveState, InvocationId, JobKind, Record, RequestId, Spawn, UnitView};
use agentd_unit::{ExecKind, LoadState, Unit, UnitName};

use super::World;

const STARTING: &str = "7d4958e842da4a758f6c1cdc7b36dcc5";
const STOPPING: &str = "de5b426a63be47a7b6ac3eaac82e2f6f";
const RESTART_SCHEDULED: &str = "5eb03494b6584870a536b337290809b3";

fn is_up(view: &UnitView) -> bool {
    matches!(view.active, ActiveState::Active | ActiveState::Reloading)
}

fn is_at_rest(view: &UnitView) -> bool {
    matches!(view.active, ActiveState::Inactive | ActiveState::Failed)
}

impl World {
    pub(super) fn must_be_open(&self, request: RequestId) {
        if !self.open.contains_key(&request) {
            self.fail("a request was answered twice, or was never made");
        }
    }

    pub(super) fn must_not_be_released(&self, run: InvocationId) {
        if self.runs.get(&run).is_some_and(|info| info.released) {
            self.fail("a run was spoken of after its release");
        }
    }

    /// A command is to be run: no life overlaps another, and nothing that goes before it is still to be done.
    pub(super) fn check_spawn(&self, spawn: &Spawn) {
        self.must_not_be_released(spawn.run);
        let unit = &spawn.unit.name;
        if self.shutdowns > 0 {
            self.fail("a command was run after the end");
        }
        let other_life = self.processes.values().any(|p| p.unit == *unit && p.alive && p.run != spawn.run);
        let helpers =
            self.runs.iter().any(|(run, info)| *run != spawn.run && info.unit == *unit && info.helpers > 0);
        if other_life || helpers {
            self.fail(&format!("two lives of {unit} overlap"));
        }
        let main = |p: &super::Process| p.unit == *unit && p.alive && p.kind == ExecKind::Start;
        if spawn.kind == ExecKind::Start && self.processes.values().any(main) {
            self.fail(&format!("{unit} has two main processes"));
        }
    }

    /// A life begins: what goes before it is done.
    fn check_order(&self, unit: &Unit) {
        if self.manager.is_shutting_down() {
            self.fail(&format!("{} was started during the shutdown", unit.name));
        }
        let section = &unit.unit;
        let mut earlier: BTreeSet<&UnitName> = section.after.iter().collect();
        if unit.implicit_order {
            earlier.extend(section.requires.iter().chain(&section.binds_to).chain(&section.wants));
        }
        for other in earlier {
            let job = self.manager.unit(other).and_then(|view| view.job);
            if job.is_some_and(|job| self.jobs_before.contains(&job)) {
                self.fail(&format!("{} was started before the job of {other} was done", unit.name));
            }
        }
        for other in &section.binds_to {
            let up = self.manager.unit(other).is_some_and(|view| is_up(&view));
            if unit.implicit_order && !up {
                self.fail(&format!("{} was started without {other}, which it is bound to", unit.name));
            }
        }
    }

    /// What comes after a unit is down before that begins to stop, where both are to be stopped.
    fn check_stop_order(&self, unit: &UnitName) {
        for view in self.manager.units() {
            let section = &view.unit.unit;
            let pulls = || section.requires.iter().chain(&section.binds_to).chain(&section.wants);
            let later = section.after.contains(unit)
                || (view.unit.implicit_order && pulls().any(|other| other == unit));
            let job = view.job.filter(|job| self.jobs_before.contains(job));
            let goes = self.manager.jobs().any(|other| Some(other.id) == job && other.kind == JobKind::Stop);
            if later && goes && !is_at_rest(&view) {
                self.fail(&format!("{unit} was stopped before {}", view.unit.name));
            }
        }
    }

    /// Restarts stay within the limits of the unit.
    pub(super) fn read_log(&mut self, record: &Record) {
        if record.message_id == Some(STARTING)
            && let Some(view) = record.unit.as_ref().and_then(|unit| self.manager.unit(unit))
            && view.unit.load != LoadState::Loaded
        {
            self.fail(&format!("{} was started and is {}", view.unit.name, view.unit.load));
        }
        if record.message_id == Some(STARTING)
            && let Some(view) = record.unit.as_ref().and_then(|unit| self.manager.unit(unit))
        {
            self.check_order(&view.unit);
        }
        if record.message_id == Some(STOPPING)
            && let Some(unit) = &record.unit
        {
            self.check_stop_order(unit);
        }
        if record.message_id != Some(RESTART_SCHEDULED) {
            return;
        }
        let Some(unit) = record.unit.clone() else { return };
        let now = self.now.monotonic;
        let times = self.restarts.entry(unit.clone()).or_default();
        times.push(now);
        let Some(view) = self.manager.unit(&unit) else { return };
        let (burst, interval) = (view.unit.unit.start_limit_burst, view.unit.unit.start_limit_interval);
        let recent = times.iter().filter(|at| now - **at < interval).count();
        let was_reloaded = view.changed_on_disk;
        // A late tick may let two restarts that were due far apart come close.
        if !interval.is_zero() && !was_reloaded && recent > burst as usize + 1 {
            self.fail(&format!("{unit} was restarted {recent} times within {interval:?}"));
        }
    }

    pub(super) fn check(&self) {
        let mut with_jobs = BTreeSet::new();
        for job in self.manager.jobs() {
            if !with_jobs.insert(job.unit.clone()) {
                self.fail(&format!("{} has two jobs", job.unit));
            }
        }
        for view in self.manager.units() {
            let name = &view.unit.name;
            if view.job.is_some() != with_jobs.contains(name) {
                self.fail(&format!("{name} and the queue do not agree about its job"));
            }
            if is_at_rest(&view) {
                self.check_rest(&view);
            }
            if is_up(&view) {
                self.check_bonds(&view);
            }
        }
        if self.shutdowns > 1 {
            self.fail("the shutdown was performed twice");
        }
    }

    fn check_rest(&self, view: &UnitView) {
        let name = &view.unit.name;
        if view.main.is_some() || view.control.is_some() {
            self.fail(&format!("{name} is at rest and has processes"));
        }
        let whole = |p: &super::Process| self.runs.get(&p.run).is_some_and(|info| info.whole);
        if self.processes.values().any(|p| p.unit == *name && p.alive && whole(p)) {
            self.fail(&format!("{name} is at rest and a process of it lives"));
        }
    }

    /// What is bound is up only while what it is bound to is up, or comes up beside it where no order is set, or
    /// while it goes down. (A bond that a reload brought to a target holds from its next start.)
    fn check_bonds(&self, view: &UnitView) {
        for other in view.unit.unit.binds_to.iter().filter(|_| view.unit.as_service().is_some()) {
            let Some(other) = self.manager.unit(other) else { continue };
            let comes =
                other.active == ActiveState::Activating || (is_at_rest(&other) && other.job.is_some());
            let comes = comes && !view.unit.implicit_order;
            if !is_up(&other) && !comes && view.job.is_none() {
                self.fail(&format!("{} is up, {} is {}", view.unit.name, other.unit.name, other.sub));
            }
        }
    }

    /// After a calm time nothing waits without a reason.
    pub(crate) fn check_settled(&self) {
        if let Some((request, what)) = self.open.first_key_value() {
            self.fail(&format!("{request:?} was never answered: {what:?}"));
        }
        for view in self.manager.units() {
            let passing = matches!(view.active, ActiveState::Activating | ActiveState::Deactivating);
            let since = view.state_change.map_or(self.now.realtime, |at| at);
            // The longest patience of a unit here is 6 s a command.
            if passing && self.now.realtime - since > Duration::from_secs(15) {
                self.fail(&format!("{} is still {}", view.unit.name, view.sub));
            }
        }
    }

    /// After the shutdown nothing lives.
    pub(crate) fn check_ended(&self) {
        if self.shutdowns != 1 {
            self.fail("the shutdown did not come to its end");
        }
        if let Some((_, process)) = self.processes.iter().find(|(_, process)| process.alive) {
            self.fail(&format!("a process of {} outlives the shutdown", process.unit));
        }
        if let Some(request) = self.open.keys().next() {
            self.fail(&format!("{request:?} was never answered"));
        }
    }
}
