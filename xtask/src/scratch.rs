//! A folder for one use, gone with its owner.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{During, Result};

/// A new, empty folder below the system's folder for temporary files.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one; `name` is for people who look at it.
    ///
    /// # Errors
    /// It could not be made.
    pub fn new(name: &str) -> Result<Self> {
        Self::within(&std::env::temp_dir(), name)
    }

    /// Makes one in a folder of the caller's choice.
    ///
    /// # Errors
    /// It could not be made.
    pub fn within(folder: &Path, name: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("xtask-{name}-{}-{number}", std::process::id()));
        let cannot = || format!("cannot make the folder {}", path.display());
        fs::create_dir(&path).during(cannot)?;
        // What is built here may become a guest's root folder, so the caller's umask must not show.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).during(cannot)?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: cannot remove {}: {error}", self.path.display());
        }
    }
}
