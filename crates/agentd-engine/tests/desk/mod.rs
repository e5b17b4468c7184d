//! A manager on a desk: each event is handed to it by name, and what it asks for is looked at.

#![allow(dead_code, reason = "each test file uses its own part of the desk")]
#![allow(clippy::unwrap_used, reason = "a test helper fails the test")]

use std::collections::BTreeMap;
use std::time::Duration;

use agentd_engine::{
    Boottime, Config, Effect, EffectId, Event, ExitStatus, InvocationId, JobKind, JobMode, JobResult,
    Manager, Memo, Monotonic, Notification, Now, Request, RequestError, RequestId, Sender, Spawn,
    SpawnFailure, SpawnFailureKind, UnitView,
};
use agentd_unit::{
    Body, ExecCommand, ExecKind, LoadState, Realtime, ServiceSection, Signal, TimerSection, TimerTrigger,
    Unit, UnitName, UnitSet,
};

/// Midnight of some day in 2027, in microseconds.
pub(crate) const DAY: i64 = 1_800_000_000_000_000;

pub(crate) fn name(text: &str) -> UnitName {
    UnitName::parse(text).unwrap()
}

pub(crate) fn command(program: &str) -> ExecCommand {
    ExecCommand {
        program: program.to_owned(),
        argv: vec![program.to_owned()],
        ignore_failure: false,
        full_privileges: false,
        no_setuid: false,
        expand_environment: true,
    }
}

/// A loaded unit without default dependencies: what a test says is all that holds.
pub(crate) fn unit(text: &str, change: impl FnOnce(&mut Unit)) -> Unit {
    let mut unit = Unit::not_found(name(text));
    unit.load = LoadState::Loaded;
    unit.unit.default_dependencies = false;
    if let Body::Service(body) = &mut unit.body {
        body.service.exec_start = vec![command("/bin/agent")];
    }
    change(&mut unit);
    // As good as a digest for tests: different definitions differ in it.
    let text = format!("{unit:?}");
    for (i, byte) in text.bytes().enumerate() {
        let place = &mut unit.digest[i % 32];
        *place = place.rotate_left(3) ^ byte;
    }
    unit
}

pub(crate) fn service(text: &str, change: impl FnOnce(&mut ServiceSection)) -> Unit {
    unit(text, |unit| change(section(unit)))
}

pub(crate) fn section(unit: &mut Unit) -> &mut ServiceSection {
    match &mut unit.body {
        Body::Service(body) => &mut body.service,
        other => panic!("no service: {other:?}"),
    }
}

pub(crate) fn timer(text: &str, triggers: Vec<TimerTrigger>, persistent: bool) -> Unit {
    unit(text, |unit| {
        unit.body = Body::Timer(Box::new(TimerSection { triggers, persistent, ..TimerSection::default() }));
    })
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) struct Desk {
    pub(crate) manager: Manager,
    pub(crate) now: Now,
    /// Everything the manager ever asked for.
    pub(crate) effects: Vec<Effect>,
    /// Where [`Desk::news`] begins.
    seen: usize,
    requests: u64,
    pid: u32,
}

impl Desk {
    pub(crate) fn new(units: impl IntoIterator<Item = Unit>) -> Self {
        Self::with(Config::default(), units)
    }

    pub(crate) fn with(config: Config, units: impl IntoIterator<Item = Unit>) -> Self {
        let now =
            Now { monotonic: Monotonic(secs(100)), boottime: Boottime(secs(1000)), realtime: Realtime(DAY) };
        let mut desk = Self {
            manager: Manager::new(config, now),
            now,
            effects: Vec::new(),
            seen: 0,
            requests: 0,
            pid: 100,
        };
        desk.load(units);
        desk
    }

    pub(crate) fn load(&mut self, units: impl IntoIterator<Item = Unit>) {
        let mut set = UnitSet::new();
        units.into_iter().for_each(|unit| set.insert(unit));
        self.event(Event::UnitsLoaded(set));
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.manager.handle(event, self.now, &mut self.effects);
    }

