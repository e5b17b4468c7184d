//! What is known about a service besides its state: its present run, its processes, how they ended.

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::sections::ExitType;
use agentd_unit::{AgentKind, ExecKind, KillMode, NotifyAccess, ServiceSection, ServiceType, Signal, Unit};

use super::Who;
use super::main_process::Search;
use super::notify::Watchdog;
use super::reload::Reloading;
use crate::clock::Monotonic;
use crate::effect::{Effect, KillTarget, Level, Monitor, Spawn, SpawnEnvironment, Trigger};
use crate::event::{ExitStatus, SpawnFailure, SpawnFailureKind};
use crate::ids::{EffectId, InvocationId};
use crate::out::{Ids, Out, message};
use crate::restart::{self, Restarts};
use crate::state::ServiceResult;
use crate::view::ExecStatusView;

/// One process of a run that was asked for and has not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    /// Its name.
    pub(crate) id: EffectId,
    /// Its pid, once it is known to be there.
    pub(crate) pid: Option<u32>,
    pub(crate) kind: ExecKind,
    pub(crate) index: usize,
}

/// One life of a service, from the first command of its start until the last process is gone.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: InvocationId,
    /// The definition that this run lives by, whatever is loaded meanwhile.
    pub(crate) unit: Arc<Unit>,
    pub(crate) main: Option<Process>,
    pub(crate) control: Option<Process>,
    /// The question whether it is empty that is not answered yet.
    pub(crate) awaiting: Option<EffectId>,
    /// It was empty, and nothing was spawned since.
    pub(crate) emptied: bool,
    /// How the last main process ended, as far as this run is concerned.
    pub(crate) main_outcome: ServiceResult,
    pub(crate) main_status: Option<ExitStatus>,
    /// Since when it is over, for the restart delay.
    pub(crate) ended_at: Option<Monotonic>,
    pub(crate) up_since: Option<Monotonic>,
    /// Somebody asked for the stop, so no restart follows.
    pub(crate) stop_asked: bool,
    /// That stop is the first half of a restart.
    pub(crate) for_restart: bool,
    /// It ends by SIGKILL of everything, whatever KillMode says.
    pub(crate) forced: bool,
    /// At least one command was asked for, so the shell holds something for it.
    pub(crate) spawned: bool,
    pub(crate) spawn_failed: bool,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) reload_failed: bool,
    pub(crate) reload: Reloading,
    /// The main process is being looked for, or was found.
    pub(crate) search: Search,
    /// Until when it waits for the jobs of others, as long as it does (`Type=idle`).
    pub(crate) idle_until: Option<Monotonic>,
    /// SIGKILL did not empty it in time: who waits for the stop is to be told.
    pub(crate) unkillable: bool,
    /// What is left was told to abort.
    pub(crate) aborted: bool,
    /// How long it may run.
    pub(crate) runtime_max: Option<Duration>,
    /// Its processes stand still.
    pub(crate) frozen: bool,
    pub(crate) said_unkillable: bool,
    /// Another manager began it, perhaps by another definition.
    pub(crate) taken_over: bool,
    pub(crate) trigger: Option<Box<Trigger>>,
    pub(crate) monitor: Option<Box<Monitor>>,
    /// `NOTIFYACCESS=`: what the service itself has made of `NotifyAccess`.
    pub(crate) notify_access: Option<NotifyAccess>,
    /// A notification of one who may not notify was told of: a flood of them is not to become one of lines.
    pub(crate) told_of_sender: bool,
}

impl Run {
    pub(crate) fn new(
        id: InvocationId,
        unit: Arc<Unit>,
        trigger: Option<Box<Trigger>>,
        monitor: Option<Box<Monitor>>,
    ) -> Self {
        Self {
            id,
            unit,
            main: None,
            control: None,
            awaiting: None,
            emptied: false,
            main_outcome: ServiceResult::Success,
            main_status: None,
            ended_at: None,
            up_since: None,
            stop_asked: false,
            for_restart: false,
            forced: false,
            spawned: false,
            spawn_failed: false,
            watchdog: None,
            reload_failed: false,
            reload: Reloading::default(),
            search: Search::default(),
            idle_until: None,
            unkillable: false,
            aborted: false,
            runtime_max: None,
            frozen: false,
            said_unkillable: false,
            taken_over: false,
            trigger,
            monitor,
            notify_access: None,
            told_of_sender: false,
        }
    }

