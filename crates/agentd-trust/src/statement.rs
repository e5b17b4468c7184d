//! The manifest as an in-toto statement, version 1.
//!
//! <https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>. The JSON is canonical (RFC 8785): no
//! white space, the keys of each object sorted, the subjects sorted by name. A payload in any other form is refused,
//! so no two readers can take one payload for two different lists of files.

use serde::{Deserialize, Serialize};

use crate::{Malformed, Manifest};

/// What the statement says it is.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// What our predicate says it is; its number changes when an older reader would misread it.
const PREDICATE_TYPE: &str = "urn:agentd:unit-manifest:1";

// The fields of these three stand in the order of their keys: serde writes them so, and canonical JSON asks for it.

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    #[serde(rename = "_type")]
    statement_type: String,
    predicate: Predicate,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    unit: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    digest: DigestSet,
    name: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DigestSet {
    sha256: String,
}

/// The canonical bytes of `manifest`.
pub(crate) fn encode(manifest: &Manifest) -> Vec<u8> {
    let statement = Statement {
        statement_type: STATEMENT_TYPE.to_owned(),
        predicate: Predicate { unit: manifest.unit().to_owned() },
        predicate_type: PREDICATE_TYPE.to_owned(),
        subject: manifest
            .subjects()
            .map(|(name, digest)| Subject {
                digest: DigestSet { sha256: digest.to_string() },
                name: name.to_owned(),
            })
            .collect(),
    };
    // Strings and lists of strings only: there is nothing in it that the writer could refuse.
    serde_json::to_vec(&statement).unwrap_or_default()
}

/// The manifest in `payload`, if those are the canonical bytes of one.
pub(crate) fn decode(payload: &[u8]) -> Result<Manifest, Malformed> {
    let statement: Statement =
        serde_json::from_slice(payload).map_err(|error| Malformed::Statement(error.to_string()))?;
    for (field, found, expected) in [
        ("_type", &statement.statement_type, STATEMENT_TYPE),
        ("predicateType", &statement.predicate_type, PREDICATE_TYPE),
    ] {
        if found != expected {
            return Err(Malformed::Type { field, expected, found: found.clone() });
        }
    }
    let mut manifest = Manifest::new(&statement.predicate.unit).map_err(Malformed::Manifest)?;
    for subject in statement.subject {
        if manifest.digest_of(&subject.name).is_some() {
            return Err(Malformed::DuplicateSubject(subject.name));
        }
        let digest =
            subject.digest.sha256.parse().map_err(|_| Malformed::Digest { name: subject.name.clone() })?;
        manifest.insert(&subject.name, digest).map_err(Malformed::Manifest)?;
    }
    if manifest.to_payload().map_err(Malformed::Manifest)? != payload {
        return Err(Malformed::NotCanonical);
    }
    Ok(manifest)
}
