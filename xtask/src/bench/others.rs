//! Other supervisors at the same work in the same run, where they are installed. None of them gives a service a cgroup or
//! a pidfd, and each service has a process of its own that watches it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::marks::Marks;
use super::{Bench, PATIENCE};
use crate::error::{During, Error, Result};
use crate::run::{self, command};
use crate::scratch::Scratch;
use crate::tools;

/// A program that starts a service for each folder in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanner {
    /// Its name.
    pub name: &'static str,
    /// The Debian package that has it.
    package: &'static str,
    /// Its words before the folder.
    words: &'static [&'static str],
}

/// Those that Debian 12 has. s6 takes 500 services unless it is told otherwise.
const SCANNERS: [Scanner; 2] = [
    Scanner { name: "s6-svscan", package: "s6", words: &["-c", "1100"] },
    Scanner { name: "runsvdir", package: "runit", words: &[] },
];

/// The program of s6 that keeps what a service says.
pub const S6_LOG: &str = "s6-log";

/// Those that are installed; the others are noted.
#[must_use]
pub fn scanners(bench: &mut Bench) -> Vec<Scanner> {
    let mut found = SCANNERS.to_vec();
    found.retain(|scanner| is_there(bench, scanner.name, scanner.package));
    bench.note("dinit was not measured: Debian 12 has no package of it".into());
    found
}

/// Whether a program is installed; noted if not.
pub fn is_there(bench: &mut Bench, program: &str, package: &str) -> bool {
    let there = tools::find(program).is_some();
    if !there {
        bench.note(format!("{program} is not installed (apt-get install {package}), so it was not measured"));
    }
    there
}

/// The time from the start of a scanner to the first instruction of the last of `count` services.
///
/// # Errors
/// It does not run as it should.
pub fn start(bench: &Bench, scanner: Scanner, count: usize) -> Result<Duration> {
    let scratch = Scratch::new("bench")?;
    let marks = Marks::new(&scratch.path().join("marks"))?;
    let folder = scratch.path().join("services");
    for number in 0..count {
        service(&folder.join(format!("s{number}")), &bench.cast.mark, marks.path())?;
    }
    let mut command = command(scanner.name, scanner.words);
    command.arg(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let begun = Instant::now();
    let running = Group::spawn(&mut command)?;
    let (mut pids, mut ended) = (Vec::new(), begun);
    for _ in 0..count {
        let (mark, arrived) = marks.next()?;
        pids.push(mark.pid);
        ended = arrived;
    }
    drop(running);
    gone(&pids)?;
    Ok(ended - begun)
}

/// Waits until these are gone, so that their ends are no part of what is measured next.
fn gone(pids: &[u32]) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    for pid in pids {
        while Path::new(&format!("/proc/{pid}")).exists() {
            if Instant::now() > until {
                return Err(Error::new(format!("process {pid} of a service does not end")));
            }
            sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// A service's folder: its program is named by the first line, which the kernel reads; no shell is in the way.
fn service(folder: &Path, mark: &Path, fifo: &Path) -> Result<()> {
    let cannot = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).during(cannot)?;
    let program = folder.join("run");
    fs::write(&program, format!("#!{} {}\n", mark.display(), fifo.display())).during(cannot)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).during(cannot)
}

/// A scanner and all that it has started, ended together: the services go with their watchers, see `xtask/bench/mark.c`.
#[derive(Debug)]
struct Group(Child);

impl Group {
    fn spawn(command: &mut Command) -> Result<Self> {
        command.spawn().map(Self).during(|| format!("cannot run {}", run::shown(command)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        if let Err(error) = run::run(&mut command("kill", &["-KILL", "--", &group])) {
            eprintln!("xtask: {}", error.chain());
        }
        drop(self.0.wait());
    }
}
