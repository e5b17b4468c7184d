//! Agents outlive their manager, and the next one goes on with them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::Command;

use common::cases::is_root;
use common::{Manager, Setup, install, is_alive};

/// Says a number a hundred times a second, for ever.
const COUNTER: &str = "#!/usr/bin/python3\nimport time\nn = 0\nwhile True:\n    print(n, flush=True)\n    n += 1\n    time.sleep(0.01)\n";

fn counter(setup: &Setup, more: &str) {
    let program = setup.file("counter.py", COUNTER);
    let text = format!(
        "[Service]\nExecStart = [\"{}\"]\n{more}\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
        program.display()
    );
    setup.unit("counter.service", &text);
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap().success());
}

/// The numbers that the log has, in its order.
fn numbers(manager: &Manager) -> Vec<u64> {
    let shown = manager.ctl(&["logs", "-n", "100000", "counter"]);
    String::from_utf8_lossy(&shown.stdout)
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect()
}

fn until_it_says(manager: &mut Manager, number: u64) {
    manager.until("the agent does not go on", |m| numbers(m).last().is_some_and(|last| *last >= number));
}

fn assert_nothing_is_missing(manager: &Manager) {
    let numbers = numbers(manager);
    let gaps: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
    assert!(gaps.is_empty() && numbers.first() == Some(&0), "{gaps:?} of {} lines", numbers.len());
}

