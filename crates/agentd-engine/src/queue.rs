//! The job queue: how jobs get in, when their turn comes, how they end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use agentd_unit::UnitName;

use crate::effect::{Effect, JobResult, Level, RequestError};
use crate::event::{JobKind, JobMode};
use crate::graph::{Relation, UnitId};
use crate::ids::{JobId, RequestId};
use crate::job::{Cause, Check, Job, JobType};
use crate::manager::{Manager, Work};
use crate::out::Out;
use crate::state::ActiveState;
use crate::transaction::Plan;

impl Manager {
    /// Whether a plan meets jobs that it may not push aside.
    pub(crate) fn check_conflicts(&self, plan: &Plan, mode: JobMode) -> Result<(), RequestError> {
        for (unit, kind) in &plan.jobs {
            let Some(old) = self.job_of(*unit) else { continue };
            let clash = old.merge(*kind).is_none();
            let gives_way = plan.cause == Cause::Manager && old == JobType::Stop;
            let job = self.entry(*unit).and_then(|entry| entry.job).and_then(|id| self.jobs.get(&id));
            let stays = job.is_some_and(|job| job.irreversible);
            // Who only wants to know keeps nothing from going down, least of all in a shutdown.
            let asks = *kind == JobType::VerifyActive;
            if clash && (mode == JobMode::Fail || gives_way || stays || asks) {
                return Err(RequestError::Conflict(self.name(*unit), old.kind().as_str()));
            }
        }
        Ok(())
    }

    /// Puts a whole plan into the queue. Nothing of it has begun before all of it is there.
    pub(crate) fn install(&mut self, plan: Plan, request: Option<(RequestId, UnitName)>, out: &mut Out<'_>) {
        self.give_up_orders(&plan, out);
        self.note_dropped(&plan, out);
        let (anchor, order) = (plan.anchor, self.in_order(&plan.jobs));
        for unit in &order {
            self.push_aside(*unit, plan.jobs[unit], out);
        }
        for unit in order {
            self.install_job(unit, plan.jobs[&unit], &plan, out);
        }
        let Some((request, name)) = request else { return };
        match self.entry(anchor).and_then(|entry| entry.job).and_then(|id| self.jobs.get_mut(&id)) {
            Some(job) => {
                let job_id = job.id;
                job.requests.push((request, name));
                out.push(Effect::Accepted { request, job: job_id });
            }
            None => out.push(Effect::Finished { request, unit: name, result: JobResult::Done }),
        }
    }

    fn give_up_orders(&mut self, plan: &Plan, out: &mut Out<'_>) {
        for (later, earlier, path) in &plan.give_up {
            if self.graph.give_up(*later, *earlier) {
                // Jobs that are there already may have waited for just this order.
                let jobs = [*later, *earlier].map(|unit| self.entry(unit).and_then(|entry| entry.job));
                self.queue.extend(jobs.into_iter().flatten());
                let (later, earlier) = (self.name(*later), self.name(*earlier));
                let path: Vec<String> = self.names(path).iter().map(ToString::to_string).collect();
                let path = path.join(" -> ");
                let text = format!("{later}: Ordering cycle {path}; {later} does not wait for {earlier}.");
                out.log(Level::Warning, &later, None, None, text);
            }
        }
    }

    /// Units that were wanted and cannot be: said once a reason, and kept for `status`.
    fn note_dropped(&mut self, plan: &Plan, out: &mut Out<'_>) {
        for (unit, error) in &plan.dropped {
            let text = error.to_string();
            let Some(entry) = self.entry_mut(*unit) else { continue };
            let (is_news, name) = (entry.failure.as_ref() != Some(&text), entry.unit.name.clone());
            entry.failure = Some(text.clone());
            if matches!(error, RequestError::Cycle(path) if path.contains(&name)) {
                self.fail_unstarted(*unit, out);
            }
            if is_news {
                out.log(Level::Error, &name, None, None, format!("{name}: Not started: {text}"));
            }
        }
    }

