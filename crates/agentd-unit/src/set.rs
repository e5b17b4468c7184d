//! Everything that was loaded in one pass, ready to be swapped in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::name::UnitName;
use crate::unit::Unit;

/// All units of one load, by id, and their other names. A bad file is a bad unit in here, never a bad set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnitSet {
    units: BTreeMap<UnitName, Arc<Unit>>,
    aliases: BTreeMap<UnitName, UnitName>,
}

impl UnitSet {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a unit in under its id and its aliases; an id always beats an alias of the same name.
    pub fn insert(&mut self, unit: impl Into<Arc<Unit>>) {
        let unit = unit.into();
        for alias in &unit.aliases {
            self.aliases.entry(alias.clone()).or_insert_with(|| unit.name.clone());
        }
        self.units.insert(unit.name.clone(), unit);
    }

    /// A set of units by their ids, with their aliases.
    pub(crate) fn of(units: BTreeMap<UnitName, Arc<Unit>>) -> Self {
        let mut aliases = BTreeMap::new();
        for unit in units.values() {
            for alias in &unit.aliases {
                aliases.entry(alias.clone()).or_insert_with(|| unit.name.clone());
            }
        }
        Self { units, aliases }
    }

    /// The unit of this id or alias.
    #[must_use]
    pub fn get(&self, name: &UnitName) -> Option<&Arc<Unit>> {
        self.units.get(name).or_else(|| self.units.get(self.aliases.get(name)?))
    }

    /// The id that a name stands for: itself, or what it is an alias of.
    #[must_use]
    pub fn resolve<'a>(&'a self, name: &'a UnitName) -> &'a UnitName {
        if self.units.contains_key(name) { name } else { self.aliases.get(name).unwrap_or(name) }
    }

    /// All units in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.units.values()
    }

    /// How many units there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether nothing was loaded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}
