//! Faults that supervisors have had with signals, exit codes and notifications, each as the scenario that shows it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::field::{python, read, service};
use common::{Setup, text};

#[test]
fn b037_the_time_for_a_stop_is_a_bound_and_no_pause() {
    let setup = Setup::new("b037");
    for name in ["a", "b"] {
        // Longer than anything here is waited for.
        service(&setup, name, "TimeoutStopSec=1h\nExecStart=/bin/sleep 1000");
    }
    let mut manager = setup.start();
    manager.ok(&["start", "a", "b"]);
    manager.ok(&["exit"]);
    assert_eq!(manager.wait().code(), Some(0));
}

#[test]
fn b043_an_exit_and_a_signal_of_one_number_are_told_apart() {
    let setup = Setup::new("b043");
    let ends = [
        ("nine", "exit 9", "exit-code", "exited", "9"),
        ("killed", "kill -KILL $$$$", "signal", "killed", "9"),
        ("fault", "kill -SEGV $$$$", "signal", "killed", "11"),
        ("most", "exit 255", "exit-code", "exited", "255"),
        ("wrapped", "exit $$((300 %% 256))", "exit-code", "exited", "44"),
    ];
    for (name, script, ..) in ends {
        service(&setup, name, &format!("LimitCORE=0\nExecStart=/bin/sh -c \"{script}\""));
    }
    let mut manager = setup.start();
    for (name, _, result, how, status) in ends {
        manager.ok(&["start", name]);
        manager.until_property(name, "ActiveState", "failed");
        assert_eq!(manager.property(name, "Result"), result, "{name}");
        assert_eq!(manager.property(name, "ExecMainStatus"), status, "{name}");
        let shown = text(&manager.ctl(&["status", name]));
        assert!(shown.contains(&format!("code={how}")), "{name}: {shown}");
    }
}

#[test]
fn b043_a_manager_that_ends_with_its_unit_folds_a_signal_as_a_shell_does() {
    for (script, code) in
        [("exit 9", 9), ("kill -KILL $$$$", 137), ("kill -SEGV $$$$", 139), ("exit 255", 255)]
    {
        let setup = Setup::new(&format!("b043-{code}"));
        let main = format!(
            "[Unit]\nFailureAction=exit\nSuccessAction=exit\n[Service]\nLimitCORE=0\nExecStart=/bin/sh -c \"{script}\"\n"
        );
        setup.file("units/main.service", &main);
        setup.unit("default.target", "[Unit]\n");
        let mut manager = setup.start();
        let _its_end_may_come_first = manager.ctl(&["start", "main"]);
        assert_eq!(manager.wait().code(), Some(code), "{script}");
    }
}

/// Writes down each signal that it gets.
const LISTENER: &str = "
log = open(FOLDER + '/heard', 'a', buffering=1)
for number in range(1, 65):
    try:
        signal.signal(number, lambda number, _: log.write(f'{number}\\n'))
    except (OSError, ValueError):
        pass
open(FOLDER + '/up', 'w').close()
while True:
    signal.pause()
";

#[test]
fn b049_each_signal_arrives_once_and_as_itself() {
    let setup = Setup::new("b049");
    let listener = python(&setup, "listener", LISTENER);
    service(&setup, "listener", &format!("TimeoutStopSec=300ms\nExecStart={listener}"));
    let mut manager = setup.start();
    manager.ok(&["start", "listener"]);
    manager.until("it does not come up", |m| m.path("up").exists());
    // Without those that nobody can catch, and those that the C library keeps for itself.
    let numbers: Vec<u32> = (1..65).filter(|number| ![9, 19, 32, 33].contains(number)).collect();
    let mut sent = String::new();
    for number in numbers {
        manager.ok(&["kill", "-s", &number.to_string(), "listener"]);
        sent.push_str(&format!("{number}\n"));
        manager.until(&format!("signal {number} does not arrive"), |m| read(m, "heard").len() >= sent.len());
        assert_eq!(read(&manager, "heard"), sent);
    }
    for word in ["0", "65", "TERM9", "SIGRTMIN+31", "-1"] {
        let refused = manager.ctl(&["kill", "-s", word, "listener"]);
        assert!(!refused.status.success(), "{word}: {}", text(&refused));
    }
    assert_eq!(read(&manager, "heard"), sent);
}

/// Runs a command on a terminal of its own, types what a file says, and ends as the command does.
const TERMINAL: &str = "
import os, pty, sys, time
folder = sys.argv[1]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.set_blocking(terminal, False)
while True:
    try:
        seen = os.read(terminal, 65536)
        sys.stderr.buffer.write(seen)
        sys.stderr.flush()
    except BlockingIOError:
        pass
    except OSError:
        pass
    try:
        keys = open(folder + '/keys', 'rb').read()
        os.unlink(folder + '/keys')
        os.write(terminal, keys)
    except FileNotFoundError:
        pass
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.01)
";

