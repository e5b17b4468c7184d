//! The fencing token: one number for all units, strictly increasing over crashes and reboots.
//!
//! The file `fencing-token` holds the highest token that may have been handed out. A block is reserved by writing its
//! last number before its first is used, so a thousand starts cost one write. The file before it is kept as
//! `fencing-token.previous`; where the newest is damaged, the block after the previous one is skipped, as that is
//! the one that may have been in use.

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
    /// The last token handed out, and the highest that is reserved on the disk.
    given: Mutex<(u64, u64)>,
}

impl Fencing {
    pub(crate) fn open(folder: &Path, problems: &mut Vec<Problem>) -> Result<Self, StateError> {
        Self::with_block(folder, BLOCK, problems)
    }

    pub(crate) fn with_block(
        folder: &Path,
        block: u64,
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
                _ => clock_micros().max(AFTER_LOSS),
            },
        };
        Ok(Self { current, previous, block, given: Mutex::new((high, high)) })
    }

    pub(crate) fn next(&self) -> Result<u64, StateError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, high) = *given;
        let token = last.saturating_add(1);
        let high = if token > high { self.reserve(high)? } else { high };
        *given = (token, high);
        Ok(token)
    }

    /// Makes the next block ours, durably; returns its last token.
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

    fn open(dir: &TempDir, block: u64) -> (Fencing, Vec<Problem>) {
        let mut problems = Vec::new();
        let fencing = Fencing::with_block(dir.path(), block, &mut problems).unwrap();
        (fencing, problems)
    }

    #[test]
    fn tokens_begin_at_one_and_follow_each_other() {
        let dir = TempDir::new();
        let (fencing, problems) = open(&dir, 2);
        let tokens: Vec<u64> = (0..7).map(|_| fencing.next().unwrap()).collect();
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
                let token = fencing.next().unwrap();
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
        assert_eq!(open(&dir, 10).0.next().unwrap(), 1);
    }

    /// Damages the files named, after `taken` tokens, and returns the last token, the next one and the problems.
    fn after_damage(taken: u64, files: &[&str]) -> (u64, u64, Vec<Problem>) {
        let dir = TempDir::new();
        let (fencing, _) = open(&dir, 4);
        let last = (0..taken).map(|_| fencing.next().unwrap()).last().unwrap();
        for file in files {
            fs::write(dir.path().join(file), b"agentd fencing-token 1\nfencing-token\n0\n").unwrap();
        }
        let (fencing, problems) = open(&dir, 4);
        (last, fencing.next().unwrap(), problems)
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
        assert!(next > last && next > AFTER_LOSS, "{next} after {last}");
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn a_damaged_first_file_never_begins_again() {
        let (last, next, problems) = after_damage(2, &["fencing-token"]);
        assert!(next > last && next > AFTER_LOSS, "{next} after {last}");
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn no_token_is_given_when_its_block_cannot_be_reserved() {
        let dir = TempDir::new();
        let (fencing, _) = open(&dir, 1);
        assert_eq!(fencing.next().unwrap(), 1);
        // A folder in the way of the rename.
        fs::remove_file(dir.path().join("fencing-token")).unwrap();
        fs::create_dir_all(dir.path().join("fencing-token/x")).unwrap();
        fencing.next().expect_err("nothing was reserved");
        fs::remove_dir_all(dir.path().join("fencing-token")).unwrap();
        assert_eq!(fencing.next().unwrap(), 2, "and the failure used none up");
    }
}
