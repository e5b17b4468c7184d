//! What is left of a spawn that fails: a step, a sentence, and no process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::fd::AsFd;

use agentd_linux::cgroup::{CgroupRoot, Place};
use agentd_linux::reap::reap_one;
use agentd_linux::rlimit::{Resource, Rlimit};
use agentd_linux::spawn::{
    Identity, Policy, Scheduling, SpawnPlan, Spawner, Step, UserMap, WorkingDirectory,
};
use common::{alone, c, is_root, plan, spawners};

/// A step, what makes it fail, and what is said.
type Case = (Step, i32, &'static str, fn(&mut SpawnPlan<'_>));

fn folder(plan: &mut SpawnPlan<'_>, path: &str) {
    plan.working_directory = Some(WorkingDirectory { path: c(path), optional: false });
}

const CASES: [Case; 13] = [
    (Step::PrivateUsers, libc::EINVAL, "cannot have users of its own (PrivateUsers)", |plan| {
        plan.namespaces.users = Some(UserMap { uids: "0 0 1\n".into(), gids: "0 0 x\n".into() });
    }),
    (Step::OomAdjust, libc::EINVAL, "cannot set the OOM score to 5000", |plan| {
        plan.oom_score_adjust = Some(5000)
    }),
    (Step::Limits, libc::EINVAL, "cannot set LimitCORE=2:1", |plan| {
        plan.rlimits = vec![Rlimit { resource: Resource::Core, soft: 2, hard: 1 }];
    }),
    (Step::CpuAffinity, libc::EINVAL, "cannot run on the processors of CPUAffinity [8191]", |plan| {
        plan.affinity = vec![8191]
    }),
    (Step::IoPriority, libc::EINVAL, "cannot set IOSchedulingClass and IOSchedulingPriority", |plan| {
        plan.io_priority = Some(7 << 13)
    }),
    (Step::SetScheduler, libc::EINVAL, "cannot set CPUSchedulingPolicy", |plan| {
        plan.scheduling = Some(Scheduling { policy: Policy::Fifo, priority: 100, reset_on_fork: false });
    }),
    (Step::Chroot, libc::ENOENT, "cannot take RootDirectory /nonexistent as /", |plan| {
        plan.root_directory = Some(c("/nonexistent"));
    }),
    (Step::Chdir, libc::ENOENT, "cannot enter the folder /nonexistent", |plan| folder(plan, "/nonexistent")),
    (Step::Chdir, libc::ENOTDIR, "cannot enter the folder /etc/passwd", |plan| folder(plan, "/etc/passwd")),
    (Step::Group, libc::EINVAL, "cannot change to group 4294967295", |plan| {
        plan.identity = Some(Identity { uid: 1, gid: u32::MAX, groups: vec![] });
    }),
    (Step::User, libc::EINVAL, "cannot change to user 4294967295", |plan| {
        plan.identity = Some(Identity { uid: u32::MAX, gid: 1, groups: vec![] });
    }),
    (Step::Exec, libc::EACCES, "cannot be executed", |plan| {
        plan.program = agentd_linux::spawn::Program::Path(c("/etc/passwd"));
    }),
    (
        Step::Exec,
        libc::ENOENT,
        "cannot be executed: it, or the interpreter that it names, is not there",
        |plan| {
            plan.program = agentd_linux::spawn::Program::Path(c("/nonexistent"));
        },
    ),
];

/// No child is left, not even a zombie.
fn assert_no_child(case: &str) {
    assert_eq!(reap_one(|_| ()).unwrap(), None, "{case}");
    let children = nix::sys::wait::waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
    assert_eq!(children, Err(nix::errno::Errno::ECHILD), "{case}");
}

#[test]
fn each_step_that_fails_is_named_and_leaves_no_process() {
    alone("each_step_that_fails_is_named_and_leaves_no_process", || {
        if !is_root() {
            return;
        }
        let nobody = Identity { uid: 65534, gid: 65534, groups: vec![] };
        for (kernel, mut spawner) in spawners() {
            for (step, errno, sentence, spoil) in CASES {
                for identity in [None, Some(nobody.clone())] {
                    let case = format!("{kernel} {step} {identity:?}");
                    let mut plan = plan(&["/bin/true"]);
                    plan.identity = identity;
                    spoil(&mut plan);
                    let error = spawner.spawn(&plan).unwrap_err();
                    assert_eq!((error.step, error.source.raw_os_error()), (step, Some(errno)), "{case}");
                    assert_eq!(error.to_string(), format!("{}: {sentence}", error.program), "{case}");
                    assert_no_child(&case);
                }
            }
        }
    });
}

