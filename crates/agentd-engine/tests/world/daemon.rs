//! Fake daemons: they fork late, write a wrong or a stale number, never write it, die after the fork; and the laws for
//! them, and for services that are idle.

use std::collections::BTreeMap;
use std::time::Duration;

use agentd_engine::{
    ClaimedMain, EffectId, Event, ExitStatus, InvocationId, MainProcess, MainSource, Monotonic, Notification,
    Sender, Spawn, UnitView,
};
use agentd_unit::{ExecKind, ServiceType, Signal, UnitName};

use super::invariants::{Verdict, is_at_rest, law};
use super::process::{Mischief, Process, RunInfo, ready};
use super::{Happening, World};

/// What is there of a daemon.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Daemon {
    /// The command that is to leave it behind, and what then goes wrong with it.
    parent: Option<(EffectId, Mischief)>,
    /// Its process, by the name under which it was born.
    pub(super) born: Option<EffectId>,
    /// Its PID file has its number.
    written: bool,
    /// It says itself that this is its main process.
    claimed: bool,
    /// When the manager hears the last answer to its question which process it is.
    answered: Monotonic,
}

/// Names of processes that the manager has no name for: none of its own is so high.
const UNNAMED: u64 = 1 << 40;

impl World {
    /// The command of a forking service runs: it ends soon, and leaves a daemon behind if it ends well.
    pub(super) fn fork(&mut self, spawn: &Spawn, mischief: Mischief, delay: Duration, process: &mut Process) {
        let dice = &mut process.dice;
        let fails = mischief == Mischief::Fails && dice.once_in(2);
        let hangs = mischief == Mischief::Hangs && dice.once_in(2);
        let lasts = if hangs { 100_000 } else { dice.below(400) };
        let run = spawn.run;
        self.run_info(run, |info| info.daemon.parent = Some((spawn.id, mischief)));
        let death = Happening::Death(spawn.id, ExitStatus::Exited(u8::from(fails)));
        self.after(delay + Duration::from_millis(lasts), death);
    }

    /// If this was such a command, its daemon is born now.
    pub(super) fn leave_daemon(&mut self, id: EffectId, run: InvocationId, status: ExitStatus) {
        let Some(info) = self.runs.get_mut(&run) else { return };
        let Some((_, mischief)) = info.daemon.parent.take_if(|(parent, _)| *parent == id) else { return };
        if !status.is_success() {
            return;
        }
        let mut dice = info.dice.clone();
        info.dice.below(2);
        let (unit, born) = (info.unit.clone(), EffectId(UNNAMED + self.effects_seen.len() as u64));
        self.effects_seen.insert(born);
        self.run_info(run, |info| info.daemon.born = Some(born));
        if mischief == Mischief::Late || dice.once_in(3) {
            self.after(Duration::from_millis(dice.below(100)), Happening::PidFile(run, false));
        }
        let late = if mischief == Mischief::Late { 6_000 } else { 300 };
        let span = if dice.once_in(2) { Duration::ZERO } else { Duration::from_millis(dice.below(late)) };
        match mischief {
            Mischief::Hangs => {}
            _ if span.is_zero() => self.run_info(run, |info| info.daemon.written = true),
            _ => self.after(span, Happening::PidFile(run, true)),
        }
        if matches!(mischief, Mischief::Fails | Mischief::Killed) {
            let killed = mischief == Mischief::Killed;
            let status = match dice.below(3) {
                0 => ExitStatus::Unknown,
                _ if killed => ExitStatus::Killed(Signal::KILL),
                _ => ExitStatus::Exited(3),
            };
            self.after(Duration::from_millis(dice.below(2000)), Happening::Death(born, status));
        }
        let process = Process {
            run,
            unit,
            kind: ExecKind::Start,
            is_main: true,
            alive: true,
            heard: false,
            named: false,
            stubborn: mischief == Mischief::Stubborn,
            beat: None,
            told_at: self.now.monotonic,
            dice,
        };
        self.processes.insert(born, process);
    }

