//! What a signature covers: the unit file, its drop-ins, and every file that the unit runs.
//!
//! `sign` and `verify` both come here, so that they see the same files by the same names. A file is read once; what is
//! hashed is what was parsed.
//!
//! # Invariants
//!
//! - Nothing outside the root is read for what runs: links are followed within it, as the machine will.
//! - A program without an absolute path has no place in a signature, since which file it is depends on PATH.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agentd_trust::{Sha256Digest, name, tree, within};
use agentd_unit::{ExecKind, Unit, UnitName};

mod definition;
mod parse;

pub(crate) use definition::Definition;
pub(crate) use parse::parse;

/// The largest unit file or drop-in, as the manager has it.
const UNIT_FILE_MAX: u64 = 1 << 20;

/// O_NONBLOCK | O_CLOEXEC, open(2): a FIFO must not keep anybody waiting for its writer.
const NONBLOCK: i32 = 0o4000;

/// Why there is no closure. `Display` is the whole sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClosureError {
    /// The path is no unit file's.
    #[error("{} is no unit file; its name ends in .service.toml or .service, .timer.toml or .timer …", .0.display())]
    NotAUnitFile(PathBuf),
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The unit has errors, each on a line of its own.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// A program is looked up along PATH.
    #[error(
        "{key}: '{program}' is no absolute path, and which file it is would depend on PATH; write its path"
    )]
    NotAbsolute {
        /// The key in the unit file.
        key: &'static str,
        /// The program.
        program: String,
    },
    /// A file that the unit runs is not there.
    #[error("{key}: {} cannot be read{}: {error}", path.display(), below(root))]
    Runs {
        /// The key in the unit file.
        key: &'static str,
        /// The path as the unit has it.
        path: PathBuf,
        /// Where it was looked up.
        root: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path that no manifest can hold.
    #[error(transparent)]
    Name(#[from] name::NameError),
}

/// Says where a path was looked up, if that is not this machine.
fn below(root: &Path) -> String {
    if root == Path::new("/") { String::new() } else { format!(" below {}", root.display()) }
}

/// One file or package that a unit runs, as it is on the machine, by the name that a manifest gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Covered {
    /// A single file.
    File {
        /// Its absolute path where the unit runs.
        name: String,
        /// What it holds.
        digest: Sha256Digest,
    },
    /// A Python package: its files, no more and no less.
    Tree {
        /// Its absolute path where the unit runs.
        folder: String,
        /// Its files by their absolute paths.
        files: BTreeMap<String, Sha256Digest>,
    },
}

/// What the unit runs, in the tree that is `/` where it will.
pub(crate) fn covered(unit: &Unit, root: &Path) -> Result<Vec<Covered>, ClosureError> {
    check_absolute(unit)?;
    let mut files = unit.signed_files();
    files.extend(unit.optional_signed_files().into_iter().filter(|path| is_there(path, root)));
    files.iter().map(|path| cover(unit, path, root)).collect()
}

/// Whether the path leads to something; what cannot be told counts, so that reading it tells why.
fn is_there(path: &Path, root: &Path) -> bool {
    let found = within(root, path).and_then(fs::symlink_metadata);
    !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn check_absolute(unit: &Unit) -> Result<(), ClosureError> {
    let programs = commands(unit).find(|(_, program)| !program.starts_with('/'));
    programs.map_or(Ok(()), |(kind, program)| {
        Err(ClosureError::NotAbsolute { key: kind.key(), program: program.to_owned() })
    })
}

fn commands(unit: &Unit) -> impl Iterator<Item = (ExecKind, &str)> {
    let service = unit.as_service().map(|body| &body.service);
    service.into_iter().flat_map(|service| {
        ExecKind::ALL.into_iter().flat_map(move |kind| {
            service.commands(kind).iter().map(move |command| (kind, command.program.as_str()))
        })
    })
}

/// The key that names a path, for messages.
fn key_of(unit: &Unit, path: &Path) -> &'static str {
    if let Some((kind, _)) =
        commands(unit).find(|(kind, program)| unit.program_file(Some(*kind), program) == path)
    {
        return kind.key();
    }
    let body = unit.as_service();
    let environment = body.map(|body| &body.service.execution.environment_files);
    if environment.is_some_and(|files| files.iter().any(|file| file.path == path)) {
        return "EnvironmentFile";
    }
    let mut secrets = body.into_iter().flat_map(|body| {
        let service = &body.service;
        service.credential_files(false).chain(service.credential_files(true))
    });
    if secrets.any(|secret| secret == path) {
        return "LoadCredential";
    }
    let agent = body.and_then(|body| body.agent.as_ref());
    if agent.is_some_and(|agent| agent.pin.iter().any(|pin| pin == path)) { "Pin" } else { "Module" }
}

fn cover(unit: &Unit, path: &Path, root: &Path) -> Result<Covered, ClosureError> {
    let runs = |error| ClosureError::Runs {
        key: key_of(unit, path),
        path: path.to_owned(),
        root: root.to_owned(),
        error,
    };
    let name = name::installed_name(path, None)?;
    let real = place(unit, path, root).map_err(runs)?;
    if !fs::metadata(&real).map_err(runs)?.is_dir() {
        let file = open(&real).map_err(runs)?;
        return Ok(Covered::File { name, digest: Sha256Digest::of_reader(file).map_err(runs)? });
    }
    let mut files = BTreeMap::new();
    for (member, content) in tree::read(&real).map_err(runs)? {
        let below = member.strip_prefix(&real).unwrap_or(&member);
        let member = name::installed_name(&path.join(below), None)?;
        files.insert(member, Sha256Digest::of(&content));
    }
    Ok(Covered::Tree { folder: name, files })
}

/// Where a file that the unit runs is. Links on the way to a program lead to what they lead to for the program: within
/// `RootDirectory`.
fn place(unit: &Unit, path: &Path, root: &Path) -> io::Result<PathBuf> {
    let program = commands(unit).find(|(kind, program)| unit.program_file(Some(*kind), program) == path);
    let own = unit.as_service().zip(program).and_then(|(body, (kind, _))| body.service.root_of(Some(kind)));
    match own.and_then(|own| Some((own, path.strip_prefix(own).ok()?))) {
        Some((own, below)) => within(&within(root, own)?, below),
        None => within(root, path),
    }
}

/// Opens a regular file to be read.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file"))
}

/// Reads a unit file or drop-in.
fn read(path: &Path) -> Result<Vec<u8>, ClosureError> {
    let failed = |error| ClosureError::Read { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    open(path).map_err(failed)?.take(UNIT_FILE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > UNIT_FILE_MAX {
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB")));
    }
    Ok(bytes)
}

/// The unit that a signature is for: the template of an instance, the unit itself otherwise.
pub(crate) fn signed_name(unit: &UnitName) -> String {
    unit.template().as_ref().unwrap_or(unit).to_string()
}

#[cfg(test)]
#[path = "closure_tests.rs"]
mod tests;
