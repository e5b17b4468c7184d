//! The manager's own log against a journal that is absent, gone, made again, and does not read.
#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the failure")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use agentd::journal::{self, Journal, JournalConfig, LogLevel};
use agentd_engine::{InvocationId, Level, Record};
use agentd_linux::epoll::Epoll;
use agentd_linux::kmsg::Kmsg;
use agentd_linux::notify::{NotifySocket, Received};
use agentd_unit::UnitName;
use tracing::Dispatch;

/// More than anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// A folder of a test's own with the socket of a journal in it, gone with it.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("agentd-journal-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    fn listen(&self) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.socket()).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A journal's next message: its fields in their order of names.
fn receive(socket: &UnixDatagram) -> BTreeMap<String, String> {
    let mut bytes = vec![0; 256 << 10];
    let length = socket.recv(&mut bytes).unwrap();
    fields(&bytes[..length])
}

/// Reads the native protocol as its document has it.
fn fields(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|b| matches!(b, b'=' | b'\n')).unwrap();
        let name = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let (value, rest) = if bytes[end] == b'=' {
            let length = bytes[end..].iter().position(|b| *b == b'\n').unwrap();
            (&bytes[end + 1..end + length], &bytes[end + length + 1..])
        } else {
            let (length, rest) = bytes[end + 1..].split_first_chunk::<8>().unwrap();
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
            assert_eq!(rest[length], b'\n');
            (&rest[..length], &rest[length + 1..])
        };
        let earlier = found.insert(name, String::from_utf8(value.to_vec()).unwrap());
        assert_eq!(earlier, None, "no field twice");
        bytes = rest;
    }
    found
}

fn build(config: JournalConfig) -> (Dispatch, Journal) {
    journal::build(config).unwrap()
}

fn with_journal_at(path: &Path) -> (Dispatch, Journal) {
    let journald = Some(path.to_owned());
    build(JournalConfig {
        level: LogLevel::Debug,
        journald,
        journald_may_come: true,
        ..JournalConfig::default()
    })
}

/// Says numbered things and checks that saying them waits for nothing.
fn say(dispatch: &Dispatch, numbers: std::ops::Range<u32>) {
    let mut slow = 0;
    tracing::dispatcher::with_default(dispatch, || {
        for number in numbers {
            let before = Instant::now();
            tracing::info!("message {number}");
            slow += u32::from(before.elapsed() > Duration::from_millis(50));
        }
    });
    // Now and then a busy machine takes the processor away; a wait would be one for every message.
    assert!(slow <= 5, "{slow} messages took more than 50 ms");
}

fn expect(socket: &UnixDatagram, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert_eq!(receive(socket)["MESSAGE"], format!("message {number}"));
    }
}

#[test]
fn an_engine_record_has_exactly_these_fields() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let record = Record {
        level: Level::Notice,
        unit: Some(UnitName::parse("web.service").unwrap()),
        run: Some(InvocationId(0xabc)),
        message_id: Some("be02cf6855d2428ba40df7e9d022f03d"),
        text: "web.service: Main process exited,\ncode=exited".to_owned(),
    };
    for (user, names) in [
        (false, ["UNIT", "OBJECT_SYSTEMD_UNIT", "INVOCATION_ID"]),
        (true, ["USER_UNIT", "OBJECT_SYSTEMD_USER_UNIT", "USER_INVOCATION_ID"]),
    ] {
        let journald = Some(dir.socket());
        let (_dispatch, journal) = build(JournalConfig { user, journald, ..JournalConfig::default() });
        journal.say(record.clone());
        let mut found = receive(&socket);
        let stamp = found.remove("SYSLOG_TIMESTAMP").unwrap();
        assert!(stamp.starts_with("20") && stamp.ends_with('Z') && stamp.len() == 27, "{stamp}");
        assert!(found.remove("CODE_LINE").unwrap().parse::<u32>().unwrap() > 0);
        let expected = BTreeMap::from(
            [
                ("MESSAGE", "web.service: Main process exited,\ncode=exited"),
                ("PRIORITY", "5"),
                ("SYSLOG_IDENTIFIER", "agentd"),
                ("SYSLOG_FACILITY", "3"),
                (names[0], "web.service"),
                (names[1], "web.service"),
                (names[2], "00000000000000000000000000000abc"),
                ("MESSAGE_ID", "be02cf6855d2428ba40df7e9d022f03d"),
                ("CODE_FILE", "crates/agentd/src/journal/message.rs"),
                ("TARGET", "agentd::journal::message"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        assert_eq!(found, expected);
    }
}

#[test]
fn every_level_has_its_priority() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let (dispatch, journal) = with_journal_at(&dir.socket());
    let record = |level| Record { level, unit: None, run: None, message_id: None, text: String::new() };
    tracing::dispatcher::with_default(&dispatch, || {
        for level in [Level::Error, Level::Warning, Level::Notice, Level::Info, Level::Debug] {
            journal.say(record(level));
        }
        tracing::error!("");
        tracing::warn!("");
        tracing::info!("");
        tracing::debug!("");
        tracing::trace!("never logged");
        tracing::error!(priority = 2_u64, "");
    });
    let priorities: String = (0..10).map(|_| receive(&socket)["PRIORITY"].clone()).collect();
    assert_eq!(priorities, "3456734672");
}

#[test]
fn what_is_quieter_than_the_level_goes_nowhere() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let journald = Some(dir.socket());
    let (dispatch, _journal) =
        build(JournalConfig { level: LogLevel::Notice, journald, ..JournalConfig::default() });
    tracing::dispatcher::with_default(&dispatch, || {
        tracing::info!("info");
        tracing::info!(priority = 5_u64, "notice");
        tracing::debug!("debug");
        tracing::warn!("warning");
    });
    assert_eq!(receive(&socket)["MESSAGE"], "notice");
    assert_eq!(receive(&socket)["MESSAGE"], "warning");
}

