//! Secrets of a run: a read-only file system in memory for each, whose files its user alone can read.
//!
//! # Invariants
//!
//! - No secret is in an argument, a variable, a message or a file on a disk of the manager's.
//! - They go with the run.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::mount;
use agentd_linux::open::NONBLOCK;
use agentd_linux::spawn::Identity;
use agentd_unit::UnitName;
use agentd_unit::sections::{Credential, CredentialSource};

use super::plan::step;

const EXIT_CREDENTIALS: u8 = 243;

/// The most that all secrets of a unit may take together, systemd.exec(5).
const MAX_BYTES: u64 = 1 << 20;

/// The machine's own secrets.
const STORES: [&str; 3] = ["/etc/credstore", "/run/credstore", "/usr/lib/credstore"];

/// What the machine was started with.
const MACHINE: &str = "/run/credentials/@system";

/// Where the secrets of a unit are, whether it has any or not.
#[must_use]
pub fn folder(runtime: &Path, unit: &UnitName) -> PathBuf {
    runtime.join("credentials").join(unit.as_str())
}

/// Whether a file, with what it says, may be read as a secret.
pub type AdmitFile<'a> = &'a dyn Fn(&Path, &[u8]) -> Result<(), SpawnFailure>;

/// The files below a folder, if they may.
pub type AdmitFolder<'a> = &'a dyn Fn(&Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, SpawnFailure>;

/// What a unit names must be what was signed.
pub struct Admit<'a> {
    /// Of a file.
    pub file: AdmitFile<'a>,
    /// Of a folder.
    pub folder: AdmitFolder<'a>,
}

/// Makes the folder of a run's secrets.
///
/// # Errors
/// A secret that is not there, was not signed as it is, or cannot be kept; the message names it and never its text.
pub fn make(
    runtime: &Path,
    unit: &UnitName,
    credentials: &[Credential],
    owner: Option<&Identity>,
    admit: &Admit<'_>,
) -> Result<PathBuf, SpawnFailure> {
    let folder = folder(runtime, unit);
    let secrets = collect(credentials, admit)?;
    let keep = || -> io::Result<()> {
        discard(&folder)?;
        fs::DirBuilder::new().recursive(true).mode(0o755).create(runtime.join("credentials"))?;
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        // Without the right to mount, the manager's own folder has to do; the runtime folder is in memory as well.
        let mounted = mount::memory(&folder, "mode=0700,size=2M,nr_inodes=1024");
        if let Err(error) = &mounted {
            tracing::debug!(unit = %unit, %error, "the secrets have no file system of their own");
        }
        for (id, secret) in &secrets {
            write(&folder.join(id), secret, owner)?;
        }
        let open = File::open(&folder)?;
        if let Some(who) = owner {
            fchown(&open, Some(who.uid), Some(who.gid))?;
        }
        open.set_permissions(Permissions::from_mode(0o500))?;
        if mounted.is_ok() { mount::shut(&folder) } else { Ok(()) }
    };
    keep().map_err(|error| {
        step(EXIT_CREDENTIALS, format!("LoadCredential: {} cannot be made: {error}", folder.display()))
    })?;
    Ok(folder)
}

