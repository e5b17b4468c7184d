//! What a manager holds for its units when it is executed again: listeners with who waits at them, connections, watched
//! paths, stored descriptors.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Manager, PATIENCE, Setup, install, is_alive, text, write};

/// Stands where the manager's program stood: says that it is there, waits until it may go on, and then is the manager.
const GAP: &str = "#!/usr/bin/python3\nimport os, sys, time\nopen(GAP, 'w').close()\nwhile not os.path.exists(GO):\n    time.sleep(0.005)\nos.unlink(GO)\nos.execv(PROGRAM, [PROGRAM] + sys.argv[1:])\n";

/// Answers each connection with its pid, what started it and what it was sent.
const ECHO: &str = "#!/usr/bin/python3\nimport os, socket\nlistener = socket.socket(fileno=3)\nwhile True:\n    client, _ = listener.accept()\n    said = client.makefile().readline().strip()\n    client.sendall(f\"{os.getpid()} {os.environ.get('TRIGGER_UNIT')} {said}\\n\".encode())\n    client.close()\n    if said == 'end':\n        break\n";

/// A manager whose program can be replaced.
fn start(setup: Setup) -> Manager {
    let program = setup.path("agentd");
    install(env!("CARGO_BIN_EXE_agentd").as_ref(), &program);
    setup.program(&program).start()
}

/// Executes the manager again, and does something while there is none.
fn reexecute(manager: &mut Manager, meanwhile: impl FnOnce(&Manager)) {
    let (program, gap, go) = (manager.path("agentd"), manager.path("gap"), manager.path("go"));
    fs::remove_file(&program).unwrap();
    let words = [("GAP", &gap), ("GO", &go), ("PROGRAM", &program)];
    let script =
        words.iter().fold(GAP.to_owned(), |text, (word, path)| text.replace(word, &format!("{path:?}")));
    install(&write(&manager.path("script"), &script), &program);
    manager.ok(&["daemon-reexec"]);
    manager.until("no gap", |_| gap.exists());
    meanwhile(manager);
    fs::remove_file(&program).unwrap();
    install(env!("CARGO_BIN_EXE_agentd").as_ref(), &program);
    fs::remove_file(&gap).unwrap();
    fs::write(&go, "").unwrap();
    // The next answer is the successor's.
    manager.ok(&["status"]);
    assert!(!go.exists());
}

