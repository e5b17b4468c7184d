//! Each key of `[Socket]`, from the file to what the kernel says of the descriptor that the service gets.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;

use common::{Manager, PATIENCE, Setup};

/// Writes what its descriptors say to the questions of its arguments, each Python with `s` for the first one as a socket.
const ASK: &str = "#!/usr/bin/python3\n\
    import ctypes, fcntl, os, socket, struct, sys, time\n\
    try:\n\
    \x20   s = socket.socket(fileno=os.dup(3))\n\
    except OSError:\n\
    \x20   s = None\n\
    def text(level, name):\n\
    \x20   return s.getsockopt(level, name, 64).split(b'\\0')[0].decode()\n\
    def queue():\n\
    \x20   attributes = (ctypes.c_long * 8)()\n\
    \x20   ctypes.CDLL(None).mq_getattr(3, attributes)\n\
    \x20   return list(attributes[1:3])\n\
    out, questions = sys.argv[1], sys.argv[2:]\n\
    with open(out + '.new', 'w') as file:\n\
    \x20   for question in questions:\n\
    \x20       print(eval(question), file=file)\n\
    os.rename(out + '.new', out)\n\
    time.sleep(1000)\n";

/// One line of a unit's file, what the service asks, and the answer.
type Row = (&'static str, &'static str, &'static str);

/// What a service with these lines and no others finds.
fn answers(name: &str, listen: &str, rows: &[Row]) -> (Manager, Vec<String>) {
    let setup = Setup::new(&format!("keys-{name}"));
    let (program, out) = (setup.file("ask", ASK), setup.path("out"));
    let mut argv = vec![program.display().to_string(), out.display().to_string()];
    argv.extend(rows.iter().map(|(_, question, _)| (*question).to_owned()));
    setup.unit("ask.service", &format!("[Service]\nExecStart = {argv:?}\n"));
    let lines: Vec<&str> = rows.iter().map(|(line, ..)| *line).collect();
    let folder = setup.path("");
    let text = format!("[Socket]\n{listen}\n{}\n", lines.join("\n"))
        .replace("FOLDER", &folder.display().to_string());
    setup.unit("ask.socket", &text);
    let mut manager = setup.start();
    manager.ok(&["start", "ask.socket"]);
    manager.ok(&["start", "ask.service"]);
    manager.until("the service does not answer", |_| out.exists());
    let said = fs::read_to_string(&out).unwrap().lines().map(str::to_owned).collect();
    (manager, said)
}

/// A port of this machine that nobody has just now; another one where somebody takes it before the test does.
fn with_port(name: &str, listen: &str, rows: &[Row]) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (_manager, said) = answers(name, &listen.replace("PORT", &port.to_string()), rows);
    check(&said, rows);
}

fn check(said: &[String], rows: &[Row]) {
    for ((line, question, expected), answer) in rows.iter().zip(said) {
        assert_eq!(answer, expected, "{line}: {question}");
    }
    assert_eq!(said.len(), rows.len());
}

#[test]
fn a_stream_of_the_internet_has_the_options_of_its_unit() {
    with_port(
        "tcp",
        "ListenStream = \"127.0.0.1:PORT\"",
        &[
            ("KeepAlive = true", "s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)", "1"),
            ("KeepAliveTimeSec = \"11s\"", "s.getsockopt(socket.SOL_TCP, socket.TCP_KEEPIDLE)", "11"),
            ("KeepAliveIntervalSec = \"7s\"", "s.getsockopt(socket.SOL_TCP, socket.TCP_KEEPINTVL)", "7"),
            ("KeepAliveProbes = 5", "s.getsockopt(socket.SOL_TCP, socket.TCP_KEEPCNT)", "5"),
            ("NoDelay = true", "s.getsockopt(socket.SOL_TCP, socket.TCP_NODELAY)", "1"),
            ("DeferAcceptSec = \"3s\"", "s.getsockopt(socket.SOL_TCP, socket.TCP_DEFER_ACCEPT)", "3"),
            ("TCPCongestion = \"reno\"", "text(socket.SOL_TCP, socket.TCP_CONGESTION)", "reno"),
            ("FreeBind = true", "s.getsockopt(socket.SOL_IP, 15)", "1"),
            ("Transparent = true", "s.getsockopt(socket.SOL_IP, 19)", "1"),
            ("IPTTL = 9", "s.getsockopt(socket.SOL_IP, socket.IP_TTL)", "9"),
            ("ReusePort = true", "s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)", "1"),
            ("Priority = 3", "s.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)", "3"),
            ("Mark = 7", "s.getsockopt(socket.SOL_SOCKET, socket.SO_MARK)", "7"),
            // The kernel doubles what it is asked for, socket(7).
            ("ReceiveBuffer = \"64K\"", "s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)", "131072"),
            ("SendBuffer = \"32K\"", "s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)", "65536"),
            ("BindToDevice = \"lo\"", "text(socket.SOL_SOCKET, socket.SO_BINDTODEVICE)", "lo"),
            // Of a listener this field of tcp_info is its bound.
            (
                "Backlog = 13",
                "struct.unpack_from('I', s.getsockopt(socket.SOL_TCP, socket.TCP_INFO, 104), 28)[0]",
                "13",
            ),
            ("FileDescriptorName = \"front\"", "os.environ['LISTEN_FDNAMES']", "front"),
        ],
    );
}

