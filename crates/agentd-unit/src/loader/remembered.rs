//! Units made again from texts that somebody has kept, without a look at their files.

use std::path::Path;
use std::sync::Arc;

use super::read::{ReadFiles, Shelf};
use super::{Gate, Loader};
use crate::name::{UnitName, UnitType};
use crate::source::SourceFile;
use crate::unit::Unit;

/// What a unit was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// Its id.
    pub unit: UnitName,
    /// Its other names.
    pub aliases: Vec<UnitName>,
    /// Whether it was part of what boots.
    pub enabled: bool,
    /// The hash of the definition.
    pub digest: [u8; 32],
    /// The main file, if it had one, then the drop-ins.
    pub sources: Vec<Arc<SourceFile>>,
    /// Whether the first of them is a main file.
    pub has_main: bool,
    /// The bytes of the signature beside the main file, if there was one.
    pub signature: Option<Arc<[u8]>>,
}

impl Remembered {
    /// What a unit was made of; None for one that no file tells of.
    #[must_use]
    pub fn of(unit: &Unit) -> Option<Self> {
        (!unit.sources.is_empty()).then(|| Self {
            unit: unit.name.clone(),
            aliases: unit.aliases.clone(),
            enabled: unit.enabled,
            digest: unit.digest,
            sources: unit.sources.clone(),
            has_main: unit.fragment.is_some(),
            signature: unit.signature.clone(),
        })
    }

    /// The unit that its main file is of: a timer may come from the file of its service.
    fn of_file(&self) -> UnitName {
        let main = self.sources.first().filter(|_| self.has_main).map(|source| source.path());
        let file = main.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        let file = UnitName::parse(file.strip_suffix(".toml").unwrap_or(file));
        match file.is_ok_and(|file| file.unit_type() != self.unit.unit_type()) {
            true => self.unit.with_type(UnitType::Service),
            false => self.unit.clone(),
        }
    }
}

impl Loader {
    /// Makes a unit of what it was made of, if the gate lets it in.
    #[must_use]
    pub fn remember(&self, of: Remembered, gate: &dyn Gate) -> Unit {
        let name = of.of_file();
        let read = ReadFiles::kept(of.sources, of.has_main, of.signature);
        let (main, own) = read.parse(&name, &mut Shelf::default(), (&self.config, gate));
        let mut all = std::iter::once(main).chain(own);
        let Some(mut unit) = all.find(|unit| unit.name == of.unit) else { return Unit::not_found(of.unit) };
        unit.aliases = of.aliases;
        unit.enabled = of.enabled;
        let slice = UnitName::default_slice(self.config.scope);
        if let Some(slice) = slice.filter(|_| unit.name == name) {
            unit.place(&slice);
        }
        unit
    }
}
