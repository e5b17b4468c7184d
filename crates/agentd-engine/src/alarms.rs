//! When which unit must be looked at again: one time a unit on each clock.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::UnitId;

/// The times of one clock.
#[derive(Debug)]
pub(crate) struct Alarms<T> {
    by_time: BTreeSet<(T, UnitId)>,
    by_unit: BTreeMap<UnitId, T>,
}

impl<T> Default for Alarms<T> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_unit: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Alarms<T> {
    /// Puts a unit's time in the place of the one it had.
    pub(crate) fn set(&mut self, unit: UnitId, at: Option<T>) {
        let old = match at {
            Some(at) => self.by_unit.insert(unit, at),
            None => self.by_unit.remove(&unit),
        };
        if old == at {
            return;
        }
        if let Some(old) = old {
            self.by_time.remove(&(old, unit));
        }
        if let Some(at) = at {
            self.by_time.insert((at, unit));
        }
    }

    /// A unit's time.
    pub(crate) fn of(&self, unit: UnitId) -> Option<T> {
        self.by_unit.get(&unit).copied()
    }

    /// The earliest.
    pub(crate) fn first(&self) -> Option<T> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Who is due, the longest first.
    pub(crate) fn due(&self, now: T) -> Vec<UnitId> {
        self.by_time.iter().take_while(|(at, _)| *at <= now).map(|(_, unit)| *unit).collect()
    }
}
