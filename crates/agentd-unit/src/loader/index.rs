//! What lies in the search path, by name: one look at every folder, nothing opened.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::door::{Door, OpenFolder, open_path};
use super::open::Trusted;
use super::{Problem, scan};
use crate::hash::Quick;
use crate::name::UnitName;
use crate::search_path::{SearchPath, TierKind};
use crate::unit::{LoadState, Unit};

/// What stands under a unit's name in the highest tier that has it.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// A file.
    File(Arc<Path>),
    /// A link to another unit's name.
    Alias {
        /// The link.
        path: Arc<Path>,
        /// The name it leads to.
        target: UnitName,
    },
    /// A link from an instance's name to its template.
    Instance,
    /// A link to /dev/null, or an empty file.
    Mask(Arc<Path>),
    /// Something that makes no unit.
    Bad {
        /// Where it lies.
        path: Arc<Path>,
        /// What is wrong.
        why: String,
    },
}

/// One drop-in.
#[derive(Debug, Clone)]
pub(super) struct DropIn {
    /// Where it lies.
    pub(super) path: Arc<Path>,
    /// Where its name begins in the path, in bytes. 0: it stands for all of a folder.
    pub(super) file: usize,
    /// Who wrote it.
    pub(super) kind: TierKind,
    /// What stands there.
    pub(super) state: DropInState,
}

impl DropIn {
    /// Its name, by which one takes the place of another.
    pub(super) fn name(&self) -> &[u8] {
        &self.path.as_os_str().as_bytes()[self.file..]
    }
}

/// What stands under a drop-in's name.
#[derive(Debug, Clone)]
pub(super) enum DropInState {
    /// A file.
    File,
    /// A link to /dev/null: takes the name from lower tiers.
    Mask,
    /// Something that cannot be used, and so fails the units it is for.
    Bad(String),
}

/// Which edge a folder of links adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pull {
    /// `NAME.wants/`.
    Wants,
    /// `NAME.requires/`.
    Requires,
    /// `NAME.upholds/`.
    Upholds,
}

/// Everything in the search path, by name.
#[derive(Debug)]
pub(super) struct Index {
    /// The way to the kernel.
    pub(super) door: &'static dyn Door,
    /// The folders of the tiers that are used.
    open: Vec<(PathBuf, File)>,
    /// The tiers' folders that exist, with all links in their paths resolved.
    pub(super) folders: Vec<PathBuf>,
    /// The folders of tiers that could not be read, or not to their end, and why: what they hold is not known.
    unreadable: Vec<Problem>,
    /// Units; templates too.
    pub(super) units: BTreeMap<UnitName, Entry>,
    /// By the folder's stem (`web.service`, `web-.service`, `service`); there sorted by the file's name, each once.
    pub(super) drop_ins: HashMap<String, Vec<DropIn>, Quick>,
    /// Owner, edge and pulled unit; `false`: masked by a link to /dev/null.
    pub(super) pulls: BTreeMap<(UnitName, Pull, UnitName), bool>,
    /// `NAME.enabled` and `NAME.disabled`.
    pub(super) markers: BTreeMap<UnitName, bool>,
    /// Those of them that the next boot takes away.
    pub(super) runtime_markers: BTreeSet<UnitName>,
    /// The folders whose content the next boot takes away, with all links in their paths resolved.
    pub(super) runtime_folders: Vec<PathBuf>,
    /// The files beside others that sign them: `NAME.TYPE.toml.sig`.
    pub(super) signatures: HashSet<PathBuf>,
    /// What is no unit and yet wrong.
    pub(super) problems: Vec<Problem>,
}

/// One tier while it is read.
pub(super) struct TierFolder<'a> {
    /// The folder, with no link in its path.
    pub(super) folder: OpenFolder<'a>,
    /// The way to the kernel.
    pub(super) door: &'static dyn Door,
    /// Who writes it.
    pub(super) kind: TierKind,
    /// Who may own what lies in it.
    pub(super) trusted: &'a Trusted,
}

