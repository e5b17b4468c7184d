//! The embedded log with real pipes, real processes and real disks.
#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the failure")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use agentd::log::{Ending, Entry, LineRules, LogConfig, LogStore, Origin, RateLimit};
use agentd_engine::InvocationId;
use agentd_unit::UnitName;

/// More than anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// A folder of a test's own, gone with it.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("agentd-log-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn unit(name: &str) -> UnitName {
    UnitName::parse(name).unwrap()
}

fn run(number: u128) -> InvocationId {
    InvocationId(number)
}

fn read(store: &LogStore, unit: &UnitName, last: usize) -> Vec<Entry> {
    let (reply, answer) = mpsc::channel();
    store.read(unit, last, move |entries| reply.send(entries).unwrap());
    answer.recv_timeout(LONG).unwrap().unwrap()
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|e| String::from_utf8_lossy(&e.text).into_owned()).collect()
}

/// A pipe whose read end the store has.
fn attached(store: &LogStore, unit: &UnitName, run: InvocationId) -> std::io::PipeWriter {
    let (read, write) = std::io::pipe().unwrap();
    store.attach(unit, run, read.into(), LineRules::default());
    write
}

#[test]
fn two_thousand_short_runs_keep_their_lines_before_their_exit() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0)).unwrap();
    let unit = unit("short.service");
    let next = AtomicU32::new(1);
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number > 2000 {
                        return;
                    }
                    let run = run(u128::from(number) << 64 | 7);
                    let write = attached(&store, &unit, run);
                    let status = Command::new("/bin/sh")
                        .args(["-c", &format!("echo a{number}; echo b{number} >&2; printf last; exit 3")])
                        .stdout(write.try_clone().unwrap())
                        .stderr(write)
                        .status()
                        .unwrap();
                    store.drain(run);
                    store.record(&unit, Some(run), 5, &format!("exited {}", status.code().unwrap()));
                }
            });
        }
    });
    let mut by_run: BTreeMap<_, Vec<Entry>> = BTreeMap::new();
    for entry in read(&store, &unit, usize::MAX) {
        by_run.entry(entry.run.unwrap().0 >> 64).or_default().push(entry);
    }
    assert_eq!(by_run.len(), 2000);
    for (number, entries) in by_run {
        let expected = [format!("a{number}"), format!("b{number}"), "last".to_owned(), "exited 3".to_owned()];
        assert_eq!(texts(&entries), expected);
        assert_eq!((entries[2].ending, entries[3].origin), (Ending::Eof, Origin::Manager));
    }
}

#[test]
fn a_record_between_two_runs_belongs_to_none() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0)).unwrap();
    let unit = unit("a.service");
    store.record(&unit, Some(run(1)), 6, "one");
    store.record(&unit, None, 3, "between\nin two lines");
    store.record(&unit, Some(run(2)), 6, "two");
    let entries = read(&store, &unit, 10);
    let told: Vec<_> = entries.iter().map(|e| (e.run, e.priority)).collect();
    assert_eq!(texts(&entries), ["one", "between", "in two lines", "two"]);
    assert_eq!(told, [(Some(run(1)), 6), (None, 3), (None, 3), (Some(run(2)), 6)]);
    assert_eq!(texts(&read(&store, &unit, 2)), ["in two lines", "two"]);
    assert!(read(&store, &self::unit("other.service"), 2).is_empty());
}

#[test]
fn the_file_is_for_people_too() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0.join("deep/er"))).unwrap();
    let unit = unit("web@1.service");
    attached(&store, &unit, run(0xabc)).write_all(b"<3>bad\nlast words").unwrap();
    store.drain(run(0xabc));
    store.record(&unit, Some(run(0xabc)), 4, "exited");
    assert!(store.stop(LONG));
    let path = dir.0.join("deep/er/web@1.service.log");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let text = fs::read_to_string(path).unwrap();
    let without_times: Vec<&str> = text.lines().map(|line| &line[27..]).collect();
    let expected = [" run 00000000000000000000000000000abc", " <3> bad", " <6>. last words", " <4>* exited"];
    assert_eq!(without_times, expected);
}

#[test]
fn rotation_keeps_the_newest_lines_within_the_bounds() {
    let dir = TempDir::new();
    let mut config = LogConfig::new(&dir.0);
    (config.max_bytes_per_unit, config.files_kept, config.max_line) = (40_000, 3, 200);
    let store = LogStore::start(config).unwrap();
    let unit = unit("a.service");
    let mut pipe = attached(&store, &unit, run(1));
    for number in 0..20_000 {
        writeln!(pipe, "line {number}").unwrap();
    }
    drop(pipe);
    flush(&store);
    let files: Vec<_> = fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap()).collect();
    let total: u64 = files.iter().map(|f| f.metadata().unwrap().len()).sum();
    assert!(total <= 40_000 && total > 25_000, "{total} bytes");
    assert_eq!(files.len(), 4);
    let entries = read(&store, &unit, usize::MAX);
    let first: u32 = texts(&entries)[0].trim_start_matches("line ").parse().unwrap();
    let expected: Vec<String> = (first..20_000).map(|n| format!("line {n}")).collect();
    assert_eq!(texts(&entries), expected, "no line is missing from the first that is left");
    assert!(entries.iter().all(|e| e.run == Some(run(1))));
    for last in [1, 10, 300, 450] {
        assert_eq!(texts(&read(&store, &unit, last)), expected[expected.len() - last..]);
    }
}

