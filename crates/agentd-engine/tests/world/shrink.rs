//! From a world that fails to the least part of it that still does.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{DEEDS, World};

/// What is left out of a world: units by number, deeds by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(super) units: BTreeSet<usize>,
    pub(super) deeds: BTreeSet<u64>,
}

impl World {
    /// A report on a seed that fails: what is broken, in how little of the world it still is, and all that happens
    /// there up to the step that shows it. `None`: it does not fail.
    pub(crate) fn report(seed: u64) -> Option<String> {
        let whole = Self::live(seed, &Cut::default(), false);
        let least = least(seed, whole.names.len(), &kind(whole.broken()?));
        let world = Self::live(seed, &least, true);
        let mut text = format!("seed {seed}: {}\n", whole.broken()?);
        let units: Vec<&str> = (0..world.names.len())
            .filter(|i| !least.units.contains(i))
            .map(|i| world.names[i].as_str())
            .collect();
        let deeds = DEEDS - least.deeds.len() as u64;
        writeln!(
            text,
            "the least that fails has {} units ({}) and {deeds} deeds:",
            units.len(),
            units.join(" ")
        )
        .unwrap();
        for line in world.lines() {
            writeln!(text, "{line}").unwrap();
        }
        writeln!(text, "seed {seed}: {}", world.broken().unwrap_or("nothing")).unwrap();
        writeln!(text, "once more: cargo xtask sim --seed {seed}").unwrap();
        Some(text)
    }
}

/// The law that is broken, whoever broke it and when.
fn kind(broken: &str) -> String {
    let words = broken.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

/// Leaves out half, then quarters, then single ones, as long as it still fails (Zeller's delta debugging).
fn least(seed: u64, units: usize, what: &str) -> Cut {
    let mut cut = Cut::default();
    let fails = |cut: &Cut| World::live(seed, cut, false).broken().is_some_and(|broken| kind(broken) == what);
    loop {
        let before = cut.clone();
        narrow((0..DEEDS).collect(), &mut cut, &fails, |cut, deed| {
            cut.deeds.insert(deed);
        });
        narrow((0..units).collect(), &mut cut, &fails, |cut, unit| {
            cut.units.insert(unit);
        });
        if cut == before {
            return cut;
        }
    }
}

fn narrow<T: Copy>(all: Vec<T>, cut: &mut Cut, fails: &impl Fn(&Cut) -> bool, out: impl Fn(&mut Cut, T)) {
    let mut size = all.len().div_ceil(2);
    while size > 0 {
        for part in all.chunks(size) {
            let mut tried = cut.clone();
            part.iter().for_each(|item| out(&mut tried, *item));
            if tried != *cut && fails(&tried) {
                *cut = tried;
            }
        }
        size = if size == 1 { 0 } else { size / 2 };
    }
}
