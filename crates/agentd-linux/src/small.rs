//! Short files that the kernel writes as they are read: below `/proc` and in cgroups.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// More than nearly all of them have.
const BUFFER_BYTES: usize = 4096;

/// Longer than any piece of a text that the kernel writes piece by piece, as it does the lines of `cgroup.procs`; it hands
/// out as many as fit, and other files whole, seq_file.rst. So a read that leaves this much room has come to the end.
const PIECE_BYTES: usize = 256;

/// The whole text. The size is not asked for, as such files say 0; so the standard library would begin with a few bytes
/// and read five times where once is enough.
///
/// # Errors
/// Those of read(2); what is not UTF-8 is [`io::ErrorKind::InvalidData`].
pub fn read(mut file: impl Read) -> io::Result<String> {
    let mut buffer = [0; BUFFER_BYTES];
    let mut text = Vec::new();
    let mut filled = 0;
    loop {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                if filled + PIECE_BYTES < buffer.len() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if filled == buffer.len() {
            text.extend_from_slice(&buffer);
            filled = 0;
        }
    }
    text.extend_from_slice(&buffer[..filled]);
    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A file that is read from its beginning, wherever it was read to before: the kernel then writes such a text anew.
#[derive(Debug)]
pub struct FromStart<'f> {
    file: &'f File,
    offset: u64,
}

impl<'f> FromStart<'f> {
    /// The text as it is now.
    #[must_use]
    pub fn of(file: &'f File) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// The same by path.
///
/// # Errors
/// Those of open(2) and of [`read`].
pub fn read_path(path: &str) -> io::Result<String> {
    read(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_comes_whole() {
        let edge = BUFFER_BYTES - PIECE_BYTES;
        for length in [
            0,
            1,
            edge - 1,
            edge,
            edge + 1,
            BUFFER_BYTES - 1,
            BUFFER_BYTES,
            BUFFER_BYTES + 1,
            3 * BUFFER_BYTES,
        ] {
            let text = "ab".repeat(length)[..length].to_owned();
            assert_eq!(read(text.as_bytes()).unwrap(), text, "{length}");
        }
        assert_eq!(read(&[0xff][..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(read_path("/proc/self/cgroup").unwrap().contains(":/"));
    }

    /// Hands out at most so many bytes at once, and counts the reads.
    struct Counted<'t>(&'t [u8], usize);

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            self.0.read(buffer)
        }
    }

    #[test]
    fn a_short_text_is_read_once() {
        let mut file = Counted(b"populated 1\nfrozen 0\n", 0);
        read(&mut file).unwrap();
        assert_eq!(file.1, 1);
    }
}
