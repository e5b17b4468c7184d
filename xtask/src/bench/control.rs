//! Round trips: from the spawn of agentctl to its end, with 1,000 services running.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bench;
use super::manager::{ALL, Setup};
use super::marks::Marks;
use super::start::SERVICES;
use super::table::{Bar, Line, Unit};
use crate::error::Result;
use crate::run::run;
use crate::scratch::Scratch;

/// See the module. The floor is a static program that ends at once.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let (mut manager, _) = Setup::with_services(&bench.cast, SERVICES, marks.path())?.start(ALL)?;
    marks.all(SERVICES)?;
    manager.reached(ALL)?;
    let mut commands = [
        manager.ctl(&["status"]),
        manager.ctl(&["status", "s500.service"]),
        manager.ctl(&["list"]),
        bench.cast.driver("nothing"),
    ];
    commands[3].stdin(Stdio::null());
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..bench.runs(50, 15) {
        for (command, times) in commands.iter_mut().zip(&mut times) {
            times.push(timed(command)?);
        }
    }
    manager.end()?;
    let [status, one, list, floor] = times;
    let line =
        |what: &str, times: &[f64]| Line::new(what, Unit::Time, times).beside("an empty program", &floor);
    Ok(vec![
        line("agentctl status, 1,000 services", &status).bar(Bar::AtMost(5e6)),
        line("agentctl status UNIT", &one).bar(Bar::AtMost(5e6)),
        line("agentctl list", &list),
    ])
}

fn timed(command: &mut Command) -> Result<f64> {
    let begun = Instant::now();
    run(command)?;
    Ok(begun.elapsed().as_nanos() as f64)
}
