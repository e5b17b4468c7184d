//! Faults that supervisors have had with their processes, each as the scenario that shows it: exits that get lost, numbers
//! that are used again, trees that outlive their unit.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::cases::is_root;
use common::field::{python, read, service, signal};
use common::{Manager, PATIENCE, Setup, is_alive, text};

/// The state letter and the parent of every process.
fn processes() -> Vec<(u32, char, u32)> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
        Some((pid, rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
    })
    .collect()
}

/// Living processes whose environment has this variable.
fn marked(mark: &str) -> Vec<u32> {
    let has_it = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    processes()
        .into_iter()
        .filter(|(_, state, _)| *state != 'Z')
        .map(|(pid, ..)| pid)
        .filter(has_it)
        .collect()
}

#[test]
fn b001_each_command_is_told_its_own_end_among_a_flood_of_orphans() {
    let setup = Setup::new("b001");
    service(&setup, "told", "Type=oneshot\nExecStartPre=/bin/sh -c \"exit 37\"\nExecStart=/bin/true");
    let orphans = "while :; do (setsid sleep 0.05 &); (sleep 0.01 &); sleep 0.01; done";
    let before = "ExecStartPre=/bin/sh -c \"exit 0\"\n".repeat(3);
    service(&setup, "flood", &format!("{before}ExecStart=/bin/sh -c \"{orphans}\""));
    let mut manager = setup.start();
    for round in 0..30 {
        manager.ok(&["start", "flood"]);
        let told = manager.ctl(&["start", "told"]);
        assert_eq!(told.status.code(), Some(1), "round {round}: {}", text(&told));
        assert_eq!(manager.property("told", "Result"), "exit-code", "round {round}");
        manager.until("the end of the command is not told", |m| {
            let line = "told.service: Control process (ExecStartPre) exited, code=exited, status=37";
            m.log.iter().filter(|seen| seen.contains(line)).count() > round
        });
        manager.ok(&["stop", "flood"]);
        assert_eq!(manager.property("flood", "Result"), "success", "round {round}");
    }
    assert!(!manager.everything().contains("ECHILD"));
}

#[test]
fn b002_exits_that_come_all_at_once_while_nobody_looks_are_each_told() {
    const COUNT: u32 = 200;
    let setup = Setup::new("b002");
    let gate = setup.path("gate").display().to_string();
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    service(&setup, "burst@", &format!("ExecStart=/bin/sh -c \"read x <{gate}; exit %i\""));
    let mut manager = setup.start();
    let names: Vec<String> = (0..COUNT).map(|number| format!("burst@{number}")).collect();
    let mut start = vec!["start"];
    start.extend(names.iter().map(String::as_str));
    manager.ok(&start);
    let pid = manager.pid();
    signal("STOP", pid);
    // They wait in open(2) until somebody writes; a reader of our own keeps that from waiting for the first of them.
    let mut writer = fs::OpenOptions::new().read(true).write(true).open(&gate).unwrap();
    std::io::Write::write_all(&mut writer, &vec![b'\n'; COUNT as usize]).unwrap();
    let ended = || processes().iter().filter(|(_, state, parent)| *state == 'Z' && *parent == pid).count();
    let patience = std::time::Instant::now() + PATIENCE;
    while ended() < COUNT as usize && std::time::Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ended(), COUNT as usize, "they did not all end");
    signal("CONT", pid);
    for number in 0..COUNT {
        let name = format!("burst@{number}");
        let state = if number == 0 { "inactive" } else { "failed" };
        manager.until_property(&name, "ActiveState", state);
        assert_eq!(manager.property(&name, "ExecMainStatus"), number.to_string());
    }
    assert_eq!(ended(), 0, "some are not reaped");
}

/// Takes the numbers of processes that are gone: whoever signals by number hits it, and it says so.
const CANARY: &str = "
def heard(number, _):
    with open(FOLDER + '/hit', 'a') as log:
        log.write(f'{os.getpid()} {number}\\n')
for number in range(1, 65):
    if number not in (9, 17, 19):
        try:
            signal.signal(number, heard)
        except (OSError, ValueError):
            pass
while True:
    try:
        wanted = int(open(FOLDER + '/wanted').read())
    except (OSError, ValueError):
        time.sleep(0.005)
        continue
    if os.path.exists(f'/proc/{wanted}'):
        time.sleep(0.005)
        continue
    with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
        last.write(str(wanted - 1))
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    if child != wanted:
        os.kill(child, 9)
        os.waitpid(child, 0)
        continue
    os.unlink(FOLDER + '/wanted')
    os.rename(FOLDER + '/wanted.next', FOLDER + '/taken')
    while os.path.exists(FOLDER + '/taken'):
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
";

/// Its first process ends and tells its number, while a child lives on, in a session of its own: the number of a session is
/// not used again.
const BRIEF: &str = "
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(1000)
open(FOLDER + '/wanted.next', 'w').close()
with open(FOLDER + '/wanted.new', 'w') as out:
    out.write(str(os.getpid()))
os.rename(FOLDER + '/wanted.new', FOLDER + '/wanted')
";

