//! The walls of a unit: which capabilities its keys take, which namespaces and filters they add.

use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::{self, Identity, MountFlags, SpawnPlan, UserMap};
use agentd_unit::sections::{PrivateUsers, Propagation, ServiceSection};

use super::folders::Made;
use super::mounts::{Cover, Mounts, Need, Place};
use super::plan::resources;
use super::{filters, landlock, view};

/// What a run has of its own, which its walls leave open.
#[derive(Debug)]
pub struct Own<'a> {
    /// The folders of `StateDirectory` and the like.
    pub made: &'a [Made],
    /// What it sees as `/tmp` and `/var/tmp`.
    pub private: Option<&'a [PathBuf; 2]>,
    /// Its secrets.
    pub credentials: Option<&'a Path>,
    /// Where the manager keeps what it mounts.
    pub runtime: &'a Path,
    /// What becomes its `/`.
    pub root: Option<&'a Path>,
    /// The manager's user and group.
    pub manager: [u32; 2],
    /// It is the main process.
    pub is_main: bool,
}

/// Builds the walls into a plan.
///
/// # Errors
/// A path that has to be there is not, or the filters are too long.
pub fn wall(plan: &mut SpawnPlan<'_>, service: &ServiceSection, own: &Own<'_>) -> Result<(), SpawnFailure> {
    let sandbox = &service.sandbox;
    let dropped = sandbox.takes();
    if dropped != 0 {
        plan.bounding_set = Some(plan.bounding_set.unwrap_or(u64::MAX) & !dropped);
        plan.ambient_set &= !dropped;
    }
    plan.namespaces.network = sandbox.private_network && plan.joined.network.is_none();
    plan.namespaces.hostname = sandbox.protect_hostname;
    plan.namespaces.ipc = sandbox.private_ipc && plan.joined.ipc.is_none();
    plan.namespaces.pids = sandbox.private_pids;
    plan.namespaces.users = users(sandbox.private_users, own.manager, plan.identity.as_ref());
    plan.namespaces.own_mounts = sandbox.private_mounts;
    plan.namespaces.propagation = sandbox.propagation.map(propagation);
    let (entries, open) = mounts(service, own)?.finish()?;
    plan.namespaces.mounts = entries;
    let wall = landlock::wall(sandbox, open, own.is_main)?;
    plan.landlock = wall.and_then(|wall| wall.compile(agentd_linux::landlock::version()));
    let filters = filters::filters(sandbox);
    plan.filters = filters.ok_or_else(|| resources("SystemCallFilter: the filter is too long".into()))?;
    Ok(())
}

/// What is mounted for a unit.
///
/// # Errors
/// A path cannot be looked at, or what covers it cannot be made.
pub fn mounts<'a>(service: &ServiceSection, own: &Own<'a>) -> Result<Mounts<'a>, SpawnFailure> {
    let mut mounts = Mounts::new(Place { root: own.root, runtime: own.runtime });
    view::protect(&mut mounts, &service.sandbox, own.made)?;
    view::replace(&mut mounts, &service.sandbox, own.private)?;
    if let (Some(folder), Some(_)) = (own.credentials, own.root) {
        let cover = Cover::Tree { source: folder.to_owned(), recursive: true, flags: MountFlags::default() };
        mounts.add("LoadCredential", folder, Need::Made, cover)?;
    }
    Ok(mounts)
}

/// How many ids `PrivateUsers=identity` has.
const IDENTITY: u32 = 65536;

/// The maps of its users: who is not in them is seen as nobody.
fn users(wanted: PrivateUsers, manager: [u32; 2], who: Option<&Identity>) -> Option<UserMap> {
    let of = |manager: u32, own: Option<u32>| match (wanted, own) {
        (PrivateUsers::Identity, _) => format!("0 0 {IDENTITY}\n"),
        (_, Some(own)) if own != manager => format!("{manager} {manager} 1\n{own} {own} 1\n"),
        _ => format!("{manager} {manager} 1\n"),
    };
    let [uid, gid] = manager;
    (wanted != PrivateUsers::No)
        .then(|| UserMap { uids: of(uid, who.map(|who| who.uid)), gids: of(gid, who.map(|who| who.gid)) })
}

const fn propagation(propagation: Propagation) -> spawn::Propagation {
    match propagation {
        Propagation::Shared => spawn::Propagation::Shared,
        Propagation::Slave => spawn::Propagation::Slave,
        Propagation::Private => spawn::Propagation::Private,
    }
}
