//! The command line: words become a [`Verb`], a verb is run.

use std::process::ExitCode;

use crate::check;
use crate::error::{Error, Result};

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
    /// Licences, bans and sources of what we depend on.
    Deny,
}

const HELP: &str = "\
usage: cargo xtask VERB

  check                 format, lints, arrows, unit and simulation tests: before each commit
  test [--only NAME]…   all tests: the above, namespaces, the agents' own, virtual machines;
                        or the rings (unit, namespace, agents, vm) and scenarios (vm::…) that have NAME in their name
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
            ("test --only", "--only needs a value"),
        ] {
            assert!(parsed(line).unwrap_err().contains(named), "{line}");
        }
    }
}
