//! How lives end and come back, with real processes: failure modes of timeouts, services that live by their cgroup,
//! chance in delays, rows of restarts, failures that are forgotten.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Manager, Setup, is_alive};

/// Longer than any test lasts: who waits by chance up to so long is there when it ends.
const AGES: &str = "5000 weeks";

/// A program that does not end on SIGTERM, and writes down SIGTERM and SIGUSR1 as they come.
fn deaf(setup: &Setup) -> String {
    let heard = setup.path("heard");
    let text = format!(
        "#!/bin/sh\ntrap 'echo TERM >> {0}' TERM\ntrap 'echo USR1 >> {0}' USR1\n: > {0}\nwhile :; do sleep 0.05; done\n",
        heard.display()
    );
    setup.file("deaf.sh", &text).display().to_string()
}

fn heard(manager: &Manager) -> Vec<String> {
    let text = fs::read_to_string(manager.path("heard")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_start_that_takes_too_long_gets_the_signal_of_its_failure_mode() {
    for (mode, signals) in [("terminate", &["TERM"][..]), ("abort", &["USR1"]), ("kill", &[])] {
        let setup = Setup::new(&format!("start-{mode}"));
        let program = deaf(&setup);
        setup.unit(
            "a.service",
            &format!(
                "[Service]\nType = \"notify\"\nExecStart = [\"{program}\"]\nTimeoutStartSec = \"500ms\"\nTimeoutStopSec = \"700ms\"\n\
                 TimeoutStartFailureMode = \"{mode}\"\nWatchdogSignal = \"SIGUSR1\"\n"
            ),
        );
        let mut manager = setup.start();
        let began = Instant::now();
        assert_eq!(manager.ctl(&["start", "a"]).status.code(), Some(1));
        assert_eq!(heard(&manager), signals, "{mode}\n{}", manager.everything());
        assert_eq!(manager.property("a", "Result"), "timeout");
        let asked = Duration::from_millis(if mode == "kill" { 500 } else { 1200 });
        assert!(began.elapsed() >= asked, "{mode}: {:?}", began.elapsed());
    }
}

#[test]
fn a_stop_that_takes_too_long_is_aborted_before_it_is_killed() {
    let setup = Setup::new("stop-abort");
    let program = deaf(&setup);
    setup.unit(
        "a.service",
        &format!(
            "[Service]\nExecStart = [\"{program}\"]\nTimeoutStopSec = \"500ms\"\nTimeoutAbortSec = \"500ms\"\n\
             TimeoutStopFailureMode = \"abort\"\nWatchdogSignal = \"SIGUSR1\"\n"
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "a"]);
    manager.until("it does not listen to signals", |m| m.path("heard").exists());
    let pid = manager.main_pid("a");
    let began = Instant::now();
    manager.ok(&["stop", "a"]);
    assert_eq!(heard(&manager), ["TERM", "USR1"]);
    assert!(began.elapsed() >= Duration::from_secs(1) && !is_alive(pid));
    manager.wait_for_log("State 'stop-sigterm' timed out. Aborting.", "the abort is not told");
    manager.wait_for_log("State 'stop-watchdog' timed out. Killing.", "the kill is not told");
}

#[test]
fn chance_makes_a_life_and_a_delay_longer_than_they_are_without() {
    let setup = Setup::new("chance");
    let sleep = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nRuntimeMaxSec = \"300ms\"\n";
    setup.unit("short.service", sleep);
    setup.unit("long.service", &format!("{sleep}RuntimeRandomizedExtraSec = \"{AGES}\"\n"));
    let fails = "[Service]\nExecStart = [\"/bin/false\"]\nRestart = \"on-failure\"\nRestartSec = \"100ms\"\n[Agent]\nMaxRestarts = 2\n";
    setup.unit("soon.service", fails);
    setup.unit("late.service", &format!("{fails}RestartRandomizedDelaySec = \"{AGES}\"\n"));
    let mut manager = setup.start();
    for unit in ["long", "late", "short", "soon"] {
        let _begun = manager.ctl(&["start", unit]);
    }
    manager.until_property("short", "Result", "timeout");
    manager.until_property("soon", "ActiveState", "failed");
    assert_eq!(manager.property("long", "ActiveState"), "active");
    assert_eq!(manager.property("late", "SubState"), "auto-restart");
    manager.ok(&["stop", "late"]);
    assert_eq!(manager.property("late", "ActiveState"), "inactive");
}

#[test]
fn a_service_that_lives_by_its_cgroup_outlives_its_main_process() {
    for (exit_type, state) in [("cgroup", "active"), ("main", "inactive")] {
        let setup = Setup::new(&format!("exit-{exit_type}"));
        let pid_file = setup.path("helper.pid");
        let text = format!(
            "#!/bin/sh\nsetsid sleep 1000 > /dev/null 2>&1 &\necho $! > {0}.new\nmv {0}.new {0}\nexit 0\n",
            pid_file.display()
        );
        let program = setup.file("parent.sh", &text);
        setup.unit(
            "a.service",
            &format!("[Service]\nExecStart = [\"{}\"]\nExitType = \"{exit_type}\"\n", program.display()),
        );
        let mut manager = setup.start();
        manager.ok(&["start", "a"]);
        manager.until("the parent does not end", |m| pid_file.exists() && m.main_pid("a") == 0);
        let helper: u32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        manager.until_property("a", "ActiveState", state);
        assert_eq!(is_alive(helper), exit_type == "cgroup", "{exit_type}");
        if exit_type == "cgroup" {
            assert_eq!(manager.property("a", "SubState"), "running");
            manager.ok(&["kill", "-s", "KILL", "a"]);
            manager.until_property("a", "ActiveState", "inactive");
        }
        assert_eq!(manager.property("a", "Result"), "success");
    }
}

/// A unit whose program writes down when it was run, in milliseconds, and fails.
fn crashing(setup: &Setup, more: &str) {
    let text =
        format!("#!/bin/sh\necho $(($(date +%s%N) / 1000000)) >> {}\nexit 1\n", setup.path("runs").display());
    let program = setup.file("crash.sh", &text);
    let unit = format!(
        "[Unit]\nOnFailure = [\"note.service\"]\n[Service]\nExecStart = [\"{}\"]\nRestart = \"on-failure\"\n{more}",
        program.display()
    );
    setup.unit("a.service", &unit);
    let note = format!(
        "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"echo x >> {}\"]\n",
        setup.path("notes").display()
    );
    setup.unit("note.service", &note);
}

fn lines(manager: &Manager, name: &str) -> Vec<String> {
    let text = fs::read_to_string(manager.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ra3_gaps_grow_by_the_factor_and_after_max_restarts_on_failure_runs_once() {
    let setup = Setup::new("rows");
    crashing(
        &setup,
        "RestartSec = \"100ms\"\nRestartMaxDelaySec = \"300ms\"\n[Agent]\nRestartFactor = 2\nMaxRestarts = 3\n",
    );
    let mut manager = setup.start();
    for round in 1..=2 {
        let _begun = manager.ctl(&["start", "a"]);
        manager.until("OnFailure does not run", |m| lines(m, "notes").len() == round);
        manager.until_property("a", "ActiveState", "failed");
        assert_eq!(manager.property("a", "Result"), "start-limit-hit");
        assert_eq!(manager.property("a", "NRestarts"), "3");
        let runs: Vec<i64> = lines(&manager, "runs").iter().map(|line| line.parse().unwrap()).collect();
        assert_eq!(runs.len(), 4 * round, "a start by a person begins a new row");
        let gaps: Vec<i64> = runs[4 * (round - 1)..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (gap, least) in gaps.iter().zip([100, 200, 300]) {
            assert!(*gap >= least, "{gaps:?}");
        }
    }
}

#[test]
fn ra17_a_life_of_restart_reset_sec_ends_the_row_but_not_one_below_min_ready_sec() {
    // A life lasts 300 ms: long enough for the first, too short for the others.
    for (keys, stays) in [
        ("RestartResetSec = \"100ms\"", true),
        ("RestartResetSec = \"100ms\"\nMinReadySec = \"1h\"", false),
        ("MinReadySec = \"1h\"", false),
    ] {
        let setup = Setup::new(&format!("reset-{}", keys.len()));
        setup.unit(
            "a.service",
            &format!(
                "[Unit]\nStartLimitBurst = 0\n[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"sleep 0.3; exit 1\"]\nRestart = \"always\"\n\
                 RestartSec = \"10ms\"\n[Agent]\nMaxRestarts = 1\n{keys}\n"
            ),
        );
        let mut manager = setup.start();
        manager.ok(&["start", "a"]);
        if stays {
            manager.until("it does not come back", |m| {
                m.property("a", "NRestarts").parse::<u32>().unwrap() >= 3
            });
        } else {
            manager.until_property("a", "ActiveState", "failed");
            assert_eq!(manager.property("a", "NRestarts"), "1", "{keys}");
        }
    }
}

#[test]
fn a_failure_is_forgotten_where_collect_mode_says_so() {
    for (mode, state) in [("inactive-or-failed", "inactive"), ("inactive", "failed")] {
        let setup = Setup::new(&format!("collect-{}", mode.len()));
        crashing(&setup, "RestartSec = \"10ms\"\n[Agent]\nMaxRestarts = 1\n");
        let path = setup.path("units/a.service.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("[Unit]\n", &format!("[Unit]\nCollectMode = \"{mode}\"\n"))).unwrap();
        let mut manager = setup.start();
        let _begun = manager.ctl(&["start", "a"]);
        manager.until("OnFailure does not run", |m| !lines(m, "notes").is_empty());
        manager.until_property("a", "ActiveState", state);
        let is_forgotten = state == "inactive";
        assert_eq!(manager.property("a", "NRestarts"), if is_forgotten { "0" } else { "1" });
        assert_eq!(manager.property("a", "Result"), if is_forgotten { "success" } else { "start-limit-hit" });
        assert_eq!(manager.ok(&["list"]).contains("a.service"), !is_forgotten);
    }
}
