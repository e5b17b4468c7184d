//! Lines on their way to a file: bounded, and never lost without being counted.

use std::collections::VecDeque;

use agentd_engine::InvocationId;

/// Up to this many bytes, chunks of one run are joined so that they are written at once.
const JOIN_BYTES: usize = 64 << 10;

/// Whole lines of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) run: Option<InvocationId>,
    /// How many lines were dropped before these.
    pub(crate) dropped_before: u64,
    /// How many there are.
    pub(crate) lines: u64,
    /// The lines as they stand in the file.
    pub(crate) bytes: Vec<u8>,
}

impl Chunk {
    pub(crate) fn new(run: Option<InvocationId>) -> Self {
        Self { run, ..Self::default() }
    }
}

/// The chunks of one unit, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// Lines that were dropped after the last chunk that is left.
    dropped: u64,
}

impl Ring {
    /// How many bytes of lines it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is nothing to write: no line, and no gap to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.dropped == 0
    }

    /// Adds the newest lines; returns the buffer of the chunk where its lines were copied out of it.
    pub(crate) fn push(&mut self, mut chunk: Chunk) -> Option<Vec<u8>> {
        chunk.dropped_before += std::mem::take(&mut self.dropped);
        self.bytes += chunk.bytes.len();
        match self.chunks.back_mut() {
            Some(last)
                if last.run == chunk.run
                    && chunk.dropped_before == 0
                    && last.bytes.len() + chunk.bytes.len() <= JOIN_BYTES =>
            {
                last.bytes.extend_from_slice(&chunk.bytes);
                last.lines += chunk.lines;
                chunk.bytes.clear();
                Some(chunk.bytes)
            }
            _ => {
                self.chunks.push_back(chunk);
                None
            }
        }
    }

    /// Adds all that another ring holds, which is newer.
    pub(crate) fn append(&mut self, newer: Self) {
        for chunk in newer.chunks {
            self.push(chunk);
        }
        self.dropped += newer.dropped;
    }

    /// Takes the oldest lines; at last the gap at the end, if lines were dropped there, as a chunk without lines.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        match self.chunks.pop_front() {
            Some(chunk) => {
                self.bytes -= chunk.bytes.len();
                Some(chunk)
            }
            None if self.dropped > 0 => {
                Some(Chunk { dropped_before: std::mem::take(&mut self.dropped), ..Chunk::default() })
            }
            None => None,
        }
    }

    /// Puts back what [`Ring::pop`] gave.
    pub(crate) fn put_back(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes.len();
        self.chunks.push_front(chunk);
    }

    /// Drops the oldest lines until at most `limit` bytes are left; they are counted where they are missing.
    pub(crate) fn shrink(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some(chunk) = self.pop() else { return };
            let gap = chunk.dropped_before + chunk.lines;
            match self.chunks.front_mut() {
                Some(next) => next.dropped_before += gap,
                None => self.dropped += gap,
            }
        }
    }

    /// The lines that are held, oldest first, each part with its run.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = &Chunk> {
        self.chunks.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(run: u128, lines: u64, bytes: usize) -> Chunk {
        Chunk { run: Some(InvocationId(run)), dropped_before: 0, lines, bytes: vec![b'x'; bytes] }
    }

    #[test]
    fn small_chunks_of_one_run_are_joined() {
        let mut ring = Ring::default();
        ring.push(chunk(1, 1, 10));
        ring.push(chunk(1, 2, 20));
        ring.push(chunk(2, 1, 10));
        assert_eq!(ring.pop(), Some(chunk(1, 3, 30)));
        assert_eq!(ring.pop(), Some(chunk(2, 1, 10)));
        assert_eq!((ring.pop(), ring.bytes()), (None, 0));
    }

    #[test]
    fn every_line_is_held_or_counted() {
        for limit in [0, 1, 100, JOIN_BYTES, 300_000] {
            let (mut ring, mut pushed) = (Ring::default(), 0);
            for n in 0..200 {
                ring.push(chunk(n % 7 / 3, n as u64 % 5 + 1, 3000));
                pushed += n as u64 % 5 + 1;
                ring.shrink(limit);
                assert!(ring.bytes() <= limit);
            }
            ring.push(chunk(9, 1, 1));
            ring.shrink(0);
            ring.push(chunk(9, 1, 1));
            ring.shrink(0);
            let mut counted = 0;
            while let Some(chunk) = ring.pop() {
                counted += chunk.dropped_before + chunk.lines;
            }
            assert_eq!(counted, pushed + 2, "limit {limit}");
        }
    }

    #[test]
    fn a_gap_stands_where_the_lines_are_missing() {
        let (mut held, mut newer) = (Ring::default(), Ring::default());
        held.push(chunk(1, 1, 10));
        newer.push(chunk(2, 5, 10));
        newer.shrink(0);
        newer.push(chunk(3, 1, 10));
        held.append(newer);
        let gaps: Vec<u64> = held.parts().map(|c| c.dropped_before).collect();
        assert_eq!(gaps, [0, 5]);
    }
}
