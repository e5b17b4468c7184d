//! Starting and stopping 1,000 trivial services, beside a bare vfork+exec loop of the same program.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cast::spawn;
use super::manager::{ALL, NONE, Setup};
use super::marks::Marks;
use super::table::{Bar, Line, Unit};
use super::{Bench, others, process};
use crate::error::{During, Result};
use crate::scratch::Scratch;

/// How many.
pub const SERVICES: usize = 1_000;

/// In this time what a start has left to do is done.
pub const SETTLING: Duration = Duration::from_secs(2);

/// Nanoseconds of one way to start all of them, one entry a run.
#[derive(Debug, Default)]
struct Way {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    stop: Vec<f64>,
}

impl Way {
    fn add(&mut self, begun: Instant, ended: Instant, cpu: std::time::Duration) {
        self.wall.push((ended - begun).as_nanos() as f64);
        self.cpu.push(cpu.as_nanos() as f64);
    }
}

/// See the module. The end of a start is the last service's first instruction.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let [mut floor, mut first, mut later] = [Way::default(), Way::default(), Way::default()];
    let scanners = others::scanners(bench);
    let mut theirs = vec![Vec::new(); scanners.len()];
    for _ in 0..bench.runs(11, 7) {
        bare(bench, &mut floor)?;
        at_first(bench, &mut first)?;
        at_request(bench, &mut later)?;
    }
    // These take ten times as long, and need no second place after the point.
    for _ in 0..bench.runs(3, 1) {
        for (scanner, times) in scanners.iter().zip(&mut theirs) {
            times.push(others::start(bench, *scanner, SERVICES)?.as_nanos() as f64);
        }
    }
    const NAME: &str = "vfork+exec";
    let line =
        |what: &str, ours: &[f64], other: &[f64]| Line::new(what, Unit::Time, ours).beside(NAME, other);
    let mut lines = vec![
        line("1,000 services, from exec of agentd (loads them)", &first.wall, &floor.wall)
            .bar(Bar::Times(1.6)),
        line("1,000 services, from agentctl start", &later.wall, &floor.wall).bar(Bar::Times(1.6)),
        line("  CPU of agentd, loading and starting them", &first.cpu, &floor.cpu),
        line("  CPU of agentd, starting them", &later.cpu, &floor.cpu),
        line("stop of 1,000, agentctl exit to agentd's end", &first.stop, &floor.stop)
            .bar(Bar::AtMost(200e6)),
    ];
    for (scanner, times) in scanners.iter().zip(&theirs) {
        lines.push(line(&format!("  1,000 services, by {}", scanner.name), times, &floor.wall));
    }
    Ok(lines)
}

fn bare(bench: &Bench, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let begun = Instant::now();
    let mut floor = bench.cast.driver("start");
    let mut floor = spawn(floor.arg(SERVICES.to_string()).arg(&bench.cast.mark).arg(marks.path()))?;
    let ended = marks.all(SERVICES)?;
    way.add(begun, ended, process::cpu(floor.pid())?);
    let begun = Instant::now();
    floor.finish()?;
    way.stop.push(begun.elapsed().as_nanos() as f64);
    Ok(())
}

fn at_first(bench: &mut Bench, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let (mut manager, begun) = Setup::with_services(&bench.cast, SERVICES, marks.path())?.start(ALL)?;
    let (mark, _) = marks.next()?;
    let ended = marks.all(SERVICES - 1)?;
    way.add(begun, ended, process::cpu(manager.pid())?);
    manager.note_cgroup(bench, mark.pid)?;
    // A stop that finds jobs under way would measure their cancelling, and one that comes at once the files that the start
    // has left to write.
    manager.reached(ALL)?;
    sleep(SETTLING);
    way.stop.push(manager.end()?.as_nanos() as f64);
    Ok(())
}

fn at_request(bench: &Bench, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let (mut manager, _) = Setup::with_services(&bench.cast, SERVICES, marks.path())?.start(NONE)?;
    manager.reached(NONE)?;
    let before = process::cpu(manager.pid())?;
    let begun = Instant::now();
    let mut ctl = manager.ctl(&["start", ALL]).spawn().during(|| "cannot run agentctl".into())?;
    let ended = marks.all(SERVICES)?;
    way.add(begun, ended, process::cpu(manager.pid())?.saturating_sub(before));
    ctl.wait().during(|| "cannot wait for agentctl".into())?;
    manager.end().map(|_| ())
}
