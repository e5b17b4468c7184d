//! What Landlock holds of a process, where nothing else would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::PathBuf;

use agentd_linux::landlock::{Wall, version};
use agentd_linux::reap::Exit;
use agentd_linux::spawn::{Identity, SpawnPlan, Spawner, Stdio, Step};
use common::{alone, c, is_root, plan, shell, spawners, wait_for};

/// Whether the kernel holds all that is tested here. In CI it must.
fn is_held() -> bool {
    let held = version() >= 6;
    assert!(held || std::env::var_os("CI").is_none(), "Landlock has version {}", version());
    held
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("agentd-landlock-{}-{name}", std::process::id()));
    fs::create_dir_all(folder.join("in/below")).unwrap();
    fs::create_dir_all(folder.join("out")).unwrap();
    folder
}

fn ends(spawner: &mut Spawner, mut plan: SpawnPlan<'_>, wall: &Wall) -> Exit {
    plan.landlock = wall.clone().compile(version());
    wait_for(spawner.spawn(&plan).unwrap().pid)
}

#[test]
fn files_change_nowhere_but_where_a_rule_says_so() {
    if !is_held() {
        return;
    }
    alone("files_change_nowhere_but_where_a_rule_says_so", || {
        let folder = folder("files");
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("out/file"), "").unwrap();
        fs::write(at("out/one"), "").unwrap();
        let wall =
            Wall { write: Some(vec![c(&at("in")), c(&at("out/one")), c(&at("nowhere"))]), ..Wall::default() };
        let script = |what: &str| shell(&format!("cd {} && {what} 2>/dev/null", folder.display()));
        for (kernel, mut spawner) in spawners() {
            for (what, may) in [
                ("echo > in/file", true),
                ("mv in/file in/below/file", true),
                ("ln -s x in/link && rm in/link in/below/file", true),
                ("echo > out/one", true),
                ("rm out/one", false),
                ("echo > out/file", false),
                ("truncate -s 5 out/file", false),
                ("mkdir out/folder", false),
                ("mv out/file in/moved", false),
                ("mkfifo out/fifo", false),
                ("cat out/file", true),
                ("mknod in/null c 1 3", false),
            ] {
                let ended = ends(&mut spawner, script(what), &wall);
                assert_eq!(ended == Exit::Exited(0), may, "{kernel}: {what}: {ended:?}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    });
}

/// `/dev/stdout` opens a file anew, with the rights of whoever opens it.
#[test]
fn its_own_output_can_be_opened_again() {
    if !is_held() {
        return;
    }
    alone("its_own_output_can_be_opened_again", || {
        let folder = folder("output");
        let wall = Wall { write: Some(Vec::new()), ..Wall::default() };
        let file = fs::File::create(folder.join("out/log")).unwrap();
        for (kernel, mut spawner) in spawners() {
            let mut plan = shell("echo heard > /proc/self/fd/1");
            plan.stdio[1] = Stdio::Fd(file.as_fd());
            assert_eq!(ends(&mut spawner, plan, &wall), Exit::Exited(0), "{kernel}");
            assert_eq!(fs::read_to_string(folder.join("out/log")).unwrap(), "heard\n", "{kernel}");
        }
        fs::remove_dir_all(folder).unwrap();
    });
}

#[test]
fn programs_run_from_nowhere_but_where_a_rule_says_so() {
    if !is_held() {
        return;
    }
    alone("programs_run_from_nowhere_but_where_a_rule_says_so", || {
        let folder = folder("programs");
        let program = folder.join("true").display().to_string();
        // A process of its own writes it, so that nobody has it open for writing.
        let mut spawner = Spawner::new().unwrap();
        let copy = plan(&["/bin/cp", "/bin/true", &program]);
        assert_eq!(ends(&mut spawner, copy, &Wall::default()), Exit::Exited(0));
        let places = ["/usr", "/bin", "/lib", "/lib64"].map(c).to_vec();
        let wall = Wall { execute: Some(places), ..Wall::default() };
        for (kernel, mut spawner) in spawners() {
            assert_eq!(ends(&mut spawner, shell("/bin/true"), &wall), Exit::Exited(0), "{kernel}");
            assert_eq!(ends(&mut spawner, shell(&program), &wall), Exit::Exited(126), "{kernel}");
            // Who is asked about files at all could not move them between folders otherwise.
            let moves = format!("cd {} && echo > in/file && mv in/file out/file", folder.display());
            assert_eq!(ends(&mut spawner, shell(&moves), &wall), Exit::Exited(0), "{kernel}");
            let mut direct = plan(&[&program]);
            direct.landlock = wall.clone().compile(version());
            let error = spawner.spawn(&direct).unwrap_err();
            assert_eq!(error.step, Step::Exec, "{kernel}: {error}");
        }
        fs::remove_dir_all(folder).unwrap();
    });
}

/// No filter of system calls sees who made a socket that is handed over.
#[test]
fn a_socket_that_was_handed_over_reaches_no_tcp() {
    if !is_held() {
        return;
    }
    alone("a_socket_that_was_handed_over_reaches_no_tcp", || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        )
        .unwrap();
        let script = "import socket,sys\ntry:\n s=socket.socket(fileno=3)\n getattr(s,sys.argv[1])(('127.0.0.1',int(sys.argv[2])))\nexcept OSError as e:\n sys.exit(e.errno)";
        let mut spawner = Spawner::new().unwrap();
        let wall = Wall { no_tcp: true, ..Wall::default() };
        for (call, port, wall, errno) in [
            ("connect", port, &wall, libc::EACCES),
            ("bind", 0, &wall, libc::EACCES),
            ("connect", port, &Wall::default(), 0),
        ] {
            let mut plan = plan(&["/usr/bin/python3", "-c", script, call, &port.to_string()]);
            plan.fds = vec![socket.as_fd()];
            assert_eq!(ends(&mut spawner, plan, wall), Exit::Exited(u8::try_from(errno).unwrap()), "{call}");
        }
    });
}

#[test]
fn signals_reach_its_own_processes_alone() {
    if !is_held() {
        return;
    }
    alone("signals_reach_its_own_processes_alone", || {
        let wall = Wall { own_signals: true, ..Wall::default() };
        let own = std::process::id();
        for (kernel, mut spawner) in spawners() {
            let kill = |whom: &str| shell(&format!("kill -0 {whom} 2>/dev/null"));
            assert_eq!(
                ends(&mut spawner, kill(&own.to_string()), &Wall::default()),
                Exit::Exited(0),
                "{kernel}"
            );
            assert_eq!(ends(&mut spawner, kill(&own.to_string()), &wall), Exit::Exited(1), "{kernel}");
            let child = shell("sleep 100 & kill -9 $! && kill -0 $$");
            assert_eq!(ends(&mut spawner, child, &wall), Exit::Exited(0), "{kernel}");
        }
    });
}

/// Somebody who has no privilege gives up new ones instead, and places that only root reaches are still allowed.
#[test]
fn another_user_is_held_as_well() {
    if !is_root() || !is_held() {
        return;
    }
    alone("another_user_is_held_as_well", || {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("user");
        fs::set_permissions(folder.join("in"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(folder.join("out"), fs::Permissions::from_mode(0o777)).unwrap();
        let wall = Wall { write: Some(vec![c(&folder.join("in").display().to_string())]), ..Wall::default() };
        for (kernel, mut spawner) in spawners() {
            for (place, may) in [("in", true), ("out", false)] {
                let mut plan = shell(&format!("echo > {}/{place}/file 2>/dev/null", folder.display()));
                plan.identity = Some(Identity { uid: 64_123, gid: 64_123, groups: Vec::new() });
                let ended = ends(&mut spawner, plan, &wall);
                assert_eq!(ended == Exit::Exited(0), may, "{kernel}: {place}: {ended:?}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    });
}
