//! Socket units, from the file to the client: what is there before the service is, and stays when it goes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Manager, PATIENCE, Setup, text};

/// Answers each connection with its pid, the names of its descriptors and what it was sent; `die N`: ends with N before
/// it answers, and leaves the connection to the next life.
const ECHO: &str = r#"#!/usr/bin/env python3
import os, socket, sys
assert os.environ["LISTEN_PID"] == str(os.getpid()), "not for us"
count = int(os.environ["LISTEN_FDS"])
names = os.environ["LISTEN_FDNAMES"].split(":")
assert count == len(names)
flags = sys.argv[1:]
listener = socket.socket(fileno=3)
if "crash-first" in flags and not os.path.exists(sys.argv[2]):
    open(sys.argv[2], "w").close()
    sys.exit(1)
while True:
    client, _ = listener.accept()
    said = client.makefile().readline().strip()
    client.sendall(f"{os.getpid()} {','.join(names)} {said}\n".encode())
    client.close()
    if "once" in flags:
        sys.exit(0)
    if said == "crash":
        os.kill(os.getpid(), 9)
"#;

/// A manager with `echo.socket` at `FOLDER/echo.sock` and its service.
fn echo(name: &str, socket: &str, service: &str, flags: &[&str]) -> (Manager, PathBuf) {
    let setup = Setup::new(name);
    let program = setup.file("echo", ECHO);
    let path = setup.path("echo.sock");
    let mut argv = vec![program.display().to_string()];
    argv.extend(flags.iter().map(|flag| (*flag).to_owned()));
    setup.unit("echo.service", &format!("[Service]\nExecStart = {argv:?}\n{service}"));
    let listen = format!("ListenStream = {:?}\n", path.display().to_string());
    setup.unit("echo.socket", &format!("[Socket]\n{listen}{socket}"));
    let mut manager = setup.start();
    manager.ok(&["start", "echo.socket"]);
    (manager, path)
}

/// Sends a line and reads the answer; an empty one where the other end hangs up.
fn ask(path: &Path, word: &str) -> String {
    try_ask(path, word).unwrap()
}

fn try_ask(path: &Path, word: &str) -> std::io::Result<String> {
    let mut client = UnixStream::connect(path)?;
    client.set_read_timeout(Some(PATIENCE))?;
    writeln!(client, "{word}")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer.trim().to_owned())
}

#[test]
fn a_connection_from_before_the_service_is_answered_by_it() {
    let (mut manager, path) = echo("first", "FileDescriptorName = \"front\"\n", "", &[]);
    assert_eq!(manager.property("echo.socket", "SubState"), "listening");
    assert_eq!(manager.property("echo.service", "ActiveState"), "inactive");
    let answer = ask(&path, "hello");
    let pid = manager.main_pid("echo.service");
    assert_eq!(answer, format!("{pid} front hello"));
    assert_eq!(manager.property("echo.socket", "SubState"), "running");
    manager.ok(&["stop", "echo.service"]);
    manager.until_property("echo.socket", "SubState", "listening");
    assert!(ask(&path, "again").ends_with("front again"), "a stop does not close the socket");
    manager.ok(&["stop", "echo.socket", "echo.service"]);
    assert!(UnixStream::connect(&path).is_err(), "the stop of the socket does");
}

#[test]
fn who_comes_while_the_service_crashes_is_answered_by_its_next_life() {
    let (mut manager, path) = echo("crash", "", "Restart = \"on-failure\"\nRestartSec = \"100ms\"\n", &[]);
    let first = ask(&path, "crash");
    let second = ask(&path, "hello");
    assert_ne!(first.split(' ').next(), second.split(' ').next(), "another life");
    assert!(second.ends_with("hello"), "{second}");
    manager.until_property("echo.service", "NRestarts", "1");
}

#[test]
fn a_start_that_fails_leaves_the_connection_to_the_next_one() {
    let marker = std::env::temp_dir().join(format!("agentd-crash-first-{}", std::process::id()));
    let _gone = std::fs::remove_file(&marker);
    let (manager, path) = echo("crash-first", "", "", &["crash-first", &marker.display().to_string()]);
    assert!(ask(&path, "hello").ends_with("hello"));
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
    std::fs::remove_file(&marker).unwrap();
}

