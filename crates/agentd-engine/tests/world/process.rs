//! Fake processes: what programs do when they are run, signalled and killed, and what the manager hears of it.

use std::time::Duration;

use agentd_engine::{
    Checked, EffectId, Event, ExitStatus, InvocationId, KillTarget, Monotonic, Notification, Sender, Spawn,
    SpawnFailure, SpawnFailureKind,
};
use agentd_unit::{ExecKind, KillMode, ServiceType, Signal, Unit, UnitName};

use super::daemon::Daemon;
use super::dice::{Dice, PROCESS, PROGRAM, RUN};
use super::rows::Rules;
use super::{Happening, World};

/// What the program of a unit is like.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// How many more times it goes wrong; then it behaves.
    mischief: u64,
    /// Does not end on SIGTERM.
    stubborn: bool,
    /// Leaves a helper behind.
    forks: bool,
    /// How often it was run.
    spawns: u64,
}

impl Program {
    fn of(seed: u64, unit: u64, wild: bool) -> Self {
        let mut dice = Dice::of(seed, &[PROGRAM, unit]);
        Self {
            mischief: if wild || dice.once_in(2) { dice.below(if wild { 20 } else { 8 }) } else { 0 },
            stubborn: dice.once_in(6),
            forks: dice.once_in(4),
            spawns: 0,
        }
    }
}

/// What goes wrong with one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mischief {
    Nothing,
    /// It is not executed at all.
    Refused,
    Stubborn,
    /// It ends with a code that is a failure.
    Fails,
    /// Somebody kills it, perhaps the kernel for want of memory.
    Killed,
    /// It never says that it is ready; a command never ends.
    Hangs,
    /// It says that it is ready when patience may be over.
    Late,
    /// It says that it reloads, and is ready a second time late or never.
    Reloads,
    /// It says that it stops, and does not.
    Stops,
    /// It asks for more time.
    Extends,
    /// It gives no sign of life any more.
    Silent,
}

const MISCHIEF: [Mischief; 10] = [
    Mischief::Refused,
    Mischief::Stubborn,
    Mischief::Fails,
    Mischief::Killed,
    Mischief::Hangs,
    Mischief::Late,
    Mischief::Reloads,
    Mischief::Stops,
    Mischief::Extends,
    Mischief::Silent,
];

pub(super) struct Process {
    pub(super) run: InvocationId,
    pub(super) unit: UnitName,
    pub(super) kind: ExecKind,
    /// Its end is the end of its service, but for what comes after.
    pub(super) is_main: bool,
    pub(super) alive: bool,
    /// The manager has heard of its end.
    pub(super) heard: bool,
    /// The manager has a name for it; else it hears nothing of it.
    pub(super) named: bool,
    pub(super) stubborn: bool,
    /// Between two signs of life.
    pub(super) beat: Option<Duration>,
    /// When the manager will have heard that it is there.
    pub(super) told_at: Monotonic,
    pub(super) dice: Dice,
}

pub(super) struct RunInfo {
    pub(super) unit: UnitName,
    pub(super) helpers: u32,
    pub(super) awaiting: Option<EffectId>,
    pub(super) released: bool,
    /// Its KillMode lets no process live on.
    pub(super) whole: bool,
    /// What it says of restarts.
    pub(super) rules: Rules,
    /// What is there of a daemon that went into the background.
    pub(super) daemon: Daemon,
    /// The manager has heard that it is empty, and nothing was born since.
    pub(super) heard_empty: bool,
    /// Its ExecStart was to be run.
    pub(super) begun: bool,
    pub(super) dice: Dice,
}

/// Whether no process outlives the run.
fn is_whole(unit: &Unit) -> bool {
    let mode = unit.as_service().map_or_else(KillMode::default, |body| body.service.kill_mode);
    matches!(mode, KillMode::ControlGroup | KillMode::Mixed)
}

pub(super) fn ready() -> Notification {
    Notification { ready: true, ..Notification::default() }
}

