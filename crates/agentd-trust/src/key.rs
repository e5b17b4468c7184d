//! Ed25519 keys and their PEM text.
//!
//! Public keys are SubjectPublicKeyInfo, private keys PKCS#8 version 1, as in RFC 8410 and as `openssl genpkey
//! -algorithm ed25519` writes them. Read too: PKCS#8 version 2 (with the public key), and the two older forms of
//! the agent manager that came before: `ED25519 PRIVATE KEY` with the 64 raw bytes (seed, then public key), and a
//! public key as 64 hexadecimal digits. Line ends and blank space around the text do not matter.
//!
//! # Invariants
//!
//! - A [`PublicKey`] is a point of the curve and not one of the weak (small-order) ones.
//! - The seed of a [`PrivateKey`] is never printed, and is wiped when the key is dropped.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::ed25519::pkcs8::ALGORITHM_OID;
use ed25519_dalek::pkcs8::spki::SubjectPublicKeyInfoRef;
use ed25519_dalek::pkcs8::spki::der::{Decode, pem};
use ed25519_dalek::pkcs8::{
    EncodePrivateKey, EncodePublicKey, KeypairBytes, ObjectIdentifier, PrivateKeyInfoRef, spki,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::{Sha256Digest, hex};

const PUBLIC_LABEL: &str = "PUBLIC KEY";
const PRIVATE_LABEL: &str = "PRIVATE KEY";
const LEGACY_PRIVATE_LABEL: &str = "ED25519 PRIVATE KEY";

/// The short name of a key: the first 16 hexadecimal digits of the SHA-256 of the 32 bytes of the public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = KeyIdError;

    /// Reads exactly what `Display` prints.
    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        hex::read(text).map(Self).ok_or(KeyIdError)
    }
}

/// The text is not a key id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key id is 16 lower-case hexadecimal digits")]
pub struct KeyIdError;

/// The text is not a key that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No PEM could be read.
    #[error("is not a PEM file: {0}")]
    NotPem(String),
    /// The PEM holds something else.
    #[error("holds a {found}, where a {expected} is wanted")]
    WrongLabel {
        /// What should stand after `BEGIN`.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The key is protected by a passphrase.
    #[error(
        "is encrypted; agentd reads plain keys only, so decrypt it with 'openssl pkey -in FILE -out PLAIN'"
    )]
    Encrypted,
    /// Inside the PEM is not the structure that its label promises.
    #[error("is not a well-formed {label}: {reason}")]
    BadDer {
        /// The label of the PEM.
        label: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// A key of another algorithm.
    #[error("is a key of the algorithm {0}; agentd uses Ed25519 (1.3.101.112) alone")]
    WrongAlgorithm(ObjectIdentifier),
    /// The key itself has the wrong length.
    #[error("holds {found} bytes of key, where {expected} are wanted")]
    WrongLength {
        /// The length that the format asks for.
        expected: usize,
        /// The length found.
        found: usize,
    },
    /// The bytes are no point of the curve, or one with which anyone could sign.
    #[error("is no valid Ed25519 public key")]
    BadPoint,
    /// The private key carries a public key that is not its own.
    #[error("carries a public key that does not belong to it")]
    Mismatch,
}

