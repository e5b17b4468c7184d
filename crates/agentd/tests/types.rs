//! Services of Type forking, idle and notify-reload, with real daemons under agentd as a subreaper.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Manager, Setup, is_alive, text};

/// A program that leaves a daemon behind: `{fork}` is what the daemon does before it sleeps.
fn daemon(setup: &Setup, fork: &str) -> String {
    let pid_file = setup.path("daemon.pid");
    let text = format!(
        "import os, signal, sys, time\nPID = {:?}\ndef write(path, text):\n    with open(path, 'w') as f:\n        f.write(text)\n\
         if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        {}\n        while True:\n            time.sleep(1000)\n    os._exit(0)\nos.wait()\n",
        pid_file.display().to_string(),
        fork.replace('\n', "\n        ")
    );
    setup.file("daemon.py", &text).display().to_string()
}

fn forking(setup: &Setup, program: &str, more: &str) {
    setup.unit(
        "d.service",
        &format!(
            "[Service]\nType = \"forking\"\nExecStart = [\"/usr/bin/python3\", \"{program}\"]\nTimeoutStartSec = \"20s\"\n{more}\n"
        ),
    );
}

fn pid_file_key(setup: &Setup) -> String {
    format!("PIDFile = \"{}\"", setup.path("daemon.pid").display())
}