fn connect(path: &Path) -> UnixStream {
    let client = UnixStream::connect(path).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn answer(mut client: UnixStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer.trim().to_owned()
}

fn ask(path: &Path, word: &str) -> String {
    let mut client = connect(path);
    writeln!(client, "{word}").unwrap();
    answer(client)
}

/// `echo.socket` at `echo.sock`, with its service.
fn echo(setup: &Setup, socket: &str) {
    let (program, path) = (setup.file("echo", ECHO), setup.path("echo.sock"));
    setup.unit("echo.service", &format!("[Service]\nExecStart = [{program:?}]\n"));
    setup.unit("echo.socket", &format!("[Socket]\nListenStream = {path:?}\n{socket}"));
}

#[test]
fn who_comes_between_two_managers_is_served_and_the_file_stays_the_same() {
    let setup = Setup::new("handover-stream");
    echo(&setup, "SocketMode = \"0640\"\n");
    let mut manager = start(setup);
    let path = manager.path("echo.sock");
    manager.ok(&["start", "echo.socket"]);
    let seen = |path: &Path| fs::metadata(path).map(|meta| (meta.ino(), meta.mode(), meta.uid())).unwrap();
    let before = seen(&path);
    let mut waits = None;
    reexecute(&mut manager, |m| {
        let mut client = connect(&m.path("echo.sock"));
        writeln!(client, "early").unwrap();
        waits = Some(client);
    });
    let said = answer(waits.unwrap());
    let pid = manager.main_pid("echo.service");
    assert_eq!(said, format!("{pid} echo.socket early"));
    assert_eq!(seen(&path), before);
    // The service runs on, and its socket knows it.
    reexecute(&mut manager, |_| assert!(ask(&path, "meanwhile").ends_with("meanwhile")));
    assert_eq!(manager.property("echo.socket", "SubState"), "running");
    assert_eq!(manager.main_pid("echo.service"), pid);
    assert_eq!(ask(&path, "end"), format!("{pid} echo.socket end"));
    manager.until_property("echo.socket", "SubState", "listening");
    let next = ask(&path, "again");
    assert!(next.ends_with("again") && !next.starts_with(&pid.to_string()), "{next}");
    assert_eq!(seen(&path), before);
    manager.ok(&["stop", "echo.socket", "echo.service"]);
    assert!(UnixStream::connect(&path).is_err());
}

#[test]
fn a_socket_of_another_manager_is_closed_and_its_file_removed_with_a_stop() {
    let setup = Setup::new("handover-stop");
    let path = setup.path("links/link");
    echo(&setup, &format!("RemoveOnStop = true\nSymlinks = [{path:?}]\n"));
    let mut manager = start(setup);
    manager.ok(&["start", "echo.socket"]);
    for _ in 0..3 {
        reexecute(&mut manager, |_| {});
    }
    assert!(ask(&path, "by the link").ends_with("by the link"));
    manager.ok(&["stop", "echo.service", "echo.socket"]);
    assert!(!manager.path("echo.sock").exists() && !path.is_symlink());
}

/// Sets its flag when it goes.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_client_is_refused_while_the_manager_is_executed_ten_times() {
    let setup = Setup::new("handover-ten");
    echo(&setup, "");
    let mut manager = setup.start();
    manager.ok(&["start", "echo.socket"]);
    let path = manager.path("echo.sock");
    let stop = Arc::new(AtomicBool::new(false));
    // Also when this thread ends by a panic: the scope waits for the other.
    let stopper = OnDrop(Arc::clone(&stop));
    let served = std::thread::scope(|scope| {
        let stopper = stopper;
        let client = scope.spawn(|| {
            let mut served = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(ask(&path, "end").ends_with("end"), "client {served}");
                served += 1;
            }
            served
        });
        for _ in 0..10 {
            manager.ok(&["daemon-reexec"]);
            manager.ok(&["status"]);
        }
        drop(stopper);
        client.join()
    });
    let served = served.unwrap_or_else(|_| panic!("somebody was not served\n{}", manager.everything()));
    assert!(served > 0);
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
}

#[test]
fn fifos_datagrams_and_netlink_are_kept_with_what_waits_in_them() {
    let setup = Setup::new("handover-kinds");
    let program = setup.file(
        "read",
        "#!/usr/bin/python3\nimport os, sys\nwith open(sys.argv[1], 'ab') as out:\n    out.write(os.read(3, 100))\n",
    );
    let (fifo, datagram) = (setup.path("fifo"), setup.path("datagram"));
    for (kind, listen) in [
        ("fifo", format!("ListenFIFO = {fifo:?}")),
        ("datagram", format!("ListenDatagram = {datagram:?}")),
        ("netlink", "ListenNetlink = \"kobject-uevent 1\"".to_owned()),
    ] {
        let out = setup.path(&format!("{kind}.out"));
        setup.unit(&format!("{kind}.service"), &format!("[Service]\nExecStart = [{program:?}, {out:?}]\n"));
        setup.unit(&format!("{kind}.socket"), &format!("[Socket]\n{listen}\n"));
    }
    let mut manager = start(setup);
    manager.ok(&["start", "fifo.socket", "datagram.socket", "netlink.socket"]);
    let netlink = |m: &Manager| {
        let folder = fs::read_dir(format!("/proc/{}/fd", m.pid())).unwrap().flatten();
        let inodes: Vec<String> = folder
            .filter_map(|entry| {
                fs::read_link(entry.path())
                    .ok()?
                    .to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')
                    .map(str::to_owned)
            })
            .collect();
        let table = fs::read_to_string(format!("/proc/{}/net/netlink", m.pid())).unwrap();
        let mut found: Vec<String> = table
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .filter(|inode| inodes.iter().any(|own| own == inode))
            .map(str::to_owned)
            .collect();
        found.sort();
        found
    };
    let before = netlink(&manager);
    assert_eq!(before.len(), 1, "{before:?}");
    reexecute(&mut manager, |m| {
        fs::OpenOptions::new().write(true).open(m.path("fifo")).unwrap().write_all(b"by fifo").unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"by datagram", m.path("datagram")).unwrap();
    });
    for (kind, said) in [("fifo", "by fifo"), ("datagram", "by datagram")] {
        let out = manager.path(&format!("{kind}.out"));
        manager.until("it is not read", |_| fs::read_to_string(&out).is_ok_and(|text| text == said));
    }
    assert_eq!(netlink(&manager), before, "the same socket, with what was told to it");
}

