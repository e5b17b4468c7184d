//! Keys as text: what is read, what is refused and how that is said.
#![expect(clippy::unwrap_used, reason = "a test stops where it meets what it does not expect")]

mod common;

use agentd_trust::{KeyError, PrivateKey, PublicKey};
use base64ct::{Base64, Encoding};
use common::key;

fn pem(label: &str, der: &[u8]) -> String {
    let text = Base64::encode_string(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// RFC 8410, section 10: its example of a public key, and of the private key that belongs to it.
const RFC_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
    -----END PUBLIC KEY-----\n";
const RFC_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    -----END PRIVATE KEY-----\n";

#[test]
fn the_keys_of_the_standard_are_read_and_written_as_they_stand_there() {
    let private = PrivateKey::from_pem(RFC_PRIVATE.as_bytes()).unwrap();
    let public = PublicKey::from_pem(RFC_PUBLIC.as_bytes()).unwrap();
    assert_eq!(private.public(), public);
    assert_eq!(private.to_pem().unwrap().as_str(), RFC_PRIVATE);
    assert_eq!(public.to_pem().unwrap(), RFC_PUBLIC);
}

#[test]
fn a_key_id_is_the_start_of_the_digest_of_the_raw_key() {
    // sha256 of the 32 bytes of RFC_PUBLIC, by sha256sum(1).
    assert_eq!(PublicKey::from_pem(RFC_PUBLIC.as_bytes()).unwrap().id().to_string(), "e744c0791320c328");
}

#[test]
fn line_ends_and_blank_space_around_a_key_do_not_matter() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let dressed = |text: &str| {
        [
            ("no final line end", text.trim_end().to_owned()),
            ("two final line ends", format!("{text}\n")),
            ("CRLF", crlf(text)),
            ("CRLF without the last", crlf(text).trim_end().to_owned()),
            ("blank space on both sides", format!("\n \t{text} \n\n")),
        ]
    };
    for ((case, public), (_, private)) in dressed(RFC_PUBLIC).into_iter().zip(dressed(RFC_PRIVATE)) {
        let public = PublicKey::from_pem(public.as_bytes());
        let private = PrivateKey::from_pem(private.as_bytes()).map(|key| key.public());
        assert!(public.is_ok(), "{case}: {public:?}");
        assert_eq!(public, private, "{case}");
    }
}

#[test]
fn the_forms_of_the_older_agent_manager_are_read() {
    let key = key(7);
    let hex: String = key.public().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    for text in [hex.clone(), format!("{hex}\n"), format!("{hex}\r\n")] {
        assert_eq!(PublicKey::from_pem(text.as_bytes()), Ok(key.public()), "{text:?}");
    }
    let raw = [&[7; 32][..], key.public().as_bytes()].concat();
    let read = PrivateKey::from_pem(pem("ED25519 PRIVATE KEY", &raw).as_bytes()).unwrap();
    assert_eq!(read.public(), key.public());
}

#[test]
fn a_private_key_with_its_public_key_is_read_only_if_they_belong_together() {
    let version_2 = |public: &PublicKey| {
        let head = unhex("3051020101300506032b657004220420");
        pem("PRIVATE KEY", &[&head, &[7; 32][..], &unhex("812100"), public.as_bytes()].concat())
    };
    let own = PrivateKey::from_pem(version_2(&key(7).public()).as_bytes()).unwrap();
    assert_eq!(own.public(), key(7).public());
    let foreign = PrivateKey::from_pem(version_2(&key(8).public()).as_bytes());
    assert_eq!(foreign.unwrap_err(), KeyError::Mismatch);
    let legacy = pem("ED25519 PRIVATE KEY", &[&[7; 32][..], key(8).public().as_bytes()].concat());
    assert_eq!(PrivateKey::from_pem(legacy.as_bytes()).unwrap_err(), KeyError::Mismatch);
}

#[test]
fn what_is_no_public_key_is_refused_with_its_reason() {
    let spki = |head: &str, key: &[u8]| pem("PUBLIC KEY", &[&unhex(head), key].concat());
    for (case, text, line) in [
        ("empty", String::new(), "is not a PEM file"),
        ("words", "hello".to_owned(), "is not a PEM file"),
        ("a short hex line", "ab".repeat(31), "is not a PEM file"),
        ("cut in the middle", RFC_PUBLIC[..60].to_owned(), "is not a PEM file"),
        ("a private key", RFC_PRIVATE.to_owned(), "holds a PRIVATE KEY, where a PUBLIC KEY is wanted"),
        ("a DER that is none", pem("PUBLIC KEY", b"garbage"), "is not a well-formed PUBLIC KEY"),
        ("something behind", spki("302a300506032b6570032100", &[1; 33]), "is not a well-formed PUBLIC KEY"),
        ("X25519", spki("302a300506032b656e032100", &[9; 32]), "the algorithm 1.3.101.110"),
        ("a short key", spki("3029300506032b6570032000", &[9; 31]), "holds 31 bytes of key, where 32"),
        ("a long key", spki("302b300506032b6570032200", &[9; 33]), "holds 33 bytes of key, where 32"),
        ("the identity, a weak key", format!("01{}", "00".repeat(31)), "is no valid Ed25519 public key"),
        ("not on the curve", format!("02{}", "00".repeat(31)), "is no valid Ed25519 public key"),
    ] {
        let error = PublicKey::from_pem(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(line), "{case}: {error}");
    }
}

#[test]
fn what_is_no_private_key_is_refused_with_its_reason() {
    let pkcs8 = |head: &str, seed: &[u8]| pem("PRIVATE KEY", &[&unhex(head), seed].concat());
    for (case, text, line) in [
        ("empty", String::new(), "is not a PEM file"),
        ("a public key", RFC_PUBLIC.to_owned(), "holds a PUBLIC KEY, where a PRIVATE KEY is wanted"),
        ("encrypted", pem("ENCRYPTED PRIVATE KEY", b"secret"), "is encrypted"),
        ("a DER that is none", pem("PRIVATE KEY", b"garbage"), "is not a well-formed PRIVATE KEY"),
        ("X25519", pkcs8("302e020100300506032b656e04220420", &[9; 32]), "the algorithm 1.3.101.110"),
        ("a short seed", pkcs8("302d020100300506032b65700421041f", &[9; 31]), "holds 31 bytes of key"),
        ("a bare seed", pkcs8("302c020100300506032b65700420", &[9; 32]), "is not a well-formed PRIVATE KEY"),
        ("a legacy key of 32 bytes", pem("ED25519 PRIVATE KEY", &[9; 32]), "holds 32 bytes of key, where 64"),
    ] {
        let error = PrivateKey::from_pem(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(line), "{case}: {error}");
    }
}

#[test]
fn a_private_key_does_not_print_its_seed() {
    let printed = format!("{:?}", key(0xab));
    assert_eq!(printed, format!("PrivateKey({})", key(0xab).public().id()));
}

#[test]
fn generated_keys_differ_and_read_back() {
    let (one, two) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    assert_ne!(one.public(), two.public());
    let read = PrivateKey::from_pem(one.to_pem().unwrap().as_bytes()).unwrap();
    assert_eq!(read.public(), one.public());
}