    /// Draws how long it may run: RuntimeMaxSec, and by chance at most RuntimeRandomizedExtraSec more.
    pub(crate) fn limit_runtime(&mut self, ids: &mut Ids) {
        let Some(body) = self.unit.as_service() else { return };
        let extra = body.service.life.runtime_extra;
        self.runtime_max = body.service.runtime_max.map(|most| most.saturating_add(ids.up_to(extra)));
    }

    pub(crate) fn who(&self, id: EffectId) -> Option<Who> {
        if self.main.is_some_and(|main| main.id == id) {
            Some(Who::Main)
        } else if self.control.is_some_and(|control| control.id == id) {
            Some(Who::Control)
        } else {
            None
        }
    }

    pub(crate) fn process(&mut self, who: Who) -> &mut Option<Process> {
        match who {
            Who::Main => &mut self.main,
            Who::Control => &mut self.control,
        }
    }
}

/// A run whose unit is down while `KillMode` let processes live on. It must be empty before the next one begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leftover {
    pub(crate) run: InvocationId,
    pub(crate) awaiting: EffectId,
}

/// Everything about a service but its state.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Boxed: most units of a machine have none.
    pub(crate) run: Option<Box<Run>>,
    pub(crate) leftover: Option<Leftover>,
    pub(crate) last_run: Option<InvocationId>,
    /// How the main process of the last run that ended had ended.
    pub(crate) last_status: Option<ExitStatus>,
    pub(crate) result: ServiceResult,
    pub(crate) exec_main: Option<ExecStatusView>,
    pub(crate) status_text: Option<String>,
    pub(crate) status_errno: Option<i32>,
    pub(crate) status_bus_error: Option<String>,
    pub(crate) restarts: Restarts,
    pub(crate) restart_delay: Option<Duration>,
    pub(crate) generation: u64,
    /// Why the last command was not executed, for people.
    pub(crate) failure: Option<String>,
}

impl Facts {
    /// The definition that the present run lives by.
    pub(crate) fn unit(&self) -> Option<&Unit> {
        self.run.as_ref().map(|run| &*run.unit)
    }

    /// Its `[Service]`, if a run is there.
    pub(crate) fn section(&self) -> Option<&ServiceSection> {
        self.unit().and_then(Unit::as_service).map(|body| &body.service)
    }

    pub(crate) fn service_type(&self) -> ServiceType {
        self.section().map_or_else(ServiceType::default, |service| service.service_type)
    }

    pub(crate) fn kill_mode(&self) -> KillMode {
        self.section().map_or_else(KillMode::default, |service| service.kill_mode)
    }

    /// How long the present run may last.
    pub(crate) fn runtime_max(&self) -> Option<Duration> {
        self.run.as_ref().and_then(|run| run.runtime_max)
    }

    /// Whether it ends with the last of its processes, and not with the main one (`ExitType=cgroup`).
    pub(crate) fn ends_with_cgroup(&self) -> bool {
        self.section().is_some_and(|service| service.life.exit_type == ExitType::Cgroup)
    }

    pub(crate) fn remain_after_exit(&self) -> bool {
        self.section().is_some_and(|service| service.remain_after_exit)
    }

    /// How many commands a list has. A Python agent has one main command, made by the shell.
    pub(crate) fn commands(&self, kind: ExecKind) -> usize {
        let Some(body) = self.unit().and_then(Unit::as_service) else { return 0 };
        let python = body.agent.as_ref().is_some_and(|agent| agent.kind == AgentKind::Python);
        match kind {
            ExecKind::Start if python => 1,
            ExecKind::Start if body.service.service_type != ServiceType::Oneshot => {
                body.service.exec_start.len().min(1)
            }
            kind => body.service.commands(kind).len(),
        }
    }

    fn ignores_failure(&self, process: Process) -> bool {
        self.section()
            .and_then(|service| service.commands(process.kind).get(process.index))
            .is_some_and(|command| command.ignore_failure)
    }

    /// `SuccessExitStatus` has it.
    fn is_clean(&self, status: ExitStatus) -> bool {
        self.section().is_some_and(|service| restart::has(&service.life.success, status))
    }

    /// Keeps the first thing that went wrong: what follows from it is no news.
    pub(crate) fn worsen(&mut self, result: ServiceResult) {
        if self.result == ServiceResult::Success {
            self.result = result;
        }
    }

    /// When a wait of this length that begins now ends; `None` is for ever.
    pub(crate) fn until(&self, span: Option<Duration>, out: &Out<'_>) -> Option<Monotonic> {
        span.map(|span| out.now.monotonic + span)
    }

