//! Key files: who may read them while they are written, and which are believed.
#![expect(clippy::unwrap_used, reason = "a test stops where it meets what it does not expect")]

mod common;

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use agentd_trust::key_file::{self, KeyFileErrorKind};
use agentd_trust::{KeyProblem, KeyRing, durable, sign, verify};
use common::{Folder, chain, key, manifest};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Loads as the user that runs the test.
fn load(folders: &[&Path]) -> (KeyRing, Vec<String>) {
    let folders: Vec<_> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    let (ring, problems) = KeyRing::load(&folders, &[key_file::own_uid().unwrap()]);
    (ring, problems.iter().map(|problem: &KeyProblem| chain(problem)).collect())
}

fn known(ring: &KeyRing) -> Vec<(&str, bool)> {
    let mut known: Vec<_> = ring.keys().map(|key| (key.name.as_str(), key.revoked)).collect();
    known.sort_unstable();
    known
}

#[test]
fn a_generated_pair_is_private_complete_and_read_by_every_reader() {
    let folder = Folder::new();
    let made = key_file::generate(folder.path(), "build-1").unwrap();
    assert_eq!(names(folder.path()), ["build-1.key", "build-1.pub"]);
    assert_eq!((mode(&made.private_path), mode(&made.public_path)), (0o600, 0o644));

    let private = key_file::read_private(&made.private_path).unwrap();
    assert_eq!(key_file::read_public(&made.public_path).unwrap(), private.public());
    assert_eq!(private.public().id(), made.id);
    let (ring, problems) = load(&[folder.path()]);
    assert_eq!(problems, [""; 0]);
    let verified = verify(&sign(&private, &manifest()).unwrap(), &ring).unwrap();
    assert_eq!(verified.signers(), [made.id]);
}

#[test]
fn generating_never_replaces_a_key_and_leaves_nothing_half_done() {
    let folder = Folder::new();
    for taken in ["a.key", "b.pub"] {
        folder.write(taken, "mine");
    }
    for name in ["a", "b"] {
        let error = key_file::generate(folder.path(), name).unwrap_err();
        assert!(matches!(error.kind, KeyFileErrorKind::Exists), "{error:?}");
    }
    assert_eq!(names(folder.path()), ["a.key", "b.pub"]);
    for taken in ["a.key", "b.pub"] {
        assert_eq!(fs::read(folder.path().join(taken)).unwrap(), b"mine");
    }
}

#[test]
fn of_two_who_generate_the_same_name_one_wins_with_a_whole_pair() {
    for round in 0..50 {
        let folder = Folder::new();
        let start = Barrier::new(2);
        let results = thread::scope(|scope| {
            let run = || {
                start.wait();
                key_file::generate(folder.path(), "agent")
            };
            [scope.spawn(run), scope.spawn(run)].map(|thread| thread.join().unwrap())
        });
        let made: Vec<_> = results.iter().flatten().collect();
        assert_eq!(made.len(), 1, "round {round}: {results:?}");
        assert_eq!(names(folder.path()), ["agent.key", "agent.pub"], "round {round}");
        let (private, public) = (&made[0].private_path, &made[0].public_path);
        let pair = key_file::read_private(private).unwrap().public();
        assert_eq!(key_file::read_public(public).unwrap(), pair, "round {round}");
    }
}