#[test]
fn both_kinds_of_ip_share_a_port_or_do_not() {
    for (word, only) in [("both", "0"), ("ipv6-only", "1")] {
        with_port(
            &format!("ipv6-{word}"),
            &format!("ListenStream = \"PORT\"\nBindIPv6Only = \"{word}\""),
            &[
                (
                    "",
                    "s.getsockopt(socket.SOL_IPV6 if hasattr(socket, 'SOL_IPV6') else 41, socket.IPV6_V6ONLY)",
                    only,
                ),
                ("IPTTL = 9", "s.getsockopt(41, socket.IPV6_UNICAST_HOPS)", "9"),
            ],
        );
    }
}

#[test]
fn datagrams_fifos_and_files_have_the_options_of_their_units() {
    with_port(
        "udp",
        "ListenDatagram = \"127.0.0.1:PORT\"",
        &[
            ("Broadcast = true", "s.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST)", "1"),
            ("", "s.type == socket.SOCK_DGRAM", "True"),
        ],
    );
    let cases: [(&str, &str, &[Row]); 4] = [
        (
            "unix",
            "ListenDatagram = \"FOLDER/s\"",
            &[("PassCredentials = true", "s.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED)", "1")],
        ),
        (
            "packets",
            "ListenSequentialPacket = \"FOLDER/s\"",
            &[
                ("Backlog = 13", "s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)", "1"),
                ("", "s.type == socket.SOCK_SEQPACKET", "True"),
            ],
        ),
        ("fifo", "ListenFIFO = \"FOLDER/f\"", &[("PipeSize = \"128K\"", "fcntl.fcntl(3, 1032)", "131072")]),
        (
            "special",
            "ListenSpecial = \"/dev/random\"",
            &[
                ("Writable = true", "fcntl.fcntl(3, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR", "True"),
                ("", "len(os.read(3, 2))", "2"),
            ],
        ),
    ];
    for (name, listen, rows) in cases {
        check(&answers(name, listen, rows).1, rows);
    }
}

#[test]
fn files_have_their_owner_their_modes_and_their_links_and_go_with_the_unit() {
    let rows: &[Row] = &[
        ("SocketUser = \"4242\"\nSocketGroup = \"4343\"", "1", "1"),
        ("SocketMode = \"0620\"\nDirectoryMode = \"0710\"", "1", "1"),
        ("Symlinks = [\"FOLDER/l/link\"]\nRemoveOnStop = true", "1", "1"),
    ];
    let (mut manager, _) = answers("files", "ListenStream = \"FOLDER/deep/s\"", rows);
    let (path, link) = (manager.path("deep/s"), manager.path("l/link"));
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777), (4242, 4343, 0o620));
    assert_eq!(fs::metadata(manager.path("deep")).unwrap().permissions().mode() & 0o7777, 0o710);
    assert_eq!(fs::read_link(&link).unwrap(), path);
    manager.ok(&["stop", "ask.service", "ask.socket"]);
    assert!(!path.exists() && !link.is_symlink());
}

/// Calls of mq_overview(7), which Python has no module for.
const QUEUE: &str = "#!/usr/bin/python3\nimport ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\nif sys.argv[1] == 'send':\n    fd = libc.mq_open(sys.argv[2].encode(), os.O_WRONLY)\n    sys.exit(libc.mq_send(fd, sys.argv[3].encode(), len(sys.argv[3]), 0) != 0)\nbuffer = ctypes.create_string_buffer(64)\nlength = libc.mq_receive(3, buffer, 64, None)\nwith open(sys.argv[2], 'ab') as out:\n    out.write(buffer.raw[:length] + b'\\n')\n";

