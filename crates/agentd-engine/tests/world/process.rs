//! Fake processes: what programs do when they are run, signalled and killed.

use std::time::Duration;

use agentd_engine::{
    EffectId, Event, ExitStatus, InvocationId, KillTarget, Notification, Sender, Spawn, SpawnFailure,
    SpawnFailureKind,
};
use agentd_unit::{ExecKind, KillMode, ServiceType, Signal, UnitName};

use super::{Dice, Happening, World};

/// What the program of a unit is like.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// How many more times it goes wrong; then it behaves.
    pub(crate) mischief: u64,
    /// Does not end on SIGTERM.
    pub(crate) stubborn: bool,
    /// Leaves a helper behind.
    pub(crate) forks: bool,
    /// Ends by itself after this many milliseconds, as a oneshot does.
    pub(crate) lasts: Option<u64>,
}

impl Program {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        Self {
            mischief: if dice.once_in(2) { dice.below(8) } else { 0 },
            stubborn: dice.once_in(6),
            forks: dice.once_in(4),
            lasts: None,
        }
    }

    pub(crate) fn calm(&mut self) {
        self.mischief = 0;
    }
}

pub(super) struct Process {
    pub(super) run: InvocationId,
    pub(super) unit: UnitName,
    pub(super) kind: ExecKind,
    pub(super) alive: bool,
    stubborn: bool,
    /// When the manager will have heard that it is there.
    told_at: Duration,
}

pub(super) struct RunInfo {
    pub(super) unit: UnitName,
    pub(super) helpers: u32,
    pub(super) awaiting: Option<EffectId>,
    pub(super) released: bool,
    /// Its KillMode lets no process live on.
    pub(super) whole: bool,
}

impl World {
    pub(super) fn spawn(&mut self, spawn: Spawn) {
        if !self.effects_seen.insert(spawn.id) {
            self.fail("an effect id was used twice");
        }
        self.check_spawn(&spawn);
        let unit = spawn.unit.name.clone();
        let mode = spawn.unit.as_service().map(|body| body.service.kill_mode);
        let whole = matches!(mode, Some(KillMode::ControlGroup | KillMode::Mixed));
        let info = RunInfo { unit: unit.clone(), helpers: 0, awaiting: None, released: false, whole };
        self.runs.entry(spawn.run).or_insert(info);
        let mut program =
            self.programs.get(&unit).cloned().unwrap_or_else(|| Program::random(&mut self.dice));
        let service_type = spawn.unit.as_service().map(|body| body.service.service_type);
        let oneshot = service_type == Some(ServiceType::Oneshot);
        program.lasts = oneshot.then(|| program.lasts.unwrap_or(200));
        let wrong = program.mischief > 0 && self.dice.once_in(2);
        if wrong {
            program.mischief -= 1;
        }
        self.programs.insert(unit.clone(), program.clone());
        let delay = if self.dice.once_in(3) { self.dice.below(40) } else { 0 };
        let mischief = if wrong { self.dice.below(5) } else { 9 };
        if mischief == 0 {
            self.refuse(&spawn, delay);
            return;
        }
        let told_at = self.now.monotonic.0 + Duration::from_millis(delay);
        let stubborn = program.stubborn || mischief == 1;
        let process = Process { run: spawn.run, unit, kind: spawn.kind, alive: true, stubborn, told_at };
        self.processes.insert(spawn.id, process);
        let pid = Ok(1000 + self.processes.len() as u32);
        let event = Event::Spawned { id: spawn.id, run: spawn.run, result: pid };
        self.after(Duration::from_millis(delay), Happening::Event(event));
        if program.forks && spawn.kind == ExecKind::Start {
            self.runs.get_mut(&spawn.run).unwrap().helpers += 1;
        }
        self.live(&spawn, &program, mischief, delay);
    }

    fn refuse(&mut self, spawn: &Spawn, delay: u64) {
        let kinds = [
            SpawnFailureKind::Step { exit_status: 203 },
            SpawnFailureKind::Resources,
            SpawnFailureKind::Trust,
        ];
        let kind = *self.dice.pick(&kinds);
        let failure = SpawnFailure { kind, message: "not executed".to_owned() };
        let event = Event::Spawned { id: spawn.id, run: spawn.run, result: Err(failure) };
        self.after(Duration::from_millis(delay), Happening::Event(event));
    }

