//! The folders of `RuntimeDirectory`, `StateDirectory` and the like: made before each command, owned by the unit's
//! user, systemd.exec(5).

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::Identity;
use agentd_unit::UnitName;
use agentd_unit::sections::{Preserve, ServiceSection};

use super::plan::step;
use crate::config::Folders;
use crate::world::World;

/// One key: its variable, its folders, their mode, and the exit status of a command whose folders cannot be made.
struct Kind<'a> {
    key: &'static str,
    variable: &'static str,
    base: &'a Path,
    names: &'a [PathBuf],
    mode: u32,
    exit_status: u8,
    /// Given to the user; a service has no business in writing its own configuration.
    owned: bool,
}

fn kinds<'a>(folders: &'a Folders, service: &'a ServiceSection) -> [Kind<'a>; 5] {
    let how = &service.execution;
    let kind = |key, variable, base, names, mode, exit_status| Kind {
        key,
        variable,
        base,
        names,
        mode,
        exit_status,
        owned: true,
    };
    let (runtime, cache, logs) = (&how.runtime_directory, &how.cache_directory, &how.logs_directory);
    let etc = &how.configuration_directory;
    [
        kind(
            "RuntimeDirectory",
            "RUNTIME_DIRECTORY",
            &folders.units.runtime,
            &runtime.names,
            runtime.mode,
            233,
        ),
        kind(
            "StateDirectory",
            "STATE_DIRECTORY",
            &folders.units_state,
            &service.state_directory,
            how.state_directory_mode,
            238,
        ),
        kind("CacheDirectory", "CACHE_DIRECTORY", &folders.units.cache, &cache.names, cache.mode, 239),
        kind("LogsDirectory", "LOGS_DIRECTORY", &folders.units.logs, &logs.names, logs.mode, 240),
        Kind {
            owned: false,
            ..kind(
                "ConfigurationDirectory",
                "CONFIGURATION_DIRECTORY",
                &folders.units.configuration,
                &etc.names,
                etc.mode,
                241,
            )
        },
    ]
}

/// The variable of a key and the folders that it names.
pub type Made = (&'static str, Vec<PathBuf>);

/// Makes all folders of a service. Gives each key's variable with its folders.
///
/// # Errors
/// A folder that cannot be made or given to the user, under the key's exit status.
pub fn make(
    world: &World,
    service: &ServiceSection,
    owner: Option<&Identity>,
) -> Result<Vec<Made>, SpawnFailure> {
    let dynamic = service.execution.dynamic_user;
    let mut made = Vec::new();
    for kind in kinds(&world.config.folders, service).iter().filter(|kind| !kind.names.is_empty()) {
        let paths: Vec<PathBuf> = kind.names.iter().map(|name| kind.base.join(name)).collect();
        for path in &paths {
            // What a dynamic user leaves must not be open to whoever has its number next.
            let mode = if dynamic && kind.owned { kind.mode & 0o700 } else { kind.mode };
            let made = if kind.owned { one(path, mode, owner, dynamic) } else { configuration(path, mode) };
            made.map_err(|error| {
                let text = format!("{}: {} cannot be made: {error}", kind.key, path.display());
                step(kind.exit_status, text)
            })?;
        }
        made.push((kind.variable, paths));
    }
    Ok(made)
}

/// Makes one folder with the owner and mode that it is to have. A link in its place is refused: whoever could put
/// it there would be given what it leads to.
fn one(path: &Path, mode: u32, owner: Option<&Identity>, dynamic: bool) -> io::Result<()> {
    ensure(path, mode)?;
    let folder = open_folder(path)?;
    if let Some(who) = owner {
        if dynamic && folder.metadata()?.uid() != who.uid {
            // Another number than last time: shut first, so that nobody but root reaches what changes hands.
            folder.set_permissions(Permissions::from_mode(0o700))?;
            give(path, who)?;
        }
        fchown(&folder, Some(who.uid), Some(who.gid))?;
    }
    folder.set_permissions(Permissions::from_mode(mode))
}

/// Makes a folder of configuration. One that is there is the administrator's: nothing about it is changed.
fn configuration(path: &Path, mode: u32) -> io::Result<()> {
    if ensure(path, mode)? {
        return open_folder(path)?.set_permissions(Permissions::from_mode(mode));
    }
    if fs::metadata(path)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Makes a folder and those above it; whether it is new.
fn ensure(path: &Path, mode: u32) -> io::Result<bool> {
    if let Some(above) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives away all that is in a folder; links themselves and not what they lead to.
fn give(folder: &Path, who: &Identity) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        lchown(entry.path(), Some(who.uid), Some(who.gid))?;
        if entry.file_type()?.is_dir() {
            give(&entry.path(), who)?;
        }
    }
    Ok(())
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = agentd_linux::open::DIRECTORY | agentd_linux::open::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The folders of `RuntimeDirectory`, which go with the run.
#[must_use]
pub fn runtime(folders: &Folders, service: &ServiceSection) -> Vec<PathBuf> {
    service.execution.runtime_directory.names.iter().map(|name| folders.units.runtime.join(name)).collect()
}

/// A run is over: its runtime folders go, now or when no restart follows.
pub fn release(world: &mut World, unit: &UnitName, service: &ServiceSection) {
    let paths = runtime(&world.config.folders, service);
    match service.execution.runtime_preserve {
        Preserve::No => remove(unit, &paths),
        Preserve::Restart if !paths.is_empty() => {
            world.kept_folders.insert(unit.clone(), paths);
        }
        Preserve::Restart | Preserve::Yes => {}
    }
}

/// Removes folders with all that is in them.
pub fn remove(unit: &UnitName, paths: &[PathBuf]) {
    for path in paths {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(unit = %unit, %error, "{} cannot be removed", path.display());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of a test's own, gone with it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("agentd-folders-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn configuration_that_is_there_keeps_its_mode() {
        let place = Place::new("configuration");
        let path = place.0.join("above/etc");
        configuration(&path, 0o750).unwrap();
        assert_eq!((mode(&path), mode(&place.0.join("above"))), (0o750, 0o755), "new");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        configuration(&path, 0o755).unwrap();
        assert_eq!(mode(&path), 0o700, "there already");
        fs::write(path.join("file"), "").unwrap();
        assert!(configuration(&path.join("file"), 0o755).is_err());
    }
}
