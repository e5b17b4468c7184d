//! The command line: words become a [`Verb`], a verb is run.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::bench;
use crate::check;
use crate::demo;
use crate::error::{Error, Result};
use crate::fuzz;
use crate::image::{self, Kind};
use crate::sim;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Lists the verbs.
    Help,
    /// Checks which crate may use which, and the two doors.
    Arrows,
    /// The checks before a commit.
    Check,
    /// All tests; or only those whose `ring::name` contains one of the words.
    Test {
        /// The words; empty for all.
        only: Vec<String>,
    },
    /// The engine's simulation, by itself.
    Sim(sim::Ask),
    /// Makes inputs for the readers, by what they cover.
    Fuzz(fuzz::Ask),
    /// Writes an image.
    Image {
        /// For what.
        kind: Kind,
        /// The folder for it; one below cargo's target folder if not given.
        out: Option<PathBuf>,
    },
    /// Boots the product in QEMU.
    Vm {
        /// As an initramfs.
        initramfs: bool,
        /// With a shell on the console.
        interactive: bool,
    },
    /// Shows what agentd is for.
    Demo {
        /// In namespaces instead of QEMU.
        here: bool,
        /// And leaves the caller with a shell.
        interactive: bool,
    },
    /// Licences, bans and sources of what we depend on.
    Deny,
    /// How fast and how small agentd is.
    Bench(bench::Options),
}

const HELP: &str = "\
usage: cargo xtask VERB

  check                 format, lints, arrows, unit and simulation tests: before each commit
  test [--only NAME]…   all tests: the above, namespaces, the agents' own, virtual machines;
                        or the rings (unit, corpus, namespace, agents, vm) and scenarios (vm::…) that have NAME in their name
  sim [--seeds N | --seed N | --mutants [NAME]…]
                        the engine's simulation: the first N seeds (20000); one seed, with all that happens in the least
                        part of it that fails; or the planted faults of docs/simulation.md, each of which must be found
  fuzz [TARGET] [--seconds N]
                        inputs for the readers of files, values and messages, made by what they cover: one reader or all,
                        for N seconds (60) each (needs cargo-fuzz and a nightly compiler)
  demo [--here] [--interactive]
                        the main job, end to end: agentd as PID 1 in QEMU (or, in seconds, in namespaces here), a
                        document through two agents, one of them killed and back; then a shell, if wanted
  vm [--initramfs] [--interactive]
                        boots what demo boots and leaves it running, with a shell on the console if wanted
  image [--kind KIND] [--out DIR]
                        writes an image to boot from: disk (the default), initramfs, oci
  bench [--quick] [--json FILE] [NAME]…
                        how fast and how small agentd is, beside programs that do the same work with the fewest calls:
                        all measures, or those that have NAME in their name (start, restart, orphans, memory, idle,
                        control, log, sandbox, syscalls, boot); docs/measurements.md tells what they mean
  arrows                which crate may use which; the two doors of the daemon
  deny                  licences, bans and sources of the dependencies (needs cargo-deny)
  help                  this

Programs that a verb needs and that are missing are installed by apt-get, if you are root on Debian.
";

/// Reads the words after `cargo xtask`.
///
/// # Errors
/// A word is unknown or lacks its value; the message names it.
pub fn parse(words: &[String]) -> Result<Verb> {
    let mut words = words.iter().map(String::as_str);
    let verb = match words.next() {
        None | Some("help" | "--help" | "-h") => return Ok(Verb::Help),
        Some("arrows") => Verb::Arrows,
        Some("check") => Verb::Check,
        Some("deny") => Verb::Deny,
        Some("test") => return test(words),
        Some("sim") => return sim(words),
        Some("fuzz") => return fuzz(words),
        Some("image") => return image(words),
        Some("bench") => return bench(words),
        Some("vm") => {
            let [initramfs, interactive] = switches(words, ["--initramfs", "--interactive"])?;
            return Ok(Verb::Vm { initramfs, interactive });
        }
        Some("demo") => {
            let [here, interactive] = switches(words, ["--here", "--interactive"])?;
            return Ok(Verb::Demo { here, interactive });
        }
        Some(other) => return Err(Error::new(format!("unknown verb {other}; see cargo xtask help"))),
    };
    match words.next() {
        None => Ok(verb),
        Some(extra) => Err(unexpected(extra)),
    }
}

fn test<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Verb> {
    let mut only = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--only" => only.push(value("--only", words.next())?.to_owned()),
            other => return Err(unexpected(other)),
        }
    }
    Ok(Verb::Test { only })
}

fn sim<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Verb> {
    let mut ask = sim::Ask::Seeds(sim::SEEDS);
    while let Some(word) = words.next() {
        ask = match (word, ask) {
            ("--seeds", _) => sim::Ask::Seeds(number("--seeds", words.next())?),
            ("--seed", _) => sim::Ask::Seed(number("--seed", words.next())?),
            ("--mutants", _) => sim::Ask::Mutants(Vec::new()),
            (name, sim::Ask::Mutants(mut names)) if !name.starts_with('-') => {
                names.push(name.to_owned());
                sim::Ask::Mutants(names)
            }
            (other, _) => return Err(unexpected(other)),
        };
    }
    Ok(Verb::Sim(ask))
}

fn fuzz<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Verb> {
    let mut ask = fuzz::Ask { target: None, seconds: fuzz::SECONDS };
    while let Some(word) = words.next() {
        match word {
            "--seconds" => ask.seconds = number("--seconds", words.next())?,
            name if !name.starts_with('-') && ask.target.is_none() => ask.target = Some(name.to_owned()),
            other => return Err(unexpected(other)),
        }
    }
    Ok(Verb::Fuzz(ask))
}

