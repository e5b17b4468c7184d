//! Signing and verifying: what holds, what does not, and what it says then.
#![expect(clippy::unwrap_used, reason = "a test stops where it meets what it does not expect")]

mod common;

use std::collections::BTreeMap;

use agentd_trust::envelope::MAX_SIGNATURES;
use agentd_trust::{
    Decision, Envelope, KeyRing, Malformed, Manifest, ManifestError, Policy, Sha256Digest, TrustError,
    Verdict, decide, judge, sign, verify,
};
use common::{Folder, key, manifest};

/// A ring of key 1, key 2 and key 3, the last one revoked.
fn ring() -> KeyRing {
    let folder = Folder::new();
    for number in 1..=3 {
        folder.write(&format!("{number}.pub"), key(number).public().to_pem().unwrap());
    }
    folder.write(&format!("revoked/{}", key(3).public().id()), "");
    let owner = agentd_trust::key_file::own_uid().unwrap();
    KeyRing::load(&[folder.path().to_owned()], &[owner]).0
}

/// An envelope signed by each of these keys.
fn signed_by(numbers: &[u8]) -> Vec<u8> {
    let mut envelope = Envelope::signed(&manifest(), &key(numbers[0])).unwrap();
    numbers[1..].iter().for_each(|number| envelope.add_signature(&key(*number)).unwrap());
    envelope.to_bytes()
}

/// The same, with the signature of one key exchanged for another key's.
fn forged(claims: u8, by: u8) -> Vec<u8> {
    let text = String::from_utf8(signed_by(&[by])).unwrap();
    text.replace(&key(by).public().id().to_string(), &key(claims).public().id().to_string()).into_bytes()
}

fn digests<const N: usize>(files: [(&str, &str); N]) -> BTreeMap<String, Sha256Digest> {
    files.map(|(name, text)| (name.to_owned(), Sha256Digest::of(text.as_bytes()))).into()
}

#[test]
fn a_signed_manifest_is_verified_with_all_that_it_says() {
    let verified = verify(&signed_by(&[1]), &ring()).unwrap();
    assert_eq!(verified.signers(), [key(1).public().id()]);
    assert!(verified.subjects().eq(manifest().subjects()));
    assert_eq!(verified.check_unit("web.service"), Ok(()));
    assert_eq!(verified.check("/usr/bin/web", Sha256Digest::of(b"program")), Ok(()));
}

#[test]
fn the_same_manifest_and_keys_give_the_same_bytes() {
    let mut turned = Manifest::new("web.service").unwrap();
    let mut subjects: Vec<_> = manifest().subjects().map(|(name, sha)| (name.to_owned(), sha)).collect();
    subjects.reverse();
    subjects.iter().for_each(|(name, sha)| turned.insert(name, *sha).unwrap());
    assert_eq!(sign(&key(1), &turned), sign(&key(1), &manifest()));
    assert_eq!(signed_by(&[1, 2]), signed_by(&[2, 1]));
    assert_eq!(signed_by(&[1, 2, 1]), signed_by(&[1, 2]));
}

#[test]
fn one_good_signature_is_enough() {
    let ids = |numbers: &[u8]| {
        let mut ids: Vec<_> = numbers.iter().map(|number| key(*number).public().id()).collect();
        ids.sort();
        ids
    };
    for (signers, good) in
        [(vec![1], vec![1]), (vec![1, 2], vec![1, 2]), (vec![1, 9], vec![1]), (vec![9, 3, 2], vec![2])]
    {
        let verified = verify(&signed_by(&signers), &ring()).unwrap();
        assert_eq!(verified.signers(), ids(&good), "{signers:?}");
    }
}

