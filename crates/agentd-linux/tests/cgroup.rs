//! Leaves on a real cgroup v2, without controllers: birth, signals, kill, removal, events.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::Duration;

use agentd_linux::cgroup::{CgroupRoot, Changed, EventsWatch, Leaf, Place, Removal, of_process};
use agentd_linux::epoll::Epoll;
use agentd_linux::reap::{Exit, become_subreaper};
use agentd_linux::rlimit::{Resource, Rlimit};
use agentd_linux::spawn::{Births, Child, Identity, Spawner, Stdio};
use common::{DEADLINE, Probe, alone, is_root, plan, reap_until, shell, spawners, wait_for};

/// Runs a test in a part of the tree of its own, which must be gone afterwards.
fn in_a_tree(name: &str, body: impl FnOnce(&mut CgroupRoot)) {
    alone(name, || {
        if !is_root() {
            return;
        }
        become_subreaper().unwrap();
        let mut root = CgroupRoot::set_up(Place::Folder(&format!("agentd-test-{name}"))).unwrap();
        body(&mut root);
        let folder = root.folder().to_owned();
        root.leave();
        assert!(!folder.exists(), "{} is left", folder.display());
    });
}

/// Waits until the leaf has no process.
fn wait_empty(watch: &EventsWatch, leaf: &Leaf) {
    let epoll = Epoll::new().unwrap();
    epoll.add(watch, 0).unwrap();
    while leaf.is_populated().unwrap() {
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(DEADLINE)).unwrap();
        assert!(!ready.is_empty(), "still {:?}", leaf.processes().unwrap());
        watch.read(&mut Vec::new()).unwrap();
    }
}

#[test]
fn a_process_is_born_in_its_leaf() {
    in_a_tree("a_process_is_born_in_its_leaf", |root| {
        for (kernel, mut spawner) in spawners() {
            let leaf = root.leaf("a-b.slice", "x.service").unwrap();
            assert!(leaf.cgroup().ends_with("/a.slice/a-b.slice/x.service"), "{}", leaf.cgroup());
            for identity in [None, Some(Identity { uid: 64_123, gid: 64_123, groups: vec![] })] {
                let mut plan = plan(&["cat"]);
                plan.cgroup = Some(leaf.as_fd());
                plan.identity = identity;
                let probe = Probe::start(&mut spawner, &plan);
                let cgroup = of_process(probe.child.pid).unwrap().unwrap();
                assert_eq!(cgroup, leaf.cgroup(), "{kernel}");
                assert_eq!(root.unit_of(&cgroup), Some("x.service"));
                assert_eq!(leaf.processes().unwrap(), [probe.child.pid]);
                assert_eq!(leaf.remove().unwrap(), Removal::Busy, "{kernel}");
                probe.finish();
            }
            assert_eq!(leaf.remove().unwrap(), Removal::Removed, "{kernel}");
            assert_eq!(leaf.remove().unwrap(), Removal::Removed, "{kernel}: once more is no error");
        }
    });
}

#[test]
fn the_manager_lives_in_init_scope() {
    in_a_tree("the_manager_lives_in_init_scope", |root| {
        let own = of_process(std::process::id()).unwrap().unwrap();
        assert!(own.ends_with("/agentd-test-the_manager_lives_in_init_scope/init.scope"), "{own}");
        assert_eq!(root.unit_of(&own), None);
        let again = CgroupRoot::set_up(Place::Folder("agentd-test-the_manager_lives_in_init_scope")).unwrap();
        assert_eq!(again.folder(), root.folder(), "a manager that is started again finds its part");
    });
}

