//! `start --wait` and `restart --wait`: until what was started has ended again, systemctl(1).

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::{Child, Command, Stdio};

use common::{Manager, Setup, agentctl, text};

/// It lives until somebody writes its exit code into the named pipe.
fn told(setup: &Setup, name: &str) {
    let pipe = setup.path(&format!("{name}.pipe"));
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = format!("read code <{}; exit $code", pipe.display());
    setup.unit(
        &format!("{name}.service"),
        &format!("[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"{script}\"]\n"),
    );
}

fn tell(manager: &Manager, name: &str, code: u8) {
    fs::write(manager.path(&format!("{name}.pipe")), format!("{code}\n")).unwrap();
}

fn waiting(manager: &Manager, args: &[&str]) -> Child {
    let mut command = Command::new(agentctl());
    command.arg("--runtime-dir").arg(manager.path("run")).args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_start_that_waits_ends_with_what_became_of_the_units() {
    let setup = Setup::new("wait");
    told(&setup, "a");
    told(&setup, "b");
    let mut manager = setup.start();
    for (codes, exit) in [([0, 0], 0), ([0, 3], 1)] {
        let client = waiting(&manager, &["start", "--wait", "a", "b", "-o", "json"]);
        for (unit, code) in ["a", "b"].into_iter().zip(codes) {
            manager.until_property(unit, "SubState", "running");
            tell(&manager, unit, code);
        }
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(exit), "{}", text(&output));
        let printed = String::from_utf8(output.stdout).unwrap();
        let ends: Vec<_> = printed.lines().filter_map(|line| line.trim().strip_prefix("\"End\": ")).collect();
        let end = if exit == 0 { "\"success\"" } else { "\"exit-code\"" };
        assert_eq!(ends, ["\"success\"", end], "{printed}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.contains("b.service failed because a process of it exited"), exit == 1, "{errors}");
    }
}

#[test]
fn a_restart_that_waits_goes_on_through_automatic_restarts_and_a_new_manager() {
    let setup = Setup::new("wait-restart");
    told(&setup, "a");
    let failing = fs::read_to_string(setup.path("units/a.service.toml")).unwrap();
    setup.unit("a.service", &format!("{failing}Restart = \"on-failure\"\nRestartSec = \"50ms\"\n"));
    let mut manager = setup.start();
    let client = waiting(&manager, &["restart", "--wait", "a"]);
    manager.until_property("a", "SubState", "running");
    tell(&manager, "a", 4);
    manager.until("it does not come back", |m| {
        m.property("a", "NRestarts") == "1" && m.property("a", "SubState") == "running"
    });
    manager.ok(&["daemon-reexec"]);
    manager.until_property("a", "SubState", "running");
    tell(&manager, "a", 0);
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(manager.property("a", "ActiveState"), "inactive");
}

#[test]
fn a_failure_that_is_forgotten_at_once_is_told_all_the_same() {
    let setup = Setup::new("wait-collect");
    told(&setup, "a");
    let unit = fs::read_to_string(setup.path("units/a.service.toml")).unwrap();
    setup.unit("a.service", &format!("[Unit]\nCollectMode = \"inactive-or-failed\"\n{unit}"));
    let mut manager = setup.start();
    for (code, exit) in [(3, 1), (0, 0), (4, 1)] {
        let client = waiting(&manager, &["start", "--wait", "a"]);
        manager.until_property("a", "SubState", "running");
        tell(&manager, "a", code);
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(exit), "{}", text(&output));
        manager.until_property("a", "ActiveState", "inactive");
    }
}

#[test]
fn a_stop_by_another_client_ends_the_wait() {
    let setup = Setup::new("wait-stop");
    told(&setup, "a");
    let mut manager = setup.start();
    let client = waiting(&manager, &["start", "--wait", "a"]);
    manager.until_property("a", "SubState", "running");
    manager.ok(&["stop", "a"]);
    assert_eq!(client.wait_with_output().unwrap().status.code(), Some(0));
}
