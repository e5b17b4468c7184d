//! Ways out of `[Agent] Sandbox = "strict"`, each tried within it, where it must fail, and as root without it, where it must
//! not fail in the same way: so a wall that is missing is seen, and so is an attempt that could never work.
//!
//! `escape/hostile.c` has the attempts. What this machine's kernel does not have (the same answer within and without) is
//! printed; there must be little of it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::cases::is_root;
use common::{Manager, Setup, agentctl, text};

/// The unit that others are after.
const VICTIM: &str = "agentd-escape-victim";

/// The attempts, and how each may end; the scenario in the virtual machine reads them too.
const ATTEMPTS: &str = include_str!("escape/attempts.txt");

/// The words behind this one in [`ATTEMPTS`].
fn words(kind: &str) -> Vec<&'static str> {
    let lines = ATTEMPTS.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(first, _)| *first == kind).flat_map(|(_, rest)| rest.split(' ')).collect()
}

/// What `User = "root"` leaves open within all the other walls: the kernel asks for nothing but the same user.
const ROOT_STILL_CAN: [&str; 3] = ["read-shadow", "see-manager", "see-victim"];

fn hostile(setup: &Setup) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escape/hostile.c");
    let program = setup.path("hostile");
    let built = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(source).status();
    assert!(built.unwrap().success(), "gcc builds it");
    let set_user_id = setup.path("setuid");
    fs::copy(&program, &set_user_id).unwrap();
    fs::set_permissions(set_user_id, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::create_dir(setup.path("writable")).unwrap();
    fs::set_permissions(setup.path("writable"), fs::Permissions::from_mode(0o777)).unwrap();
    program
}

/// Writes a unit that makes attempts, before the pids that it is after are known.
fn attacker(manager: &Manager, name: &str, agent: &str, service: &str, attempts: &str) {
    let list: Vec<String> = attempts.split_whitespace().map(|one| format!("\"{one}\"")).collect();
    let folder = manager.path("");
    let unit = format!(
        "{agent}\n[Service]\nType = \"oneshot\"\nExecStart = [\"{0}/hostile\", \"{1}\", \"{2}\", \"{0}\", {3}]\nEnvironment = {{ VICTIM = \"{VICTIM}\" }}\nStandardOutput = \"truncate:{0}/{name}.out\"\n{service}\n",
        folder.display(),
        manager.pid(),
        manager.main_pid(VICTIM),
        list.join(", "),
    );
    common::write(&manager.path(&format!("units/{name}.service.toml")), &unit);
}

