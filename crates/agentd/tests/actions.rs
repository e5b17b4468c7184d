//! What an end of a unit or a job does to the whole manager, services that restart directly, clients that leave.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::process::{Command, Stdio};

use common::{Manager, Setup, agentctl};

const SLEEP: &str = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n";

/// A manager with a unit of this text, and another one beside it.
fn manager(name: &str, unit: &str) -> Manager {
    let setup = Setup::new(name);
    setup.unit("a.service", unit);
    setup.unit("b.service", &format!("[Unit]\nBindsTo = [\"a.service\"]\n{SLEEP}"));
    setup.unit("c.service", SLEEP);
    setup.start()
}

#[test]
fn the_manager_ends_as_the_action_of_a_unit_says_and_with_its_exit_code() {
    let fails = "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"exit 5\"]\n";
    let hangs = "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n";
    let once = "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\n";
    for (name, unit, code) in [
        ("failure", format!("[Unit]\nFailureAction = \"exit\"\n{fails}"), 5),
        ("named", format!("[Unit]\nFailureAction = \"exit-force\"\nFailureActionExitStatus = 9\n{fails}"), 9),
        ("success", format!("[Unit]\nSuccessAction = \"exit\"\nSuccessActionExitStatus = 4\n{once}"), 4),
        (
            "limit",
            format!(
                "[Unit]\nStartLimitAction = \"exit\"\nStartLimitBurst = 1\n{fails}Restart = \"always\"\nRestartSec = 0\n"
            ),
            0,
        ),
        ("waits", format!("[Unit]\nJobTimeoutAction = \"exit\"\nJobTimeoutSec = 1\n{hangs}"), 0),
        ("runs", format!("[Unit]\nJobTimeoutAction = \"exit\"\nJobRunningTimeoutSec = 1\n{hangs}"), 0),
        // A manager that is no init cannot end the machine; it ends itself.
        ("reboot", format!("[Unit]\nFailureAction = \"reboot\"\n{fails}"), 0),
    ] {
        let mut manager = manager(&format!("action-{name}"), &unit);
        manager.ok(&["start", "c"]);
        let _started = manager.ctl(&["start", "--no-block", "a"]);
        assert_eq!(manager.wait().code(), Some(code), "{name}");
        manager.collect();
        assert!(manager.log.iter().any(|line| line.contains("Everything ends now, as ")), "{name}");
    }
}

#[test]
fn what_is_bound_to_a_service_that_restarts_directly_does_not_hear_of_it() {
    for (mode, stays) in [("direct", true), ("normal", false)] {
        let unit = format!("{SLEEP}Restart = \"always\"\nRestartSec = 0\nRestartMode = \"{mode}\"\n");
        let mut manager = manager(&format!("restart-{mode}"), &unit);
        manager.ok(&["start", "b"]);
        let (a, b) = (manager.main_pid("a"), manager.main_pid("b"));
        manager.ok(&["kill", "-s", "KILL", "a"]);
        manager.until("a does not come back", |m| ![0, a].contains(&m.main_pid("a")));
        manager.until_property("b", "ActiveState", "active");
        manager.until("b does not run", |m| m.main_pid("b") != 0);
        assert_eq!(manager.main_pid("b") == b, stays, "{mode}");
    }
}

#[test]
fn a_client_that_leaves_changes_nothing() {
    let mut manager = manager("leaves", &format!("{SLEEP}ExecStartPre = [\"/bin/sleep\", \"1\"]\n"));
    let runtime = manager.path("run");
    let client = |unit: &str| {
        let mut command = Command::new(agentctl());
        command.arg("--runtime-dir").arg(&runtime).args(["start", unit]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // One whose job waits, one whose job runs.
    let mut clients = [client("b"), client("a")];
    manager.until("the jobs are not there", |m| {
        let jobs = String::from_utf8(m.ctl(&["list-jobs"]).stdout).unwrap();
        jobs.contains("b.service") && jobs.contains("running")
    });
    for client in &mut clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
    manager.until_property("b", "ActiveState", "active");
    assert_eq!(manager.property("a", "ActiveState"), "active");
}

#[test]
fn an_isolate_leaves_what_ignores_it_alone() {
    let mut manager =
        manager("ignores", &format!("[Unit]\nIgnoreOnIsolate = true\nDefaultDependencies = false\n{SLEEP}"));
    let target = "[Unit]\nAllowIsolate = true\n";
    common::write(&manager.path("units/small.target.toml"), target);
    manager.ok(&["daemon-reload"]);
    manager.ok(&["start", "a", "c"]);
    manager.ok(&["isolate", "small.target"]);
    manager.until_property("c", "ActiveState", "inactive");
    assert_eq!(manager.property("a", "ActiveState"), "active");
}

#[test]
fn jobs_are_listed_with_what_they_wait_for_and_canceled_by_their_number() {
    let oneshot = "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n";
    let mut manager = manager("jobs", oneshot);
    let mut client = Command::new(agentctl());
    client.arg("--runtime-dir").arg(manager.path("run")).args(["start", "b"]);
    let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let jobs = |m: &Manager| String::from_utf8(m.ctl(&["list-jobs"]).stdout).unwrap();
    let row = |list: &str, unit: &str| {
        let line = list.lines().find(|line| line.split_whitespace().nth(1) == Some(unit));
        line.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    manager.until("the jobs are not there", |m| {
        row(&jobs(m), "b.service").is_some() && jobs(m).contains("running")
    });
    let list = jobs(&manager);
    assert_eq!(row(&list, "a.service").unwrap()[2..4], ["start", "running"], "{list}");
    assert_eq!(row(&list, "b.service").unwrap()[2..], ["start", "waiting", "a.service"], "{list}");
    let job = row(&list, "b.service").unwrap()[0].clone();
    manager.ok(&["cancel", &job]);
    assert_eq!(client.wait().unwrap().code(), Some(1), "who waited for it is told");
    let list = jobs(&manager);
    assert!(row(&list, "b.service").is_none() && row(&list, "a.service").is_some(), "{list}");
    assert!(!manager.ctl(&["cancel", &job]).status.success(), "it is gone");
}
