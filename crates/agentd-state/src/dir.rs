//! The state directory as a whole, and what can be wrong with it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use agentd_unit::{Realtime, UnitName};

use crate::fencing::{Fencing, Token};
use crate::stamps::Stamps;
use crate::{atomic, record};

/// A file of the state that could not be used. The manager runs on without it.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: ProblemKind,
}

/// What can be wrong with a file of the state.
#[derive(Debug, thiserror::Error)]
pub enum ProblemKind {
    /// It fails its checks; it was moved to `moved_to` for a person to look at.
    #[error("is damaged ({reason}); it was moved to {} and {consequence}", moved_to.display())]
    Damaged {
        /// Which check it fails.
        reason: &'static str,
        /// Where it is now.
        moved_to: PathBuf,
        /// What the manager does without it.
        consequence: String,
    },
    /// It cannot be read.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// Its name is not that of a unit.
    #[error("is no file of agentd's state; remove it")]
    Foreign,
}

/// A step that failed, and where.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {}", path.display())]
pub struct StateError {
    /// What was tried: `create`, `read`, `write`, `move aside`.
    pub step: &'static str,
    /// On which file or folder.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

impl StateError {
    pub(crate) fn at(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { step, path, source }
    }
}

/// The state of one manager on the disk: `/var/lib/agentd` for the system.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    stamps: Stamps,
    fencing: Fencing,
}

impl StateDir {
    /// Opens the state under `path`, making the folders (mode 0700) where they are missing, removing what a crash
    /// left half-written, and moving damaged files aside. What was wrong comes back beside the state, to be told.
    ///
    /// # Errors
    /// A folder that cannot be made or read, or a damaged file that cannot be moved aside.
    pub fn open(path: &Path) -> Result<(Self, Vec<Problem>), StateError> {
        let mut problems = Vec::new();
        create(path)?;
        atomic::remove_temporaries(path).map_err(StateError::at("clean up", path))?;
        let stamps = Stamps::open(&path.join("stamps"), &mut problems)?;
        let fencing = Fencing::open(path, &mut problems)?;
        Ok((Self { path: path.to_owned(), stamps, fencing }, problems))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When each persistent timer last fired, as far as it was saved, at the time of the call.
    #[must_use]
    pub fn stamps(&self) -> std::collections::BTreeMap<UnitName, Realtime> {
        self.stamps.all()
    }

    /// Keeps when a timer last fired. Durable once it returns Ok.
    ///
    /// # Errors
    /// The stamp cannot be written; the earlier one stays.
    pub fn save_stamp(&self, timer: &UnitName, at: Realtime) -> Result<(), StateError> {
        self.stamps.save(timer, at)
    }

    /// A fencing token greater than every one that was handed out from this directory before, over crashes and
    /// reboots: `AGENTD_FENCING_TOKEN`. Greater for every unit at once, so it orders the generations of each.
    ///
    /// Most calls touch no disk: a block of tokens is reserved durably at a time, and what a crash leaves unused of it
    /// is skipped. Where the disk takes no reservation, tokens follow the wall clock, and the first one says why.
    #[must_use]
    pub fn next_fencing_token(&self) -> Token {
        self.fencing.next()
    }
}

pub(crate) fn create(path: &Path) -> Result<(), StateError> {
    let made = |folder: &Path, mode| DirBuilder::new().recursive(true).mode(mode).create(folder);
    // What lies above it is everybody's: on an empty disk that is /var itself.
    if let Some(above) = path.parent() {
        made(above, 0o755).map_err(StateError::at("create", above))?;
    }
    made(path, 0o700).map_err(StateError::at("create", path))
}

/// What a file of the state holds.
pub(crate) enum Loaded {
    /// There is no such file.
    Absent,
    /// Its value, not yet understood.
    Value(String),
    /// It was there and cannot be used.
    Lost,
}

/// Reads the value of a file; a damaged one is moved aside and reported with `consequence`.
pub(crate) fn load(
    path: &Path,
    kind: &str,
    subject: &str,
    consequence: &str,
    problems: &mut Vec<Problem>,
) -> Result<Loaded, StateError> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|f| f.take(record::MAX_BYTES + 1).read_to_end(&mut content));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Absent),
        Err(error) => {
            problems.push(Problem { path: path.to_owned(), kind: ProblemKind::Unreadable(error) });
            return Ok(Loaded::Lost);
        }
    }
    match record::decode(kind, subject, &content) {
        Ok(value) => Ok(Loaded::Value(value.to_owned())),
        Err(reason) => {
            set_aside(path, reason, consequence, problems)?;
            Ok(Loaded::Lost)
        }
    }
}

/// Moves a damaged file out of the way, where nothing overwrites it, and reports it.
pub(crate) fn set_aside(
    path: &Path,
    reason: &'static str,
    consequence: &str,
    problems: &mut Vec<Problem>,
) -> Result<(), StateError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Cut, as the longest unit name leaves no room for more in a file name. Unit names are ASCII.
    let name: String = name.chars().take(200).collect();
    let free = (1..).map(|n: u32| folder.join(format!("#damaged-{n}-{name}"))).find(|p| !p.exists());
    let moved_to = free.unwrap_or_else(|| folder.join(format!("#damaged-{name}")));
    fs::rename(path, &moved_to).map_err(StateError::at("move aside", path))?;
    let kind = ProblemKind::Damaged { reason, moved_to, consequence: consequence.to_owned() };
    problems.push(Problem { path: path.to_owned(), kind });
    Ok(())
}