#[test]
fn a_message_in_a_queue_starts_its_service_which_reads_it() {
    let setup = Setup::new("queue");
    let name = format!("/agentd-test-{}", std::process::id());
    let (program, out) = (setup.file("queue", QUEUE), setup.path("out"));
    setup.unit("queue.service", &format!("[Service]\nExecStart = [{program:?}, \"receive\", {out:?}]\n"));
    setup.unit(
        "queue.socket",
        &format!("[Socket]\nListenMessageQueue = {name:?}\nMessageQueueMaxMessages = 3\nMessageQueueMessageSize = 64\nSocketMode = \"0600\"\nRemoveOnStop = true\n"),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "queue.socket"]);
    let send = |word: &str| {
        std::process::Command::new(&program).args(["send", &name, word]).status().unwrap().success()
    };
    let mut expected = String::new();
    for word in ["one", "two"] {
        assert!(send(word));
        expected += &format!("{word}\n");
        manager.until("it is not read", |_| fs::read_to_string(&out).is_ok_and(|text| text == expected));
        manager.until_property("queue.socket", "SubState", "listening");
    }
    manager.ok(&["stop", "queue.socket"]);
    assert!(!send("three"), "the queue is gone");
}

#[test]
fn a_queue_is_as_large_as_its_unit_says() {
    let listen = format!("ListenMessageQueue = \"/agentd-size-{}\"\nRemoveOnStop = true", std::process::id());
    let rows: &[Row] = &[
        ("MessageQueueMaxMessages = 3\nMessageQueueMessageSize = 64", "queue()", "[3, 64]"),
        (
            "SocketMode = \"0640\"\nSocketUser = \"4242\"",
            "(os.fstat(3).st_mode & 0o777 == 0o640, os.fstat(3).st_uid)",
            "(True, 4242)",
        ),
    ];
    let (mut manager, said) = answers("queue-size", &listen, rows);
    check(&said, rows);
    manager.ok(&["stop", "ask.service", "ask.socket"]);
}

/// Answers one connection and ends.
const ONCE: &str = "#!/usr/bin/python3\nimport socket\nclient, _ = socket.socket(fileno=3).accept()\nclient.sendall(client.recv(100))\n";

fn connect(manager: &Manager) -> UnixStream {
    let client = UnixStream::connect(manager.path("s")).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn heard(mut client: UnixStream) -> String {
    let mut said = String::new();
    let _reset = client.read_to_string(&mut said);
    said
}

fn once(name: &str, keys: &str) -> Manager {
    let setup = Setup::new(name);
    let (program, path) = (setup.file("once", ONCE), setup.path("s"));
    setup.unit("other.service", &format!("[Service]\nExecStart = [{program:?}]\n"));
    setup.unit(
        "once.socket",
        &format!("[Socket]\nListenStream = {path:?}\nService = \"other.service\"\n{keys}\n"),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "once.socket"]);
    manager
}

#[test]
fn what_waits_when_a_service_ends_is_thrown_away_or_kept() {
    for (flush, second_is_served) in [(true, false), (false, true)] {
        let mut manager = once(&format!("flush-{flush}"), &format!("FlushPending = {flush}"));
        let (mut first, mut second) = (connect(&manager), connect(&manager));
        second.write_all(b"second").unwrap();
        manager.until_property("other.service", "ActiveState", "active");
        first.write_all(b"first").unwrap();
        assert_eq!(heard(first), "first");
        assert_eq!(heard(second), if second_is_served { "second" } else { "" }, "FlushPending={flush}");
        manager.until_property("once.socket", "SubState", "listening");
        let mut third = connect(&manager);
        third.write_all(b"third").unwrap();
        assert_eq!(heard(third), "third");
    }
}