    /// Jobs of a plan in the order in which they can begin, ties by name: their numbers follow it.
    fn in_order(&self, jobs: &BTreeMap<UnitId, JobType>) -> Vec<UnitId> {
        let mut waits: BTreeMap<UnitId, usize> = jobs.keys().map(|unit| (*unit, 0)).collect();
        let mut unlocks: BTreeMap<UnitId, Vec<UnitId>> = BTreeMap::new();
        for (unit, kind) in jobs {
            for edge in self.graph.edges(*unit) {
                let Some(other) = jobs.get(&edge.other) else { continue };
                if self.stands_before(*unit, *kind, edge.other, *other, edge.relation) {
                    *waits.entry(*unit).or_default() += 1;
                    unlocks.entry(edge.other).or_default().push(*unit);
                }
            }
        }
        let key = |unit: UnitId| Reverse((self.graph.rank(unit), unit));
        let mut free: BinaryHeap<_> =
            waits.iter().filter(|(_, n)| **n == 0).map(|(unit, _)| key(*unit)).collect();
        let mut order = Vec::with_capacity(jobs.len());
        while let Some(Reverse((_, unit))) = free.pop() {
            order.push(unit);
            for later in unlocks.remove(&unit).into_iter().flatten() {
                if let Some(n) = waits.get_mut(&later) {
                    *n -= 1;
                    if *n == 0 {
                        free.push(key(later));
                    }
                }
            }
        }
        // Restarts of a chain wait for each other both ways (down, then up): they come last, by name.
        let mut rest: Vec<UnitId> = waits.into_iter().filter(|(_, n)| *n > 0).map(|(unit, _)| unit).collect();
        rest.sort_by_key(|unit| self.graph.rank(*unit));
        order.extend(rest);
        order
    }

    /// Whether a job must wait for the job of a neighbour, by the order of the two units.
    ///
    /// What is stopped goes before what stays or comes; what comes up goes in order; and what stands against a unit
    /// is gone before that starts.
    fn stands_before(
        &self,
        unit: UnitId,
        kind: JobType,
        other: UnitId,
        other_kind: JobType,
        relation: Relation,
    ) -> bool {
        let after = relation.any(Relation::AFTER) && self.graph.stands(unit, other);
        let before = relation.any(Relation::BEFORE) && self.graph.stands(other, unit);
        (after && !kind.takes_down())
            || (before && other_kind.takes_down())
            || (relation.any(Relation::AGAINST) && kind == JobType::Start && other_kind == JobType::Stop)
    }

    fn push_aside(&mut self, unit: UnitId, kind: JobType, out: &mut Out<'_>) {
        let Some(old) = self.entry(unit).and_then(|entry| entry.job) else { return };
        if self.job_of(unit).is_some_and(|old| old.merge(kind).is_none()) {
            self.finish(old, JobResult::Canceled, out);
        }
    }

    fn install_job(&mut self, unit: UnitId, kind: JobType, plan: &Plan, out: &mut Out<'_>) {
        let hurry = plan.cause == Cause::Person && unit == plan.anchor;
        let id = match self.entry(unit).and_then(|entry| entry.job) {
            Some(id) => id,
            None => out.ids.job(),
        };
        let timeout = self.entry(unit).and_then(|entry| entry.unit.unit.job_timeout);
        let until = timeout.map(|span| out.now.monotonic + span);
        let job = self.jobs.entry(id).or_insert_with(|| Job {
            id,
            unit,
            kind,
            shown: kind.kind(),
            running: false,
            cause: plan.cause,
            hurry,
            alone: plan.alone,
            bare: plan.bare,
            irreversible: plan.irreversible,
            for_a_job: plan.for_a_job,
            check: Check::Due,
            until,
            running_until: None,
            requests: Vec::new(),
            waiters: Vec::new(),
            cursor: 0,
        });
        let merged = job.kind.merge(kind).unwrap_or(kind);
        // A reload that runs may have read the old files already: the new one is another.
        if merged != job.kind || merged == JobType::Reload {
            job.kind = merged;
            job.shown = merged.kind();
            (job.running, job.running_until) = (false, None);
            job.check = Check::Due;
            job.cursor = 0;
        }
        job.hurry |= hurry;
        job.alone |= plan.alone;
        job.bare |= plan.bare;
        job.irreversible |= plan.irreversible;
        job.for_a_job &= plan.for_a_job;
        if plan.cause == Cause::Person {
            job.cause = Cause::Person;
        }
        if let Some(entry) = self.entry_mut(unit) {
            entry.job = Some(id);
        }
        if kind == JobType::Stop && plan.cause == Cause::Person {
            self.returns_no_more(unit); // What a person stops stays down.
        }
        if matches!(kind, JobType::Start | JobType::Restart) && plan.cause == Cause::Person {
            self.repaired_by_hand(unit);
        }
        self.queue.insert(id);
        self.set_job_alarm(id);
    }

