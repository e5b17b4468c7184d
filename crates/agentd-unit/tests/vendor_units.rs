//! The units that the project ships are good units.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_unit::{
    Diagnostic, LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, Unit, UnitName, parse_unit,
};

/// All units of a folder of the repository, with the findings about them.
fn read(folder: &str) -> BTreeMap<UnitName, Parsed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the repository has the folder")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.iter().map(|path| parse(path)).collect()
}

fn parse(path: &Path) -> (UnitName, Parsed) {
    let stem = path.file_stem().expect("a file has a name").to_str().expect("units have plain names");
    let name = UnitName::parse(stem).expect("NAME.TYPE.toml");
    let text = fs::read_to_string(path).expect("a readable file");
    let context = ParseContext { specifiers: &SpecifierContext::system(), zone: &LocalZone::utc() };
    let parsed = parse_unit(&name, &[Arc::new(SourceFile::new(path, text))], &context);
    (name, parsed)
}

#[test]
fn each_shipped_unit_and_example_is_without_a_finding() {
    for folder in ["units", "units/examples"] {
        let units = read(folder);
        assert!(!units.is_empty(), "{folder} has units");
        for (name, parsed) in units {
            let findings: Vec<String> = parsed.diagnostics.iter().map(Diagnostic::to_string).collect();
            assert!(findings.is_empty(), "{name}: {findings:#?}");
        }
    }
}

#[test]
fn each_unit_that_a_shipped_unit_names_is_shipped() {
    let units = read("units");
    let known = |name: &UnitName| {
        units.contains_key(name) || units.values().any(|p| p.own.iter().any(|own| own.name == *name))
    };
    for Parsed { unit: Unit { name, unit, install, .. }, .. } in units.values() {
        let edges =
            [&unit.requires, &unit.wants, &unit.after, &unit.before, &unit.conflicts, &install.wanted_by];
        for other in edges.into_iter().flatten() {
            assert!(known(other), "{name} names {other}");
        }
    }
}

#[test]
fn a_fresh_machine_starts_the_example_agents_and_no_shell() {
    let enabled: Vec<String> = read("units")
        .into_values()
        .flat_map(|parsed| parsed.own.into_iter().chain([parsed.unit]))
        .filter(|unit| unit.install.present && unit.install.enabled != Some(false))
        .map(|unit| unit.name.to_string())
        .collect();
    assert_eq!(
        enabled,
        [
            "housekeeper.timer",
            "library.service",
            "summarizer.service",
            "systemd-journald.service",
            "vitals.timer"
        ]
    );
}
