//! The packages and who uses whom, as `cargo metadata` tells.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use serde_json::Value;

use crate::error::{During, Error, Result};
use crate::run;

/// A direct dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Name of the package that is used.
    pub name: String,
    /// Only its user's tests use it.
    pub test_only: bool,
}

/// A package of the workspace.
#[derive(Debug, Clone)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// What it uses directly.
    pub uses: Vec<Use>,
    /// The root files of its libraries, programs and examples.
    pub roots: Vec<PathBuf>,
    /// The names of its test programs, those below `tests/`.
    pub tests: Vec<String>,
}

/// The members of the workspace, and who reaches whom in what is built.
#[derive(Debug)]
pub struct Graph {
    members: Vec<Package>,
    /// Package id → ids that it uses, test-only uses left out.
    edges: BTreeMap<String, Vec<String>>,
    names: BTreeMap<String, String>,
}

impl Graph {
    /// The graph of this workspace.
    ///
    /// # Errors
    /// `cargo metadata` failed or said something else than it promises.
    pub fn of_workspace() -> Result<Self> {
        let text = run::output(&mut run::cargo(&["metadata", "--format-version", "1"]))?;
        Self::read(&serde_json::from_str(&text).during(|| "cargo metadata did not write JSON".into())?)
    }

    /// The graph in the output of `cargo metadata`.
    ///
    /// # Errors
    /// A field is missing.
    pub fn read(metadata: &Value) -> Result<Self> {
        let ids: BTreeSet<&str> =
            list(metadata, "workspace_members")?.iter().filter_map(Value::as_str).collect();
        let mut graph = Self { members: Vec::new(), edges: BTreeMap::new(), names: BTreeMap::new() };
        for package in list(metadata, "packages")? {
            let (id, name) = (text(package, "id")?, text(package, "name")?);
            graph.names.insert(id.to_owned(), name.to_owned());
            if ids.contains(id) {
                graph.members.push(member(package, name)?);
            }
        }
        for node in list(&metadata["resolve"], "nodes")? {
            let uses = list(node, "deps")?.iter().filter(|dep| is_built(dep));
            let uses = uses.map(|dep| text(dep, "pkg").map(str::to_owned)).collect::<Result<_>>()?;
            graph.edges.insert(text(node, "id")?.to_owned(), uses);
        }
        Ok(graph)
    }

    /// The packages of the workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.members.iter()
    }

    /// Whether a package of this name belongs to the workspace.
    #[must_use]
    pub fn is_member(&self, name: &str) -> bool {
        self.members.iter().any(|package| package.name == name)
    }

    /// The shortest way from one package to another over what is built, as names.
    #[must_use]
    pub fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let start = self.names.iter().find(|(_, name)| *name == from)?.0;
        let mut came_from: BTreeMap<&String, Option<&String>> = BTreeMap::from([(start, None)]);
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            if self.names.get(id).is_some_and(|name| name == to) {
                let mut way: Vec<String> =
                    std::iter::successors(Some(id), |id| came_from.get(id).copied().flatten())
                        .filter_map(|id| self.names.get(id).cloned())
                        .collect();
                way.reverse();
                return Some(way);
            }
            for next in self.edges.get(id).into_iter().flatten() {
                if !came_from.contains_key(next) {
                    came_from.insert(next, Some(id));
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

fn member(package: &Value, name: &str) -> Result<Package> {
    let mut uses = Vec::new();
    for dependency in list(package, "dependencies")? {
        let test_only = dependency["kind"].as_str() == Some("dev");
        uses.push(Use { name: text(dependency, "name")?.to_owned(), test_only });
    }
    let (mut roots, mut tests) = (Vec::new(), Vec::new());
    for target in list(package, "targets")? {
        let kinds = list(target, "kind")?;
        let is = |wanted: &str| kinds.iter().any(|kind| kind == wanted);
        if is("test") {
            tests.push(text(target, "name")?.to_owned());
        } else if !is("bench") {
            roots.push(PathBuf::from(text(target, "src_path")?));
        }
    }
    Ok(Package { name: name.to_owned(), uses, roots, tests })
}

/// Used by more than tests.
fn is_built(dep: &Value) -> bool {
    dep["dep_kinds"].as_array().is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().ok_or_else(|| Error::new(format!("cargo metadata has no list {key}")))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().ok_or_else(|| Error::new(format!("cargo metadata has no text {key}")))
}
