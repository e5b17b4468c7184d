//! What is signed is what runs: policy enforce, with real keys, through the shipped agentctl.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use common::{Manager, Setup, agentctl, text};

/// A manager in enforce with three signed agents: a shell script, a binary and a Python module.
fn signed(name: &str, spoil: impl FnOnce(&Setup)) -> Manager {
    let setup = Setup::new(name).args(&["--trust", "enforce"]);
    let program = setup.path("agent");
    fs::copy("/bin/sleep", &program).unwrap();
    let script = setup.file("script.sh", "#!/bin/sh\nexec sleep 1000\n");
    let module = setup.file("module.py", "def start(stop):\n    stop.wait()\n");
    let settings = setup.file("settings", "LEVEL=3\n");
    let secret = setup.file("secret", "xyzzy");
    setup.file("secrets/deep/one", "xyzzy");
    let install = "[Install]\nWantedBy = [\"multi-user.target\"]\n";
    setup.unit(
        "binary.service",
        &format!("[Service]\nExecStart = [{:?}, \"1000\"]\n{install}", program.display().to_string()),
    );
    setup.unit(
        "script.service",
        &format!(
            "[Service]\nExecStart = [{:?}]\nEnvironmentFile = [{:?}]\nLoadCredential = [\"token:{}\", \"more:{}\"]\n{install}",
            script.display().to_string(),
            settings.display().to_string(),
            secret.display(),
            setup.path("secrets").display()
        ),
    );
    setup.unit(
        "module.service",
        &format!("[Agent]\nKind = \"python\"\nModule = {:?}\n{install}", module.display().to_string()),
    );
    run(Command::new(agentctl()).args(["key", "generate", "test", "--out"]).arg(setup.path("keys")));
    let mut sign = Command::new(agentctl());
    sign.arg("sign").arg("--key").arg(setup.path("keys/test.key"));
    for unit in ["binary", "script", "module"] {
        sign.arg(setup.path(&format!("units/{unit}.service.toml")));
    }
    run(&mut sign);
    spoil(&setup);
    setup.start()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
}

fn append(path: &Path, byte: &[u8]) {
    fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(byte).unwrap();
}

/// The units that are up, of the three.
fn up(manager: &Manager) -> Vec<&'static str> {
    ["binary", "script", "module"]
        .into_iter()
        .filter(|unit| manager.property(unit, "ActiveState") == "active")
        .collect()
}

#[test]
fn signed_agents_of_every_kind_run() {
    let mut manager = signed("signed", |_| {});
    manager.until("not all are up", |m| up(m).len() == 3);
    assert_eq!(manager.property("binary", "Trust"), "trusted");
    let exe = fs::read_link(format!("/proc/{}/exe", manager.main_pid("binary"))).unwrap();
    assert!(exe.ends_with("agent"), "{}", exe.display());
    let comm = fs::read_to_string(format!("/proc/{}/comm", manager.main_pid("binary"))).unwrap();
    assert_eq!(comm.trim(), "agent", "the process has its program's name");
}

#[test]
fn one_changed_byte_stops_that_unit_and_only_it() {
    for (file, unit) in [
        ("units/binary.service.toml", "binary"),
        ("agent", "binary"),
        ("script.sh", "script"),
        ("module.py", "module"),
        ("settings", "script"),
        ("secret", "script"),
        ("secrets/deep/one", "script"),
        ("secrets/another", "script"),
    ] {
        let name = format!("byte-{}", file.replace(['/', '.'], "-"));
        let mut manager = signed(&name, |setup| append(&setup.path(file), b"\n"));
        manager.until("the others are not up", |m| up(m).len() == 2);
        assert!(!up(&manager).contains(&unit), "{file}");
        let start = manager.ctl(&["start", unit]);
        assert!(!start.status.success(), "{file}: {}", text(&start));
        manager.collect();
        let line = manager.log.iter().find(|line| line.contains(unit) && line.contains("sign"));
        assert!(line.is_some(), "{file}: no line says why\n{}", manager.everything());
    }
}

#[test]
fn a_program_changed_behind_a_running_manager_does_not_come_back() {
    let mut manager = signed("behind", |_| {});
    manager.until("not all are up", |m| up(m).len() == 3);
    append(&manager.path("script.sh"), b"# mine\n");
    let restart = manager.ctl(&["restart", "script"]);
    assert_eq!(restart.status.code(), Some(1), "{}", text(&restart));
    assert_eq!(manager.property("script", "Result"), "trust");
    assert_eq!(up(&manager), ["binary", "module"]);
    manager.collect();
}

