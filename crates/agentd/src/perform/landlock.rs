//! What Landlock holds of a unit: what its other keys say already, once more and by other means.
//!
//! Mounts show a process what it may write to; Landlock asks about each file, whatever is mounted. A file system that the
//! machine mounts later is seen by the unit and may be written to, and a socket that another process hands over was made by
//! somebody whom no filter of system calls kept from it: these two are what it adds, besides signals and abstract sockets.

use std::path::{Path, PathBuf};
use std::sync::Once;

use agentd_engine::SpawnFailure;
use agentd_linux::landlock::{Wall, version};
use agentd_unit::sections::{Sandbox, ServiceSection};
use agentd_unit::values::syscalls::address_family;

use super::plan::c_path;

/// What the mounts of a unit leave open; none: they do not shut the rest.
#[derive(Debug, Default)]
pub struct Open {
    /// Where it may write.
    pub written: Option<Vec<PathBuf>>,
    /// Where it may run programs from.
    pub executed: Option<Vec<PathBuf>>,
}

/// What is held of a command. One that is not the main process may signal that: `ExecReload` often does nothing else.
///
/// # Errors
/// A path has a NUL byte.
pub fn wall(sandbox: &Sandbox, open: Open, is_main: bool) -> Result<Option<Wall>, SpawnFailure> {
    let places = |paths: Option<Vec<PathBuf>>| {
        paths.map(|paths| paths.iter().map(|path| c_path(path)).collect::<Result<_, _>>()).transpose()
    };
    Ok(match sandbox.landlock {
        false => None,
        true => Some(Wall {
            write: places(open.written)?,
            execute: places(open.executed)?,
            own_signals: is_main,
            ..outlook(sandbox)
        }),
    })
}

/// What does not depend on what is mounted.
fn outlook(sandbox: &Sandbox) -> Wall {
    let internet = ["AF_INET", "AF_INET6"];
    let has = |name: &str| match (&sandbox.address_families, address_family(name)) {
        (Some(list), Ok(number)) => list.families.contains(&number) == list.allow,
        _ => true,
    };
    Wall {
        devices: !sandbox.private_devices,
        no_tcp: !internet.into_iter().any(has),
        own_signals: true,
        own_sockets: true,
        ..Wall::default()
    }
}

/// What a unit asks Landlock for that this kernel's does not hold, in a sentence.
#[must_use]
pub fn not_held(service: &ServiceSection) -> Option<String> {
    use agentd_unit::sections::ProtectSystem;
    let sandbox = &service.sandbox;
    let asked = Wall {
        write: (sandbox.protect_system == ProtectSystem::Strict).then(Vec::new),
        execute: sandbox.no_exec.iter().any(|path| path.path == Path::new("/")).then(Vec::new),
        ..outlook(sandbox)
    };
    sandbox.landlock.then(|| asked.missing(version())).flatten().map(|missing| missing.to_string())
}

/// Says once in the life of the manager what its kernel does not hold.
pub fn tell(service: &ServiceSection) {
    static TOLD: Once = Once::new();
    if let Some(missing) = not_held(service) {
        TOLD.call_once(|| tracing::warn!("{missing}; the other walls of its units stand"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agentd_unit::sections::AddressFamilies;

    use super::*;

    #[test]
    fn tcp_is_held_of_who_has_no_family_for_it() {
        let number = |name| address_family(name).unwrap();
        for (allow, names, no_tcp) in [
            (true, vec!["AF_UNIX"], true),
            (true, vec!["AF_UNIX", "AF_INET6"], false),
            (true, vec![], true),
            (false, vec!["AF_INET"], false),
            (false, vec!["AF_INET", "AF_INET6"], true),
        ] {
            let families = names.iter().copied().map(number).collect::<BTreeSet<u16>>();
            let sandbox = Sandbox {
                landlock: true,
                address_families: Some(AddressFamilies { allow, families }),
                ..Sandbox::default()
            };
            let wall = wall(&sandbox, Open::default(), true).unwrap().unwrap();
            assert_eq!(wall.no_tcp, no_tcp, "{allow} {names:?}");
        }
        assert!(!outlook(&Sandbox::default()).no_tcp, "all are allowed");
    }

    #[test]
    fn who_asks_for_nothing_is_held_to_nothing() {
        assert_eq!(wall(&Sandbox::default(), Open::default(), true).unwrap(), None);
    }
}
