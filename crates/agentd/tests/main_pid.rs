//! Main processes that a service names itself, with `MAINPID=`, and the end of those that are no children of the manager.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::cases::is_root;
use common::{Manager, Setup, is_alive};

/// What every program here begins with.
const SAY: &str = "import os, signal, socket, sys, time\n\
    def say(text):\n\
    \x20   s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
    \x20   s.connect(os.environ['NOTIFY_SOCKET'])\n\
    \x20   s.send(text.encode())\n\
    def note(text):\n\
    \x20   with open(OUT, 'a') as f:\n\
    \x20       f.write(text + '\\n')\n";

fn program(setup: &Setup, text: &str) -> PathBuf {
    let out = setup.path("out").display().to_string();
    setup.file("program.py", &format!("OUT = {out:?}\n{SAY}{text}"))
}

fn unit(setup: &Setup, keys: &str, text: &str) {
    let program = program(setup, text);
    setup.unit(
        "d.service",
        &format!(
            "[Service]\nType = \"notify\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n{keys}\n",
            program.display()
        ),
    );
}

fn kill(signal: &str, pid: u32) {
    assert!(pid > 1, "there is no process to signal");
    assert!(Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap().success());
}

fn notes(manager: &Manager) -> Vec<String> {
    let text = fs::read_to_string(manager.path("out")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A process that belongs to no unit; ended when dropped.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Its first process begins another, says that this one is the main one, and is gone.
const MOVES: &str = "child = os.fork()\n\
    if child:\n\
    \x20   say(f'MAINPID={child}\\nREADY=1')\n\
    \x20   os._exit(0)\n\
    signal.signal(signal.SIGHUP, lambda *_: note(f'reloaded {os.getpid()}'))\n\
    def over(*_):\n\
    \x20   if os.fork() == 0:\n\
    \x20       say(f'MAINPID={os.getpid()}')\n\
    \x20   else:\n\
    \x20       time.sleep(1)\n\
    \x20       os._exit(1)\n\
    signal.signal(signal.SIGUSR2, over)\n\
    note(f'main {os.getpid()}')\n\
    while True:\n\
    \x20   time.sleep(1000)\n";

#[test]
fn a_service_moves_its_main_process_and_everything_follows() {
    let setup = Setup::new("mainpid");
    let stop = format!("[\"/bin/sh\", \"-c\", \"echo stop $MAINPID >> {}\"]", setup.path("out").display());
    let keys = format!(
        "NotifyAccess = \"all\"\nRestart = \"on-failure\"\nRestartSec = \"10ms\"\nExecStop = {stop}\nExecReload = [\"/bin/kill\", \"-HUP\", \"$MAINPID\"]"
    );
    unit(&setup, &keys, MOVES);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let main = manager.main_pid("d");
    manager.until("it does not begin", |m| notes(m) == [format!("main {main}")]);
    assert_eq!(manager.property("d", "SubState"), "running", "the end of the first process is not its end");
    manager.ok(&["reload", "d"]);
    manager.until("it does not reload", |m| notes(m).last() == Some(&format!("reloaded {main}")));
    // It moves again while it runs, to a process whose parent lives on for a while.
    kill("USR2", main);
    manager.until("it does not move", |m| m.main_pid("d") != main);
    let second = manager.main_pid("d");
    manager.until("the one before lives on", |_| !is_alive(main));
    assert_eq!((manager.property("d", "SubState").as_str(), manager.main_pid("d")), ("running", second));
    // The next manager goes on with it.
    manager.ok(&["daemon-reexec"]);
    assert_eq!(manager.main_pid("d"), second);
    kill("KILL", second);
    manager.until("it does not come back", |m| {
        m.property("d", "NRestarts") == "1" && ![0, second].contains(&m.main_pid("d"))
    });
    manager.until_property("d", "SubState", "running");
    let third = manager.main_pid("d");
    manager.ok(&["stop", "d"]);
    assert_eq!(notes(&manager).last(), Some(&format!("stop {third}")));
    assert!(!is_alive(third));
    assert_eq!(manager.property("d", "Result"), "success");
}

/// The same by descriptor. One that is of no process, and a claim without one, change nothing.
#[test]
fn a_service_names_its_main_process_by_descriptor() {
    let setup = Setup::new("mainpidfd");
    let script = "child = os.fork()\n\
        if child:\n\
        \x20   s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
        \x20   s.connect(os.environ['NOTIFY_SOCKET'])\n\
        \x20   s.send(b'MAINPIDFD=1')\n\
        \x20   socket.send_fds(s, [b'MAINPIDFD=1'], [0])\n\
        \x20   socket.send_fds(s, [b'MAINPIDFD=1\\nREADY=1'], [os.pidfd_open(child)])\n\
        \x20   os._exit(0)\n\
        note(f'main {os.getpid()}')\n\
        while True:\n\
        \x20   time.sleep(1000)\n";
    unit(&setup, "NotifyAccess = \"all\"", script);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let main = manager.main_pid("d");
    manager.until("it does not begin", |m| notes(m) == [format!("main {main}")]);
    assert_eq!(manager.property("d", "SubState"), "running", "the end of the first process is not its end");
    manager.wait_for_log(
        "says MAINPIDFD=1 without one descriptor of a process",
        "what means nothing is not told",
    );
    manager.ok(&["stop", "d"]);
    assert!(!is_alive(main));
}

#[test]
fn b008_a_service_that_is_not_roots_cannot_name_a_process_of_others() {
    if !is_root() {
        return;
    }
    let victim = Stranger::new();
    let setup = Setup::new("mainpid-foreign");
    let names = format!(
        "say('READY=1')\nfor n in range(50):\n    for pid in ({}, 1, os.getppid(), 4194304):\n        say(f'MAINPID={{pid}}')\nsay('STATUS=said')\ntime.sleep(1000)\n",
        victim.0.id()
    );
    unit(&setup, "User = \"nobody\"\nNotifyAccess = \"all\"", &names);
    open_to_all(&setup);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let main = manager.main_pid("d");
    manager.until_property("d", "StatusText", "said");
    assert_eq!(manager.main_pid("d"), main);
    let refused = format!("names a main process that it cannot have: {} is not a process of", victim.0.id());
    manager.wait_for_log(&refused, "it is not told");
    manager.collect();
    let told = manager.log.iter().filter(|line| line.contains("A notification")).count();
    assert!((1..=11).contains(&told), "{told} lines about 200 notifications");
    manager.ok(&["stop", "d"]);
    assert!(!is_alive(main) && is_alive(victim.0.id()), "a process of others was ended");
}

/// What another user is to run and to write to.
fn open_to_all(setup: &Setup) {
    use std::os::unix::fs::PermissionsExt;
    for path in ["", "program.py"] {
        fs::set_permissions(setup.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn root_may_name_a_process_of_others_whose_end_is_the_services() {
    if !is_root() {
        return;
    }
    let mut guest = Stranger::new();
    let pid = guest.0.id();
    let setup = Setup::new("mainpid-guest");
    let text = format!(
        "def turn(*_):\n    say(f'MAINPID={{os.getpid()}}')\nsignal.signal(signal.SIGUSR1, turn)\nnote(str(os.getpid()))\nsay('MAINPID={pid}\\nREADY=1')\nwhile True:\n    time.sleep(1000)\n"
    );
    unit(&setup, "NotifyAccess = \"all\"", &text);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    assert_eq!(manager.main_pid("d"), pid);
    // It is let go unharmed when it is the main process no longer.
    let own: u32 = notes(&manager)[0].parse().unwrap();
    kill("USR1", own);
    manager.until("it does not turn back", |m| m.main_pid("d") == own);
    manager.ok(&["stop", "d"]);
    assert!(guest.0.try_wait().unwrap().is_none(), "the guest was ended with the service");
    manager.ok(&["start", "d"]);
    assert_eq!(manager.main_pid("d"), pid);
    kill("KILL", pid);
    guest.0.wait().unwrap();
    manager.until_property("d", "ActiveState", "failed");
    manager.wait_for_log("Main process exited, code=unknown", "its end is not told");
}

/// The main process is not the manager's child but that of one that reaps it and ends with it. Nothing acts on SIGTERM.
const NESTED: &str = "signal.signal(signal.SIGTERM, lambda *_: note('asked'))\n\
    reader, writer = os.pipe()\n\
    child = os.fork()\n\
    if child:\n\
    \x20   os.read(reader, 1)  # A signal that comes in the midst of a fork is lost to Python.\n\
    \x20   say(f'MAINPID={child}\\nREADY=1')\n\
    \x20   os.waitpid(child, 0)\n\
    \x20   os._exit(0)\n\
    os.write(writer, b'.')\n\
    while True:\n\
    \x20   time.sleep(1000)\n";

fn state_of(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()).unwrap_or('-')
}

/// The last process ends, and its parent that had reaped it, while the manager does not look: it must see both at once.
fn stop_while_all_end_at_once(setup: Setup) {
    unit(&setup, "NotifyAccess = \"all\"\nTimeoutStopSec = \"300s\"", NESTED);
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let main = manager.main_pid("d");
    let runtime = manager.path("run");
    let mut stop = Command::new(common::agentctl())
        .arg("--runtime-dir")
        .arg(&runtime)
        .args(["stop", "d"])
        .spawn()
        .unwrap();
    manager.until("it is not asked to stop", |m| notes(m).len() == 2);
    let parent = fs::read_to_string(format!("/proc/{main}/stat")).unwrap();
    let parent: u32 = parent.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_ne!(parent, manager.pid(), "the manager is to be no parent of it");
    kill("STOP", manager.pid());
    wait("the manager does not stand still", || state_of(manager.pid()) == 'T');
    kill("KILL", main);
    wait("they do not end", || !is_alive(main) && !is_alive(parent));
    kill("CONT", manager.pid());
    wait("the stop is not answered", || stop.try_wait().unwrap().is_some());
    assert!(stop.wait().unwrap().success());
    assert_eq!(manager.property("d", "ActiveState"), "inactive");
}

fn wait(what: &str, holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + common::PATIENCE;
    let mut holds = holds;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn b012_a_stop_is_answered_when_the_last_process_was_no_child_of_ours() {
    stop_while_all_end_at_once(Setup::new("last-foreign"));
}

#[test]
fn b012_the_same_where_there_are_no_cgroups() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("last-foreign-bare").without_cgroups();
    stop_while_all_end_at_once(setup);
}

#[test]
fn what_is_frozen_stands_still_over_a_re_execution() {
    let setup = Setup::new("frozen-reexec");
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
    let stands = |_: &mut Manager| {
        let before = taken();
        std::thread::sleep(Duration::from_millis(200));
        taken() == before
    };
    manager.until("it goes on", stands);
    let before = taken();
    manager.ok(&["daemon-reexec"]);
    assert_eq!(manager.property("walk", "FreezerState"), "frozen");
    manager.until("it goes on", stands);
    assert_eq!(taken(), before, "it went on for a while");
    manager.ok(&["thaw", "walk"]);
    manager.until("it does not go on", |_| taken() > before);
    manager.ok(&["stop", "walk"]);
    assert_eq!(manager.property("walk", "Result"), "success");
}
