//! What the change of one unit means for its job and for its neighbours.

use std::time::Duration;

use agentd_unit::Unit;
use agentd_unit::sections::RestartMode;

use crate::effect::{JobResult, Level};
use crate::event::JobMode;
use crate::graph::{Relation, UnitId};
use crate::ids::JobId;
use crate::job::{Cause, Check, JobType};
use crate::manager::Manager;
use crate::out::{Out, message};
use crate::restart::{self, SPAWN_FAILURE_FLOOR};
use crate::service::{Run, ServiceEvent, ServiceState};
use crate::state::{ActiveState, ServiceResult};
use crate::transaction::Plan;
use crate::unit::Entry;

/// How long an upheld unit that could not be started is left alone: what it needs may be down for good.
const UPHOLD_AGAIN: Duration = Duration::from_secs(10);

const fn is_up(state: ActiveState) -> bool {
    matches!(state, ActiveState::Active | ActiveState::Reloading)
}

const fn is_at_rest(state: ActiveState) -> bool {
    matches!(state, ActiveState::Inactive | ActiveState::Failed)
}

impl Manager {
    /// A unit is something else for others than before.
    pub(crate) fn changed(&mut self, unit: UnitId, old: ActiveState, new: ActiveState, out: &mut Out<'_>) {
        let hooks = self.hooks_of_end(unit, old, new); // Before a newer definition takes effect.
        self.job_follows(unit, new, out);
        if is_up(new) && !is_up(old) {
            self.came_up(unit, out);
        }
        let coming = new == ActiveState::Activating && !self.entry(unit).is_some_and(|e| e.is_restarting());
        if !is_up(new) && !coming && !is_at_rest(old) && !self.restarts_directly(unit) {
            self.bound_go_down(unit, out);
        }
        // A failure that is forgotten is no news for anybody: it was at rest before.
        if is_at_rest(new) && old != ActiveState::Failed {
            self.came_to_rest(unit, out);
        }
        if self.entry(unit).is_some_and(|entry| entry.is_between_lives()) {
            self.replan(unit, out);
        }
        self.note_failed(unit);
        // By what holds now: a start that is planned anew would push them aside otherwise.
        self.start_hooks(unit, hooks, out);
        self.timers_follow(unit, out);
        self.triggers_follow(unit, out);
        self.connection_follows(unit, out);
    }

    /// The newest definition takes effect; a start that waited for this is made by it.
    fn replan(&mut self, unit: UnitId, out: &mut Out<'_>) {
        if self.entry(unit).is_none_or(|entry| entry.newer.is_none()) {
            return;
        }
        self.take_up_newest(unit);
        let job = self.entry(unit).and_then(|entry| entry.job).and_then(|id| self.jobs.get(&id));
        if let Some(job) = job.filter(|job| job.kind == JobType::Start && !job.running && !job.alone) {
            let (id, cause) = (job.id, job.cause);
            self.plan_by_newest(id, unit, cause, out);
        }
        self.renew_graph(out);
        self.schedule_uphold(unit, out);
    }

    /// After a load: who is upheld or needed by whom may be another matter now.
    pub(crate) fn look_round(&mut self, out: &mut Out<'_>) {
        for unit in self.ids().collect::<Vec<_>>() {
            self.schedule_uphold(unit, out);
            self.stop_if_unneeded(unit, out);
            self.note_failed(unit);
        }
    }

