//! The units that ship with the project: each is read without a finding, and the vendor's set is whole.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, UnitName, parse_unit};

/// All unit files below a folder.
fn unit_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of the shipped units") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            unit_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_shipped_unit_is_read_without_a_finding() {
    let mut files = Vec::new();
    unit_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units"), &mut files);
    assert!(files.len() > 5, "the shipped units were found: {files:?}");
    let mut specifiers = SpecifierContext::system();
    specifiers.host_name = "host".to_owned();
    let zone = LocalZone::utc();
    for path in files {
        let name = UnitName::of_file(&path).expect("a unit's file name");
        let text = std::fs::read_to_string(&path).expect("a readable unit");
        let parsed = parse_unit(
            &name,
            &[Arc::new(SourceFile::new(&path, text))],
            &ParseContext { specifiers: &specifiers, zone: &zone },
        );
        let findings: Vec<String> = parsed.diagnostics.iter().map(|found| found.render(false)).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
