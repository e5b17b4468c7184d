//! The fencing token: one number for all units, strictly increasing over crashes and reboots.
//!
//! The file `fencing-token` holds the highest token that may have been handed out. A block is reserved by writing its
//! last number before its first is used, so a thousand starts cost one write. The file before it is kept as
//! `fencing-token.previous`; where the newest is damaged, the block after the previous one is skipped, as that is
//! the one that may have been in use.
//!
//! No token is below the microseconds of the wall clock at the time the file was opened. So where no block can be reserved, on a
//! full or a read-only disk, tokens follow the clock, and those of the next boot are above them although nothing tells it:
//! agents go on to be started, and their generations stay in order as long as the disk or the clock can be trusted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::atomic::write_atomic;
use crate::dir::{self, Loaded, Problem, StateError};
use crate::record;

const KIND: &str = "fencing-token";

/// Tokens a write: some minutes of the worst crash loop, and a vanishing part of 2⁶⁴.
const BLOCK: u64 = 4096;

/// Where tokens go on when nothing tells where they were and the clock is wrong too: above all that blocks could
/// reach one by one in a machine's life.
const AFTER_LOSS: u64 = 1 << 48;

#[derive(Debug)]
pub(crate) struct Fencing {
    current: PathBuf,
    previous: PathBuf,
    block: u64,
    /// Microseconds of the wall clock.
    clock: fn() -> u64,
    given: Mutex<Given>,
}

#[derive(Debug)]
struct Given {
    /// The last token handed out.
    last: u64,
    /// The highest that is reserved on the disk.
    reserved: u64,
    /// The disk took nothing the last time.
    is_unsaved: bool,
}

/// A fencing token.
#[derive(Debug)]
pub struct Token {
    /// Its number: greater than that of every token before.
    pub number: u64,
    /// Why it could not be reserved on the disk, of the first token in a row that could not.
    pub unsaved: Option<StateError>,
}

impl Fencing {
    pub(crate) fn open(folder: &Path, problems: &mut Vec<Problem>) -> Result<Self, StateError> {
        Self::with_block(folder, BLOCK, clock_micros, problems)
    }

    pub(crate) fn with_block(
        folder: &Path,
        block: u64,
        clock: fn() -> u64,
        problems: &mut Vec<Problem>,
    ) -> Result<Self, StateError> {
        let current = folder.join("fencing-token");
        let previous = folder.join("fencing-token.previous");
        let high = match read(&current, "tokens go on after the block that was last reserved", problems)? {
            Known::Value(high) => high,
            newest => match (newest, read(&previous, "tokens go on far above any earlier one", problems)?) {
                // The newest held one block more than this, or as much.
                (_, Known::Value(high)) => high.saturating_add(block),
                (Known::Absent, Known::Absent) => 0,
                _ => AFTER_LOSS,
            },
        };
        let high = high.max(clock());
        let given = Given { last: high, reserved: high, is_unsaved: false };
        Ok(Self { current, previous, block, clock, given: Mutex::new(given) })
    }

    pub(crate) fn next(&self) -> Token {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = given.last.saturating_add(1);
        let mut unsaved = None;
        if number > given.reserved {
            match self.reserve(given.last) {
                Ok(reserved) => (given.reserved, given.is_unsaved) = (reserved, false),
                Err(error) => {
                    number = number.max((self.clock)());
                    unsaved = (!given.is_unsaved).then_some(error);
                    given.is_unsaved = true;
                }
            }
        }
        given.last = number;
        Token { number, unsaved }
    }

    /// Makes the block after `high` ours, durably; returns its last token.
    fn reserve(&self, high: u64) -> Result<u64, StateError> {
        if high > 0 {
            write(&self.previous, high)?;
        }
        let new = high.saturating_add(self.block);
        write(&self.current, new)?;
        Ok(new)
    }
}

fn write(path: &Path, high: u64) -> Result<(), StateError> {
    let content = record::encode(KIND, KIND, &high.to_string());
    write_atomic(path, &content, 0o600).map_err(StateError::at("write", path))
}

enum Known {
    Absent,
    Value(u64),
    Lost,
}

fn read(path: &Path, consequence: &str, problems: &mut Vec<Problem>) -> Result<Known, StateError> {
    match dir::load(path, KIND, KIND, consequence, problems)? {
        Loaded::Absent => Ok(Known::Absent),
        Loaded::Lost => Ok(Known::Lost),
        Loaded::Value(value) => match value.parse() {
            Ok(high) => Ok(Known::Value(high)),
            Err(_) => {
                dir::set_aside(path, "its value is no number", consequence, problems)?;
                Ok(Known::Lost)
            }
        },
    }
}

