//! State that is killed in the middle of writes, and a disk that is full.
#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the failure")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_state::{StateDir, write_atomic};
use agentd_unit::{Realtime, UnitName};

/// Names the folder to the copy of this program that is to be killed.
const VICTIM: &str = "AGENTD_STATE_VICTIM";
/// Names the folder to the copy of this program that runs on a disk of its own.
const SMALL_DISK: &str = "AGENTD_STATE_SMALL_DISK";

fn temp_dir(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("agentd-state-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A part of a test that runs in a process of its own: this program again, with one of its ignored tests.
fn part(mut command: Command, test: &str, variable: &str, folder: &Path) -> Command {
    command.args([test, "--exact", "--ignored", "--nocapture", "--quiet"]).env(variable, folder);
    command
}

fn timer() -> UnitName {
    UnitName::parse("storm.timer").unwrap()
}

/// The victim: saves what grows and says each value once it is durable, until it is killed.
#[test]
#[ignore = "part of two_hundred_kills_lose_nothing_that_was_said"]
fn victim() {
    let folder = std::env::var_os(VICTIM).unwrap();
    let out = std::io::stdout();
    for round in 0.. {
        let (state, problems) = StateDir::open(Path::new(&folder)).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let stamp = state.stamps().get(&timer()).map_or(0, |at| at.as_micros()) + 1;
        state.save_stamp(&timer(), Realtime(stamp)).unwrap();
        // Opening anew each round makes each first token a write.
        let token = state.next_fencing_token().number;
        let copied = vec![b'a' + (round % 26) as u8; 100_000];
        write_atomic(&Path::new(&folder).join("whole"), &copied, 0o600).unwrap();
        writeln!(&out, "said {stamp} {token}").unwrap();
    }
}

#[test]
fn two_hundred_kills_lose_nothing_that_was_said() {
    let folder = temp_dir("kill");
    let (mut last_stamp, mut last_token) = (0_i64, 0_u64);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for kill in 0..200 {
        let program = Command::new(std::env::current_exe().unwrap());
        let mut child = part(program, "victim", VICTIM, &folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // Let it get to work, then kill it at a moment that no line of its program decides.
        let mut first = String::new();
        while !first.starts_with("said") {
            first.clear();
            assert_ne!(lines.read_line(&mut first).unwrap(), 0, "kill {kill}: the victim ended by itself");
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let until = Instant::now() + Duration::from_micros(random % 3000);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        child.wait().unwrap();
        for line in format!("{first}{rest}").lines().filter(|l| l.starts_with("said")) {
            let numbers: Vec<i128> = line.split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
            assert!(numbers[0] > i128::from(last_stamp) && numbers[1] > i128::from(last_token), "{line}");
            (last_stamp, last_token) = (numbers[0] as i64, numbers[1] as u64);
        }
        let (state, problems) = StateDir::open(&folder).unwrap();
        assert!(problems.is_empty(), "kill {kill}: {problems:?}");
        assert!(state.stamps()[&timer()].as_micros() >= last_stamp, "kill {kill}");
        let whole = std::fs::read(folder.join("whole")).unwrap();
        assert!(whole.len() == 100_000 && whole.iter().all(|b| *b == whole[0]), "kill {kill}: a mixed file");
    }
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|n| !n.to_string_lossy().starts_with('#')), "left over: {names:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs on a tmpfs of 64 KiB of its own.
#[test]
#[ignore = "part of a_full_disk_keeps_the_earlier_state"]
fn on_a_small_disk() {
    let folder = std::env::var_os(SMALL_DISK).unwrap();
    let folder = Path::new(&folder);
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none"];
    assert!(Command::new("mount").args(mount).arg(folder).status().unwrap().success());
    let (state, _) = StateDir::open(&folder.join("state")).unwrap();
    state.save_stamp(&timer(), Realtime(1)).unwrap();
    let token = state.next_fencing_token().number;
    let filler = std::fs::write(folder.join("filler"), vec![b'x'; 128 << 10]);
    assert_eq!(filler.unwrap_err().kind(), std::io::ErrorKind::StorageFull);

    let error = state.save_stamp(&timer(), Realtime(2)).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::StorageFull, "{error}");
    let (full, problems) = StateDir::open(&folder.join("state")).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(full.stamps()[&timer()], Realtime(1), "the earlier stamp stays");
    let unsaved = full.next_fencing_token();
    assert!(unsaved.unsaved.is_some() && unsaved.number > token, "no block can be reserved");

    std::fs::remove_file(folder.join("filler")).unwrap();
    full.save_stamp(&timer(), Realtime(3)).unwrap();
    let saved = full.next_fencing_token();
    assert!(saved.unsaved.is_none() && saved.number > unsaved.number);
}

#[test]
fn a_full_disk_keeps_the_earlier_state() {
    let folder = temp_dir("full");
    // A mount namespace of its own, so that the small disk is nobody else's; in a user namespace, so that anyone may.
    let mut private = Command::new("unshare");
    private.args(["--map-root-user", "--mount", "--propagation", "private"]);
    private.arg(std::env::current_exe().unwrap());
    let output = part(private, "on_a_small_disk", SMALL_DISK, &folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_lies_above_the_state_is_everybodys_and_the_state_is_the_managers() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("agentd-state-above-{}", std::process::id()));
    let state = folder.join("lib/agentd");
    StateDir::open(&state).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("lib")), mode(&state)), (0o755, 0o755, 0o700));
    std::fs::remove_dir_all(folder).unwrap();
}
