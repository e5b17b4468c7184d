//! Transactions: everything that one wish asks of all units, found and checked as a whole before anything happens.

use std::collections::{BTreeMap, BTreeSet};

use agentd_unit::{LoadState, UnitName, UnitType};

use crate::effect::RequestError;
use crate::event::JobMode;
use crate::graph::{Relation, UnitId};
use crate::job::{Cause, JobType};
use crate::manager::Manager;
use crate::order;
use crate::unit::Entry;

/// The jobs of a transaction, and what was found on the way.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) anchor: UnitId,
    pub(crate) cause: Cause,
    /// Waits for nothing and pulls nothing in.
    pub(crate) alone: bool,
    /// Pulls nothing in, and nothing that it requires makes it fail.
    pub(crate) bare: bool,
    /// No other transaction takes the place of its jobs.
    pub(crate) irreversible: bool,
    /// The `OnFailure` of a job that failed.
    pub(crate) for_a_job: bool,
    pub(crate) jobs: BTreeMap<UnitId, JobType>,
    /// Wanted, but it cannot be: each with the reason.
    pub(crate) dropped: BTreeMap<UnitId, RequestError>,
    /// Orders to give up: (later, earlier, the cycle).
    pub(crate) give_up: Vec<(UnitId, UnitId, Vec<UnitId>)>,
}

impl Plan {
    /// One job, in its order with all others.
    pub(crate) fn of_one(anchor: UnitId, kind: JobType, cause: Cause) -> Self {
        let jobs = BTreeMap::from([(anchor, kind)]);
        Self {
            anchor,
            cause,
            alone: false,
            bare: false,
            irreversible: false,
            for_a_job: false,
            jobs,
            dropped: BTreeMap::new(),
            give_up: Vec::new(),
        }
    }
}

/// What a start pulls in.
struct Pulled {
    /// All units that it needs or wants and that can be.
    units: BTreeSet<UnitId>,
    /// Those of them that must come up.
    matter: BTreeSet<UnitId>,
    /// Those that cannot be, where something that can be asked for them.
    dropped: BTreeMap<UnitId, RequestError>,
}

/// `IgnoreOnIsolate`: slices are left alone unless they say otherwise.
pub(crate) fn is_left_alone(entry: &Entry) -> bool {
    let is_slice = entry.unit.name.unit_type() == UnitType::Slice;
    entry.unit.unit.system.ignore_on_isolate.unwrap_or(is_slice)
}

impl Manager {
    /// Plans a start (or restart) of `anchor` with all that follows.
    pub(crate) fn plan_start(
        &self,
        anchor: UnitId,
        kind: JobType,
        cause: Cause,
        mode: JobMode,
    ) -> Result<Plan, RequestError> {
        if mode == JobMode::Isolate {
            self.isolatable(anchor)?;
        }
        if mode == JobMode::IgnoreDependencies {
            self.startable(anchor, cause)?;
            return Ok(Plan { alone: true, ..Plan::of_one(anchor, kind, cause) });
        }
        if mode == JobMode::IgnoreRequirements {
            self.startable(anchor, cause)?;
            let mut plan = Plan { bare: true, ..Plan::of_one(anchor, kind, cause) };
            self.untangle_rest(&mut plan);
            self.untangle_stops(&mut plan);
            return Ok(plan);
        }
        let mut excluded: BTreeMap<UnitId, RequestError> = BTreeMap::new();
        loop {
            let pulled = self.pull(anchor, cause, mode, &excluded)?;
            let starts = self.needed_starts(anchor, &pulled);
            if let Some((unit, error)) = self.contradiction(anchor, &starts, &pulled)? {
                excluded.insert(unit, error);
                continue;
            }
            let found = self.untangle_starts(&starts);
            if !found.hard.is_empty() {
                self.exclude_cycles(anchor, &starts, found.hard, &mut excluded)?;
                continue;
            }
            let mut jobs: BTreeMap<UnitId, JobType> =
                starts.iter().map(|unit| (*unit, JobType::Start)).collect();
            jobs.insert(anchor, kind);
            let mut roots = self.conflicting(starts.iter().copied());
            if mode == JobMode::Isolate {
                roots.extend(self.not_part_of(&pulled.units));
            }
            jobs.extend(
                self.taken_down(roots, Relation::PROPAGATE_STOP).into_iter().map(|u| (u, JobType::Stop)),
            );
            if kind == JobType::Restart {
                self.add_restarts(anchor, &mut jobs);
            }
            let irreversible = mode == JobMode::ReplaceIrreversibly;
            let (dropped, give_up) = (pulled.dropped, found.give_up);
            let plan = Plan { irreversible, jobs, dropped, give_up, ..Plan::of_one(anchor, kind, cause) };
            let mut plan = plan;
            plan.dropped.extend(excluded.into_iter().filter(|(unit, _)| !plan.jobs.contains_key(unit)));
            self.untangle_stops(&mut plan);
            if kind == JobType::Restart {
                self.untangle_rest(&mut plan); // What comes up with it again was in no cycle that counted.
            }
            return Ok(plan);
        }
    }

