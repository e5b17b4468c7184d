//! docs/faults.md names only tests that there are.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of all tests in the sources below a folder.
fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut lines = text.lines().map(str::trim);
            while let Some(line) = lines.next() {
                if line != "#[test]" {
                    continue;
                }
                // Other attributes may stand between.
                let name = lines.find_map(|line| line.strip_prefix("fn ")?.split('(').next());
                names.extend(name.map(str::to_owned));
            }
        }
    }
}

#[test]
fn each_test_that_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names = BTreeSet::new();
    tests_below(&root.join("crates"), &mut names);
    let page = fs::read_to_string(root.join("docs/faults.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| fault elsewhere"));
    let mut seen = 0;
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test stands behind: {row}");
        for name in named {
            assert!(names.contains(name), "there is no test {name}: {row}");
            seen += 1;
        }
    }
    assert!(seen > 90, "only {seen} tests were read from the page");
}
