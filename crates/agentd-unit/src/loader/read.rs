//! The files of one unit: read once, shown to the gate, parsed.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use super::index::{DropInState, Index};
use super::open::{OpenError, read_opened};
use super::{Admission, Gate, LoaderConfig, UnitFile, UnitFiles, read_file};
use crate::hash::Quick;
use crate::name::UnitName;
use crate::parse::{Desk, ParseContext, parse_unit_on};
use crate::search_path::TierKind;
use crate::source::{Origin, SourceFile};
use crate::unit::{LoadState, Unit};

/// What reading one file after the other uses again. Each thread has its own: who shares it would wait for a lock six
/// times for each unit.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// For the bytes of the file that is being read.
    buffer: Vec<u8>,
    /// For what the file says that is being parsed.
    desk: Desk,
    /// The texts that were read: units of one template, or with one drop-in, share them.
    texts: HashSet<Arc<str>, Quick>,
}

impl Shelf {
    fn read(
        &mut self,
        path: &Arc<Path>,
        origin: Origin,
        (config, index): (&LoaderConfig, &Index),
    ) -> Result<ReadFile, OpenError> {
        let bytes = read_opened(index.open(path), path, &config.trusted, &mut self.buffer)?;
        let Ok(text) = str::from_utf8(bytes) else {
            let source = SourceFile::from_bytes(&**path, bytes).with_origin(origin);
            return Ok(ReadFile { source: Arc::new(source), bytes: Some(bytes.to_owned()) });
        };
        let text = match self.texts.get(text) {
            Some(text) => Arc::clone(text),
            None => {
                let text: Arc<str> = text.into();
                self.texts.insert(Arc::clone(&text));
                text
            }
        };
        let source = SourceFile::shared(Arc::clone(path), text).with_origin(origin);
        Ok(ReadFile { source: Arc::new(source), bytes: None })
    }
}

/// Everything that one unit is made of, read.
pub(super) struct ReadFiles {
    /// The main file first, unless it is a slice that has none.
    files: Vec<ReadFile>,
    has_main: bool,
    signature: Option<Arc<[u8]>>,
}

struct ReadFile {
    source: Arc<SourceFile>,
    /// What was read, where it is no UTF-8.
    bytes: Option<Vec<u8>>,
}

impl ReadFile {
    fn is_empty(&self) -> bool {
        self.source.text().is_empty()
    }

    fn is_control(&self) -> bool {
        self.source.origin() == Origin::Control
    }

    /// What the gate sees; `depth`: so many parts of the path the name below its tier has.
    fn shown(&self, depth: usize) -> UnitFile<'_> {
        let path = self.source.path();
        let whole = path.as_os_str().as_bytes();
        let mut slashes = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        let start = slashes.nth(depth - 1).map_or(0, |(place, _)| place + 1);
        // The names below a tier are UTF-8, or they would not have been taken.
        let name = str::from_utf8(&whole[start..]).unwrap_or_default();
        UnitFile { name, path, bytes: self.bytes.as_deref().unwrap_or(self.source.text().as_bytes()) }
    }
}

impl ReadFiles {
    /// Reads the main file, the drop-ins that apply and the signature. `None`: the main file is empty, which masks the
    /// unit.
    ///
    /// # Errors
    /// The first of them that may not be used, and why: without it the unit would not be what was meant.
    pub(super) fn read(
        name: &UnitName,
        path: &Arc<Path>,
        aliases: &[UnitName],
        (config, index, shelf): (&LoaderConfig, &Index, &mut Shelf),
    ) -> Result<Option<Self>, String> {
        let main = shelf.read(path, Origin::Unit, (config, index)).map_err(|error| error.one_line())?;
        if main.is_empty() {
            return Ok(None);
        }
        let mut files = vec![main];
        Self::drop_ins(&mut files, std::iter::once(name).chain(aliases), (config, index, shelf))?;
        // The manager's own limits come last: what set-property says holds over every drop-in.
        files[1..].sort_by_key(ReadFile::is_control);
        Ok(Some(Self { files, has_main: true, signature: signature(path, config, index)? }))
    }