fn kill(signal: &str, pid: u32) {
    assert!(
        std::process::Command::new("kill")
            .args([&format!("-{signal}"), &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn pid_in(manager: &Manager, name: &str) -> u32 {
    fs::read_to_string(manager.path(name)).unwrap_or_default().trim().parse().unwrap_or(0)
}

#[test]
fn b010_a_late_pid_file_that_is_empty_at_first_makes_the_daemon_the_main_process() {
    let setup = Setup::new("late-pid");
    let late = "time.sleep(0.3)\nf = open(PID, 'w')\ntime.sleep(0.3)\nf.write(str(os.getpid()))\nf.flush()";
    let program = daemon(&setup, late);
    forking(&setup, &program, &pid_file_key(&setup));
    let mut manager = setup.start();
    let began = Instant::now();
    manager.ok(&["start", "d"]);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(10), "{took:?}");
    let main = manager.main_pid("d");
    assert_eq!(
        (main, manager.property("d", "SubState").as_str()),
        (pid_in(&manager, "daemon.pid"), "running")
    );
    manager.ok(&["stop", "d"]);
    assert!(!is_alive(main));
    assert!(!manager.path("daemon.pid").exists(), "the PID file is left over");
    assert_eq!(manager.property("d", "Result"), "success");
}

#[test]
fn b010_a_daemon_that_dies_before_it_writes_its_pid_file_fails_at_once() {
    let setup = Setup::new("no-pid");
    let program = daemon(&setup, "time.sleep(0.2)\nos._exit(0)");
    forking(&setup, &program, &pid_file_key(&setup));
    let manager = setup.start();
    let began = Instant::now();
    let output = manager.ctl(&["start", "d"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(began.elapsed() < Duration::from_secs(10), "it was waited for");
    assert_eq!(manager.property("d", "Result"), "protocol");
}

#[test]
fn b008_a_number_that_is_not_the_services_own_is_never_taken_and_never_signalled() {
    let setup = Setup::new("foreign-pid");
    let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    for (n, word) in
        [victim.id().to_string(), "1".into(), "0".into(), "-1".into(), " 42\\n43".into()].iter().enumerate()
    {
        let program = setup.file(
            &format!("d{n}.py"),
            &format!(
                "import os, time\nif os.fork() == 0:\n    os.setsid()\n    open('{0}', 'w').write('{word}\\n')\n    time.sleep(1000)\ntime.sleep(0.05)\n",
                setup.path(&format!("d{n}.pid")).display()
            ),
        );
        setup.unit(
            &format!("d{n}.service"),
            &format!(
                "[Service]\nType = \"forking\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\nTimeoutStartSec = \"1s\"\nPIDFile = \"{}\"\n",
                program.display(),
                setup.path(&format!("d{n}.pid")).display()
            ),
        );
    }
    let manager = setup.start();
    for n in 0..5 {
        let output = manager.ctl(&["start", &format!("d{n}")]);
        assert_eq!(output.status.code(), Some(1), "{n}: {}", text(&output));
        assert_eq!(manager.property(&format!("d{n}"), "Result"), "timeout", "{n}");
        let status = text(&manager.ctl(&["status", &format!("d{n}")]));
        assert!(status.contains("PIDFile"), "{n}: {status}");
    }
    assert!(is_alive(victim.id()), "a stranger's process was killed");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// As PostgreSQL and dnsmasq of Debian's do it: the unit has no User, and the daemon writes the file once it has left root.
#[test]
fn a_pid_file_may_belong_to_the_user_that_the_daemon_has_become_and_to_no_other() {
    if !common::cases::is_root() {
        return;
    }
    for (name, user, result) in [("own", 64_125, "success"), ("other", 64_126, "timeout")] {
        let setup = Setup::new(&format!("pid-{name}"));
        fs::create_dir(setup.path("run-d")).unwrap();
        let path = setup.path("run-d/daemon.pid").display().to_string();
        let becomes = format!(
            "os.chown({:?}, 64125, 64125)\nwrite({path:?}, str(os.getpid()))\nos.chown({path:?}, {user}, {user})\nos.setgid(64125)\nos.setuid(64125)",
            setup.path("run-d").display().to_string()
        );
        let program = daemon(&setup, &becomes);
        setup.unit(
            "d.service",
            &format!(
                "[Service]\nType = \"forking\"\nExecStart = [\"/usr/bin/python3\", \"{program}\"]\nTimeoutStartSec = \"2s\"\nPIDFile = \"{path}\"\n"
            ),
        );
        let mut manager = setup.start();
        let began = manager.ctl(&["start", "d"]).status.success();
        assert_eq!(
            (began, manager.property("d", "Result").as_str()),
            (result == "success", result),
            "{name}"
        );
        if began {
            manager.ok(&["stop", "d"]);
            assert!(!std::path::Path::new(&path).exists(), "the PID file is left over");
        } else {
            let status = text(&manager.ctl(&["status", "d"]));
            assert!(status.contains("it belongs to user 64126"), "{status}");
        }
    }
}

#[test]
fn a_daemon_without_a_pid_file_is_found_and_its_end_is_seen() {
    let setup = Setup::new("guess");
    let program = daemon(&setup, "write(PID, str(os.getpid()))");
    forking(&setup, &program, "Restart = \"on-failure\"\nRestartSec = \"10ms\"");
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let first = manager.main_pid("d");
    assert_ne!(first, 0, "no main process was found");
    kill("KILL", first);
    manager.until("it does not come back", |m| !matches!(m.main_pid("d"), 0) && m.main_pid("d") != first);
    manager.wait_for_log("Main process exited, code=killed, signal=SIGKILL", "the end is not told");
}

#[test]
fn b011_the_end_of_a_main_process_that_is_no_child_of_ours_is_seen() {
    let setup = Setup::new("grandchild");
    // The main process is the child of a process that lives on and reaps it.
    let nested = "child = os.fork()\nif child == 0:\n    write(PID, str(os.getpid()))\n    time.sleep(1000)\nos.waitpid(child, 0)\ntime.sleep(1000)";
    let program = daemon(&setup, nested);
    let keys = format!("{}\nRestart = \"on-failure\"\nRestartSec = \"10ms\"", pid_file_key(&setup));
    forking(&setup, &program, &keys);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let first = manager.main_pid("d");
    assert_eq!(first, pid_in(&manager, "daemon.pid"));
    kill("KILL", first);
    manager.until("its end is not seen", |m| !matches!(m.main_pid("d"), 0) && m.main_pid("d") != first);
    manager.wait_for_log("Main process exited, code=unknown", "the end is not told");
}

#[test]
fn a_daemon_that_hands_over_to_another_stays_up() {
    let setup = Setup::new("handover");
    let hands_over = "write(PID, str(os.getpid()))\ndef over(*_):\n    if os.fork() == 0:\n        write(PID, str(os.getpid()))\n        os.kill(os.getppid(), 9)\n        while True:\n            time.sleep(1000)\nsignal.signal(signal.SIGUSR2, over)";
    let program = daemon(&setup, hands_over);
    forking(&setup, &program, &pid_file_key(&setup));
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let first = manager.main_pid("d");
    kill("USR2", first);
    manager
        .until("the new one is not taken up", |m| !matches!(m.main_pid("d"), 0) && m.main_pid("d") != first);
    assert_eq!(manager.property("d", "SubState"), "running");
    assert_eq!(manager.property("d", "NRestarts"), "0");
}

#[test]
fn an_idle_service_begins_when_the_others_are_done() {
    let setup = Setup::new("idle");
    let order = setup.path("order");
    let append = |word: &str| format!("echo {word} >> {}", order.display());
    setup.unit(
        "slow.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"sleep 0.7; {}\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
            append("slow")
        ),
    );
    setup.unit(
        "idle.service",
        &format!(
            "[Service]\nType = \"idle\"\nExecStart = [\"/bin/sh\", \"-c\", \"{}; exec sleep 1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
            append("idle")
        ),
    );
    let mut manager = setup.start();
    manager.until("idle does not run", |_| fs::read_to_string(&order).unwrap_or_default().contains("idle"));
    assert_eq!(fs::read_to_string(&order).unwrap(), "slow\nidle\n");
}

#[test]
fn a_reload_by_signal_waits_until_the_service_is_done_and_one_that_would_kill_it_is_refused() {
    let setup = Setup::new("notify-reload");
    let order = setup.path("order");
    let program = |handler: &str| {
        format!(
            "import os, signal, socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['NOTIFY_SOCKET'])\n\
             def reload(*_):\n    s.send(b'RELOADING=1\\nMONOTONIC_USEC=%d' % (time.monotonic_ns() // 1000))\n    time.sleep(0.3)\n    open('{}', 'a').write('reloaded\\n')\n    s.send(b'READY=1')\n{handler}\n\
             s.send(b'READY=1')\nwhile True:\n    time.sleep(1000)\n",
            order.display()
        )
    };
    for (name, handler) in [("good", "signal.signal(signal.SIGHUP, reload)"), ("deaf", "")] {
        let file = setup.file(&format!("{name}.py"), &program(handler));
        setup.unit(
            &format!("{name}.service"),
            &format!(
                "[Service]\nType = \"notify-reload\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n",
                file.display()
            ),
        );
    }
    let mut manager = setup.start();
    manager.until_property("good", "SubState", "running");
    manager.until_property("deaf", "SubState", "running");
    manager.ok(&["reload", "good"]);
    assert_eq!(fs::read_to_string(&order).unwrap(), "reloaded\n", "the reload was not waited for");
    assert_eq!(manager.property("good", "SubState"), "running");
    let main = manager.main_pid("deaf");
    let output = manager.ctl(&["reload", "deaf"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(is_alive(main), "the signal ended it");
    manager.wait_for_log("does not handle SIGHUP", "the reason is not told");
}
