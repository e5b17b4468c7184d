//! `list-dependencies`: what units need, who needs them, and what comes before and after, as a tree.

use std::collections::BTreeMap;
use std::io::Write;

use agentd_protocol::unit::Dependencies;
use agentd_protocol::{ActiveState, UnitProperties};
use agentd_unit::{UnitName, UnitType};
use serde::Serialize;

use super::analyze::Picture;
use crate::args::Format;
use crate::args::analyze::ListDependencies;
use crate::client::Client;
use crate::context::{Context, properties};
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{Style, json, one_line};
use crate::verbs::query::is_unknown;

/// Which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// What a unit needs.
    Forward,
    /// Who needs it.
    Reverse,
    /// What it is ordered after.
    After,
    /// What is ordered after it.
    Before,
}

/// One unit as it is listed, and what it leads to.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    id: String,
    active_state: ActiveState,
    dependencies: Vec<String>,
}

/// `agentctl list-dependencies [UNIT…]`.
pub(crate) fn list(context: &Context, list: &ListDependencies, out: &mut impl Write) -> Outcome {
    let direction = match (list.reverse, list.before, list.after) {
        (true, ..) => Direction::Reverse,
        (_, true, _) => Direction::Before,
        (.., true) => Direction::After,
        _ => Direction::Forward,
    };
    let mut walk = Walk { client: context.connect()?, direction, all: list.all, known: BTreeMap::new() };
    let roots = match list.units.as_slice() {
        [] => UnitName::parse("default.target").into_iter().map(|name| name.to_string()).collect(),
        units => units.iter().map(UnitName::to_string).collect::<Vec<_>>(),
    };
    let (mut exit, mut found) = (Exit::Done, Vec::new());
    for root in roots {
        match walk.whole(&root)? {
            Some(root) => found.push(root),
            None => {
                eprintln!("Unit {} could not be found.", one_line(&root));
                exit = Exit::NoSuchUnit;
            }
        }
    }
    match context.format {
        Format::Json => json(&walk.known.values().collect::<Vec<_>>(), out)?,
        Format::Dot => walk.picture(out)?,
        Format::Text => {
            for (at, root) in found.iter().enumerate() {
                if at > 0 {
                    writeln!(out)?;
                }
                walk.tree(context.style, root, out)?;
            }
        }
    }
    Ok(exit)
}

struct Walk {
    client: Client,
    direction: Direction,
    all: bool,
    /// Every unit that was met, by the name that the manager gives it.
    known: BTreeMap<String, Node>,
}

impl Walk {
    /// Asks for a unit and all that is to be shown below it; `None`: there is no such unit.
    fn whole(&mut self, root: &str) -> Result<Option<String>, Failure> {
        let name = |text: &str| {
            UnitName::parse(text)
                .map_err(|error| Failure::Other { exit: Exit::Failed, message: error.to_string() })
        };
        let found = properties(&mut self.client, &name(root)?)?;
        if is_unknown(&found) && edges(&found, Direction::Reverse).is_empty() {
            return Ok(None);
        }
        let id = found.id.clone();
        let mut todo = self.learn(found, true);
        while let Some(next) = todo.pop() {
            if !self.known.contains_key(&next) {
                let found = properties(&mut self.client, &name(&next)?)?;
                todo.extend(self.learn(found, false));
            }
        }
        Ok(Some(id))
    }

    /// Takes a unit in; what is to be asked for next. Only targets are followed unless all are.
    fn learn(&mut self, found: UnitProperties, is_root: bool) -> Vec<String> {
        let follow = is_root || self.all || found.id.ends_with(".target");
        let dependencies = if follow { edges(&found, self.direction) } else { Vec::new() };
        let node = Node {
            id: found.id.clone(),
            active_state: found.active_state,
            dependencies: dependencies.clone(),
        };
        self.known.insert(found.id, node);
        dependencies
    }

    /// systemctl's tree: a dot for the state, then the branches. What was unfolded above is not unfolded again.
    fn tree(&self, style: Style, root: &str, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}", one_line(root))?;
        // What is left to print: the unit, the branches before it, and whether it is the last of its siblings.
        let mut shown = std::collections::BTreeSet::from([root]);
        let mut todo = self.below(root, "");
        while let Some((id, branches, last)) = todo.pop() {
            let Some(node) = self.known.get(id) else { continue };
            let dot = style.state(node.active_state, Style::dot(node.active_state));
            let arm = if last { "└─" } else { "├─" };
            writeln!(out, "{dot} {branches}{arm}{}", one_line(id))?;
            if shown.insert(id) {
                let stem = if last { "  " } else { "│ " };
                todo.extend(self.below(id, &format!("{branches}{stem}")));
            }
        }
        Ok(())
    }

    /// The children of a unit, the last one first.
    fn below(&self, id: &str, branches: &str) -> Vec<(&str, String, bool)> {
        let children = self.known.get(id).map(|node| node.dependencies.as_slice()).unwrap_or_default();
        let count = children.len();
        let child = |(at, id): (usize, &'_ String)| (at, id.clone());
        let places: Vec<(usize, String)> = children.iter().enumerate().map(child).collect();
        places
            .into_iter()
            .rev()
            .filter_map(|(at, id)| {
                let (id, _) = self.known.get_key_value(&id)?;
                Some((id.as_str(), branches.to_owned(), at + 1 == count))
            })
            .collect()
    }

    fn picture(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut picture = Picture::begin(out)?;
        let colour = match self.direction {
            Direction::Forward | Direction::Reverse => "black",
            Direction::After | Direction::Before => "green",
        };
        for node in self.known.values() {
            for other in &node.dependencies {
                picture.arrow(&node.id, other, colour)?;
            }
        }
        picture.end()
    }
}

/// The units on the other side of the edges of a direction, each once, by name, targets last as systemctl has them.
fn edges(unit: &UnitProperties, direction: Direction) -> Vec<String> {
    let Dependencies {
        requires,
        requisite,
        wants,
        binds_to,
        part_of,
        upholds,
        required_by,
        requisite_of,
        wanted_by,
        bound_by,
        consists_of,
        upheld_by,
        before,
        after,
        ..
    } = &unit.dependencies;
    let lists: Vec<&Vec<String>> = match direction {
        Direction::Forward => vec![requires, requisite, wants, consists_of, binds_to, upholds],
        Direction::Reverse => vec![required_by, requisite_of, wanted_by, part_of, bound_by, upheld_by],
        Direction::After => vec![after],
        Direction::Before => vec![before],
    };
    let mut names: Vec<String> = lists.into_iter().flatten().cloned().collect();
    let is_target =
        |name: &String| UnitName::parse(name).is_ok_and(|name| name.unit_type() == UnitType::Target);
    names.sort_by_key(|name| (is_target(name), name.clone()));
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_edges_once_and_targets_come_last() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let dependencies = Dependencies {
            requires: names(&["b.target", "z.service"]),
            wants: names(&["a.service", "z.service"]),
            consists_of: names(&["part.service"]),
            wanted_by: names(&["w.target"]),
            part_of: names(&["whole.service"]),
            after: names(&["early.service"]),
            before: names(&["late.service"]),
            ..Dependencies::default()
        };
        let unit = UnitProperties { dependencies, ..UnitProperties::default() };
        for (direction, expected) in [
            (Direction::Forward, &["a.service", "part.service", "z.service", "b.target"][..]),
            (Direction::Reverse, &["whole.service", "w.target"]),
            (Direction::After, &["early.service"]),
            (Direction::Before, &["late.service"]),
        ] {
            assert_eq!(edges(&unit, direction), expected, "{direction:?}");
        }
    }
}
