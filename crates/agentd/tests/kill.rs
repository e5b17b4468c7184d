//! What ends, and what does not: fork bombs, children in sessions of their own, frozen trees, signals by hand.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use common::cases::is_root;
use common::{Manager, Setup, is_alive, text};

/// Processes of a unit, as their environment names its run.
fn processes_of(run: &str) -> Vec<u32> {
    let mark = format!("INVOCATION_ID={run}");
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let born_in_it = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    pids.filter(born_in_it).filter(|pid| is_alive(*pid)).collect()
}

fn python(setup: &Setup, name: &str, text: &str) -> PathBuf {
    setup.file(&format!("{name}.py"), &format!("import os, signal, sys, time\n{text}"))
}

/// A unit of this program with these keys.
fn unit(setup: &Setup, name: &str, keys: &str, text: &str) {
    let program = python(setup, name, text);
    setup.unit(
        &format!("{name}.service"),
        &format!("[Service]\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n{keys}\n", program.display()),
    );
}

fn lines(manager: &Manager, name: &str) -> Vec<String> {
    let text = fs::read_to_string(manager.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Forks without end; each child does so as well, and none acts on SIGTERM.
const BOMB: &str = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
    while True:\n\
    \x20   try:\n\
    \x20       os.fork()\n\
    \x20   except OSError:\n\
    \x20       time.sleep(0.01)\n";

#[test]
fn a_fork_bomb_is_bounded_and_ended_and_its_neighbours_live_on() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("bomb");
    // The limit of the user bounds it where no controller counts tasks.
    let keys = "User = \"64778\"\nTasksMax = 60\nLimitNPROC = 60\nTimeoutStopSec = \"200ms\"";
    unit(&setup, "bomb", keys, BOMB);
    setup.unit("calm.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(setup.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut manager = setup.start();
    manager.ok(&["start", "calm"]);
    let calm = manager.main_pid("calm");
    for end in [&["stop", "bomb"][..], &["kill", "-s", "KILL", "bomb"]] {
        manager.ok(&["start", "bomb"]);
        let run = manager.property("bomb", "InvocationID");
        manager.until("it does not go off", |_| processes_of(&run).len() >= 50);
        assert!(processes_of(&run).len() <= 60);
        let began = Instant::now();
        manager.ok(end);
        manager.until("it stays up", |m| {
            ["inactive", "failed"].contains(&m.property("bomb", "ActiveState").as_str())
        });
        assert_eq!(processes_of(&run), [0_u32; 0], "{end:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{end:?} took {:?}", began.elapsed());
        assert_eq!((manager.main_pid("calm"), is_alive(calm)), (calm, true), "{end:?}");
    }
}

/// Leaves processes behind in every way: in a session of its own, with its parent gone, deaf to signals, stopped.
const SCATTER: &str = "for kind in range(4):\n\
    \x20   if os.fork() == 0:\n\
    \x20       os.setsid()\n\
    \x20       if os.fork():\n\
    \x20           os._exit(0)\n\
    \x20       for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):\n\
    \x20           signal.signal(number, signal.SIG_IGN)\n\
    \x20       if kind == 1:\n\
    \x20           os.setpgid(0, 0)\n\
    \x20       if kind == 2:\n\
    \x20           os.environ.clear()\n\
    \x20           os.execve('/bin/sleep', ['sleep', '1000'], {'PATH': '/bin'})\n\
    \x20       with open(OUT, 'a') as f:\n\
    \x20           f.write(f'{os.getpid()}\\n')\n\
    \x20       if kind == 3:\n\
    \x20           os.kill(os.getpid(), signal.SIGSTOP)\n\
    \x20       while True:\n\
    \x20           time.sleep(1000)\n\
    while True:\n\
    \x20   time.sleep(1000)\n";

#[test]
fn children_that_went_their_own_ways_are_gone_with_the_stop() {
    let setup = Setup::new("scatter");
    let out = setup.path("out").display().to_string();
    unit(&setup, "scatter", "TimeoutStopSec = \"200ms\"", &format!("OUT = {out:?}\n{SCATTER}"));
    let mut manager = setup.start();
    manager.ok(&["start", "scatter"]);
    manager.until("they do not scatter", |m| lines(m, "out").len() == 3);
    let pids: Vec<u32> = lines(&manager, "out").iter().map(|line| line.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    manager.ok(&["stop", "scatter"]);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "some live on");
    assert_eq!(manager.property("scatter", "SubState"), "failed", "it had to be killed");
}

#[test]
fn a_frozen_tree_is_ended_by_a_stop_a_kill_and_the_end_of_the_manager() {
    let setup = Setup::new("frozen-kill");
    for name in ["stop", "kill", "exit"] {
        unit(&setup, name, "TimeoutStopSec = \"20s\"", "os.fork()\nwhile True:\n    time.sleep(1000)\n");
    }
    let mut manager = setup.start();
    for name in ["stop", "kill", "exit"] {
        manager.ok(&["start", name]);
        let run = manager.property(name, "InvocationID");
        manager.until("it does not fork", |_| processes_of(&run).len() == 2);
        manager.ok(&["freeze", name]);
    }
    let runs = ["stop", "kill", "exit"].map(|name| manager.property(name, "InvocationID"));
    let began = Instant::now();
    manager.ok(&["stop", "stop"]);
    assert_eq!(manager.property("stop", "Result"), "success", "it could act on SIGTERM");
    manager.ok(&["kill", "-s", "KILL", "kill"]);
    manager.until_property("kill", "ActiveState", "failed");
    assert_eq!([processes_of(&runs[0]), processes_of(&runs[1])], [vec![], vec![]]);
    manager.ok(&["exit"]);
    manager.wait();
    assert_eq!(processes_of(&runs[2]), [0_u32; 0]);
    assert!(began.elapsed() < Duration::from_secs(20), "a timeout was waited for: {:?}", began.elapsed());
}

/// Tells of each SIGUSR1 by its own name, and has a child that does.
const TELLS: &str = "def tell(name):\n\
    \x20   def told(*_):\n\
    \x20       with open(OUT, 'a') as f:\n\
    \x20           f.write(name + '\\n')\n\
    \x20   signal.signal(signal.SIGUSR1, told)\n\
    \x20   told()\n\
    \x20   while True:\n\
    \x20       time.sleep(1000)\n\
    name = sys.argv[1]\n\
    if os.fork() == 0:\n\
    \x20   tell(f'{name} child')\n\
    tell(name)\n";

#[test]
fn a_signal_by_hand_reaches_whom_it_is_meant_for() {
    let setup = Setup::new("whom");
    let out = setup.path("out").display().to_string();
    let program = python(&setup, "tells", &format!("OUT = {out:?}\n{TELLS}"));
    let command = |name: &str| format!("[\"/usr/bin/python3\", \"{}\", \"{name}\"]", program.display());
    // A reload that goes on is a control process for as long as the test needs one.
    let (main, control) = (command("main"), command("control"));
    setup.unit("d.service", &format!("[Service]\nExecStart = {main}\nExecReload = {control}\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    manager.ok(&["reload", "--no-block", "d"]);
    manager.until("they are not there", |m| lines(m, "out").len() == 4);
    for (whom, heard) in [
        ("main", &["main"][..]),
        ("control", &["control"]),
        ("all", &["control", "control child", "main", "main child"]),
    ] {
        fs::write(manager.path("out"), "").unwrap();
        manager.ok(&["kill", "-s", "USR1", "--kill-whom", whom, "d"]);
        manager.until(whom, |m| lines(m, "out").len() >= heard.len());
        let mut told = lines(&manager, "out");
        told.sort();
        assert_eq!(told, heard, "{whom}");
    }
    let wrong = manager.ctl(&["kill", "-s", "USR1", "--kill-whom", "nobody", "d"]);
    assert!(!wrong.status.success(), "{}", text(&wrong));
}

#[test]
fn a_restart_sends_its_own_signal_and_a_stop_its_own() {
    let setup = Setup::new("restart-signal");
    let out = setup.path("out").display().to_string();
    let tells = format!(
        "def told(number, _):\n    with open({out:?}, 'a') as f:\n        f.write(signal.Signals(number).name + '\\n')\n    sys.exit(0)\n\
         for number in (signal.SIGTERM, signal.SIGUSR2):\n    signal.signal(number, told)\nopen({out:?} + '.up', 'a').write('x')\n\
         while True:\n    time.sleep(1000)\n"
    );
    unit(&setup, "d", "RestartKillSignal = \"SIGUSR2\"", &tells);
    let mut manager = setup.start();
    let ups = |m: &Manager| fs::read_to_string(m.path("out.up")).unwrap_or_default().len();
    manager.ok(&["start", "d"]);
    manager.until("it is not up", |m| ups(m) == 1);
    manager.ok(&["restart", "d"]);
    assert_eq!(lines(&manager, "out"), ["SIGUSR2"]);
    manager.until("it is not up again", |m| ups(m) == 2);
    manager.ok(&["stop", "d"]);
    assert_eq!(lines(&manager, "out"), ["SIGUSR2", "SIGTERM"]);
}

/// Where there are no cgroups, the descent and the environment tell what belongs to a run.
#[test]
fn children_are_gone_with_the_stop_where_there_are_no_cgroups() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("scatter-bare").without_cgroups();
    let out = setup.path("out").display().to_string();
    unit(&setup, "scatter", "TimeoutStopSec = \"200ms\"", &format!("OUT = {out:?}\n{SCATTER}"));
    let mut manager = setup.start();
    manager.ok(&["start", "scatter"]);
    manager.until("they do not scatter", |m| lines(m, "out").len() == 3);
    let pids: Vec<u32> = lines(&manager, "out").iter().map(|line| line.parse().unwrap()).collect();
    manager.ok(&["stop", "scatter"]);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "some live on");
    // What has thrown away its environment and its parents is no process of the run that anybody could tell of.
    let _left = Command::new("pkill").args(["-P", &manager.pid().to_string(), "-x", "sleep"]).status();
}

/// Newer kernels kill what is born in a cgroup that was killed as a whole before.
#[test]
fn what_follows_a_kill_of_the_whole_cgroup_runs_to_its_end() {
    let setup = Setup::new("post-kill");
    let said = setup.path("said").display().to_string();
    let post =
        format!("ExecStopPost = [\"/bin/sh\", \"-c\", \"sleep 0.05; echo $SERVICE_RESULT >> {said}-%p\"]");
    let stubborn =
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen(sys.argv[0] + '.on', 'w')\ntime.sleep(1000)\n";
    unit(&setup, "stubborn", &format!("TimeoutStopSec = \"100ms\"\n{post}"), stubborn);
    // The main process ends as it should, and what it leaves does not.
    let leaves = "if os.fork() == 0:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    open(sys.argv[0] + '.on', 'w')\n    time.sleep(1000)\n\
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nsignal.pause()\n";
    unit(&setup, "leaves", &format!("KillMode = \"mixed\"\n{post}"), leaves);
    let mut manager = setup.start();
    for (name, result) in [("stubborn", "timeout"), ("leaves", "success")] {
        manager.ok(&["start", name]);
        manager.until("it is not ready", |m| m.path(&format!("{name}.py.on")).exists());
        manager.ok(&["stop", name]);
        assert_eq!(manager.property(name, "Result"), result);
        assert_eq!(lines(&manager, &format!("said-{name}")), [result]);
    }
}

#[test]
fn a_command_of_a_unit_that_was_frozen_from_outside_runs() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("frozen-outside");
    let on = "open(sys.argv[0] + '.on', 'w')\ntime.sleep(1000)\n";
    unit(&setup, "cold", "ExecReload = [\"/bin/true\"]\nExecStop = [\"/bin/true\"]", on);
    let mut manager = setup.start();
    manager.ok(&["start", "cold"]);
    let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", manager.main_pid("cold"))).unwrap();
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    let roots =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| PathBuf::from(format!("{root}{own}")));
    let Some(folder) = roots.into_iter().find(|folder| folder.join("cgroup.freeze").exists()) else { return };
    let begun = Instant::now();
    for verb in ["reload", "stop"] {
        fs::write(folder.join("cgroup.freeze"), "1").unwrap();
        manager.until("it does not freeze", |_| {
            fs::read_to_string(folder.join("cgroup.events")).unwrap().contains("frozen 1")
        });
        manager.ok(&[verb, "cold"]);
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "nothing waits for it to thaw");
}

#[test]
fn a_filter_without_exit_fails_its_unit_alone() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("no-exit");
    for (name, filter) in [("a", "~@default:EPERM"), ("b", "~@process @default:EPERM")] {
        let text = format!("[Service]\nType=oneshot\nSystemCallFilter={filter}\nExecStart=/bin/true\n");
        fs::write(setup.path(&format!("units/{name}.service")), text).unwrap();
    }
    let mut manager = setup.start();
    for name in ["a", "b"] {
        let failed = manager.ctl(&["start", name]);
        assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
        manager.ok(&["status"]);
    }
}
