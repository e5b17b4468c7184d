//! `PrivateTmp`: folders of one run that its processes see as `/tmp` and `/var/tmp`, or of several runs with
//! `JoinsNamespaceOf`.
//!
//! Each run has a folder of its name in both, for the manager alone. In it is the folder that its processes see, or a link to
//! that of the run that it has joined: so a later manager finds both.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use agentd_engine::{InvocationId, SpawnFailure};

use super::plan::step;

const EXIT_NAMESPACE: u8 = 226;

/// Where temporary files are.
const BASES: [&str; 2] = ["/tmp", "/var/tmp"];

fn upper(base: &str, run: InvocationId) -> PathBuf {
    Path::new(base).join(format!("agentd-private-{run}"))
}

/// Makes the upper folder. It is for the manager alone, so that nobody else reaches into the lower one.
fn make_upper(base: &str, run: InvocationId) -> io::Result<PathBuf> {
    let upper = upper(base, run);
    DirBuilder::new().mode(0o700).create(&upper)?;
    Ok(upper)
}

fn failed(error: io::Error) -> SpawnFailure {
    step(EXIT_NAMESPACE, format!("PrivateTmp: cannot be made: {error}"))
}

/// Makes them.
///
/// # Errors
/// They cannot be made, or are there already: whoever made them would have a hand in them.
pub fn make(run: InvocationId) -> Result<[PathBuf; 2], SpawnFailure> {
    let make = |base: &str| -> io::Result<PathBuf> {
        let lower = make_upper(base, run)?.join("tmp");
        fs::create_dir(&lower)?;
        // As every temporary folder: open to all, and nobody removes what is another's.
        fs::set_permissions(&lower, Permissions::from_mode(0o1777))?;
        Ok(lower)
    };
    let [tmp, var_tmp] = BASES;
    Ok([make(tmp).map_err(failed)?, make(var_tmp).map_err(failed)?])
}

/// Notes that a run has those of another one, and gives them.
///
/// # Errors
/// As [`make`].
pub fn join(run: InvocationId, theirs: &[PathBuf; 2]) -> Result<[PathBuf; 2], SpawnFailure> {
    for (base, lower) in BASES.into_iter().zip(theirs) {
        make_upper(base, run).and_then(|upper| symlink(lower, upper.join("tmp"))).map_err(failed)?;
    }
    Ok(theirs.clone())
}

/// Those of a run that another manager began, if they are there.
#[must_use]
pub fn find(run: InvocationId) -> Option<[PathBuf; 2]> {
    let [tmp, var_tmp] = BASES.map(|base| fs::canonicalize(upper(base, run).join("tmp")).ok());
    Some([tmp?, var_tmp?])
}

/// What is to be removed when a run ends: what is its own, and the folders themselves once no other run has them.
#[must_use]
pub fn leftovers(run: InvocationId, folders: &[PathBuf; 2], is_last: bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for (base, lower) in BASES.into_iter().zip(folders) {
        let own = upper(base, run);
        // What others have joined stays, by the name of the first.
        if own.join("tmp") != *lower {
            all.push(own);
        }
        if is_last {
            all.extend(lower.parent().map(Path::to_owned));
        }
    }
    all
}

/// Removes them, on a thread of its own: what a run has left may be a lot.
pub fn remove(folders: Vec<PathBuf>) {
    if folders.is_empty() {
        return;
    }
    let work = move || {
        for folder in &folders {
            if let Err(error) = fs::remove_dir_all(folder) {
                tracing::warn!(%error, "{} cannot be removed", folder.display());
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("remove-tmp".into()).spawn(work) {
        tracing::warn!(%error, "the temporary files of a run cannot be removed");
    }
}
