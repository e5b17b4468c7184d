//! The bounds of slices, systemd.slice(5): what all units of a branch may use together.
//!
//! # Invariants
//! - No process is born into a slice before the slice has its bounds.
//! - A slice's cgroup outlives its units, and goes when the slice itself is stopped.

use std::sync::Arc;

use agentd_engine::Record;
use agentd_linux::cgroup::{CgroupError, CgroupRoot, Removal};
use agentd_unit::{Unit, UnitName};

use super::bounds::{self, Bounds};
use crate::world::{STOPPED, World};

/// Gives each slice down to this one its bounds, once.
///
/// # Errors
/// One cannot be made, or the kernel refuses a value.
pub fn bound(world: &mut World, slice: &str) -> Result<(), CgroupError> {
    if world.bounded.contains_key(slice) || world.cgroups.is_none() {
        return Ok(());
    }
    for part in CgroupRoot::slices_to(slice) {
        if !world.bounded.contains_key(&part) {
            let unit = UnitName::parse(&part).ok().and_then(|name| world.loaded.get(&name).cloned());
            apply(world, &part, unit.as_deref())?;
            world.bounded.insert(part, unit);
        }
    }
    Ok(())
}

/// A slice that is said to have stopped: its cgroup is to go.
pub fn note_stopped(world: &mut World, record: &Record) {
    let stopped = record.message_id == Some(STOPPED) && !world.is_ending && world.cgroups.is_some();
    if let Some(slice) = record.unit.as_ref().filter(|unit| stopped && unit.is_slice()) {
        world.stopped_slices.insert(slice.clone());
    }
}

/// Removes the cgroups of slices that were stopped, as soon as nothing is in them any more. `rests`: it is still down.
pub fn remove_stopped(world: &mut World, rests: impl Fn(&UnitName) -> bool) {
    // By their names the inner ones come first: `a-b.slice` before `a.slice`.
    for slice in std::mem::take(&mut world.stopped_slices) {
        let Some(cgroups) = world.cgroups.as_mut().filter(|_| rests(&slice)) else { continue };
        match cgroups.remove_slice(slice.as_str()) {
            Ok(Removal::Removed) => drop(world.bounded.remove(slice.as_str())),
            // What `KillMode` let live on is in it.
            Ok(Removal::Busy) => drop(world.stopped_slices.insert(slice)),
            Err(error) => tracing::warn!(unit = %slice, "{slice}: {}", super::plan::chain(&error)),
        }
    }
}

/// Gives slices the bounds of newer definitions. What the kernel refuses is told, and stays as it was. True: what one of
/// them has for those below it is another than before, so that they have other bounds, too.
pub fn take_up(world: &mut World) -> bool {
    let newest = |slice: &str| UnitName::parse(slice).ok().and_then(|name| world.loaded.get(&name).cloned());
    let defaults = |unit: &Option<Arc<Unit>>| unit.as_deref().map(bounds::defaults).unwrap_or_default();
    let others = world.bounded.iter().any(|(slice, old)| defaults(old) != defaults(&newest(slice)));
    let newer = |(slice, old): (&String, &Option<Arc<Unit>>)| {
        let new = newest(slice);
        let digest = |unit: &Option<Arc<Unit>>| unit.as_ref().map(|unit| unit.digest);
        (others || digest(old) != digest(&new)).then(|| (slice.clone(), new))
    };
    let all: Vec<_> = world.bounded.iter().filter_map(newer).collect();
    for (slice, new) in all {
        match apply(world, &slice, new.as_deref()) {
            Ok(()) => drop(world.bounded.insert(slice, new)),
            Err(error) => {
                let why = super::plan::chain(&error);
                tracing::error!(unit = %slice, "{slice}: its new limits are not in force: {why}");
            }
        }
    }
    others
}

/// What no file says is the kernel's default: a former life, or an older definition, may have said something.
fn apply(world: &mut World, slice: &str, unit: Option<&Unit>) -> Result<(), CgroupError> {
    let bounds = unit.and_then(Bounds::of);
    let limits = bounds.map(|bounds| bounds.limits(world)).unwrap_or_default();
    if let Some(bounds) = bounds {
        for why in bounds.not_enforced(world.cgroups.as_ref()) {
            tracing::warn!(unit = %slice, "{slice}: {why}");
        }
    }
    let Some(cgroups) = &mut world.cgroups else { return Ok(()) };
    cgroups.limit_slice(slice, &limits)
}