#[test]
fn b007_who_has_the_number_of_a_process_that_is_gone_is_never_signalled() {
    if !is_root() {
        return;
    }
    // The numbers are those of a namespace of its own, in which the manager is not the init.
    let inside =
        ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child", "sh", "-c", "\"$@\"; exit $?", "sh"];
    let setup = Setup::new("b007").wrapper(&inside);
    let canary = python(&setup, "canary", CANARY);
    service(&setup, "canary", &format!("ExecStart={canary}"));
    let brief = python(&setup, "brief", BRIEF);
    service(&setup, "brief", &format!("RemainAfterExit=yes\nExecStop=/bin/true\nExecStart={brief}"));
    let mut manager = setup.start();
    manager.ok(&["start", "canary"]);
    for round in 0..10 {
        manager.ok(&["start", "brief"]);
        manager.until("the number is not taken", |m| m.path("taken").exists());
        manager.until_property("brief", "SubState", "exited");
        let _nobody_or_the_child = manager.ctl(&["kill", "-s", "USR1", "--kill-whom", "main", "brief"]);
        let _child = manager.ctl(&["kill", "-s", "CONT", "brief"]);
        manager.ok(&[["stop", "restart"][round % 2], "brief"]);
        assert_eq!(read(&manager, "hit"), "", "round {round}: somebody else was signalled");
        manager.ok(&["stop", "brief"]);
        let _gone = fs::remove_file(manager.path("wanted"));
        let _next = fs::remove_file(manager.path("taken"));
    }
    manager.ok(&["kill", "-s", "USR2", "canary"]);
    manager.until("the canary would not say so", |m| read(m, "hit").ends_with(" 12\n"));
}

#[test]
fn b014_a_stop_of_what_ends_by_itself_at_that_moment_goes_to_its_end() {
    let setup = Setup::new("b014");
    service(&setup, "brief", "ExecStart=/bin/sh -c \"sleep $$(cat ${FOLDER}/life)\"\nEnvironment=FOLDER=@");
    let unit = setup.path("units/brief.service");
    let text_of_unit = fs::read_to_string(&unit).unwrap().replace('@', &setup.path("").display().to_string());
    fs::write(&unit, text_of_unit).unwrap();
    setup.file("life", "0");
    let mut manager = setup.start();
    let mut folders = Vec::new();
    for round in 0..60_u64 {
        fs::write(manager.path("life"), format!("0.0{}", round * 7 % 50)).unwrap();
        manager.ok(&["start", "brief"]);
        folders.push(manager.property("brief", "ControlGroup"));
        // What races with the end of the process is the point here.
        std::thread::sleep(Duration::from_millis(round * 11 % 50));
        manager.ok(&["stop", "brief"]);
        assert_eq!(manager.property("brief", "ActiveState"), "inactive", "round {round}");
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let tree = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let tree = tree.map_or_else(String::new, |line| line.split(' ').nth(1).unwrap().to_owned());
    let left = folders.iter().filter(|folder| !folder.is_empty()).map(|folder| format!("{tree}{folder}"));
    assert_eq!(left.filter(|folder| fs::exists(folder).unwrap()).count(), 0, "cgroups are left");
}

/// Keeps some hundred processes that live for a moment each.
const CHURN: &str = "
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for kind in range(60):
    if os.fork() == 0:
        while True:
            child = os.fork()
            if child == 0:
                time.sleep(0.01)
                os._exit(0)
            os.waitpid(child, 0)
open(FOLDER + '/up', 'w').close()
time.sleep(1000)
";

#[test]
fn b015_processes_that_go_while_they_are_looked_at_are_no_error() {
    let setup = Setup::new("b015");
    let churn = python(&setup, "churn", CHURN);
    service(&setup, "churn", &format!("TimeoutStopSec=5\nExecStart={churn}"));
    let mut manager = setup.start();
    manager.ok(&["start", "churn"]);
    manager.until("it does not come up", |m| m.path("up").exists());
    for _ in 0..30 {
        manager.ok(&["kill", "-s", "USR1", "churn"]);
        let status = manager.ok(&["status", "churn"]);
        assert!(status.contains("churn.py"), "{status}");
    }
    let run = format!("INVOCATION_ID={}", manager.property("churn", "InvocationID"));
    manager.ok(&["stop", "churn"]);
    assert_eq!(marked(&run), [0_u32; 0]);
}

/// Tells who of the run before still lives, and leaves three helpers that went their own ways.
const HELPERS: &str = "
import pty
def lives(pid):
    try:
        return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False
if os.path.exists(FOLDER + '/helpers'):
    with open(FOLDER + '/survivors', 'a') as out:
        out.writelines(pid for pid in open(FOLDER + '/helpers') if lives(int(pid)))
helpers = [subprocess.Popen(['setsid', 'sleep', '777']).pid]
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(write, str(os.getpid()).encode())
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1000)
    os._exit(0)
helpers.append(int(os.read(read, 20)))
child, _ = pty.fork()
if child == 0:
    os.execvp('sleep', ['sleep', '777'])
helpers.append(child)
with open(FOLDER + '/helpers.new', 'w') as out:
    out.writelines(f'{pid}\\n' for pid in helpers)