#[test]
fn nothing_is_lost_over_a_hundred_restarts() {
    let (mut manager, path) = echo("hundred", "", "", &[]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (answered, cut) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut answered, mut cut) = (0, 0);
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // What the old life took and did not answer is its own; what waits is ours, and is answered.
                let mut client = UnixStream::connect(&path).unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut answer = String::new();
                let said = writeln!(client, "x").and_then(|()| client.read_to_string(&mut answer));
                match said {
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("nobody answers"),
                    Ok(_) if answer.ends_with("x\n") => answered += 1,
                    Ok(_) | Err(_) => cut += 1,
                }
            }
            (answered, cut)
        });
        for _ in 0..100 {
            manager.ok(&["restart", "echo.service"]);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        client.join().unwrap()
    });
    assert!(answered > 0 && cut <= 100, "{answered} answered, {cut} cut");
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
    assert!(ask(&path, "last").ends_with("last"));
}

#[test]
fn b077_a_burst_of_connections_is_served_in_the_end_and_the_socket_stays() {
    let (mut manager, path) = echo("burst", "", "", &["once"]);
    let clients: Vec<UnixStream> = (0..30).map(|_| UnixStream::connect(&path).unwrap()).collect();
    drop(clients);
    let began = Instant::now();
    assert!(ask(&path, "hello").ends_with("hello"));
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
    manager.collect();
    assert!(manager.log.iter().filter(|line| line.contains("what comes waits")).count() <= 2);
}

#[test]
fn a_trigger_limit_fails_the_socket_and_a_start_brings_it_back() {
    let (mut manager, path) = echo("limit", "TriggerLimitBurst = 2\n", "", &["once"]);
    for _ in 0..3 {
        let _client = UnixStream::connect(&path).map(|mut client| writeln!(client, "x"));
    }
    manager.until_property("echo.socket", "Result", "trigger-limit-hit");
    assert!(UnixStream::connect(&path).is_err());
    manager.ok(&["start", "echo.socket"]);
    assert!(ask(&path, "hello").ends_with("hello"));
}

#[test]
fn a_service_that_cannot_live_is_given_up_with_its_socket() {
    let (mut manager, path) = echo("hopeless", "", "ExecStartPre = [\"/bin/false\"]\n", &[]);
    let _waits = UnixStream::connect(&path).unwrap();
    manager.until_property("echo.socket", "Result", "service-start-limit-hit");
    assert_eq!(manager.property("echo.service", "Result"), "start-limit-hit");
}

