//! What a job does to its unit once its turn has come.

use std::sync::Arc;

use agentd_unit::{Body, ServiceType};

use crate::effect::{JobResult, Level, Trigger};
use crate::graph::{Relation, UnitId};
use crate::ids::JobId;
use crate::job::{Cause, Check, Job, JobType};
use crate::manager::Manager;
use crate::out::{Out, message};
use crate::service::{Run, ServiceEvent, ServiceState};
use crate::state::{ActiveState, ServiceResult};
use crate::unit::{Core, PlainState, title};

impl Manager {
    pub(crate) fn run_start(&mut self, id: JobId, unit: UnitId, active: ActiveState, out: &mut Out<'_>) {
        match active {
            ActiveState::Active | ActiveState::Reloading => self.finish(id, JobResult::Done, out),
            ActiveState::Deactivating => {} // It looks again when that is over.
            ActiveState::Activating if self.restart_is_held(id, unit) => {}
            ActiveState::Activating if !self.entry(unit).is_some_and(|entry| entry.is_restarting()) => {
                self.mark_running(id, out);
            }
            ActiveState::Activating | ActiveState::Inactive | ActiveState::Failed => {
                if let Some((cause, reason)) = self.unmet(unit, id) {
                    self.fail_for(id, unit, cause, reason, out);
                    if !self.comes_by_itself(cause) {
                        self.returns_no_more(unit);
                    }
                } else if self.is_opposed(unit, id) || self.lacks_slice(unit, id) {
                    let cause = self.jobs.get(&id).map_or(Cause::Manager, |job| job.cause);
                    self.plan_by_newest(id, unit, cause, out);
                } else {
                    self.begin(id, unit, out);
                }
            }
        }
    }

    /// A restart that waits for its delay is hastened only by a person who asks for this very unit.
    fn restart_is_held(&self, id: JobId, unit: UnitId) -> bool {
        let hurry = self.jobs.get(&id).is_some_and(|job| job.hurry);
        let state = self.entry(unit).and_then(|entry| entry.service()).map(|service| service.state);
        matches!(state, Some(ServiceState::AutoRestart { due: false, .. })) && !hurry
    }

    /// Whether a unit that is down has something in store that brings it up, which nobody has to ask for.
    fn comes_by_itself(&self, unit: UnitId) -> bool {
        self.entry(unit).is_some_and(|entry| {
            entry.is_restarting() || entry.uphold_at.is_some() || !entry.returns_with.is_empty()
        })
    }

    /// A requirement that must be up by now and is not.
    fn unmet(&self, unit: UnitId, id: JobId) -> Option<(UnitId, String)> {
        if self.jobs.get(&id).is_some_and(|job| job.alone || job.bare) {
            return None;
        }
        let edges = self.graph.edges(unit).iter();
        let mut must_be_up = edges.filter(|edge| {
            let ordered = edge.relation.any(Relation::AFTER) && self.graph.stands(unit, edge.other);
            edge.relation.any(Relation::REQUISITE) || (ordered && edge.relation.any(Relation::BINDS_TO))
        });
        let missing = must_be_up.find(|edge| !self.entry(edge.other).is_some_and(|entry| entry.is_up()))?;
        Some((missing.other, format!("{} is not active", self.name(missing.other))))
    }

    /// Something that stands against it is up and is not being stopped: a load, or a unit that ignored its
    /// dependencies, brought that about after this start was planned.
    fn is_opposed(&self, unit: UnitId, id: JobId) -> bool {
        let alone = self.jobs.get(&id).is_some_and(|job| job.alone);
        let stays = |other: UnitId| {
            let at_rest = self.entry(other).is_none_or(|entry| entry.is_at_rest());
            !at_rest && self.job_of(other) != Some(JobType::Stop)
        };
        !alone && self.graph.related(unit, Relation::AGAINST).any(stays)
    }

    /// Its slice is not up and does not come: a new definition, or a stop of the slice that ignored what lies in it,
    /// brought that about after this start was planned. What the slice's own conditions keep down is nobody's need.
    fn lacks_slice(&self, unit: UnitId, id: JobId) -> bool {
        let pulls = self.jobs.get(&id).is_some_and(|job| !job.alone && !job.bare);
        let slice = self.entry(unit).and_then(|entry| entry.unit.slice()).and_then(|name| self.id(&name));
        let stays_down = |slice: UnitId| {
            let comes = matches!(self.job_of(slice), Some(JobType::Start | JobType::Restart));
            let could = self.entry(slice).is_some_and(|entry| !entry.is_up() && entry.checks.unmet.is_none());
            could && !comes
        };
        pulls && slice.is_some_and(stays_down)
    }

