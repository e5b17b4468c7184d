//! The files of one unit: read once, shown to the gate, parsed.

use std::collections::HashSet;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use super::index::{DropIn, DropInState, Index};
use super::open::read_opened;
use super::{Admission, Gate, LoaderConfig, UnitFile, UnitFiles, read_file};
use crate::hash::Quick;
use crate::name::UnitName;
use crate::parse::{Desk, ParseContext, parse_unit_on};
use crate::search_path::TierKind;
use crate::source::{Origin, SourceFile};
use crate::unit::{LoadState, Unit};

/// What reading one unit after the other uses again. Each thread has its own: who shares it would wait for a lock six times
/// for each unit.
#[derive(Debug, Default)]
pub(super) struct Shelf<'i> {
    /// For the drop-ins of the unit that is being read, and the names of their folders.
    drop_ins: Vec<&'i DropIn>,
    stem: String,
    /// For what the file says that is being parsed.
    desk: Desk,
    /// The texts that were read: units of one template, or with one drop-in, share them.
    texts: HashSet<Arc<str>, Quick>,
}

impl Shelf<'_> {
    /// What a file says, to keep.
    fn source(&mut self, file: &RawFile, bytes: &[u8]) -> ReadFile {
        let Ok(text) = str::from_utf8(bytes) else {
            let source = SourceFile::from_bytes(&*file.path, bytes).with_origin(file.origin);
            return ReadFile { source: Arc::new(source), bytes: Some(bytes.to_owned()) };
        };
        let text = match self.texts.get(text) {
            Some(text) => Arc::clone(text),
            None => {
                let text: Arc<str> = text.into();
                self.texts.insert(Arc::clone(&text));
                text
            }
        };
        let source = SourceFile::shared(Arc::clone(&file.path), text).with_origin(file.origin);
        ReadFile { source: Arc::new(source), bytes: None }
    }
}

/// What is read for a unit besides its name.
pub(super) type With<'a, 'i> = (&'a LoaderConfig, &'i Index, &'a mut Shelf<'i>);

/// The files of some units as they were read, one behind the other: the room for them is used again, so that reading takes
/// no memory.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    files: Vec<RawFile>,
    units: Vec<Result<Option<RawUnit>, String>>,
}

/// One file.
#[derive(Debug)]
struct RawFile {
    path: Arc<Path>,
    origin: Origin,
    /// What it says: a part of the bytes.
    part: Range<usize>,
}

impl RawFile {
    fn is_control(&self) -> bool {
        self.origin == Origin::Control
    }
}

/// Everything that one unit is made of.
#[derive(Debug)]
struct RawUnit {
    /// The main file first, unless it is a slice that has none.
    files: Range<usize>,
    has_main: bool,
    signature: Option<Arc<[u8]>>,
}

/// Room that is given back once it is not needed any more, in bytes: some units are larger than all others.
const ROOM: usize = 1 << 20;

impl Batch {
    /// For other units.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        self.files.clear();
        self.units.clear();
    }

    /// Reads the main file of a unit, the drop-ins that apply and the signature.
    pub(super) fn read(
        &mut self,
        name: &UnitName,
        path: &Arc<Path>,
        aliases: &[UnitName],
        with: With<'_, '_>,
    ) {
        let read = self.unit(name, path, aliases, with);
        self.units.push(read);
    }

    /// Reads the drop-ins of a slice that has no file.
    pub(super) fn read_slice(&mut self, name: &UnitName, with: With<'_, '_>) {
        let start = self.files.len();
        let read = self.drop_ins(std::iter::once(name), with).map(|()| {
            self.files[start..].sort_by_key(RawFile::is_control);
            let files = start..self.files.len();
            (!files.is_empty()).then_some(RawUnit { files, has_main: false, signature: None })
        });
        self.units.push(read);
    }

    /// # Errors
    /// The first file that may not be used, and why: without it the unit would not be what was meant.
    fn unit(
        &mut self,
        name: &UnitName,
        path: &Arc<Path>,
        aliases: &[UnitName],
        (config, index, shelf): With<'_, '_>,
    ) -> Result<Option<RawUnit>, String> {
        let start = self.files.len();
        if !self.file(path, Origin::Unit, (config, index))? {
            return Ok(None);
        }
        self.drop_ins(std::iter::once(name).chain(aliases), (config, index, shelf))?;
        // The manager's own limits come last: what set-property says holds over every drop-in.
        self.files[start + 1..].sort_by_key(RawFile::is_control);
        let signature = signature(path, config, index)?;
        Ok(Some(RawUnit { files: start..self.files.len(), has_main: true, signature }))
    }

    fn drop_ins<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n UnitName>,
        (config, index, shelf): With<'_, '_>,
    ) -> Result<(), String> {
        let Shelf { drop_ins, stem, .. } = shelf;
        index.drop_ins_of(names, drop_ins, stem);
        for drop_in in &*drop_ins {
            if let DropInState::Bad(why) = &drop_in.state {
                return Err(format!("{}: {why}", drop_in.path.display()));
            }
            let origin = if drop_in.kind == TierKind::Control { Origin::Control } else { Origin::Unit };
            // An empty one takes the name from lower tiers and says nothing.
            self.file(&drop_in.path, origin, (config, index))?;
        }
        Ok(())
    }

    /// Reads a file; whether it says anything.
    fn file(
        &mut self,
        path: &Arc<Path>,
        origin: Origin,
        (config, index): (&LoaderConfig, &Index),
    ) -> Result<bool, String> {
        let start = self.bytes.len();
        read_opened(index.open(path), path, &config.trusted, &mut self.bytes)
            .map_err(|error| error.one_line())?;
        let part = start..self.bytes.len();
        let says_something = !part.is_empty();
        if says_something {
            self.files.push(RawFile { path: Arc::clone(path), origin, part });
        }
        Ok(says_something)
    }

    /// The files of one of the units, in their order, to keep. `None`: the main file is empty, which masks the unit; or it
    /// is a slice without drop-ins.
    ///
    /// # Errors
    /// Why a file may not be used.
    pub(super) fn take(&mut self, place: usize, shelf: &mut Shelf<'_>) -> Result<Option<ReadFiles>, String> {
        let Some(unit) = self.units.get_mut(place) else { return Ok(None) };
        let Some(RawUnit { files, has_main, signature }) = std::mem::replace(unit, Ok(None))? else {
            return Ok(None);
        };
        let read = self.files[files].iter().map(|file| shelf.source(file, &self.bytes[file.part.clone()]));
        Ok(Some(ReadFiles { files: read.collect(), has_main, signature }))
    }
}

/// Everything that one unit is made of, as text.
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
    /// Of texts that were read before.
    pub(super) fn kept(sources: Vec<Arc<SourceFile>>, has_main: bool, signature: Option<Arc<[u8]>>) -> Self {
        let files = sources.into_iter().map(|source| ReadFile { source, bytes: None }).collect();
        Self { files, has_main, signature }
    }

    /// The gate first, then the parser, over the same bytes.
    pub(super) fn parse(
        self,
        name: &UnitName,
        shelf: &mut Shelf<'_>,
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
