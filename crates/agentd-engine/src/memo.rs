//! What must be known of a unit so that another manager can go on with it: after a re-execution, or after a manager
//! that was killed while its agents live on.
//!
//! # Invariants
//! - What is kept of a unit is always enough to take it over, or nothing: a unit on its way up or down keeps what was
//!   true before it set out, and one that somebody has asked to stop keeps nothing, or that it is to come again.
//! - Taking over starts nothing and stops nothing but what somebody was restarting; what has ended meanwhile ends as if it had just happened.

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::{Body, ExecKind, LoadState, NotifyAccess, Realtime, UnitName};

use crate::clock::{Boottime, Monotonic};
use crate::effect::{Effect, Level, Trigger};
use crate::event::JobKind;
use crate::graph::{Relation, UnitId};
use crate::ids::InvocationId;
use crate::manager::Manager;
use crate::out::{Ids, Out};
use crate::past::Past;
use crate::rate::Rate;
use crate::restart::Restarts;
use crate::service::{Leftover, Process, Run, ServiceState};
use crate::state::ServiceResult;
use crate::unit::{Core, Entry, PlainState, ServiceCore};
use crate::view::ExecStatusView;

/// One unit, as another manager of the same boot needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memo {
    /// Which unit.
    pub unit: UnitName,
    /// Where it stood.
    pub life: Life,
    /// Its present or last run.
    pub last_run: Option<InvocationId>,
    /// How often it was begun.
    pub generation: u64,
    /// How often it was restarted automatically since a person started it.
    pub restarts: u32,
    /// Where its back-off stands.
    pub restart_step: u32,
    /// The automatic starts that its start limit still counts, the oldest first.
    pub recent_starts: Vec<Monotonic>,
    /// When it was last activated, for OnUnitActiveSec.
    pub activated: Option<Boottime>,
    /// When it last came to rest, for OnUnitInactiveSec.
    pub rested: Option<Boottime>,
    /// When it last left inactive.
    pub inactive_exit: Option<Realtime>,
    /// When it last became active.
    pub active_enter: Option<Realtime>,
    /// The timer, socket or path unit that its run was started for.
    pub trigger: Option<Box<Trigger>>,
    /// The socket whose connection it was made for, and where that comes from.
    pub connection: Option<(UnitName, Option<String>)>,
    /// It went down, or did not come up, because of these: it returns with any of them.
    pub returns_with: Vec<UnitName>,
    /// The run that it has ended while `KillMode` let processes of it live on.
    pub leftover: Option<InvocationId>,
    /// What its lives before have left.
    pub past: Past,
}

impl Memo {
    /// One that says nothing but that something of a run may be left.
    #[must_use]
    pub fn of_run(unit: UnitName, run: InvocationId) -> Self {
        Self {
            unit,
            life: Life::Down,
            last_run: None,
            generation: 0,
            restarts: 0,
            restart_step: 0,
            recent_starts: Vec::new(),
            activated: None,
            rested: None,
            inactive_exit: None,
            active_enter: None,
            trigger: None,
            connection: None,
            returns_with: Vec::new(),
            leftover: Some(run),
            past: Past::default(),
        }
    }

    /// The run that processes may still be there of.
    #[must_use]
    pub fn run(&self) -> Option<InvocationId> {
        match self.life {
            Life::Up { run, .. } => Some(run),
            _ => self.leftover,
        }
    }
}

