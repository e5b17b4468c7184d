//! Keys of `[Service]` and what their processes see. Each case runs twice: with its keys, and without them, where what
//! they are to bring about must not be seen.

use std::fs;

use super::{Manager, Setup, text};

/// What keys bring about: lines for `[Service]`, a script, and what only the script of the unit with the lines prints.
pub struct Case {
    name: &'static str,
    keys: String,
    script: &'static str,
    seen: String,
}

/// A case.
pub fn case(name: &'static str, keys: &str, script: &'static str, seen: &str) -> Case {
    Case { name, keys: keys.to_owned(), script, seen: seen.to_owned() }
}

/// Writes both units of a case: what they print goes to files of their names.
fn write(setup: &Setup, case: &Case) {
    // How a unit writes these two characters.
    let script = case.script.replace('%', "%%").replace('$', "$$");
    for (kind, keys) in [("with", case.keys.as_str()), ("without", "")] {
        let name = format!("{}-{kind}", case.name);
        let output = setup.path(&format!("{name}.out"));
        let text = format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \'\'\'{script}\'\'\']\nStandardOutput = \"truncate:{}\"\n{keys}\n",
            output.display()
        );
        setup.unit(&format!("{name}.service"), &text);
    }
}

fn outcome(manager: &Manager, name: &str) -> String {
    let output = manager.ctl(&["start", name]);
    let printed = fs::read(manager.path(&format!("{name}.out"))).unwrap_or_default();
    format!("{}{}", String::from_utf8_lossy(&printed), text(&output))
}

/// Runs cases under one manager; each that fails is told.
pub fn check_all(setup: Setup, cases: &[Case]) {
    for case in cases {
        write(&setup, case);
    }
    let manager = setup.start();
    let mut wrong = Vec::new();
    for case in cases {
        let with = outcome(&manager, &format!("{}-with", case.name));
        if !with.contains(&case.seen) {
            wrong.push(format!("{}: {:?} is not in\n{with}", case.name, case.seen));
        }
        let without = outcome(&manager, &format!("{}-without", case.name));
        if without.contains(&case.seen) {
            wrong.push(format!("{}: {:?} is in\n{without}", case.name, case.seen));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Whether the test can do its work, which needs root. In CI it must.
pub fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    assert!(root || std::env::var_os("CI").is_none(), "this test needs root");
    root
}
