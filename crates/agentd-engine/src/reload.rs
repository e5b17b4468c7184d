//! New definitions: taken in as a whole, each in force from when its unit is down.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentd_unit::{Body, LoadState, Unit, UnitName, UnitSet};

use crate::definitions::{mentions, relations};
use crate::effect::Level;
use crate::graph::{Graph, UnitId};
use crate::job::JobType;
use crate::manager::Manager;
use crate::order;
use crate::out::Out;
use crate::state::ActiveState;
use crate::unit::Entry;

/// Whether a service that runs can live by this definition as it is: only limits that the manager wrote are others.
fn same_but_limits(entry: &Entry, unit: &Unit) -> bool {
    entry.service().is_some() && !entry.is_between_lives() && entry.unit.differs_in_limits_alone(unit)
}

impl Manager {
    /// Swaps a whole set in. What is unchanged is not touched; a running service keeps what it lives by.
    pub(crate) fn load(&mut self, set: &UnitSet, out: &mut Out<'_>) {
        let old: Vec<UnitId> = self.ids().collect();
        self.by_name.retain(|name, id| self.table[id.index()].unit.name == *name);
        for unit in set.iter() {
            self.define(unit, out);
        }
        for id in old {
            let name = self.name(id);
            if set.get(&name).is_none_or(|unit| unit.name != name) {
                self.define(&Arc::new(Unit::without_file(name)), out);
            }
        }
        for unit in set.iter() {
            for alias in &unit.aliases {
                self.add_alias(alias, set);
            }
        }
        self.graph_is_old = true;
        self.renew_graph(out);
        self.forget_the_gone();
        self.plan_timers(out);
        self.look_round(out);
    }

    /// Adds units that were not known, as systemd loads a unit when it is first named.
    pub(crate) fn found(&mut self, set: &UnitSet, out: &mut Out<'_>) {
        for unit in set.iter() {
            let known = self.id(&unit.name).and_then(|id| self.entry(id));
            if known.is_none_or(|entry| entry.unit.load == LoadState::NotFound && entry.is_at_rest()) {
                self.define(unit, out);
                self.graph_is_old = true;
            }
        }
        for unit in set.iter() {
            for alias in unit.aliases.iter().filter(|alias| self.id(alias).is_none()).collect::<Vec<_>>() {
                self.add_alias(alias, set);
                self.note_alias(alias);
            }
        }
        self.renew_graph(out);
        self.plan_timers(out);
    }

    fn add_alias(&mut self, alias: &UnitName, set: &UnitSet) {
        let Some(id) = self.id(set.resolve(alias)) else { return };
        let Some(old) = self.by_name.insert(alias.clone(), id) else { return };
        // A unit of that name that still runs stays reachable by it until it is down.
        if old != id && !self.table[old.index()].is_at_rest() {
            self.by_name.insert(alias.clone(), old);
        }
    }

    /// A link to a unit that is loaded already has come since.
    fn note_alias(&mut self, alias: &UnitName) {
        let Some(entry) = self.id(alias).and_then(|id| self.entry_mut(id)) else { return };
        if !entry.unit.aliases.contains(alias) {
            Arc::make_mut(&mut entry.unit).aliases.push(alias.clone());
        }
    }

    fn define(&mut self, unit: &Arc<Unit>, out: &mut Out<'_>) {
        let Some(id) = self.id(&unit.name) else {
            self.add(unit);
            return;
        };
        let Some(entry) = self.entry_mut(id) else { return };
        let same =
            |old: &Unit| old.digest == unit.digest && old.load == unit.load && old.enabled == unit.enabled;
        if same(&entry.unit) && **unit == *entry.unit {
            entry.newer = None;
            return;
        }
        if same(&entry.unit) && !entry.is_between_lives() && entry.keeps_definition() {
            // The files are the same: what differs comes from outside of them, such as a link that enables it.
            entry.newer = None;
            return;
        }
        if same_but_limits(entry, unit) {
            entry.newer = None;
            entry.unit = Arc::clone(unit);
            if let Some(run) = entry.service_mut().and_then(|service| service.facts.run.as_mut()) {
                run.unit = Arc::clone(unit);
            }
            return;
        }
        entry.newer = Some(Arc::clone(unit));
        if entry.is_between_lives() || !entry.keeps_definition() {
            self.take_up_newest(id);
            self.redefine_timer(id, out);
        }
    }

    pub(crate) fn add(&mut self, unit: &Arc<Unit>) -> UnitId {
        let mut entry = Entry::new(Arc::clone(unit));
        if entry.is_perpetual() {
            entry.times.state_change = Some(self.born.realtime);
            entry.times.note(ActiveState::Inactive, ActiveState::Active, self.born);
        }
        let free = if self.free_places > 0 {
            self.table.iter().position(|entry| entry.is_gone && !entry.is_kept)
        } else {
            None
        };
        let id = if let Some(place) = free {
            self.free_places -= 1;
            self.table[place] = entry;
            UnitId(place as u32)
        } else {
            self.table.push(entry);
            UnitId(self.table.len() as u32 - 1)
        };
        self.by_name.insert(unit.name.clone(), id);
        id
    }

