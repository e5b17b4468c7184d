//! The edges of units that have come since the last loading: instances that nobody names, and files that a request has found.

use std::sync::Arc;

use agentd_engine::Manager;
use agentd_unit::edges::Edges;
use agentd_unit::{LoadState, UnitName};

use crate::world::World;

/// Reckons all edges anew if units were found since, or the one that is asked about is not among them. Only who asks pays
/// for it: an instance for each connection may come and go unseen.
pub fn complete(manager: &Manager, world: &mut World, asked: &str) {
    let unit = UnitName::parse_lenient(asked).ok().and_then(|name| manager.unit(&name));
    let is_new = |name: &UnitName| !world.edges.knows(name);
    let lacks = unit.is_some_and(|unit| unit.unit.load == LoadState::Loaded && is_new(&unit.unit.name));
    if !world.found_units && !lacks {
        return;
    }
    world.found_units = false;
    let mut set = world.loaded.clone();
    for view in manager.units() {
        if view.unit.load == LoadState::Loaded && set.get(&view.unit.name).is_none() {
            set.insert(view.unit);
        }
    }
    world.edges = Arc::new(Edges::of(&set));
}
