//! Random numbers of the world, apart from the engine's own.
//!
//! Every choice has a stream of its own, named by what it is for (`[STREAM, unit, n]`). So a unit or a deed can be
//! left out while all others stay what they were: that is how a failing run is made small (`shrink.rs`).

/// What a choice is for: the first number of a stream's name.
pub(super) const WORLD: u64 = 1;
pub(super) const UNIT: u64 = 2;
pub(super) const PROGRAM: u64 = 3;
pub(super) const PROCESS: u64 = 4;
pub(super) const DEED: u64 = 5;
pub(super) const TICK: u64 = 6;
pub(super) const RELOAD: u64 = 7;
pub(super) const RUN: u64 = 8;
pub(super) const SOCKET: u64 = 9;

/// One stream (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Dice {
    /// The stream of this name in the world of this seed.
    pub(super) fn of(seed: u64, name: &[u64]) -> Self {
        let start = mix(seed.wrapping_add(GOLDEN));
        Self(name.iter().fold(start, |state, part| mix(state ^ part.wrapping_mul(GOLDEN))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True once in `n` times.
    pub(super) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
