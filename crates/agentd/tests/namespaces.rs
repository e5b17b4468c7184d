//! What several commands and several units have in common: `JoinsNamespaceOf`, `NetworkNamespacePath`, `IPCNamespacePath`;
//! and what the manager opens for a service: `OpenFile`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::slice::from_ref;

use common::cases::is_root;
use common::{Manager, Setup, text};

/// Says which namespaces it is in, and what lies in its `/tmp`.
const TELL: &str = "readlink /proc/self/ns/net /proc/self/ns/ipc; cat /tmp/seen 2>/dev/null; echo";

/// The keys that give a unit namespaces of its own.
const OWN: &str = "PrivateNetwork = true\nPrivateIPC = true\nPrivateTmp = true";

fn unit(setup: &Setup, name: &str, head: &str, commands: &str, keys: &str) {
    let output = setup.path(&format!("{name}.out"));
    setup.unit(
        &format!("{name}.service"),
        &format!(
            "[Unit]\n{head}\n[Service]\n{commands}\n{keys}\nStandardOutput = \"append:{}\"\n",
            output.display()
        ),
    );
}

/// The same for a manager that runs: a unit that sleeps, and tells when it is reloaded.
fn unit_of(manager: &Manager, name: &str, head: &str) {
    let commands =
        format!("Type = \"exec\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n{}", shell("ExecReload", TELL));
    let output = manager.path(&format!("{name}.out"));
    common::write(
        &manager.path(&format!("units/{name}.service.toml")),
        &format!(
            "[Unit]\n{head}\n[Service]\n{commands}\n{OWN}\nStandardOutput = \"append:{}\"\n",
            output.display()
        ),
    );
}

fn shell(key: &str, script: &str) -> String {
    format!("{key} = [\"/bin/sh\", \"-c\", \"{script}\"]\n")
}

/// What a unit has said so far, one paragraph for each time.
fn said(manager: &Manager, name: &str) -> Vec<String> {
    let text = fs::read_to_string(manager.path(&format!("{name}.out"))).unwrap_or_default();
    text.split("\n\n").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn link(process: &str, kind: &str) -> String {
    fs::read_link(format!("/proc/{process}/ns/{kind}")).unwrap().display().to_string()
}

#[test]
fn all_commands_of_a_unit_have_its_one_network() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("namespaces-commands");
    let commands = ["ExecStartPre", "ExecStart", "ExecStartPost"].map(|key| shell(key, TELL)).concat();
    unit(&setup, "one", "", &format!("Type = \"oneshot\"\n{commands}"), OWN);
    let mut manager = setup.start();
    manager.ok(&["start", "one"]);
    let said = said(&manager, "one");
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|each| *each == said[0]), "{said:?}");
    for kind in ["net", "ipc"] {
        assert!(!said[0].contains(&link("self", kind)), "{said:?}");
    }
}

/// The folders that are kept for the present runs of units.
fn private_folders(manager: &Manager, units: &[&str]) -> Vec<PathBuf> {
    let of = |unit: &&str| {
        let run = manager.property(unit, "InvocationID");
        ["/tmp", "/var/tmp"].map(|base| Path::new(base).join(format!("agentd-private-{run}")))
    };
    units.iter().flat_map(of).collect()
}