#[test]
fn other_fields_go_along_under_safe_names() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let (dispatch, _journal) = with_journal_at(&dir.socket());
    tracing::dispatcher::with_default(&dispatch, || {
        let error = io::Error::other("no space");
        tracing::warn!(unit = %"a.service", path = "/x", %error, target = 7, code_file = "forged", "cannot write");
    });
    let found = receive(&socket);
    assert_eq!((found["UNIT"].as_str(), found["PATH"].as_str()), ("a.service", "/x"));
    assert_eq!((found["ERROR"].as_str(), found["F_TARGET"].as_str()), ("no space", "7"));
    assert_eq!(found["F_CODE_FILE"], "forged");
    assert_eq!(found["CODE_FILE"], "crates/agentd/tests/journal.rs");
}

#[test]
fn a_journal_that_comes_late_goes_and_comes_again_misses_nothing() {
    let dir = TempDir::new();
    let (dispatch, journal) = with_journal_at(&dir.socket());
    say(&dispatch, 0..100);
    let begun = std::time::Instant::now();
    assert!(!journal.flush(LONG) && !journal.journald_is_up(), "it is not there");
    assert!(begun.elapsed() < LONG / 2, "the end of a manager waits for a journal that is not there");
    let first = dir.listen();
    journal.poke();
    expect(&first, 0..100);
    assert!(journal.flush(LONG) && journal.journald_is_up());

    // Removed, and its process gone.
    std::fs::remove_file(dir.socket()).unwrap();
    drop(first);
    say(&dispatch, 100..200);
    assert!(!journal.flush(Duration::from_millis(10)) && !journal.journald_is_up());
    let second = dir.listen();
    // Without being told: by its own attempts.
    expect(&second, 100..200);

    // Restarted between two messages.
    std::fs::remove_file(dir.socket()).unwrap();
    drop(second);
    let third = dir.listen();
    say(&dispatch, 200..201);
    expect(&third, 200..201);
}

#[test]
fn a_journal_that_does_not_read_delays_nobody_and_what_is_dropped_is_told() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let (dispatch, journal) = with_journal_at(&dir.socket());
    // More than the socket and the queue hold.
    say(&dispatch, 0..30_000);
    let mut next = 0;
    let mut dropped = 0;
    while next < 30_000 {
        let text = receive(&socket)["MESSAGE"].clone();
        match text.strip_suffix(" messages of agentd were dropped before this one") {
            Some(count) => {
                let count: u32 = count.parse().unwrap();
                next += count;
                dropped += count;
            }
            None => {
                assert_eq!(text, format!("message {next}"));
                next += 1;
            }
        }
    }
    assert!(dropped > 0);
    assert!(journal.flush(LONG));
}

#[test]
fn a_journal_that_dies_while_it_does_not_read_loses_only_what_it_had() {
    let dir = TempDir::new();
    let stuck = dir.listen();
    let (dispatch, journal) = with_journal_at(&dir.socket());
    say(&dispatch, 0..2000);
    assert!(!journal.flush(Duration::from_millis(300)), "the socket is full");
    let first = receive(&stuck)["MESSAGE"].clone();
    assert_eq!(first, "message 0");
    let mut had = 1;
    stuck.set_nonblocking(true).unwrap();
    std::fs::remove_file(dir.socket()).unwrap();
    while stuck.recv(&mut [0; 4096]).is_ok() {
        had += 1;
    }
    drop(stuck);
    let second = dir.listen();
    journal.poke();
    let next: u32 = receive(&second)["MESSAGE"].trim_start_matches("message ").parse().unwrap();
    assert!(next >= had, "message {next} after {had} were taken");
    expect(&second, next + 1..2000);
}

