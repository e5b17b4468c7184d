//! What a log hands on to the one after it, so that a re-execution cuts no line and begins no rate limit anew.

use std::time::{Duration, Instant};

use agentd_engine::InvocationId;
use agentd_unit::UnitName;

use super::rate::{Limiter, RateLimit};

/// The lines that have no end yet, and what rate limits have counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// Of each pipe with such a line.
    pub unfinished: Vec<Unfinished>,
    /// Of each unit with a limit that has counted something.
    pub counted: Vec<Counted>,
}

/// A line whose end has not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Whose log it is for.
    pub unit: UnitName,
    /// Who said it.
    pub run: InvocationId,
    /// What is there of it; empty where all of that was written already.
    pub text: Vec<u8>,
    /// Its priority, 0 to 7, where pieces of it were written already.
    pub continued: Option<u8>,
}

/// What the rate limit of a unit has counted in its present span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Whose.
    pub unit: UnitName,
    /// How long ago the span began.
    pub age: Duration,
    /// How many lines were let through.
    pub admitted: u32,
    /// How many were not.
    pub suppressed: u64,
}

impl Carried {
    /// Takes out the unfinished line of a run.
    pub(super) fn line_of(&mut self, run: InvocationId) -> Option<Unfinished> {
        let at = self.unfinished.iter().position(|line| line.run == run)?;
        Some(self.unfinished.swap_remove(at))
    }

    /// Takes out the count of a unit, as one that goes on under this limit.
    pub(super) fn limiter_of(&mut self, unit: &UnitName, limit: RateLimit, now: Instant) -> Option<Limiter> {
        let at = self.counted.iter().position(|counted| counted.unit == *unit)?;
        let counted = self.counted.swap_remove(at);
        let since = now.checked_sub(counted.age).unwrap_or(now);
        Some(Limiter::going_on(limit, since, counted.admitted, counted.suppressed))
    }
}
