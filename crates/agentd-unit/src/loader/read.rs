//! The files of one unit: read once, shown to the gate, parsed.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::index::{DropInState, Index};
use super::open::{OpenError, read_listed};
use super::{Admission, Gate, LoaderConfig, UnitFile, UnitFiles, read_file};
use crate::name::UnitName;
use crate::parse::{ParseContext, parse_unit};
use crate::search_path::TierKind;
use crate::source::{Origin, SourceFile};
use crate::unit::{LoadState, Unit};

/// What reading one file after the other uses again.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// For the bytes of the file that is being read: one for each thread that reads.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// The texts that were read: units of one template, or with one drop-in, share them.
    texts: Mutex<HashSet<Arc<str>>>,
}

impl Shelf {
    fn source(&self, path: &Arc<Path>, config: &LoaderConfig) -> Result<ReadFile, OpenError> {
        let mut buffer = held(&self.buffers).pop().unwrap_or_default();
        let source = self.read(path, config, &mut buffer);
        held(&self.buffers).push(buffer);
        source
    }

    fn read(
        &self,
        path: &Arc<Path>,
        config: &LoaderConfig,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadFile, OpenError> {
        let bytes = read_listed(path, &config.trusted, buffer)?;
        let Ok(text) = str::from_utf8(bytes) else {
            let source = SourceFile::from_bytes(&**path, bytes);
            return Ok(ReadFile { name: None, source, bytes: Some(bytes.to_owned()) });
        };
        let mut texts = held(&self.texts);
        let text = match texts.get(text) {
            Some(text) => Arc::clone(text),
            None => {
                let text: Arc<str> = text.into();
                texts.insert(Arc::clone(&text));
                text
            }
        };
        Ok(ReadFile { name: None, source: SourceFile::shared(Arc::clone(path), text), bytes: None })
    }
}

/// What a lock guards. Nothing here is half done when a thread ends early.
fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything that one unit is made of, read.
pub(super) struct ReadFiles {
    files: Vec<ReadFile>,
    signature: Option<Arc<[u8]>>,
}

struct ReadFile {
    /// The name below its tier, of a drop-in.
    name: Option<String>,
    source: SourceFile,
    /// What was read, where it is no UTF-8.
    bytes: Option<Vec<u8>>,
}

impl ReadFile {
    fn is_empty(&self) -> bool {
        self.source.text().is_empty()
    }

    /// What the gate sees.
    fn shown(&self) -> UnitFile<'_> {
        let path = self.source.path();
        let name = self.name.as_deref().or_else(|| path.file_name().and_then(|file| file.to_str()));
        let bytes = self.bytes.as_deref().unwrap_or(self.source.text().as_bytes());
        UnitFile { name: name.unwrap_or_default(), path, bytes }
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
        (config, index, shelf): (&LoaderConfig, &Index, &Shelf),
    ) -> Result<Option<Self>, String> {
        let read = |path: &Arc<Path>| shelf.source(path, config).map_err(|error| error.one_line());
        let main = read(path)?;
        if main.is_empty() {
            return Ok(None);
        }
        let mut files = vec![main];
        for (file, drop_in) in index.drop_ins_of(std::iter::once(name).chain(aliases)) {
            if let DropInState::Bad(why) = &drop_in.state {
                return Err(format!("{}: {why}", drop_in.path.display()));
            }
            let read = read(&drop_in.path)?;
            let origin = if drop_in.kind == TierKind::Control { Origin::Control } else { Origin::Unit };
            let source = read.source.with_origin(origin);
            // An empty one takes the name from lower tiers and says nothing.
            if !source.text().is_empty() {
                files.push(ReadFile { name: Some(file), source, bytes: read.bytes });
            }
        }
        // The manager's own limits come last: what set-property says holds over every drop-in.
        files[1..].sort_by_key(|file| file.source.origin() == Origin::Control);
        Ok(Some(Self { files, signature: signature(path, config, index)? }))
    }

    /// The gate first, then the parser, over the same bytes.
    pub(super) fn parse(self, name: &UnitName, config: &LoaderConfig, gate: &dyn Gate) -> (Unit, Vec<Unit>) {
        let signed = self.files.iter().filter(|file| file.source.origin() == Origin::Unit);
        let files: Vec<UnitFile<'_>> = signed.map(ReadFile::shown).collect();
        let verdict =
            gate.admit(&UnitFiles { unit: name, files: &files, signature: self.signature.as_ref() });
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
        let sources: Vec<_> = self.files.into_iter().map(|file| Arc::new(file.source)).collect();
        let context = ParseContext { specifiers: &config.specifiers, zone: &config.zone };
        let parsed = parse_unit(name, &sources, &context);
        let (mut unit, mut own) = (parsed.unit, parsed.own);
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
