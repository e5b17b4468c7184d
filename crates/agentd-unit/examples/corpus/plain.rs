//! The plainest reading of a file, written to be right at a glance: lines, keys, words. What it finds is held against
//! what the real readers find.

use std::collections::{BTreeMap, BTreeSet};

use agentd_unit::schema::{self, Support};

use crate::files::File;

/// One `KEY=` line.
pub(crate) struct Key {
    /// Below which header.
    pub(crate) section: String,
    /// The key.
    pub(crate) key: String,
    /// The value.
    value: String,
    /// Whether agentd has it.
    pub(crate) support: Support,
}

/// The `KEY=` lines of a file, continuations joined, but for those that are other programs' (`X-`).
pub(crate) fn keys(file: &File) -> Vec<Key> {
    let text = String::from_utf8_lossy(&file.bytes).replace("\r\n", "\n");
    let without_comments: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])).collect();
    let joined = without_comments.join("\n").replace("\\\n", " ");
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in joined.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, value)) = line.split_once('=')
            && !section.starts_with("X-")
            && !key.starts_with("X-")
        {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            let support = schema::support(&section, &key);
            keys.push(Key { section: section.clone(), key, value, support });
        }
    }
    keys
}

/// By key the units that the lists of `[Unit]` and `[Install]` name, after resets, without those of types that agentd
/// does not have.
pub(crate) fn edges(file: &File) -> BTreeMap<String, BTreeSet<String>> {
    const LISTS: [&str; 15] = [
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
        "PropagatesStopTo",
        "WantedBy",
        "RequiredBy",
        "Alias",
    ];
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Key { key, value, .. } in keys(file) {
        let key = if key == "BindTo" { "BindsTo".to_owned() } else { key };
        if !LISTS.contains(&key.as_str()) {
            continue;
        }
        let set = edges.entry(key).or_default();
        if value.is_empty() {
            set.clear();
        }
        set.extend(value.split_whitespace().filter(|word| is_ours(word)).map(str::to_owned));
    }
    edges.retain(|_, set| !set.is_empty());
    edges
}

fn is_ours(word: &str) -> bool {
    ["mount", "automount", "swap", "device", "scope"]
        .iter()
        .all(|ending| !word.ends_with(&format!(".{ending}")))
}