    /// The newest definition is in force from now on.
    pub(crate) fn take_up_newest(&mut self, id: UnitId) {
        let Some(entry) = self.entry_mut(id) else { return };
        if let Some(newer) = entry.newer.take() {
            entry.unit = newer;
            self.graph_is_old = true;
        }
    }

    /// Builds the graph anew if a definition took effect since.
    pub(crate) fn renew_graph(&mut self, out: &mut Out<'_>) {
        if !std::mem::take(&mut self.graph_is_old) {
            return;
        }
        self.add_mentioned();
        let names: Vec<&UnitName> = self.table.iter().map(|entry| &entry.unit.name).collect();
        let units: Vec<(UnitId, &Unit)> = self.ids().map(|id| (id, &*self.table[id.index()].unit)).collect();
        let graph = Graph::build(&names, relations(&units, |name| self.id(name)));
        self.graph = graph;
        self.untangle_jobs(out);
        // Places in the lists of neighbours and who waits for whom may have changed: everybody looks again.
        for job in self.jobs.values_mut() {
            job.cursor = 0;
            self.queue.insert(job.id);
        }
    }

    /// Places for the names that definitions mention and no file has.
    fn add_mentioned(&mut self) {
        let mut missing: BTreeSet<UnitName> = BTreeSet::new();
        for id in self.ids() {
            let unit = &self.table[id.index()].unit;
            missing.extend(mentions(unit).filter(|name| self.id(name).is_none()).cloned());
            missing.extend(
                unit.triggered().into_iter().chain(unit.slice()).filter(|name| self.id(name).is_none()),
            );
        }
        while let Some(name) = missing.pop_first() {
            let unit = Unit::without_file(name);
            missing.extend(unit.slice().filter(|name| self.id(name).is_none()));
            self.add(&Arc::new(unit));
        }
    }

    /// Jobs that were queued before may wait for each other in a circle now: no order is worth that.
    fn untangle_jobs(&mut self, out: &mut Out<'_>) {
        for (starting, units) in [
            (true, self.job_units(|kind| kind != JobType::Stop).collect::<Vec<_>>()),
            (false, self.job_units(|kind| kind.takes_down()).collect()),
        ] {
            let mut give_up = order::untangle(&self.graph, &units, false).give_up;
            if starting {
                give_up.extend(order::untangle(&self.graph, &units, true).give_up);
            }
            for (later, earlier, path) in give_up {
                if self.graph.give_up(later, earlier) {
                    let path: Vec<String> = self.names(&path).iter().map(ToString::to_string).collect();
                    let name = self.name(later);
                    let text = format!("{name}: Ordering cycle {} after a reload.", path.join(" -> "));
                    out.log(Level::Warning, &name, None, None, text);
                }
            }
        }
    }

    /// Forgets units that have no file, that nobody names and that are down.
    pub(crate) fn forget_the_gone(&mut self) {
        let mut named: BTreeSet<UnitName> = BTreeSet::new();
        for id in self.ids() {
            let unit = &self.table[id.index()].unit;
            named.extend(mentions(unit).cloned());
            named.extend(unit.triggered().into_iter().chain(unit.slice()));
        }
        for id in self.ids().collect::<Vec<_>>() {
            let entry = &self.table[id.index()];
            let has_file = entry.unit.load != LoadState::NotFound && !entry.unit.is_implied();
            let idle = entry.active() == ActiveState::Inactive && entry.job.is_none();
            let holds = entry.service().is_some_and(|service| service.facts.leftover.is_some());
            if has_file || !idle || holds || named.contains(&entry.unit.name) {
                continue;
            }
            self.forget(id);
        }
    }

    /// Takes a unit out of the table; its place is free.
    pub(crate) fn forget(&mut self, id: UnitId) {
        let name = self.name(id);
        if self.by_name.get(&name) == Some(&id) {
            self.by_name.remove(&name);
        }
        self.table[id.index()].is_gone = true;
        self.touch(id); // What was kept of it is to be forgotten.
        self.free_places += 1;
        self.alarms.set(id, None);
        self.spans.set(id, None);
        self.calendars.set(id, None);
        self.graph_is_old = true;
    }

    /// The timer section that a timer lives by.
    pub(crate) fn timer_section(&self, id: UnitId) -> Option<agentd_unit::TimerSection> {
        match &self.entry(id)?.unit.body {
            Body::Timer(section) => Some((**section).clone()),
            Body::Service(_) | Body::Socket(_) | Body::Path(_) | Body::Target | Body::Slice(_) => None,
        }
    }
}
