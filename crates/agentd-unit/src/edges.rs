//! Who is what to whom among loaded units: what files say, what follows from it, and the default dependencies.
//!
//! The manager decides by the same rules when it starts and stops units; here they serve those who look: properties,
//! `list-dependencies`, and the check of unit files without a manager.

mod cycles;
mod defaults;

use std::collections::{BTreeMap, BTreeSet};

pub use cycles::Cycle;

use crate::name::UnitName;
use crate::names::UnitNames;
use crate::set::UnitSet;
use crate::unit::Unit;

/// What one unit is to another, named from the side that the edge leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the key of the same name in [Unit]")]
pub enum EdgeKind {
    Requires,
    Requisite,
    Wants,
    BindsTo,
    PartOf,
    Upholds,
    Conflicts,
    After,
    OnFailure,
    OnSuccess,
    PropagatesReloadTo,
    PropagatesStopTo,
    Triggers,
}

impl EdgeKind {
    /// Pulled in, and it must come up or be up.
    const fn is_hard(self) -> bool {
        matches!(self, Self::Requires | Self::Requisite | Self::BindsTo)
    }

    /// Pulled in, whatever comes of it.
    const fn is_soft(self) -> bool {
        matches!(self, Self::Wants | Self::Upholds)
    }
}

/// One edge between two places in the list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: u32,
    kind: EdgeKind,
    to: u32,
    /// For `After`: it comes from a soft edge or a default, and gives way in a cycle.
    soft: bool,
}

/// All edges of a set of units; each pair and kind once.
#[derive(Debug, Clone, Default)]
pub struct Edges {
    /// Every name, in order: the units of the set, and what they mention.
    names: Vec<UnitName>,
    /// Sorted.
    edges: Vec<Edge>,
    /// Places in `edges`, sorted by where the edge leads.
    back: Vec<u32>,
}

impl Edges {
    /// The edges of all units of a set.
    #[must_use]
    pub fn of(set: &UnitSet) -> Self {
        let mut names: BTreeSet<&UnitName> = set.iter().map(|unit| &unit.name).collect();
        let triggered: Vec<UnitName> = set.iter().filter_map(|unit| unit.triggered()).collect();
        names.extend(set.iter().flat_map(|unit| mentions(unit)).map(|name| set.resolve(name)));
        names.extend(triggered.iter().map(|name| set.resolve(name)));
        let slices = slices_without_file(set, &names);
        names.extend(slices.iter().map(|slice| &slice.name));
        let names: Vec<UnitName> = names.into_iter().cloned().collect();
        let place = |name: &UnitName| {
            names.binary_search(set.resolve(name)).ok().and_then(|place| u32::try_from(place).ok())
        };
        let mut draft = Draft::default();
        let units = set.iter().map(AsRef::as_ref).chain(&slices);
        let units: Vec<(u32, &Unit)> =
            units.filter_map(|unit: &Unit| Some((place(&unit.name)?, unit))).collect();
        units.iter().for_each(|(id, unit)| draft.written(*id, unit, &place));
        units.iter().for_each(|(id, unit)| draft.implied(*id, unit, &place));
        defaults::add(&units, &place, &mut draft);
        let edges = draft.settle();
        let mut back: Vec<u32> = (0..edges.len()).filter_map(|place| u32::try_from(place).ok()).collect();
        back.sort_by_key(|place| edges.get(*place as usize).map(|edge| (edge.to, edge.kind, edge.from)));
        Self { names, edges, back }
    }

    /// Whether the unit was in the set, or is mentioned there.
    #[must_use]
    pub fn knows(&self, unit: &UnitName) -> bool {
        self.place(unit).is_some()
    }

    /// Every name that has a place here, in order.
    pub fn names(&self) -> impl Iterator<Item = &UnitName> {
        self.names.iter()
    }