fn clock_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ProblemKind;
    use crate::testing::TempDir;

    /// As on a machine whose clock was never set.
    fn open(dir: &TempDir, block: u64) -> (Fencing, Vec<Problem>) {
        open_at(dir, block, || 0)
    }

    fn open_at(dir: &TempDir, block: u64, clock: fn() -> u64) -> (Fencing, Vec<Problem>) {
        let mut problems = Vec::new();
        let fencing = Fencing::with_block(dir.path(), block, clock, &mut problems).unwrap();
        (fencing, problems)
    }

    /// The next token, of which the disk must have taken the reservation.
    fn saved(fencing: &Fencing) -> u64 {
        let token = fencing.next();
        assert!(token.unsaved.is_none(), "{token:?}");
        token.number
    }

    #[test]
    fn tokens_begin_at_one_and_follow_each_other() {
        let dir = TempDir::new();
        let (fencing, problems) = open(&dir, 2);
        let tokens: Vec<u64> = (0..7).map(|_| saved(&fencing)).collect();
        assert_eq!(tokens, [1, 2, 3, 4, 5, 6, 7]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_reopened_directory_gives_greater_tokens() {
        let dir = TempDir::new();
        let mut last = 0;
        for block in [1, 3, 2, 1, 5, 4096] {
            let (fencing, problems) = open(&dir, block);
            assert!(problems.is_empty(), "{problems:?}");
            for _ in 0..=block {
                let token = saved(&fencing);
                assert!(token > last, "{token} after {last}");
                last = token;
            }
        }
    }

    #[test]
    fn opening_without_taking_a_token_uses_none_up() {
        let dir = TempDir::new();
        for _ in 0..5 {
            open(&dir, 10);
        }
        assert_eq!(saved(&open(&dir, 10).0), 1);
    }

    /// Damages the files named, after `taken` tokens, and returns the last token, the next one and the problems.
    fn after_damage(taken: u64, files: &[&str]) -> (u64, u64, Vec<Problem>) {
        let dir = TempDir::new();
        let (fencing, _) = open(&dir, 4);
        let last = (0..taken).map(|_| saved(&fencing)).last().unwrap();
        for file in files {
            fs::write(dir.path().join(file), b"agentd fencing-token 1\nfencing-token\n0\n").unwrap();
        }
        let (fencing, problems) = open(&dir, 4);
        (last, saved(&fencing), problems)
    }

    #[test]
    fn a_damaged_file_is_told_and_its_block_skipped() {
        for taken in 5..20 {
            let (last, next, problems) = after_damage(taken, &["fencing-token"]);
            assert!(next > last && next <= last + 8, "{next} after {last}");
            assert!(matches!(&problems[..], [Problem { kind: ProblemKind::Damaged { .. }, .. }]));
        }
    }

    #[test]
    fn two_damaged_files_are_told_and_tokens_never_begin_again() {
        let (last, next, problems) = after_damage(9, &["fencing-token", "fencing-token.previous"]);
        assert!(next > last && next >= AFTER_LOSS, "{next} after {last}");
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn a_damaged_first_file_never_begins_again() {
        let (last, next, problems) = after_damage(2, &["fencing-token"]);
        assert!(next > last && next >= AFTER_LOSS, "{next} after {last}");
        assert_eq!(problems.len(), 1);
    }

    /// Has a folder stand in the way of the file, so that nothing can be renamed to it.
    fn block_the_file(dir: &TempDir) {
        drop(fs::remove_file(dir.path().join("fencing-token")));
        fs::create_dir_all(dir.path().join("fencing-token/x")).unwrap();
    }

    #[test]
    fn a_disk_that_takes_nothing_is_told_once_and_tokens_go_on() {
        let dir = TempDir::new();
        let (fencing, _) = open(&dir, 1);
        assert_eq!(saved(&fencing), 1);
        block_the_file(&dir);
        let (first, second) = (fencing.next(), fencing.next());
        assert!(first.unsaved.is_some() && second.unsaved.is_none(), "{first:?} {second:?}");
        assert_eq!((first.number, second.number), (2, 3));
        fs::remove_dir_all(dir.path().join("fencing-token")).unwrap();
        assert_eq!(saved(&fencing), 4, "and are reserved again when it does");
        assert_eq!(saved(&open(&dir, 1).0), 5);
        block_the_file(&dir);
        assert!(fencing.next().unsaved.is_some(), "and it is told again");
    }

    #[test]
    fn after_a_boot_that_could_save_nothing_tokens_are_greater_still() {
        let dir = TempDir::new();
        assert_eq!(saved(&open_at(&dir, 4, || 1_000).0), 1_001);
        let lost = {
            let (fencing, _) = open_at(&dir, 4, || 2_000);
            block_the_file(&dir);
            fencing.next();
            fencing.next().number
        };
        assert!(lost > 2_000, "{lost}");
        fs::remove_dir_all(dir.path().join("fencing-token")).unwrap();
        assert!(saved(&open_at(&dir, 4, || 3_000).0) > lost);
        assert!(saved(&open_at(&dir, 4, || 7).0) > 3_000, "a clock that is set back changes nothing");
    }
}
