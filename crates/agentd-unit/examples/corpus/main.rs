//! Reads unit files that others wrote: `corpus FOLDER`, with one folder a package below it.
//!
//! Every file must load, name the edges that a plain reading of its keys names, turn into TOML that makes the same unit,
//! and never make a reader panic, however its bytes are changed. A table tells which keys are not supported, how often
//! they stand there, and why. Exits with 1 if a rule is broken or too few of the keys are supported.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test program: what is not as expected ends it"
)]

mod files;
mod mutate;
mod plain;
mod rules;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_unit::schema::Support;

/// The share of key occurrences that must be supported or at least typed, in percent.
const WANTED_PERCENT: usize = 97;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: corpus FOLDER");
        return ExitCode::from(2);
    };
    let found = files::find(&folder);
    let packages = files::packages(&found);
    let mut broken = Vec::new();
    let mut unsupported: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let (mut applied, mut typed, mut refused, mut all) = (0, 0, 0, 0);
    for file in &found {
        broken.extend(rules::check(file));
        for (word, reason) in rules::refused_words(file) {
            *unsupported.entry(("Service".to_owned(), word, reason)).or_default() += 1;
            refused += 1;
        }
        for key in plain::keys(file) {
            all += 1;
            match key.support {
                Support::Applied => applied += 1,
                Support::Typed(_) => typed += 1,
                Support::NotSupported(reason) => {
                    *unsupported.entry((key.section, key.key, reason.to_owned())).or_default() += 1;
                }
                Support::Unknown => {
                    *unsupported
                        .entry((key.section, key.key, "systemd has it not either".to_owned()))
                        .or_default() += 1;
                }
            }
        }
    }
    let mutations = mutate::check(&found);
    print_table(&unsupported);
    let percent = |count: usize| count as f64 * 100.0 / all.max(1) as f64;
    println!(
        "{} files of {packages} packages, {all} keys: {applied} applied ({:.1} %), {typed} typed ({:.1} %), \
         {refused} of these with a value that is not supported; {mutations} changed files read",
        found.len(),
        percent(applied),
        percent(typed)
    );
    let few = (applied + typed - refused) * 100 < all * WANTED_PERCENT;
    if few {
        println!("fewer than {WANTED_PERCENT} % of the keys are supported or typed");
    }
    for line in &broken {
        println!("BROKEN {line}");
    }
    if broken.is_empty() && !few && packages >= 60 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The keys without support, the most frequent first.
fn print_table(unsupported: &BTreeMap<(String, String, String), usize>) {
    let mut rows: Vec<_> = unsupported.iter().collect();
    rows.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    println!("{:>5}  {:<42} why it is not supported", "count", "key");
    for ((section, key, reason), count) in rows {
        println!("{count:>5}  {:<42} {reason}", format!("[{section}] {key}"));
    }
}
