//! Which crate may use which: the architecture, checked.
//!
//! The rules stand in [`RULES`]; [`graph`] reads what is, [`doors`] looks into the daemon's sources.

pub mod doors;
pub mod graph;

use std::path::Path;

use crate::error::{During, Error, Result};
use graph::{Graph, Package};

/// What one crate may use.
struct Rule {
    package: &'static str,
    /// Crates of the project.
    ours: &'static [&'static str],
    /// Crates from outside, beside [`PLAIN`].
    outside: &'static [&'static str],
    /// Whether it may use the crates in [`PLAIN`].
    plain: bool,
}

/// Crates of plain data and plain words: they touch nothing and bring no way of working.
const PLAIN: &[&str] = &["serde", "serde_json", "thiserror"];

/// What tests may use beside what their crate uses.
const FOR_TESTS: &[&str] = &["tempfile"];

const RULES: &[Rule] = &[
    Rule { package: "agentd-unit", ours: &[], outside: &["toml", "annotate-snippets", "jiff"], plain: true },
    Rule { package: "agentd-engine", ours: &["agentd-unit"], outside: &[], plain: false },
    Rule { package: "agentd-protocol", ours: &[], outside: &[], plain: true },
    Rule {
        package: "agentd-trust",
        ours: &[],
        // base64ct, getrandom and zeroize are what ed25519-dalek's own types are written, born and wiped with.
        outside: &["ed25519-dalek", "sha2", "blake3", "base64ct", "getrandom", "zeroize"],
        plain: true,
    },
    Rule {
        package: "agentd-linux",
        ours: &["agentd-unit"],
        outside: &["nix", "libc", "caps", "cgroups-rs", "signal-hook", "seccompiler", "landlock"],
        plain: true,
    },
    Rule { package: "agentd-state", ours: &["agentd-unit"], outside: &["sha2"], plain: true },
    Rule {
        package: "agentd",
        ours: &[
            "agentd-unit",
            "agentd-engine",
            "agentd-protocol",
            "agentd-trust",
            "agentd-linux",
            "agentd-state",
        ],
        // toml and jiff: agentd.toml and the stamps of log lines, read and written as the unit language does.
        outside: &["memchr", "tokio", "tracing", "tracing-journald", "tracing-subscriber", "toml", "jiff"],
        plain: true,
    },
    Rule {
        package: "agentctl",
        ours: &["agentd-protocol", "agentd-unit", "agentd-trust"],
        outside: &["clap", "anstyle", "ratatui", "jiff"],
        plain: true,
    },
    Rule { package: "xtask", ours: &[], outside: &["base64ct"], plain: true },
];

/// Crates that must not be reached, however far down. The last word says why.
const NEVER: &[(&str, &[&str], &str)] = &[
    (
        "agentctl",
        &["agentd-engine", "agentd-linux", "tokio"],
        "the command line blocks and only speaks varlink",
    ),
    ("agentd-unit", &["nix", "tokio"], "it is pure"),
    ("agentd-engine", &["nix", "libc", "tokio"], "it is pure"),
    ("agentd-protocol", &["agentd-engine", "nix", "tokio"], "it is pure"),
    ("agentd-trust", &["agentd-engine", "nix", "tokio"], "it is pure"),
    ("agentd-linux", &["agentd-engine", "tokio"], "it knows the kernel alone"),
    ("agentd-state", &["agentd-engine", "agentd-linux", "tokio"], "it knows files alone"),
    ("xtask", &["tokio"], "only agentd uses tokio"),
];

/// The one crate where `unsafe` may stand.
const UNSAFE_CRATE: &str = "agentd-linux";

/// Every violation in the workspace, one line each; none if the architecture holds.
///
/// # Errors
/// `cargo metadata` failed, or a source file could not be read.
pub fn violations(root: &Path) -> Result<Vec<String>> {
    let graph = Graph::of_workspace()?;
    let mut found = check(&graph);
    for package in graph.members() {
        found.extend(unsafe_roots(package)?);
    }
    found.extend(doors::violations(&root.join("crates/agentd/src"))?);
    Ok(found)
}

/// The rules that the graph alone decides.
fn check(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for package in graph.members() {
        match RULES.iter().find(|rule| rule.package == package.name) {
            Some(rule) => found.extend(direct(graph, package, rule)),
            None => found.push(format!(
                "{}: no rule says what this crate may use; add one to xtask/src/arrows/mod.rs",
                package.name
            )),
        }
    }
    for (package, never, why) in NEVER {
        for banned in *never {
            if let Some(way) = graph.way(package, banned) {
                found.push(format!("{package} reaches {banned} ({}), but {why}", way.join(" → ")));
            }
        }
    }
    found
}

