//! The targets that there always are, also in an image that ships none.

use std::collections::BTreeSet;

use crate::digest::digest;
use crate::name::{UnitName, UnitType};
use crate::unit::{LoadState, Unit};

/// The built-in targets: name, description, and what each requires.
const TARGETS: [(&str, &str, Option<&str>); 7] = [
    ("sysinit.target", "System Initialization", None),
    ("basic.target", "Basic System", Some("sysinit.target")),
    ("multi-user.target", "Multi-User System", Some("basic.target")),
    ("timers.target", "Timer Units", None),
    ("sockets.target", "Socket Units", None),
    ("paths.target", "Path Units", None),
    ("shutdown.target", "System Shutdown", None),
];

/// Targets that end the system or repair it: an ordinary boot never pulls them in.
const NOT_AT_BOOT: [&str; 11] = [
    "default.target",
    "shutdown.target",
    "final.target",
    "umount.target",
    "reboot.target",
    "poweroff.target",
    "halt.target",
    "kexec.target",
    "exit.target",
    "rescue.target",
    "emergency.target",
];

/// A target that no file describes.
fn target(name: UnitName, description: &str) -> Unit {
    let mut unit = Unit::not_found(name);
    unit.load = LoadState::Loaded;
    unit.unit.description = Some(description.to_owned());
    unit.unit.system.allow_isolate =
        matches!(unit.name.as_str(), "default.target" | "multi-user.target" | "basic.target");
    unit
}

/// The built-in targets that `known` does not have yet.
pub(super) fn missing_targets(known: impl Fn(&UnitName) -> bool) -> Vec<Unit> {
    let mut units = Vec::new();
    for (name, description, requires) in TARGETS {
        let Ok(name) = UnitName::parse(name) else { continue };
        if known(&name) {
            continue;
        }
        let mut unit = target(name, description);
        // What everything else comes after by default cannot itself have default dependencies.
        unit.unit.default_dependencies =
            !matches!(unit.name.as_str(), "sysinit.target" | "basic.target" | "shutdown.target");
        unit.unit.requires.extend(requires.and_then(|name| UnitName::parse(name).ok()));
        units.push(unit);
    }
    units
}

/// A `default.target` that wants the targets of every enabled unit.
pub(super) fn default_target<'a>(units: impl Iterator<Item = &'a Unit>) -> Option<Unit> {
    let name = UnitName::parse("default.target").ok()?;
    let mut wants = BTreeSet::new();
    for unit in units.filter(|unit| unit.enabled) {
        let install = &unit.install;
        let ends = install.wanted_by.iter().chain(&install.required_by).chain(&install.upheld_by);
        wants.extend(ends.filter(|end| end.unit_type() == UnitType::Target).cloned());
    }
    wants.retain(|name| !NOT_AT_BOOT.contains(&name.as_str()));
    let mut unit = target(name, "Default Target (built in)");
    unit.digest = digest(wants.iter().map(|name| name.as_str().as_bytes()));
    unit.unit.wants = wants.into_iter().collect();
    Some(unit)
}
