//! The files that define a unit: their texts for `cat` and `diff`, and whether they are still what was loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use agentd_protocol::unit::{FileContent, GetFilesReply};
use agentd_protocol::{CallError, text};
use agentd_unit::loader::drop_in_stems;
use agentd_unit::search_path::TierKind;
use agentd_unit::{LoadState, SearchPath, SourceFile, Unit, UnitName};

use super::{Answer, continued, last};

/// The most of one file that is compared: more than any unit file may have.
const MAX_BYTES: u64 = 2 << 20;

/// Sends the texts that a unit was read from, long ones in pieces.
pub fn send(unit: &Unit, more: bool, answer: &Answer) -> bool {
    if let (LoadState::Error(message), []) = (&unit.load, unit.sources.as_slice()) {
        return answer.result::<GetFilesReply>(Err(CallError::Failed { message: message.clone() }));
    }
    let pieces = |source: &SourceFile| {
        let path = source.path().display().to_string();
        let piece = |content: &str| FileContent { path: path.clone(), content: content.to_owned() };
        text::pieces(source.text()).map(piece).collect::<Vec<_>>()
    };
    let mut files: Vec<FileContent> = unit.sources.iter().flat_map(|source| pieces(source)).collect();
    if !more {
        return answer.send(last(&GetFilesReply { files }));
    }
    let end = GetFilesReply { files: files.pop().into_iter().collect() };
    let pages = files.into_iter().map(|file| continued(&GetFilesReply { files: vec![file] }));
    answer.send_all(pages.chain([last(&end)]).collect())
}

/// Whether the files of a unit are others than those it was read from: changed, gone, or new ones beside them.
#[must_use]
pub fn changed(unit: &Unit, search: &SearchPath) -> bool {
    let Some(fragment) = &unit.fragment else { return false };
    match &unit.load {
        LoadState::Masked => return fs::symlink_metadata(fragment).is_err(),
        // What could not be read is read again with the next reload; nothing is known that could be compared.
        LoadState::Error(_) | LoadState::NotFound => return false,
        LoadState::Loaded | LoadState::BadSetting(_) => {}
    }
    unit.sources.iter().any(|source| !is_same(source))
        || above(unit, fragment, search)
        || beside(unit, fragment, search)
}

fn is_same(source: &SourceFile) -> bool {
    // A look at the size first: a file that somebody has filled up is not read for this.
    let Ok(meta) = fs::metadata(source.path()) else { return false };
    meta.is_file()
        && meta.len() <= MAX_BYTES
        && fs::read(source.path())
            .is_ok_and(|bytes| SourceFile::from_bytes(source.path(), &bytes).text() == source.text())
}

/// Whether a folder that is searched before that of the main file has one of the name now.
fn above(unit: &Unit, fragment: &Path, search: &SearchPath) -> bool {
    let Some(file) = fragment.file_name() else { return false };
    let names = [file.to_owned(), unit.name.as_str().into(), format!("{}.toml", unit.name).into()];
    let is_own = |folder: &Path| folder.canonicalize().ok().as_deref() == fragment.parent();
    let before = search.tiers.iter().map(|tier| tier.path.as_path()).take_while(|folder| !is_own(folder));
    // Where no tier is its folder, the unit was read through a link, and nothing is above it that was not before.
    let found = search.tiers.iter().any(|tier| is_own(&tier.path));
    found
        && before.flat_map(|folder| names.iter().map(move |name| folder.join(name))).any(|path| exists(&path))
}

/// Whether a folder of drop-ins has one that was not applied. Of one name the most special folder's counts, there the
/// highest tier's, and a mask takes the name away: as in loading.
fn beside(unit: &Unit, fragment: &Path, search: &SearchPath) -> bool {
    let applied: BTreeSet<_> = unit.drop_ins.iter().filter_map(|path| path.file_name()).collect();
    // The drop-ins of a timer that comes from its service are the service's.
    let owner = UnitName::of_file(fragment).ok().filter(|owner| owner.unit_type() != unit.name.unit_type());
    let mut found = BTreeMap::new();
    for stem in drop_in_stems(owner.as_ref().unwrap_or(&unit.name)) {
        for tier in search.tiers.iter().filter(|tier| tier.kind == TierKind::Units) {
            let entries = fs::read_dir(tier.path.join(format!("{stem}.d"))).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()).filter(|path| is_drop_in(path)) {
                let counts = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
                found.entry(path.file_name().unwrap_or_default().to_owned()).or_insert(counts);
            }
        }
    }
    found.iter().any(|(name, counts)| *counts && !applied.contains(name.as_os_str()))
}

fn is_drop_in(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    !name.starts_with('.') && (name.ends_with(".toml") || name.ends_with(".conf"))
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
