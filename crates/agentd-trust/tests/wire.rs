//! The bytes of a signature file: exactly these are written, and nothing that could be read two ways is read.
#![expect(clippy::unwrap_used, reason = "a test stops where it meets what it does not expect")]

mod common;

use agentd_trust::envelope::{MAX_ENVELOPE_BYTES, MAX_SIGNATURES};
use agentd_trust::{Envelope, KeyId, KeyRing, Manifest, PrivateKey, Sha256Digest, TrustError, sign, verify};
use base64ct::{Base64, Base64Url, Encoding};
use common::{Random, key, manifest};
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const TYPE: &str = "application/vnd.in-toto+json";

fn id(byte: u8) -> KeyId {
    key(byte).public().id()
}

fn ring() -> KeyRing {
    KeyRing::of([key(1).public(), key(2).public()])
}

/// An envelope of any payload and type with a good signature by key 1: what a signer gone wrong could make.
fn envelope_of(payload_type: &str, payload: &str) -> String {
    let signed = format!("DSSEv1 {} {payload_type} {} {payload}", payload_type.len(), payload.len());
    let signature = SigningKey::from_bytes(&[1; 32]).sign(signed.as_bytes()).to_bytes();
    let payload = Base64::encode_string(payload.as_bytes());
    let (id, sig) = (id(1), Base64::encode_string(&signature));
    format!(
        r#"{{"payload":"{payload}","payloadType":"{payload_type}","signatures":[{{"keyid":"{id}","sig":"{sig}"}}]}}"#
    )
}

fn statement(subjects: &str) -> String {
    format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","predicate":{{"unit":"a.service"}},"predicateType":"urn:agentd:unit-manifest:1","subject":[{subjects}]}}"#
    )
}

