//! The files of one unit: read once, shown to the gate, parsed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::{DropIn, DropInState, Index};
use super::{Admission, Gate, LoaderConfig, UnitFile, UnitFiles, read_file};
use crate::name::UnitName;
use crate::parse::{ParseContext, parse_unit};
use crate::search_path::TierKind;
use crate::source::{Origin, SourceFile};
use crate::unit::{LoadState, Unit};

/// Everything that one unit is made of, read.
pub(super) struct ReadFiles {
    files: Vec<ReadFile>,
    signature: Option<Arc<[u8]>>,
}

struct ReadFile {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
    origin: Origin,
}

impl ReadFiles {
    /// Reads the main file, the drop-ins that apply and the signature.
    ///
    /// # Errors
    /// The first of them that may not be used, and why: without it the unit would not be what was meant.
    pub(super) fn read(
        name: &UnitName,
        path: &Path,
        aliases: &[UnitName],
        config: &LoaderConfig,
        index: &Index,
    ) -> Result<Self, String> {
        let trusted = &config.trusted;
        let read = |path: &Path| read_file(path, trusted).map_err(|error| error.one_line());
        let file_name = path.file_name().and_then(|file| file.to_str()).unwrap_or_default().to_owned();
        let main =
            ReadFile { name: file_name, path: path.to_owned(), bytes: read(path)?, origin: Origin::Unit };
        let mut files = vec![main];
        let names: Vec<UnitName> = std::iter::once(name).chain(aliases).cloned().collect();
        for (file, DropIn { path, kind, state }) in index.drop_ins_of(&names) {
            if let DropInState::Bad(why) = state {
                return Err(format!("{}: {why}", path.display()));
            }
            let origin = if kind == TierKind::Control { Origin::Control } else { Origin::Unit };
            files.push(ReadFile { name: file, bytes: read(&path)?, path, origin });
        }
        // The manager's own limits come last: what set-property says holds over every drop-in.
        files[1..].sort_by_key(|file| file.origin == Origin::Control);
        let mut signature_path = path.as_os_str().to_owned();
        signature_path.push(".sig");
        let signature = match read_file(Path::new(&signature_path), trusted) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(error.one_line()),
        };
        Ok(Self { files, signature })
    }

    /// The gate first, then the parser, over the same bytes.
    pub(super) fn parse(
        &self,
        name: &UnitName,
        config: &LoaderConfig,
        gate: &dyn Gate,
    ) -> (Unit, Option<Unit>) {
        let signed = self.files.iter().filter(|file| file.origin == Origin::Unit);
        let files: Vec<UnitFile<'_>> =
            signed.map(|file| UnitFile { name: &file.name, path: &file.path, bytes: &file.bytes }).collect();
        let verdict =
            gate.admit(&UnitFiles { unit: name, files: &files, signature: self.signature.as_ref() });
        let failed = |why: String| {
            let mut unit = Unit::not_found(name.clone());
            unit.load = LoadState::Error(why);
            unit.fragment = self.files.first().map(|file| file.path.clone());
            unit.signature.clone_from(&self.signature);
            (unit, None)
        };
        let warning = match verdict {
            Admission::Admitted => None,
            Admission::Warned(warning) => Some(warning),
            Admission::Refused(why) => return failed(why),
        };
        let source = |file: &ReadFile| {
            Arc::new(SourceFile::from_bytes(&file.path, &file.bytes).with_origin(file.origin))
        };
        let sources: Vec<_> = self.files.iter().map(source).collect();
        let context = ParseContext { specifiers: &config.specifiers, zone: &config.zone };
        let parsed = parse_unit(name, &sources, &context);
        let (mut unit, mut timer) = (parsed.unit, parsed.timer);
        unit.warnings.extend(warning);
        unit.signature.clone_from(&self.signature);
        if let Some(timer) = &mut timer {
            timer.signature.clone_from(&self.signature);
        }
        (unit, timer)
    }
}