#[test]
fn connections_go_on_and_are_counted_by_the_next_manager() {
    let setup = Setup::new("handover-accept");
    let path = setup.path("talk.sock");
    setup.unit(
        "talk.socket",
        &format!("[Socket]\nListenStream = {path:?}\nAccept = true\nMaxConnections = 3\n"),
    );
    setup.unit(
        "talk@.service",
        "[Service]\nStandardInput = \"socket\"\nStandardOutput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let mut manager = start(setup);
    manager.ok(&["start", "talk.socket"]);
    let counts =
        |m: &Manager| ["NAccepted", "NConnections", "NRefused"].map(|name| m.property("talk.socket", name));
    let say = |client: &mut UnixStream, word: &[u8]| {
        client.write_all(word).unwrap();
        let mut back = vec![0; word.len()];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, word);
    };
    let mut first = connect(&path);
    say(&mut first, b"one");
    let mut second = connect(&path);
    say(&mut second, b"two");
    let mut third = None;
    reexecute(&mut manager, |_| {
        third = Some(connect(&path));
        say(&mut first, b"meanwhile");
    });
    let mut third = third.unwrap();
    say(&mut third, b"three");
    assert_eq!(counts(&manager), ["3", "3", "0"]);
    let mut fourth = connect(&path);
    assert_eq!(fourth.read(&mut [0]).unwrap(), 0, "it is one too many");
    assert_eq!(counts(&manager), ["3", "3", "1"]);
    reexecute(&mut manager, |_| say(&mut first, b"again"));
    assert_eq!(counts(&manager), ["3", "3", "1"]);
    // They end as if nothing had been, and leave nothing behind.
    for client in [first, second, third] {
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(answer(client), "");
    }
    manager.until("connections are left", |m| counts(m)[1] == "0");
    manager.until("instances are left", |m| !text(&m.ctl(&["list", "--all"])).contains("talk@"));
    say(&mut connect(&path), b"next");
    assert_eq!(manager.property("talk.socket", "NAccepted"), "4");
}

#[test]
fn what_a_trigger_limit_counts_is_counted_on() {
    let setup = Setup::new("handover-limit");
    echo(&setup, "TriggerLimitBurst = 2\nTriggerLimitIntervalSec = \"1h\"\n");
    let mut manager = start(setup);
    let path = manager.path("echo.sock");
    manager.ok(&["start", "echo.socket"]);
    for _ in 0..2 {
        assert!(ask(&path, "end").ends_with("end"));
        manager.until_property("echo.socket", "SubState", "listening");
        reexecute(&mut manager, |_| {});
    }
    let _third = connect(&path);
    manager.until_property("echo.socket", "Result", "trigger-limit-hit");
    reexecute(&mut manager, |_| {});
    assert_eq!(manager.property("echo.socket", "Result"), "trigger-limit-hit", "it stays failed");
}

#[test]
fn a_line_that_came_to_the_file_is_listened_on_and_one_that_went_is_closed() {
    let setup = Setup::new("handover-lines");
    let (program, kept) = (setup.file("echo", ECHO), setup.path("kept.sock"));
    let (gone, new) = (setup.path("gone.sock"), setup.path("new.sock"));
    setup.unit("echo.service", &format!("[Service]\nExecStart = [{program:?}]\n"));
    let unit = setup.unit("echo.socket", &format!("[Socket]\nListenStream = [{gone:?}, {kept:?}]\n"));
    let mut manager = start(setup);
    manager.ok(&["start", "echo.socket"]);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = inode(&kept);
    reexecute(&mut manager, |_| {
        fs::write(&unit, format!("[Socket]\nListenStream = [{kept:?}, {new:?}]\n")).unwrap();
    });
    assert_eq!(inode(&kept), before);
    connect(&new);
    assert!(UnixStream::connect(&gone).is_err(), "nobody listens there");
    assert!(ask(&kept, "hello").ends_with("hello"));
}

