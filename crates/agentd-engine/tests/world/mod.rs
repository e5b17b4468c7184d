//! A small world for the engine: fake processes, fake clocks, fake people. One seed fixes every choice.
//!
//! The world is a list of things yet to happen; the clock jumps from one to the next. What the manager asks for is
//! carried out as the kernel would, with delays and in odd orders, and after every step what must always hold is
//! checked (`invariants.rs`).

#![allow(clippy::unwrap_used, reason = "a test helper fails the test")]

mod graph;
mod invariants;
mod process;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use agentd_engine::{
    Boottime, Config, Effect, EffectId, Event, InvocationId, JobId, JobKind, JobMode, Manager, Monotonic,
    Now, Request, RequestId, ShutdownKind,
};
use agentd_unit::{Realtime, UnitName};

pub(crate) use process::Program;
use process::{Process, RunInfo};

/// Random numbers of the world (SplitMix64), apart from the engine's own.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Something that will happen.
#[derive(Debug)]
enum Happening {
    /// An event comes in.
    Event(Event),
    /// A process dies by itself or by a signal.
    Death(EffectId, agentd_engine::ExitStatus),
    /// A helper that a service left behind dies.
    HelperDeath(InvocationId),
    /// Somebody does something.
    Person,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) manager: Manager,
    now: Now,
    agenda: BTreeMap<(Monotonic, u64), Happening>,
    counter: u64,
    processes: BTreeMap<EffectId, Process>,
    runs: BTreeMap<InvocationId, RunInfo>,
    programs: BTreeMap<UnitName, Program>,
    names: Vec<UnitName>,
    open: BTreeMap<RequestId, Request>,
    /// The jobs that there were before the present step.
    jobs_before: BTreeSet<JobId>,
    restarts: BTreeMap<UnitName, Vec<Monotonic>>,
    effects_seen: BTreeSet<EffectId>,
    shutdowns: u32,
    trace: DefaultHasher,
    pub(crate) lines: Vec<String>,
    keep_lines: bool,
    is_calm: bool,
}

impl World {
    /// A world of up to `units` units. With `keep_lines` all that happens is kept as text.
    pub(crate) fn new(seed: u64, units: u64, keep_lines: bool) -> Self {
        let now = Now {
            monotonic: Monotonic(Duration::from_secs(50)),
            boottime: Boottime(Duration::from_secs(80)),
            realtime: Realtime(1_800_000_000_000_000),
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config =
            Config { seed: bytes, shutdown_timeout: Some(Duration::from_secs(600)), ..Config::default() };
        let mut world = Self {
            seed,
            dice: Dice::new(seed),
            manager: Manager::new(config, now),
            now,
            agenda: BTreeMap::new(),
            counter: 0,
            processes: BTreeMap::new(),
            runs: BTreeMap::new(),
            programs: BTreeMap::new(),
            names: Vec::new(),
            open: BTreeMap::new(),
            jobs_before: BTreeSet::new(),
            restarts: BTreeMap::new(),
            effects_seen: BTreeSet::new(),
            shutdowns: 0,
            trace: DefaultHasher::new(),
            lines: Vec::new(),
            keep_lines,
            is_calm: false,
        };
        let count = 2 + world.dice.below(units - 1);
        world.names = graph::names(count);
        world.reload();
        for _ in 0..3 {
            world.person();
        }
        world
    }

    fn reload(&mut self) {
        let set = graph::random(&mut self.dice, &self.names, &mut self.programs);
        self.event(Event::UnitsLoaded(set));
    }

    fn after(&mut self, delay: Duration, happening: Happening) {
        self.counter += 1;
        self.agenda.insert((self.now.monotonic + delay, self.counter), happening);
    }

    fn after_millis(&mut self, most: u64, happening: Happening) {
        let delay = Duration::from_millis(self.dice.below(most + 1));
        self.after(delay, happening);
    }

    /// The next thing happens; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let next = self.agenda.keys().next().copied();
        let tick = self.next_tick();
        match (next, tick) {
            (None, None) => return false,
            (Some((at, number)), tick) if tick.is_none_or(|tick| at <= tick) => {
                self.go_to(at);
                if let Some(happening) = self.agenda.remove(&(at, number)) {
                    self.happen(happening);
                }
            }
            (_, Some(tick)) => {
                // Sometimes the manager gets late.
                let late = if self.dice.once_in(20) { self.dice.below(3000) } else { 0 };
                self.go_to(tick + Duration::from_millis(late));
                self.event(Event::Tick);
            }
            (Some(_), None) => {}
        }
        true
    }

    fn next_tick(&self) -> Option<Monotonic> {
        let deadlines = self.manager.deadlines();
        let here = self.now;
        let span = deadlines.boottime.map(|at| here.monotonic + (at - here.boottime));
        let date = deadlines.realtime.map(|at| here.monotonic + (at - here.realtime));
        deadlines.monotonic.into_iter().chain(span).chain(date).min()
    }