impl World {
    pub(super) fn spawn(&mut self, spawn: Spawn) {
        if !self.effects_seen.insert(spawn.id) {
            self.fail("an effect id was used twice".to_owned());
        }
        if let Err(what) = self.check_spawn(&spawn) {
            self.fail(what);
        }
        let unit = spawn.unit.name.clone();
        let number = self.number(&unit);
        self.begin_run(&spawn, number);
        let begins = spawn.kind == ExecKind::Start;
        self.run_info(spawn.run, |info| info.begun |= begins);
        let seed = self.seed;
        let wild = self.mood.wild;
        let program = self.programs.entry(unit.clone()).or_insert_with(|| Program::of(seed, number, wild));
        program.spawns += 1;
        let mut dice = Dice::of(seed, &[PROCESS, number, program.spawns]);
        let wrong = program.mischief > 0 && dice.once_in(2) && !self.is_calm;
        program.mischief -= u64::from(wrong);
        let mischief = if wrong { *dice.pick(&MISCHIEF) } else { Mischief::Nothing };
        let program = program.clone();
        let delay = Duration::from_millis(if dice.once_in(3) { dice.below(40) } else { 0 });
        if mischief == Mischief::Refused {
            self.refuse(&spawn, delay, &mut dice);
            return;
        }
        let service = spawn.unit.as_service().map(|body| &body.service);
        let main = spawn.kind == ExecKind::Start;
        let beat = service.and_then(|s| s.watchdog).filter(|_| main && mischief != Mischief::Silent);
        let mut process = Process {
            run: spawn.run,
            unit,
            kind: spawn.kind,
            is_main: main && service.is_some_and(|s| s.service_type != ServiceType::Forking),
            alive: true,
            heard: false,
            named: true,
            stubborn: program.stubborn || mischief == Mischief::Stubborn,
            beat: beat.map(|span| span / 2),
            told_at: self.now.monotonic + delay,
            dice,
        };
        self.run_info(spawn.run, |info| info.heard_empty = false);
        if program.forks && main {
            self.run_info(spawn.run, |info| info.helpers += 1);
        }
        let pid = Ok(1000 + self.effects_seen.len() as u32);
        let event = Event::Spawned { id: spawn.id, run: spawn.run, result: pid };
        self.tell(event, delay, &mut process.dice);
        self.act(&spawn, mischief, delay, &mut process);
        self.processes.insert(spawn.id, process);
    }

    fn begin_run(&mut self, spawn: &Spawn, unit: u64) {
        let (whole, rules) = (is_whole(&spawn.unit), Rules::of(&spawn.unit));
        let dice = Dice::of(self.seed, &[RUN, unit, self.runs.len() as u64]);
        self.runs.entry(spawn.run).or_insert_with(|| RunInfo {
            unit: spawn.unit.name.clone(),
            helpers: 0,
            awaiting: None,
            released: false,
            whole,
            rules,
            daemon: Daemon::default(),
            heard_empty: false,
            begun: false,
            dice,
        });
    }

    /// A run lives by this definition from now on.
    pub(super) fn live_by(&mut self, run: InvocationId, unit: &Unit) {
        self.run_info(run, |info| (info.whole, info.rules) = (is_whole(unit), Rules::of(unit)));
    }

    pub(super) fn run_info(&mut self, run: InvocationId, change: impl FnOnce(&mut RunInfo)) {
        if let Some(info) = self.runs.get_mut(&run) {
            change(info);
        }
    }

    /// An answer comes; in some worlds it comes twice, in some it is lost.
    pub(super) fn tell(&mut self, event: Event, delay: Duration, dice: &mut Dice) {
        if self.loses && dice.once_in(25) && !self.is_calm {
            return;
        }
        if self.doubles && dice.once_in(10) {
            let later = delay + Duration::from_millis(dice.below(60));
            self.after(later, Happening::Event(event.clone()));
        }
        self.after(delay, Happening::Event(event));
    }

    fn refuse(&mut self, spawn: &Spawn, delay: Duration, dice: &mut Dice) {
        let kinds = [
            SpawnFailureKind::Step { exit_status: 203 },
            SpawnFailureKind::Resources,
            SpawnFailureKind::Trust,
        ];
        let failure = SpawnFailure { kind: *dice.pick(&kinds), message: "not executed".to_owned() };
        let event = Event::Spawned { id: spawn.id, run: spawn.run, result: Err(failure) };
        self.tell(event, delay, dice);
    }