/// `job.path` with these keys, whose service notes each run, and runs on as long as there is a file `busy`.
fn job(name: &str, keys: impl Fn(&Path) -> String) -> Manager {
    let setup = Setup::new(name);
    let (ran, busy) = (setup.path("ran"), setup.path("busy"));
    let text = format!(
        "#!/bin/sh\necho run >> {}\nwhile [ -e {} ]; do sleep 0.02; done\n",
        ran.display(),
        busy.display()
    );
    let program = setup.file("job", &text);
    setup.unit("job.service", &format!("[Service]\nType = \"oneshot\"\nExecStart = [{program:?}]\n"));
    setup.unit("job.path", &format!("[Path]\n{}\n", keys(&setup.path(""))));
    setup.file("old", "1");
    setup.file("other", "1");
    let mut manager = start(setup);
    manager.ok(&["start", "job.path"]);
    manager
}

fn runs(manager: &Manager) -> usize {
    fs::read_to_string(manager.path("ran")).unwrap_or_default().lines().count()
}

#[test]
fn what_happens_to_a_path_between_two_managers_starts_its_unit_once() {
    type Deed = fn(&Path);
    let cases: [(&str, &str, Deed); 6] = [
        ("changed", "PathChanged = \"{old}\"", |folder| fs::write(folder.join("old"), "2").unwrap()),
        ("modified", "PathModified = \"{old}\"", |folder| fs::write(folder.join("old"), "2").unwrap()),
        ("replaced", "PathChanged = \"{old}\"", |folder| {
            fs::rename(folder.join("other"), folder.join("old")).unwrap();
        }),
        ("gone", "PathChanged = \"{old}\"", |folder| fs::remove_file(folder.join("old")).unwrap()),
        ("come", "PathChanged = \"{new}\"", |folder| fs::write(folder.join("new/file"), "").unwrap()),
        ("second", "PathExists = \"{never}\"\nPathChanged = \"{old}\"", |folder| {
            fs::write(folder.join("old"), "2").unwrap();
        }),
    ];
    for (name, keys, deed) in cases {
        let mut manager = job(&format!("handover-path-{name}"), |folder| {
            let at = |file: &str| folder.join(file).display().to_string();
            fs::create_dir_all(folder.join("new")).unwrap();
            keys.replace("{old}", &at("old"))
                .replace("{new}", &at("new/file"))
                .replace("{never}", &at("never"))
        });
        let before = runs(&manager);
        reexecute(&mut manager, |m| deed(&m.path("")));
        manager.until(&format!("{name}: it is lost"), |m| runs(m) == before + 1);
        manager.until_property("job.path", "SubState", "waiting");
        reexecute(&mut manager, |_| {});
        assert_eq!(manager.property("job.path", "SubState"), "waiting", "{name}");
        assert_eq!(runs(&manager), before + 1, "{name}: once");
    }
}

#[test]
fn a_path_that_comes_to_be_between_two_managers_starts_its_unit_and_a_unit_that_runs_is_waited_for() {
    let mut manager = job("handover-exists", |folder| {
        format!("PathExists = {:?}\nPathChanged = {:?}", folder.join("there"), folder.join("old"))
    });
    fs::write(manager.path("busy"), "").unwrap();
    reexecute(&mut manager, |m| fs::write(m.path("there"), "").unwrap());
    manager.until("it is lost", |m| runs(m) == 1);
    manager.until_property("job.service", "ActiveState", "activating");
    fs::remove_file(manager.path("there")).unwrap();
    fs::remove_file(manager.path("busy")).unwrap();
    manager.until_property("job.path", "SubState", "waiting");
    assert_eq!(runs(&manager), 1);
    manager.ok(&["stop", "job.path"]);
    reexecute(&mut manager, |m| fs::write(m.path("there"), "").unwrap());
    assert_eq!(manager.property("job.path", "ActiveState"), "inactive", "what was stopped stays so");
    assert_eq!(runs(&manager), 1);
}

