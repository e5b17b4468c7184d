//! `docs/keys.md`: every key with its state, made from the tables that reading goes by.

use std::fmt::Write;

use super::{Section, Setting, systemd};

const HEAD: &str = "\
# The keys of unit files

Made from the code by `UPDATE=1 cargo test -p agentd-unit --test keys_page`; a test fails when it is stale.

*applied*: the key has its effect. *checked*: its value is read, checked and kept, a warning says that it has no effect
yet, and the reason names what will apply it. *not supported*: systemd has the key and agentd has not; in a file of
systemd's syntax it is left out with a warning that gives the reason, in TOML it is an error.

Keys that begin with `X-`, and sections that do, are other programs' and left alone. Old names (`BindTo`,
`StartLimitInterval` of `[Service]`, `ReadOnlyDirectories` …) are read in systemd's syntax as what they are called now.
";

/// The page.
#[must_use]
pub fn keys_page() -> String {
    let mut page = HEAD.to_owned();
    for section in Section::ALL {
        let settings = section.settings();
        let missing: Vec<String> =
            systemd::keys_of(section).filter(|key| section.setting(key).is_none()).collect();
        let applied = settings.iter().filter(|setting| setting.later.is_none()).count();
        // Writing to a string cannot fail.
        let _written = write!(
            page,
            "\n## [{}]\n\n{applied} applied, {} checked, {} of systemd's not supported.\n\n\
             | key | kind | default | state | from | what it is for |\n|---|---|---|---|---|---|\n",
            section.as_str(),
            settings.len() - applied,
            missing.len()
        );
        settings.iter().for_each(|setting| page.push_str(&row(section, setting)));
        for key in missing {
            let Some(known) = systemd::known(section, &key) else { continue };
            let state = format!("not supported: {}", known.reason.as_str());
            page.push_str(&format!("| `{key}` | | | {state} | {} | |\n", known.page));
        }
    }
    page
}

fn row(section: Section, setting: &Setting) -> String {
    let from = systemd::known(section, setting.key).map_or("agentd", |known| known.page);
    let state = setting.later.map_or("applied".to_owned(), |later| format!("checked: {later}"));
    let (purpose, default) = split_default(setting.doc);
    format!(
        "| `{}` | {} | {} | {state} | {from} | {} |\n",
        setting.key,
        cell(setting.kind()),
        cell(default),
        cell(purpose)
    )
}

/// The sentence up to its default, and the default.
pub(super) fn split_default(doc: &str) -> (&str, &str) {
    let doc = doc.trim_end_matches('.');
    match doc.split_once("; default") {
        Some((purpose, default)) => (purpose, default.trim_start_matches([':', ' '])),
        None => (doc, ""),
    }
}

/// A text that ends no cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