/// Where a unit stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// A service that is up.
    Up {
        /// Its run.
        run: InvocationId,
        /// The pid of its main process, if it has one.
        main: Option<u32>,
        /// When the main process was started.
        started: Option<Realtime>,
        /// Since when it is up.
        since: Option<Monotonic>,
        /// Until when it may run, where that is bounded.
        until: Option<Monotonic>,
        /// The longest silence, where it must show signs of life.
        watchdog: Option<Duration>,
        /// Whose notifications count, where it has said that itself.
        access: Option<NotifyAccess>,
        /// What it last said of itself.
        status: Option<String>,
        /// It is up although all its commands have ended (`RemainAfterExit`).
        exited: bool,
        /// Its processes stand still.
        frozen: bool,
        /// Somebody restarts it: it is to end, and to come up again.
        again: bool,
        /// Which `ExecStartPost` is being run, from 0; the others behind it are still to be run.
        post: Option<u32>,
    },
    /// A service whose next start is due at this time.
    Waiting {
        /// When.
        at: Monotonic,
        /// How the life before it ended.
        result: ServiceResult,
    },
    /// A unit that has failed.
    Failed {
        /// Why.
        result: ServiceResult,
    },
    /// A timer that waits or runs.
    Timer {
        /// When it became active.
        activated: Boottime,
        /// From when its calendars count.
        base: Realtime,
        /// When it was last due.
        elapsed: Option<Boottime>,
        /// Which of its triggers that fire once have fired, in the order of the file.
        done: Vec<bool>,
        /// When it last fired.
        last_trigger: Option<Realtime>,
        /// What it started still runs.
        running: bool,
        /// Which triggers these were, as a number.
        schedule: Option<u64>,
    },
    /// A socket that listens.
    Socket {
        /// Its service has the sockets.
        running: bool,
        /// It is not to be armed before this.
        again: Option<Monotonic>,
        /// How many connections it has taken.
        accepted: u64,
        /// How many it has refused.
        refused: u64,
        /// When it was woken lately, for `PollLimitBurst`.
        polls: Vec<Monotonic>,
        /// When it started its service lately, for `TriggerLimitBurst`.
        triggers: Vec<Monotonic>,
    },
    /// A path unit that waits, or whose unit runs.
    Path {
        /// Its unit runs.
        running: bool,
        /// When it started its unit lately, for `TriggerLimitBurst`.
        triggers: Vec<Monotonic>,
    },
    /// A unit without a state of its own that is active: a target, a slice.
    Active,
    /// A unit that is down, and of which something still counts: its restarts, when it was last up, what it waits for.
    Down,
}

/// What is to be done about what is kept of a unit.
pub(crate) enum Keeping {
    /// It stays as it is.
    Unchanged,
    /// There is nothing to keep any more.
    Nothing,
    /// This is what there is to keep.
    This(Life),
}

impl Manager {
    /// What there is to keep of a unit may be other than before.
    pub(crate) fn touch(&mut self, unit: UnitId) {
        if self.touched.last() != Some(&unit) {
            self.touched.push(unit);
        }
    }