/// Stores a file and a pipe at its first start, and says at each what it was passed.
const KEEPS: &str = "#!/usr/bin/python3\nimport os, socket, sys, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['NOTIFY_SOCKET'])\nnames = os.environ.get('LISTEN_FDNAMES', '')\nheld = os.pread(3, 99, 0).decode() if names else ''\nopen(sys.argv[1], 'a').write(f'{names} {held}\\n')\nif not names:\n    f = os.memfd_create('state')\n    os.write(f, b'what it knew')\n    r, w = os.pipe()\n    s2 = socket.socketpair()\n    socket.send_fds(s, [b'FDSTORE=1\\nFDNAME=state'], [f])\n    socket.send_fds(s, [b'FDSTORE=1\\nFDNAME=pipe\\nFDPOLL=0'], [r])\n    socket.send_fds(s, [b'FDSTORE=1\\nFDNAME=hangs'], [s2[0].fileno()])\ns.send(b'READY=1')\ntime.sleep(1000)\n";

#[test]
fn stored_descriptors_reach_the_next_life_under_the_next_manager() {
    for (preserve, after_stop) in [("restart", "0"), ("yes", "2")] {
        let setup = Setup::new(&format!("handover-store-{preserve}"));
        let (program, out) = (setup.file("keeper", KEEPS), setup.path("out"));
        setup.unit(
            "keeper.service",
            &format!("[Service]\nType = \"notify\"\nExecStart = [{program:?}, {out:?}]\nFileDescriptorStoreMax = 5\nFileDescriptorStorePreserve = \"{preserve}\"\n"),
        );
        let mut manager = start(setup);
        manager.ok(&["start", "keeper"]);
        assert_eq!(manager.property("keeper", "NFileDescriptorStore"), "3");
        reexecute(&mut manager, |_| {});
        assert_eq!(manager.property("keeper", "NFileDescriptorStore"), "3");
        reexecute(&mut manager, |_| {});
        let pid = manager.main_pid("keeper");
        // With the process goes the other end of what is watched for it.
        manager.ok(&["restart", "keeper"]);
        assert!(!is_alive(pid));
        let said = fs::read_to_string(&out).unwrap();
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("state:pipe") && last.ends_with(" what it knew"), "{said}");
        manager.until_property("keeper", "NFileDescriptorStore", "2");
        manager.ok(&["stop", "keeper"]);
        manager.until_property("keeper", "NFileDescriptorStore", after_stop);
        reexecute(&mut manager, |_| {});
        assert_eq!(manager.property("keeper", "NFileDescriptorStore"), after_stop, "{preserve}");
    }
}

fn kill_and_start_again(mut manager: Manager) -> Manager {
    let pid = manager.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    manager.wait();
    manager.again()
}

#[test]
fn b082_sockets_of_a_manager_that_was_killed_are_listened_on_again() {
    let setup = Setup::new("handover-killed");
    for name in ["one", "two", "three"] {
        let (program, path) = (setup.file("echo", ECHO), setup.path(&format!("{name}.sock")));
        setup.unit(&format!("{name}.service"), &format!("[Service]\nExecStart = [{program:?}]\n"));
        setup.unit(&format!("{name}.socket"), &format!("[Socket]\nListenStream = {path:?}\n"));
    }
    let mut manager = setup.start();
    manager.ok(&["start", "one.socket", "two.socket", "three.socket"]);
    let manager = kill_and_start_again(manager);
    for name in ["one", "two", "three"] {
        let answer = ask(&manager.path(&format!("{name}.sock")), "hello");
        assert!(answer.ends_with(&format!("{name}.socket hello")), "{answer}");
    }
}

