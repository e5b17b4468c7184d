//! The reaper, against what the kernel does to signals and orphans.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::AsFd;

use agentd_linux::pidfd::{Delivery, PidFd};
use agentd_linux::reap::{Exit, Reaped, become_subreaper, reap_one, reap_unseen};
use agentd_linux::spawn::{Spawner, Stdio};
use agentd_linux::tree::Tree;
use common::{alone, c, plan, reap_until, shell, wait_for, wait_for_a_zombie};

#[test]
fn a_thousand_exits_at_once_are_all_reaped_with_their_status() {
    alone("a_thousand_exits_at_once_are_all_reaped_with_their_status", || {
        const COUNT: usize = 1_000;
        let mut spawner = Spawner::new().unwrap();
        let (gate, open) = std::io::pipe().unwrap();
        let mut expected = BTreeMap::new();
        for number in 0..COUNT {
            let status = (number % 200) as u8;
            let mut plan = shell(&format!("read x; exit {status}"));
            plan.stdio[0] = Stdio::Fd(gate.as_fd());
            expected.insert(spawner.spawn(&plan).unwrap().pid, Exit::Exited(status));
        }
        drop(open);
        assert_eq!(reap_until(|reaped| reaped.len() == COUNT), expected);
        assert_eq!(reap_one(|_| ()).unwrap(), None);
    });
}

#[test]
fn a_zombie_is_looked_at_before_its_number_is_free() {
    alone("a_zombie_is_looked_at_before_its_number_is_free", || {
        let child = Spawner::new().unwrap().spawn(&plan(&["/bin/true"])).unwrap();
        let start = std::time::Instant::now();
        while !child.pidfd.has_ended().unwrap() {
            assert!(start.elapsed() < common::DEADLINE);
            std::thread::yield_now();
        }
        let state = |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (reaped, stat) = reap_one(state).unwrap().unwrap();
        assert_eq!((reaped.pid, reaped.exit), (child.pid, Exit::Exited(0)));
        assert!(stat.contains(") Z "), "{stat}");
        assert!(PidFd::open(child.pid).unwrap().is_none());
        assert_eq!(child.pidfd.send_signal(libc::SIGKILL).unwrap(), Delivery::Gone);
    });
}

#[test]
fn signals_and_statuses_are_told_apart() {
    alone("signals_and_statuses_are_told_apart", || {
        let mut spawner = Spawner::new().unwrap();
        for (script, exit) in [
            ("exit 9", Exit::Exited(9)),
            ("exit 255", Exit::Exited(255)),
            ("exit 300", Exit::Exited(44)),
            ("kill -9 $$", Exit::Killed { signal: 9, core: false }),
            ("kill -37 $$", Exit::Killed { signal: 37, core: false }),
            ("ulimit -c 0; kill -SEGV $$", Exit::Killed { signal: 11, core: false }),
        ] {
            let child = spawner.spawn(&shell(script)).unwrap();
            assert_eq!(wait_for(child.pid), exit, "{script}");
            let pid = spawner.spawn(&shell(script)).unwrap().pid;
            wait_for_a_zombie();
            assert_eq!(reap_unseen().unwrap(), Some(Reaped { pid, exit }), "{script}");
        }
        assert_eq!(reap_unseen().unwrap(), None, "no child is left");
    });
}

#[test]
fn orphans_come_to_us_and_are_reaped() {
    alone("orphans_come_to_us_and_are_reaped", || {
        become_subreaper().unwrap();
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c \"exit $i\" & ); done";
        let child = Spawner::new().unwrap().spawn(&shell(script)).unwrap();
        // Ten grandchildren; the subshells between are reaped by the script.
        let orphans = |reaped: &BTreeMap<u32, Exit>| {
            let statuses = reaped.iter().filter(|(pid, _)| **pid != child.pid).map(|(_, exit)| exit.code());
            statuses.collect::<BTreeSet<u8>>()
        };
        let all = reap_until(|reaped| orphans(reaped).len() == 10 && reaped.contains_key(&child.pid));
        assert_eq!(orphans(&all), (1..=10).collect());
        assert_eq!(all[&child.pid], Exit::Exited(0));
    });
}

#[test]
fn a_tree_without_a_cgroup_is_killed_with_the_daemons_that_left_it() {
    alone("a_tree_without_a_cgroup_is_killed_with_the_daemons_that_left_it", || {
        become_subreaper().unwrap();
        let (mut output, stdout) = std::io::pipe().unwrap();
        // A child, one in a session of its own, one whose parents are gone, and one that has no environment but
        // is below its parent.
        let script = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & exit' & ) ; \
                      env -i sleep 1000 & echo ready; wait";
        let mut plan = shell(script);
        let mark = format!("INVOCATION_ID=test-of-{}", std::process::id());
        plan.envp.push(c(&mark));
        plan.stdio[1] = Stdio::Fd(stdout.as_fd());
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        let stranger = Spawner::new().unwrap().spawn(&common::plan(&["/bin/sleep", "1000"])).unwrap();
        drop(stdout);
        output.read_exact(&mut [0; 6]).unwrap();
        let roots = [child.pid];
        let tree = Tree { roots: &roots, mark: &mark };
        let start = std::time::Instant::now();
        // The script and four sleepers; the shells between have come and gone.
        let is_sleeper =
            |pid: &u32| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == b"sleep\n");
        let is_settled =
            |pids: Vec<u32>| pids.len() == 5 && pids.iter().filter(|pid| is_sleeper(pid)).count() == 4;
        while !is_settled(tree.processes().unwrap()) {
            assert!(start.elapsed() < common::DEADLINE, "{:?}", tree.processes().unwrap());
            std::thread::yield_now();
        }
        assert_eq!(tree.signal(libc::SIGKILL).unwrap(), 5);
        // Whether the shell reaps its sleepers and exits before its own signal comes is chance; that nobody is left
        // is not.
        wait_for(child.pid);
        while !tree.processes().unwrap().is_empty() {
            assert!(start.elapsed() < common::DEADLINE, "{:?}", tree.processes().unwrap());
            std::thread::yield_now();
        }
        assert_eq!(stranger.pidfd.send_signal(libc::SIGKILL).unwrap(), Delivery::Sent, "it still runs");
        wait_for(stranger.pid);
    });
}
