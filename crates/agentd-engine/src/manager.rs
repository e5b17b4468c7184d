//! The one owner of all unit state: its table, its clockwork, and the way of an event through it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use agentd_unit::{Realtime, UnitName};

use crate::alarms::Alarms;
use crate::clock::{Boottime, Deadlines, Monotonic, Now};
use crate::effect::{Effect, JobResult, Level};
use crate::event::Event;
use crate::graph::{Graph, UnitId};
use crate::ids::{InvocationId, JobId};
use crate::job::{Check, Job, JobType};
use crate::out::{Ids, Out};
use crate::service::{ServiceEvent, ServiceState};
use crate::shutdown::Shutdown;
use crate::state::ActiveState;
use crate::unit::{Core, Entry};
use crate::view::{JobView, UnitView};

/// What the manager is told at birth.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Entropy for invocation ids; the same seed gives the same run.
    pub seed: [u8; 16],
    /// When persistent timers last fired, from earlier boots.
    pub stamps: BTreeMap<UnitName, Realtime>,
    /// The bound on a whole shutdown; what is left then is killed. `None`: no bound of its own.
    pub shutdown_timeout: Option<Duration>,
    /// How much is said: nothing that is quieter than this.
    pub quietest: Level,
}

/// Something inside the manager that follows from an event and waits for its turn in the same call.
#[derive(Debug)]
pub(crate) enum Work {
    /// A unit is something else for others than before.
    Changed { unit: UnitId, old: ActiveState, new: ActiveState },
    /// A restart without delay.
    Due(UnitId),
    /// A job failed for others, or took too long.
    JobFailed(UnitId),
    /// A job came to its end.
    Ended { unit: UnitId, kind: JobType, begun: bool, result: JobResult },
}

/// The one owner of all unit state.
#[derive(Debug)]
pub struct Manager {
    pub(crate) stamps: BTreeMap<UnitName, Realtime>,
    pub(crate) shutdown_timeout: Option<Duration>,
    pub(crate) quietest: Level,
    pub(crate) born: Now,
    /// A place is never empty: a unit that is gone keeps its own until another takes it.
    pub(crate) table: Vec<Entry>,
    pub(crate) free_places: usize,
    /// Ids and aliases of all units, those without a file too.
    pub(crate) by_name: BTreeMap<UnitName, UnitId>,
    pub(crate) graph: Graph,
    /// A definition took effect since the graph was built.
    pub(crate) graph_is_old: bool,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Jobs to look at: their turn may have come.
    pub(crate) queue: BTreeSet<JobId>,
    pub(crate) work: VecDeque<Work>,
    /// Automatic restarts that could not be made into jobs, for when another job is done.
    pub(crate) put_off: BTreeSet<UnitId>,
    /// Instances of connections that are over, to be forgotten.
    pub(crate) passed: BTreeSet<UnitId>,
    /// Units that have failed and are forgotten once no other speaks of them, `CollectMode`.
    pub(crate) failed: BTreeSet<UnitId>,
    /// One of them may be forgotten now.
    pub(crate) failed_to_see: bool,
    pub(crate) runs: BTreeMap<InvocationId, UnitId>,
    /// Services of `Type=idle` that wait until no other job runs.
    pub(crate) idle: BTreeSet<UnitId>,
    pub(crate) id_source: Ids,
    pub(crate) alarms: Alarms<Monotonic>,
    /// When a unit's job is given up, or asks again.
    pub(crate) job_alarms: Alarms<Monotonic>,
    pub(crate) spans: Alarms<Boottime>,
    pub(crate) calendars: Alarms<Realtime>,
    pub(crate) shutdown: Option<Shutdown>,
    /// Units of which there may be something else to keep than before.
    pub(crate) touched: Vec<UnitId>,
}

