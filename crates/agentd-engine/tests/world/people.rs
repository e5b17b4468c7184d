//! Fake people and fake clocks: what is asked of the manager from outside, and what happens to its time.

use std::time::Duration;

use agentd_engine::{Event, ExitStatus, JobId, JobKind, JobMode, KillWhom, Request, RequestId, ShutdownKind};
use agentd_unit::sections::HookMode;
use agentd_unit::{Realtime, Signal, UnitName, UnitSet};

use super::dice::{DEED, Dice, RELOAD};
use super::graph::Cast;
use super::{Happening, World};

impl World {
    /// Plans what people will do: each deed has its time and its choices from a stream of its own.
    pub(super) fn plan_deeds(&mut self, count: u64) {
        let mut at = Duration::ZERO;
        for n in 0..count {
            let mut dice = Dice::of(self.seed, &[DEED, n]);
            at += Duration::from_millis(if n < 3 { 0 } else { dice.below(self.mood.pause) });
            if !self.cut.deeds.contains(&n) {
                self.after(at, Happening::Deed(n));
            }
        }
    }

    /// Somebody does one of the things that people do.
    pub(super) fn deed(&mut self, n: u64) {
        if self.is_calm {
            return;
        }
        let mut dice = Dice::of(self.seed, &[DEED, n, 1]);
        let unit = dice.pick(&self.names).clone();
        let unit = self.or_a_slice(n, unit);
        match dice.below(if self.mood.loads { 62 } else { 54 }) {
            54.. => self.load(n),
            0..14 => self.ask_job(&mut dice, JobKind::Start, unit),
            14..22 => self.ask_job(&mut dice, JobKind::Stop, unit),
            22..26 => self.ask_job(&mut dice, JobKind::Restart, unit),
            26 => self.ask_job(&mut dice, JobKind::TryRestart, unit),
            27..29 => self.ask_job(&mut dice, JobKind::Reload, unit),
            29 => self.ask_job(&mut dice, JobKind::ReloadOrRestart, unit),
            30 => self.ask_job(&mut dice, JobKind::VerifyActive, unit),
            31 => {
                let unit = Some(unit).filter(|_| dice.once_in(2));
                self.ask(Request::ResetFailed { unit });
            }
            32 => self.cancel(&mut dice),
            33..37 => self.load(n),
            37..41 => self.kill_somebody(&mut dice),
            41 => {
                let whom = *dice.pick(&[KillWhom::All, KillWhom::Main, KillWhom::Control]);
                let signal = *dice.pick(&[Signal::TERM, Signal::KILL, Signal::HUP]);
                self.ask(Request::Kill { unit, whom, signal });
            }
            45 | 46 => {
                let frozen = dice.once_in(2);
                self.ask(Request::Freeze { unit, frozen });
            }
            42 => self.set_clock(&mut dice),
            43 => self.sleep(&mut dice),
            44 => self.event(Event::ClockChanged),
            48.. => self.knock(&mut dice),
            _ => self.event(Event::Tick), // Nothing may be due.
        }
    }

    /// Some deeds are done to a slice.
    fn or_a_slice(&self, n: u64, unit: UnitName) -> UnitName {
        let mut dice = Dice::of(self.seed, &[DEED, n, 2]);
        let slice = *dice.pick(&["s.slice", "s-t.slice", "v.slice", "-.slice"]);
        let slice = UnitName::parse(slice).ok();
        slice.filter(|_| dice.once_in(10)).unwrap_or(unit)
    }

    /// New definitions: some are what they were, some are not.
    pub(super) fn load(&mut self, n: u64) {
        let set = self.definitions(n);
        self.restarts.clear(); // Other limits from now on.
        self.rows.clear();
        self.returning.clear();
        self.doomed.clear();
        self.event(Event::UnitsLoaded(set));
    }

    /// The definitions of the `n`th loading; 0 for those that hold now.
    pub(super) fn definitions(&mut self, n: u64) -> UnitSet {
        let mut set = UnitSet::new();
        for i in 0..self.names.len() {
            if self.cut.units.contains(&i) {
                continue;
            }
            if n > 0 && Dice::of(self.seed, &[RELOAD, n, i as u64]).once_in(3) {
                self.versions[i] = n;
            }
            let cut = &self.cut.units;
            let cast = Cast {
                seed: self.seed,
                names: &self.names,
                absent: &|i| cut.contains(&i),
                tangled: self.tangled,
                dense: self.mood.dense,
                whole: self.loses,
            };
            if let Some(unit) = cast.unit(i, self.versions[i]) {
                if unit.unit.on_failure_job_mode == HookMode::IgnoreDependencies {
                    self.loose.extend(unit.unit.on_failure.iter().cloned());
                }
                set.insert(unit);
            }
        }
        set
    }