    /// Has what is to be kept of the units that changed be kept. With `past` also of those that are down.
    pub(crate) fn keep_touched(&mut self, past: bool, out: &mut Out<'_>) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for unit in touched.drain(..) {
            let again = self.comes_again(unit).then_some(out.now.monotonic);
            let timed = self.counts_for_a_timer(unit);
            let Some(entry) = self.entry_mut(unit) else { continue };
            let left = entry.service().is_some_and(|service| service.facts.leftover.is_some());
            let keeps_down =
                left || timed || !entry.returns_with.is_empty() || past && Past::of(entry) != Past::default();
            let found = match keeping(entry, again) {
                Keeping::Nothing if keeps_down && !entry.is_gone => Keeping::This(Life::Down),
                found => found,
            };
            let memo = match found {
                Keeping::This(life) => {
                    let (connection, returns_with) = (entry.connection, entry.returns_with.clone());
                    let mut memo = memo(entry, life);
                    memo.connection = connection.and_then(|(socket, id)| self.origin_of(socket, id));
                    memo.returns_with = returns_with.into_iter().map(|other| self.name(other)).collect();
                    Some(Box::new(memo))
                }
                Keeping::Nothing if entry.is_kept => None,
                Keeping::Nothing | Keeping::Unchanged => continue,
            };
            let Some(entry) = self.entry_mut(unit) else { continue };
            entry.is_kept = memo.is_some();
            out.push(Effect::Keep { unit: entry.unit.name.clone(), memo });
        }
        self.touched = touched; // Its memory is used again.
    }

    /// Somebody restarts it: what goes down is to come up again.
    fn comes_again(&self, unit: UnitId) -> bool {
        let job = self.entry(unit).and_then(|entry| entry.job).and_then(|id| self.jobs.get(&id));
        job.is_some_and(|job| job.shown == JobKind::Restart)
    }

    /// A timer counts from when it was last begun or at rest.
    fn counts_for_a_timer(&self, unit: UnitId) -> bool {
        let timer = |id: UnitId| self.entry(id).is_some_and(|entry| matches!(entry.core, Core::Timer(_)));
        self.entry(unit).is_some_and(|entry| entry.times.activated.is_some())
            && self.graph.related(unit, Relation::TRIGGERED_BY).any(timer)
    }

    /// Has what there is to keep be kept again, of all units: texts that a service says of itself change without it.
    pub fn keep_all(&mut self, effects: &mut Vec<Effect>) {
        for index in 0..self.table.len() {
            self.touch(UnitId(index as u32));
        }
        let mut ids = std::mem::replace(&mut self.id_source, Ids::new([0; 16]));
        let mut out = Out { now: self.born, effects, ids: &mut ids, quietest: self.quietest };
        self.keep_touched(true, &mut out);
        self.id_source = ids;
    }

    /// Units that are on their way from one state to another, so that they cannot be taken over as they are.
    pub fn unsettled(&self) -> impl Iterator<Item = &UnitName> + '_ {
        let is_settled = |entry: &Entry| match &entry.core {
            Core::Service(service) => matches!(
                service.state,
                ServiceState::Dead
                    | ServiceState::Failed
                    | ServiceState::Running { .. }
                    | ServiceState::Exited
                    | ServiceState::AutoRestart { due: false, .. }
            ),
            Core::Socket(socket) => socket.is_settled(),
            Core::Path(path) => path.is_settled(),
            Core::Timer(_) | Core::Plain(_) => true,
        };
        self.ids()
            .filter_map(|id| self.entry(id))
            .filter(move |entry| entry.job.is_some() || !is_settled(entry))
            .map(|entry| &entry.unit.name)
    }

    /// Goes on with units of a manager before. `born` is when the first manager of this boot began, from which
    /// OnStartupSec counts. What has no loaded definition, or is not at rest any more, is left to the shell.
    pub(crate) fn take_over(&mut self, memos: &[Memo], born: Option<Boottime>, out: &mut Out<'_>) {
        if let Some(born) = born {
            self.born.boottime = born;
        }
        let (mut triggers, mut returning) = (Vec::new(), Vec::new());
        for memo in memos {
            let Some(id) = self.id(&memo.unit) else { continue };
            let fits = |entry: &Entry| entry.unit.load == LoadState::Loaded && entry.is_at_rest();
            if self.entry(id).is_some_and(fits) && self.go_on(id, memo, out) {
                self.touch(id);
                self.set_alarm(id);
                if matches!(memo.life, Life::Socket { .. } | Life::Path { .. }) {
                    triggers.push(id);
                }
                self.note_failed(id);
                returning.push((id, &memo.returns_with));
                let text = format!("{}: Taken over from the manager before.", memo.unit);
                out.log(Level::Debug, &memo.unit, memo.last_run, None, text);
            }
        }
        for (id, others) in returning {
            let others: Vec<UnitId> = others.iter().filter_map(|name| self.id(name)).collect();
            self.entry_mut(id).into_iter().for_each(|entry| entry.returns_with.extend(&others));
        }
        self.raise_slices(out);
        self.resume_triggers(&triggers, out);
        self.plan_timers(out);
        for unit in self.ids().collect::<Vec<_>>() {
            self.schedule_uphold(unit, out);
        }
        for memo in memos.iter().filter(|memo| matches!(memo.life, Life::Up { again: true, .. })) {
            let unit =
                self.id(&memo.unit).filter(|id| self.entry(*id).is_some_and(|entry| !entry.is_at_rest()));
            unit.into_iter().for_each(|unit| self.restart_by_manager(unit, out));
        }
    }

    /// What goes on lies in slices that are up, whatever its newest definition calls them.
    fn raise_slices(&mut self, out: &mut Out<'_>) {
        let lives = |id: &UnitId| self.entry(*id).is_some_and(|entry| !entry.is_between_lives());
        for unit in self.ids().filter(lives).collect::<Vec<_>>() {
            let mut slice = self.entry(unit).and_then(|entry| entry.unit.slice());
            while let Some(id) = slice.as_ref().and_then(|name| self.id(name)) {
                if self.entry(id).is_some_and(|entry| !entry.is_up()) {
                    self.set(id, |entry, _| entry.core = Core::Plain(PlainState::Active), out);
                }
                slice = self.entry(id).and_then(|entry| entry.unit.slice());
            }
        }
    }

    fn go_on(&mut self, id: UnitId, memo: &Memo, out: &mut Out<'_>) -> bool {
        let Some(entry) = self.table.get_mut(id.index()) else { return false };
        let definition = Arc::clone(&entry.unit);
        let fits = match (&mut entry.core, &memo.life) {
            (Core::Service(service), Life::Up { run, .. }) => {
                service.go_on(definition, memo, out);
                self.runs.insert(*run, id);
                true
            }
            (Core::Service(service), Life::Waiting { at, result }) => {
                service.facts.result = *result;
                service.state = ServiceState::AutoRestart { at: *at, due: false };
                true
            }
            (Core::Timer(timer), Life::Timer { .. }) => match &definition.body {
                Body::Timer(section) => timer.go_on(section, &memo.life, self.born.boottime, out.now),
                _ => false,
            },
            (Core::Socket(socket), Life::Socket { .. }) => socket.go_on(definition, &memo.life),
            (Core::Path(path), Life::Path { .. }) => path.go_on(definition, &memo.life),
            (_, Life::Failed { result }) => {
                entry.fail(*result);
                true
            }
            (_, Life::Down) => true,
            (Core::Plain(plain), Life::Active) => {
                *plain = PlainState::Active;
                true
            }
            _ => false, // Its definition is of another kind now.
        };
        if !fits {
            return false;
        }
        if let Some(service) = entry.service_mut() {
            service.facts.generation = memo.generation;
            service.facts.last_run = memo.last_run;
            if let Some(run) = memo.leftover.filter(|_| service.facts.run.is_none()) {
                let awaiting = out.ids.effect();
                service.facts.leftover = Some(Leftover { run, awaiting });
                self.runs.insert(run, id);
                let (id, unit) = (out.ids.effect(), Arc::clone(&entry.unit));
                out.push(Effect::TakeOver { id, run, unit, main: None });
                out.push(Effect::AwaitEmpty { id: awaiting, run });
            }
        }
        memo.past.restore(entry);
        let counts = (memo.restarts, memo.restart_step, Rate::of(memo.recent_starts.iter().copied()));
        *entry.restarts() = Restarts::of(counts);
        entry.times.activated = memo.activated;
        entry.times.rested = memo.rested;
        entry.times.inactive_exit = memo.inactive_exit;
        entry.times.active_enter = memo.active_enter;
        if let Some((socket, source)) = &memo.connection {
            self.reconnect(id, socket, source.clone(), out);
        }
        true
    }
}

