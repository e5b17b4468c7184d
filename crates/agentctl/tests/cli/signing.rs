//! `sign` and `verify` on real trees: what was signed holds, and whatever is changed after it does not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::manager::{Folder, outcome};

const GO_AGENT: &str = "\
[Unit]
Description = \"web\"

[Service]
ExecStartPre = [\"/usr/bin/prepare\"]
ExecStart = [\"/bin/web\", \"--port\", \"80\"]
";

const PYTHON_AGENT: &str = "\
[Agent]
Kind = \"python\"
Module = \"/usr/lib/agents/reader.py\"
Pin = [\"/etc/reader.conf\"]
";

const PACKAGE_AGENT: &str = "\
[Service]
Environment = { PYTHONPATH = \"/usr/lib/agents\" }

[Agent]
Kind = \"python\"
Module = \"indexer.main\"
";

/// A tree that will be another machine's `/`, with a Go agent and a Python agent, and keys beside it.
struct Image {
    folder: Folder,
}

impl Image {
    fn new() -> Self {
        let image = Self { folder: Folder::new() };
        for (path, content) in [
            ("usr/bin/web", "the web agent"),
            ("usr/bin/prepare", "a helper"),
            ("usr/lib/agents/reader.py", "print('hello')\n"),
            ("etc/reader.conf", "colour = blue\n"),
            ("usr/lib/agents/indexer/__init__.py", ""),
            ("usr/lib/agents/indexer/main.py", "from .words import count\n"),
            ("usr/lib/agents/indexer/text/words.py", "def count(): pass\n"),
            ("units/indexer.service.toml", PACKAGE_AGENT),
            ("units/web.service.toml", GO_AGENT),
            ("units/reader.service.toml", PYTHON_AGENT),
            ("units/web.service.d/10-more.toml", "[Unit]\nDocumentation = [\"man:web(1)\"]\n"),
        ] {
            image.write(path, content);
        }
        // As on merged systems; an absolute link must not lead out of the image.
        symlink("/usr/bin", image.path("bin")).expect("a link");
        image.run(&["key", "generate", "me", "--out", "KEYS"]);
        image
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    /// Runs agentctl in the image; `KEYS` stands for the folder of keys, made private as keys need it.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let keys = self.path("keys");
        fs::create_dir_all(&keys).expect("a folder");
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).expect("its mode");
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
        command.current_dir(self.folder.path());
        command.args(arguments.iter().map(|argument| argument.replace("KEYS", "keys")));
        outcome(command.output().expect("agentctl runs"))
    }

    fn sign(&self, unit: &str) -> (i32, String, String) {
        self.run(&["sign", "--key", "KEYS/me.key", "--root", ".", unit])
    }

    fn verify(&self, unit: &str) -> (i32, String, String) {
        self.run(&["verify", "--keys", "KEYS", "--root", ".", unit])
    }
}

const WEB: &str = "units/web.service.toml";
const READER: &str = "units/reader.service.toml";
const INDEXER: &str = "units/indexer.service.toml";

#[test]
fn what_was_signed_holds_and_signing_again_gives_the_same_bytes() {
    let image = Image::new();
    for unit in [WEB, READER, INDEXER] {
        let (exit, out, err) = image.sign(unit);
        assert_eq!(exit, 0, "{out}{err}");
        let (exit, out, err) = image.verify(unit);
        assert_eq!(exit, 0, "{out}{err}");
        assert!(out.starts_with(&format!("{unit}: ok (")), "{out}");
        let signature = image.path(&format!("{unit}.sig"));
        assert_eq!(fs::metadata(&signature).unwrap().permissions().mode() & 0o777, 0o644);
        let first = fs::read(&signature).unwrap();
        image.sign(unit);
        assert_eq!(fs::read(&signature).unwrap(), first);
    }
}

#[test]
fn whatever_is_changed_after_signing_does_not_hold_and_is_named() {
    for (unit, changed, reason) in [
        (WEB, "units/web.service.toml", "web.service.toml"),
        (WEB, "units/web.service.d/10-more.toml", "web.service.d/10-more.toml"),
        (WEB, "usr/bin/web", "/bin/web"),
        (WEB, "usr/bin/prepare", "/usr/bin/prepare"),
        (READER, "usr/lib/agents/reader.py", "/usr/lib/agents/reader.py"),
        (READER, "etc/reader.conf", "/etc/reader.conf"),
        (INDEXER, "usr/lib/agents/indexer/text/words.py", "/usr/lib/agents/indexer/text/words.py"),
    ] {
        let image = Image::new();
        image.sign(unit);
        let mut bytes = fs::read(image.path(changed)).unwrap();
        // A flipped bit in the last byte but one, which is a letter in each of these files.
        let at = bytes.len() - 2;
        bytes[at] ^= 1;
        fs::write(image.path(changed), bytes).unwrap();
        let (exit, out, _) = image.verify(unit);
        assert_eq!((exit, out.lines().count()), (1, 1), "{changed}: {out}");
        assert!(out.starts_with(&format!("{unit}: ")) && out.contains(reason), "{changed}: {out}");
    }
}

#[test]
fn what_is_added_or_taken_away_after_signing_does_not_hold() {
    type Change = fn(&Image);
    let changes: [(&str, Change, &str); 6] = [
        ("a drop-in is added", |i| i.write("units/web.service.d/20-x.toml", "\n"), "20-x.toml"),
        (
            "a drop-in is removed",
            |i| fs::remove_file(i.path("units/web.service.d/10-more.toml")).unwrap(),
            "10-more",
        ),
        ("a program is removed", |i| fs::remove_file(i.path("usr/bin/web")).unwrap(), "ExecStart: /bin/web"),
        (
            "the signature is removed",
            |i| fs::remove_file(i.path("units/web.service.toml.sig")).unwrap(),
            "not signed",
        ),
        ("the signature is emptied", |i| i.write("units/web.service.toml.sig", ""), "web.service.toml: "),
        (
            "the unit is given another name",
            |i| {
                for end in ["toml", "toml.sig"] {
                    fs::rename(
                        i.path(&format!("units/web.service.{end}")),
                        i.path(&format!("units/db.service.{end}")),
                    )
                    .unwrap();
                }
                i.write(WEB, GO_AGENT);
            },
            "not signed",
        ),
    ];
    for (case, change, reason) in changes {
        let image = Image::new();
        image.sign(WEB);
        change(&image);
        let (exit, out, _) = image.verify(WEB);
        assert_eq!(exit, 1, "{case}: {out}");
        assert!(out.contains(reason), "{case}: {out}");
    }
}

#[test]
fn a_package_is_signed_with_all_its_files_and_none_besides() {
    type Change = fn(&Image);
    let changes: [(&str, Change, Option<&str>); 4] = [
        (
            "a module is added",
            |i| i.write("usr/lib/agents/indexer/text/extra.py", "1"),
            Some("text/extra.py"),
        ),
        (
            "a module is removed",
            |i| fs::remove_file(i.path("usr/lib/agents/indexer/__init__.py")).unwrap(),
            Some("indexer/__init__.py"),
        ),
        (
            "a link is added",
            |i| symlink("/etc/passwd", i.path("usr/lib/agents/indexer/link.py")).unwrap(),
            Some("is a link"),
        ),
        ("Python leaves its caches", |i| i.write("usr/lib/agents/indexer/__pycache__/main.pyc", "1"), None),
    ];
    for (case, change, reason) in changes {
        let image = Image::new();
        image.sign(INDEXER);
        change(&image);
        let (exit, out, _) = image.verify(INDEXER);
        assert_eq!(exit, i32::from(reason.is_some()), "{case}: {out}");
        assert!(out.contains(reason.unwrap_or("ok (")), "{case}: {out}");
    }
}

#[test]
fn a_signature_is_for_the_unit_of_its_name_alone() {
    let image = Image::new();
    image.sign(WEB);
    for end in ["toml", "toml.sig"] {
        fs::copy(
            image.path(&format!("units/web.service.{end}")),
            image.path(&format!("units/db.service.{end}")),
        )
        .unwrap();
    }
    let (exit, out, _) = image.verify("units/db.service.toml");
    assert_eq!(exit, 1);
    assert!(out.contains("web.service"), "{out}");
}

#[test]
fn only_keys_that_are_known_and_not_revoked_count() {
    let image = Image::new();
    image.sign(WEB);
    fs::create_dir(image.path("keys/revoked")).unwrap();
    fs::copy(image.path("keys/me.pub"), image.path("keys/revoked/me.pub")).unwrap();
    let (exit, out, _) = image.verify(WEB);
    assert_eq!(exit, 1);
    assert!(out.contains("revoked"), "{out}");
    fs::remove_dir_all(image.path("keys/revoked")).unwrap();
    fs::remove_file(image.path("keys/me.pub")).unwrap();
    let (exit, out, _) = image.verify(WEB);
    assert_eq!(exit, 1);
    assert!(out.contains("unknown here"), "{out}");
}

#[test]
fn a_second_signer_stands_beside_the_first_until_the_content_changes() {
    let image = Image::new();
    image.run(&["key", "generate", "you", "--out", "KEYS"]);
    image.sign(WEB);
    let (exit, out, err) = image.run(&["sign", "--key", "KEYS/you.key", "--root", ".", WEB, "-o", "json"]);
    assert_eq!(exit, 0, "{err}");
    let ids = |out: &str| {
        let report: serde_json::Value = serde_json::from_str(out).unwrap();
        report[0]["KeyIds"].as_array().unwrap().len()
    };
    assert_eq!(ids(&out), 2);
    image.write("usr/bin/web", "a new version");
    let (_, out, _) = image.run(&["sign", "--key", "KEYS/you.key", "--root", ".", WEB, "-o", "json"]);
    assert_eq!(ids(&out), 1, "the first signer has not seen the new content");
}

#[test]
fn each_file_has_its_line_and_one_that_fails_does_not_stop_the_others() {
    let image = Image::new();
    image.write("units/bad.service.toml", "[Service]\nExecStart = [\"/usr/bin/web\"]\nColour = 1\n");
    image.write("units/path.service.toml", "[Service]\nExecStart = [\"web\"]\n");
    image.write("units/gone.service.toml", "[Service]\nExecStart = [\"/usr/bin/gone\"]\n");
    let (exit, out, err) = image.run(&[
        "sign",
        "--key",
        "KEYS/me.key",
        "--root",
        ".",
        "units/bad.service.toml",
        "units/path.service.toml",
        "units/gone.service.toml",
        "keys/me.pub",
        WEB,
    ]);
    assert_eq!(exit, 1, "{err}");
    for reason in [
        "units/bad.service.toml:3:1: ",
        "units/path.service.toml: ExecStart: 'web' is no absolute path",
        "units/gone.service.toml: ExecStart: /usr/bin/gone cannot be read below .: No such file",
        "keys/me.pub: keys/me.pub is no unit file",
    ] {
        assert!(err.contains(reason), "{reason:?} in {err}");
    }
    assert!(out.starts_with("units/web.service.toml: signed by "), "{out}");
    assert_eq!(out.lines().count(), 1);
    assert!(image.path("units/web.service.toml.sig").exists());
    assert!(!image.path("units/gone.service.toml.sig").exists());
}

#[test]
fn without_a_usable_key_nothing_is_signed() {
    let image = Image::new();
    fs::set_permissions(image.path("keys/me.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (exit, _, err) = image.sign(WEB);
    assert_eq!(exit, 1);
    assert!(err.contains("me.key"), "{err}");
    let (exit, _, err) = image.run(&["sign", "--key", "KEYS/me.pub", "--root", ".", WEB]);
    assert_eq!(exit, 1);
    assert!(err.contains("me.pub: is a public key, which signs nothing"), "{err}");
    assert!(!image.path("units/web.service.toml.sig").exists());
}

#[test]
fn a_folder_of_keys_that_is_not_there_is_told_by_its_name() {
    let image = Image::new();
    image.sign(WEB);
    let (exit, out, err) = image.run(&["verify", "--keys", "KEYS/nowhere", "--root", ".", WEB]);
    assert_eq!((exit, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("/nowhere: there is no such folder"), "{err}");
}
