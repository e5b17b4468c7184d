//! At the bounds: an answer of very many lines, and a manager that has no descriptors left.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::ops::Range;
use std::process::Output;

use common::{Manager, Setup, text};

#[test]
fn a_log_of_very_many_lines_is_answered_whole() {
    let setup = Setup::new("lines");
    setup.unit("count.service", "[Service]\nType = \"oneshot\"\nExecStart = [\"/usr/bin/seq\", \"30000\"]\n");
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "count"]);
    let logs = manager.ok(&["logs", "count", "-n", "40000"]);
    let numbers: Vec<u32> =
        logs.lines().filter_map(|line| line.rsplit_once(" count: ")?.1.parse().ok()).collect();
    assert_eq!((numbers.len(), numbers.last().copied()), (30000, Some(30000)));
}

/// Asks for the same of many idlers at once.
fn to_idlers(manager: &Manager, verb: &str, numbers: Range<u32>) -> Output {
    let names: Vec<String> = numbers.map(|number| format!("idler@{number}")).collect();
    let words: Vec<&str> = [verb].into_iter().chain(names.iter().map(String::as_str)).collect();
    manager.ctl(&words)
}

/// Where not one unit has room, and where some have.
#[test]
fn b122_a_manager_without_descriptors_refuses_starts_with_the_reason_and_still_answers() {
    for (limit, some_run) in [(64, false), (128, true)] {
        let setup = Setup::new(&format!("descriptors-{limit}"));
        let setup = setup.wrapper(&["prlimit", &format!("--nofile={limit}:{limit}")]);
        setup.unit("idler@.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
        setup.unit("default.target", "[Unit]\n");
        let mut manager = setup.start();
        let said = text(&to_idlers(&manager, "start", 0..100));
        let reason = format!("of agentd's {limit} descriptors are in use");
        assert!(said.contains(&reason), "{said}");
        let failures = said.lines().filter(|line| line.contains("ailed"));
        // Where there is no room at all, the files of a unit cannot be read either.
        let is_told =
            |line: &str| line.contains(&reason) || !some_run && line.contains("Too many open files");
        assert_eq!(failures.clone().find(|line| !is_told(line)), None);
        let list = manager.ok(&["list", "--state", "running"]);
        let running = list.lines().filter(|line| line.contains("idler@")).count();
        assert!(if some_run { (1..100).contains(&running) } else { running == 0 }, "{running} run\n{said}");
        let stopped = to_idlers(&manager, "stop", 0..100);
        assert!(stopped.status.success(), "{}", text(&stopped));
        if some_run {
            manager.ok(&["start", "idler@99"]);
            assert_eq!(manager.property("idler@99", "SubState"), "running");
        }
    }
}

/// What a run has held is to be had for the next one, also where nothing else is free.
#[test]
fn a_unit_comes_back_where_the_last_descriptors_are_in_use() {
    // A run takes four, so that with one of these limits not one is left.
    for limit in 128..=131 {
        comes_back(limit);
    }
}

fn comes_back(limit: u32) {
    let setup = Setup::new(&format!("descriptors-back-{limit}"));
    let setup = setup.wrapper(&["prlimit", &format!("--nofile={limit}:{limit}")]);
    let again = "[Unit]\nStartLimitIntervalSec = 0\n[Service]\nRestart = \"always\"\nRestartSec = 0\n";
    setup.unit("first.service", &format!("{again}ExecStart = [\"/bin/sleep\", \"1000\"]\n"));
    setup.unit("idler@.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "first"]);
    let fill = |manager: &Manager, numbers| {
        let said = text(&to_idlers(manager, "start", numbers));
        assert!(said.contains("descriptors are in use"), "{said}");
    };
    fill(&manager, 0..100);
    // The log has the files open that it may, so that no number is free below those of the units.
    let folder = format!("/proc/{}/fd", manager.pid());
    let is_log = |entry: &std::io::Result<std::fs::DirEntry>| {
        std::fs::read_link(entry.as_ref().unwrap().path())
            .is_ok_and(|file| file.extension().is_some_and(|e| e == "log"))
    };
    manager.until("the files of the log are open", |_| {
        std::fs::read_dir(&folder).unwrap().filter(is_log).count() == 8
    });
    fill(&manager, 100..200);
    for life in 1..=10 {
        manager.ok(&["kill", "-s", "KILL", "first"]);
        manager.until_property("first", "NRestarts", &life.to_string());
        manager.until_property("first", "SubState", "running");
    }
    let log = manager.everything();
    let refused = log.lines().find(|line| line.contains("first.service") && line.contains("descriptors"));
    assert_eq!(refused, None);
}

/// It has its size before there are threads: the kernel is slow to let it grow where there are some.
#[test]
fn the_table_of_descriptors_need_not_grow_in_a_start_of_many_units() {
    let setup = Setup::new("descriptors-room").wrapper(&["prlimit", "--nofile=1024:10000"]);
    let manager = setup.start();
    let status = std::fs::read_to_string(format!("/proc/{}/status", manager.pid())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    assert!(size.trim().parse::<u32>().unwrap() >= 8192, "{size}");
}

/// A program that closes or allocates by its limit gets no other one after an update of agentd.
#[test]
fn a_successor_gives_services_the_limits_that_the_first_manager_was_started_with() {
    let setup = Setup::new("descriptors-again").wrapper(&["prlimit", "--nofile=1000:2000"]);
    let out = setup.path("out").display().to_string();
    let text = format!(
        "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"ulimit -Sn; ulimit -Hn\"]\nStandardOutput = \"append:{out}\"\n"
    );
    setup.unit("limits.service", &text);
    let mut manager = setup.start();
    for _ in 0..2 {
        manager.ok(&["start", "limits"]);
        manager.ok(&["daemon-reexec"]);
    }
    manager.ok(&["start", "limits"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "1000\n2000\n".repeat(3));
}