    /// What the process will do of itself.
    fn act(&mut self, spawn: &Spawn, mischief: Mischief, delay: Duration, process: &mut Process) {
        let service_type = spawn.unit.as_service().map(|body| body.service.service_type);
        let oneshot = service_type == Some(ServiceType::Oneshot);
        let main = spawn.kind == ExecKind::Start;
        if main && service_type == Some(ServiceType::Forking) {
            self.fork(spawn, mischief, delay, process);
            return;
        }
        if !main || oneshot {
            let code = u8::from(mischief == Mischief::Fails);
            let lasts = process.dice.below(if main { 500 } else { 50 });
            let span = if mischief == Mischief::Hangs { 100_000 } else { lasts };
            let death = Happening::Death(spawn.id, ExitStatus::Exited(code));
            self.after(delay + Duration::from_millis(span), death);
            return;
        }
        let dice = &mut process.dice;
        if matches!(mischief, Mischief::Fails | Mischief::Killed) {
            let fails = mischief == Mischief::Fails;
            let status = if fails { ExitStatus::Exited(3) } else { ExitStatus::Killed(Signal::KILL) };
            let span = delay + Duration::from_millis(dice.below(3000));
            let oom = !fails && dice.once_in(2);
            self.after(span, Happening::Death(spawn.id, status));
            if oom {
                self.after(span, Happening::Event(Event::OomKilled { run: spawn.run }));
            }
        }
        if mischief != Mischief::Hangs {
            let late = if mischief == Mischief::Late { 6_000 } else { 200 };
            let span = delay + Duration::from_millis(process.dice.below(late));
            self.say(spawn, span, ready());
            if process.dice.once_in(6) {
                let again = span + Duration::from_millis(process.dice.below(1000));
                self.say(spawn, again, ready());
            }
            self.misbehave(spawn, mischief, span, process);
            if process.dice.once_in(8) {
                let at = span + Duration::from_millis(process.dice.below(3000));
                self.after(at, Happening::HandOver(spawn.id));
            }
        }
        if let Some(beat) = process.beat {
            self.after(beat, Happening::Beat(spawn.id));
        }
    }

    /// What a process says that is up, besides that it is ready.
    fn misbehave(&mut self, spawn: &Spawn, mischief: Mischief, span: Duration, process: &mut Process) {
        let dice = &mut process.dice;
        let at = span + Duration::from_millis(dice.below(2000));
        match mischief {
            Mischief::Reloads => {
                self.say(spawn, at, Notification { reloading: true, ..Notification::default() });
                if dice.once_in(2) {
                    self.say(spawn, at + Duration::from_millis(dice.below(6000)), ready());
                }
            }
            Mischief::Stops => {
                self.say(spawn, at, Notification { stopping: true, ..Notification::default() });
            }
            Mischief::Extends => {
                let extend_timeout = Some(Duration::from_millis(dice.below(4000)));
                let at = Duration::from_millis(dice.below(2000));
                self.say(spawn, at, Notification { extend_timeout, ..Notification::default() });
            }
            _ => {}
        }
    }

    pub(super) fn say(&mut self, spawn: &Spawn, delay: Duration, notification: Notification) {
        let (run, sender) = (spawn.run, Sender::Process(spawn.id));
        self.after(delay, Happening::Event(Event::Notified { run, sender, notification }));
    }

    /// A sign of life.
    pub(super) fn beat(&mut self, id: EffectId) {
        let Some(process) = self.processes.get(&id).filter(|process| process.alive) else { return };
        let (run, beat) = (process.run, process.beat);
        let notification = Notification { alive: true, ..Notification::default() };
        self.event(Event::Notified { run, sender: Sender::Process(id), notification });
        if let Some(beat) = beat {
            self.after(beat, Happening::Beat(id));
        }
    }

    pub(super) fn die(&mut self, id: EffectId, status: ExitStatus) {
        let now = self.now.monotonic;
        let id = self.renamed.get(&id).copied().unwrap_or(id);
        let Some(mut process) = self.processes.remove(&id) else { return };
        let run = process.run;
        if process.alive {
            process.alive = false;
            let delay = (process.told_at - now) + Duration::from_millis(process.dice.below(10));
            let mut dice = process.dice.clone();
            if process.named {
                self.tell(Event::Exited { id, run, status }, delay, &mut dice);
            } else {
                process.heard = true;
            }
            self.leave_daemon(id, run, status);
            if process.is_main {
                self.outlive(run);
            }
        }
        self.processes.insert(id, process);
        self.tell_if_empty(run);
    }

    pub(super) fn helper_dies(&mut self, run: InvocationId) {
        self.run_info(run, |info| info.helpers = 0);
        self.tell_if_empty(run);
    }

    pub(super) fn is_empty(&self, run: InvocationId) -> bool {
        let helpers = self.runs.get(&run).map_or(0, |info| info.helpers);
        helpers == 0 && !self.processes.values().any(|process| process.run == run && process.alive)
    }

