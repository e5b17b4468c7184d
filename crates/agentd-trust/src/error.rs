//! Why a file may not be trusted.

use crate::{KeyId, ManifestError, Sha256Digest};

/// Why what is there is not what was signed. Each is one whole line for a person; none has a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The signature file cannot be understood.
    #[error("the signature file is malformed: {0}; sign the unit again")]
    Malformed(Malformed),
    /// Only keys that this machine does not know have signed.
    #[error("signed by {} only, unknown here; put its .pub in the keys folder if you trust it", keys(ids))]
    UnknownKey {
        /// All the keys that are said to have signed, sorted.
        ids: Vec<KeyId>,
    },
    /// The key is known and was revoked, and no other good signature is there.
    #[error("signed by the revoked key {id}; sign the unit with another key")]
    RevokedKey {
        /// The revoked key.
        id: KeyId,
    },
    /// A known key is named, but the signature is not its own over this content.
    #[error(
        "the signature of the key {id} does not match; the signature file was altered: sign the unit again"
    )]
    BadSignature {
        /// The key that is said to have signed.
        id: KeyId,
    },
    /// A good signature, but for another unit.
    #[error("the signature is for {found}, not for {expected}")]
    WrongUnit {
        /// The unit asked about.
        expected: String,
        /// The unit that was signed.
        found: String,
    },
    /// The file is none of those that were signed.
    #[error("{name} is not covered by the signature; sign the unit again if it belongs to it")]
    NotInManifest {
        /// The file's name in the manifest.
        name: String,
    },
    /// The file was signed and is not there.
    #[error("{name} was signed but is missing; put it back, or sign the unit again without it")]
    Missing {
        /// The file's name in the manifest.
        name: String,
    },
    /// The file is not what was signed.
    #[error(
        "{name} was altered after it was signed (sha256 {found}, signed {expected}); if the change is meant, sign the unit again"
    )]
    DigestMismatch {
        /// The file's name in the manifest.
        name: String,
        /// What was signed.
        expected: Sha256Digest,
        /// What is there.
        found: Sha256Digest,
    },
}

// By hand, since a derived one would name the cause twice: the line above tells it already.
impl From<Malformed> for TrustError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// What is wrong with the form of a signature file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Larger than any signature file may be.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The most bytes that are read.
        limit: usize,
    },
    /// Not the JSON of a DSSE envelope.
    #[error("it is not a DSSE envelope: {0}")]
    Envelope(String),
    /// A type field names something else.
    #[error("its {field} is {found:?}, not {expected:?}")]
    Type {
        /// The field.
        field: &'static str,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A field is not base64.
    #[error("its {field} is not base64")]
    Base64 {
        /// The field.
        field: &'static str,
    },
    /// No signature, or more than are read.
    #[error("it has {found} signatures, not 1 to {limit}")]
    SignatureCount {
        /// How many there are.
        found: usize,
        /// The most that are read.
        limit: usize,
    },
    /// A signature names no key, or not by our ids.
    #[error("the keyid {0:?} is not 16 lower-case hexadecimal digits")]
    KeyId(String),
    /// A signature is not 64 bytes long.
    #[error("the signature of the key {id} is not 64 bytes long")]
    SignatureLength {
        /// The key that is said to have signed.
        id: KeyId,
    },
    /// One key signs twice.
    #[error("the key {0} signs twice")]
    DuplicateKey(KeyId),
    /// The payload is not the JSON of our statement.
    #[error("its payload is not a unit manifest: {0}")]
    Statement(String),
    /// One file is named twice.
    #[error("it names {0} twice")]
    DuplicateSubject(String),
    /// A file's digest is not one.
    #[error("the digest of {name} is not 64 lower-case hexadecimal digits")]
    Digest {
        /// The file's name.
        name: String,
    },
    /// The manifest breaks its own rules.
    #[error("{0}")]
    Manifest(ManifestError),
    /// The content is right, but not in its one canonical encoding.
    #[error("its payload is not in canonical form")]
    NotCanonical,
}

/// `the key A` or `the keys A, B`.
fn keys(ids: &[KeyId]) -> String {
    let list: Vec<String> = ids.iter().map(KeyId::to_string).collect();
    let noun = if list.len() == 1 { "the key" } else { "the keys" };
    format!("{noun} {}", list.join(", "))
}
