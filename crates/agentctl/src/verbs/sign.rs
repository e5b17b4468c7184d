//! `sign`: writes `UNIT-FILE.sig` over a unit file and everything that it runs. No manager is needed.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentd_trust::envelope::MAX_ENVELOPE_BYTES;
use agentd_trust::{
    Envelope, KeyId, Malformed, Manifest, ManifestError, PrivateKey, SIGNATURE_SUFFIX, durable, key_file,
};
use serde::Serialize;

use super::closure::{ClosureError, Covered, Definition, covered, parse, signed_name};
use crate::args::Sign;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{json, plain};
use crate::report::with_causes;

/// What `sign` and `verify` print for each file with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Report {
    /// The unit file as it was named.
    pub(crate) file: PathBuf,
    /// Whether it was signed, or holds.
    pub(crate) ok: bool,
    /// The keys whose signatures are on it.
    pub(crate) key_ids: Vec<String>,
    /// Why not.
    pub(crate) error: Option<String>,
}

impl Report {
    /// What came of one file.
    pub(crate) fn of<E: Display>(file: &Path, result: Result<Vec<KeyId>, E>) -> Self {
        let file = file.to_owned();
        match result {
            Ok(ids) => {
                let key_ids = ids.iter().map(KeyId::to_string).collect();
                Self { file, ok: true, key_ids, error: None }
            }
            Err(error) => Self { file, ok: false, key_ids: Vec::new(), error: Some(error.to_string()) },
        }
    }
}

/// Why a unit file was not signed.
#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error(transparent)]
    Closure(#[from] ClosureError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Envelope(#[from] Malformed),
    #[error("{} cannot be written: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// `agentctl sign --key FILE [--root DIR] UNIT-FILE…`: each is done; 1 if one of them could not be.
pub(crate) fn sign(context: &Context, arguments: &Sign, out: &mut impl Write) -> Outcome {
    let key = key_file::read_private(&arguments.key)
        .map_err(|error| Failure::Other { exit: Exit::Failed, message: with_causes(&error) })?;
    let mut reports = Vec::new();
    for file in &arguments.files {
        reports.push(Report::of(file, sign_one(file, &arguments.root, &key)));
    }
    if context.is_json() {
        json(&reports, out)?;
    } else {
        for report in &reports {
            tell(context, report, out)?;
        }
    }
    Ok(exit_of(&reports))
}

fn tell(context: &Context, report: &Report, out: &mut impl Write) -> io::Result<()> {
    let file = report.file.display();
    match &report.error {
        Some(error) => eprintln!("Failed to sign {}", plain(&format!("{file}: {error}"))),
        None if context.quiet => {}
        None => writeln!(out, "{}", plain(&format!("{file}: signed by {}", report.key_ids.join(" "))))?,
    }
    Ok(())
}

/// 0 if all went well, else 1.
pub(crate) fn exit_of(reports: &[Report]) -> Exit {
    if reports.iter().all(|report| report.ok) { Exit::Done } else { Exit::Failed }
}

/// The path of a unit file's signature.
pub(crate) fn signature_path(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(SIGNATURE_SUFFIX);
    path.into()
}

/// Signs one unit file. The ids of all keys whose signatures are on it then.
fn sign_one(file: &Path, root: &Path, key: &PrivateKey) -> Result<Vec<KeyId>, SignError> {
    let definition = Definition::read(file, root)?;
    let manifest = manifest(&definition, root)?;
    let path = signature_path(file);
    let envelope = match others(&path, &manifest) {
        Some(mut envelope) => {
            envelope.add_signature(key)?;
            envelope
        }
        None => Envelope::signed(&manifest, key)?,
    };
    let bytes = envelope.to_bytes();
    durable::replace(&path, &bytes, 0o644).map_err(|error| SignError::Write { path, error })?;
    Ok(envelope.key_ids().collect())
}

fn manifest(definition: &Definition, root: &Path) -> Result<Manifest, SignError> {
    let unit = parse(definition)?;
    let mut manifest = Manifest::new(&signed_name(&definition.unit))?;
    for (name, digest) in definition.digests()? {
        manifest.insert(&name, digest)?;
    }
    for covered in covered(&unit, root)? {
        match covered {
            Covered::File { name, digest } => manifest.insert(&name, digest)?,
            Covered::Tree { files, .. } => {
                for (name, digest) in files {
                    manifest.insert(&name, digest)?;
                }
            }
        }
    }
    Ok(manifest)
}

/// What is signed already over just this content, so that several people may sign. Anything else there is replaced.
fn others(path: &Path, manifest: &Manifest) -> Option<Envelope> {
    let small = fs::metadata(path).ok()?.len() <= MAX_ENVELOPE_BYTES as u64;
    let envelope = Envelope::parse(&fs::read(path).ok().filter(|_| small)?).ok()?;
    (envelope.unverified_manifest().ok()? == *manifest).then_some(envelope)
}