#[test]
fn a_zombie_still_tells_whose_it_was_and_does_not_populate() {
    in_a_tree("a_zombie_still_tells_whose_it_was_and_does_not_populate", |root| {
        let leaf = root.leaf("system.slice", "z.service").unwrap();
        let mut watch = EventsWatch::new().unwrap();
        watch.add(&leaf, 1).unwrap();
        let mut plan = plan(&["/bin/true"]);
        plan.cgroup = Some(leaf.as_fd());
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        wait_empty(&watch, &leaf);
        assert_eq!(of_process(child.pid).unwrap().as_deref(), Some(leaf.cgroup()));
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
        assert_eq!(of_process(child.pid).unwrap().as_deref(), Some(leaf.cgroup()), "removed under it");
        wait_for(child.pid);
    });
}

#[test]
fn what_moves_into_a_cgroup_that_was_killed_lives() {
    in_a_tree("what_moves_into_a_cgroup_that_was_killed_lives", |root| {
        let leaf = root.leaf("system.slice", "k.service").unwrap();
        assert!(!leaf.was_killed());
        leaf.kill().unwrap();
        assert!(leaf.was_killed());
        let mut plan = shell("exit 7");
        (plan.cgroup, plan.moves) = (Some(leaf.as_fd()), true);
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        assert_eq!(wait_for(child.pid), Exit::Exited(7));
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
    });
}

#[test]
fn a_child_that_is_born_into_a_frozen_cgroup_is_killed_soon() {
    in_a_tree("a_child_that_is_born_into_a_frozen_cgroup_is_killed_soon", |root| {
        let leaf = root.leaf("work.slice", "f.service").unwrap();
        let freeze = leaf.path().parent().unwrap().join("cgroup.freeze");
        std::fs::write(&freeze, "1").unwrap();
        let mut spawner = Spawner::new().unwrap().with_exec_timeout(DEADLINE);
        let mut plan = shell("exit 7");
        plan.cgroup = Some(leaf.as_fd());
        let error = spawner.spawn(&plan).unwrap_err();
        assert!(format!("{error:?}").contains("or one above it, is frozen"), "{error:?}");
        let mut births = Births::new(spawner);
        let mut plan = shell("exit 7");
        plan.cgroup = Some(leaf.as_fd());
        births.begin(plan, ()).unwrap();
        let ((), result) = births.answer().unwrap();
        let error = result.unwrap_err();
        assert!(format!("{error:?}").contains("or one above it, is frozen"), "{error:?}");
        std::fs::write(&freeze, "0").unwrap();
        let dead = reap_until(|reaped| reaped.len() == 2);
        assert!(dead.values().all(|exit| *exit == Exit::Killed { signal: libc::SIGKILL, core: false }));
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
    });
}

/// Where nothing says why it stands, it is given up at the end of its time.
#[test]
fn a_child_that_does_not_reach_its_exec_is_killed_in_time() {
    in_a_tree("a_child_that_does_not_reach_its_exec_is_killed_in_time", |root| {
        let leaf = root.leaf("system.slice", "s.service").unwrap();
        let mut spawner = Spawner::new().unwrap().with_exec_timeout(Duration::from_millis(50));
        // On a machine with much else to do it may be seen while it is frozen.
        let said = (0..20).map(|_| {
            leaf.freeze().unwrap();
            let mut plan = shell("exit 7");
            plan.cgroup = Some(leaf.as_fd());
            let error = std::thread::scope(|scope| {
                // It stands still until it is stopped.
                scope.spawn(|| {
                    let start = std::time::Instant::now();
                    while leaf.signal(&[libc::SIGSTOP], []).unwrap() == 0 {
                        assert!(start.elapsed() < DEADLINE);
                        std::thread::yield_now();
                    }
                    leaf.thaw().unwrap();
                });
                spawner.spawn(&plan).unwrap_err()
            });
            let dead = reap_until(|reaped| reaped.len() == 1);
            assert!(dead.values().all(|exit| *exit == Exit::Killed { signal: libc::SIGKILL, core: false }));
            format!("{error:?}")
        });
        let in_time = |said: &String| said.contains("did not reach its exec within 50ms");
        assert!({ said }.any(|said| in_time(&said)));
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
    });
}

