//! What `apply` would do: the definitions in force held against those that a loading has found.

use std::collections::{BTreeMap, BTreeSet};

use agentd_engine::{ActiveState, Manager, UnitView};
use agentd_protocol::manager::PlannedChange;
use agentd_protocol::words::PlannedAction;
use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::{LoadState, Unit, UnitName, UnitSet, UnitType};

use crate::units::Loaded;

/// The edges that pull a unit in.
const PULLS: [EdgeKind; 4] = [EdgeKind::Requires, EdgeKind::BindsTo, EdgeKind::Wants, EdgeKind::Upholds];

/// What a loading changes, in the order in which it is to be done. `before`: what was loaded last.
#[must_use]
pub fn changes(manager: &Manager, before: &UnitSet, loaded: &Loaded) -> Vec<PlannedChange> {
    let up: BTreeMap<UnitName, UnitView> = manager
        .units()
        .filter(|view| is_up(view.active))
        .map(|view| (view.unit.name.clone(), view))
        .collect();
    Plan { up, before, new: &loaded.set, edges: &loaded.edges }.changes()
}

const fn is_up(state: ActiveState) -> bool {
    matches!(state, ActiveState::Active | ActiveState::Activating | ActiveState::Reloading)
}

struct Plan<'a> {
    /// The units that are up, by id.
    up: BTreeMap<UnitName, UnitView>,
    before: &'a UnitSet,
    new: &'a UnitSet,
    edges: &'a Edges,
}

impl Plan<'_> {
    /// Stops first, then restarts, then starts; each by name.
    fn changes(&self) -> Vec<PlannedChange> {
        let wanted = self.wanted();
        let mut changes: Vec<PlannedChange> = self.up.values().filter_map(|view| self.of_up(view)).collect();
        let down = self.new.iter().filter(|unit| !self.up.contains_key(&unit.name));
        changes.extend(down.filter_map(|unit| self.of_down(unit, &wanted)));
        let place = |action: PlannedAction| PlannedAction::ALL.iter().position(|one| *one == action);
        changes.sort_by_key(|change| (place(change.action), change.unit.clone()));
        changes
    }

    fn of_up(&self, view: &UnitView) -> Option<PlannedChange> {
        use PlannedAction as A;
        let old = &view.unit;
        let change = |action, reason: &str| {
            Some(PlannedChange { unit: old.name.to_string(), action, reason: reason.to_owned() })
        };
        // An instance that nothing names any more has no definition here, and yet its template is there.
        let new = self.new.get(&old.name).filter(|unit| unit.name == old.name);
        let Some(new) = new.filter(|unit| unit.load != LoadState::NotFound) else {
            let is_gone = old.fragment.as_ref().is_some_and(|path| !path.exists());
            return if is_gone { change(A::Stop, "its file is gone") } else { None };
        };
        let changed = new.digest != old.digest || new.load != old.load;
        match &new.load {
            LoadState::Masked if old.load != LoadState::Masked => change(A::Stop, "it is masked"),
            LoadState::Error(why) | LoadState::BadSetting(why) if changed => {
                change(A::Keep, &format!("its files cannot be used: {why}"))
            }
            _ if changed && old.differs_in_limits_alone(new) => None,
            _ if changed && old.name.unit_type() == UnitType::Service => {
                change(A::Restart, "its definition changed")
            }
            _ if changed => change(A::Reload, "its definition changed"),
            _ if self.is_disabled(new) && !self.is_needed(new) => change(A::Stop, "it is disabled"),
            _ => None,
        }
    }

    /// A unit that is down is started only if it would have been had the machine booted with it. What it was is what
    /// was loaded before, also where somebody has named it since and so made it known.
    fn of_down(&self, new: &Unit, wanted: &BTreeSet<&UnitName>) -> Option<PlannedChange> {
        let reason = match self.before.get(&new.name).filter(|unit| unit.load != LoadState::NotFound) {
            None => "it is new and enabled",
            Some(old) if old.digest != new.digest || old.load != new.load => "its definition changed",
            Some(old) if !old.enabled => "it is enabled",
            Some(_) => return None,
        };
        let starts = new.load == LoadState::Loaded && new.enabled && wanted.contains(&new.name);
        let change = |reason: &str| PlannedChange {
            unit: new.name.to_string(),
            action: PlannedAction::Start,
            reason: reason.to_owned(),
        };
        starts.then(|| change(reason))
    }

    fn is_disabled(&self, new: &Unit) -> bool {
        new.install.present && !new.enabled && self.before.get(&new.name).is_some_and(|unit| unit.enabled)
    }

    fn is_needed(&self, unit: &Unit) -> bool {
        let triggers = self.edges.to(&unit.name, EdgeKind::Triggers);
        let pulls = PULLS.into_iter().flat_map(|kind| self.edges.to(&unit.name, kind));
        triggers.chain(pulls).any(|other| self.up.contains_key(other))
    }

    /// What the units that are up pull in, near or far.
    fn wanted(&self) -> BTreeSet<&UnitName> {
        let mut todo: Vec<&UnitName> = self.up.keys().collect();
        let mut wanted = BTreeSet::new();
        while let Some(unit) = todo.pop() {
            for other in PULLS.into_iter().flat_map(|kind| self.edges.from(unit, kind)) {
                if wanted.insert(other) {
                    todo.push(other);
                }
            }
        }
        wanted
    }
}