#[test]
fn a_listener_that_outlived_a_killed_manager_is_taken_back_from_its_service() {
    let setup = Setup::new("handover-lent");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    echo(&setup, &format!("ListenDatagram = \"@agentd-lent-{port}\"\n"));
    let mut manager = setup.start();
    let path = manager.path("echo.sock");
    manager.ok(&["start", "echo.socket"]);
    assert!(ask(&path, "hello").ends_with("hello"));
    let pid = manager.main_pid("echo.service");
    let inode = fs::metadata(&path).unwrap().ino();
    let mut manager = kill_and_start_again(manager);
    assert_eq!(manager.property("echo.socket", "SubState"), "running", "{}", manager.everything());
    assert_eq!(manager.main_pid("echo.service"), pid);
    assert_eq!(ask(&path, "end"), format!("{pid} echo.socket end"));
    manager.until_property("echo.socket", "SubState", "listening");
    let next = ask(&path, "again");
    assert!(next.ends_with("again") && !next.starts_with(&pid.to_string()), "{next}");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[test]
fn a_service_that_closed_what_a_killed_manager_had_passed_to_it_is_told_of() {
    let setup = Setup::new("handover-closed");
    let (program, path) = (
        setup.file("close", "#!/usr/bin/python3\nimport os, time\nos.close(3)\ntime.sleep(1000)\n"),
        setup.path("s"),
    );
    setup.unit("close.service", &format!("[Service]\nExecStart = [{program:?}]\n"));
    setup.unit("close.socket", &format!("[Socket]\nListenStream = {path:?}\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "close.socket", "close.service"]);
    let pid = manager.main_pid("close");
    manager.until("it does not close it", |_| !Path::new(&format!("/proc/{pid}/fd/3")).exists());
    let mut manager = kill_and_start_again(manager);
    manager.until_property("close.socket", "Result", "resources");
    let status = text(&manager.ctl(&["status", "close.socket"]));
    assert!(status.contains("cannot be taken back from it; stop it first"), "{status}");
    assert_eq!(manager.main_pid("close"), pid);
}

#[test]
fn a_manager_is_executed_again_however_many_connections_come() {
    let setup = Setup::new("handover-storm");
    let path = setup.path("talk.sock");
    setup.unit(
        "talk.socket",
        &format!("[Socket]\nListenStream = {path:?}\nAccept = true\nMaxConnections = 1000\nPollLimitBurst = 0\nTriggerLimitBurst = 0\n"),
    );
    setup.unit(
        "talk@.service",
        "[Service]\nStandardInput = \"socket\"\nStandardOutput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "talk.socket"]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let served: usize = std::thread::scope(|scope| {
        let client = || {
            let mut served = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let mut client = connect(&path);
                client.write_all(b"x").unwrap();
                client.shutdown(std::net::Shutdown::Write).unwrap();
                assert_eq!(answer(client), "x");
                served += 1;
            }
            served
        };
        let clients: Vec<_> = (0..20).map(|_| scope.spawn(client)).collect();
        let began = std::time::Instant::now();
        for _ in 0..3 {
            let done = manager.ctl(&["daemon-reexec"]);
            assert!(done.status.success(), "{}", text(&done));
        }
        let took = began.elapsed();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(took < PATIENCE, "{took:?}");
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert!(served > 0);
    manager.until_property("talk.socket", "NConnections", "0");
    assert_eq!(manager.property("talk.socket", "NAccepted"), served.to_string());
}

#[test]
fn where_the_program_cannot_be_executed_connections_are_taken_again() {
    let setup = Setup::new("handover-broken");
    let path = setup.path("talk.sock");
    setup.unit("talk.socket", &format!("[Socket]\nListenStream = {path:?}\nAccept = true\n"));
    setup.unit(
        "talk@.service",
        "[Service]\nStandardInput = \"socket\"\nStandardOutput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let mut manager = start(setup);
    let program = manager.path("agentd");
    manager.ok(&["start", "talk.socket"]);
    let say = |word: &str| {
        let mut client = connect(&path);
        client.write_all(word.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(answer(client), word);
    };
    say("before");
    fs::remove_file(&program).unwrap();
    fs::write(&program, "no program").unwrap();
    manager.ok(&["daemon-reexec"]);
    manager.wait_for_log("the manager cannot be executed again; this one goes on", "it is not told");
    say("one");
    say("two");
}
