//! A hash of a definition, to see whether a reload changed it.
//!
//! It guards against nothing: what may run is decided by signatures. So it needs no cryptography, only to be the
//! same in every build, since a manager that re-executes itself compares what it kept with what it reads: two hashes in
//! the manner of FNV-1a of 128 bits, eight bytes a step, with different starts.

/// FNV-1a, 128 bits: the prime and the start of its definition.
const PRIME: u128 = (1 << 88) + 0x13b;
const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// The hash of several pieces; where one ends and the next begins counts.
#[must_use]
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let (mut low, mut high) = (START, !START);
    let mut eat = |bytes: [u8; 8]| {
        let word = u128::from(u64::from_le_bytes(bytes));
        // The prime spreads low bits only: turning brings the others there.
        low = (low ^ word).wrapping_mul(PRIME).rotate_left(47);
        high = (high ^ word).wrapping_mul(PRIME).rotate_left(61);
    };
    for piece in pieces {
        eat((piece.len() as u64).to_le_bytes());
        let (words, rest) = piece.as_chunks();
        words.iter().for_each(|word| eat(*word));
        if !rest.is_empty() {
            // The zeros count for nothing: how many bytes there are was said.
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            eat(last);
        }
    }
    let mut digest = [0; 32];
    digest[..16].copy_from_slice(&low.to_le_bytes());
    digest[16..].copy_from_slice(&high.to_le_bytes());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_every_boundary_counts() {
        let of = |pieces: &[&str]| digest(pieces.iter().map(|piece| piece.as_bytes()));
        let all = [
            of(&["ab", "c"]),
            of(&["a", "bc"]),
            of(&["abc"]),
            of(&["abd"]),
            of(&["abc", ""]),
            of(&["abc\0"]),
            of(&[]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
        assert_eq!(of(&["abc"]), of(&["abc"]));
    }
}