fn direct(graph: &Graph, package: &Package, rule: &Rule) -> Vec<String> {
    let allowed = |name: &str, test_only: bool| {
        rule.ours.contains(&name)
            || rule.outside.contains(&name)
            || (rule.plain && PLAIN.contains(&name))
            || (test_only && FOR_TESTS.contains(&name))
    };
    package
        .uses
        .iter()
        .filter(|used| !allowed(&used.name, used.test_only))
        .map(|used| {
            let whose = if graph.is_member(&used.name) { "the project's" } else { "the outside crate" };
            format!("{}: may not use {whose} {}", package.name, used.name)
        })
        .collect()
}

/// Crate roots that do not forbid `unsafe`.
fn unsafe_roots(package: &Package) -> Result<Vec<String>> {
    if package.name == UNSAFE_CRATE {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for target in &package.roots {
        let source =
            std::fs::read_to_string(target).during(|| format!("cannot read {}", target.display()))?;
        if !source.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
            found.push(format!("{}: the crate root does not say #![forbid(unsafe_code)]", target.display()));
        }
    }
    Ok(found)
}

/// Prints every violation and fails if there is one.
///
/// # Errors
/// There is one, or something could not be read.
pub fn enforce(root: &Path) -> Result<()> {
    let found = violations(root)?;
    for line in &found {
        println!("{line}");
    }
    match found.len() {
        0 => Ok(()),
        count => Err(Error::new(format!("the architecture is broken in {count} places"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn dependency(name: &str, kind: Value) -> Value {
        json!({ "name": name, "kind": kind })
    }

    /// A workspace of `packages` (name, direct dependencies), where those with a rule are members.
    fn graph(packages: &[(&str, &[&str])]) -> Graph {
        let members: Vec<&str> = packages
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != "mio" && *name != "tokio")
            .collect();
        let list: Vec<Value> = packages
            .iter()
            .map(|(name, uses)| {
                let uses: Vec<Value> = uses.iter().map(|name| dependency(name, Value::Null)).collect();
                json!({ "id": name, "name": name, "dependencies": uses, "targets": [] })
            })
            .collect();
        let nodes: Vec<Value> = packages
            .iter()
            .map(|(name, uses)| {
                let deps: Vec<Value> =
                    uses.iter().map(|name| json!({ "pkg": name, "dep_kinds": [{ "kind": null }] })).collect();
                json!({ "id": name, "deps": deps })
            })
            .collect();
        let metadata =
            json!({ "packages": list, "workspace_members": members, "resolve": { "nodes": nodes } });
        Graph::read(&metadata).unwrap()
    }

    #[test]
    fn a_planted_violation_is_found() {
        type Planted<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])], &'a str);
        let cases: &[Planted<'_>] = &[
            (
                "engine uses linux",
                &[("agentd-engine", &["agentd-linux"]), ("agentd-linux", &[])],
                "agentd-engine: may not use the project's agentd-linux",
            ),
            (
                "an outside crate that no rule names",
                &[("agentd-unit", &["regex"])],
                "agentd-unit: may not use the outside crate regex",
            ),
            (
                "agentctl reaches tokio through another crate",
                &[
                    ("agentctl", &["agentd-protocol"]),
                    ("agentd-protocol", &["tokio"]),
                    ("tokio", &["mio"]),
                    ("mio", &[]),
                ],
                "agentctl reaches tokio (agentctl → agentd-protocol → tokio)",
            ),
            (
                "even plain crates stay out of the engine",
                &[("agentd-engine", &["serde"])],
                "agentd-engine: may not",
            ),
            ("a crate without a rule", &[("agentd-extra", &[])], "agentd-extra: no rule"),
        ];
        for (case, packages, expected) in cases {
            let found = check(&graph(packages));
            assert!(found.iter().any(|line| line.contains(expected)), "{case}: {found:?}");
        }
    }

    #[test]
    fn what_the_rules_allow_is_not_found() {
        let packages: &[(&str, &[&str])] = &[
            ("agentd-unit", &["toml"]),
            ("agentd-engine", &["agentd-unit"]),
            ("agentd", &["agentd-engine", "tokio"]),
            ("tokio", &[]),
        ];
        assert_eq!(check(&graph(packages)), Vec::<String>::new());
    }

    #[test]
    fn the_project_keeps_its_own_rules() {
        assert_eq!(violations(&crate::run::root()).unwrap(), Vec::<String>::new());
    }
}
