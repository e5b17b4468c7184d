//! The edges that people are shown are those that the engine decides by: `agentd_unit::edges` is held against this
//! module, over sets of units that a seed makes.

#![allow(clippy::unwrap_used, reason = "a set that cannot be made ends the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::{
    LocalZone, ParseContext, SourceFile, SpecifierContext, Unit, UnitName, UnitSet, parse_unit,
};

use super::{mentions, relations};
use crate::graph::{Graph, Relation as R, UnitId};
use crate::random::Random;

const SETS: u32 = 500;

const KINDS: [(EdgeKind, R); 13] = [
    (EdgeKind::Requires, R::REQUIRES),
    (EdgeKind::Requisite, R::REQUISITE),
    (EdgeKind::Wants, R::WANTS),
    (EdgeKind::BindsTo, R::BINDS_TO),
    (EdgeKind::PartOf, R::PART_OF),
    (EdgeKind::Upholds, R::UPHOLDS),
    (EdgeKind::Conflicts, R::CONFLICTS),
    (EdgeKind::After, R::AFTER),
    (EdgeKind::OnFailure, R::ON_FAILURE),
    (EdgeKind::OnSuccess, R::ON_SUCCESS),
    (EdgeKind::PropagatesReloadTo, R::RELOADS),
    (EdgeKind::PropagatesStopTo, R::STOPS),
    (EdgeKind::Triggers, R::TRIGGERS),
];

/// Names that units may have; some of them no set has.
const NAMES: [&str; 16] = [
    "x-y.slice",
    "z.slice",
    "a.service",
    "b.service",
    "c.service",
    "d.service",
    "a.timer",
    "b.timer",
    "x.target",
    "y.target",
    "sysinit.target",
    "basic.target",
    "timers.target",
    "shutdown.target",
    "nobody.service",
    "other.service",
];

const KEYS: [&str; 15] = [
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
    "PropagatesStopTo",
    "StopPropagatedFrom",
];

fn below(random: &mut Random, n: u64) -> u64 {
    random.next() % n
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[below(random, from.len() as u64) as usize]
}

fn list(random: &mut Random) -> String {
    let count = 1 + below(random, 3);
    let names: Vec<String> = (0..count).map(|_| format!("{:?}", pick(random, &NAMES))).collect();
    names.join(", ")
}

fn text(random: &mut Random, name: &str) -> String {
    let mut text = "[Unit]\n".to_owned();
    let mut keys = BTreeSet::new();
    for _ in 0..below(random, 5) {
        keys.insert(pick(random, &KEYS));
    }
    for key in keys {
        text.push_str(&format!("{key} = [{}]\n", list(random)));
    }
    if below(random, 4) == 0 {
        text.push_str("DefaultDependencies = false\n");
    }
    match name.rsplit('.').next().unwrap() {
        "service" => {
            let slice = pick(random, &["x.slice", "x-y.slice", "x-y-z.slice", "system.slice"]);
            text.push_str(&format!("[Service]\nExecStart = [\"/bin/true\"]\nSlice = \"{slice}\"\n"));
        }
        "timer" => text.push_str("[Timer]\nOnBootSec = 1\n"),
        _ => {}
    }
    if name.ends_with(".timer") && below(random, 2) == 0 {
        text.push_str("Unit = \"c.service\"\n");
    }
    if below(random, 3) == 0 {
        text.push_str("[Install]\n");
        let key = pick(random, &["WantedBy", "RequiredBy", "UpheldBy"]);
        text.push_str(&format!("{key} = [{}]\n", list(random)));
        if below(random, 3) == 0 {
            text.push_str("Enabled = false\n");
        }
        if below(random, 3) == 0 && name.ends_with(".service") {
            text.push_str("Alias = [\"other.service\"]\n");
        }
    }
    text
}

