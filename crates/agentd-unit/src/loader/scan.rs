//! Reading one tier's folder: what each name in it is.

use std::ffi::OsStr;
use std::fs::FileType;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use super::index::{DropIn, DropInState, Entry, Index, Pull, TierFolder};
use super::open::kind_of;
use super::{Problem, both};
use crate::name::{UnitName, UnitType};
use crate::schema::SYSTEMD_TYPES;
use crate::search_path::TierKind;

/// Takes in everything that one tier has. What a higher tier has stays.
pub(super) fn tier(index: &mut Index, folder: &TierFolder<'_>) {
    let mut units = Vec::new();
    let mut drop_ins = Vec::new();
    let mut below = Below::new(folder.path);
    for Found { mut file, kind } in sorted_entries(&mut index.problems, folder.path) {
        let path = below.path(&file);
        if let Some(stem) = file.strip_suffix(".d") {
            let length = stem.len();
            file.truncate(length);
            drop_ins.push((path.to_owned(), file));
        } else {
            units.extend(entry(index, folder, path, &file, kind));
        }
    }
    let units = each_once(units);
    if index.units.is_empty() {
        // In order already, so that nothing is looked for.
        index.units = units.collect();
    } else {
        for (name, found) in units {
            index.units.entry(name).or_insert(found);
        }
    }
    // A folder for each unit: half of what looking at a tier takes.
    let all = both::map(&drop_ins, |(), (path, stem)| listed(folder, path, stem));
    index.drop_ins.reserve(drop_ins.len());
    for ((_, stem), listed) in drop_ins.into_iter().zip(all) {
        index.problems.extend(listed.problems);
        index.add_drop_ins(stem, listed.files);
    }
}

/// A unit's name, the file or link that has it, and what that is.
type Named = (UnitName, Arc<Path>, Entry);

/// The units of one folder in the order of their names; of several files with one name none can be used.
fn each_once(mut units: Vec<Named>) -> impl Iterator<Item = (UnitName, Entry)> {
    units.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut units = units.into_iter().peekable();
    std::iter::from_fn(move || {
        let (name, path, found) = units.next()?;
        let mut files = Vec::new();
        while let Some((_, other, _)) = units.next_if(|(other, ..)| *other == name) {
            files.push(other.display().to_string());
        }
        if files.is_empty() {
            return Some((name, found));
        }
        files.insert(0, path.display().to_string());
        let files = files.join(" and ");
        let why = format!("there are several files of this name in one folder: {files}; keep one");
        Some((name, Entry::Bad { path, why }))
    })
}

/// The paths of what lies in one folder, one after the other, in one piece of memory.
struct Below {
    bytes: Vec<u8>,
    /// So many of them are the folder and its slash.
    folder: usize,
}

impl Below {
    fn new(folder: &Path) -> Self {
        let mut bytes = folder.as_os_str().as_bytes().to_vec();
        if !bytes.ends_with(b"/") {
            bytes.push(b'/');
        }
        Self { folder: bytes.len(), bytes }
    }

    fn path(&mut self, file: &str) -> &Path {
        self.bytes.truncate(self.folder);
        self.bytes.extend_from_slice(file.as_bytes());
        Path::new(OsStr::from_bytes(&self.bytes))
    }
}

/// One name in a folder and what it is the name of, as the folder itself tells: no file is looked at for it.
struct Found {
    file: String,
    kind: FileType,
}

/// The folder's entries by name; hidden ones are nobody's business. One that cannot be read is told and hides none of
/// the others.
fn sorted_entries(problems: &mut Vec<Problem>, folder: &Path) -> Vec<Found> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(Problem::of(folder, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(Problem::of(folder, format!("an entry cannot be read: {error}")));
                continue;
            }
        };
        match (entry.file_name().into_string(), entry.file_type()) {
            (Ok(file), _) if file.starts_with('.') => {}
            (Ok(file), Ok(kind)) => all.push(Found { file, kind }),
            (Ok(_), Err(error)) => {
                problems.push(Problem::of(&entry.path(), format!("cannot be read: {error}")));
            }
            (Err(_), _) => problems.push(Problem::of(&entry.path(), "is not used: its name is no UTF-8")),
        }
    }
    all.sort_unstable_by(|one, other| one.file.cmp(&other.file));
    all
}

/// What a name in a tier stands for, if that is a unit; all else is taken in at once.
fn entry(
    index: &mut Index,
    folder: &TierFolder<'_>,
    path: &Path,
    file: &str,
    kind: FileType,
) -> Option<Named> {
    let (stem, ending) = file.rsplit_once('.')?;
    match ending {
        "wants" => pull_folder(index, folder, path, stem, Pull::Wants),
        "requires" => pull_folder(index, folder, path, stem, Pull::Requires),
        "upholds" => pull_folder(index, folder, path, stem, Pull::Upholds),
        "enabled" | "disabled" if folder.kind == TierKind::Control => {
            marker(index, path, stem, ending == "enabled");
        }
        "sig" => {
            index.signatures.insert(path.to_owned());
        }
        _ => match unit_of_file(file) {
            Some(Ok(name)) => {
                let path: Arc<Path> = path.into();
                let found = classify(index, folder, &path, &name, kind);
                return Some((name, path, found));
            }
            Some(Err(why)) => index.problem(path, format!("is not used: {why}")),
            None if SYSTEMD_TYPES.contains(&ending) => {
                index.problem(path, format!("is not used: agentd has no {ending} units"));
            }
            None => {}
        },
    }
    None
}

/// The unit that a file's name stands for, in TOML (`web.service.toml`) or in systemd's syntax (`web.service`);
/// `None`: no unit file, and none of our business.
fn unit_of_file(file: &str) -> Option<Result<UnitName, String>> {
    let name = match file.strip_suffix(".toml") {
        Some(name) => name,
        None => UnitType::of_name(file).map(|_| file)?,
    };
    Some(UnitName::parse(name).map_err(|error| error.to_string()))
}

