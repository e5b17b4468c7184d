//! `set-property`: limits of one unit, each in a drop-in of its own below a control folder.
//!
//! # Invariants
//!
//! - Nothing but limits is written: what stands below a control folder is not signed.
//! - Either every assignment is in force in the end, or the folder is as it was before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_protocol::CallError;
use agentd_protocol::unit_files::FileChange;
use agentd_protocol::words::FileChangeKind;
use agentd_unit::schema::Section;
use agentd_unit::{LoadState, SearchPath, Unit, UnitName, UnitType};

use super::unit_files::Done;

/// One request.
#[derive(Debug, Clone)]
pub struct Properties {
    /// The unit.
    pub unit: UnitName,
    /// Keys with their values; empty: what was set before is taken back.
    pub assignments: Vec<(&'static str, String)>,
    /// Until the next boot only.
    pub runtime: bool,
}

/// Checks what somebody asks for.
///
/// # Errors
/// A name that is none; a text that is no `KEY=VALUE`; a key that is no limit.
pub fn read(unit: &str, properties: &[String], runtime: bool) -> Result<Properties, CallError> {
    let unit = UnitName::parse_lenient(unit)
        .map_err(|e| CallError::NoSuchUnit { unit: unit.to_owned(), message: e.to_string() })?;
    let refuse = |message: String| Err(CallError::NotApplicable { unit: unit.to_string(), message });
    let Some(section) = section(unit.unit_type()).filter(|_| !unit.is_template()) else {
        return refuse("limits are set of services and slices; of a template, for each instance".to_owned());
    };
    let mut assignments: Vec<(&'static str, String)> = Vec::new();
    for property in properties {
        let Some((key, value)) = property.split_once('=') else {
            return refuse(format!("'{property}' is no KEY=VALUE"));
        };
        let setting = match section.setting(key) {
            Some(setting) if setting.limit => setting,
            Some(_) => {
                return refuse(format!(
                    "{key} cannot change while the unit runs; 'agentctl edit {unit}' writes it for the next start"
                ));
            }
            None => return refuse(format!("[{}] has no key {key}", section.as_str())),
        };
        // What no value of a limit has, and a literal string of TOML cannot hold.
        if value.contains(|c: char| c == '\'' || c.is_control()) {
            return refuse(format!("{key} takes no such value: {}", value.escape_default()));
        }
        assignments.retain(|(known, _)| *known != setting.key);
        assignments.push((setting.key, value.trim().to_owned()));
    }
    if assignments.is_empty() {
        return Err(CallError::InvalidParameter { parameter: "properties".to_owned() });
    }
    Ok(Properties { unit, assignments, runtime })
}

/// Where the limits of a unit stand.
const fn section(unit_type: UnitType) -> Option<Section> {
    match unit_type {
        UnitType::Service => Some(Section::Service),
        UnitType::Slice => Some(Section::Slice),
        UnitType::Timer | UnitType::Socket | UnitType::Target | UnitType::Path => None,
    }
}

/// Writes the drop-ins, and takes them back if the unit does not load with them. `load` reads one unit by its name.
///
/// # Errors
/// A unit that is not there or cannot be loaded; a value that the key does not take; a folder that cannot be written.
pub fn carry_out(
    wanted: &Properties,
    search: &SearchPath,
    load: impl Fn(&UnitName) -> Unit,
) -> Result<Done, CallError> {
    let folder = search
        .control(wanted.runtime)
        .ok_or_else(|| super::unit_files::no_folder(std::slice::from_ref(&wanted.unit)))?;
    let unit = load(&wanted.unit);
    usable(&unit, &wanted.unit)?;
    let folder = folder.join(format!("{}.d", unit.name));
    let section = section(wanted.unit.unit_type()).map_or("", Section::as_str);
    let mut written = Written { old: Vec::new() };
    let result = wanted
        .assignments
        .iter()
        .try_for_each(|(key, value)| written.put(folder.join(format!("50-{key}.toml")), section, key, value))
        .and_then(|()| usable(&load(&wanted.unit), &wanted.unit));
    match result {
        Ok(()) => {
            Ok(Done { changes: written.changes(), units: vec![unit.name], without_install: Vec::new() })
        }
        Err(error) => {
            written.take_back();
            // Only where nothing else is in it.
            let _kept = fs::remove_dir(&folder);
            Err(nothing_set(error))
        }
    }
}

/// The error names a file that is gone again: it says so.
fn nothing_set(error: CallError) -> CallError {
    match error {
        CallError::LoadFailed { unit, message } => CallError::LoadFailed {
            unit,
            message: format!("{message}\nNothing was set, and the drop-in was taken back."),
        },
        other => other,
    }
}

fn usable(unit: &Unit, asked: &UnitName) -> Result<(), CallError> {
    let text = asked.to_string();
    match &unit.load {
        LoadState::Loaded => Ok(()),
        LoadState::NotFound => {
            Err(CallError::NoSuchUnit { unit: text, message: format!("Unit {asked} not found.") })
        }
        LoadState::Masked => {
            Err(CallError::UnitMasked { unit: text, message: format!("Unit {asked} is masked.") })
        }
        LoadState::Error(why) | LoadState::BadSetting(why) => {
            Err(CallError::LoadFailed { unit: text, message: why.clone() })
        }
    }
}

/// The files that were written so far, with what they said before.
struct Written {
    old: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Written {
    fn put(&mut self, path: PathBuf, section: &str, key: &str, value: &str) -> Result<(), CallError> {
        let old = match fs::read(&path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(super::unit_files::failed("read", &path, &error)),
        };
        if value.is_empty() {
            if old.is_some() {
                fs::remove_file(&path).map_err(|e| super::unit_files::failed("removed", &path, &e))?;
                self.old.push((path, old));
            }
            return Ok(());
        }
        let text = format!("# Written by 'agentctl set-property'.\n[{section}]\n{key} = '{value}'\n");
        self.old.push((path, old));
        let path = self.old.last().map_or(Path::new(""), |(path, _)| path.as_path());
        super::unit_files::make(path.parent().unwrap_or(Path::new("/")))?;
        agentd_state::write_atomic(path, text.as_bytes(), 0o644)
            .map_err(|e| super::unit_files::failed("written", path, &e))
    }

    fn changes(&self) -> Vec<FileChange> {
        let change = |(path, _): &(PathBuf, Option<Vec<u8>>)| FileChange {
            kind: if path.exists() { FileChangeKind::Created } else { FileChangeKind::Removed },
            path: path.display().to_string(),
            target: None,
        };
        self.old.iter().map(change).collect()
    }

    fn take_back(&self) {
        for (path, old) in self.old.iter().rev() {
            let result = match old {
                Some(text) => agentd_state::write_atomic(path, text, 0o644),
                None => match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                },
            };
            if let Err(error) = result {
                tracing::error!(%error, "{} cannot be put back as it was", path.display());
            }
        }
    }
}
