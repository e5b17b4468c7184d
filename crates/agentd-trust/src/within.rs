//! Paths in a tree that is `/` for somebody else.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most links on the way to one file, as in Linux (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// Where `path` is if `root` were `/`: links lead to what they lead to there, and `..` never leads out.
///
/// # Errors
/// Something on the way is not there or cannot be looked at, or links lead in a circle.
pub fn within(root: &Path, path: &Path) -> io::Result<PathBuf> {
    follow(path, |here| link(&root.join(here))).map(|inside| root.join(inside))
}

/// Where `path` leads below a `/` of which `link` tells what links there are, as a path from there without links in it.
///
/// # Errors
/// As [`within()`].
pub fn follow(path: &Path, link: impl Fn(&Path) -> io::Result<Option<PathBuf>>) -> io::Result<PathBuf> {
    let mut rest: Vec<PathBuf> = parts(path);
    let mut inside = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part.as_os_str() == ".." {
            inside.pop();
            continue;
        }
        let here = inside.join(&part);
        let Some(target) = link(&here)? else {
            inside = here;
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many levels of symbolic links"));
        }
        if target.is_absolute() {
            inside = PathBuf::new();
        }
        rest.extend(parts(&target));
    }
    Ok(inside)
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(part).collect()
}

fn link(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::symlink_metadata(path)?.is_symlink() { fs::read_link(path).map(Some) } else { Ok(None) }
}