#[test]
fn a_unit_has_the_namespaces_of_the_one_that_it_joins() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("namespaces-join");
    let leave = format!("echo held > /tmp/seen; {TELL}");
    let held = format!("Type = \"oneshot\"\nRemainAfterExit = true\n{}", shell("ExecStart", &leave));
    unit(&setup, "holder", "", &held, OWN);
    let sleeps = |setup: &Setup, name: &str, head: &str, keys: &str| {
        let commands =
            format!("Type = \"exec\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n{}", shell("ExecReload", TELL));
        unit(setup, name, head, &commands, keys);
    };
    sleeps(&setup, "guest", "JoinsNamespaceOf = [\"holder.service\"]", OWN);
    sleeps(&setup, "second", "JoinsNamespaceOf = [\"guest.service\"]", OWN);
    sleeps(&setup, "stranger", "", OWN);
    // It has no namespaces of its own to exchange for others.
    sleeps(&setup, "open", "JoinsNamespaceOf = [\"holder.service\"]", "");
    let mut manager = setup.start();
    manager.ok(&["start", "holder", "stranger", "open"]);
    manager.ok(&["start", "guest"]);
    for name in ["guest", "stranger", "open"] {
        manager.ok(&["reload", name]);
    }
    let holder = said(&manager, "holder").remove(0);
    assert!(holder.ends_with("held"), "{holder}");
    assert_eq!(said(&manager, "guest"), from_ref(&holder));
    for name in ["stranger", "open"] {
        let other = said(&manager, name).remove(0);
        let words = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(words(&other).iter().all(|line| !words(&holder).contains(line)), "{name}: {other}\n{holder}");
    }
    // Nobody was to join this one when it began.
    let late = said(&manager, "stranger").remove(0);
    unit_of(&manager, "late", "JoinsNamespaceOf = [\"stranger.service\"]");
    manager.ok(&["daemon-reload"]);
    manager.ok(&["start", "late"]);
    manager.ok(&["reload", "late"]);
    assert_eq!(said(&manager, "late"), [late]);
    manager.ok(&["stop", "late"]);
    // Over a new manager, and once the first has gone.
    manager.ok(&["daemon-reexec"]);
    manager.ok(&["stop", "holder"]);
    manager.ok(&["reload", "guest"]);
    manager.ok(&["start", "second"]);
    manager.ok(&["reload", "second"]);
    assert_eq!(said(&manager, "guest"), [holder.clone(), holder.clone()]);
    assert_eq!(said(&manager, "second"), from_ref(&holder));
    // The edge is one from both ends: who is named joins who names it.
    manager.ok(&["start", "holder"]);
    assert_eq!(said(&manager, "holder"), [holder.clone(), holder]);
    let folders = private_folders(&manager, &["holder", "guest", "second", "stranger"]);
    assert!(folders.iter().all(|folder| folder.exists()), "{folders:?}");
    manager.ok(&["stop", "holder", "guest", "second", "stranger", "open"]);
    manager.until("temporary folders are left", |_| folders.iter().all(|folder| !folder.exists()));
}

/// A process among a network and an IPC of its own; it goes with this.
struct Elsewhere(Child);

impl Elsewhere {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "--ipc", "sh", "-c", "echo; exec sleep 1000"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn a_unit_has_the_namespaces_of_the_files_that_it_names() {
    if !is_root() {
        return;
    }
    let elsewhere = Elsewhere::new();
    let pid = elsewhere.0.id().to_string();
    let setup = Setup::new("namespaces-path");
    let tell = format!("Type = \"oneshot\"\n{}", shell("ExecStart", TELL));
    let keys = format!(
        "NetworkNamespacePath = \"/proc/{pid}/ns/net\"\nIPCNamespacePath = \"/proc/{pid}/ns/ipc\"\n{OWN}"
    );
    unit(&setup, "there", "", &tell, &keys);
    unit(&setup, "another", "", &tell, &format!("User = \"64123\"\n{keys}"));
    unit(&setup, "missing", "", &tell, "NetworkNamespacePath = \"/run/agentd-no-such-network\"");
    unit(&setup, "wrong", "", &tell, "NetworkNamespacePath = \"/etc/passwd\"");
    // As systemd writes it.
    setup.file(
        "units/plain.service",
        &format!("[Service]\nType=oneshot\nExecStart=/bin/readlink /proc/self/ns/net\nNetworkNamespacePath=/proc/{pid}/ns/net\nStandardOutput=append:{}\n", setup.path("plain.out").display()),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "there", "another", "plain"]);
    let expected = format!("{}\n{}", link(&pid, "net"), link(&pid, "ipc"));
    assert_eq!(said(&manager, "there"), from_ref(&expected));
    assert_eq!(said(&manager, "another"), [expected]);
    assert_eq!(said(&manager, "plain").concat().trim(), link(&pid, "net"));
    for name in ["missing", "wrong"] {
        let refused = manager.ctl(&["start", name]);
        assert!(!refused.status.success(), "{}", text(&refused));
        assert_eq!(manager.property(name, "ExecMainStatus"), "225", "{name}: NETWORK");
        manager.wait_for_log("NetworkNamespacePath", "it is not said why");
    }
}

