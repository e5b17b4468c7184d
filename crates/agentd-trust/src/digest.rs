//! SHA-256 digests (FIPS 180-4) of files.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::hex;

/// Bytes read at a time when a file is hashed: large enough that the system calls do not show, small on the heap.
const CHUNK: usize = 64 * 1024;

/// The SHA-256 of some bytes; printed and read as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of all that `reader` still has, in constant memory.
    ///
    /// # Errors
    /// What the reader says, but for an interruption, after which the reading goes on.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(length) => hasher.update(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A digest that was computed elsewhere.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

impl FromStr for Sha256Digest {
    type Err = DigestError;

    /// Reads exactly what `Display` prints.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        hex::read(text).map(Self).ok_or(DigestError)
    }
}

/// The text is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sha256 digest is 64 lower-case hexadecimal digits")]
pub struct DigestError;

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// Hands out one byte at a time, each after an interruption.
    struct Stutter<'a>(&'a [u8], bool);

    impl Read for Stutter<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let take = self.0.len().min(1);
            out[..take].copy_from_slice(&self.0[..take]);
            self.0 = &self.0[take..];
            Ok(take)
        }
    }

    #[test]
    fn the_digest_of_abc_is_the_standards_example() {
        assert_eq!(Sha256Digest::of(b"abc").to_string(), ABC);
    }

    #[test]
    fn a_reader_that_is_interrupted_gives_the_same_digest() {
        let bytes = vec![7; 3 * CHUNK + 1];
        assert_eq!(Sha256Digest::of_reader(&bytes[..]).unwrap(), Sha256Digest::of(&bytes));
        assert_eq!(Sha256Digest::of_reader(Stutter(b"abc", false)).unwrap().to_string(), ABC);
    }

    #[test]
    fn a_digest_reads_what_it_prints_and_nothing_else() {
        assert_eq!(ABC.parse(), Ok(Sha256Digest::of(b"abc")));
        for text in ["", "ba78", &ABC[1..], &format!("{ABC}0"), &format!("{ABC}\n"), &ABC.to_uppercase()] {
            assert_eq!(text.parse::<Sha256Digest>(), Err(DigestError), "{text:?}");
        }
    }
}
