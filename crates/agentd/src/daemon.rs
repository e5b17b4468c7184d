//! The main loop: one thread that owns the engine, lets it handle what happened, and performs what follows.
//!
//! # Invariants
//!
//! - Every event goes through [`Manager::handle`], every effect through [`perform`]; nothing else changes unit state.
//! - Notifications are read before children are reaped, so that a last word counts.
//! - A turn is bounded: while a thousand services start, clients and timers get their say.
//! - While there is other work, births go on alongside; none does when the sources are looked at.
//! - The outlets of the log are woken at the end of a turn: what an event makes necessary comes first.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use agentd_engine::{ActiveState, Effect, Event, JobKind, JobMode, Manager, Request, ShutdownKind};
use agentd_linux::rlimit::Resource;
use agentd_protocol::manager::Empty;
use agentd_unit::{Remembered, UnitName};
use tokio::sync::mpsc;

use crate::control::Inbound;
use crate::control::server::Server;
use crate::journal::LateWaking;
use crate::log::LogStore;
use crate::perform::runs::Process;
use crate::perform::{births, perform, slices, sweeper, takeover};
use crate::takeover::handover::Handover;
use crate::takeover::record::Record;
use crate::takeover::reexec;
use crate::watch::{Sources, Woken};
use crate::world::World;

/// How long the engine's work may go on before the sources are looked at again.
const TURN: Duration = Duration::from_millis(20);

/// So many events and effects have room at rest. A thousand starts at once need more, and nothing after them does.
const KEPT: usize = 256;

/// The engine and its shell.
pub struct Daemon {
    manager: Manager,
    world: World,
    sources: Sources,
    requests: mpsc::Receiver<Inbound>,
    control: Server,
    events: VecDeque<Event>,
    effects: VecDeque<Effect>,
}

impl Daemon {
    /// A daemon that has not looked at anything yet.
    #[must_use]
    pub fn new(
        manager: Manager,
        world: World,
        sources: Sources,
        requests: mpsc::Receiver<Inbound>,
        control: Server,
    ) -> Self {
        Self { manager, world, sources, requests, control, events: VecDeque::new(), effects: VecDeque::new() }
    }

    /// Loads the units, goes on with what a manager before has left, starts the first one unless that manager has handed
    /// over to this one, and goes on until a shutdown has stopped everything.
    pub async fn run(mut self, is_successor: bool) -> (ShutdownKind, World) {
        self.boot(is_successor);
        loop {
            let late = LateWaking::begin();
            self.settle(&late).await;
            self.remove_kept();
            self.world.ends.look(&self.manager);
            if self.answer_looked_up() {
                continue;
            }
            if let Some(kind) = self.world.ending.take() {
                self.last_answers().await;
                self.sources.let_go();
                return (kind, self.world);
            }
            if self.is_to_reexecute() {
                self.reexecute().await;
                continue;
            }
            if !self.world.reexec.is_empty() {
                // What was heard on the way may have begun a job, which clients ask about.
                self.accept_again();
            }
            self.publish_log();
            self.tidy_up();
            self.sources.arm(self.manager.deadlines());
            drop(late);
            let woken = self.wait().await;
            self.take_in(woken);
        }
    }

    /// Whether somebody has asked for it and no unit is on its way.
    fn is_to_reexecute(&self) -> bool {
        !self.world.reexec.is_empty() && self.manager.unsettled().next().is_none()
    }

    /// Gives back what much work at once has left behind, now that it is done.
    fn tidy_up(&mut self) {
        let largest = self.events.capacity().max(self.effects.capacity()).max(self.world.scratch.capacity());
        if largest <= KEPT && !self.world.tidy {
            return;
        }
        self.world.tidy = false;
        self.events.shrink_to(KEPT);
        self.effects.shrink_to(KEPT);
        self.world.scratch.shrink_to(KEPT);
        agentd_linux::memory::trim();
        agentd_linux::memory::let_file_go();
    }

    /// Lets clients' tasks write the answers that they have: one turn to take one up, one to write it, for each of the
    /// few that a client can have under way.
    async fn last_answers(&mut self) {
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }

    /// What is done before anything can happen.
    fn boot(&mut self, is_successor: bool) {
        let newest = crate::watch::units::first(&mut self.world, &mut self.events);
        self.go_on();
        if let Some(newest) = newest {
            crate::watch::units::newest(newest, &mut self.world, &mut self.events);
        }
        if is_successor {
            self.world.children_left = true;
            self.sources.look_at_children();
            self.world.booted = true;
            return;
        }
        let (kind, mode, unit) = (JobKind::Start, JobMode::Replace, self.world.config.unit.clone());
        if self.goes_on_with(&unit) {
            tracing::info!("{unit} is as the manager before has left it");
            self.world.booted = true;
            return;
        }
        let id = self.world.replies.unattended();
        self.world.first_request = Some(id);
        self.events.push_back(Event::Request { id, request: Request::Job { kind, unit, mode } });
    }

