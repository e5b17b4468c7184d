//! Where programs are on the machine that a unit with `RootDirectory` sees below its own `/`.
//!
//! # Invariants
//!
//! - What is looked up here is what the mounts of the unit will show: it is asked of the same entries.
//! - What a mount hides, or shows in part, is not looked for behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_trust::within::follow;

/// What is seen in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// What the root has there.
    Own,
    /// What is somewhere else, whole.
    Elsewhere(PathBuf),
    /// Something that no program is taken from.
    Hidden,
}

/// A root, and what is mounted below it.
#[derive(Debug)]
pub struct Rooted {
    root: PathBuf,
    /// Without links in them; an upper one before those in it.
    shown: Vec<(PathBuf, Shown)>,
}

impl Rooted {
    /// A root with what is shown in it.
    #[must_use]
    pub fn new(root: &Path, shown: Vec<(PathBuf, Shown)>) -> Self {
        let root = if shown.is_empty() { Ok(root.to_owned()) } else { fs::canonicalize(root) };
        Self { root: root.unwrap_or_default(), shown }
    }

    /// Where a path without links in it is on the machine.
    ///
    /// # Errors
    /// A mount hides it.
    pub fn outside(&self, inside: &Path) -> io::Result<PathBuf> {
        let place = self.root.join(inside.strip_prefix("/").unwrap_or(inside));
        let above = self.shown.iter().rev().find(|(target, _)| place.starts_with(target));
        match above {
            None | Some((_, Shown::Own)) => Ok(place),
            Some((_, Shown::Hidden)) => Err(io::ErrorKind::NotFound.into()),
            Some((target, Shown::Elsewhere(source))) => match place.strip_prefix(target) {
                Ok(below) if !below.as_os_str().is_empty() => Ok(source.join(below)),
                _ => Ok(source.clone()),
            },
        }
    }

    /// Where a path leads within the root, from there and on the machine.
    ///
    /// # Errors
    /// Something on the way is not there or cannot be looked at, or links lead in a circle.
    pub fn find(&self, path: &Path) -> io::Result<[PathBuf; 2]> {
        let inside = follow(path, |here| self.link(here))?;
        let outside = self.outside(&inside)?;
        Ok([Path::new("/").join(inside), outside])
    }

    fn link(&self, here: &Path) -> io::Result<Option<PathBuf>> {
        let place = self.root.join(here);
        let outside = self.outside(here)?;
        match fs::symlink_metadata(&outside) {
            Ok(meta) if meta.is_symlink() => fs::read_link(outside).map(Some),
            Ok(_) => Ok(None),
            // It is made for what is mounted in it.
            Err(_) if self.shown.iter().any(|(target, _)| target.starts_with(&place)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