    /// Plans a stop of these units with all that follows.
    pub(crate) fn plan_stop(&self, anchor: UnitId, cause: Cause, mode: JobMode) -> Plan {
        let mut plan = Plan::of_one(anchor, JobType::Stop, cause);
        plan.alone = mode == JobMode::IgnoreDependencies;
        plan.bare = mode == JobMode::IgnoreRequirements;
        plan.irreversible = mode == JobMode::ReplaceIrreversibly;
        if !plan.alone && !plan.bare {
            let down = self.taken_down(vec![anchor], Relation::PROPAGATE_STOP);
            plan.jobs.extend(down.into_iter().map(|unit| (unit, JobType::Stop)));
        }
        if !plan.alone {
            self.untangle_stops(&mut plan);
        }
        plan
    }

    /// Plans a stop of everything that is not at rest.
    pub(crate) fn plan_stop_all(&self, anchor: UnitId) -> Plan {
        let mut plan = Plan::of_one(anchor, JobType::Stop, Cause::Person);
        plan.jobs =
            self.ids().filter(|unit| self.has_to_stop(*unit)).map(|unit| (unit, JobType::Stop)).collect();
        self.untangle_stops(&mut plan);
        plan
    }

    /// Plans a reload, and reloads of what it is propagated to.
    pub(crate) fn plan_reload(&self, anchor: UnitId, mode: JobMode) -> Plan {
        let mut plan = Plan::of_one(anchor, JobType::Reload, Cause::Person);
        plan.alone = mode == JobMode::IgnoreDependencies;
        if !plan.alone {
            for other in self.graph.related(anchor, Relation::RELOADS) {
                if self.entry(other).is_some_and(|entry| entry.is_up()) && self.can_reload(other) {
                    plan.jobs.entry(other).or_insert(JobType::Reload);
                }
            }
            self.untangle_rest(&mut plan);
        }
        plan
    }

    /// Plans a look whether a unit is active, in its turn.
    pub(crate) fn plan_verify(&self, anchor: UnitId, mode: JobMode) -> Plan {
        let mut plan = Plan::of_one(anchor, JobType::VerifyActive, Cause::Person);
        plan.alone = mode == JobMode::IgnoreDependencies;
        self.untangle_rest(&mut plan);
        plan
    }

    /// Whether a unit can be started at all, by itself.
    pub(crate) fn startable(&self, unit: UnitId, cause: Cause) -> Result<(), RequestError> {
        let Some(entry) = self.entry(unit) else { return Ok(()) };
        let newest = entry.newest();
        let name = newest.name.clone();
        match &newest.load {
            LoadState::Loaded => {}
            LoadState::NotFound => return Err(RequestError::NotFound(name)),
            LoadState::Masked => return Err(RequestError::Masked(name)),
            LoadState::BadSetting(reason) | LoadState::Error(reason) => {
                return Err(RequestError::LoadFailed(name, reason.clone()));
            }
        }
        if name.is_template() {
            return Err(RequestError::NotApplicable(name, "it is a template; start an instance of it"));
        }
        if cause == Cause::Manager {
            if entry.is_given_up() {
                return Err(RequestError::NotApplicable(
                    name,
                    "it was started too often and waits for a person",
                ));
            }
            if self.job_of(unit) == Some(JobType::Stop) {
                return Err(RequestError::Conflict(name, "stop"));
            }
        }
        Ok(())
    }

    /// To isolate a unit stops nearly everything else, so that it has to be made for it (`AllowIsolate`).
    fn isolatable(&self, unit: UnitId) -> Result<(), RequestError> {
        let Some(newest) = self.entry(unit).map(|entry| entry.newest()) else { return Ok(()) };
        if newest.load == LoadState::Loaded && !newest.unit.system.allow_isolate {
            return Err(RequestError::NoIsolation(newest.name.clone()));
        }
        Ok(())
    }

    /// Walks over what `anchor` needs and wants.
    fn pull(
        &self,
        anchor: UnitId,
        cause: Cause,
        mode: JobMode,
        excluded: &BTreeMap<UnitId, RequestError>,
    ) -> Result<Pulled, RequestError> {
        let walks_on = |unit: UnitId| unit == anchor || self.is_walked(unit, cause, mode);
        let mut bad: BTreeMap<UnitId, RequestError> = BTreeMap::new();
        let mut seen = BTreeSet::from([anchor]);
        let mut todo = vec![anchor];
        while let Some(unit) = todo.pop() {
            let verdict = match excluded.get(&unit) {
                Some(error) => Err(error.clone()),
                None if walks_on(unit) => self.startable(unit, cause),
                None => continue,
            };
            if let Err(error) = verdict {
                bad.insert(unit, error);
                continue;
            }
            let pulls = Relation::HARD_PULL | Relation::SOFT_PULL;
            todo.extend(self.graph.related(unit, pulls).filter(|other| seen.insert(*other)));
        }
        self.spoil(&seen, &mut bad);
        if let Some(error) = bad.remove(&anchor) {
            return Err(error);
        }
        Ok(self.collect(anchor, &walks_on, &bad))
    }

