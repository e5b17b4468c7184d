//! A small world for the engine: fake processes, fake clocks, fake people. One seed fixes every choice.
//!
//! The world is a list of things yet to happen; the clock jumps from one to the next. What the manager asks for is
//! carried out as the kernel would, with delays and in odd orders, and after every step what must always hold is
//! checked (`invariants.rs`, `order.rs`). The first thing that does not hold ends the world.

#![allow(clippy::unwrap_used, reason = "a test helper fails the test")]

mod daemon;
mod dice;
mod graph;
mod heir;
mod invariants;
mod lines;
mod order;
mod people;
mod process;
mod queue;
mod rows;
mod shrink;
mod slices;
mod sockets;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use agentd_engine::{
    Boottime, Config, Effect, EffectId, Event, ExitStatus, InvocationId, JobId, JobView, Manager, Memo,
    Monotonic, Now, Request, RequestId,
};
use agentd_unit::{Realtime, Unit, UnitName};

use dice::{Dice, TICK, WORLD};
use process::{Process, Program, RunInfo};
pub(crate) use shrink::Cut;
use sockets::FakeSocket;

/// How many deeds people do in one world.
const DEEDS: u64 = 60;

/// What there is more of in one world than in others.
#[derive(Debug)]
struct Mood {
    /// Edges.
    dense: bool,
    /// Programs that misbehave, and more often.
    wild: bool,
    /// Reloads.
    loads: bool,
    /// The longest pause between two deeds, in milliseconds.
    pause: u64,
}

impl Mood {
    fn of(dice: &mut Dice) -> Self {
        Self {
            dense: dice.once_in(6),
            wild: dice.once_in(6),
            loads: dice.once_in(6),
            pause: if dice.once_in(6) { 100 } else { 700 },
        }
    }
}

/// Something that will happen.
#[derive(Debug)]
enum Happening {
    /// An event comes in.
    Event(Event),
    /// A process dies by itself or by a signal.
    Death(EffectId, ExitStatus),
    /// A helper that a service left behind dies.
    HelperDeath(InvocationId),
    /// The daemon of a run writes a number into its PID file, its own or another's.
    PidFile(InvocationId, bool),
    /// A main process hands its work over to a child, and says so.
    HandOver(EffectId),
    /// A process gives a sign of life, if it still lives.
    Beat(EffectId),
    /// What waits at an armed socket, or at a path that is watched, is told of.
    Traffic(UnitName),
    /// Somebody does something.
    Deed(u64),
    /// Who asked for this goes away.
    Leave(RequestId),
}

pub(crate) struct World {
    seed: u64,
    /// What is left out of it, to find the least that fails.
    cut: Cut,
    manager: Manager,
    now: Now,
    agenda: BTreeMap<(Monotonic, u64), Happening>,
    counter: u64,
    processes: BTreeMap<EffectId, Process>,
    runs: BTreeMap<InvocationId, RunInfo>,
    /// Runs whose processes stand still.
    frozen: BTreeSet<InvocationId>,
    programs: BTreeMap<UnitName, Program>,
    names: Vec<UnitName>,
    /// Which version of each unit is loaded.
    versions: Vec<u64>,
    open: BTreeMap<RequestId, Request>,
    /// Requests whose clients are gone.
    left: BTreeSet<RequestId>,
    /// Whether clients go away.
    leavers: bool,
    /// The jobs that there were before the present step.
    jobs_before: Vec<JobView>,
    /// And before that.
    jobs_of_step: Vec<JobView>,
    restarts: BTreeMap<UnitName, Vec<Monotonic>>,
    /// When the manager heard of the last end of a main process.
    ends: BTreeMap<UnitName, Monotonic>,
    effects_seen: BTreeSet<EffectId>,
    shutdowns: u32,
    /// Daemons that have a name: under which they were born, and under which the manager knows them.
    renamed: BTreeMap<EffectId, EffectId>,
    /// Since when a service waits until no other job runs.
    idle_since: BTreeMap<UnitName, Monotonic>,
    /// Units that were not at rest when the present step began, and what they lived by.
    busy: BTreeMap<UnitName, Arc<Unit>>,
    /// Units of which something was said in the present step.
    touched: BTreeSet<UnitName>,
    /// Units whose job looks at no dependency.
    alone: BTreeSet<UnitName>,
    /// Units that are up although their slice may be down,
    adrift: BTreeSet<UnitName>,
    /// and slices that are down although units that lie in them may be up.
    sunk: BTreeSet<UnitName>,
    /// Units that an OnFailure may start without a look at any dependency.
    loose: BTreeSet<UnitName>,
    /// Starts that waited for a unit that did not come up.
    doomed: BTreeSet<JobId>,
    /// Units that failed only for another one, and must return with it.
    returning: BTreeMap<UnitName, UnitName>,
    /// In calm times: since when a unit is on its way.
    since: BTreeMap<UnitName, Monotonic>,
    /// What is kept of units for a manager after this one.
    kept: BTreeMap<UnitName, Memo>,
    /// Another manager has taken over.
    succeeded: bool,
    trace: DefaultHasher,
    lines: Vec<String>,
    keep_lines: bool,
    is_calm: bool,
    /// Rows of restarts, and since when units are up.
    rows: BTreeMap<UnitName, rows::Row>,
    /// What was known of the jobs before the present step.
    watch: queue::Watch,
    mood: Mood,
    /// Edges lead anywhere.
    tangled: bool,
    /// Answers may come twice.
    doubles: bool,
    /// Answers may be lost.
    loses: bool,
    /// What socket and path units hold.
    sockets: BTreeMap<UnitName, FakeSocket>,
    /// Connections that were taken and not closed, each with its socket.
    connections: BTreeMap<EffectId, UnitName>,
    /// The instances of those connections, by which the manager may know them.
    instances: BTreeMap<UnitName, (Arc<Unit>, EffectId)>,
    /// The first thing that did not hold.
    broken: Option<String>,
}