/// What came of each attempt.
fn outcomes(manager: &mut Manager, name: &str) -> BTreeMap<String, String> {
    manager.ok(&["start", name]);
    let out = fs::read_to_string(manager.path(&format!("{name}.out"))).unwrap();
    out.lines().filter_map(|line| line.split_once(' ')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

#[test]
fn nothing_gets_out_of_a_strict_sandbox() {
    if !is_root() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "escape");
    hostile(&setup);
    setup.unit(
        &format!("{VICTIM}.service"),
        &format!("[Agent]\nSandbox = \"strict\"\n[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nStateDirectory = \"{VICTIM}\"\n"),
    );
    let mut manager = setup.start();
    manager.ok(&["start", VICTIM]);
    let strict = "[Agent]\nSandbox = \"strict\"";
    let all = words("try").join(" ");
    let (refused, missing) = (words("refused"), words("missing"));
    let alone = "set-user-id-program stray-descriptor stray-descriptor-of-its-own leave-in-tmp";
    attacker(
        &manager,
        "strict",
        strict,
        "StateDirectory = \"agentd-escape-strict\"\nLimitNOFILE = 1024",
        &format!("{all} {alone}"),
    );
    attacker(
        &manager,
        "root",
        strict,
        "User = \"root\"\nStateDirectory = \"agentd-escape-root\"\nLimitNOFILE = 1024",
        &all,
    );
    attacker(&manager, "free", "", "", &format!("make-shared-memory {all} leave-in-tmp"));
    attacker(&manager, "plain", "", "User = \"64123\"", "set-user-id-program");
    attacker(&manager, "tidy", "", "", "remove-shared-memory");
    let address = SocketAddr::from_abstract_name(format!("agentd-escape-{}", manager.pid())).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    manager.ok(&["daemon-reload"]);

    let free = outcomes(&mut manager, "free");
    assert!(fs::remove_file("/tmp/agentd-escape-left").is_ok(), "it can leave a file without walls");
    let strict = outcomes(&mut manager, "strict");
    assert!(fs::remove_file("/tmp/agentd-escape-left").is_err(), "it has left a file outside");
    let root = outcomes(&mut manager, "root");
    let plain = outcomes(&mut manager, "plain");
    outcomes(&mut manager, "tidy");

    let mut wrong = Vec::new();
    let mut untold = Vec::new();
    for attempt in words("try") {
        let (within, without) = (strict[attempt].as_str(), free[attempt].as_str());
        if !refused.contains(&within) {
            wrong.push(format!("{attempt}: {within} within the sandbox"));
        }
        if within == without {
            untold.push(format!("{attempt}: {within}"));
            // What is there and fails alike on both sides is a bad attempt, on any machine.
            if !missing.contains(&without) {
                wrong.push(format!("{attempt}: {without} within and without: it proves nothing"));
            }
        }
        let as_root = root[attempt].as_str();
        let may = ROOT_STILL_CAN.contains(&attempt);
        // Where there is no controller for pids nothing holds root back.
        if attempt != "many-processes" && (as_root == "done") != may && without == "done" {
            wrong.push(format!("{attempt}: {as_root} as root within the sandbox"));
        }
    }
    for (attempt, within, how, without) in
        [("set-user-id-program", &strict, &plain, "done"), ("stray-descriptor", &strict, &strict, "EBADF")]
    {
        assert_ne!(within[attempt], "done", "{attempt}");
        assert_eq!(how[attempt], without, "{attempt}");
    }
    assert_eq!(strict["stray-descriptor-of-its-own"], "done", "it would see a descriptor");
    if !untold.is_empty() {
        eprintln!("NOT PROVED HERE, as this kernel does not have what they are after: {}", untold.join(", "));
    }
    assert!(wrong.is_empty(), "{}\nwithin: {strict:?}\nwithout: {free:?}", wrong.join("\n"));
    assert!(untold.len() <= 3, "{untold:?}");
    drop(manager);
    for name in [VICTIM, "agentd-escape-strict", "agentd-escape-root"] {
        let _gone = fs::remove_dir_all(Path::new("/var/lib").join(name));
    }
}

/// A process of a strict unit may look through the control socket, and do nothing: its user is nobody to the manager.
#[test]
fn the_control_socket_is_for_looking() {
    if !is_root() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "escape-control");
    let program = setup.path("agentctl");
    fs::copy(agentctl(), &program).unwrap();
    setup.unit("victim.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    for (name, agent, verb) in [
        ("look", "Sandbox = \"strict\"\nControlAccess = \"all\"", "status"),
        ("act", "Sandbox = \"strict\"\nControlAccess = \"all\"", "stop"),
        ("act-as-root", "ControlAccess = \"all\"", "stop"),
    ] {
        let state = if agent.contains("strict") {
            format!("StateDirectory = \"agentd-escape-{name}\"")
        } else {
            String::new()
        };
        let text = format!(
            "[Agent]\n{agent}\n[Service]\nType = \"oneshot\"\nExecStart = [\"{}\", \"--runtime-dir\", \"{}\", \"{verb}\", \"victim\"]\n{state}\n",
            program.display(),
            setup.path("run").display(),
        );
        setup.unit(&format!("{name}.service"), &text);
    }
    let mut manager = setup.start();
    manager.ok(&["start", "victim"]);
    manager.ok(&["start", "look"]);
    let refused = manager.ctl(&["start", "act"]);
    assert!(!refused.status.success(), "{}", text(&refused));
    assert_eq!(manager.property("act", "ExecMainStatus"), "4", "not permitted");
    assert_eq!(manager.property("victim", "ActiveState"), "active");
    manager.ok(&["start", "act-as-root"]);
    assert_eq!(manager.property("victim", "ActiveState"), "inactive");
    drop(manager);
    for name in ["look", "act"] {
        let _gone = fs::remove_dir_all(format!("/var/lib/agentd-escape-{name}"));
    }
}
