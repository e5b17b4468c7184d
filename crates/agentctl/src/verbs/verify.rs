//! `verify`: whether unit files, and everything that they run, are what was signed. No manager is needed.

use std::io::{self, Read, Write};
use std::path::Path;

use agentd_trust::envelope::MAX_ENVELOPE_BYTES;
use agentd_trust::{KeyId, KeyRing, TrustError, verify as verify_envelope};

use super::closure::{ClosureError, Covered, Definition, covered, open, parse, signed_name};
use super::key;
use super::sign::{Report, exit_of, signature_path};
use crate::args::Verify;
use crate::context::Context;
use crate::exit::Outcome;
use crate::print::{json, one_line};
use crate::report::with_causes;

/// Why a unit file does not hold.
#[derive(Debug, thiserror::Error)]
enum VerifyError {
    #[error("not signed: there is no {0}; 'agentctl sign --key FILE' makes it")]
    Missing(String),
    #[error("its signature cannot be read: {0}")]
    Read(io::Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Closure(#[from] ClosureError),
}

/// `agentctl verify [--keys DIR]… [--root DIR] UNIT-FILE…`: 0 only if all hold.
pub(crate) fn verify(context: &Context, arguments: &Verify, out: &mut impl Write) -> Outcome {
    let (ring, problems) = key::load(&arguments.folders)?;
    for problem in &problems {
        eprintln!("Warning: {}", with_causes(problem));
    }
    let mut reports = Vec::new();
    for file in &arguments.files {
        reports.push(Report::of(file, verify_one(file, &arguments.root, &ring)));
    }
    if context.is_json() {
        json(&reports, out)?;
    } else {
        for report in reports.iter().filter(|report| !context.quiet || !report.ok) {
            writeln!(out, "{}", line(report))?;
        }
    }
    Ok(exit_of(&reports))
}

/// `UNIT-FILE: ok (KEY-ID …)` or `UNIT-FILE: REASON`.
fn line(report: &Report) -> String {
    let result = match &report.error {
        Some(error) => error.replace('\n', "; "),
        None => format!("ok ({})", report.key_ids.join(" ")),
    };
    one_line(&format!("{}: {result}", report.file.display())).into_owned()
}

/// The ids of the known keys that signed it. What is wrong with the signature is told before what is wrong with the
/// unit, since nothing in an unsigned file is of interest.
fn verify_one(file: &Path, root: &Path, ring: &KeyRing) -> Result<Vec<KeyId>, VerifyError> {
    let definition = Definition::read(file, root)?;
    let signed = verify_envelope(&read_signature(file)?, ring)?;
    signed.check_unit(&signed_name(&definition.unit))?;
    signed.check_unit_files(&definition.digests()?)?;
    let unit = parse(&definition)?;
    for covered in covered(&unit, root)? {
        match covered {
            Covered::File { name, digest } => signed.check(&name, digest)?,
            Covered::Tree { folder, files } => signed.check_tree(&folder, &files)?,
        }
    }
    Ok(signed.signers().to_vec())
}

fn read_signature(file: &Path) -> Result<Vec<u8>, VerifyError> {
    let path = signature_path(file);
    let opened = open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => VerifyError::Missing(path.display().to_string()),
        _ => VerifyError::Read(error),
    })?;
    let mut bytes = Vec::new();
    // One byte too many is enough for the parser to say that it is too large.
    opened.take(MAX_ENVELOPE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(VerifyError::Read)?;
    Ok(bytes)
}
