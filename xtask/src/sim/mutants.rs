//! `cargo xtask sim --mutants`: each planted fault is put into a copy of the engine, and the simulation must find it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use super::SEEDS;
use crate::error::{During, Error, Result};
use crate::report::Report;
use crate::run::{cargo, root};

mod list;

pub(crate) use list::{Mutant, PLANTED};

/// The crates that the copy consists of.
const CRATES: [&str; 2] = ["crates/agentd-unit", "crates/agentd-engine"];

/// Runs the mutants of these names, or all.
///
/// # Errors
/// A name is unknown, or the copy cannot be made.
pub(super) fn run(names: &[String]) -> Result<ExitCode> {
    if let Some(unknown) = names.iter().find(|name| PLANTED.iter().all(|mutant| mutant.name != name.as_str()))
    {
        return Err(Error::new(format!("there is no planted fault {unknown}; see docs/simulation.md")));
    }
    let copy = Copy::make()?;
    let mut report = Report::default();
    for mutant in
        PLANTED.iter().filter(|mutant| names.is_empty() || names.iter().any(|name| name == mutant.name))
    {
        report.step(mutant.name, || copy.find(mutant));
    }
    Ok(report.close())
}

/// A copy of the engine that faults can be planted in.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let folder = target().join("mutants");
        for name in CRATES {
            let there = folder.join(name);
            if there.exists() {
                fs::remove_dir_all(&there).during(|| format!("cannot remove {}", there.display()))?;
            }
            copy_folder(&root().join(name), &there)?;
        }
        let manifest = root().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).during(|| format!("cannot read {}", manifest.display()))?;
        let members = format!("members = {CRATES:?}");
        let text = text.replace("members = [\"crates/*\", \"xtask\"]", &members);
        write(&folder.join("Cargo.toml"), &text)?;
        let lock =
            fs::read_to_string(root().join("Cargo.lock")).during(|| "cannot read Cargo.lock".into())?;
        write(&folder.join("Cargo.lock"), &lock)?;
        Ok(Self { folder })
    }

    /// Plants a fault, simulates, and takes it out again.
    fn find(&self, mutant: &Mutant) -> Result<()> {
        let path = self.folder.join("crates/agentd-engine/src").join(mutant.file);
        let sound = fs::read_to_string(&path).during(|| format!("cannot read {}", path.display()))?;
        write(&path, &mutant.plant(&sound)?)?;
        let found = self.simulate(mutant);
        write(&path, &sound)?;
        found
    }

    fn simulate(&self, mutant: &Mutant) -> Result<()> {
        let args = ["test", "--quiet", "-p", "agentd-engine", "--test", "simulation"];
        let mut command = cargo(&args);
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.args(["--", "--exact", super::TEST]).stdin(Stdio::null());
        command.env("AGENTD_SEEDS", SEEDS.to_string()).env("RUST_BACKTRACE", "0");
        let begun = Instant::now();
        let output = command.output().during(|| "cannot run cargo".into())?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Err(Error::new(format!("not found in {SEEDS} seeds: {}", mutant.what)));
        }
        let Some(line) = text.lines().find(|line| line.starts_with("seed ")) else {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(Error::new(format!("the copy does not build or run:\n{errors}")));
        };
        println!("{}\n  found in {:.0} s: {line}", mutant.what, begun.elapsed().as_secs_f64());
        Ok(())
    }
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).during(|| format!("cannot write {}", path.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {}", from.display());
    fs::create_dir_all(to).during(cannot)?;
    for entry in fs::read_dir(from).during(cannot)? {
        let entry = entry.during(cannot)?;
        let there = to.join(entry.file_name());
        if entry.file_type().during(cannot)?.is_dir() {
            copy_folder(&entry.path(), &there)?;
        } else {
            fs::copy(entry.path(), &there).during(cannot)?;
        }
    }
    Ok(())
}
