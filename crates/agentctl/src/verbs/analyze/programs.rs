//! Whether the programs of a unit are there, looked for as the manager looks for them.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentd_unit::{ExecKind, ServiceSection};

/// Where bare names are looked for if the unit says nothing of it, as the manager's processes have it.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Looks for the program of a command.
///
/// # Errors
/// Why it cannot be executed, to stand behind its name.
pub(super) fn find(kind: ExecKind, program: &str, service: &ServiceSection) -> Result<(), String> {
    let place = |path: &Path| service.outside(Some(kind), path);
    if program.starts_with('/') {
        return executable(&place(Path::new(program))).map_err(|error| format!("is not executable: {error}"));
    }
    let Some(path) = search_path(service) else { return Ok(()) };
    let mut candidates = path
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(program));
    let is_there = |path: PathBuf| executable(&place(&path)).is_ok();
    if candidates.any(is_there) { Ok(()) } else { Err(format!("is not executable: it is not in {path}")) }
}

/// `ExecSearchPath`, else `PATH` as the unit's processes have it; `None`: only the manager knows.
fn search_path(service: &ServiceSection) -> Option<Cow<'_, str>> {
    if let Some(path) = service.execution.search_path() {
        return Some(path.into());
    }
    let said = service.environment.iter().rev().find(|(name, _)| name == "PATH");
    let from_elsewhere = !service.execution.environment_files.is_empty()
        || service.execution.pass_environment.iter().any(|name| name == "PATH");
    match said {
        _ if from_elsewhere => None,
        Some((_, path)) => Some(Cow::Borrowed(path)),
        None => Some(Cow::Borrowed(DEFAULT_PATH)),
    }
}

/// Whether somebody may execute it.
fn executable(path: &Path) -> io::Result<()> {
    let meta = fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}
