//! Whether conditions and asserts hold, systemd.unit(5) "Conditions and Asserts": looked at when the start's turn has
//! come, and handed to the engine as facts.
//!
//! All that is read lies below a root folder, so tests bring a machine of their own.

mod compare;
mod machine;
mod paths;

use std::path::{Path, PathBuf};

use crate::sections::{Condition, Test};
use crate::values::boolean;

pub use paths::{all_of_glob, folders_of_glob, glob, is_pattern};

/// The machine that is looked at.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where its files are; `/` but for tests.
    pub root: PathBuf,
    /// The manager's environment.
    pub environment: Vec<(String, String)>,
    /// The processor's architecture, as `std::env::consts::ARCH` has it.
    pub architecture: &'static str,
}

impl Default for Machine {
    fn default() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        Self { root: "/".into(), environment, architecture: std::env::consts::ARCH }
    }
}

impl Machine {
    /// A path of the machine.
    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text without the last newline; empty if it cannot be read.
    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default().trim_end_matches('\n').to_owned()
    }
}

/// What the conditions of a unit come to: nothing, or the first one that does not hold, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdicts {
    /// Of the conditions.
    pub condition: Result<(), String>,
    /// Of the asserts.
    pub assertion: Result<(), String>,
}

/// Looks at all conditions of a unit. Each must hold, and of those with `|` one; conditions and asserts apart.
#[must_use]
pub fn check(conditions: &[Condition], machine: &Machine) -> Verdicts {
    let of = |assert: bool| {
        let list: Vec<&Condition> = conditions.iter().filter(|c| c.assert == assert).collect();
        verdict(&list, machine)
    };
    Verdicts { condition: of(false), assertion: of(true) }
}

fn verdict(conditions: &[&Condition], machine: &Machine) -> Result<(), String> {
    let mut triggers = conditions.iter().filter(|condition| condition.trigger).peekable();
    if let Some(failed) = conditions.iter().find(|c| !c.trigger && !holds(c, machine)) {
        return Err(failed.to_string());
    }
    let Some(first) = triggers.peek().map(|condition| condition.to_string()) else { return Ok(()) };
    if triggers.any(|condition| holds(condition, machine)) { Ok(()) } else { Err(first) }
}

/// Whether one condition holds, by itself.
#[must_use]
pub fn holds(condition: &Condition, machine: &Machine) -> bool {
    let text = condition.parameter.as_str();
    let found = match condition.test {
        Test::PathExists => machine.path(text).exists(),
        Test::PathExistsGlob => paths::glob(&machine.root, text),
        Test::PathIsDirectory => machine.path(text).is_dir(),
        Test::PathIsSymbolicLink => machine.path(text).is_symlink(),
        Test::PathIsMountPoint => paths::is_mount_point(machine, text),
        Test::PathIsReadWrite => paths::is_read_write(machine, text),
        Test::DirectoryNotEmpty => {
            std::fs::read_dir(machine.path(text)).is_ok_and(|mut entries| entries.next().is_some())
        }
        Test::FileNotEmpty => paths::is_file(machine, text, |data| data.len() > 0),
        Test::FileIsExecutable => paths::is_file(machine, text, paths::is_executable),
        Test::Host => machine::host(machine, text),
        Test::Architecture => machine::architecture(machine, text),
        Test::Virtualization => machine::virtualization(machine, text),
        Test::KernelCommandLine => machine::kernel_command_line(machine, text),
        Test::KernelVersion => compare::version(&machine.read("/proc/sys/kernel/osrelease"), text),
        Test::KernelModuleLoaded => machine.path("/sys/module").join(text.replace('-', "_")).exists(),
        Test::Environment => machine::environment(machine, text),
        Test::User => machine::user(machine, text),
        Test::Group => machine::group(machine, text),
        Test::Memory => machine::memory(machine, text),
        Test::CPUs => machine::cpus(machine, text),
        Test::OSRelease => machine::os_release(machine, text),
        Test::ControlGroupController => machine::controllers(machine, text),
        Test::Capability => machine::capability(machine, text),
        Test::ACPower => boolean::parse(text).is_ok_and(|wanted| wanted == machine::ac_power(machine)),
        Test::CPUFeature => machine::cpu_feature(machine, text),
    };
    found != condition.negate
}

#[cfg(test)]
mod tests;
