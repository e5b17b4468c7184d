//! Reading one tier's folder: what each name in it is.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::index::{DropIn, DropInState, Entry, Index, Pull, TierFolder};
use crate::name::{UnitName, UnitType};
use crate::schema::SYSTEMD_TYPES;
use crate::search_path::TierKind;

/// Takes in everything that one tier has. What a higher tier has stays.
pub(super) fn tier(index: &mut Index, folder: &TierFolder<'_>) {
    let mut units: BTreeMap<UnitName, Vec<(PathBuf, Entry)>> = BTreeMap::new();
    for path in sorted_entries(index, folder.path) {
        let Some(file) = path.file_name() else { continue };
        let Some(file) = file.to_str() else {
            index.problem(&path, "is not used: its name is no UTF-8");
            continue;
        };
        entry(index, folder, &path, file, &mut units);
    }
    for (name, mut found) in units {
        let entry = if found.len() > 1 {
            let files: Vec<String> = found.iter().map(|(path, _)| path.display().to_string()).collect();
            let why = format!(
                "there are several files of this name in one folder: {}; keep one",
                files.join(" and ")
            );
            Entry::Bad { path: found.remove(0).0, why }
        } else {
            found.remove(0).1
        };
        index.units.entry(name).or_insert(entry);
    }
}

/// The folder's entries by name. An entry that cannot be read is told and hides none of the others.
fn sorted_entries(index: &mut Index, folder: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            index.problem(folder, format!("cannot be read: {error}"));
            return Vec::new();
        }
    };
    let mut paths = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => index.problem(folder, format!("an entry cannot be read: {error}")),
        }
    }
    paths.sort();
    paths
}

fn entry(
    index: &mut Index,
    folder: &TierFolder<'_>,
    path: &Path,
    file: &str,
    units: &mut BTreeMap<UnitName, Vec<(PathBuf, Entry)>>,
) {
    if file.starts_with('.') {
        return;
    }
    if let Some((stem, kind)) = file.rsplit_once('.') {
        match kind {
            "d" => return drop_in_folder(index, folder, path, stem),
            "wants" => return pull_folder(index, folder, path, stem, Pull::Wants),
            "requires" => return pull_folder(index, folder, path, stem, Pull::Requires),
            "upholds" => return pull_folder(index, folder, path, stem, Pull::Upholds),
            "enabled" | "disabled" if folder.kind == TierKind::Control => {
                return marker(index, path, stem, kind == "enabled");
            }
            _ => {}
        }
    }
    let name = match unit_of_file(file) {
        Some(Ok(name)) => name,
        Some(Err(why)) => return index.problem(path, format!("is not used: {why}")),
        None => {
            let ending = file.rsplit('.').next().unwrap_or_default();
            if SYSTEMD_TYPES.contains(&ending) {
                index.problem(path, format!("is not used: agentd has no {ending} units"));
            }
            return;
        }
    };
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => return index.problem(path, format!("cannot be read: {error}")),
    };
    let entry = classify(index, folder, path, &name, &meta);
    units.entry(name).or_default().push((path.to_owned(), entry));
}

/// The unit that a file's name stands for, in TOML (`web.service.toml`) or in systemd's syntax (`web.service`);
/// `None`: no unit file, and none of our business.
fn unit_of_file(file: &str) -> Option<Result<UnitName, String>> {
    let in_systemds = UnitType::ALL.iter().any(|unit_type| file.ends_with(&format!(".{unit_type}")));
    let name = file.strip_suffix(".toml").or(in_systemds.then_some(file))?;
    Some(UnitName::parse(name).map_err(|error| error.to_string()))
}

fn classify(index: &Index, folder: &TierFolder<'_>, path: &Path, name: &UnitName, meta: &Metadata) -> Entry {
    let path = path.to_owned();
    if meta.is_symlink() {
        return match link(index, folder, &path, name) {
            Ok(entry) => entry,
            Err(why) => Entry::Bad { path, why },
        };
    }
    if meta.is_file() && meta.len() == 0 {
        return Entry::Mask(path);
    }
    if folder.kind == TierKind::Control {
        let why = "a control folder holds masks, markers and drop-ins, no units; move it to a units folder"
            .to_owned();
        return Entry::Bad { path, why };
    }
    // A FIFO or a folder of a unit's name is found out when it is opened.
    Entry::File(path)
}

/// What a link under a unit's name means. It is read, not followed.
fn link(index: &Index, folder: &TierFolder<'_>, path: &Path, name: &UnitName) -> Result<Entry, String> {
    let target = std::fs::read_link(path).map_err(|error| format!("its link cannot be read: {error}"))?;
    if target == Path::new("/dev/null") {
        return Ok(Entry::Mask(path.to_owned()));
    }
    if folder.kind == TierKind::Control {
        return Err("a control folder holds no links but those to /dev/null".to_owned());
    }
    let shown = target.display().to_string();
    let target = folder.path.join(target);
    let target_folder = target.parent().unwrap_or(folder.path);
    let real = target_folder.canonicalize().map_err(|error| format!("links to {shown}: {error}"))?;
    if !index.folders.contains(&real) {
        return Err(format!("links to {shown}, outside of the search path; copy the file instead"));
    }
    let file = target.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let target_name = match unit_of_file(file) {
        Some(Ok(target_name)) => target_name,
        _ => return Err(format!("links to {shown}, which is no unit file")),
    };
    if target_name == *name {
        if real.join(file) == *path {
            return Err("links to itself".to_owned());
        }
        return Ok(Entry::File(real.join(file)));
    }
    alias(path, name, target_name)
}