#[test]
fn b082_what_stands_in_the_way_is_refused_and_what_was_left_is_replaced() {
    let setup = Setup::new("way");
    let places = ["stale", "file", "link", "live"];
    for place in places {
        let listen = setup.path(&format!("{place}.sock"));
        setup.unit(
            &format!("{place}.socket"),
            &format!("[Socket]\nListenStream = {:?}\n", listen.display().to_string()),
        );
        setup.unit(&format!("{place}.service"), "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    }
    drop(UnixListener::bind(setup.path("stale.sock")).unwrap());
    std::fs::write(setup.path("file.sock"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", setup.path("link.sock")).unwrap();
    let live = UnixListener::bind(setup.path("live.sock")).unwrap();
    let mut manager = setup.start();
    manager.ok(&["start", "stale.socket"]);
    UnixStream::connect(manager.path("stale.sock")).unwrap();
    for (place, why) in
        [("file", "no socket"), ("link", "no socket"), ("live", "another process listens there")]
    {
        let unit = format!("{place}.socket");
        assert!(!manager.ctl(&["start", &unit]).status.success(), "{unit}");
        let status = text(&manager.ctl(&["status", &unit]));
        assert!(status.contains(why), "{status}");
    }
    assert_eq!(std::fs::read(manager.path("file.sock")).unwrap(), b"mine");
    assert!(manager.path("link.sock").is_symlink());
    drop(UnixStream::connect(manager.path("live.sock")).unwrap());
    live.accept().unwrap();
}

#[test]
fn b083_a_file_that_somebody_removed_comes_back_with_the_service() {
    let (mut manager, path) = echo("removed", "", "", &[]);
    std::fs::remove_file(&path).unwrap();
    manager.ok(&["start", "echo.service"]);
    assert!(ask(&path, "hello").ends_with("hello"));
}

#[test]
fn a_reload_keeps_the_listener_and_who_waits_at_it() {
    let (mut manager, path) = echo("reload", "", "ExecStartPre = [\"/bin/sleep\", \"0.3\"]\n", &[]);
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(client, "early").unwrap();
    let unit = manager.path("units/echo.socket.toml");
    let old = std::fs::read_to_string(&unit).unwrap();
    std::fs::write(&unit, format!("{old}Backlog = 5\n")).unwrap();
    manager.ok(&["daemon-reload"]);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("early\n"), "{answer}");
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
}

#[test]
fn b080_a_service_sees_its_sockets_and_no_other_descriptor() {
    let setup = Setup::new("descriptors");
    let program = setup.file(
        "list",
        "#!/usr/bin/env python3\nimport os, sys, time\nfds = sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}') or os.path.islink(f'/proc/self/fd/{fd}'))\nwith open(sys.argv[1] + '.new', 'w') as out:\n    out.write(f'{fds}\\n')\n    for name, value in os.environ.items():\n        if 'LISTEN' in name:\n            out.write(f'{name}={value}\\n')\nos.rename(sys.argv[1] + '.new', sys.argv[1])\ntime.sleep(1000)\n",
    );
    let (seen, name) = (setup.path("seen"), format!("agentd-fds-{}", std::process::id()));
    setup.unit(
        "many.service",
        &format!("[Service]\nExecStart = [{program:?}, {seen:?}]\nSockets = [\"more.socket\"]\n"),
    );
    let path = setup.path("many.sock");
    setup.unit("many.socket", &format!("[Socket]\nListenStream = {path:?}\nListenDatagram = \"@{name}\"\n"));
    let fifo = setup.path("fifo");
    setup.unit("more.socket", &format!("[Socket]\nListenFIFO = {fifo:?}\nService = \"many.service\"\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "many.socket", "more.socket"]);
    let _client = UnixStream::connect(&path).unwrap();
    manager.until("the service does not look", |_| seen.exists());
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(seen.starts_with("[0, 1, 2, 3, 4, 5]\n"), "{seen}");
    assert!(seen.contains("LISTEN_FDS=3\n"), "{seen}");
    assert!(seen.contains("LISTEN_FDNAMES=many.socket:many.socket:more.socket\n"), "{seen}");
    let pid = manager.main_pid("many.service");
    assert!(seen.contains(&format!("LISTEN_PID={pid}\n")), "{seen}");
}

#[test]
fn datagrams_and_fifos_start_their_service_and_are_read_by_it() {
    let setup = Setup::new("datagram");
    let program = setup.file(
        "read",
        "#!/usr/bin/env python3\nimport os, sys\nwith open(sys.argv[1], 'ab') as out:\n    out.write(os.read(3, 100) + b'\\n')\n",
    );
    let name = format!("agentd-datagram-{}", std::process::id());
    let fifo = setup.path("fifo");
    for (kind, listen) in
        [("datagram", format!("ListenDatagram = \"@{name}\"")), ("fifo", format!("ListenFIFO = {fifo:?}"))]
    {
        let out = setup.path(&format!("{kind}.out"));
        setup.unit(&format!("{kind}.service"), &format!("[Service]\nExecStart = [{program:?}, {out:?}]\n"));
        setup.unit(&format!("{kind}.socket"), &format!("[Socket]\n{listen}\n"));
    }
    let mut manager = setup.start();
    manager.ok(&["start", "datagram.socket", "fifo.socket"]);
    let out = |manager: &Manager, kind: &str| {
        std::fs::read_to_string(manager.path(&format!("{kind}.out"))).unwrap_or_default()
    };
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::unbound().unwrap();
    for words in ["one\n", "one\ntwo\n"] {
        let word = words.lines().last().unwrap();
        socket.send_to_addr(word.as_bytes(), &address).unwrap();
        manager.until("the datagram is not read", |m| out(m, "datagram") == words);
        let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        writer.write_all(word.as_bytes()).unwrap();
        manager.until("the fifo is not read", |m| out(m, "fifo") == words);
    }
}

/// A manager with `talk.socket`, whose connections each have a `cat` of their own.
fn talk(name: &str, socket: &str) -> (Manager, PathBuf) {
    let setup = Setup::new(name);
    let path = setup.path("talk.sock");
    setup.unit("talk.socket", &format!("[Socket]\nListenStream = {path:?}\nAccept = true\n{socket}"));
    setup.unit(
        "talk@.service",
        // Its output is the connection too, as nothing else is said: that is how inetd's programs are run.
        "[Service]\nStandardInput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "talk.socket"]);
    (manager, path)
}

/// What comes back of what is said; the instance ends with it.
fn say(mut client: UnixStream, words: &str) -> String {
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(words.as_bytes()).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn each_connection_has_an_instance_of_its_own_and_leaves_nothing_behind() {
    let (mut manager, path) = talk("accept", "");
    let clients: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
    for (number, client) in clients.into_iter().enumerate() {
        let words = format!("I am {number}");
        assert_eq!(say(client, &words), words);
    }
    manager.until("instances are left", |m| !text(&m.ctl(&["list", "--all"])).contains("talk@"));
    assert_eq!(manager.property("talk.socket", "SubState"), "listening");
    assert_eq!(manager.property("talk.socket", "NAccepted"), "20");
    assert_eq!(manager.property("talk.socket", "NConnections"), "0");
}

#[test]
fn connections_beyond_their_number_are_closed_and_the_next_one_is_served() {
    let (mut manager, path) = talk("most", "MaxConnections = 2\n");
    let kept: Vec<UnixStream> = (0..2).map(|_| UnixStream::connect(&path).unwrap()).collect();
    manager.until_property("talk.socket", "NConnections", "2");
    let mut third = UnixStream::connect(&path).unwrap();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(third.read(&mut [0]).unwrap(), 0, "it is closed");
    assert_eq!(manager.property("talk.socket", "NRefused"), "1");
    for client in kept {
        assert_eq!(say(client, "x"), "x");
    }
    manager.until_property("talk.socket", "NConnections", "0");
    assert_eq!(say(UnixStream::connect(&path).unwrap(), "y"), "y");
}

#[test]
fn b079_clients_that_leave_at_once_do_no_harm() {
    let (mut manager, path) = talk("leave", "PollLimitBurst = 0\nTriggerLimitBurst = 0\n");
    assert_eq!(say(UnixStream::connect(&path).unwrap(), "first"), "first");
    manager.until("an instance is left", |m| !text(&m.ctl(&["list", "--all"])).contains("talk@"));
    let open = |m: &Manager| std::fs::read_dir(format!("/proc/{}/fd", m.pid())).unwrap().count();
    let before = open(&manager);
    for _ in 0..100 {
        drop(UnixStream::connect(&path).unwrap());
    }
    assert_eq!(say(UnixStream::connect(&path).unwrap(), "real"), "real");
    manager.until("instances are left", |m| !text(&m.ctl(&["list", "--all"])).contains("talk@"));
    // What the manager takes once is no growth: each client that was not let go would count.
    manager.until("descriptors are left", |m| open(m) <= before + 20);
    let logs = std::fs::read_dir(manager.path("log")).unwrap().flatten();
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("talk@")).count();
    assert!(logs <= 1, "{logs} files for the instances of one template");
    assert_eq!(manager.property("talk.socket", "ActiveState"), "active");
}

#[test]
fn a_service_can_bring_its_own_socket() {
    let setup = Setup::new("own");
    let program = setup.file("echo", ECHO);
    let path = setup.path("own.sock");
    setup.unit(
        "own.service",
        &format!("[Service]\nExecStart = [{program:?}]\n\n[Socket]\nListenStream = {path:?}\n\n[Install]\nWantedBy = [\"default.target\"]\n"),
    );
    let mut manager = setup.start();
    manager.until_property("own.socket", "SubState", "listening");
    assert_eq!(manager.property("own.service", "ActiveState"), "inactive");
    assert!(ask(&path, "hello").ends_with("own.socket hello"));
}

#[test]
fn b079_connections_that_are_reset_at_once_leave_nothing_behind() {
    let setup = Setup::new("reset");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    setup.unit(
        "talk.socket",
        &format!("[Socket]\nListenStream = \"127.0.0.1:{port}\"\nAccept = true\nPollLimitBurst = 0\nTriggerLimitBurst = 0\n"),
    );
    setup.unit(
        "talk@.service",
        "[Service]\nStandardInput = \"socket\"\nStandardOutput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let reset = setup.file(
        "reset",
        "#!/usr/bin/python3\nimport socket, struct, sys\nfor _ in range(500):\n    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n    s.close()\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "talk.socket"]);
    let open = |m: &Manager| std::fs::read_dir(format!("/proc/{}/fd", m.pid())).unwrap().count();
    let before = open(&manager);
    assert!(std::process::Command::new(reset).arg(port.to_string()).status().unwrap().success());
    let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"real").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "real");
    manager.until("instances are left", |m| !text(&m.ctl(&["list", "--all"])).contains("talk@"));
    manager.until("descriptors are left", |m| open(m) <= before + 20);
}

#[test]
fn b080_two_hundred_services_that_start_at_once_see_no_descriptor_of_others() {
    let setup = Setup::new("two-hundred");
    let out = setup.path("seen");
    std::fs::create_dir(&out).unwrap();
    let script = format!(
        "for fd in /proc/$$/fd/*; do [ -L $fd ] && echo ${{fd##*/}}; done > {0}/.%i; mv {0}/.%i {0}/%i",
        out.display()
    );
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script.replace('$', "$$")];
    setup.unit("list@.service", &format!("[Service]\nType = \"oneshot\"\nExecStart = {argv:?}\n"));
    let wants: Vec<String> = (0..200).map(|n| format!("list@{n}.service")).collect();
    setup.unit("all.target", &format!("[Unit]\nWants = {wants:?}\n"));
    let (program, path) = (setup.file("echo", ECHO), setup.path("echo.sock"));
    setup.unit("echo.service", &format!("[Service]\nExecStart = [{program:?}, \"once\"]\n"));
    setup.unit(
        "echo.socket",
        &format!("[Socket]\nListenStream = {path:?}\nPollLimitBurst = 0\nTriggerLimitBurst = 0\n"),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "echo.socket"]);
    manager.ok(&["start", "--no-block", "all.target"]);
    for _ in 0..3 {
        assert!(ask(&path, "x").ends_with("x"));
        manager.ok(&["daemon-reload"]);
    }
    let done = |_: &mut Manager| (0..200).all(|n| out.join(n.to_string()).exists());
    manager.until("not all have looked", done);
    for n in 0..200 {
        // The shell itself opens the file that it writes to.
        let seen = std::fs::read_to_string(out.join(n.to_string())).unwrap();
        let seen: Vec<&str> = seen.lines().collect();
        assert_eq!(seen, ["0", "1", "10", "2"], "list@{n}");
    }
}

#[test]
fn b084_whatever_became_of_the_service_the_next_client_is_served_by_one_life() {
    let (mut manager, path) = echo("again", "TriggerLimitBurst = 0\nPollLimitBurst = 0\n", "", &[]);
    for round in 0..50 {
        match round * 7 % 3 {
            0 => drop(manager.ok(&["stop", "echo.service"])),
            1 => drop(manager.ok(&["restart", "echo.service"])),
            _ => {
                let _gone = manager.ctl(&["kill", "-s", "KILL", "echo.service"]);
            }
        }
        // Who is taken by the life that is being killed sees it end; the next life has who comes then.
        let mut killed = round * 7 % 3 == 2;
        let began = Instant::now();
        let answer = loop {
            match try_ask(&path, "x") {
                Ok(answer) if !answer.is_empty() => break answer,
                other => assert!(killed, "round {round}: {other:?}"),
            }
            killed = began.elapsed() < Duration::from_secs(5);
        };
        assert!(answer.ends_with(" x"), "round {round}: {answer:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "round {round}: {:?}", began.elapsed());
        let pid = answer.split(' ').next().unwrap().to_owned();
        manager
            .until("another life than that which answered", |m| m.property("echo.service", "MainPID") == pid);
    }
    assert_eq!(manager.property("echo.socket", "ActiveState"), "active");
}

/// As many as come in ten seconds, 5,000 at most: each is answered or closed, and none waits for ever.
#[test]
fn a_storm_of_connections_is_answered_or_refused_and_the_manager_lives() {
    const CLIENTS: usize = 5_000;
    let (mut manager, path) =
        talk("storm", "MaxConnections = 64\nPollLimitBurst = 0\nTriggerLimitBurst = 0\n");
    let kept: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).unwrap()).collect();
    manager.until_property("talk.socket", "NConnections", "4");
    let (began, next) = (Instant::now(), std::sync::atomic::AtomicUsize::new(0));
    let client = || {
        let (mut answered, mut refused) = (0, 0);
        while began.elapsed() < Duration::from_secs(10)
            && next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < CLIENTS
        {
            let mut client = UnixStream::connect(&path).unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut answer = String::new();
            // Who is refused may hear of it while it speaks.
            let said = client.write_all(b"x").and_then(|()| client.shutdown(std::net::Shutdown::Write));
            match said.and_then(|()| client.read_to_string(&mut answer)) {
                Ok(_) if answer == "x" => answered += 1,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("nobody answers"),
                Ok(_) | Err(_) => refused += 1,
            }
        }
        (answered, refused)
    };
    let ends: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..200).map(|_| scope.spawn(client)).collect();
        for _ in 0..20 {
            let count = manager.property("talk.socket", "NConnections").parse::<usize>().unwrap();
            assert!(count <= 8, "{count} connections at once");
        }
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let (answered, refused): (usize, usize) =
        ends.iter().fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
    println!("{answered} answered, {refused} refused in {:?}", began.elapsed());
    assert!(answered > 0);
    manager.until_property("talk.socket", "NConnections", "4");
    let count = |name: &str| manager.property("talk.socket", name).parse::<usize>().unwrap();
    assert_eq!((count("NAccepted"), count("NRefused")), (answered + kept.len(), refused));
    for client in kept {
        assert_eq!(say(client, "kept"), "kept");
    }
    assert_eq!(say(UnixStream::connect(&path).unwrap(), "last"), "last");
}