impl ServiceCore {
    /// Goes on with a life that another manager began.
    fn go_on(&mut self, unit: Arc<agentd_unit::Unit>, memo: &Memo, out: &mut Out<'_>) {
        let Life::Up {
            run: id,
            main,
            started,
            since,
            until,
            watchdog,
            access,
            ref status,
            exited,
            frozen,
            post,
            ..
        } = memo.life
        else {
            return;
        };
        let mut run = Run::new(id, Arc::clone(&unit), memo.trigger.clone(), None);
        let effect = out.ids.effect();
        run.spawned = true;
        run.taken_over = true;
        run.frozen = frozen;
        run.up_since = since;
        run.notify_access = access;
        run.main = main.map(|pid| Process { id: effect, pid: Some(pid), kind: ExecKind::Start, index: 0 });
        run.limit_runtime(out.ids);
        let limit = run.runtime_max;
        let facts = &mut self.facts;
        facts.run = Some(Box::new(run));
        facts.status_text.clone_from(status);
        if let (Some(pid), Some(start)) = (main, started) {
            facts.exec_main = Some(ExecStatusView { pid, start, exit: None, status: None });
        }
        // The signs of life that came while nobody listened count as one that came now.
        facts.set_watchdog(watchdog, out);
        out.push(Effect::TakeOver { id: effect, run: id, unit, main });
        self.state = if exited {
            ServiceState::Exited
        } else if let Some(index) = post {
            ServiceState::behind_post(index as usize, facts, out)
        } else {
            // What the service has had extended stays so.
            ServiceState::Running { until: until.or(since.zip(limit).map(|(since, limit)| since + limit)) }
        };
        if !exited && post.is_none() && self.facts.is_headless() {
            self.facts.await_empty(out);
        }
    }
}