/// Each secret by its name: what is loaded counts, else what the unit file says. What is in a store is the machine's
/// own and no part of the unit, so nobody has signed it.
fn collect(credentials: &[Credential], admit: &Admit<'_>) -> Result<Vec<(String, Vec<u8>)>, SpawnFailure> {
    let failed = |text: String| step(EXIT_CREDENTIALS, text);
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let mut left = MAX_BYTES;
    for credential in credentials {
        let id = credential.id.as_str();
        let text = |c: &&Credential| c.id == id && matches!(c.source, CredentialSource::Text(_));
        let has_text = credentials.iter().any(|c| text(&c));
        let secret = match &credential.source {
            CredentialSource::Text(secret) => secret.0.clone(),
            CredentialSource::File(path) if path.is_dir() => {
                for (name, secret) in in_folder(id, path, admit)? {
                    take(&mut left, &secret).map_err(|why| failed(format!("LoadCredential={id}: {why}")))?;
                    if found.iter().all(|(known, _)| *known != name) {
                        found.push((name, secret));
                    }
                }
                continue;
            }
            CredentialSource::File(path) => match read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && has_text => continue,
                Err(e) => {
                    return Err(failed(format!(
                        "LoadCredential={id}: {} cannot be read: {e}",
                        path.display()
                    )));
                }
                Ok(secret) => {
                    (admit.file)(path, &secret)?;
                    secret
                }
            },
            CredentialSource::Import(pattern) => {
                let known = |id: &str| credentials.iter().any(|c| c.id == id && !is_import(c) && !is_text(c));
                let mut imported = import(pattern);
                imported.retain(|(name, _)| !known(name) && found.iter().all(|(id, _)| id != name));
                for (name, path) in imported {
                    let secret = read(&path).map_err(|e| {
                        failed(format!("ImportCredential={pattern}: {} cannot be read: {e}", path.display()))
                    })?;
                    take(&mut left, &secret)
                        .map_err(|why| failed(format!("ImportCredential={pattern}: {why}")))?;
                    found.push((name, secret));
                }
                continue;
            }
            CredentialSource::Store(name) => match stored(name) {
                // What nobody gave to the machine, the unit goes without.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => {
                    result.map_err(|e| failed(format!("LoadCredential={id}: {name} cannot be read: {e}")))?
                }
            },
        };
        take(&mut left, &secret).map_err(|why| failed(format!("LoadCredential={id}: {why}")))?;
        match found.iter_mut().find(|(known, _)| known == id) {
            Some(_) if matches!(credential.source, CredentialSource::Text(_)) => {}
            Some((_, known)) => *known = secret,
            None => found.push((id.to_owned(), secret)),
        }
    }
    Ok(found)
}

/// Takes the length of a secret from what is left for all.
fn take(left: &mut u64, secret: &[u8]) -> Result<(), &'static str> {
    *left = left.checked_sub(secret.len() as u64).ok_or("the secrets are longer than a mebibyte together")?;
    Ok(())
}

/// Each file below a folder, by the name of the secret and its path below it, with `_` between; those whose names begin
/// with a dot are left out, as in systemd.
fn in_folder(id: &str, folder: &Path, admit: &Admit<'_>) -> Result<Vec<(String, Vec<u8>)>, SpawnFailure> {
    let failed = |path: &Path, why: &str| {
        step(EXIT_CREDENTIALS, format!("LoadCredential={id}: {} {why}", path.display()))
    };
    let mut found = Vec::new();
    for (path, secret) in (admit.folder)(folder)? {
        let below = path.strip_prefix(folder).unwrap_or(&path);
        let below = below.to_str().ok_or_else(|| failed(&path, "has no name in UTF-8"))?;
        if below.split('/').any(|part| part.starts_with('.')) {
            continue;
        }
        let name = format!("{id}_{}", below.replace('/', "_"));
        if !Credential::is_name(&name) {
            return Err(failed(&path, "has a name that no secret can have"));
        }
        found.push((name, secret));
    }
    Ok(found)
}

fn is_import(credential: &Credential) -> bool {
    matches!(credential.source, CredentialSource::Import(_))
}

fn is_text(credential: &Credential) -> bool {
    matches!(credential.source, CredentialSource::Text(_))
}

/// The files of the machine's stores that a pattern fits, by name; of two of one name the first.
fn import(pattern: &str) -> Vec<(String, PathBuf)> {
    let fits = |name: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for store in places() {
        let Ok(entries) = fs::read_dir(store) else { continue };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_file = entry.path().is_file();
            if is_file && fits(&name) && found.iter().all(|(known, _)| *known != name) {
                found.push((name, entry.path()));
            }
        }
    }
    found.sort();
    found
}

/// Where secrets that have no path are looked for, in this order.
fn places() -> impl Iterator<Item = &'static str> {
    [MACHINE].into_iter().chain(STORES)
}

fn stored(name: &str) -> io::Result<Vec<u8>> {
    let path = places().map(|store| Path::new(store).join(name)).find(|path| path.exists());
    read(&path.ok_or(io::ErrorKind::NotFound)?)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is neither a regular file nor a folder"));
    }
    // It may have become another one since.
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is neither a regular file nor a folder"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(path: &Path, secret: &[u8], owner: Option<&Identity>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path)?;
    file.write_all(secret)?;
    match owner {
        Some(who) => fchown(&file, Some(who.uid), Some(who.gid)),
        None => Ok(()),
    }
}

/// A run is over, or an earlier manager left this: the secrets go.
///
/// # Errors
/// They cannot be removed.
pub fn discard(folder: &Path) -> io::Result<()> {
    while mount::is_mounted(folder)? {
        mount::detach(folder)?;
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
