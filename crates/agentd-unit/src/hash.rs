//! A hash for tables of what was read from files, in few steps.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes hashers for a table.
pub(crate) type Quick = BuildHasherDefault<QuickHasher>;

/// Takes eight bytes in a step, as the compiler's own tables do. Unlike the standard library's it does not keep apart
/// texts that were made to collide: whoever could make them is trusted with units and can slow a load down anyway.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuickHasher(u64);

/// An odd number without a pattern: the golden ratio's fraction.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl QuickHasher {
    fn eat(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.eat(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.eat(rest.iter().fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.eat(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        // Multiplying spreads upwards, and tables look at both ends.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn names_that_are_alike_differ_at_both_ends() {
        let hash = |number: usize| Quick::default().hash_one(format!("agent-{number:05}.service"));
        let low: HashSet<u64> = (0..4096).map(|number| hash(number) & 0xffff).collect();
        let high: HashSet<u64> = (0..4096).map(|number| hash(number) >> 57).collect();
        assert!(low.len() > 3800 && high.len() == 128, "{} and {}", low.len(), high.len());
    }
}