/// Which names may be links to which.
fn alias(path: &Path, name: &UnitName, target: UnitName) -> Result<Entry, String> {
    if target.unit_type() != name.unit_type() {
        return Err(format!("links to {target}, a unit of another type"));
    }
    if name.template().as_ref() == Some(&target) {
        return Ok(Entry::Instance);
    }
    let target = match (name.instance(), target.instance()) {
        (None | Some(""), None) | (Some(""), Some("")) => target,
        (None, Some(instance)) if !instance.is_empty() => target,
        (Some(instance), Some("")) => {
            UnitName::parse(&format!("{}@{instance}.{}", target.prefix(), target.unit_type()))
                .map_err(|error| error.to_string())?
        }
        (Some(instance), Some(other)) if instance == other => target,
        (None, Some(_)) => {
            return Err(format!("links to {target}, a template; link an instance, as in name@1.service"));
        }
        (Some(_), _) => return Err(format!("links to {target}, which is not its instance")),
    };
    Ok(Entry::Alias { path: path.to_owned(), target })
}

fn marker(index: &mut Index, path: &Path, stem: &str, enabled: bool) {
    match UnitName::parse(stem) {
        Ok(name) => {
            if !index.markers.contains_key(&name) && index.is_runtime(path) {
                index.runtime_markers.insert(name.clone());
            }
            index.markers.entry(name).or_insert(enabled);
        }
        Err(error) => index.problem(path, format!("is not used: {error}")),
    }
}

/// Whether a folder inside a tier may be used; if not, that is told.
fn usable(index: &mut Index, folder: &TierFolder<'_>, path: &Path) -> Option<()> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            index.problem(path, format!("cannot be read: {error}"));
            return None;
        }
    };
    if !meta.is_dir() {
        let what =
            if meta.is_symlink() { "is a link; make it a folder" } else { "has a folder's name but is none" };
        index.problem(path, format!("is not used: it {what}"));
        return None;
    }
    // The folders above are the tier's, which were checked.
    if let Err(error) = folder.trusted.check(path, &meta) {
        index.problem(path, format!("is not used: {}", error.one_line()));
        return None;
    }
    Some(())
}

fn drop_in_folder(index: &mut Index, folder: &TierFolder<'_>, path: &Path, stem: &str) {
    let of_type = UnitType::ALL.iter().any(|unit_type| unit_type.as_str() == stem);
    // NAME.TYPE.toml.d is what somebody writes who extends the file's name and not the unit's.
    let Some(stem) = (of_type || UnitName::parse(stem).is_ok()).then_some(stem) else {
        if UnitName::parse(stem.trim_end_matches(".toml")).is_ok() {
            let meant = stem.trim_end_matches(".toml");
            index.problem(path, format!("is not used: drop-ins of {meant} lie in {meant}.d"));
        }
        return;
    };
    if let Some(()) = usable(index, folder, path) {
        for path in sorted_entries(index, path) {
            drop_in(index, folder, &path, stem);
        }
    } else {
        // What cannot be read may be what bounds the unit: the unit must not start without it.
        let why = format!("the drop-ins in {} cannot be used, see the problems of loading", path.display());
        let bad = DropIn { path: path.to_owned(), kind: folder.kind, state: DropInState::Bad(why) };
        index.add_drop_in(stem, &format!("\u{0}{}", path.display()), bad);
    }
}

fn drop_in(index: &mut Index, folder: &TierFolder<'_>, path: &Path, stem: &str) {
    let Some(file) = path.file_name().and_then(|file| file.to_str()) else {
        return index.problem(path, "is not used: its name is no UTF-8");
    };
    if file.starts_with('.') {
        return;
    }
    if !file.ends_with(".toml") && !file.ends_with(".conf") {
        return;
    }
    let state = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => match std::fs::read_link(path) {
            Ok(target) if target == Path::new("/dev/null") => DropInState::Mask,
            _ => {
                DropInState::Bad("is a link; copy the file, or link to /dev/null to take it away".to_owned())
            }
        },
        Ok(meta) if meta.is_file() && meta.len() == 0 => DropInState::Mask,
        Ok(_) => DropInState::File,
        Err(error) => DropInState::Bad(format!("cannot be read: {error}")),
    };
    let drop_in = DropIn { path: path.to_owned(), kind: folder.kind, state };
    index.add_drop_in(stem, file, drop_in);
}

/// A folder of links. Only their names count: what they lead to is found by name.
fn pull_folder(index: &mut Index, folder: &TierFolder<'_>, path: &Path, stem: &str, pull: Pull) {
    let owner = match UnitName::parse(stem) {
        Ok(owner) => owner,
        Err(error) => return index.problem(path, format!("is not used: {error}")),
    };
    if folder.kind == TierKind::Control {
        return index.problem(path, "is not used: a control folder holds masks, markers and drop-ins");
    }
    if usable(index, folder, path).is_none() {
        return;
    }
    for path in sorted_entries(index, path) {
        let file = path.file_name().and_then(|file| file.to_str());
        match file.map(|file| (file, UnitName::parse(file.strip_suffix(".toml").unwrap_or(file)))) {
            Some((file, _)) if file.starts_with('.') => {}
            Some((_, Ok(name))) if !name.is_template() => {
                let counts =
                    std::fs::read_link(&path).map_or(true, |target| target != Path::new("/dev/null"));
                index.pulls.entry((owner.clone(), pull, name)).or_insert(counts);
            }
            Some((_, Ok(name))) => index.problem(&path, format!("is not used: {name} is a template")),
            Some((_, Err(error))) => index.problem(&path, format!("is not used: {error}")),
            None => index.problem(&path, "is not used: its name is no UTF-8"),
        }
    }
}
