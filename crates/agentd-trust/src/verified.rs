//! Which signature files a ring of keys has verified, so that none is verified twice with the same keys.
//!
//! A unit's signature is looked at when the unit is loaded, at each exec of it, and for each look at its status. To verify
//! Ed25519 costs ten times what the rest of that does, and its outcome depends on the bytes and the keys alone.
//!
//! # Invariants
//!
//! - It belongs to one ring, whose keys do not change: another ring begins with an empty one.
//! - Only good signatures are remembered, by the SHA-256 of all that was looked at.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::{KeyId, Sha256Digest};

/// So many are remembered, at about a hundred bytes each. One more, and all are forgotten.
const MOST: usize = 16_384;

/// The keys whose signatures in a file are good, by the digest of the file.
#[derive(Debug, Default)]
pub(crate) struct Verified(Mutex<HashMap<Sha256Digest, Box<[KeyId]>>>);

impl Verified {
    /// Who signed the file, if that is known.
    pub(crate) fn signers(&self, file: Sha256Digest) -> Option<Vec<KeyId>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&file).map(|signers| signers.to_vec())
    }

    /// Remembers who signed the file.
    pub(crate) fn remember(&self, file: Sha256Digest, signers: &[KeyId]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(file, signers.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyRing, Manifest, PrivateKey, sign, verify};

    fn signed(key: &PrivateKey) -> Vec<u8> {
        let mut manifest = Manifest::new("web.service").unwrap();
        manifest.insert("web.service.toml", Sha256Digest::of(b"unit")).unwrap();
        sign(key, &manifest).unwrap()
    }

    #[test]
    fn a_good_signature_is_looked_up_the_second_time() {
        let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let ring = KeyRing::of([key.public()]);
        let (file, unknown) = (signed(&key), signed(&other));
        let digest = Sha256Digest::of(&file);
        assert_eq!(ring.verified().signers(digest), None);
        assert_eq!(verify(&file, &ring).unwrap().signers(), [key.public().id()]);
        assert_eq!(ring.verified().signers(digest), Some(vec![key.public().id()]));
        // What was remembered is what is told.
        ring.verified().remember(digest, &[other.public().id()]);
        assert_eq!(verify(&file, &ring).unwrap().signers(), [other.public().id()]);
        // Of a bad one nothing is kept, and another ring knows nothing of it all.
        assert!(verify(&unknown, &ring).is_err());
        assert_eq!(ring.verified().signers(Sha256Digest::of(&unknown)), None);
        assert_eq!(ring.clone().verified().signers(digest), None);
        assert!(verify(&file, &KeyRing::of([other.public()])).is_err());
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let known = Verified::default();
        let number = |number: usize| Sha256Digest::of(&number.to_ne_bytes());
        for index in 0..MOST {
            known.remember(number(index), &[]);
        }
        assert!(known.signers(number(0)).is_some());
        known.remember(number(MOST), &[]);
        assert!(known.signers(number(0)).is_none() && known.signers(number(MOST)).is_some());
    }
}