    /// A service says that another process is its main one from now on, and the one that was ends soon.
    pub(super) fn hand_over(&mut self, id: EffectId) {
        let Some(old) = self.processes.get(&id).filter(|process| process.alive && process.named) else {
            return;
        };
        let (run, unit, stubborn, mut dice) = (old.run, old.unit.clone(), old.stubborn, old.dice.clone());
        if self.runs.get(&run).is_none_or(|info| info.daemon.born.is_some() || info.released) {
            return;
        }
        if let Some(old) = self.processes.get_mut(&id) {
            old.heard = true; // Whether anybody hears of its end is no matter any more.
        }
        let born = EffectId(UNNAMED + self.effects_seen.len() as u64);
        self.effects_seen.insert(born);
        self.run_info(run, |info| {
            info.heard_empty = false;
            (info.daemon.born, info.daemon.written, info.daemon.claimed) = (Some(born), true, true);
        });
        let ends = Duration::from_millis(dice.below(1000));
        self.after(ends, Happening::Death(id, ExitStatus::Exited(0)));
        let child = Process {
            run,
            unit,
            kind: ExecKind::Start,
            is_main: true,
            alive: true,
            heard: false,
            named: false,
            stubborn,
            beat: None,
            told_at: self.now.monotonic,
            dice,
        };
        self.processes.insert(born, child);
        let main = Some(ClaimedMain { pid: 5000 + id.0 as u32, privileged: false });
        let notification = Notification { main, ..Notification::default() };
        self.event(Event::Notified { run, sender: Sender::Process(id), notification });
    }

    /// The end of a process is told that handed its work over, and the manager was told before to whom.
    pub(super) fn judge_claim(&mut self, event: &Event) {
        let Event::Exited { id, run, .. } = event else { return };
        let Some(daemon) = self.runs.get(run).map(|info| info.daemon).filter(|daemon| daemon.claimed) else {
            return;
        };
        let view = self.manager.unit_of_run(*run).and_then(|unit| self.manager.unit(unit));
        let Some(view) = view.filter(|view| view.sub == "running" && view.run == Some(*run)) else { return };
        let old = view.main.is_some_and(|(main, _)| main == *id);
        let born = daemon.born.map(|born| self.renamed.get(&born).copied().unwrap_or(born));
        let is_other = born.is_some_and(|born| born != *id);
        let lives = born.and_then(|born| self.processes.get(&born)).is_some_and(|p| p.alive && p.named);
        let was_told = daemon.answered > Monotonic::default() && self.now.monotonic > daemon.answered;
        if old && is_other && lives && was_told && !self.loses {
            self.fail(format!(
                "{} said which process is its main one, and is held to the one before",
                view.unit.name
            ));
        }
    }

    /// A daemon writes its file; or something else is in it.
    pub(super) fn write_pid_file(&mut self, run: InvocationId, right: bool) {
        let Some(info) = self.runs.get_mut(&run).filter(|info| !info.released) else { return };
        let alive = info.daemon.born.and_then(|born| {
            let id = self.renamed.get(&born).copied().unwrap_or(born);
            self.processes.get(&id).filter(|process| process.alive)
        });
        info.daemon.written |= right && alive.is_some();
        self.event(Event::PidFileChanged { run });
    }

