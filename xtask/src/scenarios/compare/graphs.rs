//! The graphs of xtask/guest/compare/graphs.txt: read, and written as unit files in systemd's syntax and as the script of
//! what is asked.

use super::FILES;
use crate::error::{Error, Result};

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) name: String,
    /// Why its outcomes differ, as docs/differences.md has it.
    pub(super) reason: Option<String>,
    /// Events of different units come in any order.
    parallel: bool,
    /// The names and texts of its unit files.
    pub(super) units: Vec<(String, String)>,
    /// What is asked: a verb and a unit.
    asked: Vec<String>,
}

/// Reads all of them.
pub(super) fn parse(text: &str) -> Result<Vec<Graph>> {
    let mut graphs: Vec<Graph> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            graphs.push(Graph { name: name.to_owned(), ..Graph::default() });
            continue;
        }
        let number = graphs.len();
        let Some(graph) = graphs.last_mut() else { return Err(Error::new("a line before the first graph")) };
        if let Some(asked) = line.strip_prefix("> ") {
            let Some((verb, unit)) = asked.split_once(' ') else { return Err(wrong(line)) };
            graph.asked.push(format!("{verb} {}", own(number, unit)));
        } else if let Some(reason) = line.strip_prefix("! ") {
            graph.reason = Some(reason.to_owned());
        } else if line == "~ parallel" {
            graph.parallel = true;
        } else {
            let (unit, rest) = line.split_once(':').ok_or_else(|| wrong(line))?;
            graph.units.push((own(number, unit), unit_file(number, unit, rest)));
        }
    }
    Ok(graphs)
}

fn wrong(line: &str) -> Error {
    Error::new(format!("graphs.txt: this line says nothing: {line}"))
}

/// A unit's name in front of which the graph's number stands.
fn own(number: usize, unit: &str) -> String {
    format!("g{number:02}-{unit}")
}

/// What the name of a unit in a setting ends with.
const KINDS: [&str; 6] = [".service", ".target", ".socket", ".path", ".timer", ".slice"];

/// `KEY=VALUE … | PROGRAM ; KEY=VALUE …` as a file.
fn unit_file(number: usize, name: &str, text: &str) -> String {
    let (unit, body) = text.split_once('|').map_or((text, None), |(unit, body)| (unit, Some(body)));
    let mut file = "[Unit]\n".to_owned();
    for setting in unit.split_ascii_whitespace() {
        let names = KINDS.iter().any(|ending| setting.ends_with(ending));
        let pair = setting.split_once('=').filter(|_| names);
        let setting = pair.map_or(setting.to_owned(), |(key, name)| format!("{key}={}", own(number, name)));
        file.push_str(&setting);
        file.push('\n');
    }
    let Some(body) = body else { return file };
    let (program, keys) = body.split_once(';').unwrap_or((body, ""));
    let section = match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("socket") => Some("[Socket]\n"),
        Some("path") => Some("[Path]\n"),
        Some("timer") => Some("[Timer]\n"),
        _ => None,
    };
    if let Some(section) = section {
        file.push_str(section);
        keys.split_ascii_whitespace().for_each(|key| file.extend([key, "\n"]));
        return file;
    }
    let program = program.trim();
    file.push_str("[Service]\n");
    file.push_str(match program.split(' ').next() {
        Some("once") => "Type=oneshot\n",
        Some("run" | "deaf" | "serve") => "Type=notify\nNotifyAccess=all\n",
        Some("fork" | "barren") => "Type=forking\nPIDFile=/run/compare/%n.pid\n",
        _ => "",
    });
    let mark = format!("/{FILES}/compare/mark %n");
    file.push_str(&format!("ExecStart={mark} {program}\n"));
    for key in keys.split_ascii_whitespace() {
        let key = key
            .strip_prefix("Slice=")
            .map_or(key.to_owned(), |slice| format!("Slice={}", own(number, slice)));
        file.push_str(&key.replace("@mark@", &format!("{mark} echo ")).replace('@', " "));
        file.push('\n');
    }
    file
}

/// What the guest's `graphs` reads.
pub(super) fn script(graphs: &[Graph]) -> String {
    let mut lines = Vec::new();
    for graph in graphs {
        lines.push(format!("== {}", graph.name));
        lines.extend(graph.units.iter().map(|(name, _)| format!("unit {name}")));
        lines.extend(graph.asked.iter().map(|asked| format!("do {asked}")));
        lines.push("end".to_owned());
    }
    lines.join("\n") + "\n"
}

impl Graph {
    /// The outcome as it is compared: where units run beside each other, with the events of each unit together.
    pub(super) fn normal(&self, lines: &[String]) -> Vec<String> {
        let mut normal: Vec<String> = Vec::new();
        let mut events: Vec<String> = Vec::new();
        for line in lines {
            if line.starts_with("event ") {
                events.push(line.clone());
                continue;
            }
            if self.parallel {
                events.sort_by_key(|event| event.split(' ').nth(1).map(str::to_owned));
            }
            normal.append(&mut events);
            normal.push(line.clone());
        }
        normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_graphs_and_more_are_written_as_files_and_as_a_script() {
        let text = include_str!("../../../guest/compare/graphs.txt");
        let graphs = parse(text).unwrap();
        assert!(graphs.len() >= 40, "{}", graphs.len());
        let first = &graphs[0];
        assert_eq!(
            first.units[0].1,
            "[Unit]\nRequires=g01-b.service\nAfter=g01-b.service\n[Service]\nType=notify\nNotifyAccess=all\n\
             ExecStart=/usr/lib/agentd-test/compare/mark %n run\n"
        );
        let path = graphs.iter().find(|graph| graph.name == "path").unwrap();
        assert!(path.units[0].1.contains("[Path]\nPathExists=/run/compare/%n.flag\n"), "{}", path.units[0].1);
        assert!(script(&graphs).starts_with(
            "== requires-after\nunit g01-a.service\nunit g01-b.service\ndo start g01-a.service\n"
        ));
        assert!(graphs.iter().all(|graph| !graph.asked.is_empty() && !graph.units.is_empty()));
    }

    #[test]
    fn events_of_units_beside_each_other_are_compared_unit_by_unit() {
        let lines = ["event b x", "event a x", "event b y", "state t.target SubState=a"].map(str::to_owned);
        let graph = Graph { parallel: true, ..Graph::default() };
        assert_eq!(
            graph.normal(&lines),
            ["event a x", "event b x", "event b y", "state t.target SubState=a"]
        );
        let graph = Graph::default();
        assert_eq!(graph.normal(&lines)[0], "event b x");
    }
}
