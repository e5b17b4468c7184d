//! Executing what was verified: one open, one look, one exec.
//!
//! Where the kernel names a program that is executed by descriptor after its file (Linux 6.14), the descriptor is
//! all that is needed. On older ones it would be named after the descriptor's number, so a file that was verified
//! by descriptor is executed by path, and only if nobody but root can have put another one there meanwhile:
//! [`Executable::trusted_path`].

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows in one path, path_resolution(7).
const MAX_LINKS: usize = 40;

/// A regular file, open for reading, that may become a process.
#[derive(Debug)]
pub struct Executable {
    file: File,
    metadata: Metadata,
}

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

impl Executable {
    /// Opens a file to be read, hashed and executed, following links. Never waits for the writer of a FIFO, never
    /// makes a terminal ours. Close-on-exec.
    ///
    /// # Errors
    /// As for open(2). EACCES: it is no regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        Ok(Self { file, metadata })
    }

    /// The file, to be hashed. Reading moves its one offset; an exec does not mind.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the kernel would start an interpreter for it: it begins with `#!`. Such a file is executed from a
    /// sealed copy ([`crate::memfd`]), which the interpreter reads by its descriptor.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_script(&self) -> io::Result<bool> {
        let mut file = &self.file;
        file.rewind()?;
        let mut head = Vec::with_capacity(2);
        file.take(2).read_to_end(&mut head)?;
        file.rewind()?;
        Ok(head == b"#!")
    }

    /// A path without links that names this very file, if nobody but root and `owner` can make it name another: all
    /// on the way to it, links included, belongs to one of the two, and no one else may write to a folder or to
    /// the file.
    ///
    /// # Errors
    /// Who could replace it, or that somebody has.
    pub fn trusted_path(&self, path: &Path, owner: u32) -> Result<PathBuf, PathError> {
        let (real, found) = resolve(path, owner)?;
        check(&real, &found, owner)?;
        let same = (found.dev(), found.ino()) == (self.metadata.dev(), self.metadata.ino());
        if same && found.is_file() { Ok(real) } else { Err(PathError::Replaced { path: path.to_owned() }) }
    }
}

impl AsFd for Executable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Follows a path as the kernel does, part by part, and checks every folder and link on the way.
fn resolve(path: &Path, owner: u32) -> Result<(PathBuf, Metadata), PathError> {
    let nowhere = || PathError::Unresolvable { path: path.to_owned() };
    if !path.is_absolute() {
        return Err(nowhere());
    }
    let mut ahead = parts_reversed(path);
    let mut real = PathBuf::from("/");
    let mut found = look(&real)?;
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        check(&real, &found, owner)?;
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
            check_owner(&next, &metadata, owner)?;
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

/// Group and others may not write. A sticky folder is no exception: anybody may put a new name there.
fn check(path: &Path, metadata: &Metadata, owner: u32) -> Result<(), PathError> {
    check_owner(path, metadata, owner)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 == 0 { Ok(()) } else { Err(PathError::Writable { path: path.to_owned(), mode }) }
}

fn check_owner(path: &Path, metadata: &Metadata, owner: u32) -> Result<(), PathError> {
    let uid = metadata.uid();
    if uid == 0 || uid == owner { Ok(()) } else { Err(PathError::Owner { path: path.to_owned(), uid }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::TempDir;

    fn own() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    /// A folder whose whole way is ours: the temporary folder is not, as all may write there, and the sources may lie
    /// in it. Root always has one: `/run`.
    fn private() -> Option<TempDir> {
        let bases = [Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("/run")];
        bases.into_iter().filter(|base| is_writable(base)).find_map(|base| {
            let folder = TempDir::in_folder(base);
            let (real, found) = resolve(folder.path(), own()).ok()?;
            check(&real, &found, own()).ok().map(|()| folder)
        })
    }

    fn is_writable(folder: &Path) -> bool {
        nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok()
    }

    fn program(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_of_the_system_is_executed_by_its_real_path() {
        let path = Path::new("/bin/sh");
        let real = Executable::open(path).unwrap().trusted_path(path, own()).unwrap();
        assert_eq!(real, fs::canonicalize(path).unwrap());
    }

    #[test]
    fn what_others_can_replace_is_named() {
        let folder = TempDir::new();
        let path = program(folder.path(), "p");
        let error = Executable::open(&path).unwrap().trusted_path(&path, own()).unwrap_err();
        assert!(
            matches!(&error, PathError::Writable { path, .. } if path == &std::env::temp_dir()),
            "{error}"
        );
    }

    #[test]
    fn each_way_to_replace_it_is_refused() {
        let Some(folder) = private() else {
            assert!(std::env::var_os("CI").is_none(), "the sources lie in a folder that others can write to");
            return;
        };
        let path = program(folder.path(), "p");
        let opened = Executable::open(&path).unwrap();
        let link = folder.path().join("link");
        symlink("./../".to_owned() + folder.path().file_name().unwrap().to_str().unwrap() + "/p", &link)
            .unwrap();
        assert_eq!(opened.trusted_path(&path, own()).unwrap(), path);
        assert_eq!(opened.trusted_path(&link, own()).unwrap(), path);
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (what, changed, normal) in
            [(path.as_path(), 0o775, 0o755), (&path, 0o757, 0o755), (folder.path(), 0o1777, 0o755)]
        {
            mode(what, changed);
            let error = opened.trusted_path(&path, own()).unwrap_err();
            assert!(matches!(&error, PathError::Writable { path, .. } if path == what), "{error}");
            mode(what, normal);
        }
        fs::rename(program(folder.path(), "q"), &path).unwrap();
        let error = opened.trusted_path(&path, own()).unwrap_err();
        assert!(matches!(&error, PathError::Replaced { .. }), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(opened.trusted_path(&path, own()), Err(PathError::Access { .. })));
    }

    #[test]
    fn another_owner_is_refused() {
        let Some(folder) = private().filter(|_| own() == 0) else { return };
        let path = program(folder.path(), "p");
        let opened = Executable::open(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(64_123), None).unwrap();
        let error = opened.trusted_path(&path, 0).unwrap_err();
        assert!(matches!(error, PathError::Owner { uid: 64_123, .. }), "{error}");
        assert_eq!(opened.trusted_path(&path, 64_123).unwrap(), path, "but for its own manager");
    }

    #[test]
    fn loops_and_relative_paths_lead_nowhere() {
        let Some(folder) = private() else { return };
        let opened = Executable::open(Path::new("/bin/sh")).unwrap();
        let path = folder.path().join("loop");
        symlink(&path, &path).unwrap();
        for path in [path.as_path(), Path::new("bin/sh")] {
            let error = opened.trusted_path(path, own()).unwrap_err();
            assert!(matches!(error, PathError::Unresolvable { .. }), "{error}");
        }
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = TempDir::new();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            let error = Executable::open(path).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{}", path.display());
        }
    }

    #[test]
    fn scripts_are_told_from_binaries() {
        let folder = TempDir::new();
        assert!(Executable::open(&program(folder.path(), "p")).unwrap().is_script().unwrap());
        assert!(!Executable::open(Path::new("/bin/sh")).unwrap().is_script().unwrap());
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        assert!(!Executable::open(&empty).unwrap().is_script().unwrap());
    }
}