#[test]
fn who_comes_too_often_waits_as_long_as_the_poll_limit_says() {
    let mut manager =
        once("poll", "PollLimitBurst = 2\nPollLimitIntervalSec = \"1h\"\nTriggerLimitBurst = 0");
    for _ in 0..2 {
        let mut client = connect(&manager);
        client.write_all(b"x").unwrap();
        assert_eq!(heard(client), "x");
        manager.until_property("once.socket", "SubState", "listening");
    }
    let client = connect(&manager);
    manager.wait_for_log("what comes waits", "it is not told");
    assert_eq!(manager.property("once.socket", "ActiveState"), "active");
    client.set_nonblocking(true).unwrap();
    assert_eq!((&client).read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it waits");
}

#[test]
fn one_source_has_no_more_connections_than_its_bound() {
    let setup = Setup::new("source");
    let path = setup.path("s");
    setup.unit(
        "cat.socket",
        &format!("[Socket]\nListenStream = {path:?}\nAccept = true\nMaxConnectionsPerSource = 1\n"),
    );
    setup.unit(
        "cat@.service",
        "[Service]\nStandardInput = \"socket\"\nStandardOutput = \"socket\"\nExecStart = [\"/bin/cat\"]\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "cat.socket"]);
    let mut first = connect(&manager);
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    assert_eq!(heard(connect(&manager)), "", "one more from the same user");
    assert_eq!(manager.property("cat.socket", "NRefused"), "1");
}

#[test]
fn a_file_whose_owner_cannot_be_found_any_more_is_not_made_anew_for_another_one() {
    let setup = Setup::new("owner");
    let (program, path) = (setup.file("once", ONCE), setup.path("s"));
    setup.unit("once.service", &format!("[Service]\nExecStart = [{program:?}]\n"));
    setup.unit("once.socket", &format!("[Socket]\nListenStream = {path:?}\nSocketUser = \"sock\"\n"));
    let passwd = setup.file("passwd", "root:x:0:0::/root:/bin/sh\nsock:x:4242:4242::/:/bin/sh\n");
    let mount = format!("mount --bind {} /etc/passwd", passwd.display());
    let mut manager = setup.mounts(&mount).start();
    manager.ok(&["start", "once.socket"]);
    assert_eq!(fs::metadata(&path).unwrap().uid(), 4242);
    fs::remove_file(&path).unwrap();
    fs::write(&passwd, "root:x:0:0::/root:/bin/sh\n").unwrap();
    manager.ok(&["start", "once.service"]);
    manager.wait_for_log("cannot be made anew: SocketUser=sock", "it is not told");
    assert!(!path.exists());
}

#[test]
fn a_socket_that_cannot_be_made_whole_leaves_nothing_where_it_is_to_leave_nothing() {
    let setup = Setup::new("keys-half");
    setup.unit("ask.service", "[Service]\nExecStart = \"/bin/true\"\n");
    let (first, link) = (setup.path("first"), setup.path("link"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let second = taken.local_addr().unwrap().to_string();
    setup.unit(
        "ask.socket",
        &format!(
            "[Socket]\nListenStream = [{first:?}, {second:?}]\nSymlinks = [{link:?}]\nRemoveOnStop = true\n"
        ),
    );
    let manager = setup.start();
    assert_eq!(manager.ctl(&["start", "ask.socket"]).status.code(), Some(1));
    assert_eq!(manager.property("ask.socket", "ActiveState"), "failed");
    assert!(!first.exists() && !link.is_symlink());
}

#[test]
fn a_file_in_the_place_of_a_link_is_told_of_and_stays() {
    let setup = Setup::new("keys-link");
    setup.unit("ask.service", "[Service]\nExecStart = \"/bin/true\"\n");
    let taken = setup.file("taken", "somebody's");
    let section = format!("[Socket]\nListenStream = {:?}\nSymlinks = [{taken:?}]\n", setup.path("first"));
    setup.unit("ask.socket", &section);
    let mut manager = setup.start();
    manager.ok(&["start", "ask.socket"]);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "somebody's");
    manager.wait_for_log(&format!("Symlinks={}", taken.display()), "the link");
}

#[test]
fn accept_is_nothing_to_what_has_no_connections() {
    let setup = Setup::new("keys-accept");
    let (socket, said) = (setup.path("socket"), setup.path("said"));
    let program = setup.file(
        "read",
        "#!/usr/bin/python3\nimport socket, sys\ns = socket.socket(fileno=3)\nopen(sys.argv[1], 'wb').write(s.recv(9))\n",
    );
    setup.unit("ask.service", &format!("[Service]\nExecStart = [{program:?}, {said:?}]\n"));
    setup.unit("ask.socket", &format!("[Socket]\nListenDatagram = {socket:?}\nAccept = true\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "ask.socket"]);
    std::os::unix::net::UnixDatagram::unbound().unwrap().send_to(b"hello", &socket).unwrap();
    manager.until("nobody reads it", |_| fs::read(&said).is_ok_and(|text| text == b"hello"));
}
