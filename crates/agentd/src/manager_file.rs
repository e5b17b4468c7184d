//! agentd.toml: how a manager of this machine runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use agentd_trust::Policy;
use agentd_unit::{ManagerSettings, SourceFile, Trusted};

use crate::config::{Mode, WatchUnits};
use crate::journal::LogLevel;

/// The manager's own settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagerFile {
    /// `Trust`.
    pub trust: Option<Policy>,
    /// `LogLevel`.
    pub log_level: Option<LogLevel>,
    /// `WatchUnits`.
    pub watch_units: Option<WatchUnits>,
}

/// Why the file is refused. A manager that would guess at its own trust policy does not start; an init takes the strictest.
#[derive(Debug, thiserror::Error)]
pub enum ManagerFileError {
    /// It cannot be read, or may not be believed.
    #[error("{0}")]
    Read(String),
    /// It says something that means nothing.
    #[error("{}: {}; correct the file, or remove it for the defaults", path.display(), problems.join("; "))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Each with its place.
        problems: Vec<String>,
    },
}

/// Reads the file of the mode: `/etc/agentd/agentd.toml`, else `/usr/lib/agentd/agentd.toml`; a user manager's
/// `$XDG_CONFIG_HOME/agentd/agentd.toml`. Without one all defaults hold.
///
/// # Errors
/// The file is there and cannot be used.
pub fn read(
    mode: Mode,
    environment: &BTreeMap<String, String>,
    uid: u32,
) -> Result<ManagerFile, ManagerFileError> {
    let trusted = Trusted(if uid == 0 { vec![0] } else { vec![0, uid] });
    for path in candidates(mode, environment) {
        match agentd_unit::loader::read_file(&path, &trusted) {
            Ok(bytes) => return parse(&path, &String::from_utf8_lossy(&bytes)),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(ManagerFileError::Read(error.one_line())),
        }
    }
    Ok(ManagerFile::default())
}

fn candidates(mode: Mode, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    if mode != Mode::User {
        return vec!["/etc/agentd/agentd.toml".into(), "/usr/lib/agentd/agentd.toml".into()];
    }
    let root = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = root("XDG_CONFIG_HOME").or_else(|| root("HOME").map(|home| home.join(".config")));
    home.into_iter().map(|home| home.join("agentd/agentd.toml")).collect()
}

fn parse(path: &Path, text: &str) -> Result<ManagerFile, ManagerFileError> {
    let (settings, diagnostics) = ManagerSettings::parse(&Arc::new(SourceFile::new(path, text)));
    let mut problems: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let trust = word("Trust", settings.trust, &mut problems);
    let log_level = word("LogLevel", settings.log_level, &mut problems);
    let watch_units = word("WatchUnits", settings.watch_units, &mut problems);
    if problems.is_empty() {
        return Ok(ManagerFile { trust, log_level, watch_units });
    }
    Err(ManagerFileError::Invalid { path: path.to_owned(), problems })
}

fn word<T: FromStr<Err: Display>>(key: &str, text: Option<String>, problems: &mut Vec<String>) -> Option<T> {
    match text?.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            problems.push(format!("[Manager] {key}: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_says_nonsense_is_refused() {
        let path = Path::new("/etc/agentd/agentd.toml");
        let good = parse(path, "[Manager]\nTrust = \"warn\"\nLogLevel = \"debug\"\n").unwrap();
        assert_eq!(good.trust, Some(Policy::Warn));
        assert!(good.log_level.is_some());
        let good = parse(path, "[Manager]\nWatchUnits = \"apply\"\n").unwrap();
        assert_eq!(good.watch_units, Some(WatchUnits::Apply));
        for text in [
            "[Manager]\nTrust = \"maybe\"\n",
            "[Manager]\nLogLevel = \"loud\"\n",
            "[Manager]\nTrust = true\n",
            "[Manager]\nWatchUnits = \"yes\"\n",
        ] {
            let error = parse(path, text).unwrap_err().to_string();
            assert!(error.starts_with("/etc/agentd/agentd.toml") && error.contains("[Manager]"), "{error}");
        }
    }
}
