//! `RemoveIPC`: what the user and the group of a unit left of IPC goes when the last of their units stops.

use std::collections::BTreeSet;

use agentd_linux::ipc::{Owner, remove};

use super::runs::Run;
use crate::config::Mode;
use crate::world::World;

/// Users and groups whose objects are to go, once no unit of theirs runs.
pub type Leavers = BTreeSet<Owner>;

/// A run has ended: what its owners left goes, unless another unit of theirs runs; then it goes after that one.
pub fn release(world: &mut World, run: &Run) {
    let Some([uid, gid]) = run.owner else { return };
    let wanted = run.unit.as_service().is_some_and(|body| body.service.sandbox.remove_ipc);
    if wanted && world.config.mode == Mode::User {
        // Its user has other processes than those of units.
        tracing::warn!(unit = %run.unit.name, "RemoveIPC removes nothing in a user manager");
        return;
    }
    for (id, owner) in [(uid, Owner::User(uid)), (gid, Owner::Group(gid))] {
        if wanted && id != 0 {
            world.leavers.insert(owner);
        }
        let is_other = |other: &Run| {
            other.owner.is_some_and(|[uid, gid]| match owner {
                Owner::User(_) => uid == id,
                Owner::Group(_) => gid == id,
            })
        };
        if world.leavers.contains(&owner) && !world.runs.iter().any(|(_, other)| is_other(other)) {
            world.leavers.remove(&owner);
            let (removed, failed) = remove(owner);
            if removed > 0 {
                tracing::debug!(unit = %run.unit.name, removed, "RemoveIPC: the IPC that was left is removed");
            }
            for (name, error) in failed {
                tracing::warn!(unit = %run.unit.name, %error, "RemoveIPC: {name} cannot be removed");
            }
        }
    }
}