    /// Begins a job if nothing stands before it.
    pub(crate) fn examine(&mut self, id: JobId, out: &mut Out<'_>) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.running || matches!(job.check, Check::Asked(..)) {
            return;
        }
        if let Some((blocker, place)) = self.blocker(job) {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.cursor = place;
            }
            if let Some(blocker) = self.jobs.get_mut(&blocker) {
                blocker.waiters.push(id);
            }
            return;
        }
        self.run_job(id, out);
    }

    /// A job that must be done before this one, and where in the list of neighbours it was found. The search goes on
    /// from where the last one was, and round: so a unit with thousands of neighbours is not searched for each anew.
    fn blocker(&self, job: &Job) -> Option<(JobId, usize)> {
        if job.alone {
            return None;
        }
        let edges = self.graph.edges(job.unit);
        let start = job.cursor.min(edges.len());
        let places = (start..edges.len()).chain(0..start);
        places.into_iter().find_map(|place| {
            let edge = edges[place];
            let other = self.jobs.get(&self.entry(edge.other)?.job?)?;
            let waits = self.stands_before(job.unit, job.kind, edge.other, other.kind, edge.relation);
            waits.then_some((other.id, place))
        })
    }

    /// The units that a job waits for.
    pub(crate) fn waits_for(&self, job: &Job) -> Vec<UnitName> {
        let waits = |other: UnitId, relation: Relation| {
            let other_job = self.entry(other)?.job.and_then(|id| self.jobs.get(&id))?;
            let stands = self.stands_before(job.unit, job.kind, other, other_job.kind, relation);
            (!job.alone && stands).then_some(())
        };
        let edges = self.graph.edges(job.unit).iter();
        edges.filter(|e| waits(e.other, e.relation).is_some()).map(|e| self.name(e.other)).collect()
    }

    /// The turn of a job has come.
    fn run_job(&mut self, id: JobId, out: &mut Out<'_>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let (unit, kind) = (job.unit, job.kind);
        let Some(active) = self.entry(unit).map(|entry| entry.active()) else { return };
        match kind {
            JobType::Start => self.run_start(id, unit, active, out),
            JobType::Stop => match active {
                ActiveState::Inactive | ActiveState::Failed => self.finish(id, JobResult::Done, out),
                _ => self.run_stop(id, unit, out),
            },
            JobType::Restart => match active {
                ActiveState::Inactive | ActiveState::Failed => self.start_again(id, out),
                _ => self.run_stop(id, unit, out),
            },
            JobType::Reload => match active {
                ActiveState::Active => self.run_reload(id, unit, out),
                ActiveState::Reloading | ActiveState::Activating => {} // It looks again when that is over.
                _ => self.finish(id, JobResult::Skipped, out),
            },
            JobType::VerifyActive => match active {
                ActiveState::Active | ActiveState::Reloading => self.finish(id, JobResult::Done, out),
                ActiveState::Activating => {} // It looks again when that is over.
                _ => self.finish(id, JobResult::Failed, out),
            },
        }
    }

    /// The stop of a restart is done: now it is a start, and who waited for the stop looks again.
    pub(crate) fn start_again(&mut self, id: JobId, out: &mut Out<'_>) {
        if self.shutdown.is_some() {
            self.finish(id, JobResult::Canceled, out);
            return;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.kind = JobType::Start;
        (job.running, job.running_until) = (false, None);
        job.check = Check::Due;
        job.cursor = 0;
        let (unit, cause) = (job.unit, job.cause);
        let waiters = std::mem::take(&mut job.waiters);
        self.queue.extend(waiters);
        self.queue.insert(id);
        self.set_job_alarm(id);
        if self.entry(unit).is_some_and(|entry| entry.newer.is_some()) {
            self.plan_by_newest(id, unit, cause, out);
        }
    }

    /// A start goes by a newer definition than when it was asked for: what that needs comes with it.
    pub(crate) fn plan_by_newest(&mut self, id: JobId, unit: UnitId, cause: Cause, out: &mut Out<'_>) {
        self.take_up_newest(unit);
        self.renew_graph(out);
        let plan = self.plan_start(unit, JobType::Start, cause, JobMode::Replace);
        match plan.and_then(|plan| self.check_conflicts(&plan, JobMode::Replace).map(|()| plan)) {
            Ok(plan) => {
                let for_a_job = self.jobs.get(&id).is_some_and(|job| job.for_a_job);
                self.install(Plan { for_a_job, ..plan }, None, out);
            }
            Err(error) => {
                if let Some(entry) = self.entry_mut(unit) {
                    entry.failure = Some(error.to_string());
                }
                self.finish(id, JobResult::Failed, out);
            }
        }
    }

    /// Ends a job: its callers are answered once, and who waited for it looks again.
    pub(crate) fn finish(&mut self, id: JobId, result: JobResult, out: &mut Out<'_>) {
        let Some(job) = self.jobs.remove(&id) else { return };
        self.queue.remove(&id);
        self.job_alarms.set(job.unit, None);
        if let Some(entry) = self.entry_mut(job.unit) {
            entry.job = None;
        }
        if job.shown == JobKind::Restart {
            self.touch(job.unit);
        }
        self.say_finished(&job, result, out);
        for (request, unit) in &job.requests {
            out.push(Effect::Finished { request: *request, unit: unit.clone(), result });
        }
        self.queue.extend(&job.waiters);
        let (unit, kind, begun) = (job.unit, job.kind, job.running);
        // That the unit itself has failed starts them by itself; here nothing of it has ended.
        if matches!(result, JobResult::Dependency | JobResult::Timeout) && !job.for_a_job {
            self.work.push_back(Work::JobFailed(unit));
        }
        self.work.push_back(Work::Ended { unit, kind, begun, result });
    }

    /// What the end of a job means for the jobs that build on it.
    pub(crate) fn ended(&mut self, unit: UnitId, kind: JobType, result: JobResult, out: &mut Out<'_>) {
        if result == JobResult::Done {
            return;
        }
        match kind {
            JobType::Start | JobType::VerifyActive => self.fail_dependents(unit, Relation::NEEDED_BY, out),
            JobType::Stop => self.fail_dependents(unit, Relation::AGAINST, out),
            JobType::Restart | JobType::Reload => {}
        }
    }

    /// Starts that have not begun cannot, now that this unit did not come up (or did not go down).
    fn fail_dependents(&mut self, unit: UnitId, relation: Relation, out: &mut Out<'_>) {
        let others: Vec<UnitId> = self.graph.related(unit, relation).collect();
        let reason = format!(
            "{} {}",
            self.name(unit),
            if relation == Relation::AGAINST { "is still up" } else { "failed to start" }
        );
        for other in others {
            let Some(id) = self.entry(other).and_then(|entry| entry.job) else { continue };
            let waits = self
                .jobs
                .get(&id)
                .is_some_and(|job| job.kind == JobType::Start && !job.running && !job.alone && !job.bare);
            if waits {
                self.fail_for(id, other, unit, reason.clone(), out);
            }
        }
    }

    /// A start fails because of another unit, and is made up for when that comes up by itself.
    pub(crate) fn fail_for(
        &mut self,
        id: JobId,
        unit: UnitId,
        cause: UnitId,
        reason: String,
        out: &mut Out<'_>,
    ) {
        if let Some(entry) = self.entry_mut(unit) {
            entry.failure = Some(reason);
            entry.returns_with.insert(cause);
        }
        self.touch(unit);
        self.finish(id, JobResult::Dependency, out);
    }

    /// A start that failed for a unit is made up for by the manager alone: who repairs that unit starts what he wants.
    /// What went down with it was up, and returns all the same.
    fn repaired_by_hand(&mut self, unit: UnitId) {
        if self.entry(unit).is_some_and(|entry| entry.is_restarting()) {
            return; // It comes by itself, and is hastened.
        }
        let waits = |other: &UnitId| {
            self.entry(*other)
                .is_some_and(|other| other.failure.is_some() && other.returns_with.contains(&unit))
        };
        let waiting: Vec<UnitId> = self.graph.related(unit, Relation::NEEDED_BY).filter(waits).collect();
        for other in waiting {
            if let Some(entry) = self.entry_mut(other) {
                entry.returns_with.remove(&unit);
            }
            self.touch(other);
        }
    }

    /// It does not return with what it went down with, or waited for.
    pub(crate) fn returns_no_more(&mut self, unit: UnitId) {
        let Some(entry) = self.entry_mut(unit).filter(|entry| !entry.returns_with.is_empty()) else { return };
        entry.returns_with.clear();
        self.touch(unit);
    }
}