#[test]
fn all_units_together_stay_within_their_bound() {
    let dir = TempDir::new();
    let mut config = LogConfig::new(&dir.0);
    (config.max_bytes_per_unit, config.files_kept, config.max_line) = (10_000, 1, 200);
    config.max_total_bytes = 100_000;
    let store = LogStore::start(config).unwrap();
    fs::write(dir.0.join("notes.txt"), vec![b'x'; 200_000]).unwrap();
    for number in 0..200 {
        let unit = unit(&format!("u{number}.service"));
        let text = vec!["x".repeat(20); 60].join("\n");
        store.record(&unit, None, 6, &text);
    }
    flush(&store);
    let ours = fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap()).filter(|e| e.file_name() != "notes.txt");
    let total: u64 = ours.map(|e| e.metadata().unwrap().len()).sum();
    assert!(
        total > 80_000 && total <= 100_000 + 5_000,
        "{total} bytes, the last file begun after the last count"
    );
    assert!(dir.0.join("notes.txt").exists(), "what is not ours stays");
    assert_eq!(read(&store, &unit("u199.service"), 1).len(), 1, "the newest are there");
    assert!(read(&store, &unit("u0.service"), 1).is_empty(), "the oldest went");
    store.record(&unit("u0.service"), None, 6, "and is written again");
    assert_eq!(read(&store, &unit("u0.service"), 9).len(), 1);
}

#[test]
fn a_removed_or_replaced_file_is_made_again() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0.join("log"))).unwrap();
    let unit = unit("a.service");
    let path = dir.0.join("log/a.service.log");
    let mut pipe = attached(&store, &unit, run(1));
    let mut say = |text: &str| {
        writeln!(pipe, "{text}").unwrap();
        store.drain(run(1));
        texts(&read(&store, &unit, 10))
    };
    assert_eq!(say("one"), ["one"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(say("two"), ["two"]);
    fs::rename(&path, dir.0.join("log/moved")).unwrap();
    assert_eq!(say("three"), ["three"]);
    fs::remove_dir_all(dir.0.join("log")).unwrap();
    assert_eq!(say("four"), ["four"]);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert_eq!(say("five").last().unwrap(), "five", "held, as the path leads elsewhere");
    fs::remove_file(&path).unwrap();
    let deadline = Instant::now() + LONG;
    while !path.exists() {
        assert!(Instant::now() < deadline, "written after the next attempt");
        std::thread::yield_now();
    }
    assert_eq!(say("six"), ["five", "six"]);
}

#[test]
fn a_line_that_a_crash_cut_short_is_ended_and_told() {
    let dir = TempDir::new();
    let unit = unit("a.service");
    let path = dir.0.join("a.service.log");
    let store = LogStore::start(LogConfig::new(&dir.0)).unwrap();
    store.record(&unit, Some(run(1)), 6, "whole");
    store.record(&unit, Some(run(1)), 6, "cut short");
    assert!(store.stop(LONG));
    let bytes = fs::read(&path).unwrap();
    for (cut, kept) in [(6, "cut "), (10, ""), (20, "24 bytes of the log are damaged here")] {
        let copy = dir.0.join("copy");
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join("a.service.log"), &bytes[..bytes.len() - cut]).unwrap();
        let store = LogStore::start(LogConfig::new(&copy)).unwrap();
        store.record(&unit, Some(run(2)), 6, "after");
        assert_eq!(texts(&read(&store, &unit, 10)), ["whole", kept, CUT, "after"]);
        fs::remove_dir_all(copy).unwrap();
    }
}

const CUT: &str = "the line before this one was cut short by a crash";

