//! From the SIGKILL of a service to the first instruction of its next run, with `RestartSec = 0`.

use std::process::Command;

use super::cast::spawn;
use super::manager::{ALL, Setup};
use super::table::{Bar, Line, Unit, quantile};
use super::{Bench, PATIENCE};
use crate::error::{During, Error, Result};
use crate::scratch::Scratch;
use crate::vm::feed::Feed;

/// How many kills in a run.
const KILLS: usize = 200;

/// What one run of kills took, in nanoseconds.
#[derive(Debug, Default)]
struct Way {
    median: Vec<f64>,
    p99: Vec<f64>,
}

impl Way {
    fn add(&mut self, latencies: &[f64]) {
        self.median.push(quantile(latencies, 0.5));
        self.p99.push(quantile(latencies, 0.99));
    }
}

/// See the module. The floor waits in waitpid(2) and calls vfork and exec again.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let [mut floor, mut ours] = [Way::default(), Way::default()];
    for _ in 0..bench.runs(15, 9) {
        floor.add(&bare(bench)?);
        ours.add(&supervised(bench)?);
    }
    const NAME: &str = "vfork+exec";
    Ok(vec![
        Line::new("kill to first instruction, median of 200", Unit::Time, &ours.median)
            .beside(NAME, &floor.median)
            .bar(Bar::Times(2.0)),
        Line::new("kill to first instruction, p99 of 200", Unit::Time, &ours.p99)
            .beside(NAME, &floor.p99)
            .bar(Bar::Times(3.0)),
    ])
}

fn bare(bench: &Bench) -> Result<Vec<f64>> {
    let scratch = Scratch::new("bench")?;
    let fifo = scratch.path().join("marks");
    let (mut killer, said) = killer(bench, &fifo)?;
    let mut keep = bench.cast.driver("keep");
    let _keeper = spawn(keep.arg(&bench.cast.mark).arg(&fifo))?;
    latencies(&mut killer, &said)
}

fn supervised(bench: &Bench) -> Result<Vec<f64>> {
    let scratch = Scratch::new("bench")?;
    let fifo = scratch.path().join("marks");
    let (mut killer, said) = killer(bench, &fifo)?;
    let setup = Setup::new(&bench.cast)?;
    setup.service("killed", "Restart = \"always\"\nRestartSec = 0\n", &[&bench.cast.mark, &fifo])?;
    let (mut manager, _) = setup.start(ALL)?;
    let latencies = latencies(&mut killer, &said)?;
    manager.end()?;
    Ok(latencies)
}

/// Starts who kills, which makes the FIFO; what it will say.
fn killer(bench: &Bench, fifo: &std::path::Path) -> Result<(std::process::Child, Feed)> {
    let mut command: Command = bench.cast.driver("kill");
    command.arg(fifo).arg(KILLS.to_string()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().during(|| "cannot run the driver".into())?;
    let stdout = child.stdout.take().ok_or_else(|| Error::new("the driver has no output"))?;
    Ok((child, Feed::new("driver that kills", stdout, false)))
}

fn latencies(killer: &mut std::process::Child, said: &Feed) -> Result<Vec<f64>> {
    if let Err(error) = said.wait_end(PATIENCE) {
        drop(killer.kill());
        drop(killer.wait());
        return Err(error);
    }
    killer.wait().during(|| "cannot wait for the driver".into())?;
    let text = said.text();
    let latencies: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    match latencies.len() {
        KILLS => Ok(latencies),
        count => Err(Error::new(format!("{count} restarts were seen after {KILLS} kills"))),
    }
}
