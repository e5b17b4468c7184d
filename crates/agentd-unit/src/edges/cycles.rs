//! Cycles of orders: of hard ones, which keep their members from starting, and of those that a soft one can break.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Edge, EdgeKind};
use crate::name::UnitName;

/// One cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The way round: each comes after the next, and the first stands at the end again.
    pub path: Vec<UnitName>,
    /// All that are entangled with it, in the order of names.
    pub members: Vec<UnitName>,
    /// For a cycle that a soft order breaks: (the later, the earlier) of the order that is given up. `None`: every
    /// order of it is hard, and none of its members can start.
    pub given_up: Option<(UnitName, UnitName)>,
}

/// By unit: what it comes after, and whether that is soft. Numbers are places in the order of names, so the least
/// number is the first by name.
type Orders = BTreeMap<u32, Vec<(u32, bool)>>;

pub(super) fn find(names: &[UnitName], edges: &[Edge]) -> Vec<Cycle> {
    let mut orders: Orders = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.kind == EdgeKind::After) {
        orders.entry(edge.from).or_default().push((edge.to, edge.soft));
    }
    let name = |id: &u32| names.get(*id as usize).cloned();
    let cycle = |members: &BTreeSet<u32>, path: &[u32], given_up: Option<(u32, u32)>| Cycle {
        path: path.iter().filter_map(name).collect(),
        members: members.iter().filter_map(name).collect(),
        given_up: given_up.and_then(|(later, earlier)| Some((name(&later)?, name(&earlier)?))),
    };
    let mut found = Vec::new();
    for members in components(&orders, false) {
        found.push(cycle(&members, &way_round(&orders, &members, false), None));
        orders.retain(|unit, _| !members.contains(unit));
        orders.values_mut().for_each(|list| list.retain(|(other, _)| !members.contains(other)));
    }
    while let Some(members) = components(&orders, true).into_iter().next() {
        let path = way_round(&orders, &members, true);
        let Some((later, earlier)) = weakest(&orders, &path) else { break };
        orders.entry(later).or_default().retain(|(other, _)| *other != earlier);
        found.push(cycle(&members, &path, Some((later, earlier))));
    }
    found
}

/// The order of a cycle to give up: the first soft one by name.
fn weakest(orders: &Orders, path: &[u32]) -> Option<(u32, u32)> {
    let soft = |(later, earlier): &(u32, u32)| {
        orders.get(later).is_some_and(|list| list.contains(&(*earlier, true)))
    };
    path.iter().copied().zip(path.iter().copied().skip(1)).filter(soft).min()
}

/// A shortest way round through the first member by name.
fn way_round(orders: &Orders, members: &BTreeSet<u32>, soft_too: bool) -> Vec<u32> {
    let Some(first) = members.first().copied() else { return Vec::new() };
    let mut from: BTreeMap<u32, u32> = BTreeMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(unit) = queue.pop_front() {
        for (next, soft) in orders.get(&unit).into_iter().flatten().copied() {
            if !members.contains(&next) || (soft && !soft_too) {
                continue;
            }
            if next == first {
                let mut path = vec![first, unit];
                let mut at = unit;
                while let Some(before) = from.get(&at) {
                    path.push(*before);
                    at = *before;
                }
                path.reverse();
                return path;
            }
            from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                unit
            });
        }
    }
    Vec::new() // Not reached: in a component every member lies on a cycle.
}

/// The strongly connected components of more than one unit, that of the first unit by name first. By two walks without
/// recursion (Kosaraju's way): a chain of ten thousand units must not end the stack.
fn components(orders: &Orders, soft_too: bool) -> Vec<BTreeSet<u32>> {
    let mut back: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let next = |unit: u32| {
        let list = orders.get(&unit).into_iter().flatten();
        list.filter(move |(_, soft)| soft_too || !soft).map(|(other, _)| *other)
    };
    for unit in orders.keys() {
        next(*unit).for_each(|other| back.entry(other).or_default().push(*unit));
    }
    let mut seen = BTreeSet::new();
    let mut done = Vec::new();
    for root in orders.keys().copied() {
        let mut calls = if seen.insert(root) { vec![(root, next(root))] } else { Vec::new() };
        while let Some((unit, others)) = calls.last_mut() {
            match others.next() {
                Some(other) if seen.insert(other) => calls.push((other, next(other))),
                Some(_) => {}
                None => {
                    done.push(*unit);
                    calls.pop();
                }
            }
        }
    }
    let mut taken = BTreeSet::new();
    let mut found: Vec<BTreeSet<u32>> = Vec::new();
    for root in done.into_iter().rev() {
        let mut members = BTreeSet::new();
        let mut todo = vec![root];
        while let Some(unit) = todo.pop() {
            if taken.insert(unit) {
                members.insert(unit);
                todo.extend(back.get(&unit).into_iter().flatten());
            }
        }
        if members.len() > 1 {
            found.push(members);
        }
    }
    found.sort();
    found
}
