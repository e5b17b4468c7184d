//! What each name in the search path is for the boot: the words of systemctl(1) `is-enabled`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::index::{Entry, Index};
use super::pass::Pass;
use crate::name::{UnitName, UnitType};
use crate::unit::{LoadState, Unit};

/// Whether a unit is part of what boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// `[Install]` counts.
    Enabled,
    /// `[Install]` counts until the next boot: a marker below `/run` says so.
    EnabledRuntime,
    /// Another name of a unit.
    Alias,
    /// It must not start.
    Masked,
    /// It must not start until the next boot.
    MaskedRuntime,
    /// It has no `[Install]`.
    Static,
    /// Not it, but what comes with it may be enabled: its timer, socket or path unit, or instances of the template.
    Indirect,
    /// It has `[Install]`, and a no stands against it.
    Disabled,
    /// No file describes it: the manager made it.
    Generated,
    /// Its file cannot be used.
    Bad,
}

impl FileState {
    /// systemctl's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::EnabledRuntime => "enabled-runtime",
            Self::Alias => "alias",
            Self::Masked => "masked",
            Self::MaskedRuntime => "masked-runtime",
            Self::Static => "static",
            Self::Indirect => "indirect",
            Self::Disabled => "disabled",
            Self::Generated => "generated",
            Self::Bad => "bad",
        }
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One name of the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The unit, template or alias.
    pub name: UnitName,
    /// The file or link; `None`: the manager made the unit itself.
    pub path: Option<Arc<Path>>,
    /// What it is for the boot.
    pub state: FileState,
}

/// Every name with its state, in the order of names: what the folders have, and what was made without a file.
pub(super) fn states(index: &Index, pass: &Pass<'_>) -> Vec<NamedFile> {
    // Both are in the order of names: one walk along them finds what is of one name.
    let mut found = Vec::with_capacity(index.units.len());
    let mut made = pass.units.iter().filter(|(_, unit)| unit.load != LoadState::NotFound).peekable();
    let without_entry = |(name, unit): (&UnitName, &Arc<Unit>)| NamedFile {
        name: name.clone(),
        path: unit.fragment.clone(),
        state: of_unit(index, name, Some(unit), &pass.units),
    };
    for (name, entry) in &index.units {
        while let Some(other) = made.next_if(|(other, _)| *other < name) {
            found.push(without_entry(other));
        }
        let own = made.next_if(|(other, _)| *other == name).map(|(_, unit)| unit);
        let (path, state) = match entry {
            Entry::Mask(path) => (path.clone(), masked(index, path)),
            Entry::Alias { path, .. } => (path.clone(), FileState::Alias),
            Entry::Bad { path, .. } => (path.clone(), FileState::Bad),
            Entry::File(path) if name.is_template() => {
                (path.clone(), template(name, &pass.template(name, path), &pass.units))
            }
            Entry::File(path) => (path.clone(), of_unit(index, name, own, &pass.units)),
            Entry::Instance => {
                let path = own.and_then(|unit| unit.fragment.clone());
                (path.unwrap_or_else(|| Path::new("").into()), of_unit(index, name, own, &pass.units))
            }
        };
        found.push(NamedFile { name: name.clone(), path: Some(path), state });
    }
    found.extend(made.map(without_entry));
    let given = installed(index, pass);
    if !given.is_empty() {
        found.extend(given);
        found.sort_by(|a, b| a.name.cmp(&b.name));
    }
    found
}

/// The names that `[Install]` gives to enabled units: links in systemd.
fn installed(index: &Index, pass: &Pass<'_>) -> Vec<NamedFile> {
    let of = |unit: &Arc<Unit>| {
        let names = unit.aliases.iter().filter(|name| unit.install.alias.contains(*name));
        let names = names.filter(|name| !index.units.contains_key(*name)).cloned();
        let path = unit.fragment.clone();
        names.map(|name| NamedFile { name, path: path.clone(), state: FileState::Alias }).collect::<Vec<_>>()
    };
    pass.units.values().flat_map(of).collect()
}

fn masked(index: &Index, path: &Path) -> FileState {
    if index.is_runtime(path) { FileState::MaskedRuntime } else { FileState::Masked }
}

/// What the unit of a name is for the boot; `None`: none was made.
fn of_unit(
    index: &Index,
    name: &UnitName,
    unit: Option<&Arc<Unit>>,
    units: &BTreeMap<UnitName, Arc<Unit>>,
) -> FileState {
    let Some(unit) = unit else { return FileState::Bad };
    match unit.load {
        LoadState::Masked => return unit.fragment.as_deref().map_or(FileState::Masked, |p| masked(index, p)),
        LoadState::Error(_) | LoadState::BadSetting(_) | LoadState::NotFound => return FileState::Bad,
        LoadState::Loaded => {}
    }
    match (unit.install.present, unit.enabled) {
        (true, true) if index.runtime_markers.contains(name) => FileState::EnabledRuntime,
        (true, true) => FileState::Enabled,
        (true, false) => FileState::Disabled,
        (false, _) if brings(unit, units) => FileState::Indirect,
        (false, _) if unit.fragment.is_none() => FileState::Generated,
        (false, _) => FileState::Static,
    }
}

/// Whether the `[Install]` of a service went to the units that it brings.
fn brings(service: &Unit, units: &BTreeMap<UnitName, Arc<Unit>>) -> bool {
    let from_it = |unit_type| {
        let unit = units.get(&service.name.with_type(unit_type));
        unit.is_some_and(|unit| unit.fragment == service.fragment && unit.install.present)
    };
    service.name.unit_type() == UnitType::Service
        && service.fragment.is_some()
        && [UnitType::Timer, UnitType::Socket, UnitType::Path].into_iter().any(from_it)
}

/// A template is never part of what boots itself; its instances may be.
fn template(name: &UnitName, unit: &Unit, units: &BTreeMap<UnitName, Arc<Unit>>) -> FileState {
    let is_instance = |unit: &Arc<Unit>| unit.enabled && unit.name.template().as_ref() == Some(name);
    match unit.load {
        LoadState::Masked => FileState::Masked,
        LoadState::Error(_) | LoadState::BadSetting(_) | LoadState::NotFound => FileState::Bad,
        LoadState::Loaded if !unit.install.present => FileState::Static,
        LoadState::Loaded if units.values().any(is_instance) => FileState::Indirect,
        LoadState::Loaded => FileState::Disabled,
    }
}