os.rename(FOLDER + '/helpers.new', FOLDER + '/helpers')
if sys.argv[1] == 'exit':
    sys.exit(0)
if sys.argv[1] == 'abort':
    os.abort()
time.sleep(1000)
";

fn helpers(manager: &Manager) -> Vec<u32> {
    read(manager, "helpers").lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn b024_nothing_of_a_run_lives_when_the_next_one_begins() {
    let setup = Setup::new("b024");
    let program = python(&setup, "helpers", HELPERS);
    service(
        &setup,
        "tree",
        &format!("Restart=always\nRestartSec=0\nTimeoutStopSec=1\nLimitCORE=0\nExecStart={program} stay"),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "tree"]);
    let mut seen = Vec::new();
    for round in 0..4 {
        manager.until("it leaves no helpers", |m| {
            let now = helpers(m);
            now.len() == 3 && now != seen
        });
        seen = helpers(&manager);
        assert!(seen.iter().all(|pid| is_alive(*pid)), "round {round}");
        signal("KILL", manager.main_pid("tree"));
    }
    manager.until("it does not come back", |m| helpers(m).len() == 3 && helpers(m) != seen);
    manager.ok(&["stop", "tree"]);
    assert!(!helpers(&manager).into_iter().any(is_alive), "a helper outlives the stop");
    assert_eq!(read(&manager, "survivors"), "");
}

#[test]
fn b136_helpers_go_with_their_agent_whichever_way_it_ends() {
    let setup = Setup::new("b136");
    let program = python(&setup, "helpers", HELPERS);
    let common_keys = "TimeoutStopSec=300ms\nLimitCORE=0";
    service(&setup, "exit", &format!("{common_keys}\nExecStart={program} exit"));
    service(&setup, "abort", &format!("{common_keys}\nExecStart={program} abort"));
    service(&setup, "stop", &format!("{common_keys}\nExecStart={program} stay"));
    service(&setup, "kill", &format!("{common_keys}\nExecStart={program} stay"));
    service(&setup, "watchdog", &format!("{common_keys}\nWatchdogSec=1\nExecStart={program} stay"));
    service(&setup, "lifetime", &format!("{common_keys}\nRuntimeMaxSec=1\nExecStart={program} stay"));
    let mut manager = setup.start();
    for unit in ["exit", "abort", "stop", "kill", "watchdog", "lifetime"] {
        let _before = fs::remove_file(manager.path("helpers"));
        manager.ok(&["start", unit]);
        manager.until(&format!("{unit} leaves no helpers"), |m| helpers(m).len() == 3);
        let run = format!("INVOCATION_ID={}", manager.property(unit, "InvocationID"));
        match unit {
            "stop" => drop(manager.ok(&["stop", unit])),
            "kill" => signal("KILL", manager.main_pid(unit)),
            _ => {}
        }
        manager.until(&format!("{unit} does not end"), |m| {
            ["inactive", "failed"].contains(&m.property(unit, "ActiveState").as_str())
        });
        assert!(!helpers(&manager).into_iter().any(is_alive), "{unit}: a helper lives on");
        assert_eq!(marked(&run), [0_u32; 0], "{unit}");
    }
}

/// Each process makes two of itself on SIGTERM and ends.
const HYDRA: &str = "
def more(number, _):
    for copy in range(2):
        try:
            if os.fork() == 0:
                return
        except OSError:
            pass
    os._exit(0)
signal.signal(signal.SIGTERM, more)
for copy in range(10):
    if os.fork() == 0:
        break
else:
    open(FOLDER + '/signs/up', 'w').close()
while True:
    time.sleep(100)
";

#[test]
fn b026_a_tree_that_grows_when_it_is_asked_to_end_is_gone_after_its_timeout() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("b026");
    let hydra = python(&setup, "hydra", HYDRA);
    service(
        &setup,
        "hydra",
        &format!("User=64778\nTasksMax=100\nLimitNPROC=100\nTimeoutStopSec=1\nExecStart={hydra}"),
    );
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(setup.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(setup.path("signs")).unwrap();
    fs::set_permissions(setup.path("signs"), fs::Permissions::from_mode(0o777)).unwrap();
    let mut manager = setup.start();
    manager.ok(&["start", "hydra"]);
    manager.until("it does not come up", |m| m.path("signs/up").exists());
    let run = format!("INVOCATION_ID={}", manager.property("hydra", "InvocationID"));
    let runtime = manager.path("run");
    let mut stop = Command::new(common::agentctl())
        .arg("--runtime-dir")
        .arg(runtime)
        .args(["stop", "hydra"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut asked = 0;
    manager.until("the stop does not end", |m| {
        assert!(m.ctl(&["status", "hydra"]).status.code().is_some_and(|code| code == 0 || code == 3));
        asked += 1;
        stop.try_wait().unwrap().is_some()
    });
    assert!(asked > 1, "nothing was asked while it stopped");
    assert_eq!(marked(&run), [0_u32; 0]);
    assert_eq!(manager.property("hydra", "Result"), "timeout");
}
