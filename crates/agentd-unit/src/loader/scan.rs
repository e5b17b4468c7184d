//! Reading one tier's folder: what each name in it is.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
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
    let mut names = Names::default();
    if let Err(error) = names.list(&mut index.problems, tier.door, tier.folder) {
        index.cannot_read(tier.folder.path, &error);
    }
    let is_folder = |found: &Found| names.of(*found).ends_with(".d");
    let (folders, others): (Vec<_>, Vec<_>) = names.found.iter().copied().partition(is_folder);
    // A folder of drop-ins for each unit: half of what looking at a tier takes.
    let look = |desk: &mut Desk, found: &Found| listed(tier, (names.of(*found), found.kind), desk);
    let all = both::map_beside(tier.door, &folders, look, || take_others(index, tier, &names, others));
    index.drop_ins.reserve(folders.len());
    let mut problems = Vec::new();
    // In any order: what one of them has is found by its name.
    for (found, listed) in folders.into_iter().zip(all) {
        problems.extend(listed.problems);
        index.add_drop_ins(stem_of(names.of(found)), listed.files);
    }
    problems.sort_by(|one, other| one.path.cmp(&other.path));
    index.problems.append(&mut problems);
}

/// Takes in all but the folders of drop-ins.
fn take_others(index: &mut Index, tier: &TierFolder<'_>, names: &Names, mut others: Vec<Found>) {
    names.sort(&mut others);
    let mut units = Vec::with_capacity(others.len());
    let mut below = Below::default();
    below.enter(tier.folder.path);
    for found in others {
        let file = names.of(found);
        units.extend(entry(index, tier, below.path(file), (file, found.kind)));
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
}

/// What a folder of drop-ins is for.
fn stem_of(name: &str) -> &str {
    name.strip_suffix(".d").unwrap_or(name)
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

/// The names in a folder, one behind the other in one text: none has memory of its own.
#[derive(Default)]
struct Names {
    text: String,
    found: Vec<Found>,
}

/// One name in a folder and what it is the name of, as the folder itself tells: no file is looked at for it.
#[derive(Clone, Copy)]
struct Found {
    start: usize,
    end: usize,
    kind: Kind,
}

impl Names {
    /// Takes a folder's entries in place of what there was, as they come; hidden ones are nobody's business. One that
    /// cannot be read is told and hides none of the others.
    fn list(
        &mut self,
        problems: &mut Vec<Problem>,
        door: &dyn Door,
        folder: OpenFolder<'_>,
    ) -> io::Result<()> {
        let Self { text, found } = self;
        text.clear();
        found.clear();
        door.list(folder, &mut |name, kind| match (name.to_str(), kind) {
            (Some(file), _) if file.starts_with('.') => {}
            (Some(file), Ok(kind)) => {
                let start = text.len();
                text.push_str(file);
                found.push(Found { start, end: text.len(), kind });
            }
            (Some(file), Err(error)) => {
                problems.push(Problem::of(&folder.path.join(file), format!("cannot be read: {error}")));
            }
            (None, _) => {
                problems.push(Problem::of(&folder.path.join(name), "is not used: its name is no UTF-8"));
            }
        })
    }

    /// The same; false, and a problem: the folder could not be read to its end.
    fn list_or_tell(&mut self, problems: &mut Vec<Problem>, door: &dyn Door, folder: OpenFolder<'_>) -> bool {
        let listed = self.list(problems, door, folder);
        if let Err(error) = &listed {
            problems.push(Problem::of(folder.path, format!("cannot be read: {error}")));
        }
        listed.is_ok()
    }

    fn of(&self, found: Found) -> &str {
        &self.text[found.start..found.end]
    }

    /// Puts entries in the order of their names.
    fn sort(&self, found: &mut [Found]) {
        found.sort_unstable_by(|one, other| self.of(*one).cmp(self.of(*other)));
    }

    /// All entries by name.
    fn sorted(&self) -> Vec<Found> {
        let mut found = self.found.clone();
        self.sort(&mut found);
        found
    }
}

/// What a name in a tier stands for, if that is a unit; all else is taken in at once.
fn entry(index: &mut Index, tier: &TierFolder<'_>, path: &Path, (file, kind): (&str, Kind)) -> Option<Named> {
    let (stem, ending) = file.rsplit_once('.')?;
    match ending {
        "wants" => pull_folder(index, tier, path, (stem, kind, Pull::Wants)),
        "requires" => pull_folder(index, tier, path, (stem, kind, Pull::Requires)),
        "upholds" => pull_folder(index, tier, path, (stem, kind, Pull::Upholds)),
        "enabled" | "disabled" if tier.kind == TierKind::Control => {
            marker(index, path, stem, ending == "enabled");
        }
        "sig" => {
            index.signatures.insert(path.to_owned());
        }
        _ => match unit_of_file(file) {
            Some(Ok(name)) => {
                let path: Arc<Path> = path.into();
                let found = classify(index, tier, &path, &name, kind);
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
        (Some(instance), Some("")) => UnitName::of_instance(&target, instance)
            .ok_or_else(|| format!("links to {target}, whose instance has no name"))?,
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
fn usable(problems: &mut Vec<Problem>, tier: &TierFolder<'_>, path: &Path, kind: Kind) -> Option<File> {
    let why = match kind {
        Kind::Folder => match opened_below(tier, path) {
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
fn opened_below(tier: &TierFolder<'_>, path: &Path) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let name = Path::new(path.file_name().unwrap_or_default());
    let file = tier.door.open(tier.folder, name).map_err(failed)?;
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
    files: Vec<DropIn>,
    problems: Vec<Problem>,
}

/// What looking at one folder of drop-ins after the other uses again.
#[derive(Default)]
struct Desk {
    below: Below,
    names: Names,
}

fn listed(tier: &TierFolder<'_>, (name, kind): (&str, Kind), desk: &mut Desk) -> Listed {
    let mut listed = Listed::default();
    let Desk { below, names } = desk;
    below.enter(tier.folder.path);
    let (stem, path) = (stem_of(name), below.enter_below(name));
    let of_type = UnitType::ALL.iter().any(|unit_type| unit_type.as_str() == stem);
    // NAME.TYPE.toml.d is what somebody writes who extends the file's name and not the unit's.
    if !of_type && UnitName::check(stem).is_err() {
        if UnitName::check(stem.trim_end_matches(".toml")).is_ok() {
            let meant = stem.trim_end_matches(".toml");
            let message = format!("is not used: drop-ins of {meant} lie in {meant}.d");
            listed.problems.push(Problem::of(path, message));
        }
    } else if usable(&mut listed.problems, tier, path, kind).is_some_and(|file| {
        names.list_or_tell(&mut listed.problems, tier.door, OpenFolder { path, file: &file })
    }) {
        listed.files.reserve_exact(names.found.len());
        let found = names.found.iter().map(|found| (names.of(*found), found.kind));
        listed.files.extend(found.filter_map(|found| drop_in(tier, below, found)));
        listed.files.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    } else {
        // What cannot be read may be what bounds the unit: the unit must not start without it.
        let why = format!("the drop-ins in {} cannot be used, see the problems of loading", path.display());
        let state = DropInState::Bad(why);
        listed.files.push(DropIn { path: path.into(), file: 0, kind: tier.kind, state });
    }
    listed
}

fn drop_in(tier: &TierFolder<'_>, parent: &mut Below, (file, kind): (&str, Kind)) -> Option<DropIn> {
    if !file.ends_with(".toml") && !file.ends_with(".conf") {
        return None;
    }
    let (start, path) = (parent.folder, parent.path(file));
    let state = if kind == Kind::File {
        DropInState::File
    } else if kind != Kind::Link {
        DropInState::Bad(format!("is {}, not a file", kind.as_str()))
    } else if std::fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null")) {
        DropInState::Mask
    } else {
        DropInState::Bad("is a link; copy the file, or link to /dev/null to take it away".to_owned())
    };
    Some(DropIn { path: path.into(), file: start, kind: tier.kind, state })
}

/// A folder of links. Only their names count: what they lead to is found by name.
fn pull_folder(
    index: &mut Index,
    tier: &TierFolder<'_>,
    path: &Path,
    (stem, kind, pull): (&str, Kind, Pull),
) {
    let owner = match UnitName::parse(stem) {
        Ok(owner) => owner,
        Err(error) => return index.problem(path, format!("is not used: {error}")),
    };
    if tier.kind == TierKind::Control {
        return index.problem(path, "is not used: a control folder holds masks, markers and drop-ins");
    }
    let Some(file) = usable(&mut index.problems, tier, path, kind) else { return };
    let mut names = Names::default();
    names.list_or_tell(&mut index.problems, tier.door, OpenFolder { path, file: &file });
    for found in names.sorted() {
        let file = names.of(found);
        let path = path.join(file);
        match UnitName::parse(file.strip_suffix(".toml").unwrap_or(file)) {
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