    /// Whether the first unit is up under a manager that was killed, and agents have outlived it: then nothing is begun
    /// that a person has stopped since. Where all of them are gone, as with their container, everything begins anew.
    fn goes_on_with(&self, first: &UnitName) -> bool {
        let lives = |process: &Process| process.pidfd.has_ended().is_ok_and(|ended| !ended);
        self.manager.unit(first).is_some_and(|unit| unit.active == ActiveState::Active)
            && self.world.runs.iter().any(|(_, run)| run.processes.values().any(lives))
    }

    /// Goes on with what a manager before has left, and ends what nobody can go on with.
    fn go_on(&mut self) {
        while let Some(event) = self.events.pop_front() {
            self.handle(event);
        }
        let World { paths, held, loaded, log, .. } = &mut self.world;
        paths.inherit(held, loaded);
        if let Some(log) = log {
            log.carry_on(std::mem::take(&mut held.lines));
        }
        let (taken, waiting) = (crate::watch::units::taken_over(&self.world), self.world.kept.waiting());
        self.handle(taken);
        while let Some(effect) = self.effects.pop_front() {
            perform(&mut self.world, effect, &mut self.events);
        }
        self.world.sockets.forget_handed();
        for unit in waiting {
            // Its folders are kept for a start that a person may yet call off.
            if let Some(view) = self.manager.unit(&unit) {
                takeover::keep_folders(&mut self.world, &view.unit);
            }
        }
        takeover::end_the_rest(&mut self.world);
        self.world.log.iter().for_each(LogStore::settle);
        crate::watch::mains::tell_gone(&mut self.world, &mut self.events);
    }

    /// Becomes the next manager. All that units have said and done is written before; where the program cannot be
    /// executed, this one goes on.
    async fn reexecute(&mut self) {
        // Who comes from now on is heard by the successor, and who was accepted already is heard before.
        self.control.pause();
        self.last_answers().await;
        if self.serve_pending() {
            return;
        }
        self.manager.keep_all(&mut self.world.scratch);
        let kept = std::mem::take(&mut self.world.scratch);
        let records = takeover::records(&self.world, &kept);
        for effect in kept {
            perform(&mut self.world, effect, &mut self.events);
        }
        tracing::info!("re-executing");
        for answer in std::mem::take(&mut self.world.reexec) {
            answer.result(Ok(Empty {}));
        }
        self.last_answers().await;
        self.publish_log();
        let lines = self.world.write_out();
        let mut handed = vec![("lock", self.world.lock.as_fd()), ("notify", self.sources.notify_socket())];
        handed.extend(self.control.listener().map(|listener| ("control", listener)));
        let World { sockets, paths, stores, runs, leavers, .. } = &self.world;
        let common = runs.iter().flat_map(|(_, run)| run.common.hand_on(&run.unit.name));
        let items = sockets.hand_on().chain(paths.hand_on()).chain(stores.hand_on()).chain(common).collect();
        let leavers = leavers.iter().copied().collect();
        let lives_by = |record: &Record| self.manager.unit(&record.memo.unit).map(|view| view.unit);
        let definitions =
            records.iter().filter_map(lives_by).filter_map(|unit| Remembered::of(&unit)).collect();
        let nofile = self.world.rlimits.iter().find(|limit| limit.resource == Resource::Nofile).copied();
        let handover = Handover { items, records, definitions, leavers, nofile, lines };
        match reexec::become_successor(&handed, &handover) {
            Ok(never) => match never {},
            Err(error) => tracing::error!(%error, "the manager cannot be executed again; this one goes on"),
        }
        let lines = handover.lines;
        self.world.write_again(lines);
        let World { sockets, paths, .. } = &mut self.world;
        sockets.go_on();
        for (unit, path) in paths.go_on(&sockets.epoll) {
            self.events.push_back(Event::Traffic { unit, path: Some(path.display().to_string()) });
        }
        self.accept_again();
    }

    fn accept_again(&mut self) {
        if let Err(error) = self.control.go_on() {
            tracing::error!(%error, "the control socket cannot be accepted on; SIGUSR1 makes it anew");
        }
    }

    /// Hears the requests that are there, as many as may be heard in a row. Returns whether there was one.
    fn serve_pending(&mut self) -> bool {
        let mut any = false;
        for _ in 0..64 {
            match self.requests.try_recv() {
                Ok(inbound) => self.serve(inbound),
                Err(_) => break,
            }
            any = true;
        }
        any
    }

    async fn wait(&mut self) -> Woken {
        tokio::select! {
            biased;
            woken = self.sources.wait() => woken,
            Some(inbound) = self.requests.recv() => Woken::by(inbound),
        }
    }

