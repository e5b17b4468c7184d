//! Whether a path names one file for good: executing what was verified, by path.
//!
//! A script is executed by its path, which its interpreter opens once more, and so is a program where the kernel would name
//! a process that is executed by descriptor after the descriptor's number (before Linux 6.14). That runs what was verified
//! only if nobody else can have put another file there meanwhile.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows in one path, path_resolution(7).
const MAX_LINKS: usize = 40;

/// Why a path may name another file by the time that it is executed.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Somebody else owns the file, or a folder or link on the way to it.
    #[error("{} belongs to user {uid}, who can replace what was verified", path.display())]
    Owner {
        /// What is owned.
        path: PathBuf,
        /// By whom.
        uid: u32,
    },
    /// Others may write to the file, or to a folder on the way to it.
    #[error("{} can be written by others (mode {mode:04o}), who can replace what was verified", path.display())]
    Writable {
        /// What can be written.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The path names another file than the one that was opened.
    #[error("{} was replaced since it was verified", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// The path is relative, or leads through more links than the kernel follows.
    #[error("{} leads nowhere", path.display())]
    Unresolvable {
        /// The path.
        path: PathBuf,
    },
    /// A part of the path cannot be looked at.
    #[error("cannot look at {}", path.display())]
    Access {
        /// The part.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A path without links that names this open file, if nobody but the owners can make it, or the path that was given, name
/// another: all on the way to it, links included, belongs to one of them, and no one else may write to a folder or to the
/// file. To a sticky folder others may write: they can remove or rename nothing there that is the owners', unlink(2).
///
/// # Errors
/// Who could replace it, or that somebody has.
pub fn settled_path(path: &Path, file: &File, owners: &[u32]) -> Result<PathBuf, PathError> {
    let (real, found) = resolve(path, owners)?;
    check(&real, &found, owners)?;
    let opened = file.metadata().map_err(|source| PathError::Access { path: path.to_owned(), source })?;
    let same = (found.dev(), found.ino()) == (opened.dev(), opened.ino());
    if same && found.is_file() { Ok(real) } else { Err(PathError::Replaced { path: path.to_owned() }) }
}

/// The same of a folder.
///
/// # Errors
/// Who could replace it; it is no folder.
pub fn settled_folder(path: &Path, owners: &[u32]) -> Result<PathBuf, PathError> {
    let (real, found) = resolve(path, owners)?;
    check(&real, &found, owners)?;
    if found.is_dir() { Ok(real) } else { Err(PathError::Unresolvable { path: path.to_owned() }) }
}

/// Follows a path as the kernel does, part by part, and checks every folder and link on the way.
fn resolve(path: &Path, owners: &[u32]) -> Result<(PathBuf, Metadata), PathError> {
    let nowhere = || PathError::Unresolvable { path: path.to_owned() };
    if !path.is_absolute() {
        return Err(nowhere());
    }
    let mut ahead = parts_reversed(path);
    let mut real = PathBuf::from("/");
    let mut found = look(&real)?;
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        check(&real, &found, owners)?;
        if part == ".." {
            real.pop();
            found = look(&real)?;
            continue;
        }
        let next = real.join(&part);
        let metadata = look(&next)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(nowhere());
            }
            check_owner(&next, &metadata, owners)?;
            let target = fs::read_link(&next).map_err(|source| PathError::Access { path: next, source })?;
            if target.is_absolute() {
                real = PathBuf::from("/");
                found = look(&real)?;
            }
            ahead.extend(parts_reversed(&target));
        } else {
            (real, found) = (next, metadata);
        }
    }
    Ok((real, found))
}

/// The parts of a path, the first at the end, without `/` and `.`.
fn parts_reversed(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(part).collect()
}

fn look(path: &Path) -> Result<Metadata, PathError> {
    fs::symlink_metadata(path).map_err(|source| PathError::Access { path: path.to_owned(), source })
}

