//! Which devices and addresses a unit may reach: `DeviceAllow`, `DevicePolicy`, `IPAddressAllow`, `IPAddressDeny`.
//!
//! # Invariants
//!
//! - What a unit asks for holds before its first process is born, or it is told, or the start fails.
//! - A cgroup that is used again has the programs of its present run alone.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use agentd_engine::SpawnFailure;
use agentd_linux::bpf::addresses::{self, Direction, Range};
use agentd_linux::bpf::devices::{self, DeviceAccess, DeviceKind};
use agentd_linux::bpf::{self, Hook, Programs};
use agentd_linux::cgroup::Leaf;
use agentd_unit::sections::{AddressRange, DeviceRule, DeviceWall, ServiceSection};
use agentd_unit::{Unit, UnitName, pattern};

use super::plan::resources;
use crate::world::World;

/// The programs in the kernel.
#[derive(Debug)]
pub struct Reach {
    programs: Programs,
    /// Why there can be none.
    refused: Option<String>,
    /// Units whose cgroup has some.
    walled: HashSet<UnitName>,
}

impl Reach {
    /// Asks the kernel whether it takes programs.
    #[must_use]
    pub fn probe() -> Self {
        let refused =
            bpf::probe().err().map(|error| format!("the kernel takes no program for them: {error}"));
        Self { programs: Programs::default(), refused, walled: HashSet::new() }
    }
}

/// The keys of a unit that ask for a program.
#[must_use]
pub fn keys(service: &ServiceSection) -> Vec<&'static str> {
    let devices = service.device_wall().and_then(|wall| wall.key);
    let addresses = (!service.filters.address_deny.is_empty()).then_some("IPAddressDeny");
    devices.into_iter().chain(addresses).collect()
}

/// Why no unit can have programs here; none where each can.
#[must_use]
pub fn refused(world: &World) -> Option<&str> {
    match &world.cgroups {
        None => Some("units have no cgroups here"),
        Some(_) => world.reach.refused.as_deref(),
    }
}

/// Builds the walls around the cgroup of a new run.
///
/// # Errors
/// The kernel refuses what the unit asks for, and it requires its limits or others could have them here.
pub fn wall(
    world: &mut World,
    unit: &Unit,
    service: &ServiceSection,
    leaf: Option<&Leaf>,
) -> Result<(), SpawnFailure> {
    let asked = keys(service);
    let why = refused(world).map(ToOwned::to_owned);
    let (Some(leaf), None) = (leaf, &why) else {
        let why = why.as_deref().unwrap_or("it has no cgroup");
        return if asked.is_empty() { Ok(()) } else { tell(unit, &asked.join(", "), "is", why) };
    };
    let reach = &mut world.reach;
    let walls = service.device_wall();
    if walls.is_none() && asked.is_empty() && !reach.walled.remove(&unit.name) {
        return Ok(());
    }
    if let Some(wall) = &walls {
        let code = devices::only(&entries(&unit.name, wall));
        let put = reach.programs.put(leaf.as_fd(), Hook::Devices, code);
        put.or_else(|error| match wall.key {
            Some(key) => Err(resources(format!("{key}: the kernel refuses the program: {error}"))),
            None => {
                tracing::debug!(unit = %unit.name, %error, "PrivateDevices stands without a program");
                Ok(())
            }
        })?;
    } else {
        clear(leaf, Hook::Devices);
    }
    let [allow, deny] =
        [&service.filters.address_allow, &service.filters.address_deny].map(|list| ranges(list));
    for (hook, direction) in [(Hook::In, Direction::In), (Hook::Out, Direction::Out)] {
        if deny.is_empty() {
            clear(leaf, hook);
            continue;
        }
        let put = reach.programs.put(leaf.as_fd(), hook, addresses::filter(direction, &allow, &deny));
        put.map_err(|error| resources(format!("IPAddressDeny: the kernel refuses the program: {error}")))?;
    }
    reach.walled.insert(unit.name.clone());
    Ok(())
}

fn clear(leaf: &Leaf, hook: Hook) {
    if let Err(error) = bpf::clear(leaf.as_fd(), hook) {
        tracing::debug!(%error, "{hook:?}: what programs there were is not known");
    }
}

/// Says that something that a unit asks for is not enforced here. A unit that requires its limits does not start.
///
/// # Errors
/// It requires them.
pub fn tell(unit: &Unit, what: &str, is: &str, why: &str) -> Result<(), SpawnFailure> {
    let agent = unit.as_service().and_then(|body| body.agent.as_ref());
    if agent.is_some_and(|agent| agent.life.require_limits) {
        return Err(resources(format!("RequireLimits: {what} cannot be enforced here: {why}")));
    }
    tracing::warn!(unit = %unit.name, "{what} {is} not enforced here: {why}");
    Ok(())
}

fn ranges(list: &[AddressRange]) -> Vec<Range> {
    list.iter().map(|range| Range { address: range.address, bits: range.bits }).collect()
}

/// What every program may use that needs no device at all, as systemd has it.
const PSEUDO: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// What a wall lets through. A device that is not there is told, and lets nothing through.
fn entries(unit: &UnitName, wall: &DeviceWall) -> Vec<DeviceAccess> {
    let rule = |device: &str, make| DeviceRule { device: device.to_owned(), read: true, write: true, make };
    let pseudo = PSEUDO.iter().map(|path| rule(path, true)).chain([rule("char-pts", false)]);
    let mut entries = Vec::new();
    for rule in pseudo.filter(|_| wall.pseudo) {
        // A container may lack some.
        entries.extend(accesses(&rule).unwrap_or_default());
    }
    for rule in &wall.rules {
        match accesses(rule) {
            Ok(found) if found.is_empty() && wall.key.is_some() => {
                tracing::warn!(unit = %unit, "DeviceAllow: the kernel has no driver {}", rule.device);
            }
            Ok(found) => entries.extend(found),
            Err(error) => {
                tracing::warn!(unit = %unit, %error, "DeviceAllow: {} lets nothing through", rule.device)
            }
        }
    }
    entries
}

fn accesses(rule: &DeviceRule) -> io::Result<Vec<DeviceAccess>> {
    let access = |kind, major, minor| DeviceAccess {
        kind,
        major,
        minor,
        read: rule.read,
        write: rule.write,
        make: rule.make,
    };
    let of_driver = |kind, name: &str| -> io::Result<Vec<DeviceAccess>> {
        if name == "*" {
            return Ok(vec![access(kind, None, None)]);
        }
        let majors = match name.parse() {
            Ok(major) => vec![major],
            Err(_) => devices::majors(kind, |known| pattern::matches(name, known))?,
        };
        Ok(majors.into_iter().map(|major| access(kind, Some(major), None)).collect())
    };
    if let Some(name) = rule.device.strip_prefix("char-") {
        return of_driver(DeviceKind::Character, name);
    }
    if let Some(name) = rule.device.strip_prefix("block-") {
        return of_driver(DeviceKind::Block, name);
    }
    let (kind, major, minor) = devices::of_path(Path::new(&rule.device))?;
    Ok(vec![access(kind, Some(major), Some(minor))])
}