    /// The job of a unit ends, or looks again, as the unit changes.
    fn job_follows(&mut self, unit: UnitId, new: ActiveState, out: &mut Out<'_>) {
        let Some(id) = self.entry(unit).and_then(|entry| entry.job) else { return };
        let Some(job) = self.jobs.get(&id) else { return };
        if !job.running {
            self.queue.insert(id);
            return;
        }
        let restarting = self.entry(unit).is_some_and(|entry| entry.is_restarting());
        let result = match (job.kind, new) {
            (JobType::Start, ActiveState::Active | ActiveState::Reloading) => JobResult::Done,
            (JobType::Start, ActiveState::Inactive) => JobResult::Done, // A oneshot that has done its work.
            (JobType::Start, ActiveState::Failed) => self.failed_start(unit),
            (JobType::Start, ActiveState::Activating) if restarting && self.restarts_directly(unit) => {
                self.wait_for_next_life(id);
                return;
            }
            (JobType::Start, ActiveState::Activating) if restarting => self.failed_start(unit),
            (JobType::Stop, ActiveState::Inactive | ActiveState::Failed) => JobResult::Done,
            (JobType::Restart, ActiveState::Inactive | ActiveState::Failed) => {
                self.say_stopped(unit, out);
                self.start_again(id, out);
                return;
            }
            (JobType::Reload, ActiveState::Active) => self.reload_result(unit),
            (JobType::Reload, ActiveState::Inactive | ActiveState::Failed | ActiveState::Activating) => {
                JobResult::Failed
            }
            _ => return,
        };
        self.finish(id, result, out);
    }