    fn mark_running(&mut self, id: JobId, out: &Out<'_>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.running = true;
        let entry = self.table.get(job.unit.index());
        let Some(span) = entry.and_then(|entry| entry.unit.unit.system.job_running_timeout) else { return };
        job.running_until.get_or_insert(out.now.monotonic + span);
        self.set_job_alarm(id);
    }

    fn begin(&mut self, id: JobId, unit: UnitId, out: &mut Out<'_>) {
        let cause = self.jobs.get(&id).map_or(Cause::Manager, |job| job.cause);
        if let Err(error) = self.startable(unit, cause) {
            // The definition was replaced while the job waited.
            if let Some(entry) = self.entry_mut(unit) {
                entry.failure = Some(error.to_string());
            }
            self.finish(id, JobResult::Failed, out);
            return;
        }
        // Limits come first, so that a condition that never holds cannot keep the manager busy.
        let is_new = self.jobs.get(&id).is_none_or(|job| job.check == Check::Due);
        if cause == Cause::Manager && is_new && !self.admit(unit, out) {
            self.finish(id, JobResult::Failed, out);
            return;
        }
        if !self.conditions_hold(id, unit, out) {
            return;
        }
        self.mark_running(id, out);
        let Some(entry) = self.entry_mut(unit) else { return };
        (entry.failure, entry.came_up) = (None, false);
        entry.forgotten = None;
        entry.returns_with.clear();
        if cause == Cause::Person {
            entry.restarts().forget();
        }
        // Of any kind of unit: the next start is not for what this one was for, and counts for the start limit.
        let (trigger, monitor) = (entry.trigger.take(), entry.monitor.take());
        match &entry.core {
            Core::Service(_) => {
                let run = Run::new(out.ids.run(), Arc::clone(&entry.unit), trigger, monitor);
                self.runs.insert(run.id, unit);
                self.drive(unit, ServiceEvent::Start(Box::new(run)), out);
            }
            Core::Timer(_) => self.start_timer(unit, out),
            Core::Socket(_) | Core::Path(_) => self.start_trigger(unit, out),
            Core::Plain(_) => self.set(unit, |entry, _| entry.core = Core::Plain(PlainState::Active), out),
        }
    }

    pub(crate) fn run_stop(&mut self, id: JobId, unit: UnitId, out: &mut Out<'_>) {
        self.mark_running(id, out);
        let for_restart = self.job_of(unit) == Some(JobType::Restart);
        let service = self.entry_mut(unit).and_then(|entry| entry.service_mut());
        if let Some(run) = service.and_then(|service| service.facts.run.as_mut()) {
            run.for_restart = for_restart;
        }
        let Some(entry) = self.entry(unit) else { return };
        if entry.is_up()
            && let Some(service) = entry.service()
        {
            let (name, run) = (entry.unit.name.clone(), service.facts.last_run);
            let text = format!("Stopping {}...", title(&entry.unit));
            out.log(Level::Info, &name, run, Some(message::STOPPING), text);
        }
        self.take_down(unit, ServiceEvent::Stop, out);
    }

    /// Takes a unit down, whatever it is.
    pub(crate) fn take_down(&mut self, unit: UnitId, event: ServiceEvent, out: &mut Out<'_>) {
        if let Some(entry) = self.entry_mut(unit) {
            entry.uphold_at = None;
        }
        self.set_alarm(unit);
        match self.entry(unit).map(|entry| &entry.core) {
            Some(Core::Service(_)) => self.drive(unit, event, out),
            Some(Core::Timer(_)) => self.stop_timer(unit, ServiceResult::Success, out),
            Some(Core::Socket(_) | Core::Path(_)) => self.stop_trigger(unit, out),
            Some(Core::Plain(PlainState::Perpetual)) | None => {}
            Some(Core::Plain(_)) => {
                self.set(unit, |entry, _| entry.core = Core::Plain(PlainState::Dead), out)
            }
        }
    }

    pub(crate) fn run_reload(&mut self, id: JobId, unit: UnitId, out: &mut Out<'_>) {
        if !self.can_reload(unit) {
            self.finish(id, JobResult::Invalid, out);
            return;
        }
        self.mark_running(id, out);
        self.drive(unit, ServiceEvent::Reload, out);
    }

