//! `PrivateTmp`: folders of one run that its processes see as `/tmp` and `/var/tmp`.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

use agentd_engine::{InvocationId, SpawnFailure};

use super::plan::step;

const EXIT_NAMESPACE: u8 = 226;

/// Makes them. The upper folder is for the manager alone, so that nobody else reaches into the lower one.
///
/// # Errors
/// They cannot be made, or are there already: whoever made them would have a hand in them.
pub fn make(run: InvocationId) -> Result<[PathBuf; 2], SpawnFailure> {
    let make = |base: &str| -> io::Result<PathBuf> {
        let upper = PathBuf::from(base).join(format!("agentd-private-{run}"));
        DirBuilder::new().mode(0o700).create(&upper)?;
        let lower = upper.join("tmp");
        fs::create_dir(&lower)?;
        // As every temporary folder: open to all, and nobody removes what is another's.
        fs::set_permissions(&lower, Permissions::from_mode(0o1777))?;
        Ok(lower)
    };
    let failed = |error: io::Error| step(EXIT_NAMESPACE, format!("PrivateTmp: cannot be made: {error}"));
    Ok([make("/tmp").map_err(failed)?, make("/var/tmp").map_err(failed)?])
}

/// Those of a run that another manager began, if they are there.
#[must_use]
pub fn find(run: InvocationId) -> Option<[PathBuf; 2]> {
    let lower = |base: &str| PathBuf::from(base).join(format!("agentd-private-{run}")).join("tmp");
    let folders = [lower("/tmp"), lower("/var/tmp")];
    folders.iter().all(|folder| folder.is_dir()).then_some(folders)
}

/// Removes them, on a thread of its own: what a run has left may be a lot.
pub fn remove(folders: [PathBuf; 2]) {
    let work = move || {
        for upper in folders.iter().filter_map(|lower| lower.parent()) {
            if let Err(error) = fs::remove_dir_all(upper) {
                tracing::warn!(%error, "{} cannot be removed", upper.display());
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("remove-tmp".into()).spawn(work) {
        tracing::warn!(%error, "the temporary files of a run cannot be removed");
    }
}