#[test]
fn a_key_is_named_by_a_plain_word() {
    let folder = Folder::new();
    for name in ["", ".", "..", ".hidden", "a/b", "/a", "a b", "a\n", "schlüssel"] {
        let error = key_file::generate(folder.path(), name).unwrap_err();
        assert!(matches!(error.kind, KeyFileErrorKind::Name), "{name:?}: {error:?}");
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_descriptor_held_on_the_old_file_never_sees_the_new_secret() {
    let folder = Folder::new();
    let path = folder.write("agent.key", "old and open");
    chmod(&path, 0o644);
    let mut held = File::open(&path).unwrap();

    durable::replace(&path, b"new secret", 0o600).unwrap();

    let mut seen = String::new();
    held.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old and open");
    assert_ne!(held.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new secret".to_vec(), 0o600));
    assert_eq!(names(folder.path()), ["agent.key"]);
}

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let folder = Folder::new();
    let path = folder.write("taken/inside", "kept");
    let taken = folder.path().join("taken");
    assert!(durable::replace(&taken, b"new", 0o600).is_err());
    assert!(durable::create(&path, b"new", 0o600).is_err());
    assert_eq!(names(folder.path()), ["taken"]);
    assert_eq!((names(&taken), fs::read(&path).unwrap()), (vec!["inside".to_owned()], b"kept".to_vec()));
}

#[test]
fn a_left_over_of_a_killed_writer_is_no_obstacle() {
    let folder = Folder::new();
    for number in 0..64 {
        folder.write(&format!(".x.key.{}-{number}.tmp", std::process::id()), "left over");
    }
    durable::create(&folder.path().join("x.key"), b"new", 0o600).unwrap();
    assert_eq!(fs::read(folder.path().join("x.key")).unwrap(), b"new");
}

#[test]
fn a_private_key_that_others_can_use_is_refused() {
    let folder = Folder::new();
    let path = key_file::generate(folder.path(), "agent").unwrap().private_path;
    for open in [0o640, 0o604, 0o620, 0o602, 0o610] {
        chmod(&path, open);
        let error = key_file::read_private(&path).unwrap_err();
        assert!(matches!(error.kind, KeyFileErrorKind::Exposed { mode } if mode == open), "{error:?}");
    }
    chmod(&path, 0o400);
    key_file::read_private(&path).unwrap();
}

#[test]
fn what_is_no_key_file_is_reported_and_hides_no_other() {
    let folder = Folder::new();
    let pem = key(1).public().to_pem().unwrap();
    folder.write("a-garbage.pub", "no key");
    folder.write("b-long.pub", "x".repeat(20_000));
    folder.write("c-folder.pub/x", "");
    chmod(&folder.write("d-open.pub", key(4).public().to_pem().unwrap()), 0o664);
    let target = folder.write("link-target", key(5).public().to_pem().unwrap());
    symlink(target, folder.path().join("e-link.pub")).unwrap();
    folder.write("note.txt", "not looked at");
    folder.write("z-good.pub", pem);

    let (ring, problems) = load(&[folder.path()]);
    assert_eq!(known(&ring), [("z-good", false)]);
    let expected = [
        ("a-garbage.pub", "is not used: is not a PEM file"),
        ("b-long.pub", "is not used: has more than 16384 bytes"),
        ("c-folder.pub", "is not used: is no regular file"),
        ("d-open.pub", "is not used: has mode 0664, so others may change it"),
        ("e-link.pub", "is not used: is no regular file (symbolic links are not followed"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for ((file, reason), problem) in expected.iter().zip(&problems) {
        let start = format!("{}: {reason}", folder.path().join(file).display());
        assert!(problem.starts_with(&start), "{problem}");
    }
}

#[test]
fn keys_of_another_user_are_not_believed() {
    let (folder, other) = (Folder::new(), Folder::new());
    let path = folder.write("a.pub", key(1).public().to_pem().unwrap());
    other.write("b.pub", key(2).public().to_pem().unwrap());
    if chown(&path, Some(12_345), None).is_err() {
        println!("left out: only root can give files away");
        return;
    }
    chown(other.path(), Some(12_345), None).unwrap();

    let (ring, problems) = load(&[folder.path(), other.path()]);
    assert!(ring.is_empty());
    assert!(problems[0].contains("a.pub: is not used: belongs to the user 12345"), "{problems:?}");
    assert!(problems[1].contains("no key in it is used: belongs to the user 12345"), "{problems:?}");
    let folders = [folder.path().to_owned(), other.path().to_owned()];
    let (ring, problems) = KeyRing::load(&folders, &[12_345]);
    assert_eq!((known(&ring), problems.len()), (vec![("a", false), ("b", false)], 0));
}

#[test]
fn a_folder_that_others_can_write_gives_no_key() {
    let (open, good) = (Folder::new(), Folder::new());
    open.write("a.pub", key(1).public().to_pem().unwrap());
    good.write("b.pub", key(2).public().to_pem().unwrap());
    chmod(open.path(), 0o1777);

    let missing = open.path().join("missing");
    let (ring, problems) = load(&[open.path(), &missing, good.path()]);
    assert_eq!(known(&ring), [("b", false)]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("no key in it is used: has mode 1777"), "{problems:?}");
}

#[test]
fn the_first_folder_names_a_key_that_both_have() {
    let (etc, usr) = (Folder::new(), Folder::new());
    etc.write("mine.pub", key(1).public().to_pem().unwrap());
    usr.write("vendor.pub", key(1).public().to_pem().unwrap());
    usr.write("other.pub", key(2).public().to_pem().unwrap());
    let (ring, problems) = load(&[etc.path(), usr.path()]);
    assert_eq!((known(&ring), problems.len()), (vec![("mine", false), ("other", false)], 0));
}

#[test]
fn a_revocation_in_any_folder_and_form_holds_for_all_folders() {
    let id = key(1).public().id();
    let pem = key(1).public().to_pem().unwrap();
    for (case, file, text) in [
        ("a copy of the key", "any-name.pub", pem.as_str()),
        ("a file named by the id", &id.to_string(), ""),
        ("a file named by the id with .pub", &format!("{id}.pub"), "unreadable"),
        ("a file of the key's name that cannot be read", "vendor.pub", "damaged"),
    ] {
        for revoker in [0, 1] {
            let folders = [Folder::new(), Folder::new()];
            folders[1].write("vendor.pub", &pem);
            folders[1].write("other.pub", key(2).public().to_pem().unwrap());
            folders[revoker].write(&format!("revoked/{file}"), text);
            let (ring, _) = load(&[folders[0].path(), folders[1].path()]);
            assert_eq!(known(&ring), [("other", false), ("vendor", true)], "{case}, folder {revoker}");
        }
    }
}

#[test]
fn without_a_list_of_revocations_no_key_is_trusted() {
    let folder = Folder::new();
    folder.write("a.pub", key(1).public().to_pem().unwrap());
    folder.write("revoked", "a file where a folder should be");
    let (ring, problems) = load(&[folder.path()]);
    assert!(ring.is_empty());
    assert!(problems[0].contains("revoked: cannot be listed, so no key at all is trusted: "), "{problems:?}");
}

#[test]
fn revoking_is_read_by_the_ring_and_may_be_repeated() {
    let folder = Folder::new();
    let made = key_file::generate(folder.path(), "agent").unwrap();
    let public = key_file::read_public(&made.public_path).unwrap();
    for _ in 0..2 {
        let path = key_file::revoke(folder.path(), &public).unwrap();
        assert_eq!(key_file::read_public(&path).unwrap(), public);
    }
    let (ring, problems) = load(&[folder.path()]);
    assert_eq!((known(&ring), problems.len()), (vec![("agent", true)], 0));
}