    /// Whether the definition that a service lives by has an ExecReload, or a type that reloads at a signal.
    pub(crate) fn can_reload(&self, unit: UnitId) -> bool {
        let body = self.entry(unit).and_then(|entry| entry.unit.as_service());
        body.is_some_and(|body| {
            !body.service.exec_reload.is_empty() || body.service.service_type == ServiceType::NotifyReload
        })
    }

    /// A unit that is part of a hard cycle is failed without ever having begun.
    pub(crate) fn fail_unstarted(&mut self, unit: UnitId, out: &mut Out<'_>) {
        if !self.entry(unit).is_some_and(|entry| entry.active() == ActiveState::Inactive) {
            return;
        }
        self.set(unit, |entry, _| entry.fail(ServiceResult::Resources), out);
    }

    /// SIGKILL did not end it in time: who waits for the stop is told, while the unit stays what it is.
    pub(crate) fn unkillable(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry_mut(unit) else { return };
        let job = entry.job;
        let Some(run) = entry.service_mut().and_then(|service| service.facts.run.as_mut()) else { return };
        if !std::mem::take(&mut run.unkillable) {
            return;
        }
        let takes_down = job.and_then(|id| self.jobs.get(&id)).is_some_and(|job| job.kind.takes_down());
        if let Some(id) = job.filter(|_| takes_down) {
            self.finish(id, JobResult::Timeout, out);
        }
    }

    pub(crate) fn say_finished(&self, job: &Job, result: JobResult, out: &mut Out<'_>) {
        let Some(entry) = self.entry(job.unit) else { return };
        let (unit, what) = (&entry.unit, title(&entry.unit));
        let run = entry.service().and_then(|service| service.facts.last_run);
        let is_oneshot = entry.is_at_rest() && entry.service().is_some();
        let (level, id, text) = match (job.kind, result) {
            (JobType::Start, JobResult::Done) if !job.running => return, // It was up before.
            (JobType::Start, JobResult::Done) if is_oneshot => {
                (Level::Info, message::STARTED, format!("Finished {what}."))
            }
            (JobType::Start, JobResult::Done) if matches!(unit.body, Body::Socket(_)) => {
                (Level::Info, message::STARTED, format!("Listening on {what}."))
            }
            (JobType::Start, JobResult::Done) if matches!(unit.body, Body::Target) => {
                (Level::Info, message::STARTED, format!("Reached target {what}."))
            }
            (JobType::Start, JobResult::Done) if matches!(unit.body, Body::Slice(_)) => {
                (Level::Info, message::STARTED, format!("Created slice {what}."))
            }
            (JobType::Start, JobResult::Done) => (Level::Info, message::STARTED, format!("Started {what}.")),
            (JobType::Start, JobResult::Dependency) => {
                (Level::Warning, message::START_FAILED, format!("Dependency failed for {what}."))
            }
            (JobType::Start, JobResult::Failed | JobResult::Timeout | JobResult::Assert) => {
                (Level::Error, message::START_FAILED, format!("Failed to start {what}."))
            }
            (JobType::Stop, JobResult::Done) if job.running && matches!(unit.body, Body::Socket(_)) => {
                (Level::Info, message::STOPPED, format!("Closed {what}."))
            }
            (JobType::Stop, JobResult::Done) if job.running && matches!(unit.body, Body::Target) => {
                (Level::Info, message::STOPPED, format!("Stopped target {what}."))
            }
            (JobType::Stop, JobResult::Done) if job.running && matches!(unit.body, Body::Slice(_)) => {
                (Level::Info, message::STOPPED, format!("Removed slice {what}."))
            }
            (JobType::Stop | JobType::Restart, JobResult::Done) if job.running => {
                (Level::Info, message::STOPPED, format!("Stopped {what}."))
            }
            (JobType::Stop | JobType::Restart, JobResult::Timeout) => {
                (Level::Error, message::STOPPED, format!("Stopping {what} takes too long."))
            }
            (kind, JobResult::Canceled) => {
                let (name, kind) = (&unit.name, kind.kind().as_str());
                out.log(Level::Debug, name, run, None, format!("{name}: Its {kind} job was called off."));
                return;
            }
            _ => return,
        };
        out.log(level, &unit.name, run, Some(id), text);
    }

    /// A triggered start carries what triggered it into its run.
    pub(crate) fn set_trigger(&mut self, unit: UnitId, trigger: Option<Trigger>) {
        if let Some(entry) = self.entry_mut(unit) {
            entry.trigger = trigger.map(Box::new);
        }
    }
}
