//! A unit file with the drop-ins beside it: read once, hashed and parsed from the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_trust::{Sha256Digest, name};
use agentd_unit::UnitName;

use super::{ClosureError, read};

/// The ending of unit files in TOML; what stands before it is the unit's name.
const ENDING: &str = ".toml";

/// The files that define a unit.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    /// The unit's name, which is the file's.
    pub(crate) unit: UnitName,
    /// The unit file first, then the drop-ins in the order of their names.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
}

impl Definition {
    /// Reads the unit file at `path` and `NAME.TYPE.d/*.toml` beside it.
    pub(crate) fn read(path: &Path) -> Result<Self, ClosureError> {
        let wrong = || ClosureError::NotAUnitFile(path.to_owned());
        let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(ENDING));
        let unit = stem.and_then(|stem| UnitName::parse(stem).ok()).ok_or_else(wrong)?;
        let mut files = vec![(path.to_owned(), read(path)?)];
        for drop_in in drop_ins(&path.with_file_name(format!("{unit}.d")))? {
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

/// The drop-ins of a folder, sorted by their names; a folder that is not there has none.
fn drop_ins(folder: &Path) -> Result<Vec<PathBuf>, ClosureError> {
    let failed = |error| ClosureError::Read { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
