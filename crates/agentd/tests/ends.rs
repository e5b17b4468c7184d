//! Many services that end at once, whose cgroups are removed on a thread of its own: an end means what it means for one.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::cases::is_root;
use common::{Manager, Setup, is_alive};

/// How often all are ended and begun again.
const ROUNDS: usize = 5;

/// Its main process ends when it is asked to; another one does not.
const STAYS: &str = "TimeoutStopSec = \"300ms\"\nExecStart = [\"/bin/sh\", \"-c\", \
    \"(trap '' TERM; while :; do sleep 1000; done) & echo $! >$0; exec sleep 1000\", \"PID-FILE\"]";

fn services(setup: &Setup) -> Vec<String> {
    let pid_file = setup.path("stays.pid");
    let kinds = [
        "ExecStart = \"/bin/sleep 1000\"".to_owned(),
        "ExecStart = \"/bin/sleep 1000\"".to_owned(),
        "ExecStart = \"/bin/sleep 1000\"\nExecStopPost = \"/bin/true\"".to_owned(),
    ];
    let mut names: Vec<String> = (0..30)
        .map(|number| {
            let name = format!("s{number}.service");
            setup.unit(
                &name,
                &format!("[Unit]\nStartLimitIntervalSec = 0\n[Service]\n{}\n", kinds[number % kinds.len()]),
            );
            name
        })
        .collect();
    let stays = STAYS.replace("PID-FILE", &pid_file.display().to_string());
    setup.unit("stays.service", &format!("[Unit]\nStartLimitIntervalSec = 0\n[Service]\n{stays}\n"));
    names.push("stays.service".into());
    names
}

/// The process lives in the cgroup of its unit: that was not removed under it.
fn is_at_home(manager: &Manager, unit: &str) -> bool {
    let pid = manager.main_pid(unit);
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    pid > 0 && cgroup.lines().any(|line| line.ends_with(&format!("/{unit}")))
}

/// The process that stays, once it has told its number.
fn helper(manager: &mut Manager) -> u32 {
    let file = manager.path("stays.pid");
    let read = || fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
    manager.until("no helper tells its number", |_| read().is_some());
    let pid = read().unwrap();
    fs::remove_file(&file).unwrap();
    pid
}

#[test]
fn services_that_end_at_once_leave_nothing_and_can_begin_again_at_once() {
    if !is_root() {
        return; // Without cgroups there is none to be removed.
    }
    let setup = Setup::new("ends");
    let names = services(&setup);
    setup.unit("default.target", &format!("[Unit]\nWants = {names:?}\n"));
    let mut manager = setup.start();
    let words = |verb: &'static str| -> Vec<&str> {
        [verb].into_iter().chain(names.iter().map(String::as_str)).collect()
    };
    for round in 0..ROUNDS {
        for name in &names {
            manager.until(&format!("{name} is not in its cgroup in round {round}"), |m| is_at_home(m, name));
        }
        let helper = helper(&mut manager);
        // Half of the rounds begin them again before all have ended.
        if round % 2 == 0 {
            drop(manager.ctl(&words("stop")));
            assert!(!is_alive(helper), "stopped while a process of it lived");
            for name in &names {
                assert_eq!(manager.property(name, "ControlGroup"), "", "{name}");
            }
            manager.ok(&words("start"));
        } else {
            manager.ok(&words("restart"));
            assert!(!is_alive(helper), "begun again while a process of the last run lived");
        }
    }
    let threads = fs::read_dir(format!("/proc/{}/task", manager.pid())).unwrap();
    let named = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    assert_eq!(threads.filter(|task| named(task.as_ref().unwrap()) == "sweeper\n").count(), 1);
}
