//! From the search path to a set of units.
//!
//! # Invariants
//!
//! - Every file is opened once; the bytes that the gate saw are the bytes that are parsed.
//! - Whatever is wrong with one unit's files is that unit's load state; every other unit is as if it were not there.
//! - Nothing is executed, no link is followed by the kernel, and nothing blocks.

mod both;
mod builtin;
mod door;
mod files;
mod gate;
mod index;
mod open;
mod pass;
mod read;
mod remembered;
mod scan;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use door::{Door, Kind, OpenFolder, StandardDoor};
pub use files::{FileState, NamedFile};
pub use gate::{Admission, Gate, OpenGate, UnitFile, UnitFiles};
pub use index::drop_in_stems;
pub use open::{MAX_FILE, OpenError, Trusted, read_file};
pub use remembered::Remembered;

use crate::name::{UnitName, UnitType};
use crate::search_path::{Scope, SearchPath};
use crate::set::UnitSet;
use crate::specifier::SpecifierContext;
use crate::unit::{LoadState, Unit};
use crate::zone::LocalZone;
use index::Index;
use pass::Pass;

/// What loading hangs on besides the files.
#[derive(Debug, Clone)]
pub struct LoaderConfig {
    /// The folders.
    pub search: SearchPath,
    /// Whose units they are, which says where in the cgroup tree they lie.
    pub scope: Scope,
    /// Who may own them and what lies in them.
    pub trusted: Trusted,
    /// The values of specifiers.
    pub specifiers: SpecifierContext,
    /// The zone of calendars that name none.
    pub zone: LocalZone,
}

/// Something wrong in the search path that belongs to no unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub message: String,
}

impl Problem {
    fn of(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// What came of one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadReport {
    /// All units, the bad ones too.
    pub set: UnitSet,
    /// The templates, of which instances can be made by name.
    pub templates: Vec<UnitName>,
    /// Every name of the search path with what it is for the boot, in the order of names.
    pub files: Vec<NamedFile>,
    /// What is wrong and belongs to no unit.
    pub problems: Vec<Problem>,
}

/// Loads units.
#[derive(Debug, Clone)]
pub struct Loader {
    config: LoaderConfig,
    door: &'static dyn Door,
}

impl Loader {
    /// A loader that asks the kernel by way of the standard library; nothing is read yet.
    #[must_use]
    pub const fn new(config: LoaderConfig) -> Self {
        Self { config, door: &StandardDoor }
    }

    /// The same loader with another way to the kernel.
    #[must_use]
    pub const fn through(mut self, door: &'static dyn Door) -> Self {
        self.door = door;
        self
    }

    /// What it loads from.
    #[must_use]
    pub const fn config(&self) -> &LoaderConfig {
        &self.config
    }

    /// Reads everything in the search path, anew.
    #[must_use]
    pub fn load(&self, gate: &dyn Gate) -> LoadReport {
        self.load_with(&[], gate)
    }

    /// Reads everything in the search path, anew, and makes these instances of templates too: those that somebody
    /// asked for by name, and that no unit names.
    #[must_use]
    pub fn load_with(&self, instances: &[UnitName], gate: &dyn Gate) -> LoadReport {
        let index = Index::scan(&self.config.search, &self.config.trusted, self.door);
        let mut pass = Pass::new(&self.config, &index, gate);
        pass.all(instances);
        let files = files::states(&index, &pass);
        let Pass { units, mut problems, .. } = pass;
        let set = UnitSet::of(units);
        problems.splice(0..0, index.problems.iter().cloned());
        let templates = index.units.keys().filter(|name| name.is_template()).cloned().collect();
        LoadReport { set, templates, files, problems }
    }

    /// Reads one unit by any of its names, anew; an instance is made from its template. Without a file the unit is
    /// `NotFound`, or an error if a folder could not be read that may hold it.
    #[must_use]
    pub fn load_unit(&self, name: &UnitName, gate: &dyn Gate) -> Unit {
        let index = Index::scan(&self.config.search, &self.config.trusted, self.door);
        let mut pass = Pass::new(&self.config, &index, gate);
        pass.one(name);
        let id = index.resolve(name).unwrap_or_else(|_| name.clone());
        // A timer, socket or path unit may come from the file of its service.
        if !pass.units.contains_key(&id) && pass::is_brought(name) {
            pass.one(&name.with_type(UnitType::Service));
        }
        pass.pulls(pass::Owners::Loaded);
        match pass.units.remove(&id) {
            Some(unit) => Arc::unwrap_or_clone(unit),
            None => index.perhaps(&id).unwrap_or_else(|| Unit::without_file(id)),
        }
    }

    /// Reads a unit that is not known yet, and those that it can cause to start and that are not known either, as
    /// systemd loads units when they are first named; the known one that it is another name of, too. Empty if nothing is
    /// found under the name, unless a folder could not be read that may hold it: then a unit that says so.
    #[must_use]
    pub fn find(&self, name: &UnitName, is_known: &dyn Fn(&UnitName) -> bool, gate: &dyn Gate) -> UnitSet {
        let index = Index::scan(&self.config.search, &self.config.trusted, self.door);
        let mut pass = Pass::new(&self.config, &index, gate);
        pass.with_references(name, is_known);
        let mut set = UnitSet::new();
        let perhaps = if pass.units.is_empty() { index.perhaps(name).map(Arc::new) } else { None };
        let named = index.resolve(name).ok();
        let is_new = |id: &UnitName| !is_known(id) || named.as_ref() == Some(id);
        let found = pass.units.into_iter().filter(|(id, _)| is_new(id)).map(|(_, unit)| unit);
        found.chain(perhaps).for_each(|unit| set.insert(unit));
        set
    }

    /// An instance of a template, if its template can be loaded or at least found.
    #[must_use]
    pub fn instantiate(&self, name: &UnitName, gate: &dyn Gate) -> Option<Unit> {
        name.template()?;
        Some(self.load_unit(name, gate)).filter(|unit| unit.load != LoadState::NotFound)
    }
}