/// Group and others may not write, but to a sticky folder.
fn check(path: &Path, metadata: &Metadata, owners: &[u32]) -> Result<(), PathError> {
    check_owner(path, metadata, owners)?;
    let mode = metadata.mode() & 0o7777;
    let is_sticky_folder = metadata.is_dir() && mode & 0o1000 != 0;
    if mode & 0o022 == 0 || is_sticky_folder {
        Ok(())
    } else {
        Err(PathError::Writable { path: path.to_owned(), mode })
    }
}

fn check_owner(path: &Path, metadata: &Metadata, owners: &[u32]) -> Result<(), PathError> {
    let uid = metadata.uid();
    if owners.contains(&uid) { Ok(()) } else { Err(PathError::Owner { path: path.to_owned(), uid }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::TempDir;

    /// Root and us.
    fn own() -> [u32; 2] {
        [0, nix::unistd::geteuid().as_raw()]
    }

    fn settled(path: &Path, file: &File) -> Result<PathBuf, PathError> {
        settled_path(path, file, &own())
    }

    fn program(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        mode(&path, 0o755);
        path
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_of_the_system_has_its_real_path() {
        let path = Path::new("/bin/sh");
        assert_eq!(settled(path, &File::open(path).unwrap()).unwrap(), fs::canonicalize(path).unwrap());
    }

    #[test]
    fn each_way_to_replace_it_is_refused() {
        let folder = TempDir::new();
        let path = program(folder.path(), "p");
        let opened = File::open(&path).unwrap();
        let link = folder.path().join("link");
        symlink(format!("./../{}/p", folder.path().file_name().unwrap().to_str().unwrap()), &link).unwrap();
        assert_eq!(settled(&path, &opened).unwrap(), path, "below a sticky folder");
        assert_eq!(settled(&link, &opened).unwrap(), path);
        for (what, changed, normal) in
            [(path.as_path(), 0o775, 0o755), (&path, 0o757, 0o755), (folder.path(), 0o777, 0o755)]
        {
            mode(what, changed);
            let error = settled(&path, &opened).unwrap_err();
            assert!(matches!(&error, PathError::Writable { path, .. } if path == what), "{error}");
            mode(what, normal);
        }
        fs::rename(program(folder.path(), "q"), &path).unwrap();
        let error = settled(&path, &opened).unwrap_err();
        assert!(matches!(&error, PathError::Replaced { .. }), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(settled(&path, &opened), Err(PathError::Access { .. })));
    }

    #[test]
    fn a_link_in_the_middle_that_others_can_turn_is_refused() {
        let folder = TempDir::new();
        let path = program(folder.path(), "p");
        let opened = File::open(&path).unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        let (first, second) = (folder.path().join("first"), shared.join("second"));
        symlink(&path, &second).unwrap();
        symlink(&second, &first).unwrap();
        assert_eq!(settled(&first, &opened).unwrap(), path);
        // Neither a folder of the path that was given nor one of the real path.
        mode(&shared, 0o777);
        let error = settled(&first, &opened).unwrap_err();
        assert!(matches!(&error, PathError::Writable { path, .. } if *path == shared), "{error}");
    }

    #[test]
    fn another_owner_is_refused() {
        if own()[1] != 0 {
            return;
        }
        let folder = TempDir::new();
        let path = program(folder.path(), "p");
        let opened = File::open(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(64_123), None).unwrap();
        let error = settled(&path, &opened).unwrap_err();
        assert!(matches!(error, PathError::Owner { uid: 64_123, .. }), "{error}");
        let of_its_own = settled_path(&path, &opened, &[0, 64_123]).unwrap();
        assert_eq!(of_its_own, path, "but for its own manager");
    }

    #[test]
    fn loops_and_relative_paths_lead_nowhere() {
        let folder = TempDir::new();
        let opened = File::open("/bin/sh").unwrap();
        let path = folder.path().join("loop");
        symlink(&path, &path).unwrap();
        for path in [path.as_path(), Path::new("bin/sh")] {
            let error = settled(path, &opened).unwrap_err();
            assert!(matches!(error, PathError::Unresolvable { .. }), "{error}");
        }
    }
}
