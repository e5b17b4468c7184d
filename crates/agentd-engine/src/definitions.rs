//! From definitions to relations: both ends of each edge, implied orders, default dependencies.

use std::collections::{BTreeMap, BTreeSet};

use agentd_unit::{Body, LoadState, Unit, UnitName, UnitNames, UnitType};

use crate::graph::{Relation as R, UnitId};

/// The targets that default dependencies speak of, where they are loaded (bootup(7)).
const SYSINIT: &str = "sysinit.target";
const BASIC: &str = "basic.target";
const TIMERS: &str = "timers.target";
const SOCKETS: &str = "sockets.target";
const PATHS: &str = "paths.target";
const SHUTDOWN: &str = "shutdown.target";

/// Every name that a definition mentions.
pub(crate) fn mentions(unit: &Unit) -> impl Iterator<Item = &UnitName> {
    let section = &unit.unit;
    let lists = [
        &section.requires,
        &section.requisite,
        &section.wants,
        &section.binds_to,
        &section.part_of,
        &section.upholds,
        &section.conflicts,
        &section.before,
        &section.after,
        &section.on_failure,
        &section.on_success,
        &section.propagates_reload_to,
        &section.reload_propagated_from,
        &section.propagates_stop_to,
        &section.stop_propagated_from,
        &unit.install.wanted_by,
        &unit.install.required_by,
        &unit.install.upheld_by,
    ];
    let triggered = match &unit.body {
        Body::Timer(timer) => timer.unit.as_ref(),
        Body::Socket(socket) => socket.service.as_ref(),
        Body::Path(path) => path.unit.as_ref(),
        Body::Service(_) | Body::Target | Body::Slice(_) => None,
    };
    let sockets = unit.as_service().map(|body| &body.service.life.sockets);
    lists.into_iter().flatten().chain(triggered).chain(sockets.into_iter().flatten())
}

/// All relations of all units. `id_of` knows every name that a unit mentions.
pub(crate) fn relations(
    units: &[(UnitId, &Unit)],
    id_of: impl Fn(&UnitName) -> Option<UnitId>,
) -> Vec<(UnitId, UnitId, R)> {
    let mut all = Relations { list: Vec::new(), ordered: BTreeSet::new() };
    for (id, unit) in units {
        all.written(*id, unit, &id_of);
    }
    for (id, unit) in units {
        all.implied(*id, unit, &id_of);
    }
    let defaults = Defaults::new(units, &all.list, &id_of);
    for (id, unit) in units {
        defaults.add(*id, unit, &mut all);
    }
    all.list
}

struct Relations {
    list: Vec<(UnitId, UnitId, R)>,
    /// The orders that a person wrote: (the later, the earlier).
    ordered: BTreeSet<(UnitId, UnitId)>,
}

impl Relations {
    /// What stands in the file.
    fn written(&mut self, id: UnitId, unit: &Unit, id_of: &impl Fn(&UnitName) -> Option<UnitId>) {
        let section = &unit.unit;
        let install = |names| if unit.enabled { names } else { &NO_NAMES };
        for (names, relation, here_to_there) in [
            (&section.requires, R::REQUIRES, true),
            (&section.requisite, R::REQUISITE, true),
            (&section.wants, R::WANTS, true),
            (&section.binds_to, R::BINDS_TO, true),
            (&section.part_of, R::PART_OF, true),
            (&section.upholds, R::UPHOLDS, true),
            (&section.conflicts, R::CONFLICTS, true),
            (&section.on_failure, R::ON_FAILURE, true),
            (&section.on_success, R::ON_SUCCESS, true),
            (&section.propagates_reload_to, R::RELOADS, true),
            (&section.reload_propagated_from, R::RELOADS, false),
            (&section.propagates_stop_to, R::STOPS, true),
            (&section.stop_propagated_from, R::STOPS, false),
            (&section.after, R::AFTER, true),
            (&section.before, R::AFTER, false),
            (install(&unit.install.wanted_by), R::WANTS, false),
            (install(&unit.install.required_by), R::REQUIRES, false),
            (install(&unit.install.upheld_by), R::UPHOLDS, false),
        ] {
            for other in names.iter().filter_map(id_of) {
                let (from, to) = if here_to_there { (id, other) } else { (other, id) };
                self.list.push((from, to, relation));
                if relation == R::AFTER {
                    self.ordered.insert((from, to));
                }
            }
        }
    }

    /// What follows from what stands there: edges order where nobody said otherwise, timers trigger.
    fn implied(&mut self, id: UnitId, unit: &Unit, id_of: &impl Fn(&UnitName) -> Option<UnitId>) {
        let section = &unit.unit;
        if unit.implicit_order {
            for (names, soft) in [
                (&section.requires, false),
                (&section.requisite, false),
                (&section.binds_to, false),
                (&section.wants, true),
                (&section.upholds, true),
            ] {
                for other in names.iter().filter_map(id_of) {
                    self.order_unless_written(id, other, soft);
                }
            }
            let install = &unit.install;
            for (names, soft) in
                [(&install.required_by, false), (&install.wanted_by, true), (&install.upheld_by, true)]
            {
                for other in names.iter().filter(|_| unit.enabled).filter_map(id_of) {
                    self.order_unless_written(other, id, soft);
                }
            }
        }
        // systemd.slice(5), "Implicit Dependencies". On what is always there nobody has to wait.
        if let Some(slice) = unit.slice().filter(|name| !name.is_perpetual()).and_then(|name| id_of(&name)) {
            self.list.push((id, slice, R::REQUIRES));
            self.order_unless_written(id, slice, false);
        }
        if let Some(other) = unit.triggered().and_then(|name| id_of(&name)) {
            self.list.push((id, other, R::TRIGGERS));
            self.order_unless_written(other, id, true); // systemd.timer(5), "Implicit Dependencies".
        }
        // systemd.service(5), "Implicit Dependencies".
        let sockets = unit.as_service().map(|body| &body.service.life.sockets);
        for socket in sockets.into_iter().flatten().filter_map(id_of) {
            self.list.push((id, socket, R::WANTS));
            self.list.push((socket, id, R::TRIGGERS));
            self.order_unless_written(id, socket, true);
        }
    }

