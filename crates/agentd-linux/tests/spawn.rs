//! What a program finds when it starts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use agentd_linux::reap::Exit;
use agentd_linux::rlimit::{self, Resource, Rlimit};
use agentd_linux::signal;
use agentd_linux::spawn::{Identity, Program, Spawner, Stdio, WorkingDirectory};
use common::{Probe, alone, c, is_root, plan, reap_until, shell, spawners, text, wait_for};

/// Another user, who needs no line in passwd.
fn somebody() -> Identity {
    Identity { uid: 64_123, gid: 64_124, groups: vec![7, 64_125] }
}

/// Makes `fd` appear under this number, open over an exec.
fn at_number(fd: &impl AsFd, number: i32) -> OwnedFd {
    // SAFETY: the number is free in this process, which runs this test alone, or owned by nobody but the test.
    let result = unsafe { libc::dup2(fd.as_fd().as_raw_fd(), number) };
    assert_eq!(result, number);
    // SAFETY: the call succeeded, so the number is open and ours.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[test]
fn exactly_the_descriptors_of_the_plan_are_open() {
    alone("exactly_the_descriptors_of_the_plan_are_open", || {
        let files = ["a", "b"].map(|_| tempfile());
        let leak = at_number(&files[0], 77);
        for (kernel, mut spawner) in spawners() {
            let mut plan = plan(&["cat"]);
            plan.fds = files.iter().map(AsFd::as_fd).collect();
            let probe = Probe::start(&mut spawner, &plan);
            let open = probe.descriptors();
            assert_eq!(open.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{kernel}: {open:?}");
            assert_eq!(open[&2], "/dev/null");
            for (number, file) in [3, 4].iter().zip(&files) {
                assert_eq!(open[number], link_of(file.as_fd()), "{kernel}");
            }
            probe.finish();
        }
        drop(leak);
    });
}

/// A manager of many services has descriptors with high numbers, and its births must neither copy nor change them.
#[test]
fn descriptors_with_high_numbers_arrive_and_the_managers_own_stay_as_they_are() {
    alone("descriptors_with_high_numbers_arrive_and_the_managers_own_stay_as_they_are", || {
        rlimit::raise_nofile().unwrap();
        for (kernel, mut spawner) in spawners() {
            // The first birth takes what the spawner keeps.
            Probe::start(&mut spawner, &plan(&["cat"])).finish();
            let high: Vec<OwnedFd> = (0..20).map(|n| at_number(&tempfile(), 900 + n)).collect();
            let (mut reader, low) = std::io::pipe().unwrap();
            let writer = at_number(&low, 950);
            drop(low);
            let own = || -> Vec<String> {
                let mut own: Vec<String> = (0..1000)
                    .filter_map(|n| {
                        Some(format!("{n} {:?}", std::fs::read_link(format!("/proc/self/fd/{n}")).ok()?))
                    })
                    .collect();
                own.sort();
                own
            };
            // Few enough to be placed, and too many.
            for count in [3, 20] {
                let before = own();
                let mut plan = plan(&["cat"]);
                plan.stdio[1] = Stdio::Fd(writer.as_fd());
                plan.stdio[2] = Stdio::Fd(writer.as_fd());
                plan.fds = high[..count].iter().map(AsFd::as_fd).collect();
                let probe = Probe::start(&mut spawner, &plan);
                let open = probe.descriptors();
                assert_eq!(open.len(), 3 + count, "{kernel}: {open:?}");
                for (number, file) in (3..).zip(&high[..count]) {
                    assert_eq!(open[&number], link_of(file.as_fd()), "{kernel}");
                }
                probe.finish();
                assert_eq!(own(), before, "{kernel}");
            }
            drop(writer);
            let mut rest = Vec::new();
            // The pipe would never end if a copy of its end had stayed anywhere.
            std::io::Read::read_to_end(&mut reader, &mut rest).unwrap();
        }
    });
}

#[test]
fn descriptors_in_each_others_places_all_arrive() {
    alone("descriptors_in_each_others_places_all_arrive", || {
        // Numbers 3 to 8 are what the descriptors are to become, and what they are now, in another order. What the
        // test harness has there it does not need any more.
        let files: Vec<OwnedFd> = (0..6).map(|_| tempfile()).collect();
        let names: Vec<String> = files.iter().map(|file| link_of(file.as_fd())).collect();
        let high: Vec<OwnedFd> = files.iter().zip(100..).map(|(file, n)| at_number(file, n)).collect();
        std::mem::forget(files);
        let low: Vec<OwnedFd> = high.iter().zip(3..9).map(|(file, n)| at_number(file, n)).collect();
        for (kernel, mut spawner) in spawners() {
            for order in [[5, 0, 1, 2, 3, 4], [1, 0, 3, 2, 5, 4], [5, 4, 3, 2, 1, 0], [2, 2, 2, 0, 0, 0]] {
                let (stdin, input) = std::io::pipe().unwrap();
                let mut plan = plan(&["/bin/cat"]);
                plan.stdio[0] = Stdio::Fd(stdin.as_fd());
                plan.stdio[2] = Stdio::Fd(low[3].as_fd());
                plan.fds = order.iter().map(|index| low[*index].as_fd()).collect();
                let probe = Probe::start(&mut spawner, &plan);
                let open = probe.descriptors();
                for (number, index) in (3..).zip(order) {
                    assert_eq!(open[&number], names[index], "{kernel} {order:?}");
                }
                assert_eq!(open[&2], names[3], "{kernel} {order:?}");
                assert_eq!(open.len(), 9, "{kernel} {order:?}: {open:?}");
                drop((stdin, input));
                probe.finish();
            }
        }
        std::mem::forget((low, high));
    });
}

#[test]
fn no_signal_is_blocked_ignored_or_caught() {
    alone("no_signal_is_blocked_ignored_or_caught", || {
        for ignored in [libc::SIGUSR1, libc::SIGHUP, signal::RTMIN + 9] {
            // SAFETY: the disposition runs no code.
            assert_ne!(unsafe { libc::signal(ignored, libc::SIG_IGN) }, libc::SIG_ERR);
        }
        signal::block(&[libc::SIGTERM, libc::SIGCHLD, libc::SIGINT, signal::RTMIN + 3]).unwrap();
        for (kernel, mut spawner) in spawners() {
            for identity in [None, is_root().then(somebody)] {
                let mut plan = plan(&["cat"]);
                plan.identity = identity;
                let probe = Probe::start(&mut spawner, &plan);
                for mask in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
                    assert_eq!(probe.status(mask), "0000000000000000", "{kernel} {mask}");
                }
                probe.child.pidfd.send_signal(libc::SIGTERM).unwrap();
                assert_eq!(wait_for(probe.child.pid), Exit::Killed { signal: libc::SIGTERM, core: false });
            }
        }
    });
}

#[test]
fn the_managers_own_mask_is_as_before() {
    alone("the_managers_own_mask_is_as_before", || {
        signal::block(&[libc::SIGTERM]).unwrap();
        let mask = || own_status("SigBlk");
        let before = mask();
        let probe = Probe::start(&mut Spawner::new().unwrap(), &plan(&["cat"]));
        assert_eq!(mask(), before);
        probe.finish();
    });
}

#[test]
fn session_folder_umask_nice_and_oom_score_are_as_planned() {
    alone("session_folder_umask_nice_and_oom_score_are_as_planned", || {
        for (kernel, mut spawner) in spawners() {
            let mut plan = plan(&["cat"]);
            plan.working_directory = Some(WorkingDirectory { path: c("/usr"), optional: false });
            plan.umask = 0o027;
            plan.nice = Some(7);
            plan.oom_score_adjust = Some(321);
            let probe = Probe::start(&mut spawner, &plan);
            let stat = probe.proc("stat");
            let after_name: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
            // Fields 5, 6 and 19: group, session, nice.
            let pid = probe.child.pid.to_string();
            assert_eq!((after_name[2], after_name[3], after_name[16]), (&*pid, &*pid, "7"), "{kernel}");
            assert_eq!(std::fs::read_link(probe.path("cwd")).unwrap().to_str(), Some("/usr"), "{kernel}");
            assert_eq!(probe.status("Umask"), "0027", "{kernel}");
            assert_eq!(probe.proc("oom_score_adj"), "321\n", "{kernel}");
            assert_ne!(own_file("oom_score_adj"), "321\n", "{kernel}: the manager keeps its own");
            probe.finish();
        }
    });
}

#[test]
fn an_optional_folder_that_is_missing_becomes_the_root() {
    alone("an_optional_folder_that_is_missing_becomes_the_root", || {
        let mut plan = plan(&["cat"]);
        plan.working_directory = Some(WorkingDirectory { path: c("/nonexistent"), optional: true });
        let probe = Probe::start(&mut Spawner::new().unwrap(), &plan);
        assert_eq!(std::fs::read_link(probe.path("cwd")).unwrap().to_str(), Some("/"));
        probe.finish();
    });
}

#[test]
fn only_the_limits_of_the_plan_differ_from_the_managers() {
    alone("only_the_limits_of_the_plan_differ_from_the_managers", || {
        let inherited = rlimit::get(Resource::Nofile).unwrap();
        let original = rlimit::raise_nofile().unwrap();
        assert_eq!(original, inherited);
        let mut spawner = Spawner::new().unwrap();
        let mut plan = plan(&["cat"]);
        plan.rlimits = vec![
            Rlimit { soft: 512, hard: 1024, ..original },
            Rlimit { resource: Resource::Core, soft: 0, hard: 0 },
        ];
        let probe = Probe::start(&mut spawner, &plan);
        assert_eq!(probe.limits("Max open files"), ("512".into(), "1024".into()));
        assert_eq!(probe.limits("Max core file size"), ("0".into(), "0".into()));
        let own = own_file("limits");
        let ours = own.lines().find(|line| line.starts_with("Max stack size")).unwrap().to_owned();
        assert!(probe.proc("limits").contains(&ours));
        probe.finish();
        let low = Rlimit { resource: Resource::Nofile, soft: 4, hard: 4 };
        plan.rlimits = vec![low];
        let file = tempfile();
        plan.fds = vec![file.as_fd()];
        plan.program = Program::Path(c("/bin/true"));
        // The loader cannot open its libraries with so few, but the descriptors were placed and the program ran.
        let child = spawner.spawn(&plan).unwrap();
        assert!(matches!(wait_for(child.pid), Exit::Exited(0 | 127)));
    });
}

#[test]
fn variables_of_the_pid_hold_the_programs_own() {
    alone("variables_of_the_pid_hold_the_programs_own", || {
        for (kernel, mut spawner) in spawners() {
            for identity in [None, is_root().then(somebody)] {
                let mut plan = plan(&["cat"]);
                plan.identity = identity;
                plan.envp = vec![c("A=1"), c("LISTEN_FDS=2")];
                plan.pid_variables = vec![c("LISTEN_PID"), c("WATCHDOG_PID")];
                let probe = Probe::start(&mut spawner, &plan);
                let pid = probe.child.pid;
                let whole = format!("A=1\0LISTEN_FDS=2\0LISTEN_PID={pid}\0WATCHDOG_PID={pid}\0");
                assert_eq!(probe.proc("environ"), whole, "{kernel}");
                probe.finish();
            }
        }
    });
}

#[test]
fn a_user_is_all_three_ids_and_exactly_the_groups() {
    alone("a_user_is_all_three_ids_and_exactly_the_groups", || {
        if !is_root() {
            return;
        }
        for (kernel, mut spawner) in spawners() {
            let mut plan = plan(&["cat"]);
            plan.identity = Some(somebody());
            let probe = Probe::start(&mut spawner, &plan);
            assert_eq!(probe.status("Uid"), "64123 64123 64123 64123", "{kernel}");
            assert_eq!(probe.status("Gid"), "64124 64124 64124 64124", "{kernel}");
            assert_eq!(probe.status("Groups"), "7 64125", "{kernel}");
            probe.finish();
        }
    });
}

#[test]
fn the_manager_stays_root_and_dumpable_when_a_child_becomes_another_user() {
    alone("the_manager_stays_root_and_dumpable_when_a_child_becomes_another_user", || {
        if !is_root() {
            return;
        }
        let mut plan = plan(&["/bin/true"]);
        plan.identity = Some(somebody());
        plan.ambient_set = 1 << 10;
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        wait_for(child.pid);
        assert!(nix::unistd::geteuid().is_root());
        // SAFETY: the option takes no address.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_DUMPABLE) }, 1);
        // SAFETY: the option takes no address.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_KEEPCAPS) }, 0);
    });
}

/// CAP_NET_BIND_SERVICE and CAP_CHOWN.
const BIND: u64 = 1 << 10;
const CHOWN: u64 = 1 << 0;

#[test]
fn capabilities_are_what_user_bounding_and_ambient_set_say() {
    alone("capabilities_are_what_user_bounding_and_ambient_set_say", || {
        if !is_root() {
            return;
        }
        let all = u64::from_str_radix(&own_status("CapBnd"), 16).unwrap();
        for (kernel, mut spawner) in spawners() {
            // user, ambient, bounding, then permitted = effective, bounding, ambient of the program.
            for (user, ambient, bounding, permitted, bound) in [
                (false, 0, None, all, all),
                (false, 0, Some(0), 0, 0),
                (false, 0, Some(BIND), BIND, BIND),
                (false, BIND, None, all, all),
                (false, BIND, Some(BIND | CHOWN), BIND | CHOWN, BIND | CHOWN),
                (true, 0, None, 0, all),
                (true, 0, Some(0), 0, 0),
                (true, 0, Some(BIND), 0, BIND),
                (true, BIND, None, BIND, all),
                (true, BIND, Some(BIND), BIND, BIND),
            ] {
                for no_new_privileges in [false, true] {
                    let case = format!("{kernel} {user} {ambient:x} {bounding:?} {no_new_privileges}");
                    let mut plan = plan(&["cat"]);
                    plan.identity = user.then(somebody);
                    plan.ambient_set = ambient;
                    plan.bounding_set = bounding;
                    plan.no_new_privileges = no_new_privileges;
                    let probe = Probe::start(&mut spawner, &plan);
                    let set = |name| u64::from_str_radix(&probe.status(name), 16).unwrap();
                    assert_eq!(set("CapPrm"), permitted, "permitted: {case}");
                    assert_eq!(set("CapEff"), permitted, "effective: {case}");
                    assert_eq!(set("CapBnd"), bound, "bounding: {case}");
                    assert_eq!(set("CapAmb"), ambient, "ambient: {case}");
                    assert_eq!(set("CapInh"), ambient, "inheritable: {case}");
                    assert_eq!(probe.status("NoNewPrivs"), u8::from(no_new_privileges).to_string(), "{case}");
                    probe.finish();
                }
            }
        }
    });
}

#[test]
fn a_user_with_the_ambient_capability_binds_a_low_port() {
    alone("a_user_with_the_ambient_capability_binds_a_low_port", || {
        if !is_root() {
            return;
        }
        let mut spawner = Spawner::new().unwrap();
        for (ambient, status) in [(BIND, Exit::Exited(0)), (0, Exit::Exited(1))] {
            let script = "import socket,sys\ntry: socket.socket().bind(('127.0.0.1', 81))\nexcept PermissionError: sys.exit(1)";
            let mut plan = plan(&["/usr/bin/env", "python3", "-c", script]);
            plan.envp = vec![c(&format!("PATH={}", std::env::var("PATH").unwrap()))];
            plan.identity = Some(somebody());
            plan.ambient_set = ambient;
            plan.stdio[2] = Stdio::Inherit;
            let child = spawner.spawn(&plan).unwrap();
            assert_eq!(wait_for(child.pid), status, "ambient {ambient:x}");
        }
    });
}

#[test]
fn a_program_is_executed_by_descriptor() {
    alone("a_program_is_executed_by_descriptor", || {
        let names = Spawner::new().unwrap().features().execveat_names;
        for (kernel, mut spawner) in spawners() {
            let file = std::fs::File::open("/bin/cat").unwrap();
            let mut plan = plan(&["my-cat"]);
            plan.program = Program::Descriptor { fd: file.as_fd(), name: c("/bin/cat"), keep_open: false };
            let probe = Probe::start(&mut spawner, &plan);
            assert!(probe.proc("comm") == "cat\n" || !names, "{kernel}: {}", probe.proc("comm"));
            let exe = std::fs::read_link(probe.path("exe")).unwrap();
            assert_eq!(exe, std::fs::canonicalize("/bin/cat").unwrap(), "{kernel}");
            assert_eq!(probe.descriptors().len(), 3, "{kernel}");
            probe.finish();
        }
    });
}

#[test]
fn a_script_is_executed_from_a_sealed_copy() {
    alone("a_script_is_executed_from_a_sealed_copy", || {
        let script = b"#!/bin/sh\necho \"$@\"\n";
        let copy = agentd_linux::memfd::sealed(c"script", script).unwrap();
        for (kernel, mut spawner) in spawners() {
            let (output, stdout) = std::io::pipe().unwrap();
            let mut plan = plan(&["script", "one", "two"]);
            plan.program = Program::Descriptor { fd: copy.as_fd(), name: c("script"), keep_open: true };
            plan.stdio[1] = Stdio::Fd(stdout.as_fd());
            let child = spawner.spawn(&plan).unwrap();
            drop(stdout);
            assert_eq!(text(output), "one two\n", "{kernel}");
            assert_eq!(wait_for(child.pid), Exit::Exited(0), "{kernel}");
        }
    });
}

#[test]
fn the_managers_standard_output_can_be_inherited() {
    alone("the_managers_standard_output_can_be_inherited", || {
        let (output, stdout) = std::io::pipe().unwrap();
        // SAFETY: the number is open, and written back below.
        let saved = unsafe { libc::dup(1) };
        std::mem::forget(at_number(&stdout, 1));
        let mut plan = shell("echo out; echo err >&2");
        plan.stdio = [Stdio::Null, Stdio::Inherit, Stdio::Inherit];
        let child = Spawner::new().unwrap().spawn(&plan).unwrap();
        let exit = wait_for(child.pid);
        // SAFETY: the number is open and nobody but this test has it.
        std::mem::forget(at_number(&unsafe { BorrowedFd::borrow_raw(saved) }, 1));
        drop(stdout);
        assert_eq!((exit, text(output).as_str()), (Exit::Exited(0), "out\n"));
    });
}

#[test]
fn a_thousand_spawns_leave_no_descriptor_open() {
    alone("a_thousand_spawns_leave_no_descriptor_open", || {
        let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let mut spawner = Spawner::new().unwrap();
        let mut failing = plan(&["/nonexistent"]);
        let good = plan(&["/bin/true"]);
        wait_for(spawner.spawn(&good).unwrap().pid);
        let before = count();
        for round in 0..500 {
            failing.identity = (round % 2 == 0 && is_root()).then(somebody);
            spawner.spawn(&failing).unwrap_err();
            let child = spawner.spawn(&good).unwrap();
            reap_until(|reaped| reaped.contains_key(&child.pid));
        }
        assert_eq!(count(), before);
    });
}

fn own_file(file: &str) -> String {
    // Not /proc/self: a test runs in a thread, whose own files these are.
    std::fs::read_to_string(format!("/proc/thread-self/{file}")).unwrap()
}

fn own_status(name: &str) -> String {
    let status = own_file("status");
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap().trim().to_owned()
}

/// A file without a name.
fn tempfile() -> OwnedFd {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE);
    options.open(std::env::temp_dir()).unwrap().into()
}

fn link_of(fd: BorrowedFd<'_>) -> String {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().display().to_string()
}
