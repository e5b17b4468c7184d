//! What is made is what the unit says, and what stands in the way of it is left alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;

use agentd_unit::sections::{Listen, ListenAddress, ListenKind, SocketSection};

use super::*;
use crate::testing::TempDir;

fn at(kind: ListenKind, path: PathBuf) -> Listen {
    Listen { kind, address: ListenAddress::Path(path) }
}

fn open(listen: &Listen, change: impl FnOnce(&mut SocketSection)) -> Result<Listener, ListenError> {
    let mut section = SocketSection::default();
    change(&mut section);
    Listener::open(listen, &section, Owner::default())
}

fn option(fd: impl AsFd, level: i32, name: i32) -> i32 {
    let (mut value, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    let (to, size) = ((&raw mut value).cast(), &raw mut length);
    // SAFETY: the call writes one int to the live local.
    assert_eq!(unsafe { libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, to, size) }, 0);
    value
}

#[test]
fn a_stream_at_a_path_has_its_folders_its_mode_and_its_links() {
    let folder = TempDir::new();
    let (path, link) = (folder.path().join("a/b/s"), folder.path().join("l/link"));
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "somebody's").unwrap();
    let symlinks = vec![taken.clone(), link.clone()];
    let section = SocketSection { mode: 0o620, directory_mode: 0o710, symlinks, ..SocketSection::default() };
    let listener = Listener::open(&at(ListenKind::Stream, path.clone()), &section, Owner::default()).unwrap();
    let failed: Vec<String> = listener.link(&section).iter().map(ListenError::to_string).collect();
    assert!(
        failed.len() == 1 && failed[0].starts_with(&format!("Symlinks={}", taken.display())),
        "{failed:?}"
    );
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "somebody's");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o620, 0o710));
    let mut client = UnixStream::connect(&link).unwrap();
    client.write_all(b"x").unwrap();
    let accepted = accept(&listener).unwrap().unwrap();
    assert_eq!(accepted.from, Origin::Local(std::process::id(), nix::unistd::getuid().as_raw()));
    assert!(accept(&listener).unwrap().is_none(), "nobody else is there");
    let node = listener.node().unwrap().clone();
    assert!(node.is_there());
    node.remove(std::slice::from_ref(&link)).unwrap();
    assert!(!path.exists() && !link.is_symlink() && !node.is_there());
}