impl Index {
    /// Looks at every tier, highest first.
    pub(super) fn scan(search: &SearchPath, trusted: &Trusted, door: &'static dyn Door) -> Self {
        let mut index = Self::new(door);
        let mut seen = BTreeSet::new();
        let mut tiers = Vec::new();
        for tier in &search.tiers {
            match tier.path.canonicalize() {
                Ok(path) => {
                    // A tier that is a link to another one is that one.
                    if seen.insert(path.clone()) {
                        if search.is_runtime(&tier.path) {
                            index.runtime_folders.push(path.clone());
                        }
                        tiers.push((path, tier.kind));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => index.cannot_read(&tier.path, &error),
            }
        }
        index.folders = tiers.iter().map(|(path, _)| path.clone()).collect();
        for (path, kind) in tiers {
            if let Err(error) = trusted.folder(&path) {
                index.problem(&path, format!("its units are not used: {}", error.one_line()));
                continue;
            }
            match open_path(&path) {
                Ok(file) => {
                    let folder = OpenFolder { path: &path, file: &file };
                    scan::tier(&mut index, &TierFolder { folder, door, kind, trusted });
                    index.open.push((path, file));
                }
                Err(error) => index.cannot_read(&path, &error),
            }
        }
        index
    }

    fn new(door: &'static dyn Door) -> Self {
        Self {
            door,
            open: Vec::new(),
            folders: Vec::new(),
            unreadable: Vec::new(),
            units: BTreeMap::new(),
            drop_ins: HashMap::default(),
            pulls: BTreeMap::new(),
            markers: BTreeMap::new(),
            runtime_markers: BTreeSet::new(),
            runtime_folders: Vec::new(),
            signatures: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// Opens a file of a tier, or of a folder of drop-ins in it, as [`Door::open`] does.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub(super) fn open(&self, path: &Path) -> std::io::Result<File> {
        // Tiers may lie in each other: the nearest is that with the shortest way.
        let below = self.open.iter().filter_map(|(folder, file)| Some((folder, file, below(folder, path)?)));
        match below.min_by_key(|(.., name)| name.as_os_str().len()) {
            Some((path, file, name)) => self.door.open(OpenFolder { path, file }, name),
            None => open_path(path),
        }
    }

    /// Whether a file is gone after the next boot.
    pub(super) fn is_runtime(&self, path: &Path) -> bool {
        path.parent().is_some_and(|folder| self.runtime_folders.iter().any(|one| one == folder))
    }

    /// Takes the drop-ins of a folder, sorted by name, but none whose name a higher tier has.
    pub(super) fn add_drop_ins(&mut self, stem: &str, found: Vec<DropIn>) {
        if found.is_empty() {
            return;
        }
        match self.drop_ins.entry(stem.to_owned()) {
            Slot::Vacant(slot) => {
                slot.insert(found);
            }
            Slot::Occupied(mut slot) => {
                let files = slot.get_mut();
                for drop_in in found {
                    if let Err(place) = files.binary_search_by(|known| known.name().cmp(drop_in.name())) {
                        files.insert(place, drop_in);
                    }
                }
            }
        }
    }

    pub(super) fn problem(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(Problem::of(path, message));
    }

    /// Notes that a tier's folder is not known to its end.
    pub(super) fn cannot_read(&mut self, folder: &Path, error: &std::io::Error) {
        let problem = Problem::of(folder, format!("cannot be read: {error}"));
        self.problems.push(problem.clone());
        self.unreadable.push(problem);
    }

    /// What stands for a name that was not found: it may lie in a folder that could not be read. `None`: there is no such
    /// folder.
    pub(super) fn perhaps(&self, name: &UnitName) -> Option<Unit> {
        let folder = self.unreadable.first()?;
        let mut unit = Unit::not_found(name.clone());
        unit.load = LoadState::Error(format!("nothing of this name was found, but {folder}"));
        Some(unit)
    }

    /// The unit that a name leads to through links, step by step and by name, so that each step can be overridden.
    ///
    /// # Errors
    /// A loop, a link to nothing.
    pub(super) fn resolve(&self, name: &UnitName) -> Result<UnitName, String> {
        let mut way = vec![name.clone()];
        loop {
            let Some(current) = way.last().cloned() else { return Ok(name.clone()) };
            match self.units.get(&current) {
                Some(Entry::Alias { target, .. }) if way.contains(target) => {
                    let names: Vec<&str> = way.iter().chain([target]).map(UnitName::as_str).collect();
                    return Err(format!("its link leads in a circle: {}", names.join(" -> ")));
                }
                Some(Entry::Alias { target, .. }) => way.push(target.clone()),
                Some(Entry::File(_) | Entry::Mask(_) | Entry::Bad { .. }) => return Ok(current),
                own @ (Some(Entry::Instance) | None) => match self.of_other_template(&current) {
                    Some(target) if !way.contains(&target) => way.push(target),
                    None if own.is_none() && !self.has_template(&current) => {
                        return Err(format!("links to {current}, which no search path has"));
                    }
                    _ => return Ok(current),
                },
            }
        }
    }

    fn has_template(&self, name: &UnitName) -> bool {
        name.template().is_some_and(|template| self.units.contains_key(&template))
    }

    /// The instance that is meant where a template's name is a link to another template.
    fn of_other_template(&self, name: &UnitName) -> Option<UnitName> {
        match self.units.get(&name.template()?) {
            Some(Entry::Alias { target, .. }) => UnitName::of_instance(target, name.instance()?),
            _ => None,
        }
    }

    /// Puts the drop-ins of a unit into a list, in the order in which they apply: by file name; of one name, that of the most
    /// special folder (instance, template, longest prefix, type), and there of the highest tier.
    pub(super) fn drop_ins_of<'i, 'a>(
        &'i self,
        names: impl IntoIterator<Item = &'a UnitName>,
        chosen: &mut Vec<&'i DropIn>,
        stem: &mut String,
    ) {
        chosen.clear();
        let mut take = |stem: &str| {
            // Both are sorted, and what was chosen from a folder before stays.
            for drop_in in self.drop_ins.get(stem).into_iter().flatten() {
                if let Err(place) = chosen.binary_search_by(|known| known.name().cmp(drop_in.name())) {
                    chosen.insert(place, drop_in);
                }
            }
        };
        if !self.drop_ins.is_empty() {
            names.into_iter().for_each(|name| each_stem(name, stem, &mut take));
        }
        chosen.retain(|drop_in| !matches!(drop_in.state, DropInState::Mask));
    }
}

/// The way from a folder to what lies below it.
fn below<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    let (folder, path) = (folder.as_os_str().as_bytes(), path.as_os_str().as_bytes());
    let rest = path.strip_prefix(folder)?;
    let name = if folder.ends_with(b"/") { rest } else { rest.strip_prefix(b"/")? };
    (!name.is_empty()).then(|| Path::new(OsStr::from_bytes(name)))
}

/// The stems of the folders that hold a unit's drop-ins, the most special first: `a-b@1.service`, `a-b@.service`,
/// `a-.service`, `service`. Whoever signs a unit looks where the loader looks.
#[must_use]
pub fn drop_in_stems(name: &UnitName) -> Vec<String> {
    let mut stems = Vec::new();
    each_stem(name, &mut String::new(), &mut |stem| stems.push(stem.to_owned()));
    stems
}

/// Hands the stems on, one after the other; `stem` is room for them.
fn each_stem(name: &UnitName, stem: &mut String, each: &mut dyn FnMut(&str)) {
    let unit_type = name.unit_type().as_str();
    each(name.as_str());
    if let Some(template) = name.template() {
        each(template.as_str());
    }
    let mut prefix = name.prefix();
    while let Some(dash) = prefix.trim_end_matches('-').rfind('-') {
        prefix = &prefix[..=dash];
        stem.clear();
        [prefix, ".", unit_type].into_iter().for_each(|part| stem.push_str(part));
        each(stem);
    }
    each(unit_type);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_folder_has_a_way_from_it() {
        for (folder, path, way) in [
            ("/etc/units", "/etc/units/a.service", Some("a.service")),
            ("/etc/units", "/etc/units/a.service.d/b.conf", Some("a.service.d/b.conf")),
            ("/", "/a.service", Some("a.service")),
            ("/etc/units", "/etc/units-of-others/a.service", None),
            ("/etc/units", "/etc/units", None),
            ("/etc/units", "/etc/units/", None),
        ] {
            assert_eq!(below(Path::new(folder), Path::new(path)), way.map(Path::new), "{folder} and {path}");
        }
    }
}