#[test]
fn a_follower_sees_every_line_once() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0)).unwrap();
    let unit = unit("a.service");
    let mut pipe = attached(&store, &unit, run(1));
    let (started, begin) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        for number in 0..20_000 {
            writeln!(pipe, "{number}").unwrap();
            if number == 5000 {
                started.send(()).unwrap();
            }
        }
    });
    begin.recv_timeout(LONG).unwrap();
    // What was written is somewhere between the pipe and the file: there must be a past.
    let (sink, heard) = mpsc::channel();
    let early = store.follow(&unit, 0, move |entries| {
        let _told = sink.send(entries.len());
    });
    let mut past = 0;
    while past < 100 {
        past += heard.recv_timeout(LONG).unwrap();
    }
    store.unfollow(early);
    let (sink, lines) = mpsc::channel();
    let id = store.follow(&unit, 100, move |entries| sink.send(texts(&entries)).unwrap());
    let past = lines.recv_timeout(LONG).unwrap();
    assert_eq!(past.len(), 100);
    let mut next: u32 = past[0].parse().unwrap();
    let mut all = past;
    while next < 20_000 {
        for text in std::mem::take(&mut all) {
            assert_eq!(text, next.to_string());
            next += 1;
        }
        if next < 20_000 {
            all = lines.recv_timeout(LONG).unwrap();
        }
    }
    writer.join().unwrap();
    store.unfollow(id);
    flush(&store);
    store.record(&unit, None, 6, "nobody hears this");
    flush(&store);
    let heard = lines.recv_timeout(LONG);
    assert_eq!(heard, Err(mpsc::RecvTimeoutError::Disconnected), "the sink is dropped, and was not called");
}

#[test]
fn what_is_stored_and_what_is_suppressed_is_everything() {
    let dir = TempDir::new();
    let mut config = LogConfig::new(&dir.0);
    config.rate = Some(RateLimit { interval: Duration::from_secs(3600), burst: 1000 });
    let store = LogStore::start(config).unwrap();
    let (loud, quiet) = (unit("loud.service"), unit("quiet.service"));
    let mut flood = attached(&store, &loud, run(1));
    let mut drops = attached(&store, &quiet, run(2));
    for number in 0..100_000 {
        writeln!(flood, "{number}").unwrap();
        if number % 1000 == 0 {
            writeln!(drops, "{number}").unwrap();
        }
    }
    drop(flood);
    store.drain(run(1));
    store.record(&loud, Some(run(1)), 6, "exited");
    store.drain(run(2));
    let told = texts(&read(&store, &loud, usize::MAX));
    assert_eq!(told.len(), 1002);
    assert_eq!(told[1000..], ["99000 lines suppressed by the rate limit", "exited"]);
    assert_eq!(read(&store, &quiet, usize::MAX).len(), 100, "another unit loses none");
}

#[test]
fn a_pipe_lives_on_while_a_left_over_process_has_it() {
    let dir = TempDir::new();
    let store = LogStore::start(LogConfig::new(&dir.0)).unwrap();
    let unit = unit("a.service");
    let mut pipe = attached(&store, &unit, run(1));
    store.drain(run(1));
    store.record(&unit, Some(run(1)), 6, "main exited");
    flush(&store);
    writeln!(pipe, "still here").unwrap();
    drop(pipe);
    flush(&store);
    assert_eq!(texts(&read(&store, &unit, 10)), ["main exited", "still here"]);
}

#[test]
fn ten_thousand_runs_leave_no_descriptor() {
    let dir = TempDir::new();
    let output = part(Command::new(exe()), "many_runs", &dir.0);
    assert!(output, "see above");
}

#[test]
#[ignore = "part of ten_thousand_runs_leave_no_descriptor"]
fn many_runs() {
    let store = LogStore::start(LogConfig::new(&part_folder())).unwrap();
    for number in 0..10_000 {
        // More units than files are kept open.
        let unit = unit(&format!("u{}.service", number % 100));
        writeln!(attached(&store, &unit, run(number)), "hello").unwrap();
        store.drain(run(number));
    }
    flush(&store);
    // 64 files, and what the program and the two threads have. That a pipe is at its end is seen after the flush.
    wait_for(|| fs::read_dir("/proc/self/fd").unwrap().count() <= 64 + 16);
}

#[test]
fn a_line_without_end_takes_no_more_memory_than_a_line() {
    let dir = TempDir::new();
    assert!(part(Command::new(exe()), "endless_line", &dir.0), "see above");
}

#[test]
#[ignore = "part of a_line_without_end_takes_no_more_memory_than_a_line"]
fn endless_line() {
    let store = LogStore::start(LogConfig::new(&part_folder())).unwrap();
    let unit = unit("a.service");
    let mut pipe = attached(&store, &unit, run(1));
    let before = resident_kib();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        pipe.write_all(&block).unwrap();
    }
    drop(pipe);
    flush(&store);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB");
    let entries = read(&store, &unit, 3);
    let kinds: Vec<_> = entries.iter().map(|e| (e.text.len(), e.ending)).collect();
    let long = 64 << 10;
    assert_eq!(kinds[..2], [(long, Ending::Continues), (long, Ending::Continues)]);
}

#[test]
fn a_full_disk_never_holds_an_agent_up() {
    let dir = TempDir::new();
    let mut private = Command::new("unshare");
    private.args(["--map-root-user", "--mount", "--propagation", "private"]).arg(exe());
    assert!(part(private, "full_disk", &dir.0), "see above");
}