#[test]
fn one_watch_tells_which_leaf_became_empty() {
    in_a_tree("one_watch_tells_which_leaf_became_empty", |root| {
        let mut spawner = Spawner::new().unwrap();
        let mut watch = EventsWatch::new().unwrap();
        let leaves: Vec<Leaf> =
            (0..3).map(|n| root.leaf("system.slice", &format!("{n}.service")).unwrap()).collect();
        let mut probes: Vec<Probe> = Vec::new();
        for (key, leaf) in (0..).zip(&leaves) {
            watch.add(leaf, key).unwrap();
            let mut plan = plan(&["cat"]);
            plan.cgroup = Some(leaf.as_fd());
            probes.push(Probe::start(&mut spawner, &plan));
        }
        let populated: HashSet<Changed> = (0..3).map(Changed::Population).collect();
        collect_until(&watch, |changes| *changes == populated);
        probes.remove(1).finish();
        collect_until(&watch, |changes| changes.contains(&Changed::Population(1)));
        assert_eq!(leaves.iter().map(|l| l.is_populated().unwrap()).collect::<Vec<_>>(), [true, false, true]);
        watch.remove(0);
        for probe in probes {
            probe.finish();
        }
        // The kernel tells a moment later, so what must not be told is looked for once the last was.
        let told = collect_until(&watch, |changes| changes.contains(&Changed::Population(2)));
        assert!(!told.contains(&Changed::Population(0)), "what is not watched is not told");
        for leaf in &leaves {
            assert_eq!(leaf.remove().unwrap(), Removal::Removed);
        }
        watch.remove(2);
        watch.remove(2);
    });
}

/// Reads changes until the condition holds of them.
fn collect_until(watch: &EventsWatch, done: impl Fn(&HashSet<Changed>) -> bool) -> HashSet<Changed> {
    let epoll = Epoll::new().unwrap();
    epoll.add(watch, 0).unwrap();
    let mut changes = Vec::new();
    while !done(&changes.iter().copied().collect()) {
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(DEADLINE)).unwrap();
        assert!(!ready.is_empty(), "only {changes:?}");
        watch.read(&mut changes).unwrap();
    }
    changes.into_iter().collect()
}

#[test]
fn a_fork_bomb_is_killed_at_once() {
    in_a_tree("a_fork_bomb_is_killed_at_once", |root| {
        let leaf = root.leaf("system.slice", "bomb.service").unwrap();
        let mut watch = EventsWatch::new().unwrap();
        watch.add(&leaf, 1).unwrap();
        let (output, stdout) = std::io::pipe().unwrap();
        // A shell that cannot fork ends: what sleeps is there to be seen all the same.
        let mut plan = shell("b() { setsid sh -c 'while :; do (:) & sleep 1000 & done' & b; }; echo; b");
        plan.stdio[1] = Stdio::Fd(stdout.as_fd());
        plan.cgroup = Some(leaf.as_fd());
        // The bomb is bounded by the processes of a user that nobody else is.
        plan.identity = Some(Identity { uid: 64_777, gid: 64_777, groups: vec![] });
        plan.rlimits = vec![Rlimit { resource: Resource::Nproc, soft: 200, hard: 200 }];
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        let start = std::time::Instant::now();
        while leaf.processes().unwrap().len() < 50 {
            assert!(start.elapsed() < DEADLINE);
            std::thread::yield_now();
        }
        leaf.kill().unwrap();
        wait_empty(&watch, &leaf);
        assert_eq!(leaf.processes().unwrap(), []);
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
        drop((output, stdout));
        let reaped = reap_until(|reaped| reaped.contains_key(&child.pid));
        assert!(matches!(reaped[&child.pid], Exit::Killed { signal: libc::SIGKILL, .. } | Exit::Exited(_)));
    });
}

