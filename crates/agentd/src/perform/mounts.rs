//! From places and what covers them to mounts in the order in which they can be made.
//!
//! # Invariants
//!
//! - An upper place comes before those in it.
//! - One place has one cover: the one that takes away the most. It is read-only if any of the place's covers is.
//! - Nothing is mounted below what cannot be entered.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::{Mount, MountEntry, MountFlags};

use super::landlock::Open;
use super::plan::{c_path, resources, step};
use super::rooted::Shown;

const EXIT_NAMESPACE: u8 = 226;

/// What stands in a place, the one that takes away the most first.
#[derive(Debug, Clone)]
pub enum Cover {
    /// Something that cannot be entered or read.
    Inaccessible,
    /// A copy of what is somewhere.
    Tree {
        /// Where.
        source: PathBuf,
        /// With what is mounted below.
        recursive: bool,
        /// Its flags.
        flags: MountFlags,
    },
    /// An empty file system in memory.
    Temporary {
        /// Options of tmpfs(5).
        options: String,
        /// Nothing can be written, once what is mounted in it has its place.
        read_only: bool,
    },
    /// A `/proc` of its own.
    Processes {
        /// Options of proc(5).
        options: String,
    },
    /// The message queues of its own IPC.
    Queues,
    /// What is there, and nothing can be written.
    ReadOnly,
    /// What is there, although what is above it is covered.
    AsItIs,
    /// What is there once what is above it is covered.
    Again,
}

impl Cover {
    const fn rank(&self) -> u8 {
        match self {
            Self::Inaccessible => 0,
            Self::Queues => 1,
            Self::Tree { .. } => 2,
            Self::Temporary { .. } => 3,
            Self::Processes { .. } => 4,
            Self::ReadOnly => 5,
            Self::AsItIs => 6,
            Self::Again => 7,
        }
    }

    /// Whether nothing can be written there.
    const fn is_read_only(&self) -> bool {
        match self {
            Self::Inaccessible | Self::ReadOnly => true,
            Self::Tree { flags, .. } => flags.is_read_only(),
            Self::Temporary { read_only, .. } => *read_only,
            Self::Queues | Self::Processes { .. } | Self::AsItIs | Self::Again => false,
        }
    }
}

/// What it means if the place is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The start fails.
    Required,
    /// It is left out.
    Optional,
    /// It is made.
    Made,
    /// It is there once what is above it is covered.
    Covered,
}

/// Where things are.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// `RootDirectory`.
    pub root: Option<&'a Path>,
    /// Where the manager keeps what it mounts.
    pub runtime: &'a Path,
}

/// Where a path leads, and what to say if there is nothing.
type Target = (PathBuf, Option<SpawnFailure>);

#[derive(Debug)]
struct Entry {
    key: &'static str,
    target: PathBuf,
    need: Need,
    cover: Cover,
    /// By its cover, or by one that gave way to it.
    read_only: bool,
    /// The place is not there, unless another entry makes it.
    missing: Option<SpawnFailure>,
}

impl Entry {
    const fn new(key: &'static str, target: PathBuf, need: Need, cover: Cover) -> Self {
        let read_only = cover.is_read_only();
        Self { key, target, need, cover, read_only, missing: None }
    }

    /// Whether something can be written there, whatever is around it.
    const fn is_for_writing(&self) -> bool {
        !self.read_only && !matches!(self.cover, Cover::Again)
    }
}

/// Whether programs may be run from a place and what is in it.
#[derive(Debug)]
struct Rule {
    key: &'static str,
    target: PathBuf,
    allowed: bool,
    need: Need,
    missing: Option<SpawnFailure>,
}

/// What is to be mounted, in no order yet.
#[derive(Debug)]
pub struct Mounts<'a> {
    place: Place<'a>,
    entries: Vec<Entry>,
    rules: Vec<Rule>,
    own: Vec<Entry>,
}

impl<'a> Mounts<'a> {
    /// Nothing yet.
    #[must_use]
    pub fn new(place: Place<'a>) -> Self {
        Self { place, entries: Vec::new(), rules: Vec::new(), own: Vec::new() }
    }

