//! The keys that this machine trusts.
//!
//! # Invariants
//!
//! - A file that is no use is reported and skipped; it never hides another.
//! - Doubt about a revocation revokes: a revocation that cannot be read counts by its file name, and while a
//!   `revoked` folder cannot be listed, no key is trusted.
//! - The first folder that has a key names it. A revocation in any folder holds for all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::key_file::{self, KeyFileErrorKind, REVOKED_FOLDER};
use crate::verified::Verified;
use crate::{KeyId, PublicKey};

/// The most entries of a keys folder that are looked at; more is a mistake, and boot must not take for ever.
const MAX_ENTRIES: usize = 1024;

/// A public key found in a keys folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// The file's name without `.pub`, for people.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The key.
    pub key: PublicKey,
    /// Whether it was revoked, so that its signatures count no more.
    pub revoked: bool,
}

/// A file or folder of keys that is no use, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct KeyProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: KeyProblemKind,
}

/// What can be wrong with a file or folder of keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyProblemKind {
    /// The key in it is not used.
    #[error("is not used")]
    Skipped(#[source] KeyFileErrorKind),
    /// A folder that cannot be trusted: none of its keys is used.
    #[error("no key in it is used")]
    FolderSkipped(#[source] KeyFileErrorKind),
    /// The revocations cannot be listed: no key of any folder is used.
    #[error("cannot be listed, so no key at all is trusted")]
    RevocationsUnknown(#[source] io::Error),
    /// The revocation cannot be read: keys in files of the same name are taken as revoked.
    #[error("is taken to revoke the key of the same file name")]
    RevocationUnclear(#[source] KeyFileErrorKind),
    /// Another key of the same id is there already; one of the two was made to collide.
    #[error("is not used, since {} has another key with the same id {id}", other.display())]
    SameId {
        /// The id.
        id: KeyId,
        /// The file that is used.
        other: PathBuf,
    },
    /// More entries than are looked at.
    #[error("no key in it is used, since it has more than {MAX_ENTRIES} entries")]
    TooMany,
}

/// The public keys that this machine knows, by id.
#[derive(Debug, Default)]
pub struct KeyRing {
    keys: BTreeMap<KeyId, KnownKey>,
    verified: Verified,
}

/// Two rings with the same keys are the same, whatever they have verified.
impl PartialEq for KeyRing {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

impl Eq for KeyRing {}

/// A copy has the same keys and has verified nothing yet.
impl Clone for KeyRing {
    fn clone(&self) -> Self {
        Self { keys: self.keys.clone(), verified: Verified::default() }
    }
}

impl KeyRing {
    /// Loads the `*.pub` files of `folders`, highest first, and what their `revoked` folders say.
    ///
    /// A folder that does not exist is empty. Files and folders must belong to root or one of `owners`, and be
    /// writable by their owner alone. The problems are in the order in which they were met.
    #[must_use]
    pub fn load(folders: &[PathBuf], owners: &[u32]) -> (Self, Vec<KeyProblem>) {
        let mut loader = Loader { owners, ..Loader::default() };
        for folder in folders {
            loader.read_folder(folder);
            loader.read_revoked(&folder.join(REVOKED_FOLDER));
        }
        loader.finish()
    }

    /// A ring of these keys, none revoked, each named by its id.
    #[must_use]
    pub fn of(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let known = |key: PublicKey| {
            let (id, name) = (key.id(), key.id().to_string());
            (id, KnownKey { path: PathBuf::from(&name), name, key, revoked: false })
        };
        Self { keys: keys.into_iter().map(known).collect(), verified: Verified::default() }
    }

    /// The key with this id.
    #[must_use]
    pub fn get(&self, id: KeyId) -> Option<&KnownKey> {
        self.keys.get(&id)
    }

    /// All keys in the order of their ids, the revoked ones too.
    pub fn keys(&self) -> impl Iterator<Item = &KnownKey> {
        self.keys.values()
    }

    /// What was verified with it.
    pub(crate) fn verified(&self) -> &Verified {
        &self.verified
    }

    /// Whether no key is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// What is gathered over the folders.
#[derive(Default)]
struct Loader<'a> {
    owners: &'a [u32],
    keys: BTreeMap<KeyId, KnownKey>,
    revoked_ids: BTreeSet<KeyId>,
    revoked_names: BTreeSet<OsString>,
    revocations_unknown: bool,
    problems: Vec<KeyProblem>,
}

impl Loader<'_> {
    fn report(&mut self, path: &Path, kind: KeyProblemKind) {
        self.problems.push(KeyProblem { path: path.to_owned(), kind });
    }

    fn read_folder(&mut self, folder: &Path) {
        let paths = match fs::metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.report(folder, KeyProblemKind::FolderSkipped(error.into())),
            Ok(metadata) => match key_file::check_owner(&metadata, self.owners) {
                Err(kind) => return self.report(folder, KeyProblemKind::FolderSkipped(kind)),
                Ok(()) => list(folder),
            },
        };
        match paths {
            Err(error) => self.report(folder, KeyProblemKind::FolderSkipped(error.into())),
            Ok(paths) if paths.len() > MAX_ENTRIES => self.report(folder, KeyProblemKind::TooMany),
            Ok(paths) => paths.iter().filter(|path| is_key(path)).for_each(|path| self.read_key(path)),
        }
    }

    fn read_key(&mut self, path: &Path) {
        let read = key_file::read_regular(path).and_then(|(metadata, text)| {
            key_file::check_owner(&metadata, self.owners)?;
            Ok(PublicKey::from_pem(&text)?)
        });
        let key = match read {
            Ok(key) => key,
            Err(kind) => return self.report(path, KeyProblemKind::Skipped(kind)),
        };
        let id = key.id();
        match self.keys.get(&id) {
            Some(known) if known.key == key => {}
            Some(known) => {
                let other = known.path.clone();
                self.report(path, KeyProblemKind::SameId { id, other });
            }
            None => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                self.keys.insert(id, KnownKey { name, path: path.to_owned(), key, revoked: false });
            }
        }
    }

    /// Whoever may write here can only take trust away, so neither owner nor number of files matters.
    fn read_revoked(&mut self, folder: &Path) {
        match list(folder) {
            Ok(paths) => paths.iter().for_each(|path| self.read_revocation(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                self.revocations_unknown = true;
                self.report(folder, KeyProblemKind::RevocationsUnknown(error));
            }
        }
    }

    fn read_revocation(&mut self, path: &Path) {
        let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        if let Ok(id) = stem.parse() {
            self.revoked_ids.insert(id);
            return;
        }
        match key_file::read_regular(path).and_then(|(_, text)| Ok(PublicKey::from_pem(&text)?)) {
            Ok(key) => {
                self.revoked_ids.insert(key.id());
            }
            Err(kind) => {
                self.revoked_names.extend(path.file_name().map(OsStr::to_owned));
                self.report(path, KeyProblemKind::RevocationUnclear(kind));
            }
        }
    }

    fn finish(mut self) -> (KeyRing, Vec<KeyProblem>) {
        if self.revocations_unknown {
            self.keys.clear();
        }
        for (id, known) in &mut self.keys {
            let name = known.path.file_name().unwrap_or_default();
            known.revoked = self.revoked_ids.contains(id) || self.revoked_names.contains(name);
        }
        (KeyRing { keys: self.keys, verified: Verified::default() }, self.problems)
    }
}

fn is_key(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pub")
}

/// The paths in `folder`, sorted, so that the same folder gives the same ring and the same problems.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