#[test]
fn without_a_good_signature_the_worst_finding_is_told() {
    let id = |number| key(number).public().id();
    let mut unknown = vec![id(8), id(9)];
    unknown.sort();
    for (case, envelope, error) in [
        ("unknown", signed_by(&[8, 9]), TrustError::UnknownKey { ids: unknown }),
        ("revoked", signed_by(&[3]), TrustError::RevokedKey { id: id(3) }),
        ("revoked and unknown", signed_by(&[9, 3]), TrustError::RevokedKey { id: id(3) }),
        ("in another's name", forged(1, 9), TrustError::BadSignature { id: id(1) }),
        ("in a revoked name", forged(3, 9), TrustError::RevokedKey { id: id(3) }),
    ] {
        assert_eq!(verify(&envelope, &ring()), Err(error), "{case}");
    }
    let nobody = verify(&signed_by(&[1]), &KeyRing::default());
    assert_eq!(nobody, Err(TrustError::UnknownKey { ids: vec![id(1)] }));
}

#[test]
fn a_file_is_checked_against_what_was_signed() {
    let verified = verify(&signed_by(&[1]), &ring()).unwrap();
    let name = "/usr/bin/web".to_owned();
    let (expected, found) = (Sha256Digest::of(b"program"), Sha256Digest::of(b"another"));
    assert_eq!(verified.check(&name, found), Err(TrustError::DigestMismatch { name, expected, found }));
    let name = "/usr/bin/other".to_owned();
    assert_eq!(verified.check(&name, expected), Err(TrustError::NotInManifest { name }));
}

#[test]
fn a_signature_does_not_serve_another_unit() {
    let verified = verify(&signed_by(&[1]), &ring()).unwrap();
    let (expected, found) = ("web2.service".to_owned(), "web.service".to_owned());
    assert_eq!(verified.check_unit("web2.service"), Err(TrustError::WrongUnit { expected, found }));
}

#[test]
fn a_drop_in_that_is_added_removed_or_altered_is_found() {
    let verified = verify(&signed_by(&[1]), &ring()).unwrap();
    let (unit, limits) = (("web.service.toml", "unit"), ("web.service.d/10-limits.toml", "limits"));
    let added = ("web.service.d/20-evil.toml", "evil");
    assert_eq!(verified.check_unit_files(&digests([unit, limits])), Ok(()));
    for (case, found, line) in [
        ("added", digests([unit, limits, added]), "web.service.d/20-evil.toml is not covered"),
        ("removed", digests([unit]), "web.service.d/10-limits.toml was signed but is missing"),
        ("altered", digests([unit, (limits.0, "none")]), "web.service.d/10-limits.toml was altered"),
    ] {
        let error = verified.check_unit_files(&found).unwrap_err().to_string();
        assert!(error.starts_with(line), "{case}: {error}");
    }
}

#[test]
fn a_module_that_is_added_to_removed_from_or_altered_in_a_package_is_found() {
    let verified = verify(&signed_by(&[1]), &ring()).unwrap();
    let package = "/usr/lib/web/app";
    let (init, text) = (("/usr/lib/web/app/__init__.py", "init"), ("/usr/lib/web/app/text.py", "text"));
    for folder in [package, "/usr/lib/web/app/"] {
        assert_eq!(verified.check_tree(folder, &digests([init, text])), Ok(()));
    }
    for (case, folder, found, line) in [
        (
            "added",
            package,
            digests([init, text, ("/usr/lib/web/app/x.py", "")]),
            "/usr/lib/web/app/x.py is not",
        ),
        ("removed", package, digests([init]), "/usr/lib/web/app/text.py was signed but is missing"),
        ("altered", package, digests([init, (text.0, "evil")]), "/usr/lib/web/app/text.py was altered"),
        ("all removed", package, digests([]), "/usr/lib/web/app/__init__.py was signed but is missing"),
        ("another, empty", "/usr/lib/web/ap", digests([]), "/usr/lib/web/ap is not covered"),
    ] {
        let error = verified.check_tree(folder, &found).unwrap_err().to_string();
        assert!(error.starts_with(line), "{case}: {error}");
    }
}

#[test]
fn what_is_covered_below_a_folder_ends_at_the_folder() {
    let manifest = manifest();
    let below = |folder| manifest.covered_below(folder).map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(below("/usr/lib/web/app"), ["/usr/lib/web/app/__init__.py", "/usr/lib/web/app/text.py"]);
    assert_eq!(below("/usr/lib/web/app.py"), [""; 0]);
    assert_eq!(below("/").len(), 4);
}

