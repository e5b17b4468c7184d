//! Cycles of orders: found, given way to where they are soft, and named where they are hard.
//!
//! Most units are in no cycle; which are is found once a load ([`tangles`]). Whether a cycle really stands in the way
//! depends on what is started together, so [`untangle`] looks at one transaction.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::graph::{Graph, UnitId};

/// For each unit the number of the strongly connected component of orders that it is in; 0 if it is alone in it.
pub(crate) fn tangles(graph: &Graph) -> Vec<u32> {
    let units: Vec<UnitId> = (0..graph.len()).map(|id| UnitId(id as u32)).collect();
    let mut tangle = vec![0; graph.len()];
    let components = components(&units, |unit| graph.after(unit).map(|(earlier, _)| earlier).collect());
    for (number, component) in components.into_iter().filter(|members| members.len() > 1).enumerate() {
        for unit in component {
            tangle[unit.index()] = number as u32 + 1;
        }
    }
    tangle
}

/// What a transaction must do about its cycles.
#[derive(Debug, Default)]
pub(crate) struct Untangled {
    /// Orders to give up, each with the cycle that asked for it: (later, earlier, path).
    pub(crate) give_up: Vec<(UnitId, UnitId, Vec<UnitId>)>,
    /// Hard cycles: the members of each, and a path through it, its first member repeated at the end.
    pub(crate) hard: Vec<(BTreeSet<UnitId>, Vec<UnitId>)>,
}

/// Looks for cycles among these units, which are ordered with each other by `graph`.
///
/// Starting, the members of hard cycles are named, and are no part of what follows. Stopping, nothing may be refused,
/// so a hard order gives way too, where no soft one is left.
pub(crate) fn untangle(graph: &Graph, units: &[UnitId], starting: bool) -> Untangled {
    let mut members: BTreeSet<UnitId> =
        units.iter().copied().filter(|unit| graph.tangle(*unit) != 0).collect();
    let mut found = Untangled::default();
    let mut gone: BTreeSet<(UnitId, UnitId)> = BTreeSet::new();
    if starting {
        let list: Vec<UnitId> = by_rank(graph, &members);
        for component in components(&list, |unit| successors(graph, unit, &members, &gone, false)) {
            if component.len() > 1 {
                let component: BTreeSet<UnitId> = component.into_iter().collect();
                let path = cycle(graph, &component, &gone, false);
                found.hard.push((component, path));
            }
        }
        for (component, _) in &found.hard {
            members.retain(|unit| !component.contains(unit));
        }
    }
    loop {
        let list = by_rank(graph, &members);
        let tangled = components(&list, |unit| successors(graph, unit, &members, &gone, true));
        let Some(component) = tangled.into_iter().find(|component| component.len() > 1) else { return found };
        let component: BTreeSet<UnitId> = component.into_iter().collect();
        let path = cycle(graph, &component, &gone, true);
        let Some((later, earlier)) = weakest(graph, &path) else { return found };
        gone.insert((later, earlier));
        found.give_up.push((later, earlier, path));
    }
}

fn by_rank(graph: &Graph, units: &BTreeSet<UnitId>) -> Vec<UnitId> {
    let mut list: Vec<UnitId> = units.iter().copied().collect();
    list.sort_by_key(|unit| graph.rank(*unit));
    list
}

fn successors(
    graph: &Graph,
    unit: UnitId,
    among: &BTreeSet<UnitId>,
    gone: &BTreeSet<(UnitId, UnitId)>,
    soft_too: bool,
) -> Vec<UnitId> {
    graph
        .after(unit)
        .filter(|(earlier, soft)| {
            among.contains(earlier) && (soft_too || !soft) && !gone.contains(&(unit, *earlier))
        })
        .map(|(earlier, _)| earlier)
        .collect()
}