#[test]
#[ignore = "part of a_full_disk_never_holds_an_agent_up"]
fn full_disk() {
    let folder = part_folder();
    let mount = ["-t", "tmpfs", "-o", "size=256k", "none"];
    assert!(Command::new("mount").args(mount).arg(&folder).status().unwrap().success());
    fs::write(folder.join("filler"), vec![b'x'; 200 << 10]).unwrap();
    let store = LogStore::start(LogConfig::new(&folder.join("log"))).unwrap();
    let unit = unit("a.service");
    let mut pipe = attached(&store, &unit, run(1));
    let mut longest = Duration::ZERO;
    let mut total = 0_u64;
    // Four times what is held of one unit.
    while total < 40_000 {
        let before = Instant::now();
        for _ in 0..100 {
            writeln!(pipe, "{total:099}").unwrap();
            total += 1;
        }
        longest = longest.max(before.elapsed());
    }
    // Nobody makes room before this: whoever waits for it waits for ever.
    assert!(longest < Duration::from_secs(20), "held up for {longest:?}");
    // The newest are there to be read, though they are in no file.
    flush(&store);
    assert_eq!(texts(&read(&store, &unit, 1)), [format!("{:099}", total - 1)]);
    fs::remove_file(folder.join("filler")).unwrap();
    assert!(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&folder).status().unwrap().success());
    wait_for(|| {
        read(&store, &unit, 10).iter().all(|e| e.origin == Origin::Output) && is_written(&folder, total - 1)
    });
    writeln!(pipe, "{total:099}").unwrap();
    store.drain(run(1));
    flush(&store);
    let all = fs::read_to_string(folder.join("log/a.service.log")).unwrap();
    let (mut stored, mut dropped) = (0, 0);
    for line in all.lines() {
        match line.split_once(" lines dropped: ") {
            Some((head, _)) => dropped += head.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap(),
            None => stored += u64::from(line.contains("<6> ")),
        }
    }
    assert!(dropped > 0 && all.contains("lines dropped: No space left on device"), "{dropped}");
    assert_eq!(stored + dropped, total + 1, "every line is there or counted");
    assert!(all.ends_with(&format!("{total:099}\n")), "and writing goes on");
}

#[test]
fn a_full_disk_gives_up_the_units_oldest_lines_for_its_newest() {
    let dir = TempDir::new();
    let mut private = Command::new("unshare");
    private.args(["--map-root-user", "--mount", "--propagation", "private"]).arg(exe());
    assert!(part(private, "disk_smaller_than_the_log", &dir.0), "see above");
}

#[test]
#[ignore = "part of a_full_disk_gives_up_the_units_oldest_lines_for_its_newest"]
fn disk_smaller_than_the_log() {
    let folder = part_folder();
    let mount = ["-t", "tmpfs", "-o", "size=256k", "none"];
    assert!(Command::new("mount").args(mount).arg(&folder).status().unwrap().success());
    let mut config = LogConfig::new(&folder);
    (config.max_bytes_per_unit, config.files_kept, config.max_line) = (400_000, 3, 200);
    let store = LogStore::start(config).unwrap();
    let unit = unit("a.service");
    for number in 0..20_000 {
        store.record(&unit, None, 6, &number.to_string());
    }
    flush(&store);
    let entries = texts(&read(&store, &unit, 3000));
    let expected: Vec<String> = (17_000..20_000).map(|n| n.to_string()).collect();
    assert_eq!(entries, expected, "no line is missing, and none is held");
    assert!(fs::read_to_string(folder.join("a.service.log")).unwrap().ends_with(" 19999\n"));
}

fn is_written(folder: &Path, number: u64) -> bool {
    let text = fs::read_to_string(folder.join("log/a.service.log")).unwrap_or_default();
    text.ends_with(&format!("{number:099}\n"))
}

fn flush(store: &LogStore) {
    let (done, flushed) = mpsc::channel();
    store.flush(move || done.send(()).unwrap());
    flushed.recv_timeout(LONG).unwrap();
}

/// Waits for something that no channel tells of.
fn wait_for(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "did not come about in time");
        std::thread::yield_now();
    }
}

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

const PART: &str = "AGENTD_LOG_TEST_FOLDER";

fn part_folder() -> PathBuf {
    PathBuf::from(std::env::var_os(PART).unwrap())
}

/// A part of a test that has a process to itself: this program again, with one of its ignored tests.
fn part(mut command: Command, test: &str, folder: &Path) -> bool {
    command.args([test, "--exact", "--ignored", "--nocapture"]).env(PART, folder);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{said}{}", String::from_utf8_lossy(&output.stderr));
    output.status.success() && said.contains("1 passed")
}