    /// With `RestartMode=direct` a start goes on over the lives that failed: it is done when one comes up, and fails
    /// when none follows. From now on it is the manager's, which keeps its delays and limits.
    fn wait_for_next_life(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            (job.running, job.hurry) = (false, false);
            (job.cause, job.check) = (Cause::Manager, Check::Due);
        }
        self.queue.insert(id);
    }

    /// Whether a unit is on its way from one life to the next, as far as one can tell, and what depends on it is to
    /// see no end of it (`RestartMode=direct`).
    fn restarts_directly(&self, unit: UnitId) -> bool {
        let Some(entry) = self.entry(unit) else { return false };
        let (Some(body), Some(service)) = (entry.unit.as_service(), entry.service()) else { return false };
        let follows = |run: &Run| {
            !run.stop_asked && restart::follows(&body.service, service.facts.result, run.main_status)
        };
        let goes_on = match entry.active() {
            ActiveState::Activating => entry.is_restarting(),
            ActiveState::Deactivating => service.facts.run.as_deref().is_some_and(follows),
            ActiveState::Inactive | ActiveState::Active | ActiveState::Reloading | ActiveState::Failed => {
                false
            }
        };
        goes_on
            && body.service.life.restart_mode == RestartMode::Direct
            && self.shutdown.is_none()
            && !self.job_of(unit).is_some_and(JobType::takes_down)
    }

    fn failed_start(&self, unit: UnitId) -> JobResult {
        match self.entry(unit).map(|entry| entry.result()) {
            Some(ServiceResult::Success) => JobResult::Done,
            _ => JobResult::Failed,
        }
    }

    fn reload_result(&self, unit: UnitId) -> JobResult {
        let run = self.entry(unit).and_then(|entry| entry.service()).and_then(|s| s.facts.run.as_ref());
        if run.is_some_and(|run| run.reload_failed) { JobResult::Failed } else { JobResult::Done }
    }

    fn say_stopped(&self, unit: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry(unit) else { return };
        let run = entry.service().and_then(|service| service.facts.last_run);
        let text = format!("Stopped {}.", crate::unit::title(&entry.unit));
        out.log(Level::Info, &entry.unit.name, run, Some(message::STOPPED), text);
    }

    /// Who waited for this unit to return, and whom it upholds.
    fn came_up(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry_mut(unit) else { return };
        entry.came_up = true;
        let returns = |entry: &Entry| entry.returns_with.contains(&unit);
        let needy = self.graph.related(unit, Relation::NEEDED_BY);
        let returning: Vec<UnitId> = needy.filter(|other| self.entry(*other).is_some_and(returns)).collect();
        for other in returning {
            // It goes on waiting until it has begun: what else comes up may take this start away again.
            if self.entry(other).is_some_and(|entry| entry.is_at_rest() && entry.job.is_none()) {
                self.start_by_manager(other, out);
            }
        }
        let upheld: Vec<UnitId> = self.graph.related(unit, Relation::UPHOLDS).collect();
        for other in upheld {
            if self.is_upheld(other) && self.entry(other).is_some_and(|entry| entry.uphold_at.is_none()) {
                self.start_by_manager(other, out);
            }
        }
        self.check_bond(unit, out);
        self.stop_if_unneeded(unit, out);
    }

    /// A unit that is up without what it is bound to goes down: its start may have ignored that, or have taken the
    /// place of its stop.
    fn check_bond(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let stays = self.entry(unit).is_some_and(|entry| entry.is_up() && entry.job.is_none());
        if let Some(gone) = self.missing_bond(unit).filter(|_| stays && self.shutdown.is_none()) {
            self.stop_with(unit, gone, out);
        }
    }

    /// What it is bound to and what went away while it was coming up itself.
    fn missing_bond(&self, unit: UnitId) -> Option<UnitId> {
        self.graph.related(unit, Relation::BINDS_TO).find(|other| {
            let Some(entry) = self.entry(*other) else { return false };
            let comes = matches!(self.job_of(*other), Some(JobType::Start | JobType::Restart));
            match entry.active() {
                ActiveState::Active | ActiveState::Reloading => false,
                ActiveState::Activating => entry.is_restarting() && !comes && !self.restarts_directly(*other),
                ActiveState::Deactivating => !comes && !self.restarts_directly(*other),
                ActiveState::Inactive | ActiveState::Failed => !comes,
            }
        })
    }

    /// Units bound to this one go down with it, and return with it.
    fn bound_go_down(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let bound: Vec<UnitId> = self.graph.related(unit, Relation::BOUND_BY).collect();
        for other in bound {
            let stopping = self.job_of(other).is_some_and(JobType::takes_down);
            if stopping || self.shutdown.is_some() || self.entry(other).is_none_or(|e| e.is_at_rest()) {
                continue;
            }
            self.stop_with(other, unit, out);
        }
    }

    /// Stops a unit and what goes down with it, because of another unit's end that nobody asked for: all of them
    /// return when what took them down returns.
    fn stop_with(&mut self, unit: UnitId, cause: UnitId, out: &mut Out<'_>) {
        if !self.has_to_stop(unit) {
            return;
        }
        let by_person = self.job_of(cause) == Some(JobType::Stop);
        self.renew_graph(out);
        let plan = self.plan_stop(unit, Cause::Manager, JobMode::Replace);
        let down: Vec<UnitId> = plan.jobs.keys().copied().collect();
        self.install(plan, None, out);
        for other in down.iter().filter(|_| !by_person) {
            let needs = self.graph.related(*other, Relation::HARD_PULL);
            let took_it_down: Vec<UnitId> = needs.filter(|u| *u == cause || down.contains(u)).collect();
            if let Some(entry) = self.entry_mut(*other) {
                entry.returns_with.extend(took_it_down);
            }
            self.touch(*other);
        }
    }

    fn came_to_rest(&mut self, unit: UnitId, out: &mut Out<'_>) {
        self.schedule_uphold(unit, out);
        let needed: Vec<UnitId> = self.graph.related(unit, Relation::HARD | Relation::SOFT_PULL).collect();
        for other in needed {
            self.stop_if_unneeded(other, out);
        }
    }

    /// A unit that an active unit upholds is started again, after its RestartSec, when it is at rest.
    pub(crate) fn schedule_uphold(&mut self, unit: UnitId, out: &mut Out<'_>) {
        if !self.is_upheld(unit) || self.entry(unit).is_some_and(|entry| entry.uphold_at.is_some()) {
            return;
        }
        let section = self.entry(unit).and_then(|entry| entry.unit.as_service());
        let delay =
            section.map_or(SPAWN_FAILURE_FLOOR, |body| body.service.restart_sec.max(SPAWN_FAILURE_FLOOR));
        // It could not even begin the last time: what is in its way will not be gone in a moment.
        let in_vain = self.entry(unit).is_some_and(|entry| entry.failure.is_some());
        let at = out.now.monotonic + if in_vain { delay.max(UPHOLD_AGAIN) } else { delay };
        if let Some(entry) = self.entry_mut(unit) {
            entry.uphold_at = Some(at);
        }
        self.set_alarm(unit);
    }

    fn is_upheld(&self, unit: UnitId) -> bool {
        let idle = self.entry(unit).is_some_and(|e| e.is_at_rest() && e.job.is_none() && !e.is_given_up());
        idle && self.shutdown.is_none()
            && self
                .graph
                .related(unit, Relation::UPHELD_BY)
                .any(|other| self.entry(other).is_some_and(|e| e.is_up()) && !self.is_going_down(other))
    }

    fn is_going_down(&self, unit: UnitId) -> bool {
        self.job_of(unit) == Some(JobType::Stop)
    }

    /// The time to start an upheld unit again has come, if it is still to be upheld.
    pub(crate) fn uphold(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let due =
            self.entry(unit).and_then(|entry| entry.uphold_at).is_some_and(|at| at <= out.now.monotonic);
        if !due {
            return;
        }
        if let Some(entry) = self.entry_mut(unit) {
            entry.uphold_at = None;
        }
        self.set_alarm(unit);
        if !self.is_upheld(unit) {
            return;
        }
        self.start_by_manager(unit, out);
    }

    /// A start that the manager makes of itself, but for timers and restarts (which have limits of their own), counts
    /// for the start limit: units that start each other come to an end. False if it is one too many.
    pub(crate) fn admit(&mut self, unit: UnitId, out: &mut Out<'_>) -> bool {
        let Some(entry) = self.entry_mut(unit) else { return true };
        if entry.trigger.is_some() || entry.is_restarting() {
            return true;
        }
        let definition = std::sync::Arc::clone(&entry.unit);
        let (limits, at) = (&definition.unit, out.now.monotonic);
        let has_limit = !limits.start_limit_interval.is_zero() && limits.start_limit_burst > 0;
        let passes = if has_limit || entry.service().is_some() {
            entry.restarts().admit(limits, at)
        } else {
            entry.restarts().admit_at_once(at)
        };
        if passes {
            return true;
        }
        self.give_up(unit, &definition, out);
        false
    }

    fn give_up(&mut self, unit: UnitId, definition: &Unit, out: &mut Out<'_>) {
        let name = &definition.name;
        let text = restart::limit_hit(name);
        out.log(Level::Warning, name, None, Some(message::UNIT_FAILED), text);
        self.end_of_patience(unit, out);
        self.set(unit, |entry, _| entry.fail(ServiceResult::StartLimitHit), out);
    }

    fn stop_if_unneeded(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry(unit) else { return };
        if !entry.unit.unit.stop_when_unneeded || !self.has_to_stop(unit) || entry.job.is_some() {
            return;
        }
        let in_use = self.graph.related(unit, Relation::IN_USE_BY).any(|other| {
            let at_rest = self.entry(other).is_none_or(|entry| entry.is_at_rest());
            !at_rest || self.job_of(other) == Some(JobType::Start)
        });
        if !in_use {
            self.stop_by_manager(unit, out);
        }
    }

    /// A start that nobody asked for: it gives way to everything, and says so if it cannot be.
    pub(crate) fn start_by_manager(&mut self, unit: UnitId, out: &mut Out<'_>) -> bool {
        self.start_by_manager_in(JobMode::Replace, unit, false, out)
    }

    /// The same in a mode of its own, and perhaps as a job has failed.
    pub(crate) fn start_by_manager_in(
        &mut self,
        mode: JobMode,
        unit: UnitId,
        for_a_job: bool,
        out: &mut Out<'_>,
    ) -> bool {
        if self.shutdown.is_some() {
            return false;
        }
        if matches!(self.job_of(unit), Some(JobType::Start | JobType::Restart)) {
            // It comes anyway, and what it needs was asked for with it; but it may have waited for this.
            self.queue.extend(self.entry(unit).and_then(|entry| entry.job));
            return true;
        }
        self.renew_graph(out);
        let plan = self.plan_start(unit, JobType::Start, Cause::Manager, mode);
        let checked = plan.and_then(|plan| self.check_conflicts(&plan, mode).map(|()| plan));
        match checked {
            Ok(plan) => {
                self.install(Plan { for_a_job, ..plan }, None, out);
                true
            }
            Err(error) => {
                let name = self.name(unit);
                out.log(Level::Notice, &name, None, None, format!("{name}: Not started now: {error}"));
                if let Some(entry) = self.entry_mut(unit) {
                    entry.failure = Some(error.to_string());
                }
                false
            }
        }
    }

    /// A restart that somebody asked a manager before for.
    pub(crate) fn restart_by_manager(&mut self, unit: UnitId, out: &mut Out<'_>) {
        self.renew_graph(out);
        let plan = self.plan_start(unit, JobType::Restart, Cause::Manager, JobMode::Replace);
        match plan.and_then(|plan| self.check_conflicts(&plan, JobMode::Replace).map(|()| plan)) {
            Ok(plan) => self.install(plan, None, out),
            Err(error) => {
                let name = self.name(unit);
                out.log(Level::Notice, &name, None, None, format!("{name}: Not restarted now: {error}"));
            }
        }
    }

    pub(crate) fn stop_by_manager(&mut self, unit: UnitId, out: &mut Out<'_>) {
        self.renew_graph(out);
        let plan = self.plan_stop(unit, Cause::Manager, JobMode::Replace);
        self.install(plan, None, out);
    }

    /// The delay before a restart is over: it becomes a job, as every start.
    pub(crate) fn restart_due(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let Some(service) = self.entry_mut(unit).and_then(|entry| entry.service_mut()) else { return };
        service.facts.restarts.count += 1;
        service.facts.restarts.step += 1;
        let (count, run) = (service.facts.restarts.count, service.facts.last_run);
        let name = self.name(unit);
        let text = format!("{name}: Scheduled restart job, restart counter is at {count}.");
        out.log(Level::Info, &name, run, Some(message::RESTART_SCHEDULED), text);
        self.try_restart(unit, out);
    }

    /// Another job may stand in the way of a restart, such as the stop of what it needs: then it is tried again when
    /// a job is done.
    fn try_restart(&mut self, unit: UnitId, out: &mut Out<'_>) {
        if self.start_by_manager(unit, out) {
            return;
        }
        if self.shutdown.is_none() && self.jobs.values().any(|job| job.kind.takes_down()) {
            self.put_off.insert(unit);
        } else {
            self.drive(unit, ServiceEvent::Stop, out);
        }
    }

    /// What the end of a job leaves to do for its unit and for those that it uses.
    pub(crate) fn after_job(&mut self, unit: UnitId, kind: JobType, begun: bool, out: &mut Out<'_>) {
        let waits = self
            .entry(unit)
            .and_then(|entry| entry.service())
            .is_some_and(|service| matches!(service.state, ServiceState::AutoRestart { due: true, .. }));
        let comes = matches!(self.job_of(unit), Some(JobType::Start | JobType::Restart));
        let starts = matches!(kind, JobType::Start | JobType::Restart);
        if starts && !begun && waits && !comes && !self.put_off.contains(&unit) {
            // Its turn never came, and no other will: what it needs is gone. It returns with that.
            self.drive(unit, ServiceEvent::Stop, out);
        }
        for other in std::mem::take(&mut self.put_off) {
            if self.entry(other).is_some_and(|entry| entry.is_restarting()) {
                self.try_restart(other, out);
            }
        }
        if starts {
            let down = |entry: &Entry| entry.is_at_rest() || entry.active() == ActiveState::Deactivating;
            if self.entry(unit).is_some_and(down) {
                self.bound_go_down(unit, out); // What came up beside it, without an order, loses its bond.
            }
            let needed: Vec<UnitId> =
                self.graph.related(unit, Relation::HARD | Relation::SOFT_PULL).collect();
            for other in needed {
                self.stop_if_unneeded(other, out);
            }
        }
        self.check_bond(unit, out);
        self.schedule_uphold(unit, out);
        self.triggers_follow(unit, out);
        self.connection_follows(unit, out);
    }
}
