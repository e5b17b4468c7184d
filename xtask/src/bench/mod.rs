//! `cargo xtask bench`: how fast and how small agentd is, beside programs that do the same work with the fewest calls.
//!
//! Every figure stands beside a *floor* that was measured in the same run, so that the ratio means something on a busy
//! machine. What a measure does, and what it leaves out, is told in `docs/measurements.md`.

pub mod boot;
pub mod cast;
pub mod control;
pub mod idle;
pub mod log;
pub mod manager;
pub mod marks;
pub mod memory;
pub mod orphans;
pub mod others;
pub mod process;
pub mod restart;
pub mod sandbox;
pub mod start;
pub mod syscalls;
pub mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::error::{During, Result};
use cast::Cast;
use table::{Line, Table};

/// How long anything that is waited for may take: far more than a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Fewer runs and shorter ones: to see whether something has changed much.
    pub quick: bool,
    /// A file for the figures as JSON.
    pub json: Option<PathBuf>,
    /// Only measures whose name contains one of these; all if empty.
    pub only: Vec<String>,
}

/// What a measure works with.
#[derive(Debug)]
pub struct Bench {
    /// The programs.
    pub cast: Cast,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// What readers should know beside the figures.
    pub notes: Vec<String>,
}

impl Bench {
    /// The number of runs: `full` of them, or `quick`.
    #[must_use]
    pub fn runs(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Adds a note, once.
    pub fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// A measure: its name, and what measures it.
struct Measure {
    name: &'static str,
    run: fn(&mut Bench) -> Result<Vec<Line>>,
}

const MEASURES: &[Measure] = &[
    Measure { name: "start", run: start::measure },
    Measure { name: "restart", run: restart::measure },
    Measure { name: "orphans", run: orphans::measure },
    Measure { name: "memory", run: memory::measure },
    Measure { name: "idle", run: idle::measure },
    Measure { name: "control", run: control::measure },
    Measure { name: "log", run: log::measure },
    Measure { name: "sandbox", run: sandbox::measure },
    Measure { name: "syscalls", run: syscalls::measure },
    Measure { name: "boot", run: boot::measure },
];

/// The names of the measures.
#[must_use]
pub fn names() -> Vec<&'static str> {
    MEASURES.iter().map(|measure| measure.name).collect()
}

/// Measures and prints one table. A missed bar is no failure; a measure that could not be run is.
///
/// # Errors
/// Something does not build, or the JSON could not be written.
pub fn run(options: &Options) -> Result<ExitCode> {
    let chosen: Vec<&Measure> = MEASURES.iter().filter(|measure| wanted(options, measure.name)).collect();
    let mut bench = Bench { cast: Cast::build()?, quick: options.quick, notes: Vec::new() };
    let (mut table, mut failed) = (Table::default(), Vec::new());
    for measure in chosen {
        eprintln!("measuring {}", measure.name);
        match (measure.run)(&mut bench) {
            Ok(lines) => table.add(lines),
            Err(error) => {
                eprintln!("xtask: {} could not be measured: {}", measure.name, error.chain());
                failed.push(measure.name);
            }
        }
    }
    println!("{}\n{table}", process::machine());
    for note in &bench.notes {
        println!("- {note}");
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", table.json(&process::machine(), &bench.notes));
        fs::write(path, text).during(|| format!("cannot write {}", path.display()))?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("not measured: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn wanted(options: &Options, name: &str) -> bool {
    options.only.is_empty() || options.only.iter().any(|word| name.contains(word.as_str()))
}