fn subject(name: &str) -> String {
    format!(r#"{{"digest":{{"sha256":"{ABC}"}},"name":"{name}"}}"#)
}

fn line(envelope: &str) -> String {
    verify(envelope.as_bytes(), &ring()).unwrap_err().to_string()
}

#[test]
fn the_file_is_the_envelope_that_dsse_and_in_toto_describe() {
    let mut manifest = Manifest::new("a.service").unwrap();
    for name in ["a.service.toml", "/bin/a"] {
        manifest.insert(name, Sha256Digest::of(b"abc")).unwrap();
    }
    // The expected bytes are put together here by hand from the two standards.
    let payload = statement(&format!("{},{}", subject("/bin/a"), subject("a.service.toml")));
    let expected = format!("{}\n", envelope_of(TYPE, &payload));
    assert_eq!(String::from_utf8(sign(&key(1), &manifest).unwrap()).unwrap(), expected);
}

#[test]
fn a_signature_file_reads_with_other_spacing_alphabet_and_unknown_fields() {
    let file = String::from_utf8(sign(&key(1), &manifest()).unwrap()).unwrap();
    let expected = verify(file.as_bytes(), &ring()).unwrap();
    let start = file.find(r#""sig":""#).unwrap() + 7;
    let sig = &file[start..start + 88];
    let url_safe = Base64Url::encode_string(&Base64::decode_vec(sig).unwrap());
    for (case, text) in [
        ("no line end", file.trim_end().to_owned()),
        ("CRLF", file.replace('\n', "\r\n")),
        ("blank space", format!(" \n{}\n\n", file.replace(',', " ,\n\t"))),
        ("the URL-safe alphabet", file.replace(sig, &url_safe)),
        ("a field of another tool", file.replace("{\"keyid\"", "{\"cert\":{\"x\":[1]},\"keyid\"")),
    ] {
        assert_eq!(verify(text.as_bytes(), &ring()).as_ref(), Ok(&expected), "{case}");
    }
}

#[test]
fn a_malformed_envelope_is_refused_with_its_reason() {
    let good = envelope_of(TYPE, &statement(&subject("/bin/a")));
    assert!(verify(good.as_bytes(), &ring()).is_ok());
    let id = id(1).to_string();
    let twice = good.replace(
        "[{",
        &format!("[{{\"keyid\":\"{id}\",\"sig\":\"{}\"}},{{", Base64::encode_string(&[0; 64])),
    );
    let many = format!("[{}{{", r#"{"keyid":"","sig":""},"#.repeat(MAX_SIGNATURES));
    for (case, text, reason) in [
        ("empty", String::new(), "not a DSSE envelope: EOF"),
        ("cut short", good[..good.len() - 1].to_owned(), "not a DSSE envelope: EOF"),
        ("two envelopes", format!("{good}{good}"), "not a DSSE envelope: trailing"),
        ("an array", "[]".to_owned(), "not a DSSE envelope"),
        ("very deep", "[".repeat(100_000), "not a DSSE envelope"),
        ("no payload", good.replace("payload\"", "x\""), "missing field `payload`"),
        ("payload twice", good.replacen('{', r#"{"payload":"","#, 1), "duplicate field `payload`"),
        ("sig twice", good.replace("\"sig\"", r#""sig":"","sig""#), "duplicate field `sig`"),
        ("keyid twice", good.replace("\"keyid\"", r#""keyid":"","keyid""#), "duplicate field `keyid`"),
        ("another type", envelope_of("text/plain", "x"), r#"its payloadType is "text/plain""#),
        (
            "no signature",
            format!("{}[]}}", &good[..good.find('[').unwrap()]),
            "has 0 signatures, not 1 to 16",
        ),
        ("17 signatures", good.replace("[{", &many), "has 17 signatures, not 1 to 16"),
        ("no keyid", good.replace("keyid", "kid"), "the keyid \"\" is not 16"),
        ("a long keyid", good.replace(&id, &format!("{id}0")), "is not 16 lower-case hexadecimal digits"),
        ("an upper-case keyid", good.replace(&id, &id.to_uppercase()), "is not 16 lower-case"),
        ("a key that signs twice", twice, "signs twice"),
        ("a sig that is no base64", good.replace("\"sig\":\"", "\"sig\":\"*"), "its sig is not base64"),
        (
            "a payload that is no base64",
            good.replace("\"payload\":\"", "\"payload\":\"*"),
            "its payload is not base64",
        ),
        ("a short sig", good.replace("\"sig\":\"", "\"sig\":\"AAAA\",\"x\":\""), "is not 64 bytes long"),
    ] {
        let line = line(&text);
        assert!(
            line.starts_with("the signature file is malformed: ") && line.contains(reason),
            "{case}: {line}"
        );
    }
}

#[test]
fn a_malformed_statement_is_refused_though_its_signature_holds() {
    let one = statement(&subject("/bin/a"));
    let two = |a: &str, b: &str| statement(&format!("{},{}", subject(a), subject(b)));
    for (case, payload, reason) in [
        ("no JSON", "x".to_owned(), "not a unit manifest"),
        ("another statement", one.replace("v1", "v2"), r#"its _type is "https://in-toto.io/Statement/v2""#),
        ("another predicate", one.replace("manifest:1", "manifest:2"), "its predicateType is"),
        ("an unknown field", one.replace("{\"unit\"", "{\"more\":1,\"unit\""), "unknown field `more`"),
        ("a field twice", one.replace("{\"unit\"", "{\"unit\":\"b\",\"unit\""), "duplicate field `unit`"),
        ("another digest", one.replace("sha256", "sha1"), "unknown field `sha1`"),
        ("two digests", one.replace("\"sha256\"", "\"sha256\":\"\",\"sha256\""), "duplicate field `sha256`"),
        ("a short digest", one.replace(ABC, &ABC[1..]), "the digest of /bin/a is not 64"),
        ("an upper-case digest", one.replace(ABC, &ABC.to_uppercase()), "the digest of /bin/a is not 64"),
        ("no subject", statement(""), "the manifest names no file"),
        ("a subject twice", two("/bin/a", "/bin/a"), "names /bin/a twice"),
        ("unsorted", two("/bin/b", "/bin/a"), "not in canonical form"),
        ("blank space", one.replace(',', ", "), "not in canonical form"),
        ("an escape that is not needed", one.replace("/bin/a", "/bin/\\u0061"), "not in canonical form"),
        ("a path that climbs", statement(&subject("/bin/../a")), "not a name that a manifest may hold"),
        (
            "a unit that is a path",
            one.replace("a.service", "../a.service"),
            "not a name that a manifest may hold",
        ),
    ] {
        let line = line(&envelope_of(TYPE, &payload));
        assert!(
            line.starts_with("the signature file is malformed: ") && line.contains(reason),
            "{case}: {line}"
        );
    }
}

#[test]
fn a_file_that_is_too_large_is_not_parsed() {
    let mut file = sign(&key(1), &manifest()).unwrap();
    file.resize(MAX_ENVELOPE_BYTES, b' ');
    assert!(verify(&file, &ring()).is_ok());
    file.push(b' ');
    assert!(verify(&file, &ring()).unwrap_err().to_string().contains("more than 8388608 bytes"));
}

#[test]
fn a_signature_that_only_strict_rules_refuse_is_refused() {
    // Over `message` by key 1: R is the neutral element and S = H(R, A, M) * a, so no nonce was needed.
    const WEAK: &str =
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABXsN3GzTmatDkFjDkBFJIRdtt03YP/PNN3L6GvpR2fDw==";
    let payload = statement(&subject("/bin/a"));
    let message = format!("DSSEv1 {} {TYPE} {} {payload}", TYPE.len(), payload.len());
    let signature = Signature::from_slice(&Base64::decode_vec(WEAK).unwrap()).unwrap();
    let public = SigningKey::from_bytes(&[1; 32]).verifying_key();
    assert!(public.verify(message.as_bytes(), &signature).is_ok(), "the plain rules take it");

    let good = envelope_of(TYPE, &payload);
    let start = good.find("\"sig\":\"").unwrap() + 7;
    let forged = good.replace(&good[start..start + 88], WEAK);
    assert_eq!(verify(forged.as_bytes(), &ring()), Err(TrustError::BadSignature { id: id(1) }));
}

#[test]
fn no_change_of_one_byte_verifies_as_other_content() {
    let mut envelope = Envelope::signed(&manifest(), &key(1)).unwrap();
    envelope.add_signature(&key(2)).unwrap();
    let (file, expected) = (envelope.to_bytes(), manifest());
    let mut refused = 0;
    for at in 0..file.len() {
        for flip in [0x01, 0x20, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] ^= flip;
            match verify(&changed, &ring()) {
                Ok(verified) => assert_eq!(*verified, expected, "byte {at} ^ {flip:#x}"),
                Err(_) => refused += 1,
            }
        }
    }
    // With two signers a broken signature is made good by the other; a broken payload never is.
    let payload = Base64::encode_string(&expected.to_payload().unwrap()).len();
    assert!(refused >= 4 * payload, "{refused} of {} changes were refused", 4 * file.len());
}

#[test]
fn every_change_of_one_signed_byte_is_refused_with_one_signer() {
    let file = sign(&key(1), &manifest()).unwrap();
    let text = std::str::from_utf8(&file).unwrap();
    for field in ["\"payload\":\"", "\"keyid\":\"", "\"sig\":\""] {
        let start = text.find(field).unwrap() + field.len();
        let end = start + text[start..].find('"').unwrap();
        for at in start..end {
            for flip in [0x01, 0x80] {
                let mut changed = file.clone();
                changed[at] ^= flip;
                let error = verify(&changed, &ring()).unwrap_err();
                let expected = matches!(
                    error,
                    TrustError::Malformed(_)
                        | TrustError::BadSignature { .. }
                        | TrustError::UnknownKey { .. }
                );
                assert!(expected, "byte {at}: {error:?}");
            }
        }
    }
}

#[test]
fn no_mangled_file_is_taken_for_other_content() {
    let expected = manifest();
    let seeds =
        [sign(&key(1), &expected).unwrap(), sign(&PrivateKey::from_seed(&[2; 32]), &expected).unwrap()];
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut file = seeds[random.below(2)].clone();
        for _ in 0..=random.below(4) {
            random.mangle(&mut file, &seeds[1]);
        }
        if let Ok(verified) = verify(&file, &ring()) {
            assert_eq!(*verified, expected, "seed {seed}");
        }
        // The content of a payload is read after its signature only; here the reader is reached without one.
        let mut payload = expected.to_payload().unwrap();
        random.mangle(&mut payload, &seeds[0]);
        let text = String::from_utf8_lossy(&payload);
        if let Ok(verified) = verify(envelope_of(TYPE, &text).as_bytes(), &ring()) {
            assert_eq!(verified.to_payload().unwrap(), text.as_bytes(), "seed {seed}");
        }
    }
}