    /// The manager asks which process is the main one.
    pub(super) fn find_main(&mut self, id: EffectId, run: InvocationId, by: MainSource) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        self.must_not_be_released(run);
        let Some(info) = self.runs.get_mut(&run) else { return };
        let daemon = info.daemon;
        let delay = Duration::from_millis(info.dice.below(10));
        info.daemon.answered = self.now.monotonic + delay;
        let mut dice = info.dice.clone();
        let is_told = by == MainSource::Guess || daemon.written;
        let name = daemon.born.map(|born| self.renamed.get(&born).copied().unwrap_or(born));
        let process = name.filter(|_| is_told).and_then(|name| Some((name, self.processes.remove(&name)?)));
        let result = match process {
            Some((name, mut process)) if process.alive => {
                let name = if process.named { name } else { id };
                process.told_at = process.told_at.max(self.now.monotonic + delay);
                process.named = true;
                self.processes.insert(name, process);
                self.renamed.extend(daemon.born.map(|born| (born, name)));
                Ok(MainProcess { process: name, pid: 9000 + name.0 as u32 })
            }
            Some((name, process)) => {
                self.processes.insert(name, process);
                Err("it has ended".to_owned())
            }
            None => Err("nobody says it".to_owned()),
        };
        self.tell(Event::MainFound { id, run, result }, delay, &mut dice);
    }

    /// A service is sent the signal that has it reload: it may be deaf, slow, or forget to say that it is done.
    pub(super) fn ask_reload(&mut self, id: EffectId, run: InvocationId, process: EffectId) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        self.must_not_be_released(run);
        let is_calm = self.is_calm;
        let Some(process_) = self.processes.get_mut(&process) else { return };
        let dice = &mut process_.dice;
        let deaf = !is_calm && dice.once_in(8);
        let (says, ends) = (is_calm || !dice.once_in(8), is_calm || !dice.once_in(8));
        let at = Duration::from_millis(dice.below(200));
        let done = at + Duration::from_millis(dice.below(if is_calm { 300 } else { 6000 }));
        let mut dice = dice.clone();
        let result = if deaf { Err("it does not handle it".to_owned()) } else { Ok(()) };
        self.tell(Event::ReloadAsked { id, run, result }, Duration::ZERO, &mut dice);
        let sender = Sender::Process(process);
        if says && !deaf {
            let monotonic = Some(self.now.monotonic + at);
            let notification = Notification { reloading: true, monotonic, ..Notification::default() };
            self.after(at, Happening::Event(Event::Notified { run, sender, notification }));
        }
        if ends && !deaf {
            self.after(done, Happening::Event(Event::Notified { run, sender, notification: ready() }));
        }
    }

    pub(super) fn hear_empty(&mut self, run: InvocationId) {
        let is_empty = self.is_empty(run);
        self.run_info(run, |info| info.heard_empty = is_empty);
    }

    /// A daemon with a PID file is up only once its main process was known, and one that is gone is not waited for.
    pub(super) fn check_main(&self, view: &UnitView) -> Verdict {
        let name = &view.unit.name;
        let Some(body) = view.unit.as_service() else { return Ok(()) };
        if body.service.service_type != ServiceType::Forking || body.service.life.pid_file.is_none() {
            return Ok(());
        }
        // What was taken over may have begun by a definition that named no PID file.
        let known = view.exec_main.is_some() || self.succeeded;
        law(view.sub != "running" || known, || format!("{name} is running without a main process"))?;
        let waits = view.sub == "start" && view.main.is_none() && view.control.is_none();
        let run = view.run.filter(|_| waits).and_then(|run| self.runs.get(&run));
        // Where answers are lost, the one to who it is may be.
        let is_answered = |info: &&RunInfo| self.now.monotonic > info.daemon.answered && !self.loses;
        let run = run.filter(is_answered);
        let gone = run.is_some_and(|info| info.heard_empty && info.daemon.parent.is_none());
        law(!gone, || format!("{name} waits for the PID file of a daemon that is gone"))
    }

    /// A service of Type=idle waits no longer than until no other job runs.
    pub(super) fn check_idle(&mut self, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        let begun =
            |view: &UnitView| view.run.and_then(|run| self.runs.get(&run)).is_some_and(|run| run.begun);
        let waits = |view: &UnitView| is_idle(view) && view.sub == "start" && !begun(view);
        let now = self.now.monotonic;
        self.idle_since.retain(|unit, _| views.get(unit).is_some_and(waits));
        for view in views.values().filter(|view| waits(view)) {
            self.idle_since.entry(view.unit.name.clone()).or_insert(now);
        }
        let others = self
            .jobs_before
            .iter()
            .any(|job| (job.running || job.checking) && !self.idle_since.contains_key(&job.unit));
        let waiting = self.idle_since.keys().next();
        law(others || waiting.is_none(), || format!("{waiting:?} is idle while no other job runs"))
    }

    /// Its program does not begin before that, or before it has waited for five seconds.
    pub(super) fn check_quiet(&self, spawn: &Spawn) -> Verdict {
        let idle = spawn.unit.as_service().is_some_and(|b| b.service.service_type == ServiceType::Idle);
        if !idle || spawn.kind != ExecKind::Start {
            return Ok(());
        }
        let name = &spawn.unit.name;
        let since = self.idle_since.get(name);
        let waited = since.is_some_and(|since| self.now.monotonic >= *since + Duration::from_secs(5));
        let other = self.manager.jobs().find(|job| {
            let idle = self.manager.unit(&job.unit).is_some_and(|view| is_idle(&view) && !is_at_rest(&view));
            job.running && !idle
        });
        law(waited || other.is_none(), || {
            format!(
                "{name} is idle and was run beside the job of {}",
                other.map_or_else(String::new, |j| j.unit.to_string())
            )
        })
    }
}

fn is_idle(view: &UnitView) -> bool {
    view.unit.as_service().is_some_and(|body| body.service.service_type == ServiceType::Idle)
}
