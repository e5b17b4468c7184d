//! Random numbers from a seed: the same seed gives the same run, byte for byte.

/// xoshiro256**, seeded through SplitMix64 (Blackman and Vigna, "Scrambled linear pseudorandom number generators").
///
/// Names runs only; nothing secret is made from it.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        let seed = u128::from_le_bytes(seed);
        let mut mixer = seed as u64 ^ (seed >> 64) as u64 ^ 0x5f0d_9a3c_1b7e_4d21;
        let mut state = [0; 4];
        for (i, word) in state.iter_mut().enumerate() {
            // Both halves enter, at different places: seeds that differ in either give different runs.
            mixer ^= if i % 2 == 0 { seed as u64 } else { (seed >> 64) as u64 };
            *word = split_mix(&mut mixer);
        }
        state[0] |= 1; // All zeros is the one state that the generator cannot leave.
        Self { state }
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// The next 128 bits.
    pub(crate) fn next_wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_gives_others() {
        let take = |seed: [u8; 16]| {
            let mut random = Random::new(seed);
            [random.next_wide(), random.next_wide()]
        };
        let mut other = [7; 16];
        other[15] = 8;
        assert_eq!(take([7; 16]), take([7; 16]));
        assert_ne!(take([7; 16]), take(other));
        assert_ne!(take([0; 16])[0], 0);
    }
}