    fn ask_job(&mut self, dice: &mut Dice, kind: JobKind, unit: UnitName) {
        let mode = match dice.below(16) {
            0..2 => JobMode::Fail,
            2 if kind == JobKind::Start || dice.once_in(8) => JobMode::Isolate,
            3 => JobMode::IgnoreDependencies,
            4 => JobMode::IgnoreRequirements,
            5 => JobMode::ReplaceIrreversibly,
            _ => JobMode::Replace,
        };
        let id = self.ask(Request::Job { kind, unit, mode });
        if self.open.contains_key(&id) && dice.once_in(5) {
            self.after(Duration::from_millis(dice.below(2000)), Happening::Leave(id));
        }
    }

    /// A client goes away: nobody waits for its answer any more, and nothing else is otherwise.
    pub(super) fn leave(&mut self, id: RequestId) {
        if self.leavers && self.open.remove(&id).is_some() {
            self.left.insert(id);
        }
    }

    fn cancel(&mut self, dice: &mut Dice) {
        let jobs: Vec<JobId> = self.jobs_before.iter().map(|job| job.id).collect();
        if !jobs.is_empty() {
            let job = *dice.pick(&jobs);
            self.ask(Request::Cancel { job });
        }
    }

    pub(super) fn ask(&mut self, request: Request) -> RequestId {
        self.counter += 1;
        let id = RequestId(self.counter);
        match &request {
            Request::Job { .. }
            | Request::ResetFailed { .. }
            | Request::Cancel { .. }
            | Request::Shutdown { .. } => {
                // A person's start clears the counts of whatever it starts.
                self.restarts.clear();
                self.rows.clear();
                self.returning.clear();
            }
            Request::Kill { .. } | Request::Freeze { .. } => {}
        }
        if let Request::Job {
            unit, mode: JobMode::IgnoreDependencies | JobMode::IgnoreRequirements, ..
        } = &request
        {
            self.alone.insert(unit.clone());
        }
        self.open.insert(id, request.clone());
        self.event(Event::Request { id, request });
        id
    }

    /// Somebody outside kills a process.
    fn kill_somebody(&mut self, dice: &mut Dice) {
        let alive: Vec<_> = self.processes.iter().filter(|(_, p)| p.alive).map(|(id, _)| *id).collect();
        if !alive.is_empty() {
            let id = *dice.pick(&alive);
            self.die(id, ExitStatus::Killed(Signal::KILL));
        }
    }

    /// The wall clock is set, forward or back.
    fn set_clock(&mut self, dice: &mut Dice) {
        let span = Duration::from_secs(dice.below(7200));
        self.now.realtime = if dice.once_in(2) {
            self.now.realtime + span
        } else {
            Realtime(self.now.realtime.0 - span.as_micros() as i64)
        };
        self.event(Event::ClockChanged);
    }

    /// The machine sleeps: two of three clocks go on.
    fn sleep(&mut self, dice: &mut Dice) {
        let span = Duration::from_secs(dice.below(3600));
        self.now.boottime = self.now.boottime + span;
        self.now.realtime = self.now.realtime + span;
        self.event(Event::Tick);
    }

    /// From now on programs behave and people rest.
    pub(super) fn calm(&mut self) {
        self.is_calm = true;
    }

    pub(super) fn shut_down(&mut self) {
        let mut dice = Dice::of(self.seed, &[DEED, u64::MAX]);
        self.ask(Request::Shutdown { kind: ShutdownKind::Poweroff });
        if dice.once_in(4) {
            for _ in 0..dice.below(8) {
                self.step();
            }
            // Another word, or no patience.
            let times = if dice.once_in(2) { 1 } else { 8 };
            for _ in 0..times {
                self.ask(Request::Shutdown { kind: ShutdownKind::Reboot });
            }
        }
        for _ in 0..20_000 {
            if self.shutdowns > 0 || self.broken.is_some() || !self.step() {
                break;
            }
        }
    }
}
