//! The third ring: scenarios on real kernels.

pub mod boot;
pub mod compare;
pub mod container;
pub mod context;
pub mod daemons;
pub mod edges;
pub mod escape;
pub mod guest;
pub mod harness;
pub mod journal;
pub mod kernel;
pub mod life;
pub mod limits;
pub mod timers;
pub mod trust;

use std::time::Instant;

use crate::error::{Error, Result};
use crate::report::Report;
use context::Context;

/// A scenario: its name, and what it does. It fails by an error.
pub struct Scenario {
    /// `RING::NAME`, as `--only` gives it; the ring is `vm` or `container`.
    pub name: &'static str,
    /// The steps.
    pub run: fn(&mut Context) -> Result<()>,
}

/// All of them, in the order in which they run.
pub const ALL: &[&[Scenario]] = &[
    harness::SCENARIOS,
    kernel::SCENARIOS,
    boot::SCENARIOS,
    container::SCENARIOS,
    compare::SCENARIOS,
    escape::SCENARIOS,
    edges::SCENARIOS,
    limits::SCENARIOS,
    life::SCENARIOS,
    timers::SCENARIOS,
    journal::SCENARIOS,
    daemons::SCENARIOS,
    trust::SCENARIOS,
];

/// Runs the scenarios that `wanted` names, one after the other, and counts each.
pub fn run(report: &mut Report, wanted: impl Fn(&str) -> bool) {
    let chosen: Vec<&Scenario> =
        ALL.iter().copied().flatten().filter(|scenario| wanted(scenario.name)).collect();
    if chosen.is_empty() {
        return;
    }
    let begun = Instant::now();
    let mut context = match Context::new() {
        Ok(context) => context,
        Err(error) => return report.step("scenarios", || Err(error)),
    };
    for scenario in chosen {
        report.step(scenario.name, || {
            let result = (scenario.run)(&mut context);
            context.settle(result.is_ok());
            result
        });
    }
    println!("scenarios took {:.0} s", begun.elapsed().as_secs_f64());
}

/// Fails with a sentence unless the two are equal.
///
/// # Errors
/// They are not.
pub fn expect_eq<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<()> {
    expect(found == expected, || format!("{what}: expected {expected:?}, found {found:?}"))
}

/// Fails with a sentence unless something holds.
///
/// # Errors
/// It does not.
pub fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(otherwise())) }
}
