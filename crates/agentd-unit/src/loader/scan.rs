//! Reading one tier's folder: what each name in it is.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use super::door::{Door, Kind, OpenFolder};
use super::index::{DropIn, DropInState, Entry, Index, Pull, TierFolder};
use super::{Problem, both};
use crate::name::{UnitName, UnitType};
use crate::schema::SYSTEMD_TYPES;
use crate::search_path::TierKind;

/// Takes in everything that one tier has. What a higher tier has stays.
pub(super) fn tier(index: &mut Index, tier: &TierFolder<'_>) {
    let all = entries(&mut index.problems, tier.door, tier.folder);
    let (drop_ins, mut others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|found| found.file.ends_with(".d"));
    sort(&mut others);
    let mut units = Vec::with_capacity(others.len());
    let mut below = Below::default();
    below.enter(tier.folder.path);
    for found in others {
        units.extend(entry(index, tier, below.path(&found.file), &found));
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
    take_drop_ins(index, tier, drop_ins);
}

/// Takes in the folders of drop-ins, which may stand in any order: what one has is found by its name.
fn take_drop_ins(index: &mut Index, tier: &TierFolder<'_>, folders: Vec<Found>) {
    // A folder for each unit: half of what looking at a tier takes.
    let all = both::map(&folders, |below, found| listed(tier, found, below));
    index.drop_ins.reserve(folders.len());
    let mut problems = Vec::new();
    for (found, listed) in folders.into_iter().zip(all) {
        let (length, mut stem) = (stem_of(&found).len(), found.file);
        stem.truncate(length);
        problems.extend(listed.problems);
        index.add_drop_ins(stem, listed.files);
    }
    problems.sort_by(|one, other| one.path.cmp(&other.path));
    index.problems.append(&mut problems);
}

/// What a folder of drop-ins is for.
fn stem_of(found: &Found) -> &str {
    found.file.strip_suffix(".d").unwrap_or(&found.file)
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
#[derive(Default)]
struct Below {
    bytes: Vec<u8>,
    /// So many of them are the folder and its slash.
    folder: usize,
}

impl Below {
    /// Goes to a folder.
    fn enter(&mut self, folder: &Path) {
        self.bytes.clear();
        self.bytes.extend_from_slice(folder.as_os_str().as_bytes());
        if !self.bytes.ends_with(b"/") {
            self.bytes.push(b'/');
        }
        self.folder = self.bytes.len();
    }

    /// Goes to a folder in the present one; its path.
    fn enter_below(&mut self, name: &str) -> &Path {
        self.bytes.truncate(self.folder);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'/');
        self.folder = self.bytes.len();
        Path::new(OsStr::from_bytes(&self.bytes[..self.folder - 1]))
    }

    /// Where a file in the folder lies.
    fn path(&mut self, file: &str) -> &Path {
        self.bytes.truncate(self.folder);
        self.bytes.extend_from_slice(file.as_bytes());
        Path::new(OsStr::from_bytes(&self.bytes))
    }
}

/// One name in a folder and what it is the name of, as the folder itself tells: no file is looked at for it.
struct Found {
    file: String,
    kind: Kind,
}

/// The folder's entries as they come; hidden ones are nobody's business. One that cannot be read is told and hides none
/// of the others.
fn entries(problems: &mut Vec<Problem>, door: &dyn Door, folder: OpenFolder<'_>) -> Vec<Found> {
    let mut all = Vec::new();
    let listed = door.list(folder, &mut |name, kind| match (name.to_str(), kind) {
        (Some(file), _) if file.starts_with('.') => {}
        (Some(file), Ok(kind)) => all.push(Found { file: file.to_owned(), kind }),
        (Some(file), Err(error)) => {
            problems.push(Problem::of(&folder.path.join(file), format!("cannot be read: {error}")));
        }
        (None, _) => problems.push(Problem::of(&folder.path.join(name), "is not used: its name is no UTF-8")),
    });
    if let Err(error) = listed {
        problems.push(Problem::of(folder.path, format!("cannot be read: {error}")));
    }
    all
}

/// Puts entries in the order of their names.
fn sort(entries: &mut [Found]) {
    entries.sort_unstable_by(|one, other| one.file.cmp(&other.file));
}

/// What a name in a tier stands for, if that is a unit; all else is taken in at once.
fn entry(index: &mut Index, tier: &TierFolder<'_>, path: &Path, found: &Found) -> Option<Named> {
    let file = &*found.file;
    let (stem, ending) = file.rsplit_once('.')?;
    match ending {
        "wants" => pull_folder(index, tier, found, Pull::Wants),
        "requires" => pull_folder(index, tier, found, Pull::Requires),
        "upholds" => pull_folder(index, tier, found, Pull::Upholds),
        "enabled" | "disabled" if tier.kind == TierKind::Control => {
            marker(index, path, stem, ending == "enabled");
        }
        "sig" => {
            index.signatures.insert(path.to_owned());
        }
        _ => match unit_of_file(file) {
            Some(Ok(name)) => {
                let path: Arc<Path> = path.into();
                let found = classify(index, tier, &path, &name, found.kind);
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

fn classify(index: &Index, tier: &TierFolder<'_>, path: &Arc<Path>, name: &UnitName, kind: Kind) -> Entry {
    let path = Arc::clone(path);
    if kind == Kind::Link {
        return match link(index, tier, &path, name) {
            Ok(entry) => entry,
            Err(why) => Entry::Bad { path, why },
        };
    }
    if kind != Kind::File {
        return Entry::Bad { path, why: format!("is {}, not a file", kind.as_str()) };
    }
    if tier.kind == TierKind::Control {
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
fn link(index: &Index, tier: &TierFolder<'_>, path: &Arc<Path>, name: &UnitName) -> Result<Entry, String> {
    let target = std::fs::read_link(path).map_err(|error| format!("its link cannot be read: {error}"))?;
    if target == Path::new("/dev/null") {
        return Ok(Entry::Mask(Arc::clone(path)));
    }
    if tier.kind == TierKind::Control {
        return Err("a control folder holds no links but those to /dev/null".to_owned());
    }
    let shown = target.display().to_string();
    let target = tier.folder.path.join(target);
    let target_folder = target.parent().unwrap_or(tier.folder.path);
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
            return Err(format!(
                "links to {shown}, which is {}, not a file",
                Kind::from(meta.file_type()).as_str()
            ));
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

/// Opens a folder inside a tier, if it may be used; if not, that is told. Whose it is, is seen on what was opened.
fn usable(problems: &mut Vec<Problem>, tier: &TierFolder<'_>, found: &Found, path: &Path) -> Option<File> {
    let why = match found.kind {
        Kind::Folder => match opened_below(tier, path, &found.file) {
            Ok(file) => return Some(file),
            Err(why) => why,
        },
        Kind::Link => "is not used: it is a link; make it a folder".to_owned(),
        _ => "is not used: it has a folder's name but is none".to_owned(),
    };
    problems.push(Problem::of(path, why));
    None
}

/// Opens what was listed as a folder inside a tier.
///
/// # Errors
/// Why it is not used.
fn opened_below(tier: &TierFolder<'_>, path: &Path, name: &str) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let file = tier.door.open(tier.folder, Path::new(name)).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_dir() {
        return Err("is not used: it was another thing a moment ago".to_owned());
    }
    // The folders above are the tier's, which were checked.
    tier.trusted.check(path, &meta).map_err(|error| format!("is not used: {}", error.one_line()))?;
    Ok(file)
}

/// What one folder of drop-ins has.
#[derive(Default)]
struct Listed {
    /// By the file's name.
    files: Vec<(String, DropIn)>,
    problems: Vec<Problem>,
}

fn listed(tier: &TierFolder<'_>, found: &Found, below: &mut Below) -> Listed {
    let mut listed = Listed::default();
    below.enter(tier.folder.path);
    let (stem, path) = (stem_of(found), below.enter_below(&found.file));
    let of_type = UnitType::ALL.iter().any(|unit_type| unit_type.as_str() == stem);
    // NAME.TYPE.toml.d is what somebody writes who extends the file's name and not the unit's.
    if !of_type && UnitName::check(stem).is_err() {
        if UnitName::check(stem.trim_end_matches(".toml")).is_ok() {
            let meant = stem.trim_end_matches(".toml");
            let message = format!("is not used: drop-ins of {meant} lie in {meant}.d");
            listed.problems.push(Problem::of(path, message));
        }
    } else if let Some(file) = usable(&mut listed.problems, tier, found, path) {
        let mut found = entries(&mut listed.problems, tier.door, OpenFolder { path, file: &file });
        sort(&mut found);
        listed.files.reserve_exact(found.len());
        listed.files.extend(found.into_iter().filter_map(|found| drop_in(tier, below, found)));
    } else {
        // What cannot be read may be what bounds the unit: the unit must not start without it.
        let why = format!("the drop-ins in {} cannot be used, see the problems of loading", path.display());
        let file = format!("\u{0}{}", path.display());
        let bad = DropIn { path: path.into(), kind: tier.kind, state: DropInState::Bad(why) };
        listed.files.push((file, bad));
    }
    listed
}

fn drop_in(tier: &TierFolder<'_>, parent: &mut Below, found: Found) -> Option<(String, DropIn)> {
    let Found { file, kind } = found;
    if !file.ends_with(".toml") && !file.ends_with(".conf") {
        return None;
    }
    let path = parent.path(&file);
    let state = if kind == Kind::File {
        DropInState::File
    } else if kind != Kind::Link {
        DropInState::Bad(format!("is {}, not a file", kind.as_str()))
    } else if std::fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null")) {
        DropInState::Mask
    } else {
        DropInState::Bad("is a link; copy the file, or link to /dev/null to take it away".to_owned())
    };
    Some((file, DropIn { path: path.into(), kind: tier.kind, state }))
}

/// A folder of links. Only their names count: what they lead to is found by name.
fn pull_folder(index: &mut Index, tier: &TierFolder<'_>, found: &Found, pull: Pull) {
    let path = tier.folder.path.join(&found.file);
    let stem = found.file.rsplit_once('.').map_or("", |(stem, _)| stem);
    let owner = match UnitName::parse(stem) {
        Ok(owner) => owner,
        Err(error) => return index.problem(&path, format!("is not used: {error}")),
    };
    if tier.kind == TierKind::Control {
        return index.problem(&path, "is not used: a control folder holds masks, markers and drop-ins");
    }
    let Some(file) = usable(&mut index.problems, tier, found, &path) else { return };
    let mut links = entries(&mut index.problems, tier.door, OpenFolder { path: &path, file: &file });
    sort(&mut links);
    for Found { file, .. } in links {
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