impl World {
    /// A world as the seed has it, but for what is cut. With `keep_lines` all that happens is kept as text.
    pub(crate) fn new(seed: u64, cut: &Cut, keep_lines: bool) -> Self {
        let now = Now {
            monotonic: Monotonic(Duration::from_secs(50)),
            boottime: Boottime(Duration::from_secs(8000)),
            realtime: Realtime(1_800_000_000_000_000),
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config =
            Config { seed: bytes, shutdown_timeout: Some(Duration::from_secs(600)), ..Config::default() };
        let mut dice = Dice::of(seed, &[WORLD]);
        let most = match seed % 200 {
            7 => 200,
            n if n % 10 == 0 => 30,
            _ => 10,
        };
        let names = graph::names(2 + dice.below(most - 1));
        let mut world = Self {
            seed,
            cut: cut.clone(),
            manager: Manager::new(config, now),
            now,
            agenda: BTreeMap::new(),
            counter: 0,
            processes: BTreeMap::new(),
            runs: BTreeMap::new(),
            frozen: BTreeSet::new(),
            programs: BTreeMap::new(),
            versions: vec![0; names.len()],
            names,
            open: BTreeMap::new(),
            left: BTreeSet::new(),
            leavers: true,
            jobs_before: Vec::new(),
            jobs_of_step: Vec::new(),
            restarts: BTreeMap::new(),
            ends: BTreeMap::new(),
            effects_seen: BTreeSet::new(),
            shutdowns: 0,
            renamed: BTreeMap::new(),
            idle_since: BTreeMap::new(),
            busy: BTreeMap::new(),
            touched: BTreeSet::new(),
            alone: BTreeSet::new(),
            adrift: BTreeSet::new(),
            sunk: BTreeSet::new(),
            loose: BTreeSet::new(),
            doomed: BTreeSet::new(),
            returning: BTreeMap::new(),
            since: BTreeMap::new(),
            kept: BTreeMap::new(),
            succeeded: false,
            trace: DefaultHasher::new(),
            lines: Vec::new(),
            keep_lines,
            is_calm: false,
            rows: BTreeMap::new(),
            watch: queue::Watch::default(),
            tangled: dice.once_in(6),
            doubles: dice.once_in(4),
            loses: dice.once_in(8),
            mood: Mood::of(&mut dice),
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            instances: BTreeMap::new(),
            broken: None,
        };
        world.load(0);
        world.plan_deeds(DEEDS);
        world
    }

    /// The same world, but that no client goes away before its answer.
    pub(crate) fn live_with_patience(seed: u64) -> Self {
        let mut world = Self::new(seed, &Cut::default(), false);
        world.leavers = false;
        world.lived()
    }

    /// Lives the whole life of a world: deeds, a calm time after them in most, and the end.
    pub(crate) fn live(seed: u64, cut: &Cut, keep_lines: bool) -> Self {
        Self::new(seed, cut, keep_lines).lived()
    }

    fn lived(self) -> Self {
        let seed = self.seed;
        let mut world = self;
        let hasty = Dice::of(seed, &[WORLD, 1]).once_in(5);
        world.run_for(Duration::from_secs(if hasty { 10 } else { 25 }));
        if !hasty {
            world.calm();
            world.run_for(Duration::from_secs(150));
            if !world.manager.is_shutting_down() {
                world.judge(Self::check_settled);
                world.succeed();
            }
        }
        world.shut_down();
        world.judge(Self::check_ended);
        world
    }

    /// What did not hold, if something did not.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// All that happened, one line each, if it was kept.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    fn judge(&mut self, law: fn(&mut Self) -> Result<(), String>) {
        if let Err(what) = law(self) {
            self.fail(what);
        }
    }