    /// Covers a place. Links in its path are followed now, within the root that the processes will have.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn add(
        &mut self,
        key: &'static str,
        path: &Path,
        need: Need,
        cover: Cover,
    ) -> Result<(), SpawnFailure> {
        let (target, missing) = self.target(key, path, need)?;
        self.entries.push(Entry { missing, ..Entry::new(key, target, need, cover) });
        Ok(())
    }

    /// Says whether programs may be run from a place and what is in it, unless another rule says so of a place in it.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn rule(
        &mut self,
        key: &'static str,
        path: &Path,
        need: Need,
        allowed: bool,
    ) -> Result<(), SpawnFailure> {
        let (target, missing) = self.target(key, path, need)?;
        self.rules.push(Rule { key, target, allowed, need, missing });
        Ok(())
    }

    /// Names a folder of the unit's own: it can be written to where something above it is read-only. What names the folder
    /// itself counts before that.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn own(&mut self, key: &'static str, path: &Path) -> Result<(), SpawnFailure> {
        let (target, missing) = self.target(key, path, Need::Optional)?;
        if missing.is_none() {
            self.own.push(Entry::new(key, target, Need::Optional, Cover::AsItIs));
        }
        Ok(())
    }

    /// Where a path leads within the root, and what to say if it is not there and has to be.
    fn target(&self, key: &str, path: &Path, need: Need) -> Result<Target, SpawnFailure> {
        let outside = match self.place.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        };
        match fs::canonicalize(&outside) {
            Ok(target) => Ok((target, None)),
            Err(_) if matches!(need, Need::Made | Need::Covered) => Ok((outside, None)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((outside, Some(failed(key, path, &error))))
            }
            Err(error) => Err(failed(key, path, &error)),
        }
    }

    /// What a place within a bind shows, and whether with what is mounted below.
    fn within_a_bind(&self, place: &Path) -> Option<(PathBuf, bool)> {
        let above = |e: &&Entry| e.missing.is_none() && e.target != place && place.starts_with(&e.target);
        let upper = self.entries.iter().filter(above).max_by_key(|entry| entry.target.as_os_str().len())?;
        match &upper.cover {
            Cover::Tree { source, recursive, .. } if upper.key.starts_with("Bind") => {
                Some((source.join(place.strip_prefix(&upper.target).ok()?), *recursive))
            }
            _ => None,
        }
    }

    /// What is said of places that are not there and that nothing makes goes, or is why the start fails.
    fn settle_missing(&mut self) -> Result<(), SpawnFailure> {
        let missing = self.entries.iter().filter(|e| e.missing.is_some()).map(|e| e.target.clone());
        let missing =
            missing.chain(self.rules.iter().filter(|r| r.missing.is_some()).map(|r| r.target.clone()));
        let is_bound = |place: &PathBuf| self.within_a_bind(place).is_some_and(|(source, _)| source.exists());
        let bound: BTreeSet<PathBuf> = missing.filter(is_bound).collect();
        self.entries.iter_mut().filter(|e| bound.contains(&e.target)).for_each(|e| e.missing = None);
        self.rules.iter_mut().filter(|r| bound.contains(&r.target)).for_each(|r| r.missing = None);
        let there = self.entries.iter().filter(|entry| entry.missing.is_none());
        let there: BTreeSet<PathBuf> = there.map(|entry| entry.target.clone()).collect();
        let gone = |missing: bool, target: &PathBuf| missing && !there.contains(target);
        let entries = self.entries.extract_if(.., |e| gone(e.missing.is_some(), &e.target));
        let entries = entries.map(|entry| (entry.need, entry.missing));
        let rules = self.rules.extract_if(.., |r| gone(r.missing.is_some(), &r.target));
        let mut all = entries.chain(rules.map(|rule| (rule.need, rule.missing)));
        match all.find_map(|(need, missing)| missing.filter(|_| need == Need::Required)) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// One entry for each place, as systemd's drop_duplicates().
    fn merge(&mut self) {
        self.entries
            .sort_by(|a, b| a.target.cmp(&b.target).then_with(|| a.cover.rank().cmp(&b.cover.rank())));
        self.entries.dedup_by(|dropped, kept| {
            if dropped.target != kept.target {
                return false;
            }
            kept.read_only |= dropped.read_only;
            if dropped.need == Need::Made {
                kept.need = Need::Made;
            }
            true
        });
    }

    /// Mounts of their own for the unit's folders that would be read-only.
    fn keep_own_writable(&mut self) {
        for own in std::mem::take(&mut self.own) {
            let upper = self.entries.iter().rev().find(|entry| own.target.starts_with(&entry.target));
            if upper.is_some_and(|upper| upper.read_only && upper.target != own.target) {
                self.entries.push(own);
                self.entries.sort_by(|a, b| a.target.cmp(&b.target));
            }
        }
    }

    /// Mounts of their own for places that have none but a rule, as flags are those of a mount.
    fn cover_places_with_rules(&mut self) {
        // Where two rules contradict each other the one that takes away counts.
        self.rules.sort_by(|a, b| a.target.cmp(&b.target).then_with(|| a.allowed.cmp(&b.allowed)));
        self.rules.dedup_by(|second, first| second.target == first.target);
        let uncovered = |rule: &&Rule| self.entries.iter().all(|entry| entry.target != rule.target);
        let further: Vec<Entry> = self
            .rules
            .iter()
            .filter(uncovered)
            .map(|rule| {
                let upper = self.entries.iter().rev().find(|entry| rule.target.starts_with(&entry.target));
                let cover = match upper.map(|entry| &entry.cover) {
                    None | Some(Cover::AsItIs) => Cover::AsItIs,
                    Some(Cover::ReadOnly) => Cover::ReadOnly,
                    Some(_) => Cover::Again,
                };
                Entry::new(rule.key, rule.target.clone(), Need::Optional, cover)
            })
            .collect();
        self.entries.extend(further);
        self.entries.sort_by(|a, b| a.target.cmp(&b.target));
    }

    /// The rule for a place: that of the place, or of the nearest one above it.
    fn rule_for(&self, target: &Path) -> Option<&Rule> {
        self.rules.iter().rev().find(|rule| target.starts_with(&rule.target))
    }

    /// Where the source of a bind leads; none if it may be missing and is.
    ///
    /// # Errors
    /// It has to be there and is not.
    pub fn source(
        &self,
        key: &'static str,
        path: &Path,
        optional: bool,
    ) -> Result<Option<PathBuf>, SpawnFailure> {
        match fs::canonicalize(path) {
            Ok(path) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && optional => Ok(None),
            Err(error) => Err(failed(key, path, &error)),
        }
    }

    /// A folder of the manager's own, filled by `fill`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn prepare(
        &self,
        key: &'static str,
        name: &str,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, SpawnFailure> {
        let folder = self.place.runtime.join("sandbox").join(name);
        let made = fs::create_dir_all(&folder).and_then(|()| fill(&folder));
        made.and_then(|()| fs::canonicalize(&folder)).map_err(|error| failed(key, &folder, &error))
    }

    /// What the places show, in order.
    ///
    /// # Errors
    /// A place has to be there and is not.
    pub fn shown(mut self) -> Result<Vec<(PathBuf, Shown)>, SpawnFailure> {
        self.arrange()?;
        let shown = |entry: Entry| match entry.cover {
            // What is above it is shown.
            Cover::Again => None,
            Cover::AsItIs | Cover::ReadOnly => Some((entry.target, Shown::Own)),
            Cover::Tree { source, recursive: true, .. } => Some((entry.target, Shown::Elsewhere(source))),
            _ => Some((entry.target, Shown::Hidden)),
        };
        Ok(self.entries.into_iter().filter_map(shown).collect())
    }

    /// The mounts, in order, and what they leave open.
    ///
    /// # Errors
    /// A place has to be there and is not, or what covers it cannot be made.
    pub fn finish(mut self) -> Result<(Vec<MountEntry>, Open), SpawnFailure> {
        self.arrange()?;
        let mut mounts = Vec::new();
        let mut last = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            self.make_place(entry, &self.entries[..index], &mut mounts)?;
            mounts.push(self.mount(entry)?);
            if self.is_shut_memory(entry) {
                last.push(in_place(entry.key, &entry.target, false, MountFlags::READ_ONLY)?);
            }
        }
        // Upper ones cover all that is in them, so places in memory are shut last.
        mounts.extend(last);
        Ok((mounts, self.open()))
    }

    /// One entry for each place that is to be covered, in order.
    fn arrange(&mut self) -> Result<(), SpawnFailure> {
        self.settle_missing()?;
        self.merge();
        self.keep_own_writable();
        self.cover_places_with_rules();
        let shut: Vec<PathBuf> = self
            .entries
            .iter()
            .filter(|e| matches!(e.cover, Cover::Inaccessible))
            .map(|e| e.target.clone())
            .collect();
        let within = |target: &Path| shut.iter().any(|shut| target != shut && target.starts_with(shut));
        self.entries.retain(|entry| !within(&entry.target));
        self.leave_out_what_is_covered();
        Ok(())
    }

    /// Whether it is a place in memory that nothing can be written to, or a part of one that has flags of its own.
    fn is_shut_memory(&self, entry: &Entry) -> bool {
        let upper = |lower: &Entry| {
            self.entries
                .iter()
                .rev()
                .find(|e| e.target != lower.target && lower.target.starts_with(&e.target))
        };
        let mut place = Some(entry);
        while let Some(again) = place.filter(|place| matches!(place.cover, Cover::Again)) {
            place = upper(again);
        }
        place.is_some_and(|place| place.read_only && matches!(place.cover, Cover::Temporary { .. }))
    }

    /// What is left open where all else is shut: who may write or execute at the top may do so in what is not named.
    fn open(&self) -> Open {
        let top = fs::canonicalize(self.place.root.unwrap_or(Path::new("/"))).unwrap_or_default();
        let shut = self.entries.iter().any(|e| e.target == top && matches!(e.cover, Cover::ReadOnly));
        let ruled = self.rules.iter().any(|rule| rule.target == top && !rule.allowed);
        let written = self.entries.iter().filter(|entry| entry.target != top && entry.is_for_writing());
        let executed = self.rules.iter().filter(|rule| rule.allowed);
        Open {
            written: shut.then(|| written.map(|entry| entry.target.clone()).collect()),
            executed: ruled.then(|| executed.map(|rule| rule.target.clone()).collect()),
        }
    }

    /// What is optional and not to be found in what covers the place above it goes.
    fn leave_out_what_is_covered(&mut self) {
        let uppers: Vec<(PathBuf, Cover)> =
            self.entries.iter().map(|entry| (entry.target.clone(), entry.cover.clone())).collect();
        self.entries.retain(|entry| {
            let above = |target: &Path| entry.target != target && entry.target.starts_with(target);
            let upper = uppers.iter().rev().find(|(target, _)| above(target));
            let Some((target, cover)) = upper.filter(|_| entry.need == Need::Optional) else { return true };
            let below = entry.target.strip_prefix(target).unwrap_or(&entry.target);
            match cover {
                Cover::Tree { source, .. } => source.join(below).exists(),
                Cover::Processes { options } => !options.contains("subset=pid"),
                _ => true,
            }
        });
    }

    fn mount(&self, entry: &Entry) -> Result<MountEntry, SpawnFailure> {
        let tree = |source: &Path, recursive| -> Result<Mount, SpawnFailure> {
            Ok(Mount::Tree { source: c_path(source)?, recursive })
        };
        let rule = self.rule_for(&entry.target);
        let ruled = match rule {
            Some(Rule { allowed: false, .. }) => MountFlags::NO_EXEC,
            _ => MountFlags::default(),
        };
        let is_all = entry.target == Path::new("/");
        let (mount, flags) = match &entry.cover {
            Cover::ReadOnly if is_all => {
                return in_place(entry.key, &entry.target, true, MountFlags::READ_ONLY.and(ruled));
            }
            Cover::AsItIs if is_all => return in_place(entry.key, &entry.target, true, ruled),
            // A mount on the root of a process is below that root, and hides nothing from it.
            _ if is_all => {
                let text = format!("{}: / can only be another with RootDirectory", entry.key);
                return Err(step(EXIT_NAMESPACE, text));
            }
            Cover::Again => (Mount::Again, MountFlags::default()),
            // By keys of paths that the unit has: in a bind, those are paths in what is bound.
            Cover::ReadOnly | Cover::AsItIs => {
                let within =
                    if entry.key.ends_with("Paths") { self.within_a_bind(&entry.target) } else { None };
                let (source, recursive) = within.unwrap_or_else(|| (entry.target.clone(), true));
                (tree(&source, recursive)?, MountFlags::default())
            }
            Cover::Tree { source, recursive, flags } => (tree(source, *recursive)?, *flags),
            Cover::Inaccessible => {
                let flags = MountFlags::READ_ONLY.and(MountFlags::INERT);
                (tree(&self.inaccessible(entry)?, false)?, flags)
            }
            Cover::Temporary { options, .. } => (new("tmpfs", options)?, MountFlags::default()),
            Cover::Processes { options } => (new("proc", options)?, MountFlags::INERT),
            Cover::Queues => (new("mqueue", "")?, MountFlags::INERT),
        };
        // A place in memory is shut once what is mounted in it has its place.
        let flags = match entry.read_only && !matches!(entry.cover, Cover::Temporary { .. }) {
            true => flags.and(MountFlags::READ_ONLY),
            false => flags,
        };
        let executable = rule.is_some_and(|rule| rule.allowed && rule.target == entry.target);
        let (target, flags) = (c_path(&entry.target)?, flags.and(ruled));
        Ok(MountEntry { key: entry.key, target, mount, flags, executable, optional: false })
    }

    /// An empty folder or file that nobody may do anything with. Root may open a file whatever its mode says, so a device is
    /// covered by a socket, which nobody can open.
    fn inaccessible(&self, entry: &Entry) -> Result<PathBuf, SpawnFailure> {
        let place =
            self.within_a_bind(&entry.target).map_or_else(|| entry.target.clone(), |(place, _)| place);
        let kind = match fs::metadata(place).map(|there| there.file_type()) {
            Ok(kind) if kind.is_dir() => "folder",
            // What is not there is made as a folder.
            Err(_) => "folder",
            Ok(kind) if kind.is_char_device() || kind.is_block_device() => "device",
            Ok(_) => "file",
        };
        let path = self.prepare(entry.key, "inaccessible", |folder| {
            let path = folder.join(kind);
            match kind {
                _ if path.exists() => {}
                "folder" => fs::DirBuilder::new().mode(0o000).create(&path)?,
                "device" => drop(UnixDatagram::bind(&path)?),
                _ => fs::write(&path, "")?,
            }
            fs::set_permissions(path, fs::Permissions::from_mode(0o000))
        })?;
        Ok(path.join(kind))
    }

    /// Sees to it that there is something to mount on: below what is in memory in the child, else here.
    fn make_place(
        &self,
        entry: &Entry,
        above: &[Entry],
        mounts: &mut Vec<MountEntry>,
    ) -> Result<(), SpawnFailure> {
        let is_folder = match &entry.cover {
            Cover::Tree { source, .. } => source.is_dir(),
            _ => !entry.target.exists() || entry.target.is_dir(),
        };
        let memory = above.iter().rev().find(|upper| entry.target.starts_with(&upper.target));
        if let Some(upper) = memory.filter(|upper| matches!(upper.cover, Cover::Temporary { .. })) {
            return places_in_memory(entry, &upper.target, is_folder, mounts);
        }
        if entry.need != Need::Made || entry.target.exists() {
            return Ok(());
        }
        let parent = entry.target.parent().unwrap_or(Path::new("/"));
        let made = if is_folder {
            fs::create_dir_all(&entry.target)
        } else {
            fs::create_dir_all(parent).and_then(|()| fs::write(&entry.target, ""))
        };
        made.map_err(|error| failed(entry.key, &entry.target, &error))
    }
}

