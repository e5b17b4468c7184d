//! Wake-ups of a manager that has nothing to do, with 100 services running.

use std::thread::sleep;
use std::time::Duration;

use super::manager::{ALL, Setup};
use super::marks::Marks;
use super::table::{Bar, Line, Unit};
use super::{Bench, process};
use crate::error::Result;
use crate::scratch::Scratch;

/// Seconds in which what the start has left to do is done.
const SETTLING: u64 = 3;

/// See the module.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let (mut manager, _) = Setup::with_services(&bench.cast, 100, marks.path())?.start(ALL)?;
    marks.all(100)?;
    manager.reached(ALL)?;
    sleep(Duration::from_secs(SETTLING));
    let seconds = if bench.quick { 10 } else { 60 };
    let before = process::switches(manager.pid())?;
    sleep(Duration::from_secs(seconds));
    let count = process::switches(manager.pid())? - before;
    manager.end()?;
    let what = format!("wake-ups in {seconds} idle seconds, 100 services");
    Ok(vec![Line::new(what, Unit::Count, &[count as f64]).bar(Bar::AtMost(0.0))])
}