    /// The world ends here; only the first reason counts.
    fn fail(&mut self, what: String) {
        let at = self.now.monotonic;
        self.broken.get_or_insert_with(|| format!("{what} (at {at:?})"));
    }

    /// A unit's number, which names its streams.
    fn number(&self, unit: &UnitName) -> u64 {
        self.names.iter().position(|name| name == unit).unwrap_or(self.names.len()) as u64
    }

    fn after(&mut self, delay: Duration, happening: Happening) {
        self.counter += 1;
        self.agenda.insert((self.now.monotonic + delay, self.counter), happening);
    }

    /// The next thing happens; false if there is none.
    fn step(&mut self) -> bool {
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
                let mut dice = Dice::of(self.seed, &[TICK, tick.0.as_micros() as u64]);
                let late = if dice.once_in(20) { dice.below(3000) } else { 0 };
                self.go_to(tick + Duration::from_millis(late));
                self.catch_up();
                self.event(Event::Tick);
            }
            (Some(_), None) => {}
        }
        true
    }

    /// What has come while the manager was late is heard before its alarm, as the shell drains its sources first.
    fn catch_up(&mut self) {
        let due = |(at, _): &&(Monotonic, u64)| *at <= self.now.monotonic;
        let due: Vec<_> = self.agenda.keys().filter(due).copied().collect();
        for key in due {
            if let Some(happening) = self.agenda.remove(&key) {
                self.happen(happening);
            }
        }
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
            Happening::PidFile(run, right) => self.write_pid_file(run, right),
            Happening::HandOver(id) => self.hand_over(id),
            Happening::Beat(id) => self.beat(id),
            Happening::Traffic(unit) => self.traffic(unit),
            Happening::Deed(n) => self.deed(n),
            Happening::Leave(id) => self.leave(id),
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now.monotonic + span;
        for _ in 0..40_000 {
            let over = self.broken.is_some() || self.shutdowns > 0;
            if self.now.monotonic >= end || over || !self.step() {
                return;
            }
        }
        self.fail("the world never comes to rest".to_owned());
    }

    /// Hands an event over, does what is asked for, and checks what must hold.
    fn event(&mut self, event: Event) {
        if self.broken.is_some() {
            return;
        }
        if self.keep_lines {
            self.lines.push(format!("{:?} <- {}", self.now.monotonic, lines::event(&event)));
        }
        self.hear(&event);
        self.watch_begin(&event);
        let told = self.before_traffic(&event);
        let outlived = self.outlived(&event);
        self.judge_claim(&event);
        let mut effects = Vec::new();
        let (manager, now) = (&mut self.manager, self.now);
        let handled = catch_unwind(AssertUnwindSafe(|| manager.handle(event, now, &mut effects)));
        if handled.is_err() {
            self.fail("the engine panicked".to_owned());
            return;
        }
        let jobs: Vec<JobView> = self.manager.jobs().collect();
        let alone = jobs.iter().filter(|job| job.ignores_requirements);
        self.alone.extend(alone.map(|job| job.unit.clone()));
        self.touched.clear();
        for effect in effects {
            if self.keep_lines {
                self.lines.push(format!("    -> {}", lines::effect(&effect)));
            }
            self.perform(effect);
        }
        if self.keep_lines && jobs != self.jobs_before {
            self.lines.push(format!("    jobs: {}", lines::jobs(&jobs)));
        }
        self.jobs_of_step = std::mem::replace(&mut self.jobs_before, jobs);
        self.after_traffic(told);
        self.check_outlived(outlived);
        self.judge(Self::check);
        self.alone.retain(|unit| self.jobs_before.iter().any(|job| job.unit == *unit));
    }

    /// What the world itself keeps of an event.
    fn hear(&mut self, event: &Event) {
        if let Event::Emptied { run, .. } = event {
            self.hear_empty(*run);
        }
        let Event::Exited { id, run, .. } = event else { return };
        let known = |unit: &UnitName| {
            let main = self.manager.unit(unit).and_then(|view| view.main);
            main.is_some_and(|(main, _)| main == *id)
        };
        let Some(process) = self.processes.get_mut(id).filter(|process| !process.heard) else { return };
        process.heard = true;
        let whole = self.runs.get(run).is_some_and(|info| info.whole);
        if whole && process.is_main && known(&process.unit) {
            self.ends.insert(process.unit.clone(), self.now.monotonic);
        }
    }

    fn perform(&mut self, effect: Effect) {
        self.hash_effect(&effect);
        if let Effect::Refused { request, .. } = &effect {
            self.watch_refusal(*request);
        }
        match effect {
            Effect::Spawn(spawn) => {
                self.serve(&spawn);
                self.spawn(*spawn);
            }
            Effect::Kill { run, target, signal, cont } => {
                if cont && self.frozen.contains(&run) {
                    self.fail(format!("a frozen run gets signal {signal}, which it cannot act on"));
                }
                self.kill(run, target, signal);
            }
            Effect::KillAll { run } => self.kill_all(run),
            Effect::Freeze { run, frozen } => self.freeze(run, frozen),
            Effect::AwaitEmpty { id, run } => self.await_empty(id, run),
            Effect::FindMain { id, run, by } => self.find_main(id, run, by),
            Effect::AskReload { id, run, process, .. } => self.ask_reload(id, run, process),
            Effect::Check { id, unit } => self.look(id, &unit),
            Effect::Release { run } => self.release(run),
            Effect::Accepted { request, .. } => self.must_be_open(request),
            Effect::Finished { request, .. } | Effect::Done { request } | Effect::Refused { request, .. } => {
                self.must_be_open(request);
                self.open.remove(&request);
                self.left.remove(&request);
            }
            Effect::SaveStamp { .. }
            | Effect::TakeAttachment { .. }
            | Effect::DropAttachment { .. }
            | Effect::NameSurvivors { .. } => {}
            Effect::Keep { unit, memo } => self.keep(unit, memo),
            Effect::TakeOver { unit, .. } => self.fail(format!("{} is taken over from nobody", unit.name)),
            Effect::Log(record) => self.read_log(&record),
            Effect::Shutdown { .. } => self.shutdowns += 1,
            other => self.perform_socket(other),
        }
    }

    fn hash_effect(&mut self, effect: &Effect) {
        self.now.monotonic.hash(&mut self.trace);
        match effect {
            Effect::Spawn(spawn) => (spawn.id, spawn.run, spawn.kind, spawn.index).hash(&mut self.trace),
            Effect::Log(record) => record.text.hash(&mut self.trace),
            Effect::Kill { run, target, signal, .. } => (run, target, signal).hash(&mut self.trace),
            Effect::Finished { request, result, .. } => (request, result).hash(&mut self.trace),
            Effect::Freeze { run, frozen } => (run, frozen).hash(&mut self.trace),
            Effect::KillAll { run } | Effect::Release { run } => run.hash(&mut self.trace),
            Effect::AwaitEmpty { id, run }
            | Effect::FindMain { id, run, .. }
            | Effect::AskReload { id, run, .. } => (id, run).hash(&mut self.trace),
            Effect::Check { id, unit } => (id, &unit.name).hash(&mut self.trace),
            Effect::Accepted { request, job } => (request, job).hash(&mut self.trace),
            Effect::Done { request } | Effect::Refused { request, .. } => request.hash(&mut self.trace),
            Effect::Keep { unit, memo } => (unit, memo.is_some()).hash(&mut self.trace),
            Effect::TakeOver { id, run, .. } => (id, run).hash(&mut self.trace),
            Effect::SaveStamp { .. }
            | Effect::TakeAttachment { .. }
            | Effect::DropAttachment { .. }
            | Effect::NameSurvivors { .. }
            | Effect::Shutdown { .. } => {}
            other => format!("{other:?}").hash(&mut self.trace),
        }
    }

    /// A number that two runs have in common only if every effect was the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.trace.finish()
    }
}
