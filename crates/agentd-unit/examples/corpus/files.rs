//! Which files there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agentd_unit::{UnitName, UnitType};

/// One unit file or drop-in.
pub(crate) struct File {
    /// The package it is from.
    pub(crate) package: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// The unit that it is for; a template's name stands for itself.
    pub(crate) name: UnitName,
    /// Whether it is a drop-in.
    pub(crate) drop_in: bool,
    /// What it says.
    pub(crate) bytes: Vec<u8>,
}

/// All unit files below a folder with one folder a package.
pub(crate) fn find(folder: &Path) -> Vec<File> {
    let mut found = Vec::new();
    for package in entries(folder) {
        let name = package.file_name().unwrap().to_string_lossy().into_owned();
        walk(&package, &name, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// How many packages have a unit file.
pub(crate) fn packages(files: &[File]) -> usize {
    files.iter().map(|file| file.package.as_str()).collect::<BTreeSet<_>>().len()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn walk(folder: &Path, package: &str, found: &mut Vec<File>) {
    for path in entries(folder) {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            walk(&path, package, found);
        } else if meta.is_file()
            && meta.len() > 0
            && in_units(&path)
            && let Some((name, drop_in)) = name(&path)
        {
            let bytes = std::fs::read(&path).unwrap();
            found.push(File { package: package.to_owned(), path, name, drop_in, bytes });
        }
    }
}

/// Below `systemd/system` or `systemd/user`.
fn in_units(path: &Path) -> bool {
    let path = path.to_string_lossy();
    path.contains("/systemd/system/") || path.contains("/systemd/user/")
}

/// The unit of a file, if it is of a type that agentd has.
fn name(path: &Path) -> Option<(UnitName, bool)> {
    let file = path.file_name()?.to_str()?;
    if !file.ends_with(".conf") {
        return Some((UnitName::parse(file).ok()?, false));
    }
    let owner = path.parent()?.file_name()?.to_str()?.strip_suffix(".d")?;
    let of_type = |unit_type: &UnitType| unit_type.as_str() == owner;
    if let Some(unit_type) = UnitType::ALL.iter().find(|t| of_type(t)) {
        return Some((UnitName::parse(&format!("any.{unit_type}")).ok()?, true));
    }
    Some((UnitName::parse(owner).ok()?, true))
}
