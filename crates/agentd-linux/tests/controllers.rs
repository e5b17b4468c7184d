//! Limits that hold, on a machine with cgroup v2 alone and all controllers: the virtual machine of the tests.
//!
//! Ignored where the kernel's controllers may be bound to v1; run with `--ignored` there, as root, each test fails
//! if a controller is missing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::fd::AsFd;

use agentd_linux::cgroup::{
    CgroupRoot, Changed, Controller, EventsWatch, INFINITY, Leaf, Limits, MemoryEvents, Place, Removal,
};
use agentd_linux::epoll::Epoll;
use agentd_linux::reap::Exit;
use agentd_linux::spawn::{Spawner, Stdio, Step};
use common::{DEADLINE, alone, plan, shell, text, wait_for};

/// Runs a test at the root of the tree, which is all ours.
fn as_the_machines_manager(name: &str, body: impl FnOnce(&mut CgroupRoot)) {
    alone(name, || {
        let mut root = CgroupRoot::set_up(Place::Whole).unwrap();
        for controller in Controller::ALL {
            assert!(root.enforceable().has(controller), "{} of {:?}", controller.name(), root.problems());
        }
        assert!(root.problems().is_empty(), "{:?}", root.problems());
        body(&mut root);
    });
}

fn file(leaf: &Leaf, name: &str) -> String {
    std::fs::read_to_string(leaf.path().join(name)).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs cgroup v2 with all controllers"]
fn every_limit_stands_in_its_file() {
    as_the_machines_manager("every_limit_stands_in_its_file", |root| {
        let leaf = root.leaf("a-b.slice", "limits.service").unwrap();
        let limits = Limits {
            memory_min: Some(1 << 20),
            memory_low: Some(2 << 20),
            memory_high: Some(40 << 20),
            memory_max: Some(48 << 20),
            memory_swap_max: Some(0),
            memory_zswap_max: None,
            oom_group: true,
            tasks_max: Some(20),
            cpu_quota: Some(15_000),
            cpu_period: None,
            cpu_weight: Some(50),
            cpu_idle: None,
            io_weight: Some(200),
            io_weights: Vec::new(),
            io_bounds: Vec::new(),
            allowed_cpus: Some("0".into()),
            allowed_nodes: None,
        };
        assert_eq!(limits.missing(root.enforceable()), []);
        leaf.limit(&limits, root.enforceable()).unwrap();
        for (name, value) in [
            ("memory.min", "1048576"),
            ("memory.low", "2097152"),
            ("memory.high", "41943040"),
            ("memory.max", "50331648"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", "20"),
            ("cpu.max", "150000 100000"),
            ("cpu.weight", "50"),
            ("cpuset.cpus", "0"),
        ] {
            assert_eq!(file(&leaf, name), value, "{name}");
        }
        // A later change: every limit can be taken away again.
        let none = Limits { memory_max: Some(INFINITY), cpu_quota: Some(INFINITY), ..Limits::default() };
        leaf.limit(&none, root.enforceable()).unwrap();
        assert_eq!((file(&leaf, "memory.max"), file(&leaf, "cpu.max")), ("max".into(), "max 100000".into()));
        assert_eq!(leaf.remove().unwrap(), Removal::Removed);
    });
}

#[test]
#[ignore = "needs cgroup v2 with all controllers"]
fn a_value_that_the_kernel_refuses_is_named() {
    as_the_machines_manager("a_value_that_the_kernel_refuses_is_named", |root| {
        let leaf = root.leaf("system.slice", "refused.service").unwrap();
        let limits = Limits { cpu_weight: Some(20_000), ..Limits::default() };
        let error = leaf.limit(&limits, root.enforceable()).unwrap_err();
        let path = leaf.path().join("cpu.weight");
        assert_eq!(error.to_string(), format!("cannot write '20000' to {}", path.display()));
        assert_eq!(error.errno(), Some(libc::ERANGE));
        leaf.remove().unwrap();
    });
}

#[test]
#[ignore = "needs cgroup v2 with all controllers"]
fn what_takes_too_much_memory_is_killed_and_it_is_told() {
    as_the_machines_manager("what_takes_too_much_memory_is_killed_and_it_is_told", |root| {
        let leaf = root.leaf("system.slice", "eater.service").unwrap();
        let limits = Limits { memory_max: Some(16 << 20), memory_swap_max: Some(0), ..Limits::default() };
        leaf.limit(&limits, root.enforceable()).unwrap();
        let mut watch = EventsWatch::new().unwrap();
        watch.add_memory(&leaf, 5).unwrap();
        assert_eq!(leaf.memory_events().unwrap(), Some(MemoryEvents::default()));
        // A variable that doubles until it is too much.
        let mut plan = shell("x=0123456789abcdef; while :; do x=$x$x; done");
        plan.cgroup = Some(leaf.as_fd());
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        assert_eq!(wait_for(child.pid), Exit::Killed { signal: libc::SIGKILL, core: false });
        let events = leaf.memory_events().unwrap().unwrap();
        assert_eq!(events.oom_kill, 1, "{events:?}");
        let epoll = Epoll::new().unwrap();
        epoll.add(&watch, 0).unwrap();
        let mut changes = Vec::new();
        while !changes.contains(&Changed::Memory(5)) {
            let mut ready = Vec::new();
            epoll.wait(&mut ready, Some(DEADLINE)).unwrap();
            assert!(!ready.is_empty(), "only {changes:?}");
            watch.read(&mut changes).unwrap();
        }
        let stats = leaf.stats();
        assert!(stats.memory_peak.unwrap() > 8 << 20, "{stats:?}");
        assert!(stats.cpu_usage_us.unwrap() > 0, "{stats:?}");
        assert_eq!(stats.tasks_current, Some(0));
        leaf.remove().unwrap();
    });
}

#[test]
#[ignore = "needs cgroup v2 with all controllers"]
fn no_more_tasks_are_born_than_allowed() {
    as_the_machines_manager("no_more_tasks_are_born_than_allowed", |root| {
        let leaf = root.leaf("system.slice", "tasks.service").unwrap();
        let limits = Limits { tasks_max: Some(1), ..Limits::default() };
        leaf.limit(&limits, root.enforceable()).unwrap();
        let mut spawner = Spawner::new().unwrap();
        let (output, stdout) = std::io::pipe().unwrap();
        let (stdin, input) = std::io::pipe().unwrap();
        let mut first = shell("read x; (exit 0) && echo forked");
        first.stdio = [Stdio::Fd(stdin.as_fd()), Stdio::Fd(stdout.as_fd()), Stdio::Null];
        first.cgroup = Some(leaf.as_fd());
        let child = spawner.spawn(&first).unwrap();
        drop(first);
        let mut second = plan(&["/bin/true"]);
        second.cgroup = Some(leaf.as_fd());
        let error = spawner.spawn(&second).unwrap_err();
        assert_eq!((error.step, error.source.raw_os_error()), (Step::Fork, Some(libc::EAGAIN)));
        drop((stdin, input, stdout));
        assert_ne!(wait_for(child.pid), Exit::Exited(0));
        assert_eq!(text(output), "", "the shell is its one task and can have no subshell");
        leaf.remove().unwrap();
    });
}

#[test]
#[ignore = "needs cgroup v2 with all controllers"]
fn a_cgroup_with_controllers_for_its_children_takes_no_process() {
    as_the_machines_manager("a_cgroup_with_controllers_for_its_children_takes_no_process", |root| {
        let leaf = root.leaf("system.slice", "inner.service").unwrap();
        let slice = std::fs::File::open(leaf.path().parent().unwrap()).unwrap();
        let mut plan = plan(&["/bin/true"]);
        plan.cgroup = Some(slice.as_fd());
        let error = Spawner::new().unwrap().spawn(&plan).unwrap_err();
        assert_eq!((error.step, error.source.raw_os_error()), (Step::Cgroup, Some(libc::EBUSY)));
        leaf.remove().unwrap();
    });
}
