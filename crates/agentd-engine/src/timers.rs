//! Timers among units: what starts them, what they start, and when they hear of it.

use agentd_unit::TimerTrigger;

use crate::effect::{Effect, Level, Trigger};
use crate::graph::{Relation, UnitId};
use crate::manager::Manager;
use crate::out::Out;
use crate::state::ServiceResult;
use crate::timer::{Target, Timer, TimerState};
use crate::unit::{Core, Entry};

fn timer(entry: &mut Entry) -> Option<&mut Timer> {
    if let Core::Timer(timer) = &mut entry.core { Some(timer) } else { None }
}

impl Manager {
    /// The unit that a timer, a socket or a path unit starts.
    pub(crate) fn target_of(&self, id: UnitId) -> Option<UnitId> {
        let name = self.entry(id)?.unit.triggered()?;
        self.id(&name)
    }

    fn target_facts(&self, id: UnitId) -> Target {
        match self.target_of(id).and_then(|target| self.entry(target)) {
            Some(entry) => Target {
                at_rest: entry.is_at_rest() && entry.job.is_none(),
                activated: entry.times.activated,
                rested: entry.times.rested,
            },
            None => Target { at_rest: true, activated: None, rested: None },
        }
    }

    pub(crate) fn start_timer(&mut self, id: UnitId, out: &mut Out<'_>) {
        if let Some(reason) = self.cannot_trigger(id) {
            if let Some(entry) = self.entry_mut(id) {
                entry.failure = Some(reason.clone());
                let name = entry.unit.name.clone();
                out.log(Level::Error, &name, None, None, format!("{name}: {reason}"));
            }
            self.stop_timer(id, ServiceResult::Resources, out);
            return;
        }
        let Some(section) = self.timer_section(id) else { return };
        let name = self.name(id);
        let stamp = self.stamps.get(&name).copied();
        let keeps_stamp = section.persistent
            && section
                .triggers
                .iter()
                .any(|t| matches!(t, TimerTrigger::Calendar(_) | TimerTrigger::Cron(_)));
        if keeps_stamp && stamp.is_none() {
            // From now on a time that is missed counts as missed.
            self.stamps.insert(name.clone(), out.now.realtime);
            out.push(Effect::SaveStamp { timer: name, at: out.now.realtime });
        }
        let now = out.now;
        self.set(
            id,
            |entry, _| timer(entry).into_iter().for_each(|timer| timer.start(&section, stamp, now)),
            out,
        );
        self.plan_timer(id, out);
    }

    pub(crate) fn stop_timer(&mut self, id: UnitId, result: ServiceResult, out: &mut Out<'_>) {
        self.set(id, |entry, _| timer(entry).into_iter().for_each(|timer| timer.stop(result)), out);
        self.spans.set(id, None);
        self.calendars.set(id, None);
        if result != ServiceResult::Success
            && let Some(job) = self.entry(id).and_then(|entry| entry.job)
            && self.jobs.get(&job).is_some_and(|job| job.running)
        {
            self.work.push_back(crate::manager::Work::Changed {
                unit: id,
                old: crate::ActiveState::Inactive,
                new: crate::ActiveState::Failed,
            });
        }
    }

    /// Finds a timer's next times anew.
    fn plan_timer(&mut self, id: UnitId, out: &mut Out<'_>) {
        let Some(section) = self.timer_section(id) else { return };
        let (born, target) = (self.born.boottime, self.target_facts(id));
        self.set(id, |entry, _| timer(entry).into_iter().for_each(|t| t.plan(&section, born, target)), out);
        let next = self.entry_mut(id).and_then(timer).map(|timer| (timer.next_boottime, timer.next_realtime));
        let (span, calendar) = next.unwrap_or_default();
        self.spans.set(id, span);
        self.calendars.set(id, calendar);
    }

    /// All timers look again (after a load).
    pub(crate) fn plan_timers(&mut self, out: &mut Out<'_>) {
        for id in self.timer_ids() {
            self.plan_timer(id, out);
        }
    }

    fn timer_ids(&self) -> Vec<UnitId> {
        self.ids().filter(|id| matches!(self.table[id.index()].core, Core::Timer(_))).collect()
    }

    /// A timer has a new definition: an active one counts from now.
    pub(crate) fn redefine_timer(&mut self, id: UnitId, out: &mut Out<'_>) {
        let Some(section) = self.timer_section(id) else { return };
        let (born, now) = (self.born.boottime, out.now);
        if let Some(timer) = self.entry_mut(id).and_then(timer).filter(|t| t.state != TimerState::Dead) {
            timer.redefine(&section, born, now);
            self.touch(id);
        }
    }

    /// The timers of a unit look again when it changes.
    pub(crate) fn timers_follow(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let timers: Vec<UnitId> = self.graph.related(unit, Relation::TRIGGERED_BY).collect();
        for id in timers {
            self.plan_timer(id, out);
        }
    }

    /// The wall clock was set: first what is due fires, then calendars go on from the new time.
    pub(crate) fn clock_changed(&mut self, out: &mut Out<'_>) {
        self.tick_timers(out);
        for id in self.timer_ids() {
            let now = out.now;
            if let Some(timer) = self.entry_mut(id).and_then(timer) {
                timer.clock_changed(now);
                self.touch(id);
            }
            self.plan_timer(id, out);
        }
    }

    /// Fires every timer that is due, once each.
    pub(crate) fn tick_timers(&mut self, out: &mut Out<'_>) {
        let mut due = self.spans.due(out.now.boottime);
        due.extend(self.calendars.due(out.now.realtime));
        due.sort_unstable();
        due.dedup();
        for id in due {
            self.elapse(id, out);
        }
    }

    fn elapse(&mut self, id: UnitId, out: &mut Out<'_>) {
        let Some(section) = self.timer_section(id) else { return };
        let (born, target, now) = (self.born.boottime, self.target_facts(id), out.now);
        let Some(timer) = self.entry_mut(id).and_then(timer).filter(|timer| timer.is_due(now)) else {
            return;
        };
        timer.elapse(&section, born, target, now);
        self.touch(id);
        if self.shutdown.is_none() {
            self.fire(id, target, section.persistent, out);
        }
        self.plan_timer(id, out);
    }

    fn fire(&mut self, id: UnitId, target: Target, persistent: bool, out: &mut Out<'_>) {
        let (Some(unit), name) = (self.target_of(id), self.name(id)) else { return };
        if !target.at_rest {
            self.skip(id, unit, out);
            return;
        }
        let at = out.now.realtime;
        if let Some(timer) = self.entry_mut(id).and_then(timer) {
            timer.last_trigger = Some(at);
        }
        if persistent {
            self.stamps.insert(name.clone(), at);
            out.push(Effect::SaveStamp { timer: name.clone(), at });
        }
        self.set_trigger(unit, Some(Trigger { at: Some((at, out.now.monotonic)), ..Trigger::new(name) }));
        if self.start_by_manager(unit, out) {
            self.set(
                id,
                |entry, _| timer(entry).into_iter().for_each(|t| t.state = TimerState::Running),
                out,
            );
        } else {
            self.set_trigger(unit, None);
        }
    }

    /// It is due while its unit still runs: said, counted, and not made up for.
    fn skip(&mut self, id: UnitId, unit: UnitId, out: &mut Out<'_>) {
        let Some(timer) = self.entry_mut(id).and_then(timer) else { return };
        timer.skipped += 1;
        let (skipped, name, unit) = (timer.skipped, self.name(id), self.name(unit));
        let text = format!("{name}: {unit} is still running; skipped, {skipped} times by now.");
        out.log(Level::Notice, &name, None, None, text);
    }
}
