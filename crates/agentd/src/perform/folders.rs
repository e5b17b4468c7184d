//! The folders of `RuntimeDirectory`, `StateDirectory` and the like: made before each command, owned by the unit's
//! user, systemd.exec(5).

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown, symlink,
};
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::executable::settled_folder;
use agentd_linux::spawn::Identity;
use agentd_unit::UnitName;
use agentd_unit::sections::{Preserve, ServiceSection};
use agentd_unit::values::path::linked;

use super::plan::step;
use crate::config::Folders;
use crate::world::World;

/// How deep folders may lie that are given to another owner: each takes two descriptors meanwhile.
const DEEPEST: u32 = 200;

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
    unit: &UnitName,
    service: &ServiceSection,
    owner: Option<&Identity>,
) -> Result<Vec<Made>, SpawnFailure> {
    let dynamic = service.execution.dynamic_user;
    let mut made = Vec::new();
    for kind in kinds(&world.config.folders, service).iter().filter(|kind| !kind.names.is_empty()) {
        let names = kind.names.iter().map(|name| linked(name));
        let (paths, links): (Vec<PathBuf>, Vec<_>) =
            names.map(|(name, link)| (kind.base.join(name), link.map(|link| kind.base.join(link)))).unzip();
        for (path, link) in paths.iter().zip(links) {
            // What a dynamic user leaves must not be open to whoever has its number next.
            let mode = if dynamic && kind.owned { kind.mode & 0o700 } else { kind.mode };
            let made = if kind.owned {
                one(path, mode, owner, &world.trust.owners)
            } else {
                configuration(path, mode, unit)
            };
            made.map_err(|error| {
                let text = format!("{}: {} cannot be made: {error}", kind.key, path.display());
                step(kind.exit_status, text)
            })?;
            if let Some((link, Err(error))) = link.map(|link| (link.clone(), lead(&link, path))) {
                let text = format!("{}: the link {} cannot be made: {error}", kind.key, link.display());
                return Err(step(kind.exit_status, text));
            }
        }
        made.push((kind.variable, paths));
    }
    Ok(made)
}

/// Makes one folder with the owner and mode that it is to have. A link in its place is followed only if none but an
/// administrator can have put it there: whoever else could would be given what it leads to.
fn one(path: &Path, mode: u32, owner: Option<&Identity>, owners: &[u32]) -> io::Result<()> {
    ensure(path, mode)?;
    let is_link = fs::symlink_metadata(path)?.is_symlink();
    let folder = if is_link { open_folder(&led_to(path, owners)?)? } else { open_folder(path)? };
    if let Some(who) = owner {
        let meta = folder.metadata()?;
        if (meta.uid(), meta.gid()) != (who.uid, who.gid) {
            // Another owner than last time: shut first, so that no stranger reaches what changes hands. The folder
            // itself comes last: what breaks off is begun again.
            folder.set_permissions(Permissions::from_mode(0o700))?;
            give(&folder, who, DEEPEST)?;
        }
        fchown(&folder, Some(who.uid), Some(who.gid))?;
    }
    folder.set_permissions(Permissions::from_mode(mode))
}

/// Makes a link to a folder that lies beside it; one that leads there already stays.
fn lead(link: &Path, folder: &Path) -> io::Result<()> {
    if let Some(above) = link.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    match symlink(folder, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::read_link(link) {
            Ok(there) if there == folder => Ok(()),
            _ => Err(error),
        },
        result => result,
    }
}

/// Makes a folder of configuration. One that is there is the administrator's: nothing about it is changed.
fn configuration(path: &Path, mode: u32, unit: &UnitName) -> io::Result<()> {
    if ensure(path, mode)? {
        return open_folder(path)?.set_permissions(Permissions::from_mode(mode));
    }
    let meta = fs::metadata(path)?;
    if !meta.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let found = meta.mode() & 0o7777;
    if found != mode {
        tracing::warn!(
            unit = %unit,
            "{} is there and stays as it is: its mode is {found:o}, and ConfigurationDirectoryMode is {mode:o}",
            path.display()
        );
    }
    Ok(())
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

/// Gives away all that is in a folder; links themselves and not what they lead to. The way is by descriptors, so that
/// the former owner cannot lead it out of the folder by a link.
fn give(folder: &File, who: &Identity, depth: u32) -> io::Result<()> {
    let deeper = depth.checked_sub(1).ok_or_else(|| io::Error::other("its folders are too deep"))?;
    for entry in fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))? {
        let entry = entry?;
        lchown(entry.path(), Some(who.uid), Some(who.gid))?;
        if entry.file_type()?.is_dir() {
            give(&open_folder(&entry.path())?, who, deeper)?;
        }
    }
    Ok(())
}