#[test]
fn a_message_too_large_for_a_datagram_goes_as_a_sealed_file() {
    let dir = TempDir::new();
    let mut socket = NotifySocket::bind(&dir.socket()).unwrap();
    let (dispatch, journal) = with_journal_at(&dir.socket());
    let say = |text: &str| tracing::dispatcher::with_default(&dispatch, || tracing::info!("{text}"));
    for size in [1 << 10, 500 << 10, 5 << 20] {
        let text = "x".repeat(size);
        say(&text);
        let message = fields(&content(&mut socket))["MESSAGE"].clone();
        if size <= 1 << 20 {
            assert_eq!(message, text);
        } else {
            assert!(message.ends_with("… (4194304 more bytes are cut off)") && message.len() < 2 << 20);
        }
    }
    assert!(journal.flush(LONG));
    let before = descriptors();
    for _ in 0..50 {
        say(&"x".repeat(500 << 10));
        content(&mut socket);
    }
    assert!(journal.flush(LONG));
    assert!(descriptors() <= before + 30, "no descriptor is left for each, whatever other tests open");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The content of the next message, in the datagram or in the sealed file that came with it.
fn content(socket: &mut NotifySocket) -> Vec<u8> {
    let epoll = Epoll::new().unwrap();
    epoll.add(&*socket, 0).unwrap();
    let mut ready = Vec::new();
    epoll.wait(&mut ready, Some(LONG)).unwrap();
    let Some(Received::Datagram(datagram)) = socket.receive().unwrap() else { panic!("no whole datagram") };
    match datagram.fds.first() {
        None => datagram.bytes,
        Some(file) => {
            assert!(datagram.bytes.is_empty());
            std::fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
        }
    }
}

/// Something to write to that says what was written, and can be stopped.
#[derive(Clone, Default)]
struct Terminal {
    text: Arc<Mutex<String>>,
    stopped: Arc<Mutex<()>>,
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _running = self.stopped.lock().unwrap();
        self.text.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_for_people_name_the_unit_and_cannot_steer_the_terminal() {
    let (stderr, console) = (Terminal::default(), Terminal::default());
    let (dispatch, journal) = build(JournalConfig {
        level: LogLevel::Debug,
        stderr: Some(Box::new(stderr.clone())),
        console: Some((LogLevel::Warning, Box::new(console.clone()))),
        ..JournalConfig::default()
    });
    tracing::dispatcher::with_default(&dispatch, || {
        tracing::info!(unit = "web.service", "started");
        tracing::warn!(unit = "web.service", "web.service: status is \u{1b}[2J\u{7}");
        let error = io::Error::other("no space");
        tracing::error!(%error, path = "/x", "cannot write\nthe log");
    });
    assert!(journal.flush(LONG));
    let text = stderr.text.lock().unwrap();
    let without_times: Vec<&str> = text.lines().map(|line| &line[28..]).collect();
    assert_eq!(
        without_times,
        [
            "info web.service: started",
            "warning web.service: status is \\u{1b}[2J\\u{7}",
            "err cannot write",
            "err the log: no space, path=/x"
        ]
    );
    let console = console.text.lock().unwrap();
    assert_eq!(
        *console,
        "agentd: web.service: status is \\u{1b}[2J\\u{7}\r\nagentd: cannot write\r\nagentd: the log: no space, path=/x\r\n"
    );
}

#[test]
fn what_the_kernel_shows_is_not_on_the_console_a_second_time() {
    // Any character device takes what is for the kernel's log.
    let kmsg = || Some(Kmsg::open(Path::new("/dev/null")).unwrap());
    for (kmsg, kernel_shows, expected) in [
        (kmsg(), Some(7), ""),
        (kmsg(), Some(5), "agentd: quiet\r\n"),
        (kmsg(), Some(4), "agentd: quiet\r\nagentd: loud\r\n"),
        (kmsg(), None, "agentd: quiet\r\nagentd: loud\r\n"),
        (None, Some(7), "agentd: quiet\r\nagentd: loud\r\n"),
    ] {
        let console = Terminal::default();
        let (dispatch, journal) = build(JournalConfig {
            console: Some((LogLevel::Info, Box::new(console.clone()))),
            kmsg,
            kernel_shows,
            ..JournalConfig::default()
        });
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!("quiet");
            tracing::warn!("loud");
        });
        assert!(journal.flush(LONG));
        assert_eq!(*console.text.lock().unwrap(), expected, "console_loglevel {kernel_shows:?}");
    }
}

#[test]
fn a_stopped_terminal_delays_neither_the_loop_nor_the_journal() {
    let dir = TempDir::new();
    let socket = dir.listen();
    let terminal = Terminal::default();
    let (dispatch, journal) = build(JournalConfig {
        stderr: Some(Box::new(terminal.clone())),
        journald: Some(dir.socket()),
        journald_may_come: true,
        ..JournalConfig::default()
    });
    let stopped = terminal.stopped.lock().unwrap();
    let (done, heard) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        expect(&socket, 0..1000);
        done.send(()).unwrap();
    });
    say(&dispatch, 0..1000);
    heard.recv_timeout(LONG).unwrap();
    reader.join().unwrap();
    assert!(!journal.flush(Duration::from_millis(10)), "the terminal has taken nothing");
    drop(stopped);
    assert!(journal.flush(LONG));
    assert_eq!(terminal.text.lock().unwrap().lines().count(), 1000);
}
