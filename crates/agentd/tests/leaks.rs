//! Thousands of lives of services leave nothing behind in the manager: no descriptor, no zombie, no cgroup, no memory, no
//! file.
//! `AGENTD_LIVES` says how many, 3,000 by default.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Manager, Setup};

/// How many lives of each kind.
fn lives() -> u64 {
    std::env::var("AGENTD_LIVES").map_or(3_000, |text| text.parse().unwrap())
}

/// So many come before the manager is looked at: until then its logs fill the room that they may take.
const WARM: u64 = 1_500;

/// How much resident memory may differ between then and the last life, in KiB.
const SLACK: u64 = 1024;

/// What a manager holds.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    zombies: usize,
    cgroups: usize,
    mounts: usize,
    threads: usize,
    /// Entries of the runtime folder and of the folder of stamps.
    files: Vec<String>,
}

impl Held {
    /// A client that is just leaving may be seen in either, so more before is no fault.
    fn is_within(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.zombies <= before.zombies
            && self.cgroups <= before.cgroups
            && self.mounts <= before.mounts
            && self.threads <= before.threads
            && self.files.len() <= before.files.len()
    }

    fn by(manager: &Manager) -> Self {
        let pid = manager.pid();
        let count = |path: String| fs::read_dir(path).unwrap().count();
        Self {
            descriptors: count(format!("/proc/{pid}/fd")),
            zombies: zombies(pid),
            cgroups: cgroups(pid),
            mounts: fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap().lines().count(),
            threads: count(format!("/proc/{pid}/task")),
            files: files(manager),
        }
    }
}

/// The cgroups around that of the manager, which units have beside it; 0 where it has none.
fn cgroups(pid: u32) -> usize {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let tree =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|part| part[2] == "cgroup2");
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")?.strip_suffix("init.scope"));
    let (Some(tree), Some(own)) = (tree, own) else { return 0 };
    let found = Command::new("find").arg(Path::new(tree[1]).join(own)).args(["-type", "d"]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().count()
}

fn files(manager: &Manager) -> Vec<String> {
    let folders =
        ["run", "state/stamps"].into_iter().flat_map(|part| fs::read_dir(manager.path(part)).unwrap());
    let mut names: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn zombies(parent: u32) -> usize {
    let of_parent = |stat: &str| {
        let rest = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
        rest.is_some_and(|rest| rest[0] == "Z" && rest[1] == parent.to_string())
    };
    let stats = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats.filter(|stat| of_parent(stat)).count()
}

/// Resident memory in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A client that stays: ten thousand programs would be what is measured otherwise.
struct Client(UnixStream);

impl Client {
    fn call(&mut self, method: &str, unit: &str) -> String {
        let call =
            format!("{{\"method\":\"io.agentd.Manager.{method}\",\"parameters\":{{\"unit\":\"{unit}\"}}}}\0");
        self.0.write_all(call.as_bytes()).unwrap();
        let mut reply = Vec::new();
        let mut byte = [0];
        loop {
            self.0.read_exact(&mut byte).unwrap();
            if byte[0] == 0 {
                return String::from_utf8(reply).unwrap();
            }
            reply.push(byte[0]);
        }
    }
}

/// Waits until nothing more is on its way, and holds what is held against what was.
fn expect_the_same(manager: &mut Manager, before: &Held, memory: u64, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !Held::by(manager).is_within(before) {
        manager.collect();
        assert!(Instant::now() < deadline, "{what}: {before:?} have become {:?}", Held::by(manager));
    }
    let after = resident(manager.pid());
    println!("{what}: {memory} KiB became {after} KiB; {before:?}");
    assert!(after <= memory + SLACK, "{what}: {memory} KiB have become {after} KiB");
}

#[test]
fn thousands_of_starts_and_stops_leave_nothing_behind() {
    let setup = Setup::new("leak-stop");
    setup.unit(
        "one.service",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Unit]\nStartLimitIntervalSec = 0\n",
    );
    let mut manager = setup.start();
    let mut client = Client(UnixStream::connect(manager.path("run/control.sock")).unwrap());
    let cycles = |client: &mut Client, count| {
        for _ in 0..count {
            for method in ["StartUnit", "StopUnit"] {
                let reply = client.call(method, "one.service");
                assert!(!reply.contains("\"error\""), "{method}: {reply}");
            }
        }
    };
    cycles(&mut client, WARM);
    let (before, memory) = (Held::by(&manager), resident(manager.pid()));
    cycles(&mut client, lives());
    expect_the_same(&mut manager, &before, memory, "starts and stops");
}

#[test]
fn thousands_of_crashes_leave_nothing_behind() {
    let setup = Setup::new("leak-crash");
    setup.unit(
        "one.service",
        "[Service]\nExecStart = [\"/bin/false\"]\nRestart = \"always\"\nRestartSec = 0\n[Unit]\nStartLimitIntervalSec = 0\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "one"]);
    let until = |manager: &mut Manager, lives: u64| {
        // Nothing tells of the three-thousandth life, and each look costs a program.
        let deadline = Instant::now() + Duration::from_secs(600);
        while manager.property("one", "NRestarts").parse::<u64>().unwrap() < lives {
            manager.collect();
            assert!(Instant::now() < deadline, "there are no {lives} lives\n{}", manager.everything());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    // A service that is between two lives at the moment has other descriptors than one that is not.
    let at_rest = |manager: &mut Manager| {
        manager.ok(&["stop", "one"]);
        (Held::by(manager), resident(manager.pid()))
    };
    until(&mut manager, WARM);
    let (before, memory) = at_rest(&mut manager);
    manager.ok(&["start", "one"]);
    until(&mut manager, lives());
    manager.ok(&["stop", "one"]);
    expect_the_same(&mut manager, &before, memory, "crashes");
}