/// A key that verifies.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key in its 32 bytes (RFC 8032, section 5.1.2).
    ///
    /// # Errors
    /// [`KeyError::BadPoint`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        match VerifyingKey::from_bytes(bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(key)),
            _ => Err(KeyError::BadPoint),
        }
    }

    /// Reads the text of a `NAME.pub`.
    ///
    /// # Errors
    /// The one [`KeyError`] that says what stands there instead.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let text = text.trim_ascii();
        if let Some(bytes) = std::str::from_utf8(text).ok().and_then(hex::read::<32>) {
            return Self::from_bytes(&bytes);
        }
        let (label, der) = decode_pem(text)?;
        if label != PUBLIC_LABEL {
            return Err(KeyError::WrongLabel { expected: PUBLIC_LABEL, found: label.to_owned() });
        }
        let bad = |reason: String| KeyError::BadDer { label: PUBLIC_LABEL, reason };
        let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(|error| bad(error.to_string()))?;
        check_algorithm(info.algorithm)?;
        let key = info.subject_public_key.as_bytes().ok_or_else(|| bad("unused bits".to_owned()))?;
        Self::from_bytes(&sized(key)?)
    }

    /// The text of a `NAME.pub`: PEM with a final line end.
    ///
    /// # Errors
    /// [`KeyError::BadDer`] if the encoder fails, which no valid key makes it do.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        self.0
            .to_public_key_pem(pem::LineEnding::LF)
            .map_err(|error| KeyError::BadDer { label: PUBLIC_LABEL, reason: error.to_string() })
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The short name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let digest = Sha256Digest::of(self.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
        KeyId([a, b, c, d, e, f, g, h])
    }

    /// Whether `signature` is this key's over `message`, by the strict rules (canonical encodings, no small order).
    #[must_use]
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id())
    }
}

/// A key that signs.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// A new key from the kernel's random numbers, getrandom(2).
    ///
    /// # Errors
    /// What the kernel says; it waits for its pool rather than fail.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed)?;
        Ok(Self::from_seed(&seed))
    }

    /// The key of this seed (RFC 8032, section 5.1.5); every 32 bytes are one.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads the text of a `NAME.key`.
    ///
    /// # Errors
    /// The one [`KeyError`] that says what stands there instead.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let (label, der) = decode_pem(text.trim_ascii())?;
        let der = Zeroizing::new(der);
        match label {
            PRIVATE_LABEL => Self::from_pkcs8(&der),
            LEGACY_PRIVATE_LABEL => {
                SigningKey::from_keypair_bytes(&sized(&der)?).map(Self).map_err(|_| KeyError::Mismatch)
            }
            "ENCRYPTED PRIVATE KEY" => Err(KeyError::Encrypted),
            found => Err(KeyError::WrongLabel { expected: PRIVATE_LABEL, found: found.to_owned() }),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let bad = |reason: String| KeyError::BadDer { label: PRIVATE_LABEL, reason };
        let info = PrivateKeyInfoRef::from_der(der).map_err(|error| bad(error.to_string()))?;
        check_algorithm(info.algorithm)?;
        // RFC 8410, section 7: the key is an OCTET STRING (tag 4, one byte of length) within the OCTET STRING.
        let seed = match info.private_key.as_bytes() {
            [4, length, seed @ ..] if usize::from(*length) == seed.len() => sized(seed)?,
            _ => return Err(bad("the seed is not an octet string".to_owned())),
        };
        let key = Self::from_seed(&Zeroizing::new(seed));
        match info.public_key.map(|public| public.as_bytes()) {
            Some(public) if public != Some(key.public().as_bytes()) => Err(KeyError::Mismatch),
            _ => Ok(key),
        }
    }

    /// The text of a `NAME.key`, in PKCS#8 version 1, which every openssl reads; wiped when dropped.
    ///
    /// # Errors
    /// [`KeyError::BadDer`] if the encoder fails, which no valid key makes it do.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        KeypairBytes { secret_key: self.0.to_bytes(), public_key: None }
            .to_pkcs8_pem(pem::LineEnding::LF)
            .map_err(|error| KeyError::BadDer { label: PRIVATE_LABEL, reason: error.to_string() })
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The signature over `message`: always the same one for the same message (RFC 8032 is deterministic).
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public().id())
    }
}

fn decode_pem(text: &[u8]) -> Result<(&str, Vec<u8>), KeyError> {
    pem::decode_vec(text).map_err(|error| KeyError::NotPem(error.to_string()))
}

fn check_algorithm(algorithm: spki::AlgorithmIdentifierRef<'_>) -> Result<(), KeyError> {
    if algorithm.oid == ALGORITHM_OID { Ok(()) } else { Err(KeyError::WrongAlgorithm(algorithm.oid)) }
}

fn sized<const N: usize>(bytes: &[u8]) -> Result<[u8; N], KeyError> {
    bytes.try_into().map_err(|_| KeyError::WrongLength { expected: N, found: bytes.len() })
}
