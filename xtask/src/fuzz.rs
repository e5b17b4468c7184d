//! `cargo xtask fuzz`: the readers against inputs that are made by what they cover.
//!
//! What it finds stays in `xtask/fuzz/artifacts`; mended, the input goes to `xtask/fuzz/corpus`, which the ordinary tests read.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{During, Error, Result};
use crate::run::{command, root, run as run_command};
use crate::tools;

/// How long each target runs if nobody says, in seconds.
pub const SECONDS: u64 = 60;

/// Inputs are no longer than this, in bytes: every grammar fits, and longer ones only take longer.
const LENGTH_MAX: usize = 4096;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Which reader; all, if none is named.
    pub target: Option<String>,
    /// How long each runs.
    pub seconds: u64,
}

/// Runs it, at low priority.
///
/// # Errors
/// What it needs is not installed, there is no such target, or an input was found that breaks a law.
pub fn run(ask: &Ask) -> Result<ExitCode> {
    let names = targets()?;
    let chosen = match &ask.target {
        None => names,
        Some(name) if names.contains(name) => vec![name.clone()],
        Some(name) => {
            let known = names.join(", ");
            return Err(Error::new(format!("there is no fuzz target {name}; there are {known}")));
        }
    };
    installed()?;
    for name in chosen {
        fuzz(&name, ask.seconds)?;
        println!("{name}: nothing found in {} s", ask.seconds);
    }
    Ok(ExitCode::SUCCESS)
}

/// The targets, by their files.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("xtask/fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).during(|| format!("cannot read {}", folder.display()))?;
    let name = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| name(entry.path())).collect();
    names.sort();
    Ok(names)
}

fn installed() -> Result<()> {
    let mut missing = Vec::new();
    if tools::find("cargo-fuzz").is_none() {
        missing.push("cargo install --locked cargo-fuzz");
    }
    let nightly = command("rustup", &["run", "nightly", "rustc", "--version"]).output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        missing.push("rustup toolchain install nightly --profile minimal");
    }
    if tools::find("c++").is_none() {
        missing.push("apt-get install g++");
    }
    match missing.as_slice() {
        [] => Ok(()),
        missing => {
            Err(Error::new(format!("what fuzzing needs is not installed; run: {}", missing.join("; "))))
        }
    }
}

fn fuzz(name: &str, seconds: u64) -> Result<()> {
    // New inputs go beside the kept ones, so that those stay few.
    let work = root().join("xtask/fuzz/target/work").join(name);
    std::fs::create_dir_all(&work).during(|| format!("cannot make {}", work.display()))?;
    let mut fuzz = command(
        "nice",
        &["rustup", "run", "nightly", "cargo", "fuzz", "run", "--fuzz-dir", "xtask/fuzz", name],
    );
    fuzz.arg(work).arg(root().join("xtask/fuzz/corpus").join(name)).arg("--");
    fuzz.args([format!("-max_total_time={seconds}"), format!("-max_len={LENGTH_MAX}")]);
    fuzz.args(["-timeout=10", "-rss_limit_mb=1024", "-verbosity=0"]);
    // The linker of the product makes static programs, in which no sanitizer works.
    fuzz.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "cc").env_remove("CARGO_TARGET_DIR");
    run_command(&mut fuzz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_kept_inputs_and_a_law_that_ordinary_tests_hold() {
        let laws = ["unit.rs", "protocol.rs"]
            .map(|file| std::fs::read_to_string(root().join("xtask/fuzz/src").join(file)).unwrap())
            .concat();
        let names = targets().unwrap();
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            assert!(laws.contains(&format!("(\"{name}\", ")), "{name}");
            assert!(
                root().join("xtask/fuzz/corpus").join(&name).read_dir().unwrap().next().is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_target_that_is_none_is_named_with_those_that_are() {
        let ask = Ask { target: Some("spam".into()), seconds: 1 };
        let error = run(&ask).unwrap_err().to_string();
        assert!(error.contains("no fuzz target spam") && error.contains("command_line"), "{error}");
    }
}