/// Folders down to the place, and the place itself.
fn places_in_memory(
    entry: &Entry,
    upper: &Path,
    is_folder: bool,
    mounts: &mut Vec<MountEntry>,
) -> Result<(), SpawnFailure> {
    let below = entry.target.strip_prefix(upper).unwrap_or(&entry.target);
    let mut path = upper.to_owned();
    let count = below.components().count();
    for (index, part) in below.components().enumerate() {
        path.push(part);
        let mount = if is_folder || index + 1 < count { Mount::Folder } else { Mount::File };
        let target = c_path(&path)?;
        mounts.push(MountEntry {
            key: entry.key,
            target,
            mount,
            flags: MountFlags::default(),
            executable: false,
            optional: false,
        });
    }
    Ok(())
}

fn in_place(
    key: &'static str,
    target: &Path,
    recursive: bool,
    flags: MountFlags,
) -> Result<MountEntry, SpawnFailure> {
    let mount = Mount::InPlace { recursive };
    Ok(MountEntry { key, target: c_path(target)?, mount, flags, executable: false, optional: false })
}

fn new(fstype: &str, options: &str) -> Result<Mount, SpawnFailure> {
    let text = |text: &str| CString::new(text).map_err(|_| resources(format!("{text:?} has a NUL byte")));
    Ok(Mount::New { fstype: text(fstype)?, options: text(options)? })
}

fn failed(key: &str, path: &Path, error: &io::Error) -> SpawnFailure {
    step(EXIT_NAMESPACE, format!("{key}: {}: {error}", path.display()))
}
