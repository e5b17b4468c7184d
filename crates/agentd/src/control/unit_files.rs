//! Unit files and what they are for the boot: lists, single answers, and the requests that change it.

use agentd_protocol::CallError;
use agentd_protocol::manager::Problem;
use agentd_protocol::unit_files::{
    ListUnitFilesReply, ListUnitFilesRequest, UnitFileInfo, UnitFileStateReply, UnitFilesReply,
    UnitFilesRequest,
};
use agentd_protocol::words::UnitFileState;
use agentd_unit::{FileState, NamedFile, UnitName};

use super::{Answer, pages};
use crate::perform::unit_files::{Change, Done, Wish};
use crate::units::Loaded;

/// The wire's word.
#[must_use]
pub const fn state(state: FileState) -> UnitFileState {
    match state {
        FileState::Enabled => UnitFileState::Enabled,
        FileState::EnabledRuntime => UnitFileState::EnabledRuntime,
        FileState::Alias => UnitFileState::Alias,
        FileState::Masked => UnitFileState::Masked,
        FileState::MaskedRuntime => UnitFileState::MaskedRuntime,
        FileState::Static => UnitFileState::Static,
        FileState::Indirect => UnitFileState::Indirect,
        FileState::Disabled => UnitFileState::Disabled,
        FileState::Generated => UnitFileState::Generated,
        FileState::Bad => UnitFileState::Bad,
    }
}

fn info(file: &NamedFile) -> UnitFileInfo {
    UnitFileInfo {
        id: file.name.to_string(),
        path: file.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        unit_file_state: state(file.state),
    }
}

/// The state of a unit's file by any of its names. An instance that nothing names yet has what its template gives it.
#[must_use]
pub fn find<'a>(files: &'a [NamedFile], name: &UnitName) -> Option<(&'a NamedFile, FileState)> {
    let named = |name: &UnitName| {
        files.binary_search_by(|file| file.name.cmp(name)).ok().and_then(|place| files.get(place))
    };
    if let Some(file) = named(name) {
        return Some((file, file.state));
    }
    let template = named(&name.template()?)?;
    let state = match template.state {
        // That another instance is enabled says nothing of this one.
        FileState::Indirect => FileState::Disabled,
        other => other,
    };
    Some((template, state))
}

/// `GetUnitFileState`.
///
/// # Errors
/// [`CallError::NoSuchUnit`].
pub fn get(files: &[NamedFile], unit: &str) -> Result<UnitFileStateReply, CallError> {
    let unknown = |message: String| CallError::NoSuchUnit { unit: unit.to_owned(), message };
    let name = UnitName::parse_lenient(unit).map_err(|error| unknown(error.to_string()))?;
    let (file, found) =
        find(files, &name).ok_or_else(|| unknown(format!("Unit file {name} does not exist.")))?;
    let file = UnitFileInfo { id: name.to_string(), unit_file_state: state(found), ..info(file) };
    Ok(UnitFileStateReply { file })
}

/// `ListUnitFiles`: what has a file, in pages.
pub fn list(files: &[NamedFile], request: &ListUnitFilesRequest, more: bool, answer: &Answer) -> bool {
    let in_state = |state: &str| request.states.is_empty() || request.states.iter().any(|word| word == state);
    let wanted = |file: &&NamedFile| {
        file.path.is_some()
            && in_state(file.state.as_str())
            && pages::is_named(&file.name, &request.types, &request.patterns)
    };
    let files = files.iter().filter(wanted).map(info).collect();
    pages::send(files, more, answer, |files| ListUnitFilesReply { files })
}

/// A request to change markers or masks, checked.
///
/// # Errors
/// A name that is none; no name at all.
pub fn change(wish: Wish, request: &UnitFilesRequest) -> Result<Change, CallError> {
    if request.units.is_empty() {
        return Err(CallError::InvalidParameter { parameter: "units".to_owned() });
    }
    let name = |unit: &String| {
        UnitName::parse_lenient(unit)
            .map_err(|e| CallError::NoSuchUnit { unit: unit.clone(), message: e.to_string() })
    };
    let units = request.units.iter().map(name).collect::<Result<_, _>>()?;
    Ok(Change { wish, units, runtime: request.runtime })
}

/// What was done, and whether it holds: a folder of development stands above the control folders.
#[must_use]
pub fn changed(wish: Wish, done: &Done, loaded: &Loaded) -> UnitFilesReply {
    let names = |units: &[UnitName]| units.iter().map(UnitName::to_string).collect();
    let units: Vec<String> = names(&done.units);
    let is_about = |problem: &&Problem| problem.unit.as_ref().is_some_and(|unit| units.contains(unit));
    let mut problems: Vec<Problem> = loaded.problems.iter().filter(is_about).cloned().collect();
    problems.extend(done.units.iter().filter_map(|unit| contrary(wish, unit, &loaded.files)));
    UnitFilesReply {
        changes: done.changes.clone(),
        units,
        without_install: names(&done.without_install),
        problems,
    }
}

/// What was set of a unit, and what is wrong with it.
#[must_use]
pub fn set(done: &Done, loaded: &Loaded) -> UnitFilesReply {
    let units: Vec<String> = done.units.iter().map(UnitName::to_string).collect();
    let is_about = |problem: &&Problem| problem.unit.as_ref().is_some_and(|unit| units.contains(unit));
    let problems = loaded.problems.iter().filter(is_about).cloned().collect();
    UnitFilesReply { changes: done.changes.clone(), units, without_install: Vec::new(), problems }
}

fn contrary(wish: Wish, unit: &UnitName, files: &[NamedFile]) -> Option<Problem> {
    use FileState as S;
    let (file, state) = find(files, unit)?;
    let is_mask = matches!(state, S::Masked | S::MaskedRuntime);
    let holds = match wish {
        Wish::Enable => matches!(state, S::Enabled | S::EnabledRuntime),
        Wish::Disable => !matches!(state, S::Enabled | S::EnabledRuntime),
        Wish::Mask => is_mask,
        Wish::Unmask => !is_mask,
    };
    let path = file.path.as_ref().map(|path| path.display().to_string());
    let place = path.as_deref().unwrap_or("its definition");
    let message = format!("is {state} all the same: {place} decides over the control folders");
    (!holds).then(|| Problem { unit: Some(unit.to_string()), path, message })
}
