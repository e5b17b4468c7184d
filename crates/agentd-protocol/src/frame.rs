//! varlink's framing: each message is one JSON text followed by one NUL byte.
//!
//! # Invariants
//!
//! - A reader never holds more than its bound, whatever the peer sends.
//! - After an error the reader stays in error: the stream cannot be brought back in step.

use std::mem;

/// The longest call in bytes, its NUL not counted: 1 MiB. Lists and files are asked for, and answered, in pages of at most
/// a quarter of this.
pub const MAX_FRAME: usize = 1 << 20;

/// The longest answer in bytes, its NUL not counted: 16 MiB. What one unit is, of some files of 1 MiB, is one answer.
pub const MAX_ANSWER: usize = 16 << 20;

/// Why a stream of frames cannot be read or written any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message does not end within the bound.
    #[error("message is longer than {limit} bytes")]
    TooLong {
        /// The bound in bytes.
        limit: usize,
    },
    /// The peer closed the stream in the middle of a message.
    #[error("stream ended in the middle of a message, after {got} bytes of it")]
    Truncated {
        /// How many bytes of the message had come.
        got: usize,
    },
}

/// Cuts a stream of bytes into frames.
#[derive(Debug, Clone)]
pub struct FrameReader {
    partial: Vec<u8>,
    limit: usize,
    overflowed: bool,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// A reader of calls, with the bound [`MAX_FRAME`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(MAX_FRAME)
    }

    /// A reader of answers, with the bound [`MAX_ANSWER`].
    #[must_use]
    pub const fn of_answers() -> Self {
        Self::with_limit(MAX_ANSWER)
    }

    /// A reader with a bound of its own, in bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self { partial: Vec::new(), limit, overflowed: false }
    }

    /// Takes bytes off the front of `input` up to the end of the next frame.
    ///
    /// `Ok(Some(frame))` is one whole frame without its NUL; call again, as more may stand in `input`.
    /// `Ok(None)` means that `input` is used up and the frame goes on.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], now and from then on.
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        let (part, rest, ended) = match input.iter().position(|byte| *byte == 0) {
            Some(end) => (&input[..end], &input[end + 1..], true),
            None => (*input, &input[input.len()..], false),
        };
        if self.overflowed || part.len() > self.limit - self.partial.len() {
            self.overflowed = true;
            self.partial = Vec::new();
            return Err(FrameError::TooLong { limit: self.limit });
        }
        self.append(part);
        *input = rest;
        Ok(ended.then(|| mem::take(&mut self.partial)))
    }

    /// Grows by doubling as a vector does, but never past the bound.
    fn append(&mut self, part: &[u8]) {
        let needed = self.partial.len() + part.len();
        if needed > self.partial.capacity() {
            let wanted = needed.max(self.partial.capacity() * 2).min(self.limit);
            self.partial.reserve_exact(wanted - self.partial.len());
        }
        self.partial.extend_from_slice(part);
    }

    /// To be asked when the peer has closed the stream.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] if it did so in the middle of a message.
    pub const fn finish(&self) -> Result<(), FrameError> {
        match self.partial.len() {
            0 => Ok(()),
            got => Err(FrameError::Truncated { got }),
        }
    }

    /// How many bytes of an unfinished frame are held.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.partial.len()
    }
}

/// Ends a JSON text of at most `limit` bytes with its NUL.
///
/// # Errors
/// [`FrameError::TooLong`]: nobody would read it.
pub fn seal(mut json: Vec<u8>, limit: usize) -> Result<Vec<u8>, FrameError> {
    if json.len() > limit {
        return Err(FrameError::TooLong { limit });
    }
    json.push(0);
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(reader: &mut FrameReader, mut input: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut all = Vec::new();
        while let Some(frame) = reader.next_frame(&mut input)? {
            all.push(frame);
        }
        assert!(input.is_empty());
        Ok(all)
    }

    #[test]
    fn frames_come_out_whole_however_the_bytes_are_cut() {
        let stream = b"{\"a\":1}\0{}\0\0{\"b\":2}\0";
        let whole = [b"{\"a\":1}".to_vec(), b"{}".to_vec(), Vec::new(), b"{\"b\":2}".to_vec()];
        for size in 1..=stream.len() {
            let mut reader = FrameReader::new();
            let mut seen = Vec::new();
            for piece in stream.chunks(size) {
                seen.extend(frames(&mut reader, piece).unwrap());
            }
            assert_eq!(seen, whole, "pieces of {size}");
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn a_frame_of_exactly_the_bound_passes_and_one_byte_more_does_not() {
        let mut reader = FrameReader::with_limit(4);
        assert_eq!(frames(&mut reader, b"1234\0"), Ok(vec![b"1234".to_vec()]));
        assert_eq!(frames(&mut reader, b"12345\0"), Err(FrameError::TooLong { limit: 4 }));
        assert_eq!(frames(&mut reader, b"\0"), Err(FrameError::TooLong { limit: 4 }), "it stays in error");
    }

    #[test]
    fn memory_stays_within_the_bound_while_a_flood_comes_in_small_pieces() {
        let mut reader = FrameReader::with_limit(10_000);
        let failed = (0..1_000).any(|_| {
            let result = reader.next_frame(&mut &[b'x'; 999][..]);
            assert!(reader.partial.capacity() <= 10_000);
            result.is_err()
        });
        assert!(failed);
        assert_eq!(reader.partial.capacity(), 0, "what was held is given back");
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_is_told_from_one_that_ends_between() {
        let mut reader = FrameReader::new();
        assert_eq!(frames(&mut reader, b"{}\0{\"x"), Ok(vec![b"{}".to_vec()]));
        assert_eq!(reader.finish(), Err(FrameError::Truncated { got: 3 }));
    }

    #[test]
    fn a_message_that_nobody_would_read_is_not_written() {
        assert!(seal(vec![b' '; 8], 8).is_ok());
        assert_eq!(seal(vec![b' '; 9], 8), Err(FrameError::TooLong { limit: 8 }));
    }
}