    /// What is kept for a manager after this one, of the units that something is kept of.
    pub(crate) fn kept(&self) -> BTreeMap<UnitName, Memo> {
        let mut kept = BTreeMap::new();
        for effect in &self.effects {
            let Effect::Keep { unit, memo } = effect else { continue };
            match memo {
                Some(memo) => kept.insert(unit.clone(), (**memo).clone()),
                None => kept.remove(unit),
            };
        }
        kept
    }

    /// Another manager of the same boot, which goes on with what this one has kept.
    pub(crate) fn heir(&self, units: impl IntoIterator<Item = Unit>) -> Self {
        let mut heir = Self::with(Config { seed: [7; 16], ..Config::default() }, units);
        (heir.now, heir.pid) = (self.now, self.pid);
        let memos = self.kept().into_values().collect();
        heir.event(Event::TakenOver { memos, born: None });
        heir
    }

    /// The name of a main process that was taken over, and its run.
    pub(crate) fn taken_over(&self, unit: &str) -> (EffectId, InvocationId) {
        let found = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::TakeOver { id, run, unit: u, .. } if u.name.as_str() == unit => Some((*id, *run)),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{unit} was not taken over"))
    }

    /// The effects since the last look.
    pub(crate) fn news(&mut self) -> Vec<Effect> {
        let news = self.effects[self.seen..].to_vec();
        self.seen = self.effects.len();
        news
    }

