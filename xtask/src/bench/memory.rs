//! What the manager keeps in memory, with all services running: proc_pid_smaps(5).

use std::thread::sleep;

use super::manager::{ALL, Setup};
use super::marks::Marks;
use super::start::SETTLING;
use super::table::{Bar, Line, Unit};
use super::{Bench, process};
use crate::error::Result;
use crate::scratch::Scratch;

/// See the module.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (count, name, bar) in [(0, "0", None), (100, "100", Some(6e6)), (1_000, "1,000", Some(9e6))] {
        let mut sizes = [Vec::new(), Vec::new()];
        for _ in 0..bench.runs(3, 1) {
            let scratch = Scratch::new("bench")?;
            let marks = Marks::new(&scratch.path().join("marks"))?;
            let (mut manager, _) = Setup::with_services(&bench.cast, count, marks.path())?.start(ALL)?;
            if count > 0 {
                marks.all(count)?;
            }
            manager.reached(ALL)?;
            // What counts is what it keeps: a start leaves work for a second, such as the units' log files.
            sleep(SETTLING);
            for (sizes, field) in sizes.iter_mut().zip(["Rss", "Anonymous"]) {
                sizes.push(process::resident(manager.pid(), field)? as f64);
            }
            manager.end()?;
        }
        let line = Line::new(format!("resident memory, {name} services"), Unit::Size, &sizes[0]);
        lines.push(match bar {
            Some(most) => line.bar(Bar::AtMost(most)),
            None => line,
        });
        lines.push(Line::new("  of it not backed by agentd's file", Unit::Size, &sizes[1]));
    }
    Ok(lines)
}
