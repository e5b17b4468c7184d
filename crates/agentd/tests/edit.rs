//! edit and revert, new and import: what they write, and that it works at once.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Manager, Setup, agentctl, text, write};

const WEB: &str =
    "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n";

/// A user's manager with one unit of a package and none of its own.
fn start(name: &str) -> Manager {
    let setup = Setup::new(name).tiers();
    setup.file("home/.local/share/agentd/units/web.service.toml", WEB);
    let mut manager = setup.start();
    manager.until_property("web", "ActiveState", "active");
    manager
}

fn ctl(manager: &Manager, words: &[&str]) -> Command {
    let mut command = Command::new(agentctl());
    command.arg("--runtime-dir").arg(manager.path("run")).args(words).env("TMPDIR", manager.path("home"));
    command
}

fn with_stdin(manager: &Manager, words: &[&str], stdin: &str) -> Output {
    let mut command = ctl(manager, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A process that refuses before it reads leaves the pipe broken.
    let _broken = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn own(manager: &Manager, name: &str) -> PathBuf {
    manager.path(&format!("config/agentd/units/{name}"))
}

/// An editor that puts a text in the place of what it is given, and keeps what it was given.
fn editor(manager: &Manager, text: &str) -> PathBuf {
    let seen = manager.path("seen");
    let script = format!("#!/bin/sh\ncp \"$1\" {}\ncat > \"$1\" <<'END'\n{text}END\n", seen.display());
    write(&manager.path("editor"), &script)
}

#[test]
fn an_edit_is_a_drop_in_that_is_in_force_after_the_next_start() {
    let mut manager = start("edit");
    let editor = editor(&manager, "[Service]\nMemoryMax = \"64M\"\n#| the rest is shown only\n");
    let output = ctl(&manager, &["edit", "web"]).env("SYSTEMD_EDITOR", editor).output().unwrap();
    let drop_in = own(&manager, "web.service.d/override.toml");
    let said = format!(
        "Wrote {}. It counts from the next start; 'agentctl apply' restarts what runs.\n",
        drop_in.display()
    );
    assert_eq!(text(&output), said);
    assert_eq!(std::fs::read_to_string(&drop_in).unwrap(), "[Service]\nMemoryMax = \"64M\"\n");
    let seen = std::fs::read_to_string(manager.path("seen")).unwrap();
    assert!(seen.contains("#| ExecStart = [\"/bin/sleep\", \"1000\"]\n"), "the definition is shown: {seen}");
    assert_eq!(manager.property("web", "NeedRestart"), "yes");
    manager.ok(&["restart", "web"]);
    assert_eq!(manager.property("web", "MemoryMax"), (64 << 20).to_string());

    let output = with_stdin(
        &manager,
        &["edit", "--stdin", "--drop-in", "20-tasks", "web"],
        "[Service]\nTasksMax = 9\n",
    );
    assert!(output.status.success(), "{}", text(&output));
    manager.ok(&["restart", "web"]);
    assert_eq!(manager.property("web", "TasksMax"), "9");
    assert!(manager.ok(&["cat", "web"]).contains("/web.service.d/20-tasks.toml\n[Service]\n"));

    let told = manager.ok(&["revert", "web"]);
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(!own(&manager, "web.service.d").exists());
    manager.ok(&["restart", "web"]);
    assert_eq!(manager.property("web", "TasksMax"), "infinity");
    assert_eq!(manager.ok(&["revert", "web"]), "There was nothing to take back.\n");
}

#[test]
fn a_full_edit_stands_above_the_package_until_it_is_reverted() {
    let mut manager = start("edit-full");
    let full = WEB.replace("1000", "2000");
    let output = with_stdin(&manager, &["edit", "--full", "--stdin", "web"], &full);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(manager.property("web", "NeedRestart"), "yes");
    manager.ok(&["apply"]);
    manager.ok(&["restart", "web"]);
    assert_eq!(
        manager.property("web", "FragmentPath"),
        own(&manager, "web.service.toml").display().to_string()
    );
    manager.ok(&["mask", "web"]);
    let told = manager.ok(&["revert", "web"]);
    assert!(
        told.contains("/control/web.service.\n") && told.contains("/units/web.service.toml.\n"),
        "{told}"
    );
    assert_eq!(manager.property("web", "LoadState"), "loaded");
    assert!(manager.ok(&["cat", "web"]).contains("\"1000\""));
    // A unit that no package has stays: there would be nothing left of it.
    write(&own(&manager, "mine.service.toml"), WEB);
    manager.ok(&["daemon-reload"]);
    assert_eq!(manager.ok(&["revert", "mine"]), "There was nothing to take back.\n");
}

#[test]
fn what_would_not_load_is_never_saved_and_the_text_is_kept() {
    let manager = start("edit-bad");
    let output = with_stdin(&manager, &["edit", "--stdin", "web"], "[Service]\nMemroyMax = \"64M\"\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("did you mean MemoryMax?"), "{}", text(&output));
    assert!(!own(&manager, "web.service.d").exists());

    let editor = editor(&manager, "[Service]\nMemroyMax = 1\n");
    let output =
        ctl(&manager, &["edit", "web"]).env("EDITOR", editor).env_remove("SYSTEMD_EDITOR").output().unwrap();
    let told = text(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let kept = told.split("your text is kept in ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert_eq!(std::fs::read_to_string(Path::new(kept)).unwrap(), "[Service]\nMemroyMax = 1\n");
    assert!(!own(&manager, "web.service.d").exists());

    let output = ctl(&manager, &["edit", "web"]).env("SYSTEMD_EDITOR", "/bin/false").output().unwrap();
    assert!(
        output.status.code() == Some(1) && text(&output).contains("nothing is changed"),
        "{}",
        text(&output)
    );
    let output = ctl(&manager, &["edit", "web"]).env("SYSTEMD_EDITOR", "/bin/true").output().unwrap();
    assert!(output.status.success() && text(&output).contains("nothing is changed"), "{}", text(&output));
    assert_eq!(with_stdin(&manager, &["edit", "--stdin", "nothing"], "").status.code(), Some(4));
    assert_eq!(
        with_stdin(&manager, &["edit", "--stdin", "--drop-in", "../x", "web"], "").status.code(),
        Some(2)
    );
}

#[test]
fn a_new_agent_of_each_kind_starts_at_once() {
    let mut manager = start("new");
    let kit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rootfs/usr/lib/agentd/go").canonicalize().unwrap();
    let kit = kit.display().to_string();
    for (name, words) in [
        ("snake", vec!["--kind", "python"]),
        ("shell", vec!["--kind", "exec"]),
        ("gopher", vec!["--kind", "go", "--kit", &kit]),
        ("clock-work", vec!["--timer"]),
        ("door", vec!["--socket"]),
        ("gate", vec!["--socket", "--kind", "exec"]),
        ("hatch", vec!["--socket", "--kind", "go", "--kit", &kit]),
    ] {
        let words: Vec<&str> = ["new", name].into_iter().chain(words).collect();
        let output = ctl(&manager, &words).output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output));
        let again = ctl(&manager, &words).output().unwrap();
        assert!(again.status.code() == Some(1) && text(&again).contains("is not written over"), "{name}");
    }
    let units: Vec<PathBuf> = ["snake", "shell", "gopher", "clock-work", "door", "gate", "hatch"]
        .map(|name| own(&manager, &format!("{name}.service.toml")))
        .into();
    let check = ctl(&manager, &["analyze", "verify"]).args(&units).output().unwrap();
    assert!(!text(&check).contains("service.toml:"), "no finding in the texts: {}", text(&check));
    manager.ok(&["apply"]);
    for name in ["snake", "shell", "gopher"] {
        manager.until_property(name, "ActiveState", "active");
        manager.until(&format!("{name} does not count"), |m| {
            let told = text(&m.ctl(&["logs", name])) + &m.property(name, "StatusText");
            told.contains("counted to")
        });
    }
    for name in ["door", "gate", "hatch"] {
        manager.until_property(&format!("{name}.socket"), "SubState", "listening");
        let listen = manager.property(&format!("{name}.socket"), "Listen");
        let path = listen.strip_suffix(" (Stream)").unwrap();
        let mut answer = String::new();
        let mut client = std::os::unix::net::UnixStream::connect(path).unwrap();
        client.set_read_timeout(Some(common::PATIENCE)).unwrap();
        std::io::Read::read_to_string(&mut client, &mut answer).unwrap();
        assert_eq!(answer, format!("Hello from {name}\n"));
    }
    let sockets = manager.ok(&["list-sockets"]);
    assert!(sockets.contains("door.socket") && sockets.contains("3 sockets listed."), "{sockets}");
    assert_eq!(manager.property("clock-work.timer", "ActiveState"), "active");
    manager.ok(&["start", "clock-work"]);
    manager.until("its words are not kept", |m| {
        text(&m.ctl(&["logs", "clock-work"])).contains("has done its work")
    });
}

#[test]
fn an_imported_unit_runs_as_the_one_it_came_from() {
    let mut manager = start("import");
    let source = write(
        &manager.path("home/job.service"),
        "[Unit]\n# What it is.\nDescription=A job\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo done'\n[Install]\nWantedBy=multi-user.target\n",
    );
    let folder = manager.path("config/agentd/units");
    let output = ctl(&manager, &["import", "--out"]).arg(&folder).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let toml = std::fs::read_to_string(folder.join("job.service.toml")).unwrap();
    assert!(toml.contains("# What it is.\nDescription = \"A job\"\n"), "{toml}");
    manager.ok(&["apply"]);
    manager.until_property("job", "SubState", "exited");
    let again = ctl(&manager, &["import", "--out"]).arg(&folder).arg(&source).output().unwrap();
    assert!(again.status.code() == Some(1) && text(&again).contains("is not written over"));
    let bad = write(&manager.path("home/bad.service"), "[Service]\nExecStart=/bin/true\nNice=x\nSlic\n");
    let output = ctl(&manager, &["import", "-o", "json"]).arg(&bad).output().unwrap();
    assert!(text(&output).contains("\"Notes\": [\n"), "{}", text(&output));
}

#[test]
fn in_enforce_an_edit_is_refused_until_it_is_signed() {
    let setup = Setup::new("edit-enforce").tiers().args(&["--trust", "enforce"]);
    let file = setup.file("config/agentd/units/web.service.toml", WEB);
    let key = setup.path("keys/me.key");
    let ran = |command: &mut Command| assert!(command.output().unwrap().status.success(), "{command:?}");
    ran(Command::new(agentctl()).args(["key", "generate", "me", "--out"]).arg(setup.path("keys")));
    ran(Command::new(agentctl()).arg("sign").arg("--key").arg(&key).arg(&file));
    let mut manager = setup.start();
    manager.until_property("web", "ActiveState", "active");
    let pid = manager.main_pid("web");
    let output = with_stdin(&manager, &["edit", "--stdin", "web"], "[Service]\nMemoryMax = \"64M\"\n");
    assert!(
        output.status.success() && text(&output).contains("agentctl sign --key FILE"),
        "{}",
        text(&output)
    );
    assert_eq!(manager.main_pid("web"), pid, "what runs was signed, and runs on");
    let refused = manager.ctl(&["restart", "web"]);
    assert!(!refused.status.success(), "{}", text(&refused));
    ran(Command::new(agentctl()).arg("sign").arg("--key").arg(&key).arg(&file));
    manager.ok(&["daemon-reload"]);
    manager.ok(&["restart", "web"]);
    assert_eq!(manager.property("web", "MemoryMax"), (64 << 20).to_string());
}