    /// The news that a run is empty may come before the news of its last exit.
    fn tell_if_empty(&mut self, run: InvocationId) {
        if !self.is_empty(run) {
            return;
        }
        let Some(info) = self.runs.get_mut(&run) else { return };
        let Some(id) = info.awaiting.take() else { return };
        let delay = Duration::from_millis(info.dice.below(10));
        let mut dice = info.dice.clone();
        self.tell(Event::Emptied { id, run }, delay, &mut dice);
    }

    /// The conditions of a unit are looked at.
    pub(super) fn look(&mut self, id: EffectId, unit: &Unit) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        let mut dice = Dice::of(self.seed, &[RUN, self.number(&unit.name), id.0, 1]);
        let fails = dice.once_in(4) && !self.is_calm;
        let assert = unit.unit.conditions.iter().any(|condition| condition.assert);
        let verdict = if fails { Err("PathExists=/some".to_owned()) } else { Ok(()) };
        let (condition, assertion) = if assert { (Ok(()), verdict) } else { (verdict, Ok(())) };
        let delay = Duration::from_millis(dice.below(30));
        self.tell(Event::Checked { id, checked: Checked { condition, assertion } }, delay, &mut dice);
    }

    pub(super) fn await_empty(&mut self, id: EffectId, run: InvocationId) {
        if !self.effects_seen.insert(id) {
            self.fail("an effect id was used twice".to_owned());
        }
        self.must_not_be_released(run);
        self.run_info(run, |info| info.awaiting = Some(id));
        self.tell_if_empty(run);
    }

    pub(super) fn freeze(&mut self, run: InvocationId, frozen: bool) {
        self.must_not_be_released(run);
        let changed = if frozen { self.frozen.insert(run) } else { self.frozen.remove(&run) };
        if !changed {
            self.fail(format!("a run is made frozen={frozen} and is so already"));
        }
    }

    pub(super) fn kill(&mut self, run: InvocationId, target: KillTarget, signal: Signal) {
        self.must_not_be_released(run);
        let hit = |id: EffectId| target == KillTarget::All || target == KillTarget::Process(id);
        let mut deaths = Vec::new();
        for (id, process) in &mut self.processes {
            if process.alive
                && process.run == run
                && hit(*id)
                && (signal == Signal::KILL || !process.stubborn)
            {
                let clean = signal != Signal::KILL && process.dice.once_in(2);
                let status = if clean { ExitStatus::Exited(0) } else { ExitStatus::Killed(signal) };
                deaths.push((process.dice.below(300), *id, status));
            }
        }
        for (delay, id, status) in deaths {
            self.after(Duration::from_millis(delay), Happening::Death(id, status));
        }
        let info = self.runs.get_mut(&run).filter(|_| target == KillTarget::All);
        let Some(dice) = info.map(|info| &mut info.dice) else { return };
        if dice.once_in(2) {
            let delay = Duration::from_millis(dice.below(300));
            self.after(delay, Happening::HelperDeath(run));
        }
    }

    pub(super) fn kill_all(&mut self, run: InvocationId) {
        self.must_not_be_released(run);
        let mut deaths = Vec::new();
        for (id, process) in self.processes.iter_mut().filter(|(_, p)| p.alive && p.run == run) {
            deaths.push((process.dice.below(20), *id));
        }
        for (delay, id) in deaths {
            let death = Happening::Death(id, ExitStatus::Killed(Signal::KILL));
            self.after(Duration::from_millis(delay), death);
        }
        let Some(info) = self.runs.get_mut(&run) else { return };
        let delay = Duration::from_millis(info.dice.below(20));
        self.after(delay, Happening::HelperDeath(run));
    }

    pub(super) fn release(&mut self, run: InvocationId) {
        self.must_not_be_released(run);
        if !self.is_empty(run) {
            self.fail("a run was released while it still lives".to_owned());
        }
        let whole = self.runs.get(&run).is_some_and(|info| info.whole) && !self.loses;
        // A daemon that was found, of which the manager is told only now, is not missed.
        let found = self.runs.get(&run).is_some_and(|info| info.daemon.born.is_some());
        let now = self.now.monotonic;
        let missed = |p: &Process| p.run == run && !p.heard && !(found && p.is_main && p.told_at >= now);
        if whole && self.processes.values().any(missed) {
            self.fail("a run was released before the end of its processes was heard".to_owned());
        }
        self.run_info(run, |info| info.released = true);
        self.processes.retain(|_, process| process.run != run);
        self.run_info(run, |info| info.daemon = Daemon::default());
    }
}