    fn order_unless_written(&mut self, later: UnitId, earlier: UnitId, soft: bool) {
        if !self.ordered.contains(&(later, earlier)) && !self.ordered.contains(&(earlier, later)) {
            self.list.push((later, earlier, if soft { R::AFTER | R::SOFT } else { R::AFTER }));
        }
    }
}

static NO_NAMES: UnitNames = UnitNames::new();

/// `DefaultDependencies`, as in the manual pages of each type, and never so that they close a cycle.
struct Defaults {
    sysinit: Option<Point>,
    basic: Option<Point>,
    /// The targets that timers, sockets and path units come before.
    timers: Option<UnitId>,
    sockets: Option<UnitId>,
    paths: Option<UnitId>,
    shutdown: Option<Point>,
    opted_out: BTreeSet<UnitId>,
    /// What each target pulls in.
    pulled_in: BTreeMap<UnitId, Vec<UnitId>>,
}

/// A target that others gather round, and what it needs itself: those cannot come after it.
struct Point {
    id: UnitId,
    needs: BTreeSet<UnitId>,
}

impl Defaults {
    fn new(
        units: &[(UnitId, &Unit)],
        list: &[(UnitId, UnitId, R)],
        id_of: &impl Fn(&UnitName) -> Option<UnitId>,
    ) -> Self {
        let loaded: BTreeSet<UnitId> =
            units.iter().filter(|(_, unit)| unit.load == LoadState::Loaded).map(|(id, _)| *id).collect();
        let find = |name: &str| {
            UnitName::parse(name).ok().and_then(|name| id_of(&name)).filter(|id| loaded.contains(id))
        };
        let mut needs: BTreeMap<UnitId, Vec<UnitId>> = BTreeMap::new();
        let mut pulled_in: BTreeMap<UnitId, Vec<UnitId>> = BTreeMap::new();
        for (from, to, relation) in list {
            if relation.any(R::HARD | R::SOFT_PULL | R::AFTER) {
                needs.entry(*from).or_default().push(*to);
            }
            if relation.any(R::HARD | R::SOFT_PULL) {
                pulled_in.entry(*from).or_default().push(*to);
            }
        }
        let point = |name| find(name).map(|id| Point { id, needs: closure(id, &needs) });
        let opted_out =
            units.iter().filter(|(_, unit)| !unit.unit.default_dependencies).map(|(id, _)| *id).collect();
        let (sysinit, basic) = (point(SYSINIT), point(BASIC));
        // What the shutdown itself pulls in does not conflict with it. That it comes after a unit anyway is no matter.
        let shutdown = find(SHUTDOWN).map(|id| Point { id, needs: closure(id, &pulled_in) });
        let (timers, sockets, paths) = (find(TIMERS), find(SOCKETS), find(PATHS));
        Self { sysinit, basic, timers, sockets, paths, shutdown, opted_out, pulled_in }
    }

    fn add(&self, id: UnitId, unit: &Unit, all: &mut Relations) {
        if self.opted_out.contains(&id) || unit.load != LoadState::Loaded {
            return;
        }
        let kind = unit.name.unit_type();
        if !matches!(kind, UnitType::Target | UnitType::Slice) {
            self.after(self.sysinit.as_ref(), id, true, all);
        }
        if kind == UnitType::Service {
            self.after(self.basic.as_ref(), id, false, all);
        }
        let gathers = match kind {
            UnitType::Timer => self.timers,
            UnitType::Socket => self.sockets,
            UnitType::Path => self.paths,
            UnitType::Service | UnitType::Target | UnitType::Slice => None,
        };
        if let Some(target) = gathers {
            all.order_unless_written(target, id, true);
        }
        if kind == UnitType::Target {
            for other in self.pulled_in.get(&id).into_iter().flatten() {
                if !self.opted_out.contains(other) {
                    all.order_unless_written(id, *other, true);
                }
            }
        }
        if let Some(shutdown) = &self.shutdown
            && !shutdown.needs.contains(&id)
        {
            all.list.push((id, shutdown.id, R::CONFLICTS));
            all.order_unless_written(shutdown.id, id, true);
        }
    }

    fn after(&self, point: Option<&Point>, id: UnitId, require: bool, all: &mut Relations) {
        let Some(point) = point.filter(|point| !point.needs.contains(&id)) else { return };
        if require {
            all.list.push((id, point.id, R::REQUIRES));
        }
        all.order_unless_written(id, point.id, true);
    }
}

/// Everything that `start` needs, near or far, and itself.
fn closure(start: UnitId, needs: &BTreeMap<UnitId, Vec<UnitId>>) -> BTreeSet<UnitId> {
    let mut seen = BTreeSet::from([start]);
    let mut todo = vec![start];
    while let Some(unit) = todo.pop() {
        for next in needs.get(&unit).into_iter().flatten() {
            if seen.insert(*next) {
                todo.push(*next);
            }
        }
    }
    seen
}

#[cfg(test)]
#[path = "definitions_tests.rs"]
mod tests;