#[test]
fn what_is_not_signed_or_signed_by_a_stranger_never_runs() {
    let mut manager = signed("stranger", |setup| {
        fs::remove_file(setup.path("units/binary.service.toml.sig")).unwrap();
        fs::remove_file(setup.path("units/script.service.toml.sig")).unwrap();
        fs::create_dir(setup.path("elsewhere")).unwrap();
        run(Command::new(agentctl())
            .args(["key", "generate", "other", "--out"])
            .arg(setup.path("elsewhere")));
        let mut sign = Command::new(agentctl());
        sign.arg("sign").arg("--key").arg(setup.path("elsewhere/other.key"));
        run(sign.arg(setup.path("units/script.service.toml")));
    });
    manager.until("the signed one is not up", |m| up(m) == ["module"]);
    for unit in ["binary", "script"] {
        let start = manager.ctl(&["start", unit]);
        assert!(!start.status.success() && text(&start).contains(unit), "{}", text(&start));
    }
    manager.collect();
}

#[test]
fn a_pattern_of_environment_files_is_refused_where_signatures_count() {
    let mut manager = signed("pattern", |setup| {
        let file = setup.file("more.env", "A=1\n");
        let keys = format!("ExecStart = [\"/bin/true\"]\nEnvironmentFile = \"-{}*\"", file.display());
        let unit = setup.unit("pattern.service", &format!("[Service]\n{keys}\n"));
        run(Command::new(agentctl()).arg("sign").arg("--key").arg(setup.path("keys/test.key")).arg(unit));
    });
    let start = text(&manager.ctl(&["start", "pattern"]));
    assert!(start.contains("is a pattern, whose files no signature covers"), "{start}");
    assert_eq!(manager.property("pattern", "Result"), "trust");
    manager.collect();
}

/// A program below RootDirectory is signed as what it is on the machine, and links in it lead to what they lead to there.
#[test]
fn a_program_below_a_root_directory_is_signed_with_its_unit() {
    if !common::cases::is_root() {
        return;
    }
    let setup = Setup::new("root-directory").args(&["--trust", "enforce"]);
    let root = setup.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    let source = setup.file("agent.c", "int main(void) { return 0; }\n");
    run(Command::new("gcc").args(["-static", "-o"]).arg(root.join("bin/agent")).arg(source));
    // Without the root there is no such file.
    std::os::unix::fs::symlink("/bin/agent", root.join("bin/link")).unwrap();
    // What is bound over the root's own programs is what runs, so that is what has to be signed.
    let bound = setup.path("bound");
    fs::create_dir_all(&bound).unwrap();
    fs::write(root.join("bin/script"), "the root's own, which never runs").unwrap();
    let script = |name: &str| fs::write(bound.join(name), "#!/bin/agent\n").unwrap();
    script("script");
    fs::copy(root.join("bin/agent"), bound.join("agent")).unwrap();
    for name in ["script", "agent"] {
        fs::set_permissions(bound.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    for unit in ["bound", "bound-changed"] {
        setup.unit(
            &format!("{unit}.service"),
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = \"/bin/script\"\nRootDirectory = {root:?}\nBindPaths = \"{}:/bin\"\n",
                bound.display()
            ),
        );
    }
    for unit in ["straight", "changed"] {
        let program = if unit == "straight" { "link" } else { "agent" };
        setup.unit(
            &format!("{unit}.service"),
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = \"/bin/{program}\"\nRootDirectory = {root:?}\n"
            ),
        );
    }
    run(Command::new(agentctl()).args(["key", "generate", "test", "--out"]).arg(setup.path("keys")));
    let mut sign = Command::new(agentctl());
    sign.arg("sign").arg("--key").arg(setup.path("keys/test.key"));
    for unit in ["straight", "changed", "bound", "bound-changed"] {
        sign.arg(setup.path(&format!("units/{unit}.service.toml")));
    }
    run(&mut sign);
    let mut manager = setup.start();
    manager.ok(&["start", "straight"]);
    manager.ok(&["start", "bound"]);
    append(&bound.join("script"), b"\n");
    let start = manager.ctl(&["start", "bound-changed"]);
    assert!(!start.status.success(), "{}", text(&start));
    assert_eq!(manager.property("bound-changed", "Result"), "trust");
    append(&root.join("bin/agent"), b"\n");
    let start = manager.ctl(&["start", "changed"]);
    assert!(!start.status.success(), "{}", text(&start));
    assert_eq!(manager.property("changed", "Result"), "trust");
}