    /// Asks for one command to be executed.
    pub(crate) fn spawn(&mut self, kind: ExecKind, index: usize, out: &mut Out<'_>) {
        let id = out.ids.effect();
        let Some(environment) = self.environment(kind) else { return };
        let is_main = kind == ExecKind::Start && !self.is_forking();
        let Some(run) = &mut self.run else { return };
        let process = Process { id, pid: None, kind, index };
        *(if is_main { &mut run.main } else { &mut run.control }) = Some(process);
        run.emptied = false;
        run.spawned = true;
        let (run, unit) = (run.id, Arc::clone(&run.unit));
        // Which sockets it gets is filled in by the manager, who knows the others.
        let (sockets, connection) = (Vec::new(), None);
        let spawn = Spawn { id, run, unit, kind, index, environment, sockets, connection };
        out.push(Effect::Spawn(Box::new(spawn)));
    }

    fn environment(&self, kind: ExecKind) -> Option<SpawnEnvironment> {
        let (run, service) = (self.run.as_ref()?, self.section()?);
        let (is_main, ending) =
            (kind == ExecKind::Start, matches!(kind, ExecKind::Stop | ExecKind::StopPost));
        Some(SpawnEnvironment {
            notify: service.notify_access != NotifyAccess::None,
            watchdog: service.watchdog.filter(|span| is_main && !span.is_zero()),
            main_pid: run.main.and_then(|main| main.pid).filter(|_| !is_main),
            service_result: ending.then_some(self.result),
            exit_status: run.main_status.filter(|_| ending),
            monitor: run.monitor.clone(),
            generation: self.generation,
            trigger: run.trigger.clone(),
        })
    }

    /// Sends a signal to a process or all of the run; those that are stopped go on, so that they can act on it.
    pub(crate) fn kill(&self, target: KillTarget, signal: Signal, out: &mut Out<'_>) {
        if let Some(run) = &self.run {
            let cont = signal != Signal::KILL && signal != Signal::CONT;
            out.push(Effect::Kill { run: run.id, target, signal, cont });
        }
    }