    fn go_to(&mut self, at: Monotonic) {
        let span = at - self.now.monotonic;
        self.now.monotonic = self.now.monotonic + span;
        self.now.boottime = self.now.boottime + span;
        self.now.realtime = self.now.realtime + span;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Event(event) => self.event(event),
            Happening::Death(id, status) => self.die(id, status),
            Happening::HelperDeath(run) => self.helper_dies(run),
            Happening::Person => self.person(),
        }
    }

    /// Somebody does one of the things that people do.
    pub(crate) fn person(&mut self) {
        if self.is_calm {
            return;
        }
        let unit = self.dice.pick(&self.names).clone();
        match self.dice.below(40) {
            0..12 => self.ask_job(JobKind::Start, unit),
            12..20 => self.ask_job(JobKind::Stop, unit),
            20..24 => self.ask_job(JobKind::Restart, unit),
            24 => self.ask_job(JobKind::TryRestart, unit),
            25..27 => self.ask_job(JobKind::Reload, unit),
            27 => self.ask_job(JobKind::ReloadOrRestart, unit),
            28 => self.ask_job(JobKind::VerifyActive, unit),
            29 => self.ask(Request::ResetFailed { unit: None }),
            30 => self.cancel(),
            31..34 => self.reload(),
            34..38 => self.kill_somebody(),
            38 => self.event(Event::ClockChanged),
            _ => self.event(Event::Tick),
        }
        self.after_millis(2000, Happening::Person);
    }

    fn ask_job(&mut self, kind: JobKind, unit: UnitName) {
        let modes = [
            JobMode::Replace,
            JobMode::Replace,
            JobMode::Replace,
            JobMode::Replace,
            JobMode::Replace,
            JobMode::Fail,
            JobMode::Isolate,
        ];
        let mode = *self.dice.pick(&modes);
        let mode = if kind == JobKind::Start || mode != JobMode::Isolate { mode } else { JobMode::Replace };
        self.ask(Request::Job { kind, unit, mode });
    }

    fn cancel(&mut self) {
        let jobs: Vec<JobId> = self.manager.jobs().map(|job| job.id).collect();
        if !jobs.is_empty() {
            let job = *self.dice.pick(&jobs);
            self.ask(Request::Cancel { job });
        }
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.counter += 1;
        let id = RequestId(self.counter);
        if matches!(request, Request::Job { .. } | Request::ResetFailed { .. }) {
            self.restarts.clear(); // A person's start clears the counts of whatever it starts.
        }
        self.open.insert(id, request.clone());
        self.event(Event::Request { id, request });
    }

    /// Hands an event over, does what is asked for, and checks what must hold.
    fn event(&mut self, event: Event) {
        if self.keep_lines {
            self.lines.push(format!("{:?} <- {event:?}", self.now.monotonic));
            if std::env::var_os("AGENTD_ALOUD").is_some() {
                println!("{}", self.lines[self.lines.len() - 1]);
            }
        }
        self.jobs_before = self.manager.jobs().map(|job| job.id).collect();
        let mut effects = Vec::new();
        self.manager.handle(event, self.now, &mut effects);
        for effect in effects {
            if self.keep_lines {
                self.lines.push(format!("    -> {effect:?}"));
            }
            self.perform(effect);
        }
        self.check();
    }

    fn perform(&mut self, effect: Effect) {
        self.hash_effect(&effect);
        match effect {
            Effect::Spawn(spawn) => self.spawn(*spawn),
            Effect::Kill { run, target, signal, .. } => self.kill(run, target, signal),
            Effect::KillAll { run } => self.kill_all(run),
            Effect::AwaitEmpty { id, run } => self.await_empty(id, run),
            Effect::Release { run } => self.release(run),
            Effect::Accepted { request, .. } => self.must_be_open(request),
            Effect::Finished { request, .. } | Effect::Done { request } | Effect::Refused { request, .. } => {
                self.must_be_open(request);
                self.open.remove(&request);
            }
            Effect::SaveStamp { .. } => {}
            Effect::Log(record) => self.read_log(&record),
            Effect::Shutdown { .. } => self.shutdowns += 1,
        }
    }

    fn hash_effect(&mut self, effect: &Effect) {
        self.now.monotonic.hash(&mut self.trace);
        match effect {
            Effect::Spawn(spawn) => (spawn.id, spawn.run, spawn.kind, spawn.index).hash(&mut self.trace),
            Effect::Log(record) => record.text.hash(&mut self.trace),
            Effect::Kill { run, target, signal, .. } => (run, target, signal).hash(&mut self.trace),
            Effect::Finished { request, result, .. } => (request, result).hash(&mut self.trace),
            Effect::KillAll { run } | Effect::Release { run } => run.hash(&mut self.trace),
            Effect::AwaitEmpty { id, run } => (id, run).hash(&mut self.trace),
            Effect::Accepted { request, job } => (request, job).hash(&mut self.trace),
            Effect::Done { request } | Effect::Refused { request, .. } => request.hash(&mut self.trace),
            Effect::SaveStamp { .. } | Effect::Shutdown { .. } => {}
        }
    }

    /// A number that two runs have in common only if every effect was the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.trace.finish()
    }

    /// From now on programs behave and people rest.
    pub(crate) fn calm(&mut self) {
        self.is_calm = true;
        for program in self.programs.values_mut() {
            program.calm();
        }
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now.monotonic + span;
        for _ in 0..20_000 {
            if self.now.monotonic >= end || !self.step() {
                return;
            }
        }
        self.fail("the world never comes to rest");
    }

    pub(crate) fn shut_down(&mut self) {
        self.ask(Request::Shutdown { kind: ShutdownKind::Poweroff });
        if self.dice.once_in(4) {
            self.ask(Request::Shutdown { kind: ShutdownKind::Reboot });
        }
        for _ in 0..20_000 {
            if self.shutdowns > 0 || !self.step() {
                break;
            }
        }
    }

    fn fail(&self, what: &str) -> ! {
        for line in self.lines.iter().rev().take(400).rev() {
            println!("{line}");
        }
        for job in self.manager.jobs() {
            println!("{job:?}");
        }
        panic!("seed {}: {what} (at {:?})", self.seed, self.now.monotonic);
    }
}
