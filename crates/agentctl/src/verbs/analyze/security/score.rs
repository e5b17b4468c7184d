//! From checks to a number: 0.0, nothing is open, to 10.0, all is.

use agentd_unit::{ServiceSection, Unit};

use super::checks::{CHECKS, Check};
use super::facts::{Facts, Judge};

/// From here on a service is called exposed, in tenths.
pub(super) const EXPOSED: u64 = 75;

/// systemd's words for an exposure in tenths: each from this number on.
const WORDS: [(u64, &str); 7] = [
    (100, "DANGEROUS"),
    (90, "UNSAFE"),
    (EXPOSED, "EXPOSED"),
    (50, "MEDIUM"),
    (10, "OK"),
    (1, "SAFE"),
    (0, "PERFECT"),
];

/// What one check came to.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) check: &'static Check,
    /// From 0, shut, to the check's range; none: it does not matter for this service.
    pub(super) badness: Option<u64>,
    /// Its part of the whole, in tenths, rounded up.
    pub(super) exposure: u64,
}

impl Finding {
    pub(super) fn description(&self) -> &'static str {
        match self.badness {
            None if matches!(self.check.judge, Judge::Late(_)) => {
                "It runs early in the boot, where this has no place"
            }
            None => "It runs as root, for whom this does not matter",
            Some(0) => self.check.good,
            Some(_) => self.check.bad,
        }
    }
}

/// All checks of a service.
#[derive(Debug)]
pub(super) struct Assessment {
    pub(super) findings: Vec<Finding>,
    /// In tenths: 0 to 100.
    pub(super) overall: u64,
}

impl Assessment {
    pub(super) fn of(unit: &Unit, service: &ServiceSection) -> Self {
        let facts = Facts::of(unit, service);
        let judged: Vec<(&Check, Option<u64>)> =
            CHECKS.iter().map(|check| (check, check.judge.badness(&facts))).collect();
        let counted = || judged.iter().filter_map(|(check, badness)| Some((*check, (*badness)?)));
        let whole: u64 = counted().map(|(check, _)| check.weight).sum::<u64>().max(1);
        let open: u64 =
            counted().map(|(check, badness)| (badness * check.weight).div_ceil(check.range)).sum();
        let findings = judged.iter().map(|(check, badness)| Finding {
            check,
            badness: *badness,
            exposure: (badness.unwrap_or(0) * check.weight * 100).div_ceil(check.range).div_ceil(whole),
        });
        Self { findings: findings.collect(), overall: (open * 100).div_ceil(whole) }
    }
}

/// What an exposure is called.
pub(super) fn word(overall: u64) -> &'static str {
    WORDS.iter().find(|(from, _)| overall >= *from).map_or("PERFECT", |(_, word)| word)
}