/// `again` is when it is to be started again, where somebody restarts it.
fn keeping(entry: &Entry, again: Option<Monotonic>) -> Keeping {
    if entry.is_gone {
        return Keeping::Nothing;
    }
    match &entry.core {
        Core::Service(service) => service_life(service, again),
        Core::Timer(timer) => timer.life(&entry.unit).map_or(Keeping::Nothing, Keeping::This),
        Core::Socket(socket) => socket.life(),
        Core::Path(path) => path.life(),
        Core::Plain(PlainState::Active) => Keeping::This(Life::Active),
        Core::Plain(PlainState::Failed(result)) => Keeping::This(Life::Failed { result: *result }),
        Core::Plain(PlainState::Dead | PlainState::Perpetual) => Keeping::Nothing,
    }
}

fn service_life(service: &ServiceCore, again: Option<Monotonic>) -> Keeping {
    use ServiceState as S;
    let facts = &service.facts;
    let waiting = |at| Keeping::This(Life::Waiting { at, result: facts.result });
    if let (Some(at), S::Dead | S::Failed) = (again, service.state) {
        return waiting(at);
    }
    match (service.state, &facts.run) {
        (S::Dead, _) if facts.restarts.count_something() => Keeping::This(Life::Down),
        (S::Dead, _) => Keeping::Nothing,
        (S::Failed, _) => Keeping::This(Life::Failed { result: facts.result }),
        (S::AutoRestart { at, .. }, _) => waiting(at),
        (S::Running { .. } | S::Exited | S::Reload { .. } | S::StartPost { .. }, Some(run)) => {
            up(service, run, false)
        }
        (
            S::Stop { .. }
            | S::StopSigterm { .. }
            | S::StopSigkill { .. }
            | S::StopPost { .. }
            | S::FinalWatchdog { .. }
            | S::FinalSigterm { .. }
            | S::FinalSigkill { .. },
            Some(run),
        ) if run.stop_asked => again.map_or(Keeping::Nothing, |_| up(service, run, true)),
        _ => Keeping::Unchanged,
    }
}

fn up(service: &ServiceCore, run: &Run, again: bool) -> Keeping {
    let (state, facts) = (service.state, &service.facts);
    Keeping::This(Life::Up {
        run: run.id,
        main: run.main.and_then(|main| main.pid),
        started: facts.exec_main.map(|exec| exec.start),
        since: run.up_since,
        until: if let ServiceState::Running { until } = state { until } else { None },
        watchdog: run.watchdog.map(|watchdog| watchdog.span()),
        access: run.notify_access,
        status: facts.status_text.clone(),
        exited: state == ServiceState::Exited,
        frozen: run.frozen,
        again,
        post: state.post().and_then(|index| u32::try_from(index).ok()),
    })
}

fn memo(entry: &mut Entry, life: Life) -> Memo {
    let generation = entry.service().map_or(0, |service| service.facts.generation);
    let last_run = entry.service().and_then(|service| service.facts.last_run);
    let restarts = entry.restarts();
    let (count, step, recent) = (restarts.count, restarts.step, restarts.recent());
    Memo {
        unit: entry.unit.name.clone(),
        life,
        last_run,
        generation,
        restarts: count,
        restart_step: step,
        recent_starts: recent,
        activated: entry.times.activated,
        rested: entry.times.rested,
        inactive_exit: entry.times.inactive_exit,
        active_enter: entry.times.active_enter,
        trigger: entry.service().and_then(|service| service.facts.run.as_ref()?.trigger.clone()),
        connection: None,
        returns_with: Vec::new(),
        leftover: entry.service().and_then(|service| service.facts.leftover).map(|leftover| leftover.run),
        past: Past::of(entry),
    }
}