    /// Whether the walk goes through a unit. What is up already has what it needs; but a person who starts a target
    /// asks for all that it gathers.
    fn is_walked(&self, unit: UnitId, cause: Cause, mode: JobMode) -> bool {
        let Some(entry) = self.entry(unit) else { return false };
        let settled = entry.is_up() && !self.job_of(unit).is_some_and(JobType::takes_down);
        let gathers = cause == Cause::Person && entry.unit.name.unit_type() == UnitType::Target;
        !settled || gathers || mode == JobMode::Isolate
    }

    /// Who needs what cannot be, cannot be either.
    fn spoil(&self, seen: &BTreeSet<UnitId>, bad: &mut BTreeMap<UnitId, RequestError>) {
        let mut todo: Vec<UnitId> = bad.keys().copied().collect();
        todo.sort_by_key(|unit| std::cmp::Reverse(self.graph.rank(*unit)));
        while let Some(unit) = todo.pop() {
            let Some(error) = bad.get(&unit).cloned() else { continue };
            for other in self.graph.related(unit, Relation::REQUIRED_BY | Relation::BOUND_BY) {
                let up = self.entry(other).is_some_and(|entry| entry.is_up());
                if up || !seen.contains(&other) || bad.contains_key(&other) {
                    continue;
                }
                let error = match &error {
                    RequestError::NotFound(missing) => {
                        RequestError::RequirementMissing { unit: self.name(other), missing: missing.clone() }
                    }
                    error => error.clone(),
                };
                bad.insert(other, error);
                todo.push(other);
            }
        }
    }

    fn collect(
        &self,
        anchor: UnitId,
        walks_on: &impl Fn(UnitId) -> bool,
        bad: &BTreeMap<UnitId, RequestError>,
    ) -> Pulled {
        let mut dropped = BTreeMap::new();
        let mut walk = |relation: Relation| {
            let mut units = BTreeSet::from([anchor]);
            let mut todo = vec![anchor];
            while let Some(unit) = todo.pop() {
                for other in self.graph.related(unit, relation) {
                    match bad.get(&other) {
                        Some(RequestError::NotFound(_)) => {} // Wanting what is not there is no fault.
                        Some(error) => {
                            dropped.insert(other, error.clone());
                        }
                        None => {
                            if units.insert(other) && walks_on(other) {
                                todo.push(other);
                            }
                        }
                    }
                }
            }
            units
        };
        let matter = walk(Relation::HARD_PULL);
        let units = walk(Relation::HARD_PULL | Relation::SOFT_PULL);
        Pulled { units, matter, dropped }
    }

    /// The units that a start must be made for: those that are not up already and stay so.
    fn needed_starts(&self, anchor: UnitId, pulled: &Pulled) -> BTreeSet<UnitId> {
        let needed = |unit: &UnitId| {
            let up = self.entry(*unit).is_some_and(|entry| entry.is_up());
            !up || self.job_of(*unit).is_some_and(JobType::takes_down)
        };
        pulled.units.iter().copied().filter(|unit| *unit == anchor || needed(unit)).collect()
    }

    /// A unit that would have to be both started and stopped. If it is only wanted, it is left out; else the whole
    /// transaction is refused.
    fn contradiction(
        &self,
        anchor: UnitId,
        starts: &BTreeSet<UnitId>,
        pulled: &Pulled,
    ) -> Result<Option<(UnitId, RequestError)>, RequestError> {
        let mut by_rank: Vec<UnitId> = starts.iter().copied().collect();
        by_rank.sort_by_key(|unit| self.graph.rank(*unit));
        for unit in by_rank {
            let roots = self.conflicting(std::iter::once(unit));
            let clash = self.graph.related(unit, Relation::AGAINST).find(|other| starts.contains(other));
            let clash = clash.or_else(|| {
                let down = self.taken_down(roots, Relation::PROPAGATE_STOP);
                down.into_iter().find(|other| starts.contains(other))
            });
            let Some(other) = clash else { continue };
            let weak = |unit: UnitId| unit != anchor && !pulled.matter.contains(&unit);
            let loser = match (weak(unit), weak(other)) {
                (false, false) => return Err(RequestError::Contradiction(self.name(other))),
                (true, false) => unit,
                (false, true) => other,
                // As in systemd: the one that the other's Conflicts names.
                (true, true) if self.graph.related(unit, Relation::CONFLICTED_BY).any(|by| by == other) => {
                    unit
                }
                (true, true) => other,
            };
            return Ok(Some((loser, RequestError::Contradiction(self.name(loser)))));
        }
        Ok(None)
    }

