//! Whether units have the edges that the real systemd gives them: `edges UNITS SHOWN DIFFERENCES`.
//!
//! UNITS is a folder of unit files in systemd's syntax, SHOWN what `systemctl show` printed of them under a systemd that
//! has loaded them, and DIFFERENCES docs/differences.md, which names each rule by which the two may differ.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a program of the tests that ends where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::search_path::{Tier, TierKind};
use agentd_unit::{
    Body, LoadState, Loader, LoaderConfig, LocalZone, OpenGate, Scope, SearchPath, SpecifierContext, Trusted,
    Unit, UnitName, UnitSet,
};

/// The properties that are compared, with the edge that each is.
const PROPERTIES: [(&str, EdgeKind); 11] = [
    ("Requires", EdgeKind::Requires),
    ("Requisite", EdgeKind::Requisite),
    ("Wants", EdgeKind::Wants),
    ("BindsTo", EdgeKind::BindsTo),
    ("PartOf", EdgeKind::PartOf),
    ("Upholds", EdgeKind::Upholds),
    ("Conflicts", EdgeKind::Conflicts),
    ("After", EdgeKind::After),
    ("OnFailure", EdgeKind::OnFailure),
    ("OnSuccess", EdgeKind::OnSuccess),
    ("Triggers", EdgeKind::Triggers),
];

/// One edge: from, what, to.
type Edge = (String, &'static str, String);

/// One edge that only one of the two has.
struct Difference<'a> {
    set: &'a UnitSet,
    /// All edges of the one that lacks it.
    others: &'a BTreeSet<Edge>,
    from: &'a str,
    property: &'static str,
    to: &'a str,
    theirs: bool,
}

impl Difference<'_> {
    fn either(&self, holds: impl Fn(&str) -> bool) -> bool {
        holds(self.from) || holds(self.to)
    }

    fn unit(&self, name: &str) -> Option<&Unit> {
        self.set.get(&UnitName::parse(name).ok()?).map(|unit| &**unit)
    }

    fn is_calendar(&self) -> bool {
        let Some(Body::Timer(timer)) = self.unit(self.from).map(|unit| &unit.body) else { return false };
        timer.triggers.iter().any(|trigger| trigger.to_string().contains("OnCalendar"))
    }

    /// Whether a target needs a unit, near or far, by the edges of the one that lacks this edge.
    fn needs(&self, target: &str, unit: &str) -> bool {
        const NEEDS: [&str; 6] = ["Requires", "Requisite", "BindsTo", "Wants", "Upholds", "After"];
        let mut seen = BTreeSet::from([target.to_owned()]);
        let mut todo = vec![target.to_owned()];
        while let Some(next) = todo.pop() {
            let from_here = self.others.range((next.clone(), "", String::new())..);
            for (_, property, to) in from_here.take_while(|(from, ..)| *from == next) {
                if NEEDS.contains(property) && seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen.contains(unit)
    }

    /// A default dependency that agentd leaves out, since the target needs the unit already; and what follows from that.
    fn would_close_a_cycle(&self) -> bool {
        match (self.theirs, self.property, self.from, self.to) {
            (true, "After" | "Requires", unit, target @ ("sysinit.target" | "basic.target")) => {
                self.needs(target, unit)
            }
            (false, "After", target, unit) => {
                self.others.contains(&(unit.to_owned(), "After", target.to_owned()))
            }
            _ => false,
        }
    }

    /// An edge of [Install] of a unit that a link of another kind enables.
    fn is_installed(&self) -> bool {
        let wanted_by = |unit: &Unit| unit.install.wanted_by.iter().any(|name| name.as_str() == self.from);
        !self.theirs
            && matches!(self.property, "Wants" | "After")
            && self.unit(self.to).is_some_and(wanted_by)
    }
}

/// A rule by which they differ, by its name in docs/differences.md.
type Rule = (&'static str, fn(&Difference<'_>) -> bool);