/// Where an administrator's link leads to: all on the way to it and to its target belongs to root or us, and nobody else
/// may write there.
fn led_to(link: &Path, owners: &[u32]) -> io::Result<PathBuf> {
    let refused = |why: String| io::Error::other(format!("it is a link, and {why}"));
    let above = link.parent().unwrap_or(link);
    let above = settled_folder(above, owners).map_err(|error| refused(error.to_string()))?;
    let uid = fs::symlink_metadata(link)?.uid();
    if !owners.contains(&uid) {
        return Err(refused(format!("it belongs to user {uid}")));
    }
    let target = above.join(fs::read_link(link)?);
    let (Some(way), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(refused("it leads to no folder of its own".to_owned()));
    };
    Ok(settled_folder(way, owners).map_err(|error| refused(error.to_string()))?.join(name))
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = agentd_linux::open::DIRECTORY | agentd_linux::open::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The folders of `RuntimeDirectory` and the links to them, which go with the run.
#[must_use]
pub fn runtime(folders: &Folders, service: &ServiceSection) -> Vec<PathBuf> {
    let names = service.execution.runtime_directory.names.iter().map(|name| linked(name));
    let all = names.flat_map(|(name, link)| link.into_iter().chain([name]));
    all.map(|name| folders.units.runtime.join(name)).collect()
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
        let (path, unit) = (place.0.join("above/etc"), UnitName::parse("a.service").unwrap());
        configuration(&path, 0o750, &unit).unwrap();
        assert_eq!((mode(&path), mode(&place.0.join("above"))), (0o750, 0o755), "new");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        configuration(&path, 0o755, &unit).unwrap();
        assert_eq!(mode(&path), 0o700, "there already");
        fs::write(path.join("file"), "").unwrap();
        assert!(configuration(&path.join("file"), 0o755, &unit).is_err());
    }

    fn owner(path: &Path) -> (u32, u32) {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.uid(), meta.gid())
    }

    const WHO: Identity = Identity { uid: 64_123, gid: 64_124, groups: Vec::new() };

    #[test]
    fn all_that_is_in_a_folder_of_another_owner_is_given() {
        if owner(Path::new("/proc/self")).0 != 0 {
            return;
        }
        let place = Place::new("given");
        let [path, outside] = ["state", "outside"].map(|name| place.0.join(name));
        fs::create_dir_all(path.join("sub")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(path.join("sub/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        one(&path, 0o750, Some(&WHO), &[0]).unwrap();
        for part in ["", "sub", "sub/file", "link"] {
            assert_eq!(owner(&path.join(part)), (64_123, 64_124), "{part}");
        }
        assert_eq!((mode(&path), owner(&outside)), (0o750, (0, 0)), "what a link leads to stays");
        lchown(path.join("sub"), Some(0), Some(0)).unwrap();
        one(&path, 0o750, Some(&WHO), &[0]).unwrap();
        assert_eq!(owner(&path.join("sub")), (0, 0), "nothing is looked through at each start");
    }

    #[test]
    fn only_an_administrators_link_is_followed() {
        if owner(Path::new("/proc/self")).0 != 0 {
            return;
        }
        let place = Place::new("link");
        let [real, link] = ["real", "link"].map(|name| place.0.join(name));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        one(&link, 0o700, Some(&WHO), &[0]).unwrap();
        assert_eq!((owner(&real), owner(&link)), ((64_123, 64_124), (0, 0)));
        lchown(&link, Some(64_123), None).unwrap();
        let error = one(&link, 0o700, None, &[0]).unwrap_err().to_string();
        assert_eq!(error, "it is a link, and it belongs to user 64123");
        lchown(&link, Some(0), None).unwrap();
        fs::set_permissions(&place.0, Permissions::from_mode(0o777)).unwrap();
        let error = one(&link, 0o700, None, &[0]).unwrap_err().to_string();
        assert!(error.starts_with("it is a link, and ") && error.contains("written by others"), "{error}");
    }
}
