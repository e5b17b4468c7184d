//! The manual pages are what the code has, and read without a complaint.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Stdio};

use agentd_unit::schema::{self, Section};

#[test]
fn the_pages_are_those_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    for (name, page) in schema::man_pages() {
        let path = folder.join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &page).expect("a page that can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let stale = "is stale; run: UPDATE=1 cargo test -p agentd-unit --test man_pages";
        assert!(found == page, "docs/man/{name} {stale}");
    }
}

#[test]
fn each_key_has_its_entry() {
    let pages = schema::man_pages().map(|(_, page)| page).join("\n");
    for section in Section::ALL {
        for setting in section.settings() {
            assert!(pages.contains(&format!(".TP\n\\fB{}\\fR=\n", setting.key)), "{}", setting.key);
        }
    }
    for entry in ["Takes: word (\\fBno\\fR, ", "Default: 100 ms.", "As in systemd.kill(5)."] {
        let flat = pages.replace('\n', " ");
        assert!(flat.contains(entry), "{entry}");
    }
}

#[test]
fn groff_and_mandoc_have_nothing_to_complain_about() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    // Those of the programs too, which their own tests keep fresh.
    for entry in std::fs::read_dir(folder).expect("the pages") {
        let path = entry.expect("an entry").path();
        for (program, arguments) in
            [("groff", &["-man", "-Tutf8", "-ww", "-z"][..]), ("mandoc", &["-T", "lint", "-W", "warning"])]
        {
            let run = Command::new(program).args(arguments).arg(&path).stdin(Stdio::null()).output();
            // Where neither is installed the page's form is held by the tests of the module that writes it.
            let Ok(output) = run else { continue };
            let said = [output.stdout, output.stderr].concat();
            assert!(said.is_empty(), "{program}: {}", String::from_utf8_lossy(&said));
        }
    }
}
