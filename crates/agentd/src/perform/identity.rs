//! Who a command runs as: `User`, `Group`, `SupplementaryGroups`, looked up in the user databases.

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::Identity;
use agentd_linux::user::{User, UserError};
use agentd_unit::sections::ServiceSection;

use super::environment::Account;
use super::plan::{chain, step};
use crate::world::World;

const EXIT_GROUP: u8 = 216;
const EXIT_USER: u8 = 217;

/// The account of `User`; none without one.
///
/// # Errors
/// There is no such user.
pub fn account(world: &World, service: &ServiceSection) -> Result<Option<User>, SpawnFailure> {
    let Some(name) = &service.user else { return Ok(None) };
    let user = world.accounts.user(name);
    user.map(Some).map_err(|e| step(EXIT_USER, format!("User={name}: {}", chain(&e))))
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
        Some(user) => world.accounts.supplementary(&user.name, gid).map_err(failed("Group"))?,
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
