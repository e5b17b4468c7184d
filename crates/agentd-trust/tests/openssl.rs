//! OpenSSL, which knows nothing of agentd, agrees: on key files both ways, and on a signature.
//!
//! Each test prints that it was left out where there is no `openssl` program.
#![expect(clippy::unwrap_used, reason = "a test stops where it meets what it does not expect")]

mod common;

use std::path::Path;
use std::process::Command;

use agentd_trust::{key_file, sign};
use base64ct::{Base64, Encoding};
use common::{Folder, manifest};

/// Runs openssl in `folder`: what it printed, or `None` where it is not installed.
fn openssl(folder: &Path, arguments: &str) -> Option<Vec<u8>> {
    let mut command = Command::new("openssl");
    let output = match command.args(arguments.split(' ')).current_dir(folder).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("left out: there is no openssl here");
            return None;
        }
        Err(error) => panic!("openssl {arguments}: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {said}");
    Some(output.stdout)
}

#[test]
fn openssl_reads_our_keys_and_finds_the_same_public_key() {
    let folder = Folder::new();
    let made = key_file::generate(folder.path(), "ours").unwrap();
    let public = std::fs::read(&made.public_path).unwrap();
    for arguments in ["pkey -in ours.key -pubout", "pkey -pubin -in ours.pub -pubout"] {
        let Some(printed) = openssl(folder.path(), arguments) else { return };
        assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&public), "{arguments}");
    }
}

#[test]
fn a_key_that_openssl_makes_is_read_here() {
    let folder = Folder::new();
    let Some(_) = openssl(folder.path(), "genpkey -algorithm ed25519 -out theirs.key") else { return };
    openssl(folder.path(), "pkey -in theirs.key -pubout -out theirs.pub");
    let private = key_file::read_private(&folder.path().join("theirs.key")).unwrap();
    assert_eq!(key_file::read_public(&folder.path().join("theirs.pub")).unwrap(), private.public());
}

#[test]
fn a_key_of_another_algorithm_is_named_as_such() {
    let folder = Folder::new();
    for (algorithm, oid) in [("x25519", "1.3.101.110"), ("rsa", "1.2.840.113549.1.1.1")] {
        let make = format!("genpkey -algorithm {algorithm} -out other.key");
        let Some(_) = openssl(folder.path(), &make) else { return };
        openssl(folder.path(), "pkey -in other.key -pubout -out other.pub");
        let private = key_file::read_private(&folder.path().join("other.key")).unwrap_err();
        let public = key_file::read_public(&folder.path().join("other.pub")).unwrap_err();
        for error in [private, public] {
            let line = common::chain(&error);
            assert!(line.contains(&format!("is a key of the algorithm {oid}")), "{line}");
        }
    }
}

#[test]
fn openssl_verifies_our_signature_over_the_dsse_encoding() {
    let folder = Folder::new();
    let made = key_file::generate(folder.path(), "ours").unwrap();
    let file = sign(&key_file::read_private(&made.private_path).unwrap(), &manifest()).unwrap();
    let envelope: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let decode = |value: &serde_json::Value| Base64::decode_vec(value.as_str().unwrap()).unwrap();
    let payload = decode(&envelope["payload"]);
    let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len());
    folder.write("signed", [head.as_bytes(), &payload].concat());
    folder.write("sig", decode(&envelope["signatures"][0]["sig"]));
    let verify = "pkeyutl -verify -pubin -inkey ours.pub -rawin -in signed -sigfile sig";
    openssl(folder.path(), verify);
}
