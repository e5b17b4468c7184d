//! The manager is executed again while everything stands: the next one knows what this one kept, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agentd_engine::{
    ActiveState, Config, Effect, EffectId, Event, InvocationId, Manager, Memo, ServiceResult, UnitView,
};
use agentd_unit::sections::CollectMode;
use agentd_unit::{ExecKind, LoadState, Unit, UnitName, UnitSet};

use super::invariants::is_up;
use super::{Happening, World};

/// What must be the same before and after.
type Standing = (ActiveState, &'static str, Option<u32>, u32, bool);

/// From here on processes are named that the next manager has no name for.
const LEFT: u64 = 1 << 50;

impl World {
    pub(super) fn keep(&mut self, unit: UnitName, memo: Option<Box<Memo>>) {
        match memo {
            Some(memo) => self.kept.insert(unit, *memo),
            None => self.kept.remove(&unit),
        };
    }

    /// Another manager takes over, if nothing is on its way: it must stand where this one stood, and touch nothing.
    pub(super) fn succeed(&mut self) {
        let busy = self.manager.unsettled().next().is_some() || !self.open.is_empty();
        if self.broken.is_some() || busy {
            return;
        }
        let mut set = self.definitions(0);
        self.instances.values().for_each(|(unit, _)| set.insert(Arc::clone(unit)));
        if self.has_consequences(&set) {
            return;
        }
        let before = self.standing(&set);
        let mut effects = Vec::new();
        self.manager.keep_all(&mut effects);
        for effect in effects.drain(..) {
            if let Effect::Keep { unit, memo } = effect {
                self.keep(unit, memo);
            }
        }
        self.manager = self.heir();
        self.manager.handle(Event::UnitsLoaded(set.clone()), self.now, &mut effects);
        let memos = self.kept.values().cloned().collect();
        self.manager.handle(Event::TakenOver { memos, born: None }, self.now, &mut effects);
        let left: BTreeSet<InvocationId> = self.kept.values().filter_map(|memo| memo.leftover).collect();
        let (mut names, mut asked, mut resumed) = (BTreeMap::new(), Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::TakeOver { run, .. } if left.contains(&run) => {
                    let next = names.values().chain(self.processes.keys()).map(|id| id.0 + 1).max();
                    let free = (next.unwrap_or(LEFT).max(LEFT)..).map(EffectId);
                    names.extend(self.processes_of(run).zip(free).collect::<Vec<_>>());
                }
                Effect::TakeOver { id, run, unit, .. } => {
                    self.live_by(run, &unit);
                    names.extend(self.main_of(run).map(|old| (old, id)));
                }
                Effect::Keep { unit, memo } => self.keep(unit, memo),
                Effect::AwaitEmpty { id, run } => asked.push((id, run)),
                Effect::Log(_) => {}
                Effect::Relisten { .. }
                | Effect::Reconnect { .. }
                | Effect::Arm { .. }
                | Effect::Disarm { .. }
                | Effect::Watch { first: false, .. } => resumed.push(effect),
                // One that is to start another unit now may find that given up.
                Effect::Unlisten { ref unit } | Effect::Unwatch { ref unit }
                    if !before.contains_key(unit) =>
                {
                    resumed.push(effect);
                }
                other => return self.fail(format!("a manager that takes over begins with {other:?}")),
            }
        }
        self.rename(&names);
        self.resume_sockets(resumed);
        self.succeeded = true;
        for (id, run) in asked {
            self.await_empty(id, run);
        }
        let after = self.standing(&set);
        for (unit, stood) in before {
            let forgets =
                |view: UnitView| view.unit.unit.system.collect_mode == CollectMode::InactiveOrFailed;
            if stood.0 == ActiveState::Failed && self.manager.unit(&unit).is_some_and(forgets) {
                continue; // By its newest definition, which this manager did not live by.
            }
            if after.get(&unit) != Some(&stood) {
                let stands = after.get(&unit);
                return self.fail(format!("{unit} stood {stood:?}, and under the next manager {stands:?}"));
            }
        }
    }

    /// A socket or path unit that is up is to start another unit by its newest definition, which was given up: it ends with
    /// the next manager, and that is not without consequences.
    fn has_consequences(&self, set: &UnitSet) -> bool {
        let view = |name: &UnitName| self.manager.unit(name);
        let given_up = |name: UnitName| view(&name).is_some_and(|v| v.result == ServiceResult::StartLimitHit);
        let ends = |unit: &Unit| {
            view(&unit.name).is_some_and(|view| is_up(&view)) && unit.triggered().is_some_and(given_up)
        };
        let bound = |name: &UnitName| set.iter().any(|unit| unit.unit.binds_to.contains(name));
        set.iter().any(|unit| ends(unit) && (bound(&unit.name) || !unit.unit.on_failure.is_empty()))
    }

    fn heir(&self) -> Manager {
        let mut seed = [0xff; 16];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        let config = Config { seed, shutdown_timeout: Some(Duration::from_secs(600)), ..Config::default() };
        Manager::new(config, self.now)
    }

    /// Of units that live by the definition that is loaded. Others are the next manager's to see as they are now.
    fn standing(&self, set: &UnitSet) -> BTreeMap<UnitName, Standing> {
        // Whether a timer waits or is over hangs on what it starts, which the next manager may see as another unit.
        let sub = |view: &UnitView| if view.timer.is_some() { "timer" } else { view.sub };
        let stands = |view: &UnitView| {
            (view.active, sub(view), view.main.map(|main| main.1), view.n_restarts, view.frozen)
        };
        // A socket or path unit stands by the unit that it starts, which is to be the same one too.
        let is_same = |view: &UnitView| {
            view.unit.load == LoadState::Loaded
                && !view.changed_on_disk
                && set.get(&view.unit.name).is_some_and(|unit| **unit == *view.unit)
        };
        let starts_same = |view: &UnitView| {
            let target = view.unit.triggered().filter(|_| view.timer.is_none());
            target.is_none_or(|name| self.manager.unit(&name).as_ref().is_some_and(is_same))
        };
        let same = self.manager.units().filter(|view| is_same(view) && starts_same(view));
        same.map(|view| (view.unit.name.clone(), stands(&view))).collect()
    }

    /// The processes of a run that live.
    fn processes_of(&self, run: InvocationId) -> impl Iterator<Item = EffectId> + '_ {
        self.processes
            .iter()
            .filter(move |(_, process)| process.alive && process.run == run)
            .map(|(id, _)| *id)
    }

    fn main_of(&self, run: InvocationId) -> Option<EffectId> {
        let is_main = |process: &super::Process| process.run == run && process.kind == ExecKind::Start;
        self.processes.iter().find(|(_, process)| process.alive && is_main(process)).map(|(id, _)| *id)
    }

    /// Gives processes the names that the next manager has for them. All others are ended, as the shell does it.
    fn rename(&mut self, names: &BTreeMap<EffectId, EffectId>) {
        let processes = std::mem::take(&mut self.processes);
        self.processes = processes.into_iter().filter_map(|(id, p)| Some((*names.get(&id)?, p))).collect();
        let agenda = std::mem::take(&mut self.agenda);
        for (at, happening) in agenda {
            let renamed = match happening {
                Happening::Death(id, status) => names.get(&id).map(|id| Happening::Death(*id, status)),
                Happening::HandOver(_) => None,
                Happening::Beat(id) => names.get(&id).map(|id| Happening::Beat(*id)),
                Happening::Event(_) => None, // Answers to a manager that is gone.
                other => Some(other),
            };
            self.agenda.extend(renamed.map(|happening| (at, happening)));
        }
        self.runs.values_mut().for_each(|info| info.awaiting = None);
        self.effects_seen = names.values().copied().collect();
        self.jobs_before.clear();
        self.since.clear();
        self.busy.clear();
    }
}
