//! Keys, digests, signatures, the manifest and the verdict.
//!
//! A signature file `NAME.TYPE.toml.sig` holds one [`Envelope`] (DSSE): a [`Manifest`] (an in-toto statement, one
//! subject per file with its SHA-256) and the Ed25519 signatures over it. [`verify()`] turns the bytes of such a file
//! and a [`KeyRing`] into a [`VerifiedManifest`], which answers for each file whether it is what was signed;
//! [`decide`] says what a [`Policy`] makes of the [`Verdict`].
//!
//! # Invariants
//!
//! - What decides takes bytes, never paths: the caller reads a file once, and verifies, parses and runs those bytes.
//! - A [`VerifiedManifest`] only comes from [`verify()`]; no name or digest in it was read before a signature held.
//! - The same manifest and the same keys give the same envelope, to the byte.
//! - Files are touched in [`key_file`], [`ring`], [`durable`], [`tree`] and [`within()`] alone: keys, written signatures, packages.
#![forbid(unsafe_code)]

pub mod digest;
pub mod durable;
pub mod envelope;
pub mod error;
mod hex;
pub mod key;
pub mod key_file;
pub mod manifest;
pub mod name;
pub mod policy;
pub mod ring;
mod statement;
pub mod tree;
mod verified;
pub mod verify;
pub mod within;

pub use digest::Sha256Digest;
pub use envelope::{Envelope, sign};
pub use error::{Malformed, TrustError};
pub use key::{KeyError, KeyId, PrivateKey, PublicKey};
pub use manifest::{Manifest, ManifestError};
pub use policy::{Decision, Policy, PolicyError, Verdict, decide};
pub use ring::{KeyProblem, KeyProblemKind, KeyRing, KnownKey};
pub use verify::{VerifiedManifest, judge, verify};
pub use within::within;

/// What is put after the name of a unit file to name its signature: `web.service.toml.sig`.
pub const SIGNATURE_SUFFIX: &str = ".sig";
