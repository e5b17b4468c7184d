//! Reaping orphans: batches of zombies that are left to the manager while it is stopped, timed until the last is gone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Bench;
use super::manager::{ALL, Setup};
use super::table::{Bar, Line, Unit};
use crate::error::{During, Error, Result};
use crate::run;
use crate::scratch::Scratch;
use crate::tools;

/// How many, in all.
const ORPHANS: u32 = 100_000;

/// How many at once: fewer than a machine's smallest pid space has.
const BATCH: u32 = 10_000;

/// Orphans in a second and CPU nanoseconds an orphan, one entry a run.
#[derive(Debug, Default)]
struct Way {
    rate: Vec<f64>,
    cpu: Vec<f64>,
}

/// See the module. The floor calls waitid(2) and nothing else.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let [mut floor, mut tini, mut ours] = [Way::default(), Way::default(), Way::default()];
    let tini_is_there = tools::find("tini").is_some();
    for _ in 0..bench.runs(9, 5) {
        beside(bench, &mut bench.cast.driver("reap"), &mut floor)?;
        if tini_is_there {
            beside(bench, run::command("tini", &["-s", "--"]).env("TINI_VERBOSITY", "0"), &mut tini)?;
        }
        supervised(bench, &mut ours)?;
    }
    let rate = |beside, way: &Way| {
        Line::new("orphans reaped, 100,000", Unit::PerSecond, &ours.rate).beside(beside, &way.rate)
    };
    let cpu =
        |beside, way: &Way| Line::new("  CPU an orphan", Unit::Time, &ours.cpu).beside(beside, &way.cpu);
    let mut lines = vec![rate("waitid", &floor), cpu("waitid", &floor)];
    if tini_is_there {
        lines.extend([rate("tini", &tini).bar(Bar::AtLeastTimes(1.0)), cpu("tini", &tini)]);
    } else {
        bench.note("tini is not installed (apt-get install tini), so it was not measured".into());
    }
    Ok(lines)
}

/// The words of who makes the orphans.
fn maker(bench: &Bench, result: &Path) -> [String; 5] {
    let driver = bench.cast.driver.display().to_string();
    [driver, "orphans".into(), result.display().to_string(), ORPHANS.to_string(), BATCH.to_string()]
}

fn beside(bench: &Bench, reaper: &mut Command, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let result = scratch.path().join("result");
    run::run(reaper.args(maker(bench, &result)).stdin(Stdio::null()))?;
    way.add(&result)
}

fn supervised(bench: &Bench, way: &mut Way) -> Result<()> {
    let setup = Setup::new(&bench.cast)?;
    let result = setup.path("result");
    let words = maker(bench, &result);
    // A oneshot is over when its process has ended, and only then the target is reached.
    setup.service(
        "maker",
        "Type = \"oneshot\"\nTimeoutStartSec = \"infinity\"\n",
        &words.each_ref().map(Path::new),
    )?;
    let (mut manager, _) = setup.start(ALL)?;
    manager.reached(ALL)?;
    way.add(&result)?;
    manager.end().map(|_| ())
}

impl Way {
    fn add(&mut self, result: &Path) -> Result<()> {
        let text = fs::read_to_string(result).during(|| format!("cannot read {}", result.display()))?;
        let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [took, cpu] = figures[..] else {
            return Err(Error::new(format!("the maker of orphans wrote {text:?}")));
        };
        self.rate.push(f64::from(ORPHANS) / (took / 1e9));
        self.cpu.push(cpu / f64::from(ORPHANS));
        Ok(())
    }
}
