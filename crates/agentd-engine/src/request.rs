//! What people ask: checked against the state, made into a transaction, answered exactly once.

use agentd_unit::{LoadState, Signal, UnitName};

use crate::effect::{Effect, JobResult, KillTarget, Level, RequestError};
use crate::event::{JobKind, JobMode, KillWhom, Request};
use crate::graph::UnitId;
use crate::ids::{JobId, RequestId};
use crate::job::{Cause, JobType};
use crate::manager::Manager;
use crate::out::Out;
use crate::transaction::{Plan, is_left_alone};
use crate::unit::Entry;

/// What a request comes to before any job is made.
enum Verdict {
    Plan(Box<Plan>),
    /// Nothing has to be done.
    Already(JobResult),
}

impl Manager {
    pub(crate) fn request(&mut self, id: RequestId, request: Request, out: &mut Out<'_>) {
        let result = match request {
            Request::Job { kind, unit, mode } => return self.request_job(id, kind, unit, mode, out),
            Request::Kill { unit, whom, signal } => self.kill(&unit, whom, signal, out),
            Request::Freeze { unit, frozen } => self.freeze(&unit, frozen, out),
            Request::ResetFailed { unit } => self.reset_failed(unit.as_ref(), out),
            Request::Cancel { job } => self.cancel(job, out),
            Request::Shutdown { kind } => {
                self.begin_shutdown(kind, out);
                Ok(())
            }
        };
        match result {
            Ok(()) => out.push(Effect::Done { request: id }),
            Err(error) => out.push(Effect::Refused { request: id, error }),
        }
    }

    fn request_job(
        &mut self,
        request: RequestId,
        kind: JobKind,
        name: UnitName,
        mode: JobMode,
        out: &mut Out<'_>,
    ) {
        self.renew_graph(out);
        match self.judge(kind, &name, mode) {
            Ok(Verdict::Plan(plan)) => {
                if mode == JobMode::Isolate {
                    self.leave_down(&plan);
                }
                self.install(*plan, Some((request, name)), out);
            }
            Ok(Verdict::Already(result)) => {
                if let Some(unit) = self.id(&name).filter(|_| kind == JobKind::Stop) {
                    self.returns_no_more(unit); // What a person stops stays down.
                }
                out.push(Effect::Finished { request, unit: name, result });
            }
            Err(error) => {
                self.note_refusal(&name, &error, out);
                out.push(Effect::Refused { request, error });
            }
        }
    }

    fn note_refusal(&mut self, name: &UnitName, error: &RequestError, out: &mut Out<'_>) {
        let about_state = matches!(
            error,
            RequestError::LoadFailed(..)
                | RequestError::Masked(_)
                | RequestError::RequirementMissing { .. }
                | RequestError::Cycle(_)
        );
        let Some(entry) = self.id(name).and_then(|id| self.entry_mut(id)).filter(|_| about_state) else {
            return;
        };
        entry.failure = Some(error.to_string());
        let id = entry.unit.name.clone();
        out.log(Level::Error, &id, None, None, format!("{id}: Not started: {error}"));
    }

    /// What lies down and is not part of what is isolated does not return with anything.
    fn leave_down(&mut self, plan: &Plan) {
        let stays = |entry: &Entry| entry.is_at_rest() && !is_left_alone(entry);
        let down = |unit: &UnitId| !plan.jobs.contains_key(unit) && self.entry(*unit).is_some_and(stays);
        for unit in self.ids().filter(down).collect::<Vec<_>>() {
            self.returns_no_more(unit);
        }
    }

    /// What is to be done for this wish, given how things stand.
    fn judge(&self, kind: JobKind, name: &UnitName, mode: JobMode) -> Result<Verdict, RequestError> {
        let unit = self.id(name).ok_or_else(|| RequestError::NotFound(name.clone()))?;
        let Some(entry) = self.entry(unit) else { return Err(RequestError::NotFound(name.clone())) };
        let at_rest = entry.is_at_rest();
        if at_rest && entry.newest().load == LoadState::NotFound && entry.job.is_none() {
            return Err(RequestError::NotFound(name.clone()));
        }
        self.check_manual(unit, kind)?;
        let stops = matches!(kind, JobKind::Stop | JobKind::Restart | JobKind::TryRestart);
        if entry.is_perpetual() && (stops || kind == JobKind::ReloadOrRestart) {
            return Err(RequestError::NotApplicable(name.clone(), "it is there as long as the manager is"));
        }
        if self.shutdown.is_some() && kind != JobKind::Stop && kind != JobKind::VerifyActive {
            return Err(RequestError::ShuttingDown);
        }
        if mode == JobMode::Isolate && kind != JobKind::Start {
            return Err(RequestError::NotApplicable(name.clone(), "only a start can isolate"));
        }
        let plan = match kind {
            JobKind::TryRestart if at_rest => return Ok(Verdict::Already(JobResult::Skipped)),
            JobKind::Stop if at_rest && entry.job.is_none() => return Ok(Verdict::Already(JobResult::Done)),
            JobKind::Start => self.plan_start(unit, JobType::Start, Cause::Person, mode)?,
            JobKind::ReloadOrRestart if entry.is_up() && self.can_reload(unit) => {
                self.plan_reload(unit, mode)
            }
            JobKind::Restart | JobKind::TryRestart | JobKind::ReloadOrRestart => {
                self.plan_start(unit, JobType::Restart, Cause::Person, mode)?
            }
            JobKind::Stop => self.plan_stop(unit, Cause::Person, mode),
            JobKind::Reload => self.judge_reload(unit, name, mode)?,
            JobKind::VerifyActive => self.plan_verify(unit, mode),
        };
        self.check_conflicts(&plan, mode)?;
        let idle = entry.is_up() && entry.job.is_none();
        if kind == JobKind::Start && idle && plan.jobs.len() == 1 {
            return Ok(Verdict::Already(JobResult::Done));
        }
        Ok(Verdict::Plan(Box::new(plan)))
    }

