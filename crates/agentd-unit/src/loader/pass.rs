//! One pass over the index: from names to units, and the edges and instances between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::{Entry, Index, Pull};
use super::read::{Batch, ReadFiles, Shelf};
use super::scan::is_empty;
use super::{Gate, LoaderConfig, Problem, both, builtin};
use crate::name::{UnitName, UnitType};
use crate::sections::TimerTrigger;
use crate::unit::{Body, LoadState, Unit};

/// So many instances are made because other units name them. Templates can name instances of templates without end.
const MAX_INSTANCES: usize = 4096;

/// Whose folders of links count in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// Everybody's; a folder without an owner is a problem.
    All,
    /// Those of the units that were loaded.
    Loaded,
}

/// The files of a unit; none: it is masked by an empty one.
type Found = Result<Option<ReadFiles>, String>;

/// The unit of a file, and the units that it brings.
type Made = (Arc<Unit>, Vec<Unit>);

/// One pass over the index.
pub(super) struct Pass<'a> {
    config: &'a LoaderConfig,
    index: &'a Index,
    gate: &'a dyn Gate,
    shelf: Shelf<'a>,
    /// By unit: the links that lead to it.
    aliases: BTreeMap<UnitName, Vec<UnitName>>,
    /// The units that a folder of links pulls in.
    linked: BTreeSet<&'a UnitName>,
    /// Where services lie that name no slice.
    slice: Option<UnitName>,
    /// Each in the place where the set will keep it: nothing is moved or copied on the way there.
    pub(super) units: BTreeMap<UnitName, Arc<Unit>>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(config: &'a LoaderConfig, index: &'a Index, gate: &'a dyn Gate) -> Self {
        let mut aliases: BTreeMap<UnitName, Vec<UnitName>> = BTreeMap::new();
        for (alias, entry) in &index.units {
            if matches!(entry, Entry::Alias { .. })
                && let Ok(id) = index.resolve(alias)
            {
                aliases.entry(id).or_default().push(alias.clone());
            }
        }
        let counting = index.pulls.iter().filter(|(_, counts)| **counts);
        let linked = counting.map(|((_, _, name), _)| name).collect();
        let (units, problems) = (BTreeMap::new(), Vec::new());
        let (shelf, slice) = (Shelf::default(), UnitName::default_slice(config.scope));
        Self { config, index, gate, shelf, aliases, linked, slice, units, problems }
    }

    /// Loads all that the index has, and what that names.
    pub(super) fn all(&mut self, instances: &[UnitName]) {
        // What has a file of its own is read by then.
        let other = self.index.units.iter().filter(|(_, entry)| !matches!(entry, Entry::File(_)));
        let names = other.map(|(name, _)| name).chain(self.index.markers.keys()).chain(instances);
        let names: Vec<UnitName> = names.filter(|name| !name.is_template()).cloned().collect();
        self.files();
        for name in &names {
            self.one_or_its_service(name);
        }
        self.referenced_instances();
        self.slices_with_drop_ins();
        self.pulls(Owners::All);
        for unit in builtin::missing_targets(|name| self.units.contains_key(name)) {
            self.units.insert(unit.name.clone(), Arc::new(unit));
        }
        let default = builtin::default_target(self.units.values().map(Arc::as_ref));
        for unit in default.into_iter().filter(|unit| self.index.resolve(&unit.name).is_err()) {
            self.units.insert(unit.name.clone(), Arc::new(unit));
        }
        self.installed_aliases();
        self.timers_of_lasting_services();
    }

    /// Reads every unit that has a file of its own, before all others: nearly all.
    fn files(&mut self) {
        let named = |(name, entry): (&'a UnitName, &'a Entry)| match entry {
            Entry::File(path) if !name.is_template() => Some((name, path)),
            _ => None,
        };
        let files: Vec<_> = self.index.units.iter().filter_map(named).collect();
        let made = both::read_and_make(
            self.index.door,
            &files,
            |shelf, files, batch: &mut Batch| {
                batch.clear();
                files.iter().for_each(|(name, path)| self.read_files(name, path, shelf, batch));
            },
            |shelf, files, batch, each| {
                for (place, (name, path)) in files.iter().enumerate() {
                    let found = batch.take(place, shelf);
                    each(self.made(name, path, found, shelf));
                }
            },
        );
        if made.iter().all(|(_, own)| own.is_empty()) {
            // In order already, so that no place is looked for.
            self.units = made.into_iter().map(|(unit, _)| (unit.name.clone(), unit)).collect();
        } else {
            made.into_iter().for_each(|made| self.keep(made));
        }
    }

    /// Loads the slices without a file that drop-ins say something of: by their name, or by a prefix of it. Others are
    /// as their name says.
    fn slices_with_drop_ins(&mut self) {
        let stems = || self.index.drop_ins.keys().filter(|stem| stem.ends_with("slice"));
        if stems().next().is_none() {
            return;
        }
        let named = stems().filter_map(|stem| UnitName::parse(stem).ok());
        let above = |name: &UnitName| name.parent_slice();
        let used = self.units.values().filter_map(|unit| unit.slice());
        let used = used.flat_map(|slice| std::iter::successors(Some(slice), above));
        let slices: BTreeSet<UnitName> = named.chain(used).filter(UnitName::is_slice).collect();
        for slice in &slices {
            self.one(slice);
        }
    }

    /// Gives enabled units the names of their `Alias`. A name that is a unit's or a link's stays that; of two units
    /// that want one name the first in order has it.
    fn installed_aliases(&mut self) {
        let mut taken: BTreeMap<UnitName, UnitName> = BTreeMap::new();
        let wants = |unit: &Unit| unit.enabled && !unit.install.alias.is_empty();
        if !self.units.values().any(|unit| wants(unit)) {
            return;
        }
        let ids: BTreeSet<UnitName> = self.units.keys().cloned().collect();
        for unit in self.units.values_mut().filter(|unit| wants(unit)) {
            let unit = Arc::make_mut(unit);
            let instance = unit.name.instance().unwrap_or_default().to_owned();
            // A template's other name, as its instance has it.
            let of_instance = |alias: &UnitName| match alias.is_template() {
                false => Some(alias.clone()),
                true => UnitName::of_instance(alias, &instance),
            };
            let wanted = unit.install.alias.iter().filter_map(of_instance);
            let wanted: Vec<UnitName> = wanted.filter(|alias| !unit.aliases.contains(alias)).collect();
            let mut given = Vec::new();
            for alias in &wanted {
                let in_use = ids.contains(alias) || self.index.units.contains_key(alias);
                match taken.get(alias).or(in_use.then_some(alias)) {
                    Some(owner) => {
                        unit.warnings.push(format!("[Install] Alias: {alias} is already a name of {owner}"));
                    }
                    None => {
                        taken.insert(alias.clone(), unit.name.clone());
                        given.push(alias.clone());
                    }
                }
            }
            unit.aliases.append(&mut given);
        }
    }

    /// Loads one unit, and what it can cause to start and nobody knows yet.
    pub(super) fn with_references(&mut self, name: &UnitName, is_known: &dyn Fn(&UnitName) -> bool) {
        let mut waiting = BTreeSet::from([name.clone()]);
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop_first() {
            if seen.len() > MAX_INSTANCES || !seen.insert(name.clone()) {
                continue;
            }
            self.one_or_its_service(&name);
            let id = self.index.resolve(&name).unwrap_or(name);
            let Some(unit) = self.units.get(&id) else { continue };
            let (edges, others) = references(unit);
            waiting.extend(edges.cloned().chain(others).filter(|name| !is_known(name)));
        }
        self.pulls(Owners::Loaded);
    }

    /// Loads a unit; a timer, socket or path unit without a file may come from the file of its service.
    fn one_or_its_service(&mut self, name: &UnitName) {
        self.one(name);
        if !self.units.contains_key(name) && is_brought(name) {
            self.one(&name.with_type(UnitType::Service));
        }
    }

    /// Loads the unit that a name leads to, unless that was done.
    pub(super) fn one(&mut self, name: &UnitName) {
        let unit = match self.index.units.get(name) {
            Some(Entry::Alias { path, .. }) => match self.index.resolve(name) {
                Ok(id) => return self.one(&id),
                Err(why) => failed(name, path, &why),
            },
            Some(Entry::Bad { path, why }) => failed(name, path, why),
            Some(Entry::Mask(path)) => masked(name, path),
            Some(Entry::File(path)) => return self.file(name, path),
            Some(Entry::Instance) | None => {
                let Some(template) = name.template() else { return self.slice(name) };
                if let Some(id) = self.index.resolve(name).ok().filter(|id| id != name) {
                    return self.one(&id);
                }
                match self.index.resolve(&template).ok().and_then(|id| self.index.units.get(&id)) {
                    Some(Entry::File(path)) => return self.file(name, path),
                    Some(Entry::Bad { path, why }) => failed(name, path, why),
                    Some(Entry::Mask(path)) => masked(name, path),
                    _ => return,
                }
            }
        };
        self.units.entry(name.clone()).or_insert_with(|| Arc::new(unit));
    }

    /// A slice needs no file, and may have drop-ins all the same.
    fn slice(&mut self, name: &UnitName) {
        if !name.is_slice() || self.units.contains_key(name) {
            return;
        }
        let mut batch = Batch::default();
        batch.read_slice(name, (self.config, self.index, &mut self.shelf));
        let unit = match batch.take(0, &mut self.shelf) {
            Ok(None) => Unit::without_file(name.clone()),
            Ok(Some(read)) => {
                let mut unit = read.parse(name, &mut self.shelf, (self.config, self.gate)).0;
                if let Some(slice) = &self.slice {
                    unit.place(slice);
                }
                unit
            }
            Err(why) => {
                let mut unit = Unit::not_found(name.clone());
                unit.load = LoadState::Error(why);
                unit
            }
        };
        self.units.insert(name.clone(), Arc::new(unit));
    }

    /// Reads a unit's files, asks the gate and parses.
    fn file(&mut self, name: &UnitName, path: &Arc<Path>) {
        if !self.units.contains_key(name) {
            let mut shelf = std::mem::take(&mut self.shelf);
            let mut batch = Batch::default();
            self.read_files(name, path, &mut shelf, &mut batch);
            let found = batch.take(0, &mut shelf);
            let made = self.made(name, path, found, &mut shelf);
            self.shelf = shelf;
            self.keep(made);
        }
    }

    /// The unit of a file, and the units that it brings.
    fn made(&self, name: &UnitName, path: &Arc<Path>, found: Found, shelf: &mut Shelf<'_>) -> Made {
        let (mut unit, own) = self.parsed(name, path, found, shelf);
        unit.aliases = self.aliases_of(name);
        if let Some(slice) = &self.slice {
            unit.place(slice);
        }
        unit.enabled = self.is_enabled(name, name, &unit);
        let enabled = |mut other: Unit| {
            other.enabled = self.is_enabled(&other.name, name, &other);
            other
        };
        (Arc::new(unit), own.into_iter().map(enabled).collect())
    }

    /// The links to a unit, and of an instance the links to its template.
    fn aliases_of(&self, name: &UnitName) -> Vec<UnitName> {
        let mut names = self.aliases.get(name).cloned().unwrap_or_default();
        if let (Some(template), Some(instance)) = (name.template(), name.instance()) {
            let others = self.aliases.get(&template).into_iter().flatten();
            let others = others.filter_map(|other| UnitName::of_instance(other, instance));
            let is_new = |other: &UnitName| !matches!(self.index.units.get(other), Some(Entry::File(_)));
            let others: Vec<UnitName> =
                others.filter(is_new).filter(|other| !names.contains(other)).collect();
            names.extend(others);
        }
        names
    }

    /// Takes in what a file makes. What came with its service stays that.
    fn keep(&mut self, (unit, own): Made) {
        for other in own {
            self.own_unit(other, &unit);
        }
        self.units.entry(unit.name.clone()).or_insert(unit);
    }

    /// A template as a unit, which it is not: only to see whether it can be used and has `[Install]`.
    pub(super) fn template(&self, name: &UnitName, path: &Arc<Path>) -> Unit {
        let (mut shelf, mut batch) = (Shelf::default(), Batch::default());
        batch.read(name, path, &[], (self.config, self.index, &mut shelf));
        let found = batch.take(0, &mut shelf);
        self.parsed(name, path, found, &mut shelf).0
    }

    /// Reads the files of a unit.
    fn read_files(&self, name: &UnitName, path: &Arc<Path>, shelf: &mut Shelf<'a>, batch: &mut Batch) {
        batch.read(name, path, &self.aliases_of(name), (self.config, self.index, shelf));
    }

    /// What a unit's files say, and the units that they bring.
    fn parsed(
        &self,
        name: &UnitName,
        path: &Arc<Path>,
        found: Found,
        shelf: &mut Shelf<'_>,
    ) -> (Unit, Vec<Unit>) {
        match found {
            Ok(Some(read)) => read.parse(name, shelf, (self.config, self.gate)),
            Ok(None) => (masked(name, path), Vec::new()),
            Err(why) => {
                let mut unit = Unit::not_found(name.clone());
                unit.load = LoadState::Error(why);
                unit.fragment = Some(Arc::clone(path));
                (unit, Vec::new())
            }
        }
    }

    /// Takes a timer, socket or path unit that a service brings, unless there is a file for it: which of the two is meant
    /// is for the author to say.
    fn own_unit(&mut self, mut own: Unit, service: &Unit) {
        let found = self.index.units.get(&own.name);
        if let Some(Entry::Mask(path)) = found {
            own.load = LoadState::Masked;
            own.fragment = Some(Arc::clone(path));
        } else if let Some(Entry::File(path)) = found
            && is_empty(path)
        {
            own.load = LoadState::Masked;
            own.fragment = Some(Arc::clone(path));
        } else if let Some(Entry::File(path) | Entry::Bad { path, .. }) = found {
            let why = format!(
                "there are two definitions of {}: {} and the [{}] of {}; keep one",
                own.name,
                path.display(),
                section_of(&own.name),
                service.name
            );
            own.load = LoadState::Error(why);
        }
        let drop_ins = self.index.drop_ins.get(own.name.as_str());
        if let Some(drop_in) = drop_ins.and_then(|files| files.first()) {
            let (own, service) = (&own.name, &service.name);
            let section = section_of(own);
            let message =
                format!("is not used: {own} comes from {service}; write [{section}] into {service}.d");
            self.problems.push(Problem { path: drop_in.path.to_path_buf(), message });
        }
        self.units.insert(own.name.clone(), Arc::new(own));
    }

    /// Markers decide, the `/etc` ones before the `/run` ones; else `[Install]`, or for a file in systemd's syntax the
    /// links to it. An instance that is there only because something names it is not enabled by its template's
    /// `[Install]`.
    fn is_enabled(&self, name: &UnitName, file: &UnitName, unit: &Unit) -> bool {
        let marker = self.index.markers.get(name).or_else(|| self.index.markers.get(file));
        let by_itself = file.template().is_none() || self.index.units.contains_key(file);
        let is_linked = || self.linked.contains(name) || self.aliases.contains_key(name);
        let default = match unit.install.enabled {
            Some(enabled) => by_itself && enabled,
            None if unit.implicit_order => by_itself,
            None => is_linked(),
        };
        unit.install.present && marker.copied().unwrap_or(default)
    }

    /// Makes the instances that units name, and those that these name.
    fn referenced_instances(&mut self) {
        let mut made = 0;
        let is_instance = |name: &&UnitName| name.instance().is_some_and(|instance| !instance.is_empty());
        let mut waiting = BTreeSet::new();
        for unit in self.units.values() {
            let (edges, others) = references(unit);
            waiting.extend(edges.chain(&others).filter(is_instance).cloned());
        }
        waiting.extend(
            self.index.pulls.iter().filter(|(_, counts)| **counts).map(|((_, _, name), _)| name.clone()),
        );
        while let Some(name) = waiting.pop_first() {
            if self.units.contains_key(&name) || name.template().is_none() {
                continue;
            }
            self.one(&name);
            let id = self.index.resolve(&name).unwrap_or(name);
            let Some(unit) = self.units.get(&id) else { continue };
            made += 1;
            if made > MAX_INSTANCES {
                let message = format!(
                    "units name more than {MAX_INSTANCES} instances of templates; {id} and further ones are not made"
                );
                let path = unit.fragment.as_deref().map(Path::to_path_buf).unwrap_or_default();
                self.problems.push(Problem { path, message });
                self.units.remove(&id);
                return;
            }
            let (edges, others) = references(unit);
            waiting.extend(edges.cloned().chain(others));
        }
    }

    /// Adds the edges of `.wants/`, `.requires/` and `.upholds/` to the units that own the folders.
    pub(super) fn pulls(&mut self, owners: Owners) {
        for ((owner, pull, name), _) in self.index.pulls.iter().filter(|(_, counts)| **counts) {
            let id = self.index.resolve(owner).unwrap_or_else(|_| owner.clone());
            if !self.units.contains_key(&id) {
                if owners == Owners::Loaded {
                    continue;
                }
                for unit in builtin::missing_targets(|known| *known != id) {
                    self.units.insert(unit.name.clone(), Arc::new(unit));
                }
            }
            let Some(unit) = self.units.get_mut(&id).map(Arc::make_mut) else {
                let message = format!("its folder of links is not used: there is no unit {owner}");
                self.problems.push(Problem { path: PathBuf::from(owner.as_str()), message });
                continue;
            };
            let edges = match pull {
                Pull::Wants => &mut unit.unit.wants,
                Pull::Requires => &mut unit.unit.requires,
                Pull::Upholds => &mut unit.unit.upholds,
            };
            if *name != id && edges.insert(name.clone()) {
                unit.digest =
                    crate::digest::digest([&unit.digest[..], name.as_str().as_bytes(), &[*pull as u8]]);
            }
        }
    }

    /// A service that stays active after its end is started by its timer once and never again.
    fn timers_of_lasting_services(&mut self) {
        let lasting = |unit: &Unit| unit.as_service().is_some_and(|body| body.service.remain_after_exit);
        let lasting: BTreeSet<UnitName> =
            self.units.values().filter(|u| lasting(u)).map(|u| u.name.clone()).collect();
        for unit in self.units.values_mut() {
            let Body::Timer(timer) = &unit.body else { continue };
            let started = timer.unit.clone().unwrap_or_else(|| unit.name.with_type(UnitType::Service));
            let once = |t: &TimerTrigger| {
                matches!(t, TimerTrigger::Active(_) | TimerTrigger::Boot(_) | TimerTrigger::Startup(_))
            };
            if lasting.contains(&started) && !timer.triggers.iter().all(once) {
                let warning = format!(
                    "{started} has RemainAfterExit and stays active, so this timer starts it once only"
                );
                Arc::make_mut(unit).warnings.push(warning);
            }
        }
    }
}