#[test]
fn what_the_manager_opens_is_found_by_name() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("open-file");
    for (name, text) in [("secret", "secret\n"), ("lines", "first\n"), ("old", "much that is old\n")] {
        let path = setup.file(name, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let listener = UnixListener::bind(setup.path("socket")).unwrap();
    let at = |name: &str| setup.path(name).display().to_string();
    let script = "echo $LISTEN_FDS $LISTEN_FDNAMES; cat <&3; (echo x >&3) 2>/dev/null || echo refused; echo more >&4; echo new >&5; echo hello >&6";
    let files = [
        format!("{}:the-secret:read-only", at("secret")),
        format!("{}::append", at("lines")),
        format!("{}:old:truncate", at("old")),
        format!("{}:peer", at("socket")),
        format!("{}:gone:graceful", at("nowhere")),
    ];
    let list: Vec<String> = files.iter().map(|file| format!("\"{file}\"")).collect();
    // The files are root's alone, and the process is not root.
    let keys = format!("User = \"64123\"\nOpenFile = [{}]", list.join(", "));
    let commands = format!(
        "Type = \"oneshot\"\n{}{}",
        shell("ExecStartPre", "echo before $LISTEN_FDS"),
        shell("ExecStart", &script.replace('$', "$$"))
    );
    unit(&setup, "one", "", &commands, &keys);
    unit(&setup, "two", "", &commands, &format!("OpenFile = \"{}\"", at("nowhere")));
    let lines: String = files.iter().map(|file| format!("OpenFile={file}\n")).collect();
    setup.file(
        "units/plain.service",
        &format!("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo $$LISTEN_FDS $$LISTEN_FDNAMES'\n{lines}StandardOutput=append:{}\n", setup.path("plain.out").display()),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "one"]);
    let (mut peer, _) = listener.accept().unwrap();
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "hello\n");
    let read = |name: &str| fs::read_to_string(manager.path(name)).unwrap();
    assert_eq!(read("one.out"), "before\n4 the-secret:lines:old:peer\nsecret\nrefused\n");
    assert_eq!(
        (read("secret"), read("lines"), read("old")),
        ("secret\n".into(), "first\nmore\n".into(), "new\n".into())
    );
    manager.ok(&["start", "plain"]);
    assert_eq!(fs::read_to_string(manager.path("plain.out")).unwrap(), "4 the-secret:lines:old:peer\n");
    let refused = manager.ctl(&["start", "two"]);
    assert!(!refused.status.success(), "{}", text(&refused));
    assert_eq!(manager.property("two", "ExecMainStatus"), "202", "FDS");
    manager.wait_for_log("OpenFile", "it is not said why");
}

/// Somebody of two units goes with `RemoveIPC` while the other runs, and a new manager comes in between.
#[test]
fn whose_ipc_is_to_go_is_known_to_the_next_manager() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("remove-ipc-over-reexec");
    let object = Path::new("/dev/shm").join(format!("agentd-test-{}", std::process::id()));
    let user = "User = \"64995\"\nGroup = \"64994\"";
    unit(&setup, "stays", "", "Type = \"exec\"\nExecStart = [\"/bin/sleep\", \"1000\"]", user);
    let leave = shell("ExecStart", &format!("echo > {}", object.display()));
    unit(&setup, "goes", "", &format!("Type = \"oneshot\"\n{leave}"), &format!("{user}\nRemoveIPC = true"));
    let mut manager = setup.start();
    manager.ok(&["start", "stays"]);
    manager.ok(&["start", "goes"]);
    manager.ok(&["daemon-reexec"]);
    assert!(object.exists(), "another unit of the user runs");
    manager.ok(&["stop", "stays"]);
    manager.until("what was left is still there", |_| !object.exists());
}
