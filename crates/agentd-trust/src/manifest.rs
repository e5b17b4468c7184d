//! The manifest: which files a signature covers, and what they hold.

use std::collections::BTreeMap;

use crate::name::{self, NameError};
use crate::{Sha256Digest, statement};

/// The most files that one signature may cover. A large Python package has a few thousand.
pub const MAX_SUBJECTS: usize = 16_384;

/// A manifest that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A file's name breaks the rules of [`name`].
    #[error(transparent)]
    Name(#[from] NameError),
    /// One name with two contents: the file changed while it was being signed.
    #[error("{0}: changed while it was being signed; sign again")]
    Conflict(String),
    /// More files than a signature may cover.
    #[error("{unit}: runs more than {MAX_SUBJECTS} files, the most that one signature may cover")]
    TooManySubjects {
        /// The unit that is signed.
        unit: String,
    },
    /// A signature over no file says nothing.
    #[error("{unit}: the manifest names no file")]
    Empty {
        /// The unit that is signed.
        unit: String,
    },
}

/// The files of one unit, each with its SHA-256, by the names of [`name`].
///
/// It has one encoding, in which names are sorted, so the same files give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    unit: String,
    subjects: BTreeMap<String, Sha256Digest>,
}

impl Manifest {
    /// An empty manifest for the unit named `unit` (`web.service`, `worker@.service`).
    ///
    /// # Errors
    /// [`ManifestError::Name`] if that cannot be the name of a unit.
    pub fn new(unit: &str) -> Result<Self, ManifestError> {
        if unit.contains('/') || !name::is_valid(unit) {
            return Err(NameError::Invalid(unit.to_owned()).into());
        }
        Ok(Self { unit: unit.to_owned(), subjects: BTreeMap::new() })
    }

    /// Adds a file. A file that is used twice may be added twice.
    ///
    /// # Errors
    /// [`ManifestError::Name`], [`ManifestError::Conflict`] or [`ManifestError::TooManySubjects`]; the manifest is
    /// then as it was.
    pub fn insert(&mut self, name: &str, digest: Sha256Digest) -> Result<(), ManifestError> {
        if !name::is_valid(name) {
            return Err(NameError::Invalid(name.to_owned()).into());
        }
        match self.subjects.get(name) {
            Some(known) if *known == digest => return Ok(()),
            Some(_) => return Err(ManifestError::Conflict(name.to_owned())),
            None if self.subjects.len() == MAX_SUBJECTS => {
                return Err(ManifestError::TooManySubjects { unit: self.unit.clone() });
            }
            None => {}
        }
        self.subjects.insert(name.to_owned(), digest);
        Ok(())
    }

    /// The unit that the manifest is for.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// The files in order of their names.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, Sha256Digest)> {
        self.subjects.iter().map(|(name, digest)| (name.as_str(), *digest))
    }

    /// What `name` must hold, if it is covered.
    #[must_use]
    pub fn digest_of(&self, name: &str) -> Option<Sha256Digest> {
        self.subjects.get(name).copied()
    }

    /// The covered files below the folder `folder` (an absolute path with or without a final slash).
    pub fn covered_below<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, Sha256Digest)> + 'a {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        self.subjects
            .range(prefix.clone()..)
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .map(|(name, digest)| (name.as_str(), *digest))
    }

    /// The covered unit file and drop-ins: all that is not named by an absolute path.
    pub fn unit_files(&self) -> impl Iterator<Item = (&str, Sha256Digest)> {
        self.subjects().filter(|(name, _)| !name.starts_with('/'))
    }

    /// The one encoding: an in-toto statement in canonical JSON.
    ///
    /// # Errors
    /// [`ManifestError::Empty`].
    pub fn to_payload(&self) -> Result<Vec<u8>, ManifestError> {
        if self.subjects.is_empty() {
            return Err(ManifestError::Empty { unit: self.unit.clone() });
        }
        Ok(statement::encode(self))
    }
}
