//! The signature file: a DSSE envelope, version 1.
//!
//! <https://github.com/secure-systems-lab/dsse>. What is signed is not the payload but its pre-authentication
//! encoding, which carries the payload's type and both lengths. Fields that DSSE does not know are ignored, as it
//! asks; known fields that stand twice are refused.
//!
//! # Invariants
//!
//! - One to [`MAX_SIGNATURES`] signatures, sorted by key id, at most one for each key.
//! - Nothing of the payload is looked at here until a caller asks; [`verify`](crate::verify()) asks only after a
//!   signature held.

use std::collections::BTreeMap;

use base64ct::{Base64, Base64Url, Encoding};
use serde::{Deserialize, Serialize};

use crate::{KeyId, Malformed, Manifest, ManifestError, PrivateKey, statement};

/// The most bytes of a signature file: [`MAX_SUBJECTS`](crate::manifest::MAX_SUBJECTS) names of usual length fit.
pub const MAX_ENVELOPE_BYTES: usize = 8 * 1024 * 1024;

/// The most signatures of one envelope; each unknown one costs a look-up, each known one a verification (0.1 ms).
pub const MAX_SIGNATURES: usize = 16;

/// What the payload says it is.
pub(crate) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

// The fields of these two stand in the order of their keys, as in the payload.

#[derive(Serialize, Deserialize)]
struct WireEnvelope {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<WireSignature>,
}

#[derive(Serialize, Deserialize)]
struct WireSignature {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// A payload and who is said to have signed it. Nothing in it is to be believed before [`verify`](crate::verify()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    payload: Vec<u8>,
    signatures: BTreeMap<KeyId, [u8; 64]>,
}

impl Envelope {
    /// An envelope with one signature.
    ///
    /// # Errors
    /// [`ManifestError::Empty`].
    pub fn signed(manifest: &Manifest, key: &PrivateKey) -> Result<Self, ManifestError> {
        let payload = manifest.to_payload()?;
        let signature = key.sign(&pre_authentication_encoding(&payload));
        Ok(Self { payload, signatures: BTreeMap::from([(key.public().id(), signature)]) })
    }

    /// Reads the bytes of a signature file.
    ///
    /// # Errors
    /// The one [`Malformed`] that says what is wrong; the payload is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(Malformed::TooLarge { limit: MAX_ENVELOPE_BYTES });
        }
        let wire: WireEnvelope =
            serde_json::from_slice(bytes).map_err(|error| Malformed::Envelope(error.to_string()))?;
        if wire.payload_type != PAYLOAD_TYPE {
            let (field, found) = ("payloadType", wire.payload_type);
            return Err(Malformed::Type { field, expected: PAYLOAD_TYPE, found });
        }
        if !(1..=MAX_SIGNATURES).contains(&wire.signatures.len()) {
            return Err(Malformed::SignatureCount { found: wire.signatures.len(), limit: MAX_SIGNATURES });
        }
        let mut signatures = BTreeMap::new();
        for signature in wire.signatures {
            let (id, bytes) = read_signature(signature)?;
            if signatures.insert(id, bytes).is_some() {
                return Err(Malformed::DuplicateKey(id));
            }
        }
        Ok(Self { payload: decode_base64("payload", &wire.payload)?, signatures })
    }

    /// Adds the signature of another key over the same payload; a second one of the same key changes nothing.
    ///
    /// The signer must have compared [`Self::unverified_manifest`] with the files first.
    ///
    /// # Errors
    /// [`Malformed::SignatureCount`] if the envelope is full.
    pub fn add_signature(&mut self, key: &PrivateKey) -> Result<(), Malformed> {
        let id = key.public().id();
        if !self.signatures.contains_key(&id) && self.signatures.len() == MAX_SIGNATURES {
            return Err(Malformed::SignatureCount { found: MAX_SIGNATURES + 1, limit: MAX_SIGNATURES });
        }
        self.signatures.insert(id, key.sign(&self.signed_bytes()));
        Ok(())
    }

    /// The bytes of the signature file: one line of JSON with its line end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let wire = WireEnvelope {
            payload: Base64::encode_string(&self.payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: self.signatures.iter().map(write_signature).collect(),
        };
        // Strings and lists of strings only: there is nothing in it that the writer could refuse.
        let mut bytes = serde_json::to_vec(&wire).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The keys that are said to have signed, sorted.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> {
        self.signatures.keys().copied()
    }

    /// What is said to be signed, for comparing before a further signature is added; it proves nothing.
    ///
    /// # Errors
    /// The [`Malformed`] of the payload.
    pub fn unverified_manifest(&self) -> Result<Manifest, Malformed> {
        statement::decode(&self.payload)
    }

    /// Each signature with its key id, sorted.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = (KeyId, &[u8; 64])> {
        self.signatures.iter().map(|(id, signature)| (*id, signature))
    }

    /// The bytes that the signatures are over.
    pub(crate) fn signed_bytes(&self) -> Vec<u8> {
        pre_authentication_encoding(&self.payload)
    }
}

/// Signs a manifest: the bytes of its signature file.
///
/// # Errors
/// [`ManifestError::Empty`].
pub fn sign(key: &PrivateKey, manifest: &Manifest) -> Result<Vec<u8>, ManifestError> {
    Ok(Envelope::signed(manifest, key)?.to_bytes())
}

/// DSSE's PAE: `DSSEv1 LEN(type) type LEN(payload) payload`, lengths in decimal.
fn pre_authentication_encoding(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn read_signature(wire: WireSignature) -> Result<(KeyId, [u8; 64]), Malformed> {
    let id: KeyId = wire.keyid.parse().map_err(|_| Malformed::KeyId(wire.keyid))?;
    let bytes = decode_base64("sig", &wire.sig)?;
    let bytes = bytes.try_into().map_err(|_| Malformed::SignatureLength { id })?;
    Ok((id, bytes))
}

fn write_signature((id, signature): (&KeyId, &[u8; 64])) -> WireSignature {
    WireSignature { keyid: id.to_string(), sig: Base64::encode_string(signature) }
}

/// DSSE lets the writer choose between the standard and the URL-safe alphabet; both are padded.
fn decode_base64(field: &'static str, text: &str) -> Result<Vec<u8>, Malformed> {
    Base64::decode_vec(text).or_else(|_| Base64Url::decode_vec(text)).map_err(|_| Malformed::Base64 { field })
}
