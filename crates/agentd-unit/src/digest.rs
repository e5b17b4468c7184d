//! A hash of a definition, to see whether a reload changed it.
//!
//! It guards against nothing: what may run is decided by signatures. So it needs no cryptography, only to be the
//! same in every build, since a manager that re-executes itself compares what it kept with what it reads: two
//! FNV-1a hashes of 128 bits with different starts.

/// FNV-1a, 128 bits: the prime and the start of its definition.
const PRIME: u128 = (1 << 88) + 0x13b;
const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// The hash of several pieces; where one ends and the next begins counts.
#[must_use]
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let (mut low, mut high) = (START, !START);
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            low = (low ^ u128::from(*byte)).wrapping_mul(PRIME);
            high = (high ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for piece in pieces {
        eat(&(piece.len() as u64).to_le_bytes());
        eat(piece);
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
        let all = [of(&["ab", "c"]), of(&["a", "bc"]), of(&["abc"]), of(&["abd"]), of(&["abc", ""]), of(&[])];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
        assert_eq!(of(&["abc"]), of(&["abc"]));
    }
}
