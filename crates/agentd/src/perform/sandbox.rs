//! The walls of a unit: which capabilities its keys take, which namespaces and filters they add.

use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::SpawnPlan;
use agentd_unit::sections::{Sandbox, ServiceSection};

use super::folders::Made;
use super::mounts::{Mounts, Place};
use super::plan::resources;
use super::{filters, view};

/// capabilities(7).
const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_RAWIO: u32 = 17;
const CAP_SYS_TIME: u32 = 25;
const CAP_MKNOD: u32 = 27;
const CAP_SYSLOG: u32 = 34;
const CAP_WAKE_ALARM: u32 = 35;

/// Builds the walls into a plan. `made`: the folders of the unit, which it may write to. `private`: its own temporary
/// folders. `runtime`: where the manager keeps what it mounts.
///
/// # Errors
/// A path that has to be there is not, or the filters are too long.
pub fn wall(
    plan: &mut SpawnPlan<'_>,
    service: &ServiceSection,
    made: &[Made],
    private: Option<&[PathBuf; 2]>,
    runtime: &Path,
) -> Result<(), SpawnFailure> {
    let sandbox = &service.sandbox;
    let dropped = capabilities(sandbox);
    if dropped != 0 {
        plan.bounding_set = Some(plan.bounding_set.unwrap_or(u64::MAX) & !dropped);
        plan.ambient_set &= !dropped;
    }
    plan.namespaces.network = sandbox.private_network;
    plan.namespaces.hostname = sandbox.protect_hostname;
    let root = service.execution.root_directory.as_deref();
    let mut mounts = Mounts::new(Place { root, runtime });
    view::protect(&mut mounts, sandbox, made)?;
    view::replace(&mut mounts, sandbox, private)?;
    plan.namespaces.mounts = mounts.finish()?;
    let filters = filters::filters(sandbox);
    plan.filters = filters.ok_or_else(|| resources("SystemCallFilter: the filter is too long".into()))?;
    Ok(())
}

/// What the keys take besides what they hide.
fn capabilities(sandbox: &Sandbox) -> u64 {
    [
        (sandbox.private_devices, 1 << CAP_MKNOD | 1 << CAP_SYS_RAWIO),
        (sandbox.protect_kernel_modules, 1 << CAP_SYS_MODULE),
        (sandbox.protect_kernel_logs, 1 << CAP_SYSLOG),
        (sandbox.protect_clock, 1 << CAP_SYS_TIME | 1 << CAP_WAKE_ALARM),
    ]
    .into_iter()
    .filter(|(wanted, _)| *wanted)
    .fold(0, |all, (_, mask): (bool, u64)| all | mask)
}
