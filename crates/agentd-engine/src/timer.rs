//! The life of one timer: when it is due next on either clock, and what it remembers between two fires.
//!
//! # Invariants
//! - The next time is after the last fire: a trigger that has fired is not due again at the same instant.
//! - Spans live on CLOCK_BOOTTIME and calendars on CLOCK_REALTIME from end to end.

use std::time::Duration;

use agentd_unit::digest::digest;
use agentd_unit::{Body, Realtime, TimerSection, TimerTrigger, Unit};

use crate::clock::{Boottime, Now};
use crate::memo::Life;
use crate::state::{ActiveState, ServiceResult};

/// The least time between two fires of a repeating span, should a span of zero ever get here.
const SPAN_FLOOR: Duration = Duration::from_millis(1);

/// Where a timer stands, systemd's `SubState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TimerState {
    #[default]
    Dead,
    /// Something is due some time.
    Waiting,
    /// What it started still runs.
    Running,
    /// Nothing is due any more.
    Elapsed,
    /// There is nothing that it could start.
    Failed,
}

impl TimerState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Elapsed => "elapsed",
            Self::Failed => "failed",
        }
    }
}

/// What a timer must know of the unit that it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) at_rest: bool,
    pub(crate) activated: Option<Boottime>,
    pub(crate) rested: Option<Boottime>,
}

/// One timer.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    pub(crate) state: TimerState,
    pub(crate) result: ServiceResult,
    /// When it became active.
    activated: Boottime,
    /// From when calendars count.
    base: Realtime,
    /// When it was last due.
    elapsed: Option<Boottime>,
    /// Which triggers, of those that fire once, have fired.
    done: Vec<bool>,
    pub(crate) next_boottime: Option<Boottime>,
    pub(crate) next_realtime: Option<Realtime>,
    pub(crate) last_trigger: Option<Realtime>,
    pub(crate) skipped: u64,
}

impl Timer {
    pub(crate) const fn active(&self) -> ActiveState {
        match self.state {
            TimerState::Dead => ActiveState::Inactive,
            TimerState::Waiting | TimerState::Running | TimerState::Elapsed => ActiveState::Active,
            TimerState::Failed => ActiveState::Failed,
        }
    }

    /// Becomes active. `stamp` is when a persistent timer last fired: what was missed since is made up for, once.
    pub(crate) fn start(&mut self, section: &TimerSection, stamp: Option<Realtime>, now: Now) {
        self.state = TimerState::Waiting;
        self.result = ServiceResult::Success;
        self.activated = now.boottime;
        self.elapsed = None;
        self.done = vec![false; section.triggers.len()];
        self.base =
            stamp.filter(|_| section.persistent).map_or(now.realtime, |stamp| stamp.min(now.realtime));
    }

    /// What another manager needs to go on with it; none if it is not active.
    pub(crate) fn life(&self, unit: &Unit) -> Option<Life> {
        if self.state == TimerState::Failed {
            return Some(Life::Failed { result: self.result });
        }
        (self.active() == ActiveState::Active).then(|| Life::Timer {
            activated: self.activated,
            base: self.base,
            elapsed: self.elapsed,
            done: self.done.clone(),
            last_trigger: self.last_trigger,
            running: self.state == TimerState::Running,
            schedule: if let Body::Timer(section) = &unit.body {
                Some(number(&section.triggers))
            } else {
                None
            },
        })
    }

    /// Goes on where another manager left it. If its triggers are others now, they count as after a reload.
    pub(crate) fn go_on(&mut self, section: &TimerSection, life: &Life, born: Boottime, now: Now) -> bool {
        let Life::Timer { activated, base, elapsed, done, last_trigger, running, schedule } = life else {
            return false;
        };
        self.state = if *running { TimerState::Running } else { TimerState::Waiting };
        (self.activated, self.base, self.elapsed) = (*activated, *base, *elapsed);
        self.done.clone_from(done);
        self.last_trigger = *last_trigger;
        let is_same = schedule.is_none_or(|schedule| schedule == number(&section.triggers));
        if !is_same || done.len() != section.triggers.len() {
            self.redefine(section, born, now);
        }
        true
    }

    /// Becomes inactive, or failed for this reason.
    pub(crate) fn stop(&mut self, result: ServiceResult) {
        self.state = if result == ServiceResult::Success { TimerState::Dead } else { TimerState::Failed };
        self.result = result;
        self.next_boottime = None;
        self.next_realtime = None;
    }