impl Manager {
    /// A manager that knows no units yet.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Self {
        Self {
            stamps: config.stamps,
            shutdown_timeout: config.shutdown_timeout,
            quietest: config.quietest,
            born: now,
            table: Vec::new(),
            free_places: 0,
            by_name: BTreeMap::new(),
            graph: Graph::default(),
            graph_is_old: false,
            jobs: BTreeMap::new(),
            queue: BTreeSet::new(),
            work: VecDeque::new(),
            put_off: BTreeSet::new(),
            passed: BTreeSet::new(),
            failed: BTreeSet::new(),
            failed_to_see: false,
            runs: BTreeMap::new(),
            idle: BTreeSet::new(),
            id_source: Ids::new(config.seed),
            alarms: Alarms::default(),
            job_alarms: Alarms::default(),
            spans: Alarms::default(),
            calendars: Alarms::default(),
            shutdown: None,
            touched: Vec::new(),
        }
    }

    /// Takes one event and pushes what follows from it, in order.
    pub fn handle(&mut self, event: Event, now: Now, effects: &mut Vec<Effect>) {
        let mut ids = std::mem::replace(&mut self.id_source, Ids::new([0; 16]));
        let mut out = Out { now, effects, ids: &mut ids, quietest: self.quietest };
        match event {
            Event::Tick => self.tick(&mut out),
            Event::ClockChanged => self.clock_changed(&mut out),
            Event::UnitsLoaded(set) => self.load(&set, &mut out),
            Event::UnitsFound(set) => self.found(&set, &mut out),
            Event::Request { id, request } => self.request(id, request, &mut out),
            Event::Spawned { id, run, result } => self.spawned(id, run, result, &mut out),
            Event::Exited { id, run, status } => self.exited(id, run, status, &mut out),
            Event::Emptied { id, run } => self.emptied(id, run, &mut out),
            Event::MainFound { id, run, result } => self.main_found(id, run, result, &mut out),
            Event::PidFileChanged { run } => self.pid_file_changed(run, &mut out),
            Event::ReloadAsked { id, run, result } => self.reload_asked(id, run, result, &mut out),
            Event::Checked { id, checked } => self.checked(id, checked, &mut out),
            Event::Listened { id, unit, result } => self.listened(id, &unit, result, &mut out),
            Event::Traffic { unit, path } => self.traffic(&unit, path, &mut out),
            Event::Accepted { id, socket, result } => self.accepted(id, &socket, result, &mut out),
            Event::OomKilled { run } => self.oom_killed(run, &mut out),
            Event::TakenOver { memos, born } => self.take_over(&memos, born, &mut out),
            Event::Notified { run, sender, notification } => {
                self.notified(run, sender, &notification, &mut out);
            }
        }
        self.follow(&mut out);
        self.id_source = ids;
    }

    /// When the next [`Event::Tick`] is due.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        let shutdown = self.shutdown.as_ref().and_then(Shutdown::deadline);
        Deadlines {
            monotonic: self.alarms.first().into_iter().chain(self.job_alarms.first()).chain(shutdown).min(),
            boottime: self.spans.first(),
            realtime: self.calendars.first(),
        }
    }

    /// One unit, by id or alias. Also units that are named but have no file.
    #[must_use]
    pub fn unit(&self, name: &UnitName) -> Option<UnitView> {
        self.id(name).and_then(|id| self.view(id))
    }

    /// All units, in the order of their names.
    pub fn units(&self) -> impl Iterator<Item = UnitView> + '_ {
        let is_id =
            |name: &UnitName, id: UnitId| self.entry(id).is_some_and(|entry| entry.unit.name == *name);
        self.by_name.iter().filter(move |(name, id)| is_id(name, **id)).filter_map(|(_, id)| self.view(*id))
    }

    /// All jobs, in the order of their numbers.
    pub fn jobs(&self) -> impl Iterator<Item = JobView> + '_ {
        self.jobs.values().map(|job| self.view_job(job))
    }

    /// The unit that a run belongs to, while it lasts.
    #[must_use]
    pub fn unit_of_run(&self, run: InvocationId) -> Option<&UnitName> {
        self.runs.get(&run).and_then(|id| self.entry(*id)).map(|entry| &entry.unit.name)
    }

    /// Whether a shutdown is under way.
    #[must_use]
    pub const fn is_shutting_down(&self) -> bool {
        self.shutdown.is_some()
    }

    /// Time went on: everybody who is due hears of it, and then it is done.
    fn tick(&mut self, out: &mut Out<'_>) {
        for unit in self.alarms.due(out.now.monotonic) {
            self.uphold(unit, out);
            self.drive(unit, ServiceEvent::Tick, out);
            self.tick_trigger(unit, out);
            self.set_alarm(unit); // An alarm that nobody answers to would ring for ever.
        }
        self.tick_jobs(out);
        self.tick_timers(out);
        self.watch_shutdown(out);
    }

    /// Lets everything follow that follows at once.
    fn follow(&mut self, out: &mut Out<'_>) {
        loop {
            if let Some(work) = self.work.pop_front() {
                self.failed_to_see = !self.failed.is_empty();
                match work {
                    Work::Changed { unit, old, new } => self.changed(unit, old, new, out),
                    Work::Due(unit) => self.drive(unit, ServiceEvent::Tick, out),
                    Work::JobFailed(unit) => self.start_hooks_of_job(unit, out),
                    Work::Ended { unit, kind, begun, result } => {
                        self.ended(unit, kind, result, out);
                        self.after_job(unit, kind, begun, out);
                        // A start that failed before it began changed nothing that its timer would hear of.
                        self.timers_follow(unit, out);
                    }
                }
            } else if self.graph_is_old {
                self.renew_graph(out); // Before a job is looked at: a new definition has its own order.
            } else if let Some(job) = self.queue.pop_first() {
                self.examine(job, out);
            } else if let Some(unit) = self.next_idle() {
                self.drive(unit, ServiceEvent::Quiet, out);
            } else if !self.forget_the_passed() && !self.forget_the_failed(out) {
                break;
            }
        }
        self.finish_shutdown(out);
        self.keep_touched(false, out);
    }

    /// Takes a service on by one event, and lets the rest of the manager know what came of it.
    pub(crate) fn drive(&mut self, id: UnitId, event: ServiceEvent, out: &mut Out<'_>) {
        let Some(entry) = self.table.get_mut(id.index()) else { return };
        let (old, was_restarting) = (entry.active(), entry.is_restarting());
        let Some(service) = entry.service_mut() else { return };
        let (before, run) = (service.state, service.facts.run.as_ref().map(|run| run.id));
        let from = out.effects.len();
        let after = before.next(event, &mut service.facts, out);
        service.state = after;
        let (facts, waits) = (&service.facts, after.waits_for_quiet(&service.facts));
        let is_other_run = run != facts.run.as_ref().map(|run| run.id);
        let kept = facts.leftover.map(|leftover| leftover.run);
        if let Some(run) = run.filter(|run| facts.run.is_none() && kept != Some(*run)) {
            self.runs.remove(&run);
        }
        if facts.run.is_none() && facts.failure.is_some() {
            entry.failure = facts.failure.clone();
        }
        if waits {
            self.idle.insert(id);
        } else {
            self.idle.remove(&id);
        }
        self.hand_over(id, from, out);
        self.note_change(id, before, after, out);
        self.set_alarm(id);
        if is_other_run || before.as_str() != after.as_str() || before.post() != after.post() {
            self.touch(id);
        }
        let Some(entry) = self.entry(id) else { return };
        let new = entry.active();
        if old != new || was_restarting != entry.is_restarting() {
            self.work.push_back(Work::Changed { unit: id, old, new });
        }
        if let ServiceState::AutoRestart { at, due } = after {
            if due && before != after {
                self.restart_due(id, out);
            } else if !due && at <= out.now.monotonic {
                self.work.push_back(Work::Due(id));
            }
        }
        self.unkillable(id, out);
    }

    /// A service of `Type=idle` whose time has come: no job runs but those of services that wait for the same.
    fn next_idle(&self) -> Option<UnitId> {
        let first = *self.idle.first()?;
        let busy = |job: &Job| job.running || matches!(job.check, Check::Asked(..));
        let quiet = !self.jobs.values().any(|job| busy(job) && !self.idle.contains(&job.unit));
        quiet.then_some(first)
    }

    /// A unit that is no service goes from one state to another.
    pub(crate) fn set(
        &mut self,
        id: UnitId,
        change: impl FnOnce(&mut Entry, &mut Out<'_>),
        out: &mut Out<'_>,
    ) {
        let Some(entry) = self.table.get_mut(id.index()) else { return };
        let (old, sub) = (entry.active(), entry.sub());
        change(entry, out);
        let new = entry.active();
        let is_other = sub != entry.sub();
        if is_other {
            entry.times.state_change = Some(out.now.realtime);
            if out.says(Level::Debug) {
                let name = &entry.unit.name;
                let text = format!("{name}: Changed {sub} -> {}", entry.sub());
                out.log(Level::Debug, name, None, None, text);
            }
        }
        if old != new {
            entry.times.note(old, new, out.now);
            self.work.push_back(Work::Changed { unit: id, old, new });
        }
        if is_other {
            self.touch(id);
        }
    }

    fn note_change(&mut self, id: UnitId, before: ServiceState, after: ServiceState, out: &mut Out<'_>) {
        if before.as_str() == after.as_str() {
            return;
        }
        let Some(entry) = self.entry_mut(id) else { return };
        entry.times.state_change = Some(out.now.realtime);
        entry.times.note(before.active(), after.active(), out.now);
        if out.says(Level::Debug) {
            let run = entry.service().and_then(|service| service.facts.last_run);
            let name = &entry.unit.name;
            let text = format!("{name}: Changed {} -> {}", before.as_str(), after.as_str());
            out.log(Level::Debug, name, run, None, text);
        }
    }

    /// Writes down when a unit next needs a tick.
    pub(crate) fn set_alarm(&mut self, id: UnitId) {
        let Some(entry) = self.entry(id) else { return };
        let service = entry.service().and_then(|service| service.state.deadline(&service.facts));
        let other = match &entry.core {
            Core::Socket(socket) => socket.state.deadline(),
            Core::Path(path) => path.state.deadline(),
            Core::Service(_) | Core::Timer(_) | Core::Plain(_) => None,
        };
        let at = service.into_iter().chain(other).chain(entry.uphold_at).min();
        self.alarms.set(id, at);
    }

    pub(crate) fn id(&self, name: &UnitName) -> Option<UnitId> {
        self.by_name.get(name).copied()
    }

    /// All units that there are, in the order of the table.
    pub(crate) fn ids(&self) -> impl Iterator<Item = UnitId> + '_ {
        self.table.iter().enumerate().filter(|(_, entry)| !entry.is_gone).map(|(id, _)| UnitId(id as u32))
    }

    pub(crate) fn entry(&self, id: UnitId) -> Option<&Entry> {
        self.table.get(id.index())
    }

    pub(crate) fn entry_mut(&mut self, id: UnitId) -> Option<&mut Entry> {
        self.table.get_mut(id.index())
    }

    /// The name of a unit in the table.
    pub(crate) fn name(&self, id: UnitId) -> UnitName {
        self.table[id.index()].unit.name.clone()
    }

    /// What the job of a unit does, if it has one.
    pub(crate) fn job_of(&self, id: UnitId) -> Option<JobType> {
        let job = self.entry(id)?.job?;
        self.jobs.get(&job).map(|job| job.kind)
    }

    /// The units with jobs of these kinds.
    pub(crate) fn job_units<'a>(
        &'a self,
        kinds: impl Fn(JobType) -> bool + 'a,
    ) -> impl Iterator<Item = UnitId> + 'a {
        self.jobs.values().filter(move |job| kinds(job.kind)).map(|job| job.unit)
    }
}
