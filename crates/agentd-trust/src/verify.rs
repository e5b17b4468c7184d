//! From the bytes of a signature file to what may be believed.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::{Envelope, KeyId, KeyRing, Manifest, Sha256Digest, TrustError, Verdict};

/// A manifest that a known key signed. It only comes from [`verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedManifest {
    manifest: Manifest,
    signers: Vec<KeyId>,
}

/// Verifies the bytes of a signature file: at least one signature must be good and of a known, unrevoked key.
///
/// Signatures of unknown keys beside a good one do no harm: several people may sign for several machines.
///
/// # Errors
/// If none is good, the worst of what was found: an altered content before a revoked key before unknown keys.
pub fn verify(envelope: &[u8], ring: &KeyRing) -> Result<VerifiedManifest, TrustError> {
    let digest = Sha256Digest::of(envelope);
    let envelope = Envelope::parse(envelope)?;
    let signers = match ring.verified().signers(digest) {
        Some(signers) => signers,
        None => {
            let signers = signers(&envelope, ring)?;
            ring.verified().remember(digest, &signers);
            signers
        }
    };
    Ok(VerifiedManifest { manifest: envelope.unverified_manifest()?, signers })
}

/// The known keys whose signatures are good; at least one.
fn signers(envelope: &Envelope, ring: &KeyRing) -> Result<Vec<KeyId>, TrustError> {
    let message = envelope.signed_bytes();
    let (mut signers, mut bad, mut revoked) = (Vec::new(), None, None);
    for (id, signature) in envelope.signatures() {
        match ring.get(id) {
            Some(known) if known.revoked => revoked = revoked.or(Some(id)),
            Some(known) if known.key.verifies(&message, signature) => signers.push(id),
            Some(_) => bad = bad.or(Some(id)),
            None => {}
        }
    }
    if signers.is_empty() {
        return Err(match (bad, revoked) {
            (Some(id), _) => TrustError::BadSignature { id },
            (None, Some(id)) => TrustError::RevokedKey { id },
            (None, None) => TrustError::UnknownKey { ids: envelope.key_ids().collect() },
        });
    }
    Ok(signers)
}

/// The verdict on one unit: on its signature file, if it has one, and on what `check` looks at with the manifest.
pub fn judge(
    signature: Option<&[u8]>,
    ring: &KeyRing,
    check: impl FnOnce(&VerifiedManifest) -> Result<(), TrustError>,
) -> Verdict {
    let Some(signature) = signature else {
        return Verdict::Unsigned;
    };
    let trusted = |manifest: VerifiedManifest| check(&manifest).map(|()| manifest.signers);
    match verify(signature, ring).and_then(trusted) {
        Ok(keys) => Verdict::Trusted { keys },
        Err(error) => Verdict::Refused(error),
    }
}

impl VerifiedManifest {
    /// The known keys whose signatures are good, sorted; at least one.
    #[must_use]
    pub fn signers(&self) -> &[KeyId] {
        &self.signers
    }

    /// Whether the manifest is for the unit named `unit` (of an instance: its template, `worker@.service`).
    ///
    /// # Errors
    /// [`TrustError::WrongUnit`].
    pub fn check_unit(&self, unit: &str) -> Result<(), TrustError> {
        if self.unit() == unit {
            return Ok(());
        }
        Err(TrustError::WrongUnit { expected: unit.to_owned(), found: self.unit().to_owned() })
    }

    /// Whether the file `name` holds what was signed.
    ///
    /// # Errors
    /// [`TrustError::NotInManifest`] or [`TrustError::DigestMismatch`].
    pub fn check(&self, name: &str, found: Sha256Digest) -> Result<(), TrustError> {
        match self.digest_of(name) {
            Some(expected) if expected == found => Ok(()),
            Some(expected) => Err(TrustError::DigestMismatch { name: name.to_owned(), expected, found }),
            None => Err(TrustError::NotInManifest { name: name.to_owned() }),
        }
    }

    /// Whether the unit file and drop-ins that were found are exactly those that were signed, each unaltered.
    ///
    /// # Errors
    /// [`TrustError::NotInManifest`] for one that was added, [`TrustError::Missing`] for one that was removed, or
    /// [`TrustError::DigestMismatch`].
    pub fn check_unit_files(&self, found: &BTreeMap<String, Sha256Digest>) -> Result<(), TrustError> {
        self.check_exactly(found, self.unit_files())
    }

    /// Whether the files found below `folder` are exactly those that were signed, each unaltered.
    ///
    /// `found` names each regular file of the tree for which [`is_tree_member`](crate::name::is_tree_member) holds.
    ///
    /// # Errors
    /// As [`Self::check_unit_files`]; a folder of which nothing was signed is [`TrustError::NotInManifest`] itself.
    pub fn check_tree(&self, folder: &str, found: &BTreeMap<String, Sha256Digest>) -> Result<(), TrustError> {
        if self.covered_below(folder).next().is_none() {
            return Err(TrustError::NotInManifest { name: folder.to_owned() });
        }
        self.check_exactly(found, self.covered_below(folder))
    }

    fn check_exactly<'a>(
        &self,
        found: &BTreeMap<String, Sha256Digest>,
        mut signed: impl Iterator<Item = (&'a str, Sha256Digest)>,
    ) -> Result<(), TrustError> {
        found.iter().try_for_each(|(name, digest)| self.check(name, *digest))?;
        match signed.find(|(name, _)| !found.contains_key(*name)) {
            Some((name, _)) => Err(TrustError::Missing { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// All that a [`Manifest`] can be asked.
impl Deref for VerifiedManifest {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.manifest
    }
}