    /// What the process will do of itself.
    fn live(&mut self, spawn: &Spawn, program: &Program, mischief: u64, delay: u64) {
        if spawn.kind != ExecKind::Start || program.lasts.is_some() {
            let code = u8::from(mischief == 2);
            let span = if mischief == 3 {
                100_000
            } else {
                delay + self.dice.below(program.lasts.unwrap_or(50) + 1)
            };
            self.after(Duration::from_millis(span), Happening::Death(spawn.id, ExitStatus::Exited(code)));
            return;
        }
        if mischief == 2 || mischief == 3 {
            let status = if mischief == 2 { ExitStatus::Exited(3) } else { ExitStatus::Killed(Signal::KILL) };
            let span = Duration::from_millis(delay + self.dice.below(3000));
            self.after(span, Happening::Death(spawn.id, status));
            if self.dice.once_in(2) {
                self.after(span, Happening::Event(Event::OomKilled { run: spawn.run }));
            }
        }
        if mischief != 4 {
            // 4 never says that it is ready.
            let (run, sender) = (spawn.run, Sender::Process(spawn.id));
            let notification = Notification { ready: true, ..Notification::default() };
            let event = Event::Notified { run, sender, notification };
            let span = Duration::from_millis(delay + self.dice.below(200));
            self.after(span, Happening::Event(event));
        }
    }

    pub(super) fn die(&mut self, id: EffectId, status: ExitStatus) {
        let now = self.now.monotonic.0;
        let Some(process) = self.processes.get_mut(&id).filter(|process| process.alive) else { return };
        process.alive = false;
        let (run, wait) = (process.run, process.told_at.saturating_sub(now));
        let delay = wait + Duration::from_millis(self.dice.below(10));
        self.after(delay, Happening::Event(Event::Exited { id, run, status }));
        self.tell_if_empty(run);
    }

    pub(super) fn helper_dies(&mut self, run: InvocationId) {
        if let Some(info) = self.runs.get_mut(&run) {
            info.helpers = 0;
        }
        self.tell_if_empty(run);
    }

    fn is_empty(&self, run: InvocationId) -> bool {
        let helpers = self.runs.get(&run).map_or(0, |info| info.helpers);
        helpers == 0 && !self.processes.values().any(|process| process.run == run && process.alive)
    }

    /// The news that a run is empty may come before the news of its last exit.
    fn tell_if_empty(&mut self, run: InvocationId) {
        if !self.is_empty(run) {
            return;
        }
        if let Some(id) = self.runs.get_mut(&run).and_then(|info| info.awaiting.take()) {
            self.after_millis(10, Happening::Event(Event::Emptied { id, run }));
        }
    }

    pub(super) fn await_empty(&mut self, id: EffectId, run: InvocationId) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice");
        }
        self.must_not_be_released(run);
        if let Some(info) = self.runs.get_mut(&run) {
            info.awaiting = Some(id);
        }
        self.tell_if_empty(run);
    }

    pub(super) fn kill(&mut self, run: InvocationId, target: KillTarget, signal: Signal) {
        self.must_not_be_released(run);
        let targets: Vec<(EffectId, bool)> = self
            .processes
            .iter()
            .filter(|(id, process)| {
                process.alive
                    && process.run == run
                    && (target == KillTarget::All || target == KillTarget::Process(**id))
            })
            .map(|(id, process)| (*id, process.stubborn))
            .collect();
        for (id, stubborn) in targets {
            if signal == Signal::KILL || !stubborn {
                let clean = self.dice.once_in(2) && signal != Signal::KILL;
                let status = if clean { ExitStatus::Exited(0) } else { ExitStatus::Killed(signal) };
                self.after_millis(300, Happening::Death(id, status));
            }
        }
        if target == KillTarget::All && self.dice.once_in(2) {
            self.after_millis(300, Happening::HelperDeath(run));
        }
    }

    pub(super) fn kill_all(&mut self, run: InvocationId) {
        self.must_not_be_released(run);
        let targets: Vec<EffectId> = self
            .processes
            .iter()
            .filter(|(_, process)| process.alive && process.run == run)
            .map(|(id, _)| *id)
            .collect();
        for id in targets {
            self.after_millis(20, Happening::Death(id, ExitStatus::Killed(Signal::KILL)));
        }
        self.after_millis(20, Happening::HelperDeath(run));
    }

    /// Somebody outside kills a process.
    pub(super) fn kill_somebody(&mut self) {
        let alive: Vec<EffectId> =
            self.processes.iter().filter(|(_, process)| process.alive).map(|(id, _)| *id).collect();
        if !alive.is_empty() {
            let id = *self.dice.pick(&alive);
            self.die(id, ExitStatus::Killed(Signal::KILL));
        }
    }

    pub(super) fn release(&mut self, run: InvocationId) {
        self.must_not_be_released(run);
        if !self.is_empty(run) {
            self.fail("a run was released while it still lives");
        }
        if let Some(info) = self.runs.get_mut(&run) {
            info.released = true;
        }
        self.processes.retain(|_, process| process.run != run);
    }
}
