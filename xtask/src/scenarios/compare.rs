//! The same small graphs under the real systemd and under agentd, each as the PID 1 of a container on this kernel: the
//! order of starts and stops, final states, results, restart counts and exit codes are the same, or
//! docs/differences.md says why not.

mod graphs;
mod keys;

use std::collections::BTreeMap;
use std::fs;

use super::context::{Context, FILES};
use super::{Scenario, expect};
use crate::error::{During, Error, Result};
use crate::image::tree::Tree;
use crate::run::root;
use crate::vm::container::Container;
use graphs::Graph;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "container::same-graphs-as-systemd", run: same_graphs },
    Scenario { name: "container::same-processes-as-systemd", run: same_processes },
];

/// Where each of the two reads an administrator's units.
const UNITS: [&str; 2] = ["etc/systemd/system", "etc/agentd/units"];

/// Ends when systemd has started all that it starts by itself; before it listens there is nothing to wait at.
pub(super) const UP: &str = "timeout 60 sh -c 'until systemctl is-system-running --wait 2>/dev/null | grep -Eq running\\|degraded; \
                  do sleep 0.2; done'";

fn same_graphs(context: &mut Context) -> Result<()> {
    let folder = root().join("xtask/guest/compare");
    let text = read(&folder.join("graphs.txt"))?;
    let differences = read(&root().join("docs/differences.md"))?;
    let graphs = graphs::parse(&text)?;
    let lay = |tree: &Tree| -> Result<()> {
        for units in UNITS {
            for (name, unit) in graphs.iter().flat_map(|graph| &graph.units) {
                tree.write(&format!("{units}/{name}"), 0o644, unit.as_bytes())?;
            }
        }
        for program in ["mark", "drive"] {
            tree.copy(&folder.join(program), &format!("{FILES}/compare/{program}"), &|_| false)?;
        }
        tree.write(&format!("{FILES}/compare/script"), 0o644, graphs::script(&graphs).as_bytes())?;
        // What is compared is not signed; and basic.target is all that is to be up.
        tree.write("etc/agentd/agentd.toml", 0o644, b"[Manager]\nTrust = \"off\"\n")?;
        tree.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/basic.target")
    };
    let theirs = {
        // One at a time: both have their cgroup by the name of this process.
        let mut container = context.container_of_systemd(lay)?;
        container.run(UP)?;
        outcomes(&mut container, "systemctl")?
    };
    let ours = outcomes(&mut context.container_with(lay)?, "agentctl")?;
    judge(&graphs, &theirs, &ours, &differences)
}

/// What processes see under each setting of `keys.txt`.
fn same_processes(context: &mut Context) -> Result<()> {
    let folder = root().join("xtask/guest/compare");
    let cases = keys::parse(&read(&folder.join("keys.txt"))?)?;
    let differences = read(&root().join("docs/differences.md"))?;
    let probe = format!("{FILES}/compare/probe");
    let lay = |tree: &Tree| -> Result<()> {
        for (units, case) in UNITS.iter().flat_map(|units| cases.iter().map(move |case| (units, case))) {
            tree.write(&format!("{units}/{}", case.unit()), 0o644, case.text(&probe).as_bytes())?;
        }
        tree.copy(&folder.join("probe"), &probe, &|_| false)?;
        tree.write(&format!("{FILES}/compare/drive"), 0o644, keys::script(&cases).as_bytes())?;
        tree.write("etc/agentd/agentd.toml", 0o644, b"[Manager]\nTrust = \"off\"\n")?;
        tree.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/basic.target")
    };
    let theirs = {
        let mut container = context.container_of_systemd(lay)?;
        container.run(UP)?;
        outcomes(&mut container, "systemctl")?
    };
    let ours = outcomes(&mut context.container_with(lay)?, "agentctl")?;
    keys::judge(&cases, &theirs, &ours, &differences)
}

fn read(path: &std::path::Path) -> Result<String> {
    fs::read_to_string(path).during(|| format!("cannot read {}", path.display()))
}

/// What came of each graph, in lines.
fn outcomes(container: &mut Container, ctl: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let answer = container.run(&format!("sh /{FILES}/compare/drive {ctl}"))?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut graph = String::new();
    for line in answer.text.lines() {
        match line.strip_prefix("== ") {
            Some(name) => graph = name.to_owned(),
            None => all.entry(graph.clone()).or_default().push(line.trim_end().to_owned()),
        }
    }
    expect(graph == "done", || format!("{ctl} did not come to the end:\n{}", answer.text))?;
    Ok(all)
}

/// The lines of a known difference, to be read beside what the document says of it: those that only one has, or all
/// where their order differs.
fn show(graph: &str, reason: &str, theirs: &[String], ours: &[String]) {
    println!("{graph} differs by {reason}:");
    let only = |some: &[String], others: &[String]| -> Vec<String> {
        some.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    let (mut theirs_only, mut ours_only) = (only(theirs, ours), only(ours, theirs));
    if theirs_only.is_empty() && ours_only.is_empty() {
        (theirs_only, ours_only) = (theirs.to_vec(), ours.to_vec());
    }
    println!("  systemd: {}\n  agentd: {}", theirs_only.join("; "), ours_only.join("; "));
}

/// Every difference has its reason, and every reason its difference.
fn judge(
    graphs: &[Graph],
    theirs: &BTreeMap<String, Vec<String>>,
    ours: &BTreeMap<String, Vec<String>>,
    differences: &str,
) -> Result<()> {
    let mut wrong = Vec::new();
    for graph in graphs {
        let seen = |all: &BTreeMap<String, Vec<String>>| {
            all.get(&graph.name).map(|lines| graph.normal(lines)).unwrap_or_default()
        };
        let (theirs, ours) = (seen(theirs), seen(ours));
        match &graph.reason {
            None if theirs != ours => wrong.push(format!(
                "{}: systemd:\n  {}\n{}: agentd:\n  {}",
                graph.name,
                theirs.join("\n  "),
                graph.name,
                ours.join("\n  ")
            )),
            Some(reason) if theirs == ours => {
                wrong.push(format!("{}: nothing differs any more; take {reason} back", graph.name));
            }
            Some(reason) if !differences.contains(&format!("`{reason}`")) => {
                wrong.push(format!("docs/differences.md does not explain {reason}"));
            }
            Some(reason) => show(&graph.name, reason, &theirs, &ours),
            None => {}
        }
    }
    println!(
        "{} graphs, {} with a known difference",
        graphs.len(),
        graphs.iter().filter(|g| g.reason.is_some()).count()
    );
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong.join("\n"))) }
}