    /// Whether its processes stand still.
    pub(crate) fn is_frozen(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.frozen)
    }

    /// Lets a frozen run go on; signs of life are expected from now.
    pub(crate) fn thaw(&mut self, out: &mut Out<'_>) {
        let Some(run) = self.run.as_mut().filter(|run| run.frozen) else { return };
        run.frozen = false;
        let (run, name) = (run.id, run.unit.name.clone());
        out.push(Effect::Freeze { run, frozen: false });
        out.log(Level::Info, &name, Some(run), None, format!("{name}: Thawed."));
        self.renew_watchdog(out);
    }

    /// Asks when the run is empty, unless it is known to be or the question is open.
    pub(crate) fn await_empty(&mut self, out: &mut Out<'_>) {
        let Some(run) = &mut self.run else { return };
        if !run.emptied && run.awaiting.is_none() {
            let id = out.ids.effect();
            run.awaiting = Some(id);
            out.push(Effect::AwaitEmpty { id, run: run.id });
        }
    }

    /// Whether the stop ends only with the empty cgroup.
    pub(crate) fn must_be_empty(&self) -> bool {
        let forced = self.run.as_ref().is_some_and(|run| run.forced);
        forced || matches!(self.kill_mode(), KillMode::ControlGroup | KillMode::Mixed)
    }

    /// Whether no process that counts is left, so that the stop can go on.
    pub(crate) fn is_gone(&self) -> bool {
        let Some(run) = &self.run else { return true };
        let main_counts = self.must_be_empty() || self.kill_mode() == KillMode::Process;
        run.control.is_none()
            && (run.main.is_none() || !main_counts)
            && (run.emptied || !run.spawned || !self.must_be_empty())
    }

    /// A process is there.
    pub(crate) fn up(&mut self, who: Who, pid: u32, out: &Out<'_>) {
        let Some(run) = &mut self.run else { return };
        run.emptied = false; // Whatever was found empty, was so before this process was known.
        let Some(process) = run.process(who) else { return };
        process.pid = Some(pid);
        if who == Who::Main {
            self.exec_main = Some(ExecStatusView { pid, start: out.now.realtime, exit: None, status: None });
        }
    }

    /// A process has ended: what that means for the unit.
    pub(crate) fn exited(&mut self, who: Who, status: ExitStatus, out: &mut Out<'_>) -> ServiceResult {
        let Some(process) = self.run.as_mut().and_then(|run| run.process(who).take()) else {
            return ServiceResult::Success;
        };
        let daemon = who == Who::Main && self.service_type() != ServiceType::Oneshot;
        let outcome = match status {
            _ if self.ignores_failure(process) || (who == Who::Main && self.is_clean(status)) => {
                ServiceResult::Success
            }
            ExitStatus::Exited(1..=254) if process.kind == ExecKind::Condition => {
                ServiceResult::ExecCondition
            }
            ExitStatus::Unknown if self.run.as_ref().is_some_and(|run| run.stop_asked) => {
                ServiceResult::Success // What it was asked for.
            }
            status => judge(status, daemon),
        };
        if who == Who::Main {
            self.main_ended(status, outcome, out);
        }
        self.log_exit(who, process, status, outcome, out);
        outcome
    }

    /// A command could not be executed: what that means for the unit.
    pub(crate) fn unspawned(&mut self, who: Who, failure: &SpawnFailure, out: &mut Out<'_>) -> ServiceResult {
        let Some(run) = &mut self.run else { return ServiceResult::Success };
        let Some(process) = run.process(who).take() else { return ServiceResult::Success };
        run.spawn_failed = true;
        let (name, id) = (run.unit.name.clone(), run.id);
        let text = format!("{name}: {} not executed: {}", process.kind, failure.message);
        out.log(Level::Error, &name, Some(id), None, text);
        self.failure = Some(failure.message.clone());
        let outcome = match failure.kind {
            SpawnFailureKind::Trust => ServiceResult::Trust,
            SpawnFailureKind::Resources => ServiceResult::Resources,
            SpawnFailureKind::Step { .. } if self.ignores_failure(process) => ServiceResult::Success,
            SpawnFailureKind::Step { .. } => ServiceResult::ExitCode,
        };
        if let (Who::Main, SpawnFailureKind::Step { exit_status }) = (who, failure.kind) {
            let start = out.now.realtime;
            self.exec_main = Some(ExecStatusView { pid: 0, start, exit: None, status: None });
            self.main_ended(ExitStatus::Exited(exit_status), outcome, out);
        } else if let (Who::Main, Some(run)) = (who, &mut self.run) {
            run.main_outcome = outcome;
            run.ended_at = Some(out.now.monotonic);
        }
        outcome
    }

    fn main_ended(&mut self, status: ExitStatus, outcome: ServiceResult, out: &Out<'_>) {
        if let Some(exec) = &mut self.exec_main {
            exec.exit = Some(out.now.realtime);
            exec.status = Some(status);
        }
        if let Some(run) = &mut self.run {
            run.main_outcome = outcome;
            run.main_status = Some(status);
            run.ended_at = Some(out.now.monotonic);
        }
    }

    fn log_exit(
        &self,
        who: Who,
        process: Process,
        status: ExitStatus,
        outcome: ServiceResult,
        out: &mut Out<'_>,
    ) {
        let Some(run) = &self.run else { return };
        let (what, bad) = match who {
            Who::Main => ("Main process".to_owned(), Level::Notice),
            Who::Control => (format!("Control process ({})", process.kind), Level::Warning),
        };
        let level = match outcome {
            ServiceResult::Success if who == Who::Main => Level::Info,
            ServiceResult::Success => Level::Debug,
            _ => bad,
        };
        let name = &run.unit.name;
        let text = format!("{name}: {what} exited, {status}");
        out.log(level, name, Some(run.id), Some(message::PROCESS_EXIT), text);
    }
}

/// What the end of a process says. SIGHUP, SIGINT, SIGTERM and SIGPIPE are clean ends of a daemon but not of a
/// command, systemd.service(5) "SuccessExitStatus".
fn judge(status: ExitStatus, daemon: bool) -> ServiceResult {
    const SIGPIPE: i32 = 13;
    match status {
        ExitStatus::Exited(0) => ServiceResult::Success,
        ExitStatus::Exited(_) | ExitStatus::Unknown => ServiceResult::ExitCode,
        ExitStatus::Killed(signal)
            if daemon
                && ([Signal::HUP, Signal::INT, Signal::TERM].contains(&signal)
                    || signal.number() == SIGPIPE) =>
        {
            ServiceResult::Success
        }
        ExitStatus::Killed(_) => ServiceResult::Signal,
        ExitStatus::Dumped(_) => ServiceResult::CoreDump,
    }
}