#[test]
fn b047_what_is_typed_at_the_terminal_of_the_manager_reaches_no_service() {
    let setup = Setup::new("b047");
    let driver = setup.file("terminal.py", TERMINAL).display().to_string();
    let folder = setup.path("typed");
    fs::create_dir_all(&folder).unwrap();
    let listener = python(&setup, "listener", LISTENER);
    service(&setup, "listener", &format!("TimeoutStopSec=300ms\nExecStart={listener}"));
    let words = ["/usr/bin/python3", &driver, &folder.display().to_string()];
    let mut manager = setup.wrapper(&words).start();
    manager.ok(&["start", "listener"]);
    manager.until("it does not come up", |m| m.path("up").exists());
    let press = |key: &[u8]| {
        fs::write(folder.join("next"), key).unwrap();
        fs::rename(folder.join("next"), folder.join("keys")).unwrap();
    };
    press(b"\x1a");
    manager.until("the key is not pressed", |_| !folder.join("keys").exists());
    // A service that stood still would not hear this.
    manager.ok(&["kill", "-s", "USR1", "listener"]);
    manager.until("the service stands still", |m| read(m, "heard") == "10\n");
    press(b"\x03");
    assert_eq!(manager.wait().code(), Some(0), "{}", manager.log.join("\n"));
    assert_eq!(read(&manager, "heard"), "10\n15\n18\n", "it got more than its stop sends");
}

/// Says that it is ready before it does anything else.
const READY: &str = "
def say(words):
    address = os.environ['NOTIFY_SOCKET']
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(words, address.replace('@', '\\0', 1))
say(b'READY=1')
";

#[test]
fn b068_the_first_words_of_many_services_at_once_are_heard() {
    let setup = Setup::new("b068");
    let ready = python(&setup, "ready", &format!("{READY}time.sleep(1000)\n"));
    service(&setup, "ready@", &format!("Type=notify\nTimeoutStartSec=20\nExecStart={ready}"));
    let mut manager = setup.start();
    let names: Vec<String> = (0..60).map(|number| format!("ready@{number}")).collect();
    let mut start = vec!["start"];
    start.extend(names.iter().map(String::as_str));
    manager.ok(&start);
    for name in &names {
        assert_eq!(manager.property(name, "ActiveState"), "active");
    }
}

#[test]
fn b071_a_service_that_never_stops_talking_delays_nobody() {
    let setup = Setup::new("b071");
    let talk = "while True:\n    try:\n        say(b'WATCHDOG=1\\nSTATUS=still here')\n    except OSError:\n        pass\n";
    let talker = python(&setup, "talker", &format!("{READY}os.fork()\n{talk}"));
    service(&setup, "talker", &format!("Type=notify\nNotifyAccess=all\nExecStart={talker}"));
    let ready = python(&setup, "ready", &format!("{READY}time.sleep(1000)\n"));
    service(&setup, "ready@", &format!("Type=notify\nTimeoutStartSec=20\nExecStart={ready}"));
    service(&setup, "other", "ExecStart=/bin/sleep 1000");
    setup.file("units/tick.timer", "[Timer]\nOnActiveSec=500ms\nUnit=ticked.service\n");
    service(&setup, "ticked", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true");
    let mut manager = setup.start();
    manager.ok(&["start", "talker"]);
    manager.until_property("talker", "StatusText", "still here");
    manager.ok(&["start", "tick.timer"]);
    for round in 0..10 {
        manager.ok(&["start", "other", &format!("ready@{round}")]);
        assert_eq!(manager.property(&format!("ready@{round}"), "ActiveState"), "active");
        manager.ok(&["stop", "other"]);
    }
    manager.until_property("ticked", "ActiveState", "active");
    manager.ok(&["stop", "talker"]);
}

#[test]
fn a_start_that_asks_for_more_time_gets_it() {
    let setup = Setup::new("extend");
    let more = "say(b'EXTEND_TIMEOUT_USEC=60000000')\n".to_owned();
    for (name, before) in [("extended", more.as_str()), ("punctual", "")] {
        // Longer than its unit lets a start take: what it asked for makes the difference.
        let source = format!(
            "{}{before}time.sleep(4.5)\nsay(b'READY=1')\ntime.sleep(1000)\n",
            READY.replace("say(b'READY=1')\n", "")
        );
        let program = python(&setup, name, &source);
        service(&setup, name, &format!("Type=notify\nTimeoutStartSec=4\nExecStart={program}"));
    }
    let mut manager = setup.start();
    manager.ok(&["--no-block", "start", "extended", "punctual"]);
    manager.until_property("extended", "ActiveState", "active");
    manager.until_property("punctual", "ActiveState", "failed");
    assert_eq!(manager.property("punctual", "Result"), "timeout");
}