    fn check_manual(&self, unit: UnitId, kind: JobKind) -> Result<(), RequestError> {
        let Some(entry) = self.entry(unit) else { return Ok(()) };
        let section = &entry.unit.unit;
        let refused = match kind {
            JobKind::Start => section.refuse_manual_start,
            JobKind::Stop => section.refuse_manual_stop,
            JobKind::Restart | JobKind::TryRestart => {
                section.refuse_manual_start || section.refuse_manual_stop
            }
            JobKind::Reload | JobKind::ReloadOrRestart | JobKind::VerifyActive => false,
        };
        if refused { Err(RequestError::ManualRefused(entry.unit.name.clone())) } else { Ok(()) }
    }

    fn judge_reload(&self, unit: UnitId, name: &UnitName, mode: JobMode) -> Result<Plan, RequestError> {
        let Some(entry) = self.entry(unit) else { return Err(RequestError::NotFound(name.clone())) };
        if !self.can_reload(unit) {
            return Err(RequestError::NotApplicable(name.clone(), "it has no ExecReload"));
        }
        if entry.is_at_rest() {
            return Err(RequestError::NotApplicable(name.clone(), "it is not active"));
        }
        if entry.service().is_some_and(|service| service.facts.is_frozen()) {
            return Err(RequestError::NotApplicable(name.clone(), "it is frozen; thaw it first"));
        }
        Ok(self.plan_reload(unit, mode))
    }

    fn kill(
        &mut self,
        name: &UnitName,
        whom: KillWhom,
        signal: Signal,
        out: &mut Out<'_>,
    ) -> Result<(), RequestError> {
        let unit = self.id(name).ok_or_else(|| RequestError::NotFound(name.clone()))?;
        let nobody = || RequestError::NoProcess(name.clone());
        let facts = &self.entry(unit).and_then(|entry| entry.service()).ok_or_else(nobody)?.facts;
        let Some(run) = &facts.run else {
            // What KillMode left behind can still be told to go.
            let leftover = facts.leftover.filter(|_| whom == KillWhom::All).ok_or_else(nobody)?;
            out.push(Effect::Kill { run: leftover.run, target: KillTarget::All, signal, cont: false });
            return Ok(());
        };
        let target = match whom {
            KillWhom::All if run.spawned => KillTarget::All,
            KillWhom::All => return Err(nobody()),
            KillWhom::Main => KillTarget::Process(run.main.ok_or_else(nobody)?.id),
            KillWhom::Control => KillTarget::Process(run.control.ok_or_else(nobody)?.id),
        };
        out.push(Effect::Kill { run: run.id, target, signal, cont: false });
        Ok(())
    }

    fn reset_failed(&mut self, name: Option<&UnitName>, out: &mut Out<'_>) -> Result<(), RequestError> {
        let units: Vec<UnitId> = match name {
            Some(name) => vec![self.id(name).ok_or_else(|| RequestError::NotFound(name.clone()))?],
            None => self.ids().collect(),
        };
        for unit in units {
            self.clear_failure(unit, out);
        }
        self.forget_the_gone();
        self.look_round(out); // What was given up may be upheld again.
        Ok(())
    }

    fn cancel(&mut self, job: JobId, out: &mut Out<'_>) -> Result<(), RequestError> {
        let Some(unit) = self.jobs.get(&job).map(|job| job.unit) else {
            return Err(RequestError::NoJob(job));
        };
        if self.shutdown.is_some() {
            return Err(RequestError::ShuttingDown);
        }
        self.returns_no_more(unit); // What a person has called off does not come by itself.
        self.finish(job, JobResult::Canceled, out);
        Ok(())
    }
}
