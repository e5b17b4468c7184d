//! The same small graphs, and the same program under many settings, under the real systemd and under agentd, each as PID 1:
//! the order of starts and stops, final states, results, restart counts and exit codes are the same, and so is what the
//! program can tell of itself, or docs/differences.md says why not.
//!
//! In containers on this kernel, which takes seconds to come up, and in two machines with Debian's own kernel, which has
//! all controllers and nothing around it.

mod graphs;
mod keys;
pub mod machines;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::context::{Context, FILES};
use super::{Scenario, expect};
use crate::error::{During, Error, Result};
use crate::image::tree::Tree;
use crate::run::{command, root, run};
use crate::tools;
use crate::vm::channel::Answer;
use graphs::Graph;
use keys::Case;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "container::same-graphs-as-systemd", run: graphs_in_containers },
    Scenario { name: "container::same-processes-as-systemd", run: processes_in_containers },
    Scenario { name: "vm::same-graphs-as-systemd", run: graphs_in_machines },
    Scenario { name: "vm::same-processes-as-systemd", run: processes_in_machines },
];

/// Where each of the two reads an administrator's units.
const UNITS: [&str; 2] = ["etc/systemd/system", "etc/agentd/units"];

/// Ends when systemd has started all that it starts by itself; before it listens there is nothing to wait at.
pub(super) const UP: &str = "timeout 60 sh -c 'until systemctl is-system-running --wait 2>/dev/null | grep -Eq running\\|degraded; \
                  do sleep 0.2; done'";

/// What came of each graph or setting, in lines.
type Outcomes = BTreeMap<String, Vec<String>>;

fn graphs_in_containers(context: &mut Context) -> Result<()> {
    let ground = Ground::read(context)?;
    let (theirs, ours) =
        ground.in_containers(context, &ask("graphs", "systemctl"), &ask("graphs", "agentctl"))?;
    judge(&ground.graphs, &theirs, &ours, &ground.differences)
}

fn graphs_in_machines(context: &mut Context) -> Result<()> {
    let ground = Ground::read(context)?;
    let (theirs, ours) =
        ground.in_machines(context, &ask("graphs", "systemctl"), &ask("graphs", "agentctl"))?;
    judge(&ground.graphs, &theirs, &ours, &ground.differences)
}

fn processes_in_containers(context: &mut Context) -> Result<()> {
    let ground = Ground::read(context)?;
    let (theirs, ours) =
        ground.in_containers(context, &ask("files", "systemctl"), &ask("files", "agentctl"))?;
    keys::judge(&ground.cases, &theirs, &ours, &ground.differences)
}

/// Here systemd has the settings from the words of systemd-run, and agentd from files.
fn processes_in_machines(context: &mut Context) -> Result<()> {
    let ground = Ground::read(context)?;
    let (theirs, ours) = ground.in_machines(context, &ask("transient", ""), &ask("files", "agentctl"))?;
    keys::judge(&ground.cases, &theirs, &ours, &ground.differences)
}

/// The words that run one of the guests' programs.
fn ask(program: &str, ctl: &str) -> String {
    format!("/{FILES}/compare/{program} {ctl}")
}

/// What is compared, and what is known of it.
struct Ground {
    folder: PathBuf,
    /// The program that the graphs' units run.
    mark: PathBuf,
    graphs: Vec<Graph>,
    cases: Vec<Case>,
    differences: String,
}

impl Ground {
    fn read(context: &Context) -> Result<Self> {
        tools::need(tools::BENCH)?;
        let folder = root().join("xtask/guest/compare");
        let mark = context.scratch().path().join("mark");
        let mut compile = command("cc", &["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
        run(compile.arg(&mark).arg(folder.join("mark.c")))?;
        Ok(Self {
            mark,
            graphs: graphs::parse(&read(&folder.join("graphs.txt"))?)?,
            cases: keys::parse(&read(&folder.join("keys.txt"))?)?,
            differences: read(&root().join("docs/differences.md"))?,
            folder,
        })
    }

    /// Puts the units, and what asks for them, where both inits find them.
    fn lay(&self, tree: &Tree) -> Result<()> {
        let place = |name: &str| format!("{FILES}/compare/{name}");
        let probe = place("probe");
        for units in UNITS {
            for (name, unit) in self.graphs.iter().flat_map(|graph| &graph.units) {
                tree.write(&format!("{units}/{name}"), 0o644, unit.as_bytes())?;
            }
            for case in &self.cases {
                tree.write(&format!("{units}/{}", case.unit()), 0o644, case.text(&probe).as_bytes())?;
            }
        }
        for program in ["graphs", "probe"] {
            tree.copy(&self.folder.join(program), &place(program), &|_| false)?;
        }
        tree.copy(&self.mark, &place("mark"), &|_| false)?;
        tree.write(&place("script"), 0o644, graphs::script(&self.graphs).as_bytes())?;
        tree.write(&place("files"), 0o755, keys::files(&self.cases).as_bytes())?;
        tree.write(&place("transient"), 0o755, keys::transient(&self.cases, &probe).as_bytes())?;
        // What is compared is not signed; and basic.target is all that is to be up.
        tree.write("etc/agentd/agentd.toml", 0o644, b"[Manager]\nTrust = \"off\"\n")?;
        tree.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/basic.target")
    }

    fn in_containers(&self, context: &mut Context, theirs: &str, ours: &str) -> Result<(Outcomes, Outcomes)> {
        let theirs = {
            // One at a time: both have their cgroup by the name of this process.
            let mut container = context.container_of_systemd(|tree| self.lay(tree))?;
            container.run(UP)?;
            outcomes(&container.run(theirs)?)?
        };
        let ours = outcomes(&context.container_with(|tree| self.lay(tree))?.run(ours)?)?;
        Ok((theirs, ours))
    }

    fn in_machines(&self, context: &mut Context, theirs: &str, ours: &str) -> Result<(Outcomes, Outcomes)> {
        let pair = context.pair(|tree| self.lay(tree))?;
        let (theirs, ours) = pair.run(&format!("{UP}; {theirs}"), ours)?;
        Ok((outcomes(&theirs)?, outcomes(&ours)?))
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).during(|| format!("cannot read {}", path.display()))
}

/// Reads what a guest's program says: what came of each graph or setting, below a line with its name.
fn outcomes(answer: &Answer) -> Result<Outcomes> {
    let mut all = Outcomes::new();
    let mut name = String::new();
    for line in answer.text.lines() {
        match line.strip_prefix("== ") {
            Some(next) => name = next.to_owned(),
            None => all.entry(name.clone()).or_default().push(line.trim_end().to_owned()),
        }
    }
    expect(name == "done", || format!("the guest did not come to the end:\n{}", answer.text))?;
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
fn judge(graphs: &[Graph], theirs: &Outcomes, ours: &Outcomes, differences: &str) -> Result<()> {
    let mut wrong = Vec::new();
    for graph in graphs {
        let seen = |all: &Outcomes| all.get(&graph.name).map(|lines| graph.normal(lines)).unwrap_or_default();
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