fn set(random: &mut Random) -> (UnitSet, String) {
    let (mut set, mut shown) = (UnitSet::new(), String::new());
    let context = ParseContext { specifiers: &SpecifierContext::system(), zone: &LocalZone::utc() };
    for name in NAMES.iter().take(NAMES.len() - 2) {
        if below(random, 4) == 0 {
            continue;
        }
        let text = text(random, name);
        shown.push_str(&format!("# {name}\n{text}"));
        let source = Arc::new(SourceFile::new(format!("/u/{name}.toml"), text));
        set.insert(parse_unit(&UnitName::parse(name).unwrap(), &[source], &context).unit);
    }
    (set, shown)
}

/// Every edge by the engine's graph.
fn of_engine(set: &UnitSet) -> BTreeSet<(String, EdgeKind, String)> {
    let mut names: BTreeSet<UnitName> = set.iter().map(|unit| unit.name.clone()).collect();
    names.extend(set.iter().flat_map(|unit| mentions(unit)).map(|name| set.resolve(name).clone()));
    names.extend(set.iter().filter_map(|unit| unit.triggered()).map(|name| set.resolve(&name).clone()));
    let mut slices = UnitSet::new();
    let mentioned = names.iter().filter(|name| name.is_slice()).cloned();
    let mut waiting: Vec<UnitName> = mentioned.chain(set.iter().filter_map(|unit| unit.slice())).collect();
    while let Some(slice) = waiting.pop() {
        if set.get(&slice).is_none() {
            waiting.extend(slice.parent_slice());
            slices.insert(Unit::without_file(slice));
        }
    }
    names.extend(slices.iter().map(|unit| unit.name.clone()));
    let names: Vec<UnitName> = names.into_iter().collect();
    let ids: BTreeMap<&UnitName, UnitId> =
        names.iter().enumerate().map(|(place, name)| (name, UnitId(place as u32))).collect();
    let units: Vec<(UnitId, &Unit)> =
        set.iter().chain(slices.iter()).map(|unit| (ids[&unit.name], &**unit)).collect();
    let relations = relations(&units, |name| ids.get(set.resolve(name)).copied());
    let graph = Graph::build(&names.iter().collect::<Vec<_>>(), relations);
    let mut found = BTreeSet::new();
    for (name, id) in &ids {
        for (kind, relation) in KINDS {
            let others = graph.related(*id, relation).map(|other| names[other.index()].to_string());
            found.extend(others.map(|other| (name.to_string(), kind, other)));
        }
    }
    found
}

/// Every edge as people are shown it.
fn shown(set: &UnitSet) -> BTreeSet<(String, EdgeKind, String)> {
    let edges = Edges::of(set);
    let mut found = BTreeSet::new();
    for name in edges.names() {
        for (kind, _) in KINDS {
            // That a unit lies in a slice that is always there is shown, and nothing follows from it.
            let is_slice_of = |other: &UnitName| match set.get(name) {
                Some(unit) => unit.slice().is_some_and(|slice| slice == *other),
                None => name.parent_slice().is_some_and(|slice| slice == *other),
            };
            let others = edges.from(name, kind).filter(|other| *other != name);
            let others = others.filter(|other| !(other.is_perpetual() && is_slice_of(other)));
            found.extend(others.map(|other| (name.to_string(), kind, other.to_string())));
        }
    }
    found
}

#[test]
fn the_edges_that_are_shown_are_those_of_the_engine() {
    let mut count = 0;
    for seed in 0..SETS {
        let mut random = Random::new(u128::from(seed).to_be_bytes());
        let (set, texts) = set(&mut random);
        let (engine, shown) = (of_engine(&set), shown(&set));
        let only = |a: &BTreeSet<_>, b: &BTreeSet<_>| a.difference(b).cloned().collect::<Vec<_>>();
        assert_eq!(
            (only(&engine, &shown), only(&shown, &engine)),
            (Vec::<(String, EdgeKind, String)>::new(), Vec::new()),
            "seed {seed}: only the engine, only shown\n{texts}"
        );
        count += engine.len();
    }
    assert!(count > SETS as usize * 20, "only {count} edges were compared");
}
