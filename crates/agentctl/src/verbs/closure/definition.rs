//! A unit file with its drop-ins: read once, hashed and parsed from the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_trust::{Sha256Digest, name};
use agentd_unit::loader::drop_in_stems;
use agentd_unit::search_path::TierKind;
use agentd_unit::{Scope, SearchPath, UnitName};

use super::{ClosureError, read};

/// The files that define a unit.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    /// The unit's name, which is the file's.
    pub(crate) unit: UnitName,
    /// The unit file first, then the drop-ins in the order of their names.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
}

impl Definition {
    /// Reads the unit file at `path` and its drop-ins: those of all folders that a manager of the machine whose `/` is
    /// `root` searches, if the file lies in one of them, else those beside it.
    pub(crate) fn read(path: &Path, root: &Path) -> Result<Self, ClosureError> {
        let wrong = || ClosureError::NotAUnitFile(path.to_owned());
        let unit = UnitName::of_file(path).map_err(|_| wrong())?;
        let mut files = vec![(path.to_owned(), read(path)?)];
        for drop_in in drop_ins(&folders(path, root), &unit)? {
            let bytes = read(&drop_in)?;
            files.push((drop_in, bytes));
        }
        Ok(Self { unit, files })
    }

    /// Each file by the name that a manifest gives it.
    pub(crate) fn digests(&self) -> Result<BTreeMap<String, Sha256Digest>, ClosureError> {
        let digest =
            |(path, bytes): &(PathBuf, Vec<u8>)| Ok((name::unit_file_name(path)?, Sha256Digest::of(bytes)));
        self.files.iter().map(digest).collect()
    }
}

/// The folders whose drop-ins apply to a unit file, highest first.
fn folders(path: &Path, root: &Path) -> Vec<PathBuf> {
    let beside = path.parent().map(Path::to_owned).unwrap_or_default();
    let system = SearchPath::new(Scope::System, &[], &BTreeMap::new(), false).unwrap_or_default();
    let units = system.tiers.into_iter().filter(|tier| tier.kind == TierKind::Units);
    let searched: Vec<PathBuf> =
        units.filter_map(|tier| Some(root.join(tier.path.strip_prefix("/").ok()?))).collect();
    let is_here = |folder: &PathBuf| match (folder.canonicalize(), beside.canonicalize()) {
        (Ok(folder), Ok(beside)) => folder == beside,
        _ => false,
    };
    if searched.iter().any(is_here) { searched } else { vec![beside] }
}

/// The drop-ins that apply, in the order of their names: of one name that of the most special folder, there of the
/// highest tier, and none where that is a mask (a link to /dev/null, or empty).
fn drop_ins(folders: &[PathBuf], unit: &UnitName) -> Result<Vec<PathBuf>, ClosureError> {
    let mut chosen = BTreeMap::new();
    for stem in drop_in_stems(unit) {
        for folder in folders {
            for drop_in in entries(&folder.join(format!("{stem}.d")))? {
                if let Some(name) = drop_in.file_name() {
                    chosen.entry(name.to_owned()).or_insert(drop_in);
                }
            }
        }
    }
    let mut used = Vec::new();
    for drop_in in chosen.into_values() {
        if !is_mask(&drop_in)? {
            used.push(drop_in);
        }
    }
    Ok(used)
}

fn is_mask(path: &Path) -> Result<bool, ClosureError> {
    let failed = |error| ClosureError::Read { path: path.to_owned(), error };
    let meta = fs::symlink_metadata(path).map_err(failed)?;
    if meta.is_symlink() {
        return Ok(fs::read_link(path).map_err(failed)? == Path::new("/dev/null"));
    }
    Ok(meta.is_file() && meta.len() == 0)
}

/// The `*.toml` and `*.conf` of a folder; a folder that is not there has none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ClosureError> {
    let failed = |error| ClosureError::Read { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "toml" || ending == "conf") {
            paths.push(path);
        }
    }
    Ok(paths)
}
