//! A service that says lines of 100 bytes, one write each, into the embedded log.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::cast::spawn;
use super::manager::{ALL, Setup};
use super::marks::Marks;
use super::others::{S6_LOG, is_there};
use super::process;
use super::table::{Bar, Line, Unit};
use super::{Bench, PATIENCE};
use crate::error::{During, Error, Result};
use crate::run::command;
use crate::scratch::Scratch;
use crate::tools;

/// Bytes of a line.
const LINE: f64 = 100.0;

/// Bytes in a second and CPU nanoseconds a line, one entry a run.
#[derive(Debug, Default)]
struct Way {
    rate: Vec<f64>,
    cpu: Vec<f64>,
}

impl Way {
    /// Waits for the two marks of who speaks, between which all lines are written.
    fn add(&mut self, marks: &Marks, pid: u32, lines: u32) -> Result<()> {
        let (begun, _) = marks.next()?;
        let before = process::cpu(pid)?;
        let (ended, _) = marks.next()?;
        let cpu = settled_cpu(pid)?.saturating_sub(before);
        let took = (ended.nanoseconds - begun.nanoseconds) as f64 / 1e9;
        self.rate.push(f64::from(lines) * LINE / took);
        self.cpu.push(cpu.as_nanos() as f64 / f64::from(lines));
        Ok(())
    }
}

/// The CPU time of a process once it has worked off what is left.
fn settled_cpu(pid: u32) -> Result<Duration> {
    loop {
        let before = process::cpu(pid)?;
        std::thread::sleep(Duration::from_millis(100));
        if process::cpu(pid)? == before {
            return Ok(before);
        }
    }
}

/// See the module. The floor reads the pipe and throws all away.
///
/// # Errors
/// A program does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let lines = if bench.quick { 500_000 } else { 5_000_000 };
    let [mut floor, mut ours, mut s6, mut journald] = <[Way; 4]>::default();
    let s6_is_there = is_there(bench, S6_LOG, "s6");
    let journald_is_there = journald_is_there(bench)?;
    for _ in 0..bench.runs(3, 1) {
        thrown_away(bench, lines, &mut floor)?;
        let lost = kept(bench, lines, &mut ours)?;
        if lost {
            bench.note("the embedded log has lost lines; it says so in its file".into());
        }
        if s6_is_there {
            kept_by_s6(bench, lines, &mut s6)?;
        }
        if journald_is_there {
            kept_by_journald(bench, lines, &mut journald)?;
        }
    }
    let what = format!("lines of 100 bytes into the embedded log, {lines}");
    const NAME: &str = "read and dropped";
    let mut table = vec![
        Line::new(what, Unit::Rate, &ours.rate).beside(NAME, &floor.rate).bar(Bar::AtLeast(80e6)),
        Line::new("  CPU of agentd a line", Unit::Time, &ours.cpu)
            .beside(NAME, &floor.cpu)
            .bar(Bar::AtMost(500.0)),
    ];
    for (name, is_there, way) in [("s6-log", s6_is_there, &s6), ("journald", journald_is_there, &journald)] {
        if is_there {
            let what = format!("  the same lines by {name}");
            table.push(Line::new(what, Unit::Rate, &way.rate).beside(NAME, &floor.rate));
            let what = format!("  CPU of {name} a line");
            table.push(Line::new(what, Unit::Time, &way.cpu).beside(NAME, &floor.cpu));
        }
    }
    Ok(table)
}

/// Where Debian has journald: in no folder of programs.
const JOURNALD: &str = "/lib/systemd/systemd-journald";

/// Whether journald is installed and may have a `/run` of its own; noted if not.
fn journald_is_there(bench: &mut Bench) -> Result<bool> {
    let there = Path::new(JOURNALD).exists();
    let may = tools::is_root()?;
    if !there || !may {
        bench.note(
            "journald is not installed (apt-get install systemd), or this is not root: it was not measured"
                .into(),
        );
    }
    Ok(there && may)
}

/// journald as services reach it: by its socket for standard output. It has a `/run` of its own, keeps all in memory and
/// knows no limit of rates.
fn kept_by_journald(bench: &Bench, lines: u32, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let script = format!(
        "mount -t tmpfs tmpfs /run && cd /run && mkdir -p systemd/journal systemd/journald.conf.d log/journal && \
         printf '[Journal]\\nStorage=volatile\\nReadKMsg=no\\nAudit=no\\nRateLimitBurst=0\\n' \
         > systemd/journald.conf.d/bench.conf && exec {JOURNALD}"
    );
    let mut journald = command("unshare", &["--mount", "--propagation", "private", "/bin/sh", "-c", &script]);
    let mut journald = journald.stderr(Stdio::null()).spawn().during(|| "cannot run journald".into())?;
    let pid = journald.id();
    let socket = format!("/proc/{pid}/root/run/systemd/journal/stdout");
    let begun = Instant::now();
    while !Path::new(&socket).exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid_text = pid.to_string();
    let mut chatter = command("nsenter", &["--mount", "--target", &pid_text, "systemd-cat"]);
    chatter.arg(&bench.cast.driver).arg("chatter").arg(marks.path()).arg(lines.to_string());
    let chatter = chatter.spawn().during(|| "cannot run the driver".into());
    let added = chatter.and_then(|mut chatter| {
        let added = way.add(&marks, pid, lines);
        drop(chatter.kill());
        drop(chatter.wait());
        added
    });
    drop(journald.kill());
    drop(journald.wait());
    added
}

/// s6-log as it is mostly used: a time before each line, files of 16 MB, of which ten are kept.
fn kept_by_s6(bench: &Bench, lines: u32, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let mut logger = command(S6_LOG, &["t", "s16000000", "n10"]);
    logger.arg(scratch.path().join("log")).stdin(Stdio::piped());
    let mut logger = logger.spawn().during(|| "cannot run s6-log".into())?;
    let pipe = logger.stdin.take().ok_or_else(|| Error::new("s6-log has no standard input"))?;
    let mut command = bench.cast.driver("chatter");
    command.arg(marks.path()).arg(lines.to_string()).stdout(pipe);
    let spawned = command.spawn().during(|| "cannot run the driver".into());
    // It holds the pipe, whose end s6-log waits for.
    drop(command);
    let mut chatter = spawned?;
    let added = way.add(&marks, logger.id(), lines);
    // s6-log ends with who speaks.
    drop(chatter.kill());
    drop(chatter.wait());
    drop(logger.wait());
    added
}

fn thrown_away(bench: &Bench, lines: u32, way: &mut Way) -> Result<()> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let mut drain = bench.cast.driver("drain");
    drain.arg(&bench.cast.driver).arg("chatter").arg(marks.path()).arg(lines.to_string());
    let drain = spawn(&mut drain)?;
    way.add(&marks, drain.pid(), lines)
}

/// Whether lines were lost.
fn kept(bench: &Bench, lines: u32, way: &mut Way) -> Result<bool> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let setup = Setup::new(&bench.cast)?;
    let count = lines.to_string();
    setup.service("chatter", "", &[&bench.cast.driver, "chatter".as_ref(), marks.path(), count.as_ref()])?;
    let (mut manager, _) = setup.start(ALL)?;
    way.add(&marks, manager.pid(), lines)?;
    manager.end()?;
    let folder = manager.path("log");
    let cannot = || format!("cannot read {}", folder.display());
    for file in fs::read_dir(&folder).during(cannot)? {
        let text = fs::read(file.during(cannot)?.path()).during(cannot)?;
        if String::from_utf8_lossy(&text).contains(" lines dropped: ") {
            return Ok(true);
        }
    }
    Ok(false)
}