fn number(flag: &str, word: Option<&str>) -> Result<u64> {
    let word = value(flag, word)?;
    word.parse().map_err(|_| Error::new(format!("{flag} needs a whole number, not {word}")))
}

/// Flags without values, each of which may be there.
fn switches<'a>(words: impl Iterator<Item = &'a str>, names: [&str; 2]) -> Result<[bool; 2]> {
    let mut found = [false; 2];
    for word in words {
        let at = names.iter().position(|name| *name == word).ok_or_else(|| unexpected(word))?;
        found[at] = true;
    }
    Ok(found)
}

fn image<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Verb> {
    let (mut kind, mut out) = (Kind::Disk, None);
    while let Some(word) = words.next() {
        match word {
            "--kind" => kind = self::kind(value("--kind", words.next())?)?,
            "--out" => out = Some(PathBuf::from(value("--out", words.next())?)),
            other => return Err(unexpected(other)),
        }
    }
    Ok(Verb::Image { kind, out })
}

fn bench<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Verb> {
    let mut options = bench::Options::default();
    while let Some(word) = words.next() {
        match word {
            "--quick" => options.quick = true,
            "--json" => options.json = Some(PathBuf::from(value("--json", words.next())?)),
            flag if flag.starts_with('-') => return Err(unexpected(flag)),
            name if !bench::names().iter().any(|known| known.contains(name)) => {
                let known = bench::names().join(", ");
                return Err(Error::new(format!("no measure has {name} in its name; there are {known}")));
            }
            name => options.only.push(name.to_owned()),
        }
    }
    Ok(Verb::Bench(options))
}

fn kind(word: &str) -> Result<Kind> {
    Kind::NAMES
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| Error::new(format!("no kind of image is called {word}; see cargo xtask help")))
}

fn value<'a>(flag: &str, word: Option<&'a str>) -> Result<&'a str> {
    word.ok_or_else(|| Error::new(format!("{flag} needs a value; see cargo xtask help")))
}

fn unexpected(word: &str) -> Error {
    Error::new(format!("unexpected word {word}; see cargo xtask help"))
}

/// Runs a verb.
///
/// # Errors
/// It could not be run at all. What it found wrong is in the exit code.
pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Help => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Verb::Arrows => check::arrows().map(|()| ExitCode::SUCCESS),
        Verb::Check => check::check(),
        Verb::Test { only } => check::test(&only),
        Verb::Sim(ask) => sim::run(&ask),
        Verb::Fuzz(ask) => fuzz::run(&ask),
        Verb::Image { kind, out } => {
            let out = out.map_or_else(|| image::default_out(kind), Ok)?;
            image::image(kind, &out).map(|()| ExitCode::SUCCESS)
        }
        Verb::Vm { initramfs, interactive } => demo::vm(initramfs, interactive).map(|()| ExitCode::SUCCESS),
        Verb::Demo { here: true, interactive } => demo::here(interactive).map(|()| ExitCode::SUCCESS),
        Verb::Demo { here: false, interactive } => demo::in_vm(interactive).map(|()| ExitCode::SUCCESS),
        Verb::Bench(options) => bench::run(&options),
        Verb::Deny => check::deny().map(|()| ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> std::result::Result<Verb, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn words_become_verbs() {
        for (line, verb) in [
            ("", Verb::Help),
            ("arrows", Verb::Arrows),
            ("demo --here", Verb::Demo { here: true, interactive: false }),
            ("vm --interactive", Verb::Vm { initramfs: false, interactive: true }),
            ("image", Verb::Image { kind: Kind::Disk, out: None }),
            ("image --kind oci --out a", Verb::Image { kind: Kind::Oci, out: Some("a".into()) }),
            ("bench", Verb::Bench(bench::Options::default())),
            (
                "bench --quick --json a start log",
                Verb::Bench(bench::Options {
                    quick: true,
                    json: Some("a".into()),
                    only: vec!["start".into(), "log".into()],
                }),
            ),
            ("sim", Verb::Sim(sim::Ask::Seeds(20_000))),
            ("sim --seeds 7", Verb::Sim(sim::Ask::Seeds(7))),
            ("sim --seed 7", Verb::Sim(sim::Ask::Seed(7))),
            ("sim --mutants a", Verb::Sim(sim::Ask::Mutants(vec!["a".into()]))),
            ("fuzz", Verb::Fuzz(fuzz::Ask { target: None, seconds: 60 })),
            ("fuzz toml --seconds 5", Verb::Fuzz(fuzz::Ask { target: Some("toml".into()), seconds: 5 })),
            ("test", Verb::Test { only: vec![] }),
            ("test --only unit --only arrows", Verb::Test { only: vec!["unit".into(), "arrows".into()] }),
        ] {
            assert_eq!(parsed(line), Ok(verb), "{line}");
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (line, named) in [
            ("chekc", "unknown verb chekc"),
            ("check --fast", "unexpected word --fast"),
            ("demo --there", "unexpected word --there"),
            ("image --kind iso", "no kind of image is called iso"),
            ("bench speed", "no measure has speed in its name; there are start,"),
            ("bench --fast", "unexpected word --fast"),
            ("test --only", "--only needs a value"),
            ("fuzz toml ini", "unexpected word ini"),
            ("sim --seeds many", "--seeds needs a whole number, not many"),
        ] {
            assert!(parsed(line).unwrap_err().contains(named), "{line}");
        }
    }
}
