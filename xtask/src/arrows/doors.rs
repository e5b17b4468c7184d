//! The two doors of the daemon: effects happen in `perform/`, events are born in `watch/`.
//!
//! The rule is textual: certain names may stand only in certain places below `crates/agentd/src`. Comments and tests
//! are not looked at.

use std::path::{Path, PathBuf};

use crate::error::{During, Result};

/// A name that belongs behind a door.
struct Door {
    /// What is looked for: a path from `agentd_linux`, or a piece of text.
    name: &'static str,
    /// The places where it may stand: a folder, or a file without its ending.
    places: &'static [&'static str],
    why: &'static str,
}

const DOORS: &[Door] = &[
    Door { name: "Effect::", places: &["perform"], why: "effects are carried out in perform/ alone" },
    Door {
        name: "agentd_linux::spawn",
        places: &["perform"],
        why: "a process is an effect, so only perform/ spawns",
    },
    Door { name: "Event::Exited", places: &["watch"], why: "what the world did is seen in watch/ alone" },
    Door { name: "Event::Notified", places: &["watch"], why: "what the world did is seen in watch/ alone" },
    Door { name: "Event::OomKilled", places: &["watch"], why: "what the world did is seen in watch/ alone" },
    Door {
        name: "Event::ClockChanged",
        places: &["watch"],
        why: "what the world did is seen in watch/ alone",
    },
    Door {
        name: "Event::",
        // perform/ closes its own effects, control/ hands in requests, the loop asks for the first unit.
        places: &["watch", "perform", "control", "daemon"],
        why: "events are born in watch/, or answer an effect or a request",
    },
    Door {
        name: "process::Command",
        places: &[],
        why: "std::process and tokio::process reap behind the one reaper's back",
    },
];

/// Every name that stands on the wrong side of its door, as `FILE:LINE: …`.
///
/// # Errors
/// A source file could not be read.
pub fn violations(source: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in files(source)? {
        let text = std::fs::read_to_string(&file).during(|| format!("cannot read {}", file.display()))?;
        let inside = file.strip_prefix(source).unwrap_or(&file);
        for (line, why) in wrong(inside, &text) {
            found.push(format!("{}:{line}: {why}", file.display()));
        }
    }
    Ok(found)
}

/// The lines of one file that a door forbids, with the reason.
fn wrong(file: &Path, text: &str) -> Vec<(usize, String)> {
    if is_test(file) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line == "#[cfg(test)]" {
            break;
        }
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        for door in DOORS {
            if !stands_in(file, door.places) && mentions(code, door.name) {
                found.push((index + 1, format!("{} stands here, but {}", door.name, door.why)));
            }
        }
    }
    found
}

/// The name as it stands, or its last part in a grouped `use a::{b, c}` of its first.
fn mentions(code: &str, name: &str) -> bool {
    let starts_word = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if code.match_indices(name).any(|(at, _)| starts_word(at)) {
        return true;
    }
    let Some((path, last)) = name.split_once("::").filter(|(_, last)| !last.is_empty()) else { return false };
    code.split_once(&format!("{path}::{{")).is_some_and(|(_, group)| {
        group.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == last)
    })
}

fn stands_in(file: &Path, places: &[&str]) -> bool {
    let first = file.components().next().map(|part| PathBuf::from(part.as_os_str()).with_extension(""));
    first.is_some_and(|first| places.iter().any(|place| first == Path::new(place)))
}

/// `tests.rs`, `x_tests.rs` and whatever stands in a folder `tests`.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || file.components().any(|part| part.as_os_str() == "tests")
}

/// All Rust files below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let cannot = || format!("cannot read {}", folder.display());
        for entry in std::fs::read_dir(&folder).during(cannot)? {
            let path = entry.during(cannot)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_on_the_wrong_side_is_found() {
        for (case, file, text, lines) in [
            ("an effect outside", "control/handle.rs", "match e {\n    Effect::Spawn(_) => {}\n}", vec![2]),
            ("an effect inside", "perform/mod.rs", "Effect::Spawn(_)", vec![]),
            ("an exit seen by perform", "perform/kill.rs", "Event::Exited { run }", vec![1]),
            ("an exit seen by watch", "watch/exits.rs", "Event::Exited { run }", vec![]),
            ("watch as one file", "watch.rs", "Event::Exited { run }", vec![]),
            ("an event in the options", "options.rs", "Event::Tick", vec![1]),
            ("a grouped use", "boot/mod.rs", "use agentd_linux::{mount, spawn};", vec![1]),
            ("a name that only looks like it", "boot/mod.rs", "use agentd_linux::{spawning};", vec![]),
            ("another type that ends the same", "control/view.rs", "JobEvent::Done", vec![]),
            ("a comment", "boot/mod.rs", "// Effect::Spawn is done elsewhere", vec![]),
            ("a test below", "boot/mod.rs", "fn a() {}\n#[cfg(test)]\nmod tests { Effect::Spawn }", vec![]),
            ("a file of tests", "control/handle_tests.rs", "Effect::Spawn", vec![]),
            ("a reaper's rival", "perform/mod.rs", "std::process::Command::new(\"a\")", vec![1]),
        ] {
            let found: Vec<usize> = wrong(Path::new(file), text).into_iter().map(|(line, _)| line).collect();
            let mut distinct = found.clone();
            distinct.dedup();
            assert_eq!(distinct, lines, "{case}: {found:?}");
        }
    }
}
