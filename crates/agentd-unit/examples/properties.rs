//! Whether `show` tells of units what systemctl(1) tells of them: `properties UNITS SHOWN DIFFERENCES`.
//!
//! UNITS is a folder of unit files in systemd's syntax, SHOWN what `systemctl show --all` printed of them under a systemd
//! that has loaded them, and DIFFERENCES docs/differences.md, which names each rule by which the two may differ.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a program of the tests that ends where it cannot go on")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_unit::search_path::{Scope, Tier, TierKind};
use agentd_unit::{
    LoadState, Loader, LoaderConfig, LocalZone, OpenGate, SearchPath, SpecifierContext, Trusted, UnitName,
    UnitSet, schema,
};

/// What the other example compares: edges as the manager makes them.
const EDGES: [&str; 14] = [
    "Requires",
    "Requisite",
    "Wants",
    "BindsTo",
    "PartOf",
    "Upholds",
    "Conflicts",
    "Before",
    "After",
    "OnFailure",
    "OnSuccess",
    "PropagatesReloadTo",
    "ReloadPropagatedFrom",
    "Sockets",
];

/// One property of a unit that the two tell otherwise.
struct Difference<'a> {
    key: &'a str,
    theirs: &'a str,
    ours: &'a str,
}

/// A rule by which they differ, by its name in docs/differences.md.
type Rule = (&'static str, fn(&Difference<'_>) -> bool);

/// The rules, the first that fits counts.
const RULES: &[Rule] = &[
    ("limits-that-nobody-set", |d| d.key.starts_with("Limit") && d.ours.is_empty()),
    ("shares-are-shares", |d| d.ours.ends_with('%') && d.theirs.parse::<u64>().is_ok()),
    ("no-bound-on-tasks", |d| d.key == "TasksMax" && d.ours == "infinity"),
    ("no-bus", |d| d.key == "Type" && d.theirs == "dbus"),
    ("no-console-beside-the-log", |d| d.theirs == "journal+console" && d.ours == "journal"),
    ("watchdog-of-the-file", |d| d.key == "WatchdogUSec"),
    ("terminal-of-a-stream", |d| d.key == "TTYPath" && d.theirs.is_empty()),
    ("mounts-are-there", |d| d.key == "RequiresMountsFor"),
    ("user-of-its-own", |d| matches!(d.key, "User" | "Group") && d.ours.is_empty()),
    ("how-on-success-starts", |d| d.key == "OnSuccessJobMode" && d.theirs == "fail" && d.ours == "replace"),
    ("backlog-of-the-kernel", |d| d.key == "Backlog"),
    ("calls-of-a-release", |d| d.key == "SystemCallFilter" && is_nearly_the_same(d)),
];

/// The groups of calls of systemd 252 and of later ones differ by a few calls that processors do not have any more, or not
/// yet.
fn is_nearly_the_same(difference: &Difference<'_>) -> bool {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (theirs, ours) = (words(difference.theirs), words(difference.ours));
    let lacking = theirs.iter().filter(|call| !ours.contains(call)).count();
    let more = ours.iter().filter(|call| !theirs.contains(call)).count();
    difference.theirs.starts_with('~') == difference.ours.starts_with('~') && lacking < 30 && more <= 2
}

fn main() -> ExitCode {
    let [units, shown, differences] =
        std::env::args_os().skip(1).collect::<Vec<_>>().try_into().unwrap_or_else(|_| {
            panic!("usage: properties UNITS SHOWN DIFFERENCES");
        });
    let set = load(units.into());
    let shown = std::fs::read_to_string(shown).unwrap();
    let explained = std::fs::read_to_string(differences).unwrap();
    let (mut same, mut by_rule, mut wrong) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    let mut seen = BTreeMap::<String, usize>::new();
    for theirs in shown.split("\n\n").map(block) {
        let Some(Ok(name)) = theirs.get("Id").map(|id| UnitName::parse(id)) else { continue };
        let Some(unit) = set.get(&name).filter(|unit| unit.load == LoadState::Loaded) else { continue };
        if theirs.get("LoadState").is_none_or(|state| state != "loaded") {
            continue;
        }
        let ours = schema::properties(unit);
        for (key, ours) in ours.iter().filter(|(key, _)| !EDGES.contains(&key.as_str())) {
            // systemctl leaves lists without an item out.
            let empty = String::new();
            let theirs = match theirs.get(key.as_str()) {
                Some(theirs) => theirs,
                None if ours.is_empty() => &empty,
                None => continue,
            };
            // Of what is made of parts the bus has no text.
            if theirs == "[unprintable]" {
                continue;
            }
            *seen.entry(key.clone()).or_default() += 1;
            let difference = Difference { key, theirs, ours };
            if plain(key, theirs) == plain(key, ours) {
                same += 1;
            } else if let Some((rule, _)) = RULES.iter().find(|(_, rule)| rule(&difference)) {
                *by_rule.entry(rule).or_default() += 1;
            } else {
                wrong.push(format!("{name}: {key}:\n    systemd: {theirs}\n    agentd:  {ours}"));
            }
        }
    }
    for (rule, count) in &by_rule {
        println!("{count:>5}  {rule}");
        if !explained.contains(&format!("`{rule}`")) {
            wrong.push(format!("docs/differences.md does not explain {rule}"));
        }
    }
    wrong.iter().for_each(|line| println!("WRONG {line}"));
    println!(
        "{} properties, {same} values that are the same, {} that are not explained",
        seen.len(),
        wrong.len()
    );
    if wrong.is_empty() && seen.len() > 200 && same > 30_000 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A value without what the two write in ways of their own: quotes, the order of lists, of commands and timers what became
/// of them, and the flags of commands, which systemctl tells in a property of their own. Of a list that systemd turns round (`~`) and has nothing in, nothing is left.
fn plain(key: &str, value: &str) -> Vec<String> {
    let mut value = value.replace(['"', '\\'], "");
    let more = [" ; start_time=", " ; next_elapse=", " ; flags="];
    while let Some(start) = more.iter().find_map(|more| value.find(more)) {
        let end = value[start..].find(" }").map_or(value.len(), |end| start + end);
        value.replace_range(start..end, "");
    }
    let mut words: Vec<String> =
        value.split_whitespace().map(str::to_owned).filter(|word| word != "~").collect();
    if !key.starts_with("Exec") {
        words.sort();
    }
    words
}

fn load(folder: PathBuf) -> UnitSet {
    let owner = std::fs::metadata(&folder).unwrap().uid();
    let loader = Loader::new(LoaderConfig {
        search: SearchPath { tiers: vec![Tier { path: folder, kind: TierKind::Units }] },
        trusted: Trusted(vec![0, owner]),
        specifiers: SpecifierContext::system(),
        zone: LocalZone::utc(),
        scope: Scope::System,
    });
    loader.load(&OpenGate).set
}

/// The properties of one unit; of a list systemctl prints a line for each item.
fn block(block: &str) -> BTreeMap<&str, String> {
    let mut found = BTreeMap::<&str, String>::new();
    for (key, value) in block.lines().filter_map(|line| line.split_once('=')) {
        let known = found.entry(key).or_default();
        if !known.is_empty() {
            known.push(' ');
        }
        known.push_str(value);
    }
    found
}