fn main() -> ExitCode {
    let [units, shown, differences] =
        std::env::args_os().skip(1).collect::<Vec<_>>().try_into().unwrap_or_else(|_| {
            panic!("usage: edges UNITS SHOWN DIFFERENCES");
        });
    let set = load(units.into());
    let shown = read(&std::fs::read_to_string(shown).unwrap());
    let explained = std::fs::read_to_string(differences).unwrap();
    let (mut by_rule, mut wrong) = (BTreeMap::new(), Vec::new());
    // What agentd does not support is counted by the other example; these units have no edges here.
    let is_loaded = |name: &&UnitName| set.get(name).is_some_and(|unit| unit.load == LoadState::Loaded);
    let loaded = shown.keys().filter(is_loaded).count();
    let (ours, theirs) = (ours(&set), theirs(&set, &shown));
    // A unit that only one of them has loaded has its edges there alone; of an order either end may be the one that says so.
    let is_known = |name: &str| {
        let name = UnitName::parse(name).ok();
        let is_loaded = |name: &UnitName| set.get(name).is_some_and(|unit| unit.load == LoadState::Loaded);
        name.is_some_and(|name| is_loaded(&name) && shown.keys().any(|shown| set.resolve(shown) == &name))
    };
    let mut apart = 0;
    for (from, property, to) in ours.symmetric_difference(&theirs) {
        if !is_known(from) || *property == "After" && !is_known(to) {
            apart += 1;
            continue;
        }
        let is_theirs = theirs.contains(&(from.clone(), property, to.clone()));
        let others = if is_theirs { &ours } else { &theirs };
        let difference = Difference { set: &set, others, from, property, to, theirs: is_theirs };
        match RULES.iter().find(|(_, rule)| rule(&difference)) {
            Some((rule, _)) => *by_rule.entry(*rule).or_insert(0) += 1,
            None => {
                let who = if is_theirs { "systemd" } else { "agentd" };
                wrong.push(format!("{from}: only {who} has {property}={to}"));
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
    let same = ours.intersection(&theirs).count();
    println!(
        "{} units, {loaded} of them loaded by both; {same} edges that are the same, {} that are not explained, {apart} of \
         units that only one has loaded",
        shown.len(),
        wrong.len()
    );
    if wrong.is_empty() && loaded > 200 && same > 1000 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn load(folder: PathBuf) -> UnitSet {
    let owner = std::fs::metadata(&folder).unwrap().uid();
    let loader = Loader::new(LoaderConfig {
        search: SearchPath { tiers: vec![Tier { path: folder, kind: TierKind::Units }] },
        scope: Scope::System,
        trusted: Trusted(vec![0, owner]),
        specifiers: SpecifierContext::system(),
        zone: LocalZone::utc(),
    });
    loader.load(&OpenGate).set
}

fn ours(set: &UnitSet) -> BTreeSet<Edge> {
    let edges = Edges::of(set);
    let mut found = BTreeSet::new();
    for from in edges.names() {
        for (property, kind) in PROPERTIES {
            let others = edges.from(from, kind).filter(|to| *to != from);
            found.extend(others.map(|to| (from.to_string(), property, to.to_string())));
        }
    }
    found
}

/// By the ids that we have for what they are other names of; without units of types that agentd does not have. A unit that
/// is `Before` another is what that one is `After`: systemd tells each end only while it has loaded both.
fn theirs(set: &UnitSet, shown: &BTreeMap<UnitName, BTreeMap<String, String>>) -> BTreeSet<Edge> {
    let mut found = BTreeSet::new();
    for (unit, properties) in shown {
        let unit = set.resolve(unit);
        let of = |property: &str| -> Vec<String> {
            let value = properties.get(property).map_or("", String::as_str);
            let names = value.split(' ').filter_map(|name| UnitName::parse(name).ok());
            let others = names.map(|name| set.resolve(&name).clone()).filter(|name| name != unit);
            others.map(|name| name.to_string()).collect()
        };
        for (property, _) in PROPERTIES {
            found.extend(of(property).into_iter().map(|to| (unit.to_string(), property, to)));
        }
        found.extend(of("Before").into_iter().map(|later| (later, "After", unit.to_string())));
    }
    found
}

/// What `systemctl show` printed: by unit its properties.
fn read(text: &str) -> BTreeMap<UnitName, BTreeMap<String, String>> {
    let block = |block: &str| -> Option<(UnitName, BTreeMap<String, String>)> {
        let lines = block.lines().filter_map(|line| line.split_once('='));
        let properties: BTreeMap<String, String> =
            lines.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some((UnitName::parse(properties.get("Id")?).ok()?, properties))
    };
    text.split("\n\n").filter_map(block).collect()
}

/// The rules, the first that fits counts.
const RULES: &[Rule] = &[
    ("edges-of-sockets-and-paths", |d| {
        d.theirs && d.either(|name| name.ends_with(".socket") || name.ends_with(".path"))
    }),
    ("clock-of-calendars", |d| {
        d.theirs && d.is_calendar() && matches!(d.to, "time-sync.target" | "time-set.target")
    }),
    ("temporary-files", |d| {
        d.theirs && matches!(d.to, "systemd-tmpfiles-setup.service" | "systemd-remount-fs.service")
    }),
    ("no-default-closes-a-cycle", |d| d.would_close_a_cycle()),
    ("links-enable-a-unit-whole", |d| d.is_installed()),
];
