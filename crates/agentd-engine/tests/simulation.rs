//! Whole lives on a seeded clock: random units, programs that misbehave, people who change their minds.
//!
//! `cargo xtask sim` gives the first seed and their number, or one seed, by the environment: `AGENTD_FROM`,
//! `AGENTD_SEEDS`, `AGENTD_SEED`.

#![forbid(unsafe_code)]

mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use world::{Cut, World};

/// How many worlds the ordinary test lives through.
const SEEDS: u64 = 20_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The first seed from `begin` to `end` that fails, on all processors. What a panic would print is in the report.
fn first_failing(begin: u64, end: u64) -> Option<u64> {
    let (next, found) = (AtomicU64::new(begin), AtomicU64::new(u64::MAX));
    let live = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end.min(found.load(Ordering::Relaxed)) {
                return;
            }
            if World::live(seed, &Cut::default(), false).broken().is_some() {
                found.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(live))));
    Some(found.into_inner()).filter(|seed| *seed != u64::MAX)
}

#[test]
fn whatever_happens_the_invariants_hold() {
    let from = number("AGENTD_FROM").unwrap_or(0);
    let (begin, end) = match number("AGENTD_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (from, from + number("AGENTD_SEEDS").unwrap_or(SEEDS)),
    };
    if let Some(seed) = first_failing(begin, end) {
        panic!("{}", World::report(seed).unwrap_or_else(|| format!("seed {seed} fails once and then not")));
    }
}

#[test]
fn a_client_that_leaves_changes_nothing() {
    for seed in 0..300 {
        let left = World::live(seed, &Cut::default(), false);
        let stayed = World::live_with_patience(seed);
        assert_eq!(left.fingerprint(), stayed.fingerprint(), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    for seed in 0..50 {
        let [one, two] = [(); 2].map(|()| World::live(seed, &Cut::default(), true));
        assert_eq!(one.lines(), two.lines(), "seed {seed}");
        assert_eq!(one.fingerprint(), World::live(seed, &Cut::default(), false).fingerprint(), "seed {seed}");
    }
}