    /// Where edges of a kind lead from a unit, in the order of names.
    pub fn from<'a>(
        &'a self,
        unit: &UnitName,
        kind: EdgeKind,
    ) -> impl Iterator<Item = &'a UnitName> + use<'a> {
        let place = self.place(unit);
        let start = place.map_or(self.edges.len(), |place| {
            self.edges.partition_point(|edge| (edge.from, edge.kind) < (place, kind))
        });
        let edges = self.edges.iter().skip(start);
        edges
            .take_while(move |edge| Some(edge.from) == place && edge.kind == kind)
            .filter_map(|edge| self.names.get(edge.to as usize))
    }

    /// From where edges of a kind lead to a unit, in the order of names.
    pub fn to<'a>(&'a self, unit: &UnitName, kind: EdgeKind) -> impl Iterator<Item = &'a UnitName> + use<'a> {
        let place = self.place(unit);
        let edge = |at: &u32| self.edges.get(*at as usize);
        let start = place.map_or(self.back.len(), |place| {
            self.back.partition_point(|at| edge(at).is_some_and(|edge| (edge.to, edge.kind) < (place, kind)))
        });
        let edges = self.back.iter().skip(start).filter_map(edge);
        edges
            .take_while(move |edge| Some(edge.to) == place && edge.kind == kind)
            .filter_map(|edge| self.names.get(edge.from as usize))
    }

    /// The cycles of orders, as they would be met if all units were started together: hard ones first.
    #[must_use]
    pub fn cycles(&self) -> Vec<Cycle> {
        cycles::find(&self.names, &self.edges)
    }

    fn place(&self, unit: &UnitName) -> Option<u32> {
        self.names.binary_search(unit).ok().and_then(|place| u32::try_from(place).ok())
    }
}

/// The slices that these units lie in, or that they mention, and that no file describes.
fn slices_without_file(set: &UnitSet, mentioned: &BTreeSet<&UnitName>) -> Vec<Unit> {
    let mentioned = mentioned.iter().filter(|name| name.is_slice()).map(|name| (*name).clone());
    let mut waiting: BTreeSet<UnitName> = mentioned.collect();
    for unit in set.iter() {
        match unit.slice() {
            Some(slice) if !waiting.contains(&slice) => waiting.insert(slice),
            _ => continue,
        };
    }
    let mut slices = BTreeMap::new();
    while let Some(name) = waiting.pop_first() {
        if set.get(&name).is_none() && !slices.contains_key(&name) {
            waiting.extend(name.parent_slice());
            slices.insert(name.clone(), Unit::without_file(name));
        }
    }
    slices.into_values().collect()
}

/// Every name that a definition mentions.
fn mentions(unit: &Unit) -> impl Iterator<Item = &UnitName> {
    let install = &unit.install;
    let install = [&install.wanted_by, &install.required_by, &install.upheld_by];
    let sockets = unit.as_service().map(|body| &body.service.life.sockets);
    written(unit).into_iter().map(|(names, ..)| names).chain(install).chain(sockets).flatten()
}

/// The keys of `[Unit]` that name units: names, kind, and whether the edge leaves this unit.
fn written(unit: &Unit) -> [(&UnitNames, EdgeKind, bool); 15] {
    use EdgeKind as K;
    let section = &unit.unit;
    [
        (&section.requires, K::Requires, true),
        (&section.requisite, K::Requisite, true),
        (&section.wants, K::Wants, true),
        (&section.binds_to, K::BindsTo, true),
        (&section.part_of, K::PartOf, true),
        (&section.upholds, K::Upholds, true),
        (&section.conflicts, K::Conflicts, true),
        (&section.on_failure, K::OnFailure, true),
        (&section.on_success, K::OnSuccess, true),
        (&section.propagates_reload_to, K::PropagatesReloadTo, true),
        (&section.reload_propagated_from, K::PropagatesReloadTo, false),
        (&section.propagates_stop_to, K::PropagatesStopTo, true),
        (&section.stop_propagated_from, K::PropagatesStopTo, false),
        (&section.after, K::After, true),
        (&section.before, K::After, false),
    ]
}

/// Edges while they are put together.
#[derive(Debug, Default)]
struct Draft {
    /// Whether the edge, if it orders, is soft.
    edges: BTreeMap<(u32, EdgeKind, u32), bool>,
    /// The orders that a person wrote: (the later, the earlier).
    ordered: BTreeSet<(u32, u32)>,
}