    /// Its definition changed: a new schedule counts from now, and what has fired once does not fire again.
    pub(crate) fn redefine(&mut self, section: &TimerSection, born: Boottime, now: Now) {
        self.base = now.realtime;
        self.elapsed = Some(now.boottime);
        self.done = section.triggers.iter().map(|trigger| self.is_past(trigger, born, now)).collect();
    }

    fn is_past(&self, trigger: &TimerTrigger, born: Boottime, now: Now) -> bool {
        match trigger {
            TimerTrigger::Active(span) => self.activated + *span <= now.boottime,
            TimerTrigger::Boot(span) => Boottime(*span) <= now.boottime,
            TimerTrigger::Startup(span) => born + *span <= now.boottime,
            TimerTrigger::UnitActive(_)
            | TimerTrigger::UnitInactive(_)
            | TimerTrigger::Calendar(_)
            | TimerTrigger::Cron(_) => false,
        }
    }

    /// The wall clock was set: after a step back the calendar goes on from the new time, not from a time to come.
    pub(crate) fn clock_changed(&mut self, now: Now) {
        self.base = self.base.min(now.realtime);
    }

    /// Whether something is due.
    pub(crate) fn is_due(&self, now: Now) -> bool {
        self.next_boottime.is_some_and(|at| at <= now.boottime)
            || self.next_realtime.is_some_and(|at| at <= now.realtime)
    }

    /// It was due: everything that was, counts as done at once, however often it was missed.
    pub(crate) fn elapse(&mut self, section: &TimerSection, born: Boottime, target: Target, now: Now) {
        for (i, trigger) in section.triggers.iter().enumerate() {
            let due = self.next_span(i, trigger, born, target).is_some_and(|at| at <= now.boottime);
            if let Some(done) = self.done.get_mut(i).filter(|_| due) {
                *done = true;
            }
        }
        self.elapsed = Some(now.boottime);
        self.base = now.realtime;
    }

    /// Finds the next times anew, and with them the state.
    pub(crate) fn plan(&mut self, section: &TimerSection, born: Boottime, target: Target) {
        if matches!(self.state, TimerState::Dead | TimerState::Failed) {
            return;
        }
        let triggers = &section.triggers;
        self.next_boottime = triggers
            .iter()
            .enumerate()
            .filter_map(|(i, trigger)| self.next_span(i, trigger, born, target))
            .min();
        self.next_realtime = triggers.iter().filter_map(|trigger| next_calendar(trigger, self.base)).min();
        self.state = if self.state == TimerState::Running && !target.at_rest {
            TimerState::Running
        } else if self.next_boottime.is_some() || self.next_realtime.is_some() {
            TimerState::Waiting
        } else {
            TimerState::Elapsed
        };
    }

    fn next_span(
        &self,
        i: usize,
        trigger: &TimerTrigger,
        born: Boottime,
        target: Target,
    ) -> Option<Boottime> {
        let done = self.done.get(i).copied().unwrap_or_default();
        match trigger {
            TimerTrigger::Active(span) => Some(self.activated + *span).filter(|_| !done),
            TimerTrigger::Boot(span) => Some(Boottime(*span)).filter(|_| !done),
            TimerTrigger::Startup(span) => Some(born + *span).filter(|_| !done),
            // Where the unit never ran, the timer's own activation is what there is to count from: never "never".
            TimerTrigger::UnitActive(span) => {
                let anchor = target.activated.max(self.elapsed).unwrap_or(self.activated);
                Some(anchor + (*span).max(SPAN_FLOOR))
            }
            TimerTrigger::UnitInactive(span) => {
                let anchor = target.rested.max(self.elapsed).unwrap_or(self.activated);
                Some(anchor + (*span).max(SPAN_FLOOR)).filter(|_| target.at_rest)
            }
            TimerTrigger::Calendar(_) | TimerTrigger::Cron(_) => None,
        }
    }
}

/// A part of the hash of the triggers as people read them: other triggers have another number, in each version of the manager.
fn number(triggers: &[TimerTrigger]) -> u64 {
    let texts: Vec<String> = triggers.iter().map(ToString::to_string).collect();
    let hash = digest(texts.iter().map(String::as_bytes));
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The first calendar time after `base`, if the trigger is one by the calendar and has one left.
fn next_calendar(trigger: &TimerTrigger, base: Realtime) -> Option<Realtime> {
    match trigger {
        TimerTrigger::Calendar(calendar) => calendar.next_after(base),
        TimerTrigger::Cron(cron) => cron.next_after(base),
        TimerTrigger::Active(_)
        | TimerTrigger::Boot(_)
        | TimerTrigger::Startup(_)
        | TimerTrigger::UnitActive(_)
        | TimerTrigger::UnitInactive(_) => None,
    }
}