    pub(crate) fn request(&mut self, request: Request) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.event(Event::Request { id, request });
        id
    }

    pub(crate) fn job(&mut self, kind: JobKind, unit: &str, mode: JobMode) -> RequestId {
        self.request(Request::Job { kind, unit: name(unit), mode })
    }

    pub(crate) fn start(&mut self, unit: &str) -> RequestId {
        self.job(JobKind::Start, unit, JobMode::Replace)
    }

    pub(crate) fn stop(&mut self, unit: &str) -> RequestId {
        self.job(JobKind::Stop, unit, JobMode::Replace)
    }

    pub(crate) fn restart(&mut self, unit: &str) -> RequestId {
        self.job(JobKind::Restart, unit, JobMode::Replace)
    }

    pub(crate) fn result(&self, request: RequestId) -> Option<JobResult> {
        let results: Vec<JobResult> = self
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Finished { request: id, result, .. } if *id == request => Some(*result),
                _ => None,
            })
            .collect();
        assert!(results.len() <= 1, "{request:?} was answered more than once: {results:?}");
        results.first().copied()
    }

    pub(crate) fn refusal(&self, request: RequestId) -> Option<RequestError> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Refused { request: id, error } if *id == request => Some(error.clone()),
            _ => None,
        })
    }

    pub(crate) fn view(&self, unit: &str) -> UnitView {
        self.manager.unit(&name(unit)).unwrap_or_else(|| panic!("{unit} is not known"))
    }

    pub(crate) fn sub(&self, unit: &str) -> &'static str {
        self.view(unit).sub
    }

    pub(crate) fn failure(&self, unit: &str) -> String {
        self.view(unit).failure.unwrap_or_default()
    }

    /// All commands that were asked for, as `unit kind index`, since the last look.
    pub(crate) fn spawned_since(&mut self) -> Vec<String> {
        self.news()
            .iter()
            .filter_map(|effect| match effect {
                Effect::Spawn(spawn) => {
                    Some(format!("{} {} {}", spawn.unit.name.stem(), spawn.kind, spawn.index))
                }
                _ => None,
            })
            .collect()
    }

    pub(crate) fn spawns(&self, unit: &str) -> Vec<&Spawn> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Spawn(spawn) if spawn.unit.name.as_str() == unit => Some(&**spawn),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn last_spawn(&self, unit: &str) -> Spawn {
        (*self.spawns(unit).last().unwrap_or_else(|| panic!("{unit} was never started"))).clone()
    }

    /// The main process of a run, where it is there.
    pub(crate) fn main_of(&self, run: agentd_engine::InvocationId) -> Option<EffectId> {
        let unit = self.manager.unit_of_run(run)?;
        Some(self.manager.unit(unit)?.main?.0)
    }

    /// The last command of a unit is executed.
    pub(crate) fn up(&mut self, unit: &str) {
        let spawn = self.last_spawn(unit);
        self.pid += 1;
        self.event(Event::Spawned { id: spawn.id, run: spawn.run, result: Ok(self.pid) });
    }

    /// The last command of a unit cannot be executed.
    pub(crate) fn fail_spawn(&mut self, unit: &str, kind: SpawnFailureKind) {
        let spawn = self.last_spawn(unit);
        let failure = SpawnFailure { kind, message: "/bin/agent: no such file (ENOENT)".to_owned() };
        self.event(Event::Spawned { id: spawn.id, run: spawn.run, result: Err(failure) });
    }

    /// The last command of a unit ends.
    pub(crate) fn exit(&mut self, unit: &str, status: ExitStatus) {
        let spawn = self.last_spawn(unit);
        self.event(Event::Exited { id: spawn.id, run: spawn.run, status });
    }

    /// The last main process of a unit ends.
    pub(crate) fn exit_main(&mut self, unit: &str, status: ExitStatus) {
        let spawn = (*self.spawns(unit).iter().rfind(|spawn| spawn.kind == ExecKind::Start).unwrap()).clone();
        self.event(Event::Exited { id: spawn.id, run: spawn.run, status });
    }

    /// The cgroup of the unit's last run is empty.
    pub(crate) fn empty(&mut self, unit: &str) {
        let run = self.last_spawn(unit).run;
        let id = self.awaiting(unit).unwrap_or_else(|| panic!("nobody asks whether {unit} is empty"));
        self.event(Event::Emptied { id, run });
    }

    fn awaiting(&self, unit: &str) -> Option<EffectId> {
        let wanted = self.last_spawn(unit).run;
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::AwaitEmpty { id, run } if *run == wanted => Some(*id),
            _ => None,
        })
    }

    /// The main process ends and nothing else is left.
    pub(crate) fn die(&mut self, unit: &str, status: ExitStatus) {
        self.exit_main(unit, status);
        self.empty(unit);
    }

    /// Starts a service whose Type needs no more than its process.
    pub(crate) fn run(&mut self, unit: &str) {
        let request = self.start(unit);
        self.up(unit);
        assert_eq!(self.result(request), Some(JobResult::Done), "{unit}");
    }

    pub(crate) fn notify(&mut self, unit: &str, notification: Notification) {
        let spawn = self.last_spawn(unit);
        let sender = Sender::Process(spawn.id);
        self.event(Event::Notified { run: spawn.run, sender, notification });
    }

    pub(crate) fn ready(&mut self, unit: &str) {
        self.notify(unit, Notification { ready: true, ..Notification::default() });
    }

    /// Lets time go on, with a tick at each deadline on the way.
    pub(crate) fn advance(&mut self, span: Duration) {
        let end = self.now.monotonic + span;
        while self.now.monotonic < end {
            let deadlines = self.manager.deadlines();
            let mono = deadlines.monotonic.map(|at| at - self.now.monotonic);
            let boot = deadlines.boottime.map(|at| at - self.now.boottime);
            let real = deadlines.realtime.map(|at| at - self.now.realtime);
            let next = mono.into_iter().chain(boot).chain(real).min();
            let step = next.unwrap_or(span).max(Duration::from_micros(1)).min(end - self.now.monotonic);
            self.skip(step);
            self.event(Event::Tick);
        }
    }

    /// Lets time go on without anybody noticing.
    pub(crate) fn skip(&mut self, span: Duration) {
        self.now.monotonic = self.now.monotonic + span;
        self.now.boottime = self.now.boottime + span;
        self.now.realtime = self.now.realtime + span;
    }

    pub(crate) fn logs(&self, needle: &str) -> usize {
        self.texts().iter().filter(|text| text.contains(needle)).count()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |effect: &Effect| match effect {
            Effect::Log(record) => Some(record.text.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(text).collect()
    }

    /// All units and their sub-states.
    pub(crate) fn subs(&self) -> BTreeMap<String, &'static str> {
        self.manager.units().map(|view| (view.unit.name.to_string(), view.sub)).collect()
    }
}

pub(crate) const CLEAN: ExitStatus = ExitStatus::Exited(0);
pub(crate) const DIRTY: ExitStatus = ExitStatus::Exited(1);
pub(crate) const TERMINATED: ExitStatus = ExitStatus::Killed(Signal::TERM);
pub(crate) const KILLED: ExitStatus = ExitStatus::Killed(Signal::KILL);
