//! What must hold after every step, whatever happened. Order has a file of its own (`order.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agentd_engine::{
    ActiveState, InvocationId, JobKind, JobView, Monotonic, Record, RequestId, ServiceResult, Spawn, UnitView,
};
use agentd_unit::sections::{Action, RestartMode};
use agentd_unit::{Body, ExecKind, LoadState, UnitName};

use super::World;
use super::rows::check_forgotten;

/// What the laws of this world say: nothing, or what is broken.
pub(super) type Verdict = Result<(), String>;

const RESTART_SCHEDULED: &str = "5eb03494b6584870a536b337290809b3";

/// The longest patience of a unit here is 6 s a command, and time may be asked for; a manager may be 3 s late.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub(super) fn is_up(view: &UnitView) -> bool {
    matches!(view.active, ActiveState::Active | ActiveState::Reloading)
}

pub(super) fn is_at_rest(view: &UnitView) -> bool {
    matches!(view.active, ActiveState::Inactive | ActiveState::Failed)
}

/// On its way: it is expected to become something else.
fn is_passing(view: &UnitView) -> bool {
    !is_at_rest(view) && view.active != ActiveState::Active
}

pub(super) fn law(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl World {
    pub(super) fn must_be_open(&mut self, request: RequestId) {
        if !self.open.contains_key(&request) && !self.left.contains(&request) {
            self.fail("a request was answered twice, or was never made".to_owned());
        }
    }

    pub(super) fn must_not_be_released(&mut self, run: InvocationId) {
        if self.runs.get(&run).is_some_and(|info| info.released) {
            self.fail("a run was spoken of after its release".to_owned());
        }
    }

    /// A command is to be run: no life overlaps another.
    pub(super) fn check_spawn(&self, spawn: &Spawn) -> Verdict {
        let unit = &spawn.unit.name;
        let released = self.runs.get(&spawn.run).is_some_and(|info| info.released);
        law(!released, || "a command was run in a run that was released".to_owned())?;
        law(self.shutdowns == 0, || "a command was run after the end".to_owned())?;
        let other_life = self.processes.values().any(|p| p.unit == *unit && p.alive && p.run != spawn.run);
        let helpers =
            self.runs.iter().any(|(run, info)| *run != spawn.run && info.unit == *unit && info.helpers > 0);
        law(!other_life && !helpers, || format!("two lives of {unit} overlap"))?;
        self.check_quiet(spawn)?;
        let main = |p: &super::Process| p.unit == *unit && p.alive && p.kind == ExecKind::Start;
        law(spawn.kind != ExecKind::Start || !self.processes.values().any(main), || {
            format!("{unit} has two main processes")
        })
    }

    pub(super) fn read_log(&mut self, record: &Record) {
        let Some(unit) = record.unit.clone() else { return };
        if !record.text.ends_with("job was called off.") {
            self.touched.insert(unit.clone());
        }
        self.watch_log(&unit, &record.text);
        let verdict = self.check_record(&unit, record);
        if let Err(what) = verdict {
            self.fail(what);
        }
    }

    fn check_record(&mut self, unit: &UnitName, record: &Record) -> Verdict {
        self.check_order(unit, record)?;
        if record.message_id == Some(RESTART_SCHEDULED) {
            self.check_restart(unit)?;
            self.check_row(unit, record.run)?;
        }
        if record.text.ends_with("failure is forgotten.") {
            self.rows.remove(unit);
        }
        Ok(())
    }

    /// Restarts keep their distance, and stay within the limits of the unit.
    fn check_restart(&mut self, unit: &UnitName) -> Verdict {
        let now = self.now.monotonic;
        let times = self.restarts.entry(unit.clone()).or_default();
        times.push(now);
        let Some(view) = self.manager.unit(unit) else { return Ok(()) };
        let (burst, interval) = (view.unit.unit.start_limit_burst, view.unit.unit.start_limit_interval);
        let recent = times.iter().filter(|at| now - **at < interval).count();
        // A late tick may let two restarts that were due far apart come close.
        law(view.changed_on_disk || recent <= burst as usize + 1, || {
            format!("{unit} was restarted {recent} times within {interval:?}")
        })
    }

    pub(super) fn check(&mut self) -> Verdict {
        law(self.shutdowns <= 1, || "the shutdown was performed twice".to_owned())?;
        let views: BTreeMap<UnitName, UnitView> =
            self.manager.units().map(|view| (view.unit.name.clone(), view)).collect();
        self.check_jobs(&views)?;
        for view in views.values() {
            self.check_unit(view, &views)?;
        }
        self.check_slices(&views)?;
        self.check_idle(&views)?;
        self.note_up(&views);
        self.check_sockets(&views)?;
        self.check_queue(&views)?;
        // What has a job returns by that, or somebody calls it off, be it in the same step.
        let called_off = &self.watch.called_off;
        let none = |view: &UnitView| view.job.is_none() && !called_off.contains(&view.unit.name);
        self.returning.retain(|unit, _| views.get(unit).is_some_and(none));
        for (unit, cause) in &self.returning {
            let (Some(unit), Some(cause)) = (views.get(unit), views.get(cause)) else { continue };
            let waits = is_at_rest(unit)
                && unit.job.is_none()
                && unit.result != ServiceResult::StartLimitHit
                && unit.failure.as_deref().and_then(|why| why.strip_suffix(" failed to start"))
                    == Some(cause.unit.name.as_str());
            // What is on its way down again takes with it what has just been asked to return.
            let goes = |job: &JobView| matches!(job.kind, JobKind::Stop | JobKind::Restart);
            let stays =
                is_up(cause) && !self.jobs_before.iter().any(|job| job.unit == cause.unit.name && goes(job));
            law(!(waits && stays) || self.manager.is_shutting_down(), || {
                format!("{} did not return with {}", unit.unit.name, cause.unit.name)
            })?;
        }
        self.busy = views
            .values()
            .filter(|view| !is_at_rest(view))
            .map(|view| (view.unit.name.clone(), Arc::clone(&view.unit)))
            .collect();
        if self.is_calm {
            let now = self.now.monotonic;
            self.since.retain(|unit, _| views.get(unit).is_some_and(is_passing));
            for view in views.values().filter(|view| is_passing(view)) {
                self.since.entry(view.unit.name.clone()).or_insert(now);
            }
        }
        Ok(())
    }

    /// One job a unit; what runs is on its way; what waits waits for somebody, and never in a circle.
    fn check_jobs(&self, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        let mut by_unit: BTreeMap<&UnitName, &JobView> = BTreeMap::new();
        for job in &self.jobs_before {
            law(by_unit.insert(&job.unit, job).is_none(), || format!("{} has two jobs", job.unit))?;
        }
        for (name, view) in views {
            let job = by_unit.get(name).map(|job| job.id);
            law(view.job == job, || format!("{name} and the queue do not agree about its job"))?;
        }
        for job in &self.jobs_before {
            let Some(view) = views.get(&job.unit) else { continue };
            let reason = (job.running || job.waits_for.is_empty()) && !job.checking;
            law(!reason || is_passing(view), || {
                format!(
                    "the job {} of {} waits for nothing while it is {}",
                    job.kind.as_str(),
                    job.unit,
                    view.sub
                )
            })?;
            let stuck = job.running && job.kind == JobKind::Stop && view.sub == "auto-restart";
            law(!stuck, || format!("{} is to be stopped and comes back", job.unit))?;
        }
        check_circle(&by_unit)
    }

    fn check_unit(&self, view: &UnitView, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        let name = &view.unit.name;
        if is_at_rest(view) {
            self.check_rest(view)?;
        } else if is_up(view) {
            self.check_bonds(view)?;
        }
        self.check_patience(view)?;
        self.check_main(view)?;
        check_forgotten(view, views)?;
        self.check_timed_out(view)?;
        let forgotten = self.watch.forgotten.contains(name);
        let lived_by = self.busy.get(name).filter(|_| view.active == ActiveState::Failed || forgotten);
        let ends = lived_by.is_some_and(|unit| unit.unit.system.failure_action != Action::None);
        let ended = self
            .busy
            .get(name)
            .filter(|_| view.active == ActiveState::Inactive && view.result == ServiceResult::Success)
            .filter(|_| !forgotten);
        let ends = ends || ended.is_some_and(|unit| unit.unit.system.success_action != Action::None);
        law(!ends || self.watch.loads || self.manager.is_shutting_down(), || {
            format!("{name} has ended and nothing ends with it")
        })?;
        let hooks = lived_by.filter(|_| !self.manager.is_shutting_down()).map(|unit| &unit.unit.on_failure);
        for hook in hooks.into_iter().flatten() {
            let Some(other) = views.get(hook).filter(|other| is_at_rest(other)) else { continue };
            let at_once = !matches!(view.unit.body, Body::Service(_));
            if at_once && !view.unit.unit.on_failure.contains(hook) {
                continue; // It went down well and failed to come up by its newest definition, in one step.
            }
            let told = other.job.is_some() || other.failure.is_some() || self.touched.contains(hook);
            // Its start may have given way, in the same step, to a stop that goes on to it: then that is said.
            let told = told || self.watch.called_off.contains(hook);
            law(told || other.result == ServiceResult::StartLimitHit, || {
                format!("{name} has failed and {hook} was not started")
            })?;
        }
        Ok(())
    }

    fn check_rest(&self, view: &UnitView) -> Verdict {
        let name = &view.unit.name;
        law(view.main.is_none() && view.control.is_none(), || {
            format!("{name} is at rest and has processes")
        })?;
        let whole = |p: &super::Process| self.runs.get(&p.run).is_some_and(|info| info.whole);
        law(!self.processes.values().any(|p| p.unit == *name && p.alive && whole(p)), || {
            format!("{name} is at rest and a process of it lives")
        })
    }

    /// Every wait has an end: a deadline, or a reason that has a name.
    fn check_patience(&self, view: &UnitView) -> Verdict {
        let name = &view.unit.name;
        let waits_for_turn = view.sub == "auto-restart" && view.deadline.is_none();
        if waits_for_turn {
            let put_off =
                self.jobs_before.iter().any(|job| matches!(job.kind, JobKind::Stop | JobKind::Restart));
            return law(view.job.is_some() || put_off, || format!("{name} is due and nobody restarts it"));
        }
        if !is_passing(view) {
            return Ok(());
        }
        let Some(deadline) = view.deadline else {
            return Err(format!("{name} is {} and would wait for ever", view.sub));
        };
        law(deadline <= self.now.monotonic + LONGEST_WAIT, || {
            format!("{name} is {} and would wait until {deadline:?}", view.sub)
        })
    }

    /// What is bound is up only while what it is bound to is up or comes up (`order.rs` knows whether it may come up
    /// beside it), or while it goes down. A bond that a reload brought to a target holds from its next start.
    fn check_bonds(&self, view: &UnitView) -> Verdict {
        for other in view.unit.unit.binds_to.iter().filter(|_| view.unit.as_service().is_some()) {
            let Some(other) = self.manager.unit(other) else { continue };
            let service = other.unit.as_service().map(|body| body.service.life.restart_mode);
            let direct = service == Some(RestartMode::Direct) && other.active == ActiveState::Deactivating;
            let comes = other.active == ActiveState::Activating || direct || other.job.is_some();
            law(is_up(&other) || comes || view.job.is_some(), || {
                format!("{} is up, {} is {}", view.unit.name, other.unit.name, other.sub)
            })?;
        }
        Ok(())
    }

    /// After a calm time nothing waits without a reason, and all that should be up is.
    pub(super) fn check_settled(&mut self) -> Verdict {
        if let Some((request, what)) = self.open.first_key_value() {
            return Err(format!("{request:?} was never answered: {what:?}"));
        }
        let now: Monotonic = self.now.monotonic;
        if let Some((unit, since)) = self.since.iter().find(|(_, since)| now - **since > LONGEST_WAIT * 2) {
            return Err(format!("{unit} is on its way since {since:?}"));
        }
        let views: Vec<UnitView> = self.manager.units().collect();
        let services = views.iter().filter(|view| view.unit.as_service().is_some());
        for view in services.filter(|view| view.sub == "running" && view.job.is_none()) {
            let name = &view.unit.name;
            let helpers = self.runs.values().any(|info| info.unit == *name && info.helpers > 0);
            let lives = self.processes.values().any(|p| p.unit == *name && p.alive);
            law(lives || helpers || self.loses, || format!("{name} is running and has no process"))?;
        }
        let find = |name: &UnitName| views.iter().find(|view| view.unit.name == *name);
        for view in views.iter().filter(|view| view.active == ActiveState::Active && view.job.is_none()) {
            for upheld in view.unit.unit.upholds.iter().filter_map(find) {
                let excused = !is_at_rest(upheld)
                    || upheld.job.is_some()
                    || upheld.deadline.is_some()
                    || upheld.failure.is_some()
                    || upheld.result == ServiceResult::StartLimitHit
                    || upheld.unit.load != LoadState::Loaded;
                law(excused, || format!("{} does not uphold {}", view.unit.name, upheld.unit.name))?;
            }
        }
        Ok(())
    }

    /// After the shutdown nothing lives.
    pub(super) fn check_ended(&mut self) -> Verdict {
        law(self.shutdowns == 1, || "the shutdown did not come to its end".to_owned())?;
        if let Some((_, process)) = self.processes.iter().find(|(_, process)| process.alive) {
            return Err(format!("a process of {} outlives the shutdown", process.unit));
        }
        self.check_closed()?;
        let unanswered = || format!("{:?} were never answered", (self.open.keys(), &self.left));
        law(self.open.is_empty() && self.left.is_empty(), unanswered)
    }
}

/// Jobs that wait for each other in a circle would wait for ever.
fn check_circle(jobs: &BTreeMap<&UnitName, &JobView>) -> Verdict {
    let mut settled: BTreeSet<&UnitName> = BTreeSet::new();
    for start in jobs.keys() {
        let mut path: Vec<(&UnitName, usize)> = vec![(start, 0)];
        while let Some((unit, next)) = path.pop() {
            let waits = jobs.get(unit).map_or(&[][..], |job| &job.waits_for);
            let Some(other) = waits.get(next) else {
                settled.insert(unit);
                continue;
            };
            path.push((unit, next + 1));
            law(path.iter().all(|(on_path, _)| *on_path != other), || {
                format!(
                    "jobs wait in a circle: {:?}",
                    path.iter().map(|(u, _)| u.as_str()).collect::<Vec<_>>()
                )
            })?;
            if !settled.contains(other) {
                path.push((other, 0));
            }
        }
    }
    Ok(())
}