/// The edge of a cycle to give up: the first soft one by name, else the first by name.
fn weakest(graph: &Graph, path: &[UnitId]) -> Option<(UnitId, UnitId)> {
    let pairs = path.windows(2).map(|pair| (pair[0], pair[1]));
    let is_soft =
        |(later, earlier): (UnitId, UnitId)| graph.after(later).any(|(other, soft)| other == earlier && soft);
    pairs.min_by_key(|pair| (!is_soft(*pair), graph.rank(pair.0), graph.rank(pair.1)))
}

/// A shortest cycle through the first member by name: "a waits for b waits for … a".
fn cycle(
    graph: &Graph,
    component: &BTreeSet<UnitId>,
    gone: &BTreeSet<(UnitId, UnitId)>,
    soft_too: bool,
) -> Vec<UnitId> {
    let Some(first) = component.iter().copied().min_by_key(|unit| graph.rank(*unit)) else {
        return Vec::new();
    };
    let mut from: BTreeMap<UnitId, UnitId> = BTreeMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(unit) = queue.pop_front() {
        for next in successors(graph, unit, component, gone, soft_too) {
            if next == first {
                return walk_back(unit, first, &from);
            }
            from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                unit
            });
        }
    }
    Vec::new() // Not reached: in a component every member lies on a cycle.
}

fn walk_back(last: UnitId, first: UnitId, from: &BTreeMap<UnitId, UnitId>) -> Vec<UnitId> {
    let mut path = vec![first, last];
    let mut unit = last;
    while let Some(before) = from.get(&unit) {
        path.push(*before);
        unit = *before;
    }
    path.reverse();
    path
}

/// Strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972), without recursion:
/// a chain of ten thousand units must not end the manager's stack.
fn components(units: &[UnitId], successors: impl Fn(UnitId) -> Vec<UnitId>) -> Vec<Vec<UnitId>> {
    let mut search = Search::default();
    for root in units {
        if !search.seen.contains_key(root) {
            search.enter(*root, successors(*root));
        }
        while let Some((unit, next)) = search.calls.last_mut() {
            let unit = *unit;
            let Some(other) = next.pop() else {
                search.leave(unit);
                continue;
            };
            match search.seen.get(&other).copied() {
                None => search.enter(other, successors(other)),
                Some(known) if known.on_stack => search.lower(unit, known.index),
                Some(_) => {}
            }
        }
    }
    search.found
}

/// The state of the search: the recursion of the textbook, written as a list of calls.
#[derive(Default)]
struct Search {
    seen: BTreeMap<UnitId, Seen>,
    stack: Vec<UnitId>,
    calls: Vec<(UnitId, Vec<UnitId>)>,
    found: Vec<Vec<UnitId>>,
}

#[derive(Clone, Copy)]
struct Seen {
    index: u32,
    low: u32,
    on_stack: bool,
}

impl Search {
    fn enter(&mut self, unit: UnitId, mut next: Vec<UnitId>) {
        let index = self.seen.len() as u32;
        self.seen.insert(unit, Seen { index, low: index, on_stack: true });
        self.stack.push(unit);
        next.reverse(); // Taken from the end.
        self.calls.push((unit, next));
    }

    fn lower(&mut self, unit: UnitId, low: u32) {
        if let Some(seen) = self.seen.get_mut(&unit) {
            seen.low = seen.low.min(low);
        }
    }

    fn leave(&mut self, unit: UnitId) {
        self.calls.pop();
        let Some(own) = self.seen.get(&unit).copied() else { return };
        if let Some(caller) = self.calls.last().map(|(caller, _)| *caller) {
            self.lower(caller, own.low);
        }
        if own.low == own.index
            && let Some(place) = self.stack.iter().rposition(|member| *member == unit)
        {
            let component = self.stack.split_off(place);
            for member in &component {
                if let Some(seen) = self.seen.get_mut(member) {
                    seen.on_stack = false;
                }
            }
            self.found.push(component);
        }
    }
}