    /// Turns what the sources have into events, notifications first.
    fn take_in(&mut self, woken: Woken) {
        self.world.read_clocks();
        self.sources.drain(&woken, &mut self.world, &mut self.events);
        if let Some(inbound) = woken.inbound {
            self.serve(inbound);
        }
        self.serve_pending();
        self.begin_errands();
        for loaded in std::mem::take(&mut self.world.plans) {
            crate::watch::units::planned(loaded, &self.manager, &mut self.world, &mut self.events);
        }
        self.world.prune_followers();
        self.world.replies.prune();
        if std::mem::take(&mut self.world.reopen_control) {
            match self.control.listen(None) {
                Ok(()) => tracing::info!("the control socket was made anew"),
                Err(error) => tracing::error!(%error, "the control socket cannot be made anew"),
            }
        }
        if std::mem::take(&mut self.world.folder_changed) {
            crate::watch::folder::restore(&mut self.world, &mut self.sources, &mut self.control);
        }
        if std::mem::take(&mut self.world.dump) {
            self.dump();
        }
    }

    /// What `RuntimeDirectoryPreserve=restart` and `FileDescriptorStorePreserve=restart` have kept goes with a unit that
    /// is down and has no job to come up again, and so does the cgroup of a slice.
    fn remove_kept(&mut self) {
        let World { kept_folders, stores, stopped_slices, .. } = &self.world;
        if kept_folders.is_empty() && stores.is_empty() && stopped_slices.is_empty() {
            return;
        }
        let manager = &self.manager;
        let down = |active| matches!(active, ActiveState::Inactive | ActiveState::Failed);
        let rests =
            |name: &UnitName| manager.unit(name).is_none_or(|unit| down(unit.active) && unit.job.is_none());
        self.world.remove_kept_folders(rests);
        slices::remove_stopped(&mut self.world, rests);
        self.world.stores.remove_rested(rests, |name| manager.unit(name).is_some());
    }

    /// Logs where every unit stands, as systemd does at SIGUSR2.
    fn dump(&self) {
        for unit in self.manager.units() {
            let (name, active) = (&unit.unit.name, unit.active);
            tracing::info!(unit = %name, "{name}: {} {active} ({}), result {}", unit.unit.load, unit.sub, unit.result);
        }
    }

    fn serve(&mut self, inbound: Inbound) {
        crate::control::handle::handle(inbound, &self.manager, &mut self.world, &mut self.events);
    }

    /// Begins what is to be done on the thread that loads.
    fn begin_errands(&mut self) {
        for errand in std::mem::take(&mut self.world.errands) {
            let instances = crate::watch::units::instances_in_use(&self.manager);
            self.world.loading.begin(&self.world.config, instances, errand);
        }
    }

    /// Serves the requests whose unit was looked up, now that the engine has taken in what was found; whether there
    /// were any.
    fn answer_looked_up(&mut self) -> bool {
        let requests = std::mem::take(&mut self.world.looked_up);
        let any = !requests.is_empty();
        for inbound in requests {
            crate::control::handle::answer(inbound, &self.manager, &mut self.world, &mut self.events);
        }
        self.begin_errands();
        any
    }

    /// Lets the engine handle all that is queued, looking at the sources every now and then.
    async fn settle(&mut self, late: &LateWaking) {
        let mut began = Instant::now();
        loop {
            while let Some(effect) = self.effects.pop_front() {
                self.perform(effect);
            }
            let Some(event) = self.events.pop_front() else {
                // Who has nothing else to do waits for what is being born, and what is being removed.
                self.catch_up(late);
                match births::answer(&mut self.world, &mut self.events)
                    || sweeper::answer(&mut self.world, &mut self.events)
                {
                    true => continue,
                    false => return,
                }
            };
            self.handle(event);
            if began.elapsed() > TURN {
                births::answer_all(&mut self.world, &mut self.events);
                self.world.ends.look(&self.manager);
                self.publish_log();
                self.catch_up(late);
                tokio::task::yield_now().await;
                self.sources.arm(self.manager.deadlines());
                let woken = self.sources.poll_now();
                self.take_in(woken);
                began = Instant::now();
            }
        }
    }

    /// Does what was put off so that a birth came first.
    fn catch_up(&mut self, late: &LateWaking) {
        late.wake();
        self.world.sweeper.let_go();
    }

    fn perform(&mut self, effect: Effect) {
        let more = || !self.events.is_empty() || self.effects.iter().any(births::is_one);
        self.world.busy = births::is_one(&effect) && more();
        perform(&mut self.world, effect, &mut self.events);
    }

    /// What the turn has said to the log is taken up.
    fn publish_log(&self) {
        if let Some(log) = &self.world.log {
            log.publish();
        }
    }

    fn handle(&mut self, event: Event) {
        self.world.read_clocks();
        let mut pushed = std::mem::take(&mut self.world.scratch);
        self.manager.handle(event, self.world.now, &mut pushed);
        let was_ending = std::mem::replace(&mut self.world.is_ending, self.manager.is_shutting_down());
        if self.world.is_ending && !was_ending {
            self.sources.forget_folders();
            crate::boot::ending::prepare(&mut self.world);
        }
        self.effects.extend(pushed.drain(..));
        self.world.scratch = pushed;
    }
}
