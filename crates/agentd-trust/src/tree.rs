//! The files of a Python package: one walk for the signer and for the manager, so that both see the same tree.
//!
//! # Invariants
//!
//! - Only regular files are in a tree. A link or a device in it is an error: what it leads to could change unseen.
//! - A tree that is read here is never larger than the bounds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::name::is_tree_member;

/// The most files of a package: what an agent's own code stays below by far.
pub const MAX_TREE_FILES: usize = 4096;

/// The most bytes of a package in all: 64 MiB.
pub const MAX_TREE_BYTES: u64 = 64 << 20;

/// The deepest nesting of folders below the package.
pub const MAX_TREE_DEPTH: usize = 32;

/// Reads every file below a folder, by its path; Python's caches are left out.
///
/// # Errors
/// What keeps a file from being read; a link, a device, or a tree beyond the bounds. Each names its path.
pub fn read(folder: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut tree = BTreeMap::new();
    let mut room = MAX_TREE_BYTES;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((current, depth)) = folders.pop() {
        for entry in fs::read_dir(&current).map_err(at(&current))? {
            let path = entry.map_err(at(&current))?.path();
            if !is_tree_member(path.strip_prefix(folder).unwrap_or(&path)) {
                continue;
            }
            let kind = fs::symlink_metadata(&path).map_err(at(&path))?.file_type();
            if kind.is_dir() && depth < MAX_TREE_DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                let content = read_file(&path, room).map_err(at(&path))?;
                room -= content.len() as u64;
                tree.insert(path, content);
            } else {
                return Err(refused(&path, "is a link, a device or nested too deeply, and cannot be signed"));
            }
            if tree.len() > MAX_TREE_FILES {
                return Err(refused(folder, "has more than 4096 files"));
            }
        }
    }
    Ok(tree)
}

/// One byte more than there is room for shows that a file is too large without reading all of it.
fn read_file(path: &Path, room: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(room + 1).read_to_end(&mut content)?;
    if content.len() as u64 > room {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "its package is larger than 64 MiB"));
    }
    Ok(content)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.to_owned();
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn package() -> PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("agentd-tree-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("sub/__pycache__")).unwrap();
        fs::write(folder.join("__init__.py"), "a").unwrap();
        fs::write(folder.join("sub/b.py"), "bb").unwrap();
        fs::write(folder.join("sub/__pycache__/b.pyc"), "cache").unwrap();
        folder
    }

    #[test]
    fn every_file_is_read_but_the_caches_of_python() {
        let folder = package();
        let tree = read(&folder).unwrap();
        let expected =
            [(folder.join("__init__.py"), b"a".to_vec()), (folder.join("sub/b.py"), b"bb".to_vec())];
        assert_eq!(tree.into_iter().collect::<Vec<_>>(), expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_is_refused_by_its_name() {
        let folder = package();
        symlink("/etc/hostname", folder.join("sub/link.py")).unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(error.contains("sub/link.py: is a link"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = read(Path::new("/nonexistent/package")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("/nonexistent/package: "), "{error}");
    }

    #[test]
    fn more_bytes_than_there_is_room_for_are_not_read() {
        let folder = package();
        let file = folder.join("sub/b.py");
        assert_eq!(read_file(&file, 2).unwrap(), b"bb");
        assert_eq!(read_file(&file, 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::remove_dir_all(folder).unwrap();
    }
}