#[test]
fn a_signal_reaches_each_process_of_the_leaf_and_no_other() {
    in_a_tree("a_signal_reaches_each_process_of_the_leaf_and_no_other", |root| {
        let mut spawner = Spawner::new().unwrap();
        let leaf = root.leaf("system.slice", "many.service").unwrap();
        let mut plan = plan(&["/bin/sleep", "1000"]);
        let stranger = spawner.spawn(&plan).unwrap();
        plan.cgroup = Some(leaf.as_fd());
        let all: Vec<Child> = (0..20).map(|_| spawner.spawn(&plan).unwrap()).collect();
        let pids: HashSet<u32> = all.iter().map(|child| child.pid).collect();
        assert_eq!(leaf.remove_empty().unwrap(), Removal::Busy);
        // Those that the caller holds get it once as well.
        let known = all.iter().take(5).map(|child| (child.pid, &child.pidfd));
        assert_eq!(leaf.signal(&[libc::SIGUSR1], known).unwrap(), 20);
        let reaped = reap_until(|reaped| reaped.len() == 20);
        let by_usr1 = Exit::Killed { signal: libc::SIGUSR1, core: false };
        assert_eq!(reaped.keys().copied().collect::<HashSet<_>>(), pids);
        assert!(reaped.values().all(|exit| *exit == by_usr1), "{reaped:?}");
        stranger.pidfd.send_signal(libc::SIGTERM).unwrap();
        assert_eq!(wait_for(stranger.pid), Exit::Killed { signal: libc::SIGTERM, core: false });
        assert_eq!(leaf.signal(&[libc::SIGTERM], []).unwrap(), 0, "an empty leaf is no error");
        let below = leaf.path().join("below");
        std::fs::create_dir(&below).unwrap();
        assert_eq!(leaf.remove_empty().unwrap(), Removal::Busy, "a cgroup is in it");
        std::fs::remove_dir(&below).unwrap();
        assert_eq!(leaf.remove_empty().unwrap(), Removal::Removed);
        assert_eq!(leaf.remove().unwrap(), Removal::Removed, "it is gone");
        assert_eq!(leaf.signal(&[libc::SIGTERM], []).unwrap(), 0, "nor is one that is gone");
        leaf.kill().unwrap();
        assert!(!leaf.is_populated().unwrap());
    });
}

#[test]
fn cgroups_that_the_unit_made_go_with_it() {
    in_a_tree("cgroups_that_the_unit_made_go_with_it", |root| {
        let leaf = root.leaf("system.slice", "delegated.service").unwrap();
        for below in ["a/b/c", "d/e"] {
            std::fs::create_dir_all(leaf.path().join(below)).unwrap();
        }
        let mut plan = plan(&["/bin/sleep", "1000"]);
        let deep = std::fs::File::open(leaf.path().join("a/b/c")).unwrap();
        plan.cgroup = Some(deep.as_fd());
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        assert_eq!(leaf.processes().unwrap(), [child.pid]);
        assert!(leaf.is_populated().unwrap());
        assert_eq!(leaf.remove().unwrap(), Removal::Busy);
        leaf.kill().unwrap();
        wait_for(child.pid);
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
        assert!(!leaf.path().exists());
    });
}

#[test]
fn a_later_run_of_the_same_name_is_not_touched_through_an_older_leaf() {
    in_a_tree("a_later_run_of_the_same_name_is_not_touched_through_an_older_leaf", |root| {
        let old = root.leaf("system.slice", "again.service").unwrap();
        assert_eq!(old.remove().unwrap(), Removal::Removed);
        let new = root.leaf("system.slice", "again.service").unwrap();
        let mut plan = plan(&["cat"]);
        plan.cgroup = Some(new.as_fd());
        let probe = Probe::start(&mut Spawner::new().unwrap(), &plan);
        old.kill().unwrap();
        assert_eq!(old.processes().unwrap(), []);
        assert!(!old.is_populated().unwrap());
        probe.finish();
        assert_eq!(new.remove().unwrap(), Removal::Removed);
    });
}
