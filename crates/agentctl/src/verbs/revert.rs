//! `revert`: a unit becomes again what its package made of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentd_unit::UnitName;
use agentd_unit::search_path::{Tier, TierKind};

use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::place::{self, Place};
use crate::print::{json, one_line};

/// `agentctl revert UNIT…`: takes away drop-ins and masks of the administrator's folders, and unit files there that stand
/// in the place of a package's.
pub(crate) fn revert(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let mut place = Place::find(context)?;
    let mut removed: Vec<String> = Vec::new();
    for unit in units {
        let mut files = drop_ins(&place, unit)?;
        files.extend(masks(&place, unit));
        files.extend(copies(&place, unit));
        for file in files {
            remove(&file)?;
            removed.push(file.display().to_string());
        }
    }
    place.reload()?;
    if context.is_json() {
        json(&removed, out)?;
    } else if !context.quiet {
        removed.iter().try_for_each(|path| writeln!(out, "Removed {}.", one_line(path)))?;
        if removed.is_empty() {
            writeln!(out, "There was nothing to take back.")?;
            // Beside the unit's own file they are its author's, not an administrator's.
            for file in units.iter().flat_map(|unit| beside(&place, unit)) {
                let shown = file.display().to_string();
                let shown = one_line(&shown);
                writeln!(
                    out,
                    "{shown} lies in a folder of its author: remove it yourself, then 'agentctl apply'."
                )?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The drop-ins of a unit in folders that are no administrator's, though people write there.
fn beside(place: &Place, unit: &UnitName) -> Vec<PathBuf> {
    let Ok(folder) = place.units(false) else { return Vec::new() };
    let entries = std::fs::read_dir(folder.join(format!("{unit}.d"))).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_drop_in(path)).collect()
}

fn is_drop_in(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml" || ending == "conf")
}

/// Removes a file; a folder of drop-ins goes with its last one.
fn remove(file: &Path) -> Result<(), Failure> {
    fs::remove_file(file).map_err(|error| place::failed(file, "cannot be removed", &error))?;
    if let Some(folder) = file.parent().filter(|folder| folder.extension().is_some_and(|end| end == "d")) {
        // It stays where something else is in it.
        let _left = fs::remove_dir(folder);
    }
    Ok(())
}

fn tiers(place: &Place) -> impl Iterator<Item = &Tier> {
    place.search.tiers.iter().filter(|tier| place.is_administrators(&tier.path))
}

fn drop_ins(place: &Place, unit: &UnitName) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for folder in tiers(place).map(|tier| tier.path.join(format!("{unit}.d"))) {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|error| place::failed(&folder, "cannot be read", &error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| place::failed(&folder, "cannot be read", &error))?.path();
            if is_drop_in(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn names(unit: &UnitName) -> [String; 2] {
    [format!("{unit}.toml"), unit.to_string()]
}

fn masks(place: &Place, unit: &UnitName) -> Vec<PathBuf> {
    let is_mask = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null"));
    let paths = |tier: &Tier| names(unit).map(|name| tier.path.join(name));
    tiers(place).flat_map(paths).filter(is_mask).collect()
}

/// Unit files above one of the same unit that is no administrator's, with their signatures.
fn copies(place: &Place, unit: &UnitName) -> Vec<PathBuf> {
    let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let in_folder = |folder: &Path| names(unit).map(|name| folder.join(name)).into_iter().find(is_file);
    let others = place.search.tiers.iter().filter(|tier| !place.is_administrators(&tier.path));
    if !others.filter(|tier| tier.kind == TierKind::Units).any(|tier| in_folder(&tier.path).is_some()) {
        return Vec::new();
    }
    let with_signature = |path: PathBuf| {
        let mut signature = path.as_os_str().to_owned();
        signature.push(".sig");
        [path, PathBuf::from(signature)]
    };
    let own = tiers(place).filter(|tier| tier.kind == TierKind::Units);
    own.filter_map(|tier| in_folder(&tier.path)).flat_map(with_signature).filter(is_file).collect()
}