impl Draft {
    fn push(&mut self, from: u32, kind: EdgeKind, to: u32, soft: bool) {
        if from != to {
            self.edges.entry((from, kind, to)).and_modify(|known| *known &= soft).or_insert(soft);
        }
    }

    /// What stands in the file; `[Install]` where it counts.
    fn written(&mut self, id: u32, unit: &Unit, place: &impl Fn(&UnitName) -> Option<u32>) {
        for (names, kind, leaves) in written(unit) {
            for other in names.iter().filter_map(place) {
                let (from, to) = if leaves { (id, other) } else { (other, id) };
                self.push(from, kind, to, false);
                if kind == EdgeKind::After {
                    self.ordered.insert((from, to));
                }
            }
        }
        for (names, kind) in Self::installed(unit) {
            names.iter().filter_map(place).for_each(|other| self.push(other, kind, id, false));
        }
    }

    fn installed(unit: &Unit) -> impl Iterator<Item = (&UnitNames, EdgeKind)> {
        let install = &unit.install;
        [
            (&install.wanted_by, EdgeKind::Wants),
            (&install.required_by, EdgeKind::Requires),
            (&install.upheld_by, EdgeKind::Upholds),
        ]
        .into_iter()
        .filter(|_| unit.enabled)
    }

    /// What follows: edges order where nobody said otherwise, and what starts a unit comes before it.
    fn implied(&mut self, id: u32, unit: &Unit, place: &impl Fn(&UnitName) -> Option<u32>) {
        if unit.implicit_order {
            for (names, kind, _) in written(unit).into_iter().filter(|(_, k, _)| k.is_hard() || k.is_soft()) {
                for other in names.iter().filter_map(place) {
                    self.order_unless_written(id, other, kind.is_soft());
                }
            }
            for (names, kind) in Self::installed(unit) {
                for other in names.iter().filter_map(place) {
                    self.order_unless_written(other, id, kind.is_soft());
                }
            }
        }
        // systemd.slice(5), "Implicit Dependencies".
        if let Some(slice) = unit.slice().and_then(|name| place(&name)) {
            self.push(id, EdgeKind::Requires, slice, false);
            self.order_unless_written(id, slice, false);
        }
        if let Some(other) = unit.triggered().and_then(|name| place(&name)) {
            self.push(id, EdgeKind::Triggers, other, false);
            self.order_unless_written(other, id, true); // systemd.timer(5), "Implicit Dependencies".
        }
        // systemd.service(5), "Implicit Dependencies".
        let sockets = unit.as_service().map(|body| &body.service.life.sockets);
        for socket in sockets.into_iter().flatten().filter_map(place) {
            self.push(id, EdgeKind::Wants, socket, false);
            self.push(socket, EdgeKind::Triggers, id, false);
            self.order_unless_written(id, socket, true);
        }
    }

    fn order_unless_written(&mut self, later: u32, earlier: u32, soft: bool) {
        if !self.ordered.contains(&(later, earlier)) && !self.ordered.contains(&(earlier, later)) {
            self.push(later, EdgeKind::After, earlier, soft);
        }
    }

    /// An order is soft only if no hard edge asks for it too, and hard if a person wrote it without any edge.
    fn settle(self) -> Vec<Edge> {
        let mut hard: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut pulls: BTreeSet<(u32, u32)> = BTreeSet::new();
        for (from, kind, to) in self.edges.keys() {
            if kind.is_hard() {
                hard.insert((*from, *to));
            } else if kind.is_soft() {
                pulls.insert((*from, *to));
            }
        }
        let weigh = |(from, kind, to): (u32, EdgeKind, u32), soft: bool| {
            let soft = kind == EdgeKind::After
                && (soft || pulls.contains(&(from, to)))
                && !hard.contains(&(from, to));
            Edge { from, kind, to, soft }
        };
        self.edges.into_iter().map(|(edge, soft)| weigh(edge, soft)).collect()
    }
}
