//! Whole lives on a seeded clock: random units, programs that misbehave, people who change their minds.

mod world;

use std::time::Duration;

use agentd_engine::Manager;
use world::World;

/// How many worlds the ordinary test lives through; `AGENTD_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;

fn live(seed: u64, keep_lines: bool) -> World {
    let units = if seed.is_multiple_of(10) { 30 } else { 10 };
    let mut world = World::new(seed, units, keep_lines);
    for _ in 0..120 {
        world.step();
    }
    world.calm();
    world.run_for(Duration::from_secs(200));
    world.check_settled();
    world.shut_down();
    world.check_ended();
    world
}

#[test]
fn whatever_happens_the_invariants_hold() {
    let seeds = std::env::var("AGENTD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let outcome = std::panic::catch_unwind(|| live(seed, false));
        if outcome.is_err() {
            println!("seed {seed} once more, with all that happens:");
            live(seed, true);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    for seed in 0..50 {
        assert_eq!(live(seed, true).lines, live(seed, true).lines, "seed {seed}");
        assert_eq!(live(seed, false).fingerprint(), live(seed, false).fingerprint(), "seed {seed}");
    }
}

#[test]
fn a_replay_of_one_seed() {
    let Some(seed) = std::env::var("AGENTD_SEED").ok().and_then(|text| text.parse().ok()) else { return };
    let world = live(seed, true);
    println!("{}", world.lines.join("\n"));
    let _: &Manager = &world.manager;
}
