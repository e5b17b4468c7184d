//! `cargo xtask sim`: the engine's simulation by itself, and the proof that it bites.

mod mutants;

use std::process::ExitCode;
use std::time::Instant;

use crate::error::Result;
use crate::run::{cargo, run as run_command};

/// How many seeds the ordinary test lives through, as in `crates/agentd-engine/tests/simulation.rs`.
pub const SEEDS: u64 = 20_000;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The first seeds, up to this number.
    Seeds(u64),
    /// This one.
    Seed(u64),
    /// The planted faults of these names; all, if none is named.
    Mutants(Vec<String>),
}

/// Runs it.
///
/// # Errors
/// A law was broken, a planted fault was not found, or something could not be run.
pub fn run(ask: &Ask) -> Result<ExitCode> {
    let begun = Instant::now();
    let what = match ask {
        Ask::Seeds(number) => {
            simulate("AGENTD_SEEDS", *number)?;
            format!("{number} seeds: nothing found")
        }
        Ask::Seed(seed) => {
            simulate("AGENTD_SEED", *seed)?;
            format!("seed {seed}: nothing found")
        }
        Ask::Mutants(names) => return mutants::run(names),
    };
    println!("{what}, in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

/// The name of the test that lives through all seeds.
const TEST: &str = "whatever_happens_the_invariants_hold";

fn simulate(variable: &str, value: u64) -> Result<()> {
    let args = ["test", "--quiet", "-p", "agentd-engine", "--test", "simulation", "--", "--exact", TEST];
    run_command(cargo(&args).env(variable, value.to_string()).env("RUST_BACKTRACE", "0"))
}
