//! `DefaultDependencies`, as in the manual pages of each type, and never so that they close a cycle; bootup(7).

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, EdgeKind};
use crate::name::{UnitName, UnitType};
use crate::unit::{LoadState, Unit};

/// A target that others gather round, and what it needs itself: those cannot come after it.
struct Point {
    id: u32,
    needs: BTreeSet<u32>,
}

/// Adds the default dependencies of all units.
pub(super) fn add(units: &[(u32, &Unit)], place: &impl Fn(&UnitName) -> Option<u32>, draft: &mut Draft) {
    let loaded: BTreeSet<u32> =
        units.iter().filter(|(_, unit)| unit.load == LoadState::Loaded).map(|(id, _)| *id).collect();
    let find = |name: &str| {
        UnitName::parse(name).ok().and_then(|name| place(&name)).filter(|id| loaded.contains(id))
    };
    let mut needs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut pulled: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (from, kind, to) in draft.edges.keys() {
        let pulls = kind.is_hard() || kind.is_soft();
        if pulls || *kind == EdgeKind::After {
            needs.entry(*from).or_default().push(*to);
        }
        if pulls {
            pulled.entry(*from).or_default().push(*to);
        }
    }
    let point = |name| find(name).map(|id| Point { id, needs: closure(id, &needs) });
    let (sysinit, basic) = (point("sysinit.target"), point("basic.target"));
    // What the shutdown itself pulls in does not conflict with it. That it comes after a unit anyway is no matter.
    let shutdown = find("shutdown.target").map(|id| Point { id, needs: closure(id, &pulled) });
    let [timers, sockets, paths] = ["timers.target", "sockets.target", "paths.target"].map(find);
    let out: BTreeSet<u32> =
        units.iter().filter(|(_, unit)| !unit.unit.default_dependencies).map(|(id, _)| *id).collect();
    let takes_part = |(id, unit): &&(u32, &Unit)| !out.contains(id) && unit.load == LoadState::Loaded;
    for (id, unit) in units.iter().filter(takes_part) {
        let kind = unit.name.unit_type();
        if !matches!(kind, UnitType::Target | UnitType::Slice) {
            after(sysinit.as_ref(), *id, true, draft);
        }
        if kind == UnitType::Service {
            after(basic.as_ref(), *id, false, draft);
        }
        let gathers = match kind {
            UnitType::Timer => timers,
            UnitType::Socket => sockets,
            UnitType::Path => paths,
            UnitType::Service | UnitType::Target | UnitType::Slice => None,
        };
        if let Some(target) = gathers {
            draft.order_unless_written(target, *id, true);
        }
        if kind == UnitType::Target {
            let others = pulled.get(id).into_iter().flatten().filter(|other| !out.contains(other));
            others.for_each(|other| draft.order_unless_written(*id, *other, true));
        }
        if let Some(shutdown) = shutdown.as_ref().filter(|shutdown| !shutdown.needs.contains(id)) {
            draft.push(*id, EdgeKind::Conflicts, shutdown.id, false);
            draft.order_unless_written(shutdown.id, *id, true);
        }
    }
}

fn after(point: Option<&Point>, id: u32, require: bool, draft: &mut Draft) {
    let Some(point) = point.filter(|point| !point.needs.contains(&id)) else { return };
    if require {
        draft.push(id, EdgeKind::Requires, point.id, false);
    }
    draft.order_unless_written(id, point.id, true);
}

/// Everything that `start` needs, near or far, and itself.
fn closure(start: u32, needs: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut seen = BTreeSet::from([start]);
    let mut todo = vec![start];
    while let Some(unit) = todo.pop() {
        let next = needs.get(&unit).into_iter().flatten();
        todo.extend(next.filter(|next| seen.insert(**next)));
    }
    seen
}