/// A unit whose file cannot be used.
fn failed(name: &UnitName, path: &Arc<Path>, why: &str) -> Unit {
    let mut unit = Unit::not_found(name.clone());
    unit.load = LoadState::Error(format!("{}: {why}", path.display()));
    unit.fragment = Some(Arc::clone(path));
    unit
}

/// A unit that must not start.
fn masked(name: &UnitName, path: &Arc<Path>) -> Unit {
    let mut unit = Unit::not_found(name.clone());
    unit.load = LoadState::Masked;
    unit.fragment = Some(Arc::clone(path));
    unit
}

/// Whether a service's file can bring units of this type.
pub(super) fn is_brought(name: &UnitName) -> bool {
    matches!(name.unit_type(), UnitType::Timer | UnitType::Socket | UnitType::Path)
}

/// The section that makes such a unit.
fn section_of(name: &UnitName) -> &'static str {
    match name.unit_type() {
        UnitType::Socket => "Socket",
        UnitType::Path => "Path",
        _ => "Timer",
    }
}

/// The units that a unit can cause to start: by its edges, and otherwise.
fn references(unit: &Unit) -> (impl Iterator<Item = &UnitName>, Vec<UnitName>) {
    let u = &unit.unit;
    let edges = [&u.requires, &u.requisite, &u.wants, &u.binds_to, &u.upholds, &u.on_failure, &u.on_success];
    let mut others: Vec<UnitName> = unit.triggered().into_iter().collect();
    if let Some(body) = unit.as_service() {
        others.extend(body.service.life.sockets.iter().cloned());
    }
    others.extend(unit.slice());
    (edges.into_iter().flatten(), others)
}
