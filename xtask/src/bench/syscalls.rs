//! System calls a service, from before its birth to after its reaping, its own among them: strace(1), if installed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::Bench;
use super::cast::spawn;
use super::manager::{ALL, Setup};
use super::marks::Marks;
use super::table::{Line, Unit};
use crate::error::{During, Error, Result};
use crate::scratch::Scratch;
use crate::tools;

/// Enough to see what each costs, few enough to be traced in seconds.
const SERVICES: usize = 100;

/// See the module. What the manager does without a service is taken off.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    if tools::find("strace").is_none() {
        bench.note(
            "strace is not installed (apt-get install strace), so system calls were not counted".into(),
        );
        return Ok(Vec::new());
    }
    let each = |all: f64, none: f64| (all - none) / SERVICES as f64;
    let ours = each(supervised(bench, SERVICES)?, supervised(bench, 0)?);
    let floor = each(bare(bench, SERVICES)?, bare(bench, 0)?);
    let what = "system calls a service, start to reaping";
    Ok(vec![Line::new(what, Unit::Count, &[ours]).beside("vfork+exec", &[floor])])
}

fn words(counts: &Path) -> Vec<String> {
    ["strace", "-f", "-c", "-qq", "-o"]
        .map(str::to_owned)
        .into_iter()
        .chain([counts.display().to_string()])
        .collect()
}

fn supervised(bench: &Bench, services: usize) -> Result<f64> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let counts = scratch.path().join("counts");
    let words = words(&counts);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let setup = Setup::with_services(&bench.cast, services, marks.path())?;
    let (mut manager, _) = setup.start_below(&words, ALL)?;
    if services > 0 {
        marks.all(services)?;
    }
    manager.reached(ALL)?;
    manager.end()?;
    total(&counts)
}

fn bare(bench: &Bench, services: usize) -> Result<f64> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let counts = scratch.path().join("counts");
    let words = words(&counts);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut floor = crate::run::command(words[0], &words[1..]);
    floor
        .arg(&bench.cast.driver)
        .arg("start")
        .arg(services.to_string())
        .arg(&bench.cast.mark)
        .arg(marks.path());
    let mut floor = spawn(floor.stderr(Stdio::inherit()))?;
    if services > 0 {
        marks.all(services)?;
    }
    floor.finish()?;
    total(&counts)
}

/// The sum of strace's table: `100.00    0.123456    12    2000    10 total`.
fn total(counts: &Path) -> Result<f64> {
    let text = fs::read_to_string(counts).during(|| format!("cannot read {}", counts.display()))?;
    let sum =
        text.lines().find(|line| line.ends_with(" total")).and_then(|line| line.split_whitespace().nth(3));
    sum.and_then(|sum| sum.parse().ok())
        .ok_or_else(|| Error::new(format!("strace has counted nothing:\n{text}")))
}