#[test]
fn a_unit_without_a_signature_is_never_trusted() {
    let verdict = judge(None, &ring(), |_| panic!("there is nothing to check with"));
    assert_eq!(verdict, Verdict::Unsigned);
    assert!(matches!(decide(Policy::Enforce, &verdict), Decision::Refused(_)));
    assert!(matches!(judge(Some(b""), &ring(), |_| Ok(())), Verdict::Refused(TrustError::Malformed(_))));
}

#[test]
fn the_verdict_tells_of_the_signature_first_and_then_of_the_files() {
    let envelope = signed_by(&[1, 2]);
    let mut keys = vec![key(1).public().id(), key(2).public().id()];
    keys.sort();
    assert_eq!(judge(Some(&envelope), &ring(), |_| Ok(())), Verdict::Trusted { keys });
    let missing = TrustError::Missing { name: "/usr/bin/web".to_owned() };
    let refused = judge(Some(&envelope), &ring(), |_| Err(missing.clone()));
    assert_eq!(refused, Verdict::Refused(missing));
    let unknown = judge(Some(&signed_by(&[9])), &ring(), |_| panic!("not before the signature holds"));
    assert!(matches!(unknown, Verdict::Refused(TrustError::UnknownKey { .. })));
}

#[test]
fn a_signature_is_added_over_the_same_payload_only() {
    let mut envelope = Envelope::parse(&signed_by(&[9])).unwrap();
    assert_eq!(envelope.unverified_manifest(), Ok(manifest()));
    envelope.add_signature(&key(1)).unwrap();
    let both = envelope.to_bytes();
    assert_eq!(both, signed_by(&[9, 1]));
    assert!(verify(&both, &ring()).unwrap().subjects().eq(manifest().subjects()));
}

#[test]
fn an_envelope_takes_no_more_signatures_than_it_can_be_read_with() {
    let all: Vec<u8> = (100..).take(MAX_SIGNATURES).collect();
    let mut envelope = Envelope::parse(&signed_by(&all)).unwrap();
    assert_eq!(
        envelope.add_signature(&key(1)),
        Err(Malformed::SignatureCount { found: MAX_SIGNATURES + 1, limit: MAX_SIGNATURES })
    );
    envelope.add_signature(&key(100)).unwrap();
    assert_eq!(envelope.to_bytes(), signed_by(&all));
}

#[test]
fn a_manifest_that_could_not_be_read_cannot_be_made() {
    assert!(matches!(Manifest::new(""), Err(ManifestError::Name(_))));
    assert!(matches!(Manifest::new("a/b.service"), Err(ManifestError::Name(_))));
    let mut manifest = Manifest::new("web.service").unwrap();
    assert!(matches!(sign(&key(1), &manifest), Err(ManifestError::Empty { .. })));
    let (one, two) = (Sha256Digest::of(b"1"), Sha256Digest::of(b"2"));
    assert!(matches!(manifest.insert("/a/../b", one), Err(ManifestError::Name(_))));
    manifest.insert("/a", one).unwrap();
    manifest.insert("/a", one).unwrap();
    assert_eq!(manifest.insert("/a", two), Err(ManifestError::Conflict("/a".to_owned())));
    assert_eq!(manifest.subjects().count(), 1);
}

#[test]
fn the_largest_manifest_passes_every_reader() {
    let mut manifest = Manifest::new("web.service").unwrap();
    for number in 0..agentd_trust::manifest::MAX_SUBJECTS {
        let name = format!("/usr/lib/python3/dist-packages/package/of/usual/depth/module-{number:05}.py");
        manifest.insert(&name, Sha256Digest::of(name.as_bytes())).unwrap();
    }
    let full = manifest.insert("/one-more", Sha256Digest::of(b""));
    assert!(matches!(full, Err(ManifestError::TooManySubjects { .. })));
    let verified = verify(&sign(&key(1), &manifest).unwrap(), &ring()).unwrap();
    assert!(verified.subjects().eq(manifest.subjects()));
}