#[test]
fn a_socket_that_nobody_listens_on_is_replaced_and_nothing_else() {
    let folder = TempDir::new();
    for kind in [ListenKind::Stream, ListenKind::Datagram, ListenKind::SequentialPacket] {
        let path = folder.path().join(format!("{kind:?}"));
        drop(open(&at(kind, path.clone()), |_| {}).unwrap());
        let _again = open(&at(kind, path.clone()), |_| {}).unwrap();
        let refused = open(&at(kind, path), |_| {}).unwrap_err().to_string();
        assert!(refused.contains("another process listens there"), "{refused}");
    }
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "x").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let live = folder.path().join("live");
    let _live = UnixListener::bind(&live).unwrap();
    for path in [&victim, &link, &live] {
        let refused = open(&at(ListenKind::Stream, path.clone()), |_| {}).unwrap_err();
        assert_eq!(refused.source.raw_os_error(), Some(libc::EADDRINUSE), "{refused}");
        assert!(refused.to_string().starts_with(&format!("ListenStream={}", path.display())), "{refused}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"x");
    assert!(link.is_symlink());
    UnixStream::connect(&live).unwrap();
}

#[test]
fn a_fifo_is_kept_and_a_file_in_its_place_is_refused() {
    let folder = TempDir::new();
    let path = folder.path().join("fifo");
    let fifo = open(&at(ListenKind::Fifo, path.clone()), |s| s.mode = 0o640).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert!(meta.file_type().is_fifo() && meta.permissions().mode() & 0o777 == 0o640);
    drop(fifo);
    let fifo = open(&at(ListenKind::Fifo, path.clone()), |s| s.options.pipe_size = Some(65_536)).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(b"hello").unwrap();
    let mut read = [0; 5];
    std::fs::File::from(fifo.fd.try_clone().unwrap()).read_exact(&mut read).unwrap();
    assert_eq!(&read, b"hello");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = open(&at(ListenKind::Fifo, file), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("in its place"), "{refused}");
}

#[test]
fn names_and_ports_are_listened_on_with_their_options() {
    // What is for some families leaves the others as they are.
    let all = |s: &mut SocketSection| {
        (s.options.pass_credentials, s.options.reuse_port, s.options.broadcast) = (true, true, true);
        (s.device, s.options.no_delay) = (Some("nowhere".into()), true);
    };
    let name = format!("agentd-test-{}", std::process::id());
    let abstractly = Listen { kind: ListenKind::Datagram, address: ListenAddress::Abstract(name) };
    let socket = open(&abstractly, all).unwrap();
    assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_PASSCRED), 1);
    let any = ListenAddress::Inet("127.0.0.1:0".parse().unwrap());
    for kind in [ListenKind::Stream, ListenKind::Datagram] {
        let change = |s: &mut SocketSection| {
            all(s);
            s.device = None;
        };
        let socket = open(&Listen { kind, address: any.clone() }, change).unwrap();
        assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT), 1, "{kind:?}");
    }

    // A port that was free a moment ago: another test program may have it by now, and then the next one serves.
    let tcp = (0..20)
        .find_map(|_| {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let listen = Listen { kind: ListenKind::Stream, address: ListenAddress::Inet(free) };
            let change = |s: &mut SocketSection| {
                (s.options.no_delay, s.options.keep_alive, s.options.reuse_port) = (true, true, true);
                (s.options.free_bind, s.options.ip_ttl) = (true, Some(7));
                (s.options.receive_buffer, s.options.send_buffer) = (Some(65_536), Some(32_768));
                s.options.keep_alive_time = Some(std::time::Duration::from_millis(10_500));
            };
            open(&listen, change).ok().map(|listener| (free, listener))
        })
        .unwrap();
    let (address, listener) = tcp;
    for (level, name, value) in [
        (libc::SOL_TCP, libc::TCP_NODELAY, 1),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT, 1),
        (libc::SOL_IP, libc::IP_FREEBIND, 1),
        (libc::SOL_IP, libc::IP_TTL, 7),
        (libc::SOL_TCP, libc::TCP_KEEPIDLE, 11),
        // The kernel doubles what it is asked for, socket(7).
        (libc::SOL_SOCKET, libc::SO_RCVBUF, 131_072),
        (libc::SOL_SOCKET, libc::SO_SNDBUF, 65_536),
    ] {
        assert_eq!(option(&listener, level, name), value, "option {name} of level {level}");
    }
    let client = TcpStream::connect(address).unwrap();
    let accepted = accept(&listener).unwrap().unwrap();
    assert_eq!(accepted.from, Origin::Inet(address, client.local_addr().unwrap()));
    assert_eq!(accepted.from.source().as_deref(), Some("127.0.0.1"));
}

#[test]
fn what_waits_is_thrown_away() {
    let folder = TempDir::new();
    let path = folder.path().join("stream");
    let stream = open(&at(ListenKind::Stream, path.clone()), |_| {}).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    flush(&stream).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "the connection is closed");
    assert!(accept(&stream).unwrap().is_none());

    let path = folder.path().join("datagram");
    let datagram = open(&at(ListenKind::Datagram, path.clone()), |_| {}).unwrap();
    UnixDatagram::unbound().unwrap().send_to(b"x", &path).unwrap();
    flush(&datagram).unwrap();
    let socket = UnixDatagram::from(datagram.fd);
    assert_eq!(socket.recv(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn what_a_process_listens_on_is_taken_back_from_it_by_its_address() {
    let folder = TempDir::new();
    let name = format!("agentd-lent-{}", std::process::id());
    let abstractly = |kind| Listen { kind, address: ListenAddress::Abstract(name.clone()) };
    let own = std::process::id();
    let link = |listener: &Listener| {
        std::fs::read_link(format!("/proc/self/fd/{}", listener.as_fd().as_raw_fd())).unwrap()
    };
    for kind in [ListenKind::Stream, ListenKind::Datagram, ListenKind::SequentialPacket] {
        for listen in [at(kind, folder.path().join(format!("{kind:?}"))), abstractly(kind)] {
            assert!(Listener::lent(&listen, own).unwrap().is_none(), "{listen:?}: nobody listens yet");
            let listener = open(&listen, |_| {}).unwrap();
            let lent = Listener::lent(&listen, own).unwrap().unwrap();
            assert_eq!(link(&lent), link(&listener), "{listen:?}");
            assert_eq!(lent.node(), listener.node());
        }
    }
    // A connection has the listener's address, and is none.
    let listen = at(ListenKind::Stream, folder.path().join("gone"));
    let listener = open(&listen, |_| {}).unwrap();
    let _client = UnixStream::connect(folder.path().join("gone")).unwrap();
    let _accepted = accept(&listener).unwrap().unwrap();
    drop(listener);
    assert!(Listener::lent(&listen, own).unwrap().is_none());
}
