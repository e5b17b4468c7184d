//! What the manager's work costs, in counts that do not depend on how fast the machine is.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Manager, Setup, is_alive};

const SLEEPER: &str = "[Service]\nExecStart = \"/bin/sleep 1000\"\n";

/// A manager with so many services that run.
fn with_services(name: &str, count: usize) -> Manager {
    let setup = Setup::new(name);
    let names: Vec<String> = (0..count).map(|number| format!("s{number}.service")).collect();
    for name in &names {
        setup.unit(name, SLEEPER);
    }
    setup.unit("default.target", &format!("[Unit]\nWants = {names:?}\n"));
    setup.start()
}

/// The number behind a name in a file of `/proc`, one `NAME: NUMBER` a line.
fn number(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    value.trim().parse().unwrap()
}

#[test]
fn a_list_reads_nothing_of_units_and_one_file_of_each_for_programs() {
    const UNITS: u64 = 60;
    let mut manager = with_services("cost-list", UNITS as usize);
    let path = format!("/proc/{}/io", manager.pid());
    for (args, most) in [(&["list"][..], UNITS / 2), (&["list", "-o", "json"], UNITS + UNITS / 2)] {
        let before = number(&path, "syscr");
        assert_eq!(manager.ok(args).matches("running").count() as u64, UNITS);
        let reads = number(&path, "syscr") - before;
        assert!(reads < most, "{args:?}: {reads} reads for {UNITS} units");
    }
}

#[test]
fn nothing_wakes_a_manager_that_has_nothing_to_do() {
    const QUIET: Duration = Duration::from_secs(3);
    let manager = with_services("cost-idle", 20);
    let tasks = format!("/proc/{}/task", manager.pid());
    let waits = || -> u64 {
        let of = |task: fs::DirEntry| {
            number(&task.path().join("status").display().to_string(), "voluntary_ctxt_switches")
        };
        fs::read_dir(&tasks).unwrap().map(|task| of(task.unwrap())).sum()
    };
    let end = Instant::now() + Duration::from_secs(60);
    let (mut count, mut since) = (waits(), Instant::now());
    // What the start has left to do may take a while; after it comes a time without a wake-up.
    while since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(100));
        let now = waits();
        if now != count {
            (count, since) = (now, Instant::now());
        }
        assert!(since < end, "something wakes the manager again and again");
    }
}

#[test]
fn every_orphan_of_a_flood_is_reaped_and_counted() {
    const ORPHANS: usize = 2_000;
    let setup = Setup::new("cost-orphans");
    let script = format!("#!/bin/sh\ni=0\nwhile [ $i -lt {ORPHANS} ]; do (: &); i=$((i+1)); done\n");
    let program = setup.file("flood", &script);
    let text = format!("[Service]\nType = \"oneshot\"\nExecStart = \"{}\"\n", program.display());
    setup.unit("flood.service", &text);
    setup.unit("default.target", "[Unit]\nWants = [\"flood.service\"]\n");
    let mut manager = setup.start();
    let counted = |m: &mut Manager| {
        let status = m.ok(&["status", "-o", "json"]);
        let (_, rest) = status.split_once("\"NReapedOrphans\":").unwrap_or_else(|| panic!("{status}"));
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().unwrap()
    };
    manager.until("orphans are not counted", |m| counted(m) >= ORPHANS);
    assert_eq!(manager.property("flood.service", "Result"), "success");
}

#[test]
fn a_service_that_leaves_its_cgroup_is_stopped_all_the_same() {
    let setup = Setup::new("cost-escape");
    // As root it can move itself up; without a cgroup v2 that it may write to it stays where it is.
    let script = "#!/bin/sh\ntrap '' TERM\nroot=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts)\n\
                  echo $$ 2>/dev/null > \"$root/cgroup.procs\"\nwhile :; do sleep 1; done\n";
    let program = setup.file("leaver", script);
    let text = format!("[Service]\nExecStart = \"{}\"\nTimeoutStopSec = \"1s\"\n", program.display());
    setup.unit("leaver.service", &text);
    setup.unit("default.target", "[Unit]\nWants = [\"leaver.service\"]\n");
    let mut manager = setup.start();
    let pid = manager.main_pid("leaver.service");
    manager.ok(&["stop", "leaver.service"]);
    assert!(!is_alive(pid));
    assert_eq!(manager.property("leaver.service", "Result"), "timeout");
}

#[test]
fn what_the_tasks_of_a_unit_wait_for_shows_in_its_status() {
    let setup = Setup::new("pressure");
    // Two that want the same processor all the time.
    setup.unit(
        "busy.service",
        "[Service]\nCPUAffinity = \"0\"\nExecStart = [\"/bin/sh\", \"-c\", \"while :; do :; done & while :; do :; done\"]\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "busy"]);
    let has_cgroup = !manager.property("busy", "ControlGroup").is_empty();
    if has_cgroup && std::path::Path::new("/proc/pressure/cpu").exists() {
        manager.until("no pressure is seen", |m| m.ok(&["status", "busy"]).contains("Pressure: cpu: "));
    } else {
        eprintln!("this kernel does not tell what tasks wait for");
    }
}
