//! agentd as a subreaper: real processes, started, watched, restarted and stopped.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::{Manager, Setup, is_alive, text};

#[test]
fn an_agent_runs_and_its_words_are_kept() {
    let setup = Setup::new("words");
    setup.unit(
        "talk.service",
        "[Service]\nType = \"oneshot\"\nRemainAfterExit = true\nExecStart = [\"/bin/sh\", \"-c\", \"echo one; echo two >&2; printf three\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    let mut manager = setup.start();
    manager.until_property("talk", "SubState", "exited");
    let logs = manager.ok(&["logs", "talk", "-n", "20"]);
    for word in ["one", "two", "three"] {
        assert!(logs.contains(word), "{logs}");
    }
}

#[test]
fn a_crash_is_told_truly_and_the_agent_comes_back_with_a_new_run() {
    let setup = Setup::new("crash");
    setup.unit(
        "loop.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nRestart = \"on-failure\"\nRestartSec = \"10ms\"\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    let mut manager = setup.start();
    let (pid, run) = (manager.main_pid("loop"), manager.property("loop", "InvocationID"));
    kill("KILL", pid);
    manager.until("it does not come back", |m| !matches!(m.main_pid("loop"), 0) && m.main_pid("loop") != pid);
    manager.until_property("loop", "ActiveState", "active");
    assert_eq!(manager.property("loop", "NRestarts"), "1");
    assert_ne!(manager.property("loop", "InvocationID"), run);
    manager.wait_for_log("Main process exited, code=killed, signal=SIGKILL", "the end is not told");
}

#[test]
fn a_stop_takes_the_whole_tree_and_never_restarts() {
    let setup = Setup::new("tree");
    let pids = setup.path("pids");
    // A helper in a session of its own, and one whose parent is gone.
    let script = format!(
        "#!/bin/sh\nsetsid sleep 1000 & echo $! >> {0}\n(sleep 1000 & echo $! >> {0}) &\ntrap '' TERM\nwhile :; do sleep 0.1; done\n",
        pids.display()
    );
    let program = setup.file("tree.sh", &script);
    setup.unit(
        "tree.service",
        &format!(
            "[Service]\nExecStart = [\"{}\"]\nRestart = \"always\"\nTimeoutStopSec = \"300ms\"\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
            program.display()
        ),
    );
    let mut manager = setup.start();
    let helpers = || -> Vec<u32> {
        fs::read_to_string(&pids).unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
    };
    manager.until("the helpers do not start", |_| helpers().len() == 2);
    let main = manager.main_pid("tree");
    manager.ok(&["stop", "tree"]);
    for pid in helpers().into_iter().chain([main]) {
        assert!(!is_alive(pid), "{pid} lives after the stop\n{}", manager.everything());
    }
    assert_eq!(manager.property("tree", "ActiveState"), "failed", "a stop that had to kill is a timeout");
    assert_eq!(manager.property("tree", "Result"), "timeout");
}

#[test]
fn b006_zombies_that_are_not_ours_to_reap_are_counted_and_go_with_their_parent() {
    let setup = Setup::new("zombies");
    let up = setup.path("up");
    let program = setup.file(
        "breeder.py",
        &format!(
            "import os, time\nfor i in range(40):\n    if os.fork() == 0:\n        os._exit(0)\nos.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\nopen({:?}, 'w').close()\ntime.sleep(1000)\n",
            up.display().to_string()
        ),
    );
    setup.unit(
        "breeder.service",
        &format!("[Service]\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n", program.display()),
    );
    setup.unit("default.target", "[Unit]\nWants = [\"breeder.service\"]\n");
    let mut manager = setup.start();
    manager.until("the children do not come", |_| up.exists());
    manager
        .until("the zombies are not shown", |m| text(&m.ctl(&["status", "breeder"])).contains("Zombies: 40"));
    manager.ok(&["stop", "breeder"]);
    assert!(!text(&manager.ctl(&["status", "breeder"])).contains("Zombies"));
}

#[test]
fn b041_a_real_time_signal_that_means_nothing_ends_nothing() {
    let setup = Setup::new("noise");
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    kill("50", manager.pid());
    manager.wait_for_log("is ignored", "the signal is not told of");
    manager.ok(&["status"]);
}

#[test]
fn the_command_after_the_last_process_runs_in_the_cgroup_of_its_unit() {
    let setup = Setup::new("stop-post");
    let left = setup.path("left");
    let program = setup.file("last.sh", &format!("#!/bin/sh\ncat /proc/self/cgroup > {}\n", left.display()));
    let unit = |last: &str| format!("[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n{last}");
    setup.unit("bare.service", &unit(""));
    setup.unit("last.service", &unit(&format!("ExecStopPost = [\"{}\"]\n", program.display())));
    setup.unit("default.target", "[Unit]\nWants = [\"bare.service\", \"last.service\"]\n");
    let mut manager = setup.start();
    let folder = |m: &Manager, unit| m.property(unit, "ControlGroup");
    let has_cgroups = !folder(&manager, "bare").is_empty();
    for _ in 0..3 {
        manager.ok(&["restart", "bare", "last"]);
    }
    manager.ok(&["stop", "bare", "last"]);
    assert_eq!(fs::read_to_string(&left).unwrap().contains("/last.service"), has_cgroups);
    for unit in ["bare", "last"] {
        assert_eq!(manager.property(unit, "Result"), "success");
        assert_eq!(folder(&manager, unit), "", "its cgroup is gone");
    }
}

#[test]
fn readiness_is_what_the_agent_says_and_dependents_wait_for_it() {
    let setup = Setup::new("ready");
    let order = setup.path("order");
    let notify = setup.file(
        "slow.py",
        &format!(
            "import os, socket, time\nopen({0:?}, 'a').write('slow starts\\n')\ntime.sleep(0.5)\nopen({0:?}, 'a').write('slow ready\\n')\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['NOTIFY_SOCKET'])\ns.send(b'READY=1\\nSTATUS=at work')\ntime.sleep(1000)\n",
            order.display().to_string()
        ),
    );
    setup.unit(
        "slow.service",
        &format!(
            "[Service]\nType = \"notify\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n",
            notify.display()
        ),
    );
    setup.unit(
        "after.service",
        &format!(
            "[Unit]\nRequires = [\"slow.service\"]\n[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"echo after >> {}; exec sleep 1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
            order.display()
        ),
    );
    let mut manager = setup.start();
    manager.until("after does not run", |_| fs::read_to_string(&order).unwrap_or_default().contains("after"));
    assert_eq!(fs::read_to_string(&order).unwrap(), "slow starts\nslow ready\nafter\n");
    assert_eq!(manager.property("slow", "StatusText"), "at work");
}

#[test]
fn a_start_that_never_is_ready_times_out_and_leaves_nothing() {
    let setup = Setup::new("timeout");
    setup.unit(
        "mute.service",
        "[Service]\nType = \"notify\"\nTimeoutStartSec = \"300ms\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n",
    );
    let mut manager = setup.start();
    let output = manager.ctl(&["start", "mute"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(manager.property("mute", "Result"), "timeout");
    assert_eq!(manager.main_pid("mute"), 0);
    manager.collect();
}

#[test]
fn a_program_that_is_not_there_fails_the_start_with_its_reason() {
    let setup = Setup::new("absent");
    setup.unit("ghost.service", "[Service]\nExecStart = [\"/nonexistent/agent\"]\n");
    let mut manager = setup.start();
    let output = manager.ctl(&["start", "ghost"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(manager.property("ghost", "ExecMainStatus"), "203");
    manager.wait_for_log("/nonexistent/agent", "the reason is not logged");
}

#[test]
fn a_hung_agent_is_found_by_its_watchdog_and_brought_back() {
    let setup = Setup::new("watchdog");
    let program = setup.file(
        "beat.py",
        "import os, socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['NOTIFY_SOCKET'])\ns.send(b'READY=1')\nassert os.environ['WATCHDOG_PID'] == str(os.getpid())\nwhile True:\n    s.send(b'WATCHDOG=1')\n    time.sleep(0.1)\n",
    );
    setup.unit(
        "beat.service",
        &format!(
            "[Service]\nType = \"notify\"\nWatchdogSec = \"1s\"\nRestart = \"on-failure\"\nRestartSec = \"10ms\"\nTimeoutStopSec = \"500ms\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
            program.display()
        ),
    );
    let mut manager = setup.start();
    manager.until_property("beat", "ActiveState", "active");
    let pid = manager.main_pid("beat");
    kill("STOP", pid);
    manager.until("the hung agent is not replaced", |m| {
        !is_alive(pid) && m.main_pid("beat") != pid && m.property("beat", "ActiveState") == "active"
    });
    assert_eq!(manager.property("beat", "NRestarts"), "1");
    manager.wait_for_log("Failed with result 'watchdog'", "the reason is not told");
}

#[test]
fn a_crash_loop_ends_at_the_start_limit_and_on_failure_runs_once() {
    let setup = Setup::new("limit");
    let note = setup.path("note");
    setup.unit(
        "bad.service",
        "[Unit]\nStartLimitBurst = 3\nStartLimitIntervalSec = \"1min\"\nOnFailure = [\"note.service\"]\n[Service]\nExecStart = [\"/bin/false\"]\nRestart = \"always\"\nRestartSec = \"10ms\"\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    setup.unit(
        "note.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"echo $MONITOR_UNIT $MONITOR_SERVICE_RESULT >> {}\"]\n",
            note.display()
        ),
    );
    let mut manager = setup.start();
    manager.until_property("bad", "Result", "start-limit-hit");
    manager.until("the note is not written", |_| note.exists());
    manager.ok(&["reset-failed", "bad"]);
    assert_eq!(manager.property("bad", "ActiveState"), "inactive");
    assert_eq!(fs::read_to_string(&note).unwrap().lines().count(), 1);
}

#[test]
fn timers_run_what_they_are_for_and_bound_it() {
    let setup = Setup::new("timers");
    let runs = setup.path("runs");
    setup.unit(
        "tick.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"echo run >> {}\"]\n[Timer]\nOnActiveSec = \"100ms\"\nOnUnitInactiveSec = \"100ms\"\n[Install]\nWantedBy = [\"timers.target\"]\n",
            runs.display()
        ),
    );
    setup.unit(
        "hang.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nRuntimeMaxSec = \"300ms\"\n[Timer]\nOnActiveSec = \"10ms\"\n[Install]\nWantedBy = [\"timers.target\"]\n",
    );
    let mut manager = setup.start();
    let count = || fs::read_to_string(&runs).unwrap_or_default().lines().count();
    manager.ok(&["start", "timers.target"]);
    manager.until("the timer does not repeat", |_| count() >= 3);
    manager.until_property("hang", "Result", "timeout");
    let timers = manager.ok(&["list-timers"]);
    assert!(timers.contains("tick.timer") && timers.contains("tick.service"), "{timers}");
}

#[test]
fn a_reload_of_the_units_takes_in_what_is_new_and_leaves_the_rest_alone() {
    let setup = Setup::new("reload");
    let unit =
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n";
    setup.unit("old.service", unit);
    let units = setup.path("units");
    let mut manager = setup.start();
    let pid = manager.main_pid("old");
    common::write(&units.join("new.service.toml"), unit);
    common::write(&units.join("broken.service.toml"), "[Service]\nExecStrat = [\"/bin/true\"]\n");
    let output = manager.ctl(&["daemon-reload"]);
    assert!(text(&output).contains("ExecStrat") && text(&output).contains("ExecStart"), "{}", text(&output));
    manager.ok(&["start", "new"]);
    assert_eq!(manager.main_pid("old"), pid);
    let broken = manager.ctl(&["start", "broken"]);
    assert!(!broken.status.success() && text(&broken).contains("broken.service"), "{}", text(&broken));
}

#[test]
fn the_environment_is_clean_and_nothing_is_inherited() {
    let setup =
        Setup::new("environment").wrapper(&["env", "LEAK=1", "NOTIFY_SOCKET=/nowhere", "LISTEN_FDS=3"]);
    let out = setup.path("out");
    setup.unit(
        "env.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nEnvironment = {{ MINE = \"a b\" }}\nExecStart = [\"/bin/sh\", \"-c\", \"env > {0}; ls /proc/self/fd | wc -l >> {0}; grep -E 'SigBlk|SigIgn' /proc/self/status >> {0}\"]\n",
            out.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "env"]);
    let seen = fs::read_to_string(&out).unwrap();
    assert!(seen.contains("MINE=a b\n") && seen.contains("INVOCATION_ID="), "{seen}");
    for leak in ["LEAK", "NOTIFY_SOCKET", "LISTEN_FDS"] {
        assert!(!seen.contains(leak), "{seen}");
    }
    // SIGPIPE alone is ignored, as IgnoreSIGPIPE says where nothing else is written.
    for mask in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000001000"] {
        assert!(seen.contains(mask), "{seen}");
    }
}

#[test]
fn a_second_manager_on_the_same_folder_is_refused() {
    let setup = Setup::new("second");
    let folder = setup.path("run");
    let mut manager = setup.start();
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_agentd"))
        .args(["--trust", "off", "--runtime-dir"])
        .arg(&folder)
        .args(["--state-dir", "/nonexistent/state", "--log-dir", "/nonexistent/log"])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains(&format!("pid {}", manager.pid())), "{}", text(&second));
    manager.ok(&["status"]);
}

#[test]
fn the_exit_code_is_the_one_asked_for_and_agents_are_stopped_first() {
    let setup = Setup::new("exit");
    setup.unit(
        "stay.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    let mut manager = setup.start();
    let pid = manager.main_pid("stay");
    manager.ok(&["exit", "7"]);
    assert_eq!(manager.wait().code(), Some(7));
    assert!(!is_alive(pid));
}

/// The kernel tells of many deaths by one signal, and a turn of the loop reaps only so many.
#[test]
fn a_flood_of_orphans_is_reaped_to_the_last() {
    let setup = Setup::new("flood");
    let done = setup.path("done");
    let program = setup.file(
        "flood.py",
        &format!(
            "#!/usr/bin/python3\nimport os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\n\
             middle = os.fork()\nif middle == 0:\n    for _ in range(4500):\n        if os.fork() == 0:\n            os._exit(0)\n    os._exit(0)\n\
             os.waitpid(middle, 0)\nopen({:?}, 'w').close()\nos.kill(os.getppid(), signal.SIGCONT)\nsignal.pause()\n",
            done.display().to_string()
        ),
    );
    setup.unit("flood.service", &format!("[Service]\nExecStart = [\"{}\"]\n", program.display()));
    let mut manager = setup.start();
    let pid = manager.pid();
    manager.ok(&["--no-block", "start", "flood"]);
    manager.until("the orphans are not made", |_| done.exists());
    let left = |_: &mut Manager| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.split_whitespace().count() == 1
    };
    manager.until("orphans are left", left);
}

/// Sends a signal by kill(1).
fn kill(signal: &str, pid: u32) {
    assert!(pid > 1, "there is no process to signal");
    let status = std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_frozen_agent_stands_still_and_a_stop_still_takes_it_down() {
    let setup = Setup::new("frozen");
    let steps = setup.path("steps");
    setup.unit(
        "walk.service",
        &format!(
            "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"while :; do echo x >> {0}; sleep 0.01; done\"]\nTimeoutStopSec = \"20s\"\n",
            steps.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "walk"]);
    let taken = || fs::metadata(&steps).map_or(0, |meta| meta.len());
    manager.until("it does not walk", |_| taken() > 5);
    manager.ok(&["freeze", "walk"]);
    let status = manager.ok(&["status", "walk"]);
    assert!(status.contains("active (running) (frozen)"), "{status}");
    manager.until("it goes on", |_| {
        let before = taken();
        std::thread::sleep(std::time::Duration::from_millis(200));
        taken() == before
    });
    let before = taken();
    manager.ok(&["thaw", "walk"]);
    assert_eq!(manager.property("walk", "FreezerState"), "running");
    manager.until("it does not go on", |_| taken() > before);

    manager.ok(&["freeze", "walk"]);
    manager.ok(&["stop", "walk"]);
    assert_eq!(manager.property("walk", "Result"), "success", "it could act on SIGTERM");
    let again = manager.ctl(&["freeze", "walk"]);
    assert_eq!(again.status.code(), Some(3), "{}", text(&again));
}
