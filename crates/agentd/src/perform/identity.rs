//! Who a command runs as: `User`, `Group`, `SupplementaryGroups`, looked up in the user databases.

use std::collections::BTreeSet;

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::Identity;
use agentd_linux::user::{User, UserError};
use agentd_unit::sections::ServiceSection;
use agentd_unit::{Unit, UnitName};

use super::dynamic_user;
use super::environment::Account;
use super::plan::{chain, step};
use crate::world::World;

const EXIT_GROUP: u8 = 216;
const EXIT_USER: u8 = 217;

/// The account of `User`, or the dynamic one of the run; none without either.
///
/// # Errors
/// There is no such user.
pub fn account(
    world: &World,
    unit: &UnitName,
    service: &ServiceSection,
    dynamic: Option<u32>,
) -> Result<Option<User>, SpawnFailure> {
    if let Some(uid) = dynamic {
        let name = service.user.clone().unwrap_or_else(|| dynamic_user::name(unit, uid));
        let (home, shell) = ("/".into(), "/usr/sbin/nologin".into());
        return Ok(Some(User { name, uid, gid: uid, home, shell }));
    }
    let Some(name) = &service.user else {
        // What was to have a user of its own never runs as the manager's.
        let lost = || step(EXIT_USER, "DynamicUser: the user of this run is not known any more".into());
        return if service.execution.dynamic_user { Err(lost()) } else { Ok(None) };
    };
    let user = world.accounts.user(name);
    user.map(Some).map_err(|e| step(EXIT_USER, format!("User={name}: {}", chain(&e))))
}

/// The user that a new run has of its own; none without `DynamicUser`, or where `User` names one that there is.
///
/// # Errors
/// A user manager can give no other users away; all are taken.
pub fn dynamic(world: &World, unit: &Unit) -> Result<Option<u32>, SpawnFailure> {
    let Some(service) = unit.as_service().map(|body| &body.service) else { return Ok(None) };
    let known = |name: &String| world.accounts.user(name).is_ok();
    if !service.execution.dynamic_user || service.user.as_ref().is_some_and(known) {
        return Ok(None);
    }
    if world.owner.uid != 0 {
        let text = "DynamicUser: only a manager that runs as root can give a unit a user of its own; \
                    write DynamicUser=no to run it as you";
        return Err(step(EXIT_USER, text.into()));
    }
    let others = world.runs.iter().filter(|(_, run)| run.unit.name != unit.name);
    let taken: BTreeSet<u32> = others.filter_map(|(_, run)| run.dynamic_uid).collect();
    let free = |uid: u32| !taken.contains(&uid) && !world.accounts.knows_id(uid);
    let uid = dynamic_user::candidates(&unit.name).find(|uid| free(*uid));
    uid.map(Some).ok_or_else(|| step(EXIT_USER, "DynamicUser: all user ids are taken".into()))
}

/// The ids of a unit's processes; none where the unit names neither user nor group.
///
/// # Errors
/// A group does not exist.
pub fn identity(
    world: &World,
    service: &ServiceSection,
    user: Option<&User>,
) -> Result<Option<Identity>, SpawnFailure> {
    let further = &service.execution.supplementary_groups;
    if user.is_none() && service.group.is_none() && further.is_empty() {
        return Ok(None);
    }
    let failed = |key: &'static str| move |e: UserError| step(EXIT_GROUP, format!("{key}: {}", chain(&e)));
    let group = service.group.as_ref().map(|name| world.accounts.group(name)).transpose();
    let group = group.map_err(failed("Group"))?;
    let uid = user.map_or(world.owner.uid, |user| user.uid);
    let gid = match (group, user) {
        (Some(gid), _) => gid,
        (None, Some(user)) => user.gid,
        (None, None) => {
            let own = world.accounts.user(&uid.to_string());
            own.map_err(|e| step(EXIT_USER, format!("SupplementaryGroups: {}", chain(&e))))?.gid
        }
    };
    let mut groups = match user {
        // The primary group is among them, as initgroups(3) has it and systemd does.
        Some(user) => {
            let mut groups = world.accounts.supplementary(&user.name, gid).map_err(failed("Group"))?;
            groups.push(gid);
            groups
        }
        None => Vec::new(),
    };
    for name in further {
        groups.push(world.accounts.group(name).map_err(failed("SupplementaryGroups"))?);
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(Some(Identity { uid, gid, groups }))
}

/// The account of the manager itself; of a user manager in the home that it was started with.
#[must_use]
pub fn own_account(world: &World) -> Option<Account> {
    let user = world.accounts.user(&world.owner.uid.to_string()).ok()?;
    let home = world.config.folders.home.as_ref().map_or(user.home, |home| home.display().to_string());
    Some(Account { name: user.name, home, shell: user.shell })
}