#[test]
fn the_next_manager_goes_on_with_the_agents_of_one_that_was_killed() {
    let setup = Setup::new("takeover-killed");
    counter(&setup, "Restart = \"always\"\nRestartSec = 0");
    setup.unit("byhand.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    setup.unit(
        "twice.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nRestart = \"always\"\nRestartSec = 0\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "byhand", "twice"]);
    let first = manager.main_pid("twice");
    kill("KILL", first);
    manager.until("it does not come back", |m| ![0, first].contains(&m.main_pid("twice")));
    let before = ["counter", "byhand", "twice"].map(|unit| {
        (manager.main_pid(unit), manager.property(unit, "InvocationID"), manager.property(unit, "NRestarts"))
    });
    until_it_says(&mut manager, 20);
    kill("KILL", manager.pid());
    manager.wait();
    let mut second = manager.again();
    let after = ["counter", "byhand", "twice"].map(|unit| {
        (second.main_pid(unit), second.property(unit, "InvocationID"), second.property(unit, "NRestarts"))
    });
    assert_eq!(before, after, "the same processes, runs and counts\n{}", second.everything());
    let said = numbers(&second).last().copied().unwrap_or_default();
    until_it_says(&mut second, said + 50);
    // It dies, and although it is no child of this manager its end is seen, and it comes back.
    let old = second.main_pid("counter");
    kill("KILL", old);
    second.until("it does not come back", |m| ![0, old].contains(&m.main_pid("counter")));
    second.wait_for_log("code=unknown", "the end is not told");
    // A stop reaches all of it.
    second.ok(&["stop", "byhand", "twice"]);
    assert!(!is_alive(before[1].0) && !is_alive(before[2].0));
}

#[test]
fn what_died_while_no_manager_was_there_comes_back() {
    let setup = Setup::new("takeover-died");
    counter(&setup, "Restart = \"on-failure\"\nRestartSec = 0");
    let mut manager = setup.start();
    let old = manager.main_pid("counter");
    kill("KILL", manager.pid());
    manager.wait();
    kill("KILL", old);
    let mut second = manager.again();
    second.until("it does not come back", |m| ![0, old].contains(&m.main_pid("counter")));
    assert_eq!(second.property("counter", "NRestarts"), "1");
}

#[test]
fn what_a_person_has_stopped_stays_down_under_the_next_manager_while_anything_lives_on() {
    let setup = Setup::new("takeover-stopped");
    counter(&setup, "");
    setup.unit("byhand.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "byhand"]);
    manager.ok(&["stop", "counter"]);
    let kill_manager = |mut manager: Manager, also: Option<u32>| {
        kill("KILL", manager.pid());
        manager.wait();
        also.into_iter().for_each(|pid| kill("KILL", pid));
        manager.again()
    };
    let second = kill_manager(manager, None);
    assert_eq!(second.property("counter", "ActiveState"), "inactive");
    assert_eq!(second.property("default.target", "ActiveState"), "active");
    let byhand = second.main_pid("byhand");
    assert!(is_alive(byhand));
    // As with a container in which nothing is left.
    let mut third = kill_manager(second, Some(byhand));
    third.until_property("counter", "ActiveState", "active");
}

#[test]
fn a_start_whose_manager_was_killed_goes_on_with_its_further_commands() {
    let setup = Setup::new("takeover-post");
    let (began, told) = (setup.path("began"), setup.path("told"));
    setup.unit(
        "slow.service",
        &format!(
            "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nExecStartPost = [[\"/bin/sh\", \"-c\", \"echo >> {0}; exec sleep 1000\"], [\"/bin/sh\", \"-c\", \"echo $$MAINPID > {1}\"]]\n",
            began.display(),
            told.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "--no-block", "slow"]);
    manager.until("nothing is begun", |_| began.exists());
    let main = manager.main_pid("slow");
    kill("KILL", manager.pid());
    manager.wait();
    let mut second = manager.again();
    second.until_property("slow", "SubState", "running");
    assert_eq!(second.main_pid("slow"), main);
    assert_eq!(fs::read_to_string(&told).unwrap(), format!("{main}\n"));
    assert_eq!(fs::read_to_string(&began).unwrap(), "\n", "what was begun is not begun again");
}

#[test]
fn an_agent_whose_unit_is_gone_is_ended() {
    let setup = Setup::new("takeover-gone");
    counter(&setup, "");
    let file = setup.path("units/counter.service.toml");
    let mut manager = setup.start();
    let old = manager.main_pid("counter");
    kill("KILL", manager.pid());
    manager.wait();
    fs::remove_file(file).unwrap();
    let mut second = manager.again();
    second.wait_for_log("is no loaded unit now; it is ended", "it is not told");
    second.until("it lives on", |_| !is_alive(old));
}

#[test]
fn what_kill_mode_left_alive_lives_on_under_the_next_manager() {
    let setup = Setup::new("takeover-left");
    let file = setup.path("left");
    let text = format!(
        "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"sleep 1000 & echo $! >{}; exec sleep 1000\"]\nKillMode = \"process\"\n",
        file.display()
    );
    setup.unit("a.service", &text);
    setup.unit("gone.service", &text.replace("/left", "/left-too"));
    let mut manager = setup.start();
    manager.ok(&["start", "a", "gone"]);
    let pid = |manager: &Manager, name: &str| {
        let text = fs::read_to_string(manager.path(name)).unwrap_or_default();
        text.trim().parse::<u32>().unwrap_or(0)
    };
    manager.until("they do not run", |m| pid(m, "left") != 0 && pid(m, "left-too") != 0);
    let (left, without_file) = (pid(&manager, "left"), pid(&manager, "left-too"));
    manager.ok(&["stop", "a", "gone"]);
    fs::remove_file(manager.path("units/gone.service.toml")).unwrap();
    for _ in 0..2 {
        manager.ok(&["daemon-reexec"]);
        assert!(is_alive(left) && is_alive(without_file));
    }
    kill("KILL", manager.pid());
    manager.wait();
    let mut manager = manager.again();
    assert!(is_alive(left));
    manager.ok(&["start", "a"]);
    assert!(!is_alive(left), "two lives do not overlap");
    manager.ok(&["stop", "a"]);
}

#[test]
fn a_log_is_followed_over_re_executions() {
    let setup = Setup::new("takeover-follow");
    counter(&setup, "");
    let mut manager = setup.start();
    until_it_says(&mut manager, 5);
    let file = fs::File::create(manager.path("followed")).unwrap();
    let mut follower = Command::new(common::agentctl())
        .arg("--runtime-dir")
        .arg(manager.path("run"))
        .args(["logs", "-f", "-n", "1000", "counter"])
        .stdout(file)
        .spawn()
        .unwrap();
    let followed = |manager: &Manager| -> Vec<u64> {
        let text = fs::read_to_string(manager.path("followed")).unwrap();
        text.lines().filter_map(|line| line.rsplit_once(" counter: ")?.1.parse().ok()).collect()
    };
    for _ in 0..3 {
        let said = followed(&manager).last().copied().unwrap_or(0);
        manager.until("it does not follow", |m| followed(m).last().is_some_and(|last| *last > said + 20));
        manager.ok(&["daemon-reexec"]);
    }
    let said = followed(&manager).last().copied().unwrap_or(0);
    manager.until("it does not go on", |m| followed(m).last().is_some_and(|last| *last > said + 20));
    let numbers = followed(&manager);
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
    manager.ok(&["stop", "counter"]);
    kill("KILL", manager.pid());
    assert!(!follower.wait().unwrap().success(), "there is nobody to follow");
}

/// What runs goes on with the definition that it lives by, as after a reload, whatever has become of its file.
#[test]
fn what_runs_outlives_a_reexecution_though_its_file_is_masked_broken_gone_or_another() {
    let setup = Setup::new("takeover-files");
    let out = setup.path("out").display().to_string();
    for name in ["masked", "broken", "gone", "other"] {
        let text = format!(
            "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nExecStop = [\"/bin/echo\", \"%n stops\"]\nStandardOutput = \"append:{out}\"\n"
        );
        setup.unit(&format!("{name}.service"), &text);
    }
    setup.unit("often.timer", "[Timer]\nOnActiveSec = \"1h\"\nUnit = \"other.service\"\n");
    let mut manager = setup.start();
    let names = ["masked", "broken", "gone", "other"];
    manager.ok(&[&["start"], &names[..], &["often.timer"]].concat());
    let before = names.map(|name| manager.main_pid(name));
    let file = |name: &str| manager.path(&format!("units/{name}.toml"));
    fs::write(file("masked.service"), "").unwrap();
    fs::write(file("broken.service"), "[Service\n").unwrap();
    fs::remove_file(file("gone.service")).unwrap();
    fs::write(file("other.service"), "[Service]\nExecStart = [\"/bin/sleep\", \"2000\"]\n").unwrap();
    let more = "[Timer]\nOnActiveSec = \"1h\"\nOnCalendar = \"hourly\"\nUnit = \"other.service\"\n";
    fs::write(file("often.timer"), more).unwrap();
    for _ in 0..2 {
        manager.ok(&["daemon-reexec"]);
        assert_eq!(names.map(|name| manager.main_pid(name)), before);
    }
    assert_eq!(manager.property("often.timer", "SubState"), "waiting");
    let diff = manager.ctl(&["diff", "other"]);
    assert_eq!(diff.status.code(), Some(1), "{}", common::text(&diff));
    manager.ok(&[&["stop"], &names[..]].concat());
    let said = fs::read_to_string(&out).unwrap();
    let mut said: Vec<&str> = said.lines().collect();
    said.sort_unstable();
    assert_eq!(
        said,
        ["broken.service", "gone.service", "masked.service", "other.service"]
            .map(|name| format!("{name} stops"))
    );
    manager.ok(&["start", "other"]);
    let words = fs::read_to_string(format!("/proc/{}/cmdline", manager.main_pid("other"))).unwrap();
    assert_eq!(words, "/bin/sleep\x002000\x00");
}

#[test]
fn a_folder_that_is_kept_for_a_restart_goes_when_that_is_called_off_under_the_next_manager() {
    if !is_root() {
        return;
    }
    for is_killed in [false, true] {
        let name = format!("agentd-test-kept-{}-{is_killed}", std::process::id());
        let setup = Setup::new(&format!("takeover-kept-{is_killed}"));
        let keys = "Restart = \"always\"\nRestartSec = \"1h\"\nRuntimeDirectoryPreserve = \"restart\"";
        setup.unit(
            "kept.service",
            &format!("[Service]\nExecStart = [\"/bin/false\"]\n{keys}\nRuntimeDirectory = \"{name}\"\n"),
        );
        let mut manager = setup.start();
        manager.ok(&["start", "kept"]);
        manager.until_property("kept", "SubState", "auto-restart");
        let folder = std::path::Path::new("/run").join(&name);
        assert!(folder.is_dir());
        if is_killed {
            kill("KILL", manager.pid());
            manager.wait();
            manager = manager.again();
        } else {
            manager.ok(&["daemon-reexec"]);
        }
        assert_eq!(manager.property("kept", "SubState"), "auto-restart");
        assert!(folder.is_dir());
        manager.ok(&["stop", "kept"]);
        manager.until("it stays", |_| !folder.exists());
    }
}

/// A user of its own is the run's, whatever becomes of the manager: later commands never run as root.
#[test]
fn a_dynamic_user_is_the_same_for_all_commands_of_a_run_under_the_next_manager() {
    if !is_root() {
        return;
    }
    for is_killed in [false, true] {
        let setup = Setup::new(&format!("takeover-dynamic-{is_killed}"));
        let out = setup.path("out").display().to_string();
        let say = |what: &str| format!("[\"/bin/sh\", \"-c\", \"echo {what} %n $$(id -u)\"]");
        let unit = |start: &str, more: &str| {
            format!(
                "[Service]\nDynamicUser = true\nStandardOutput = \"append:{out}\"\nExecStart = {start}\n{more}\nExecReload = {}\n\
                 ExecStop = {}\nExecStopPost = {}\n",
                say("reload"),
                say("stop"),
                say("post")
            )
        };
        // Without a process, with one of root's, and with one that dies while there is no manager.
        setup.unit("exited.service", &unit("[\"/bin/true\"]", "Type = \"oneshot\"\nRemainAfterExit = true"));
        setup.unit("root.service", &unit("[\"+/bin/sleep\", \"1000\"]", ""));
        setup.unit("dies.service", &unit("[\"/bin/sleep\", \"1000\"]", ""));
        let mut manager = setup.start();
        manager.ok(&["start", "exited", "root", "dies"]);
        let dies = manager.main_pid("dies");
        if is_killed {
            kill("KILL", manager.pid());
            manager.wait();
            kill("KILL", dies);
            manager = manager.again();
        } else {
            manager.ok(&["daemon-reexec"]);
            kill("KILL", dies);
        }
        manager.until_property("dies", "SubState", "failed");
        manager.ok(&["reload", "exited", "root"]);
        manager.ok(&["stop", "exited", "root"]);
        let users = fs::read_to_string(&out).unwrap();
        let numbers: Vec<u32> =
            users.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(numbers.len(), 8, "{users}");
        assert!(numbers.iter().all(|uid| (61_184..=65_519).contains(uid)), "{users}");
        let mut different = numbers;
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 3, "{users}");
    }
}

#[test]
fn a_manager_is_executed_again_and_no_agent_and_no_client_notices() {
    let setup = Setup::new("takeover-reexec");
    counter(&setup, "Restart = \"on-failure\"\nRestartSec = 0");
    setup.unit(
        "stopped.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    setup.unit(
        "done.service",
        "[Service]\nType = \"oneshot\"\nRemainAfterExit = true\nExecStart = [\"/bin/echo\", \"once\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    setup.unit(
        "bad.service",
        "[Service]\nExecStart = [\"/bin/false\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    setup.unit("tick.timer", "[Timer]\nOnActiveSec = \"1h\"\nUnit = \"done.service\"\n[Install]\nWantedBy = [\"multi-user.target\"]\n");
    let mut manager = setup.start();
    manager.until_property("bad", "ActiveState", "failed");
    manager.ok(&["stop", "stopped"]);
    let shown = |m: &Manager| {
        let units = ["counter", "stopped", "done", "bad", "tick.timer", "multi-user.target"];
        units.map(|unit| {
            let mut names = vec!["ActiveState", "SubState", "Result", "MainPID", "NextElapseUSecMonotonic"];
            // Of a unit that was stopped nothing is kept, not even what its last run was.
            names.extend(Some("InvocationID").filter(|_| unit != "stopped"));
            (
                unit,
                names
                    .into_iter()
                    .map(|name| {
                        String::from_utf8_lossy(&m.ctl(&["show", "-p", name, unit]).stdout).into_owned()
                    })
                    .collect::<Vec<_>>(),
            )
        })
    };
    let before = shown(&manager);
    let pid = manager.pid();
    for round in 0..10 {
        manager.ok(&["daemon-reexec"]);
        // The very next call waits for the new manager; it is not refused.
        assert_eq!(shown(&manager), before, "round {round}\n{}", manager.everything());
    }
    assert!(is_alive(pid), "it is the same process");
    let said = numbers(&manager).last().copied().unwrap();
    until_it_says(&mut manager, said + 20);
    assert_nothing_is_missing(&manager);
    let log = manager.ctl(&["logs", "-n", "100", "done"]);
    let log = String::from_utf8_lossy(&log.stdout).lines().filter(|line| line.ends_with(" once")).count();
    assert_eq!(log, 1, "what is done is not done again");
    // Its children are still its children: how they end is known to it.
    let old = manager.main_pid("counter");
    kill("SEGV", old);
    manager.wait_for_log("code=killed, signal=SIGSEGV", "the end is not told");
    manager.until("it does not come back", |m| ![0, old].contains(&m.main_pid("counter")));
    manager.ok(&["start", "stopped"]);
    assert_eq!(manager.property("stopped", "ActiveState"), "active");
}

#[test]
fn a_program_that_cannot_be_executed_leaves_the_manager_as_it_is() {
    let setup = Setup::new("takeover-broken");
    counter(&setup, "");
    let program = setup.path("agentd");
    install(env!("CARGO_BIN_EXE_agentd").as_ref(), &program);
    let mut manager = setup.program(&program).start();
    let agent = manager.main_pid("counter");
    until_it_says(&mut manager, 1);
    fs::remove_file(&program).unwrap();
    fs::write(&program, "no program").unwrap();
    manager.ok(&["daemon-reexec"]);
    manager.wait_for_log("the manager cannot be executed again; this one goes on", "it is not told");
    assert_eq!(manager.main_pid("counter"), agent);
    let said = numbers(&manager).last().copied().unwrap();
    until_it_says(&mut manager, said + 20);
    assert_nothing_is_missing(&manager);
}

/// A step a signal: the beginning of a line, its end, and the next one.
const HALVES: &str = "#!/usr/bin/python3\nimport signal, sys\nwanted = {signal.SIGUSR1}\nsignal.pthread_sigmask(signal.SIG_BLOCK, wanted)\nprint('ready', flush=True)\nfor part in ['<4>one ', 'line', '\\nnext\\n', 'last words']:\n    signal.sigwait(wanted)\n    sys.stdout.write(part)\n    sys.stdout.flush()\nsignal.sigwait(wanted)\n";

#[test]
fn a_line_is_whole_over_re_executions_and_a_rate_limit_goes_on() {
    let setup = Setup::new("takeover-lines");
    let program = setup.file("halves.py", HALVES);
    setup.unit("halves.service", &format!("[Service]\nExecStart = [\"{}\"]\n", program.display()));
    let program = setup.file("counter.py", COUNTER);
    let keys = "LogRateLimitBurst = 7\nLogRateLimitIntervalSec = \"1h\"";
    setup.unit("many.service", &format!("[Service]\nExecStart = [\"{}\"]\n{keys}\n", program.display()));
    let mut manager = setup.start();
    let said = |manager: &Manager, unit: &str| -> Vec<String> {
        let shown = manager.ctl(&["logs", "-n", "1000", unit]);
        let text = String::from_utf8_lossy(&shown.stdout);
        text.lines().filter_map(|line| Some(line.split_once(&format!(" {unit}: "))?.1.to_owned())).collect()
    };
    manager.ok(&["start", "halves", "many"]);
    manager.until("it does not begin", |m| said(m, "halves").contains(&"ready".to_owned()));
    for _ in 0..3 {
        kill("USR1", manager.main_pid("halves"));
        let asleep = format!("/proc/{}/syscall", manager.main_pid("halves"));
        // rt_sigtimedwait(2) again: the part is in the pipe.
        manager
            .until("it does not wait", |_| fs::read_to_string(&asleep).is_ok_and(|s| s.starts_with("128 ")));
        manager.ok(&["daemon-reexec"]);
    }
    manager.until("the line does not end", |m| said(m, "halves").contains(&"next".to_owned()));
    kill("USR1", manager.main_pid("halves"));
    kill("USR1", manager.main_pid("halves"));
    manager.until("it does not end", |m| m.main_pid("halves") == 0);
    let lines = said(&manager, "halves");
    let from = lines.iter().position(|line| line == "ready").unwrap();
    assert_eq!(lines[from + 1..from + 4], ["one line", "next", "last words"], "{lines:?}");
    let entries = manager.ok(&["logs", "-n", "1000", "-o", "json", "halves"]);
    let line = entries.lines().find(|line| line.contains("\"one line\"")).unwrap();
    assert!(line.contains("\"Priority\":4"), "{line}");
    manager.ok(&["stop", "many"]);
    let lines = said(&manager, "many");
    let numbers = lines.iter().filter(|line| line.parse::<u64>().is_ok()).count();
    assert_eq!(numbers, 7, "{lines:?}");
    let all = manager.ok(&["logs", "-n", "1000", "many"]);
    assert_eq!(
        all.matches("lines suppressed by the rate limit").count(),
        1,
        "one sentence at the end: {all}"
    );
}

/// What a manager that is killed in the middle of a start has begun is over before the next one begins anything.
#[test]
fn what_was_on_its_way_up_under_a_killed_manager_runs_once_and_leaves_nothing() {
    for has_cgroups in [true, false] {
        let name = format!("agentd-test-begun-{}-{has_cgroups}", std::process::id());
        let setup = Setup::new(&format!("takeover-begun-{has_cgroups}"));
        let setup = if has_cgroups { setup } else { setup.without_cgroups() };
        let pids = setup.path("pids");
        let line = format!("echo $$$$ >>{}; exec sleep 1000", pids.display());
        let keys = if is_root() {
            format!("PrivateTmp = true\nRuntimeDirectory = [\"{name}\"]\n")
        } else {
            String::new()
        };
        let text = |more: &str| {
            format!(
                "[Service]\nType = \"oneshot\"\nTimeoutStartSec = \"infinity\"\nExecStart = [\"/bin/sh\", \"-c\", \"{line}\"]\n{more}"
            )
        };
        setup.unit("again.service", &text(""));
        setup.unit("once.service", &text(&keys));
        let mut manager = setup.start();
        manager.ok(&["start", "--no-block", "again", "once"]);
        let begun = |manager: &Manager| -> Vec<u32> {
            let text = fs::read_to_string(manager.path("pids")).unwrap_or_default();
            text.lines().filter_map(|pid| pid.parse().ok()).collect()
        };
        manager.until("they do not begin", |m| begun(m).len() == 1 && m.main_pid("once") != 0);
        let old = [begun(&manager)[0], manager.main_pid("once")];
        let run = manager.property("once", "InvocationID");
        let temporary = [format!("/tmp/agentd-private-{run}"), format!("/run/{name}")];
        let are_there = |there: bool| temporary.iter().all(|path| fs::exists(path).unwrap() == there);
        assert!(are_there(true) || !is_root());
        kill("KILL", manager.pid());
        manager.wait();
        let mut manager = manager.again();
        manager.ok(&["start", "--no-block", "again"]);
        manager.until("it does not begin again", |m| begun(m).len() == 2);
        manager.until("the old ones live on", |_| old.iter().all(|pid| !is_alive(*pid)));
        manager.until("its folders stay", |_| are_there(false));
        assert_eq!(manager.property("once", "ActiveState"), "inactive");
        assert_eq!(begun(&manager).len(), 2);
    }
}
