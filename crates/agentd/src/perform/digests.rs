//! Digests of programs that were hashed before, so that one which a hundred units run is read once.
//!
//! # Invariants
//!
//! - A digest is remembered of a descriptor, and given again for a descriptor of the same file with the same times: what
//!   is executed is still what was hashed, or something that has the same stamp.
//! - Nothing is remembered of a file that somebody else than its owners could write to, that was changed in the last
//!   second before it was hashed or while it was, or whose times are not this kernel's own.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::time::SystemTime;

use agentd_linux::stamp::{Stamp, has_own_times};
use agentd_trust::Sha256Digest;

/// So many files are remembered. One more, and all are forgotten: that is cheaper than to keep in order which was used
/// last, and few machines run as many different programs.
const MOST: usize = 512;

/// What was hashed.
#[derive(Debug, Default)]
pub struct Digests(HashMap<(u64, u64), (Stamp, Sha256Digest)>);

impl Digests {
    /// The digest of a file that was just opened. `is_owned` says whether only its owners can write to it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(&mut self, file: &File, is_owned: impl Fn(&Metadata) -> bool) -> io::Result<Sha256Digest> {
        self.at(SystemTime::now(), file, is_owned)
    }

    /// The same at a time that is not before `began`.
    fn at(
        &mut self,
        began: SystemTime,
        file: &File,
        is_owned: impl Fn(&Metadata) -> bool,
    ) -> io::Result<Sha256Digest> {
        let meta = file.metadata()?;
        let stamp = Stamp::of(&meta);
        if let Some((_, digest)) = self.0.get(&stamp.inode()).filter(|(known, _)| *known == stamp) {
            return Ok(*digest);
        }
        let digest = Sha256Digest::of_reader(file)?;
        if is_owned(&meta)
            && stamp.is_at_rest(began)
            && has_own_times(file)?
            && Stamp::of(&file.metadata()?) == stamp
        {
            if self.0.len() >= MOST {
                self.0.clear();
            }
            self.0.insert(stamp.inode(), (stamp, digest));
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

    use std::fs;
    use std::io::{Seek, Write};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use super::*;

    /// A file that was there before the last second.
    fn program() -> PathBuf {
        PathBuf::from("/bin/sh").canonicalize().unwrap()
    }

    /// The digest, and whether the file was read for it.
    fn ask(digests: &mut Digests, path: &Path, is_owned: bool) -> (Sha256Digest, bool) {
        let mut file = File::open(path).unwrap();
        let digest = digests.of(&file, |_| is_owned).unwrap();
        (digest, file.stream_position().unwrap() > 0)
    }

    #[test]
    fn a_program_of_its_owners_is_read_once() {
        let (mut digests, program) = (Digests::default(), program());
        let read = ask(&mut digests, &program, true);
        assert!(read.1);
        assert_eq!(ask(&mut digests, &program, true), (read.0, false));
    }

    #[test]
    fn one_that_others_can_write_to_is_read_every_time() {
        let (mut digests, program) = (Digests::default(), program());
        assert!(ask(&mut digests, &program, false).1);
        assert!(ask(&mut digests, &program, false).1);
    }

    #[test]
    fn one_that_was_changed_since_is_read_again() {
        let path = std::env::temp_dir().join(format!("agentd-digests-{}-changed", std::process::id()));
        fs::write(&path, "one").unwrap();
        let mut digests = Digests::default();
        let later = SystemTime::now() + Duration::from_secs(2);
        let ask = |digests: &mut Digests| {
            let mut file = File::open(&path).unwrap();
            let digest = digests.at(later, &file, |_| true).unwrap();
            (digest, file.stream_position().unwrap() > 0)
        };
        let stamp = || Stamp::of(&fs::metadata(&path).unwrap());
        let before = stamp();
        assert_eq!(ask(&mut digests), (Sha256Digest::of(b"one"), true));
        assert_eq!(ask(&mut digests), (Sha256Digest::of(b"one"), false));
        // Until the kernel's clock ticks, it has the same time: that is why what was just written is not remembered.
        while stamp() == before {
            fs::write(&path, "two").unwrap();
        }
        assert_eq!(ask(&mut digests), (Sha256Digest::of(b"two"), true));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn one_that_was_just_written_is_read_every_time() {
        let mut path = std::env::temp_dir();
        path.push(format!("agentd-digests-{}", std::process::id()));
        let mut digests = Digests::default();
        let mut file = File::create(&path).unwrap();
        for text in ["one", "two", "six"] {
            file.rewind().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(ask(&mut digests, &path, true), (Sha256Digest::of(text.as_bytes()), true));
        }
        fs::remove_file(&path).unwrap();
    }
}