    /// What is up, or on the way, against these units.
    fn conflicting(&self, units: impl Iterator<Item = UnitId>) -> Vec<UnitId> {
        units
            .flat_map(|unit| self.graph.related(unit, Relation::AGAINST))
            .filter(|other| self.has_to_stop(*other))
            .collect()
    }

    fn not_part_of(&self, units: &BTreeSet<UnitId>) -> Vec<UnitId> {
        let stays = |unit: &UnitId| units.contains(unit) || self.entry(*unit).is_none_or(is_left_alone);
        self.ids().filter(|unit| !stays(unit) && self.has_to_stop(*unit)).collect()
    }

    /// Whether there is anything to stop: it is not at rest, or will not be, and it can be stopped.
    pub(crate) fn has_to_stop(&self, unit: UnitId) -> bool {
        let stays = self.entry(unit).is_none_or(|entry| entry.is_at_rest() || entry.is_perpetual());
        !stays || matches!(self.job_of(unit), Some(JobType::Start | JobType::Restart))
    }

    /// These units and whatever goes down with them.
    fn taken_down(&self, roots: Vec<UnitId>, relation: Relation) -> BTreeSet<UnitId> {
        let mut down: BTreeSet<UnitId> = roots.iter().copied().collect();
        let mut todo = roots;
        while let Some(unit) = todo.pop() {
            for other in self.graph.related(unit, relation) {
                if self.has_to_stop(other) && down.insert(other) {
                    todo.push(other);
                }
            }
        }
        down
    }

    /// What is restarted with `anchor`: what needs it and is not at rest.
    fn add_restarts(&self, anchor: UnitId, jobs: &mut BTreeMap<UnitId, JobType>) {
        for unit in self.taken_down(vec![anchor], Relation::PROPAGATE_RESTART) {
            let at_rest = self.entry(unit).is_none_or(|entry| entry.is_at_rest());
            if !at_rest && jobs.get(&unit) != Some(&JobType::Stop) {
                jobs.insert(unit, JobType::Restart);
            }
        }
    }

    /// Cycles among what is to start and what is starting already.
    fn untangle_starts(&self, starts: &BTreeSet<UnitId>) -> order::Untangled {
        let under_way = self.job_units(|kind| kind != JobType::Stop);
        let units: Vec<UnitId> = starts.iter().copied().chain(under_way).collect();
        let mut found = order::untangle(&self.graph, &units, true);
        // A cycle in which nothing new takes part was dealt with when its units were asked for.
        found.hard.retain(|(members, _)| members.iter().any(|unit| starts.contains(unit)));
        found
    }

    fn exclude_cycles(
        &self,
        anchor: UnitId,
        starts: &BTreeSet<UnitId>,
        cycles: Vec<(BTreeSet<UnitId>, Vec<UnitId>)>,
        excluded: &mut BTreeMap<UnitId, RequestError>,
    ) -> Result<(), RequestError> {
        for (members, path) in cycles {
            let error = RequestError::Cycle(self.names(&path));
            if members.contains(&anchor) {
                return Err(error);
            }
            excluded.extend(members.intersection(starts).map(|unit| (*unit, error.clone())));
        }
        Ok(())
    }

    /// Stopping never fails for its order: any order of a cycle gives way.
    fn untangle_stops(&self, plan: &mut Plan) {
        let down: Vec<UnitId> =
            plan.jobs.iter().filter(|(_, kind)| kind.takes_down()).map(|(unit, _)| *unit).collect();
        let under_way = self.job_units(JobType::takes_down);
        let units: Vec<UnitId> = down.into_iter().chain(under_way).collect();
        plan.give_up.extend(order::untangle(&self.graph, &units, false).give_up);
    }

    /// Nor do reloads, looks, and starts after a propagated stop: a cycle of orders must not keep them waiting for
    /// each other.
    fn untangle_rest(&self, plan: &mut Plan) {
        let under_way = self.job_units(|kind| kind != JobType::Stop);
        let jobs = plan.jobs.iter().filter(|(_, kind)| **kind != JobType::Stop).map(|(unit, _)| *unit);
        let units: Vec<UnitId> = jobs.chain(under_way).collect();
        plan.give_up.extend(order::untangle(&self.graph, &units, false).give_up);
    }

    pub(crate) fn names(&self, units: &[UnitId]) -> Vec<UnitName> {
        units.iter().map(|unit| self.name(*unit)).collect()
    }
}