    /// Reads the drop-ins of a slice that has no file. `None`: it has none.
    ///
    /// # Errors
    /// As [`ReadFiles::read`].
    pub(super) fn of_slice(
        name: &UnitName,
        with: (&LoaderConfig, &Index, &mut Shelf),
    ) -> Result<Option<Self>, String> {
        let mut files = Vec::new();
        Self::drop_ins(&mut files, std::iter::once(name), with)?;
        files.sort_by_key(ReadFile::is_control);
        Ok((!files.is_empty()).then_some(Self { files, has_main: false, signature: None }))
    }

    fn drop_ins<'a>(
        files: &mut Vec<ReadFile>,
        names: impl IntoIterator<Item = &'a UnitName>,
        (config, index, shelf): (&LoaderConfig, &Index, &mut Shelf),
    ) -> Result<(), String> {
        let drop_ins = index.drop_ins_of(names);
        files.reserve_exact(drop_ins.len());
        for drop_in in drop_ins {
            if let DropInState::Bad(why) = &drop_in.state {
                return Err(format!("{}: {why}", drop_in.path.display()));
            }
            let origin = if drop_in.kind == TierKind::Control { Origin::Control } else { Origin::Unit };
            let file =
                shelf.read(&drop_in.path, origin, (config, index)).map_err(|error| error.one_line())?;
            // An empty one takes the name from lower tiers and says nothing.
            if !file.is_empty() {
                files.push(file);
            }
        }
        Ok(())
    }

    /// The gate first, then the parser, over the same bytes.
    pub(super) fn parse(
        self,
        name: &UnitName,
        shelf: &mut Shelf,
        (config, gate): (&LoaderConfig, &dyn Gate),
    ) -> (Unit, Vec<Unit>) {
        let signed = self.files.iter().enumerate().filter(|(_, file)| !file.is_control());
        // `web.service`, `web.service.d/10-limits.conf`.
        let files: Vec<UnitFile<'_>> =
            signed.map(|(place, file)| file.shown(if place == 0 && self.has_main { 1 } else { 2 })).collect();
        // What the manager itself has written needs no signature.
        let verdict = match files.is_empty() {
            true => Admission::Admitted,
            false => gate.admit(&UnitFiles { unit: name, files: &files, signature: self.signature.as_ref() }),
        };
        let warning = match verdict {
            Admission::Admitted => None,
            Admission::Warned(warning) => Some(warning),
            Admission::Refused(why) => {
                let mut unit = Unit::not_found(name.clone());
                unit.load = LoadState::Error(why);
                unit.fragment = self.files.first().map(|file| Arc::clone(file.source.shared_path()));
                unit.signature = self.signature;
                return (unit, Vec::new());
            }
        };
        let sources: Vec<_> = self.files.into_iter().map(|file| file.source).collect();
        let context = ParseContext { specifiers: &config.specifiers, zone: &config.zone };
        let parsed = parse_unit_on(&mut shelf.desk, name, &sources, &context);
        let (mut unit, mut own) = (parsed.unit, parsed.own);
        if !self.has_main {
            let first = unit.fragment.take();
            unit.drop_ins = first.into_iter().chain(unit.drop_ins.iter().cloned()).collect();
        }
        unit.warnings.extend(warning);
        unit.signature = self.signature;
        for other in &mut own {
            other.signature.clone_from(&unit.signature);
        }
        (unit, own)
    }
}

/// The bytes of the signature file beside a unit's main file, if its folder has one.
fn signature(path: &Path, config: &LoaderConfig, index: &Index) -> Result<Option<Arc<[u8]>>, String> {
    if index.signatures.is_empty() {
        return Ok(None);
    }
    let mut signature = path.as_os_str().to_owned();
    signature.push(".sig");
    let Some(signature) = index.signatures.get(Path::new(&signature)) else { return Ok(None) };
    match read_file(signature, &config.trusted) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.one_line()),
    }
}
