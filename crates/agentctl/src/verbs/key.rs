//! `key generate` and `key list`: no manager is needed.

use std::io::{self, Write};
use std::path::PathBuf;

use agentd_trust::{KeyProblem, KeyRing, key_file};
use serde::Serialize;

use crate::args::{KeyFolders, KeyGenerate};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::table::{Cell, Table};
use crate::print::{json, one_line};
use crate::report::with_causes;

/// Where a machine's keys are, highest first.
const FOLDERS: [&str; 2] = ["/etc/agentd/keys", "/usr/lib/agentd/keys"];

/// What is printed with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyInfo {
    key_id: String,
    name: String,
    path: PathBuf,
    revoked: bool,
}

/// `agentctl key generate NAME --out DIR`.
pub(crate) fn generate(context: &Context, arguments: &KeyGenerate, out: &mut impl Write) -> Outcome {
    let made = key_file::generate(&arguments.out, &arguments.name)
        .map_err(|error| Failure::Other { exit: Exit::Failed, message: with_causes(&error) })?;
    if context.is_json() {
        let (key_id, path) = (made.id.to_string(), made.public_path);
        json(&KeyInfo { key_id, name: arguments.name.clone(), path, revoked: false }, out)?;
    } else if !context.quiet {
        let (private, public) = (made.private_path.display(), made.public_path.display());
        writeln!(out, "Key {}", made.id)?;
        writeln!(out, "  {private} signs: keep it secret, off the machines that run the units")?;
        writeln!(out, "  {public} verifies: copy it to {} of those machines", FOLDERS[0])?;
    }
    Ok(Exit::Done)
}

/// `agentctl key list [--keys DIR]…`: what is no usable key is told on standard error and is no failure.
pub(crate) fn list(context: &Context, folders: &KeyFolders, out: &mut impl Write) -> Outcome {
    let (ring, problems) = load(folders)?;
    for problem in &problems {
        eprintln!("Warning: {}", with_causes(problem));
    }
    let keys: Vec<KeyInfo> = ring.keys().map(info).collect();
    if context.is_json() {
        json(&keys, out)?;
    } else if keys.is_empty() {
        let places = places(folders).iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
        writeln!(out, "No keys in {}.", one_line(&places.join(" and ")))?;
    } else {
        let mut table = Table::new(["KEY ID", "NAME", "STATE", "FILE"]);
        for key in &keys {
            table.row([
                key.key_id.as_str().into(),
                one_line(&key.name).into_owned().into(),
                Cell::bad(if key.revoked { "revoked" } else { "valid" }, key.revoked),
                one_line(&key.path.display().to_string()).into_owned().into(),
            ]);
        }
        table.write(context.style, out)?;
    }
    Ok(Exit::Done)
}

fn info(key: &agentd_trust::KnownKey) -> KeyInfo {
    KeyInfo {
        key_id: key.key.id().to_string(),
        name: key.name.clone(),
        path: key.path.clone(),
        revoked: key.revoked,
    }
}

/// The keys of the folders that are named, which must be there, or of the machine's own, which need not.
pub(crate) fn load(folders: &KeyFolders) -> Result<(KeyRing, Vec<KeyProblem>), Failure> {
    if let Some(none) = folders.keys.iter().find(|folder| !folder.is_dir()) {
        let place = none.display().to_string();
        return Err(Failure::Usage(format!("--keys {}: there is no such folder", one_line(&place))));
    }
    // Keys of one's own folder are trusted by oneself; keys of the machine must be root's.
    let own = key_file::own_uid().map_err(|error: io::Error| Failure::Other {
        exit: Exit::Failed,
        message: format!("cannot tell which user this is from /proc/self: {error}; is /proc mounted?"),
    })?;
    let owners = if folders.keys.is_empty() { Vec::new() } else { vec![own] };
    Ok(KeyRing::load(&places(folders), &owners))
}

fn places(folders: &KeyFolders) -> Vec<PathBuf> {
    if folders.keys.is_empty() { FOLDERS.map(PathBuf::from).to_vec() } else { folders.keys.clone() }
}