#[test]
fn an_ambient_capability_outside_of_the_bounding_set_is_refused() {
    alone("an_ambient_capability_outside_of_the_bounding_set_is_refused", || {
        if !is_root() {
            return;
        }
        for identity in [None, Some(Identity { uid: 65534, gid: 65534, groups: vec![] })] {
            let mut plan = plan(&["/bin/true"]);
            plan.identity = identity;
            plan.ambient_set = 1 << 10;
            plan.bounding_set = Some(1);
            let error = Spawner::new().unwrap().spawn(&plan).unwrap_err();
            assert_eq!(error.step, Step::Capabilities);
            assert!(error.to_string().ends_with("the ambient set has some that the bounding set lacks"));
            assert_no_child("ambient");
        }
    });
}

#[test]
fn a_user_cannot_become_another() {
    alone("a_user_cannot_become_another", || {
        if !is_root() {
            return;
        }
        let nobody = nix::unistd::Uid::from_raw(65534);
        nix::unistd::setresuid(nobody, nobody, nobody).unwrap();
        let mut plan = plan(&["/bin/true"]);
        plan.identity = Some(Identity { uid: 0, gid: 0, groups: vec![] });
        let error = Spawner::new().unwrap().spawn(&plan).unwrap_err();
        assert_eq!((error.step, error.source.raw_os_error()), (Step::Group, Some(libc::EPERM)));
        assert_no_child("user");
    });
}

#[test]
fn a_folder_that_is_no_cgroup_is_named() {
    alone("a_folder_that_is_no_cgroup_is_named", || {
        let folder = std::fs::File::open("/usr").unwrap();
        for (kernel, mut spawner) in spawners() {
            let mut plan = plan(&["/bin/true"]);
            plan.cgroup = Some(folder.as_fd());
            let error = spawner.spawn(&plan).unwrap_err();
            assert_eq!(error.step, Step::Cgroup, "{kernel}");
            assert_eq!(error.step.exit_status(), Some(219));
            assert_no_child(kernel);
        }
    });
}

#[test]
fn a_child_of_another_user_that_never_gets_to_its_exec_is_killed() {
    alone("a_child_of_another_user_that_never_gets_to_its_exec_is_killed", || {
        if !is_root() {
            return;
        }
        let mut root = CgroupRoot::set_up(Place::Folder("agentd-test-frozen")).unwrap();
        let leaf = root.leaf("system.slice", "frozen.service").unwrap();
        std::fs::write(leaf.path().join("cgroup.freeze"), "1").unwrap();
        let mut spawner = Spawner::new().unwrap().with_exec_timeout(common::DEADLINE);
        let mut plan = plan(&["/bin/true"]);
        plan.identity = Some(Identity { uid: 65534, gid: 65534, groups: vec![] });
        plan.cgroup = Some(leaf.as_fd());
        let error = spawner.spawn(&plan).unwrap_err();
        assert!(error.source.to_string().contains("or one above it, is frozen"), "{error:?}");
        let reaped = common::reap_until(|reaped| !reaped.is_empty());
        let killed = agentd_linux::reap::Exit::Killed { signal: libc::SIGKILL, core: false };
        assert_eq!(reaped.into_values().collect::<Vec<_>>(), [killed]);
        leaf.remove().unwrap();
        root.leave();
    });
}

/// As a unit could do to the next one of its user, again and again.
#[test]
fn a_child_that_is_stopped_before_its_exec_delays_nobody_for_long() {
    alone("a_child_that_is_stopped_before_its_exec_delays_nobody_for_long", || {
        if !is_root() {
            return;
        }
        let mut root = CgroupRoot::set_up(Place::Folder("agentd-test-stopped")).unwrap();
        let leaf = root.leaf("system.slice", "stopped.service").unwrap();
        leaf.freeze().unwrap();
        let mut plan = plan(&["/bin/true"]);
        plan.identity = Some(Identity { uid: 65534, gid: 65534, groups: vec![] });
        plan.cgroup = Some(leaf.as_fd());
        let error = std::thread::scope(|scope| {
            // It stands still until it is stopped.
            scope.spawn(|| {
                let start = std::time::Instant::now();
                while leaf.signal(&[libc::SIGSTOP], []).unwrap() == 0 {
                    assert!(start.elapsed() < common::DEADLINE);
                    std::thread::yield_now();
                }
                leaf.thaw().unwrap();
            });
            Spawner::new().unwrap().spawn(&plan).unwrap_err()
        });
        assert_eq!(error.source.kind(), std::io::ErrorKind::Interrupted, "{error:?}");
        let reaped = common::reap_until(|reaped| !reaped.is_empty());
        let killed = agentd_linux::reap::Exit::Killed { signal: libc::SIGKILL, core: false };
        assert_eq!(reaped.into_values().collect::<Vec<_>>(), [killed]);
        leaf.remove().unwrap();
        root.leave();
    });
}