fn classify(
    index: &Index,
    folder: &TierFolder<'_>,
    path: &Arc<Path>,
    name: &UnitName,
    kind: FileType,
) -> Entry {
    let path = Arc::clone(path);
    if kind.is_symlink() {
        return match link(index, folder, &path, name) {
            Ok(entry) => entry,
            Err(why) => Entry::Bad { path, why },
        };
    }
    if !kind.is_file() {
        return Entry::Bad { path, why: format!("is {}, not a file", kind_of(kind)) };
    }
    if folder.kind == TierKind::Control {
        if is_empty(&path) {
            return Entry::Mask(path);
        }
        let why = "a control folder holds masks, markers and drop-ins, no units; move it to a units folder"
            .to_owned();
        return Entry::Bad { path, why };
    }
    // Whether it is empty, and so a mask, shows when it is read.
    Entry::File(path)
}

/// Whether a file has nothing in it.
pub(super) fn is_empty(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0)
}

/// What a link under a unit's name means. It is read, not followed.
fn link(index: &Index, folder: &TierFolder<'_>, path: &Arc<Path>, name: &UnitName) -> Result<Entry, String> {
    let target = std::fs::read_link(path).map_err(|error| format!("its link cannot be read: {error}"))?;
    if target == Path::new("/dev/null") {
        return Ok(Entry::Mask(Arc::clone(path)));
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
        let file = real.join(file);
        if file == **path {
            return Err("links to itself".to_owned());
        }
        let meta = std::fs::symlink_metadata(&file).map_err(|error| format!("links to {shown}: {error}"))?;
        if !meta.is_file() {
            return Err(format!("links to {shown}, which is {}, not a file", kind_of(meta.file_type())));
        }
        return Ok(Entry::File(file.into()));
    }
    alias(path, name, target_name)
}

/// Which names may be links to which.
fn alias(path: &Arc<Path>, name: &UnitName, target: UnitName) -> Result<Entry, String> {
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
    Ok(Entry::Alias { path: Arc::clone(path), target })
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
fn usable(problems: &mut Vec<Problem>, folder: &TierFolder<'_>, path: &Path) -> Option<()> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            problems.push(Problem::of(path, format!("cannot be read: {error}")));
            return None;
        }
    };
    if !meta.is_dir() {
        let what =
            if meta.is_symlink() { "is a link; make it a folder" } else { "has a folder's name but is none" };
        problems.push(Problem::of(path, format!("is not used: it {what}")));
        return None;
    }
    // The folders above are the tier's, which were checked.
    if let Err(error) = folder.trusted.check(path, &meta) {
        problems.push(Problem::of(path, format!("is not used: {}", error.one_line())));
        return None;
    }
    Some(())
}

/// What one folder of drop-ins has.
#[derive(Default)]
struct Listed {
    /// By the file's name.
    files: Vec<(String, DropIn)>,
    problems: Vec<Problem>,
}

fn listed(folder: &TierFolder<'_>, path: &Path, stem: &str) -> Listed {
    let mut listed = Listed::default();
    let of_type = UnitType::ALL.iter().any(|unit_type| unit_type.as_str() == stem);
    // NAME.TYPE.toml.d is what somebody writes who extends the file's name and not the unit's.
    if !of_type && UnitName::check(stem).is_err() {
        if UnitName::check(stem.trim_end_matches(".toml")).is_ok() {
            let meant = stem.trim_end_matches(".toml");
            let message = format!("is not used: drop-ins of {meant} lie in {meant}.d");
            listed.problems.push(Problem::of(path, message));
        }
    } else if usable(&mut listed.problems, folder, path).is_some() {
        let found = sorted_entries(&mut listed.problems, path);
        let mut below = Below::new(path);
        listed.files.extend(found.into_iter().filter_map(|found| drop_in(folder, &mut below, found)));
    } else {
        // What cannot be read may be what bounds the unit: the unit must not start without it.
        let why = format!("the drop-ins in {} cannot be used, see the problems of loading", path.display());
        let bad = DropIn { path: path.into(), kind: folder.kind, state: DropInState::Bad(why) };
        listed.files.push((format!("\u{0}{}", path.display()), bad));
    }
    listed
}

fn drop_in(folder: &TierFolder<'_>, parent: &mut Below, found: Found) -> Option<(String, DropIn)> {
    let Found { file, kind } = found;
    if !file.ends_with(".toml") && !file.ends_with(".conf") {
        return None;
    }
    let path = parent.path(&file);
    let state = if kind.is_file() {
        DropInState::File
    } else if !kind.is_symlink() {
        DropInState::Bad(format!("is {}, not a file", kind_of(kind)))
    } else if std::fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null")) {
        DropInState::Mask
    } else {
        DropInState::Bad("is a link; copy the file, or link to /dev/null to take it away".to_owned())
    };
    Some((file, DropIn { path: path.into(), kind: folder.kind, state }))
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
    if usable(&mut index.problems, folder, path).is_none() {
        return;
    }
    for Found { file, .. } in sorted_entries(&mut index.problems, path) {
        let path = path.join(&file);
        match UnitName::parse(file.strip_suffix(".toml").unwrap_or(&file)) {
            Ok(name) if !name.is_template() => {
                let counts =
                    std::fs::read_link(&path).map_or(true, |target| target != Path::new("/dev/null"));
                index.pulls.entry((owner.clone(), pull, name)).or_insert(counts);
            }
            Ok(name) => index.problem(&path, format!("is not used: {name} is a template")),
            Err(error) => index.problem(&path, format!("is not used: {error}")),
        }
    }
}
