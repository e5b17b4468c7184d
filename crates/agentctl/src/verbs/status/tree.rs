//! The processes of a unit as the tree of its cgroups.

use std::io::{self, Write};

use agentd_protocol::unit::{GetProcessesReply, ProcessGroup, ProcessInfo};

use crate::print::one_line;

/// Writes the tree below `CGroup:`, each line behind `indent`.
pub(super) fn write(reply: &GetProcessesReply, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let processes = reply.groups.iter().flat_map(|group| &group.processes);
    let widest = processes.map(|process| process.pid).max().unwrap_or_default();
    let tree = Tree::new(&reply.groups, widest.to_string().len());
    for root in &tree.roots {
        tree.branch(root, indent, out)?;
    }
    if reply.omitted > 0 {
        writeln!(out, "{indent}({} more processes)", reply.omitted)?;
    }
    Ok(())
}

/// The cgroups of a unit, each below the nearest one that is listed.
struct Tree<'a> {
    groups: &'a [ProcessGroup],
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    width: usize,
}

impl<'a> Tree<'a> {
    /// Sorted by the parts of their paths, the groups above one are those still open when it comes.
    fn new(groups: &'a [ProcessGroup], width: usize) -> Self {
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by(|a, b| groups[*a].path.split('/').cmp(groups[*b].path.split('/')));
        let mut tree = Self { groups, children: vec![Vec::new(); groups.len()], roots: Vec::new(), width };
        let mut open: Vec<usize> = Vec::new();
        for at in order {
            while open.pop_if(|outer| !is_inside(&groups[*outer].path, &groups[at].path)).is_some() {}
            match open.last() {
                Some(parent) => tree.children[*parent].push(at),
                None => tree.roots.push(at),
            }
            open.push(at);
        }
        tree
    }

    /// One cgroup: its processes, then the cgroups right below it, each with all that is below that.
    fn branch(&self, at: &usize, indent: &str, out: &mut impl Write) -> io::Result<()> {
        let (group, children) = (&self.groups[*at], &self.children[*at]);
        let last = group.processes.len() + children.len();
        for (place, process) in group.processes.iter().enumerate() {
            let edge = if place + 1 == last { "└─" } else { "├─" };
            writeln!(out, "{indent}{edge}{:>width$} {}", process.pid, command(process), width = self.width)?;
        }
        for (place, child) in children.iter().enumerate() {
            let is_last = group.processes.len() + place + 1 == last;
            let (edge, rest) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
            let path = &self.groups[*child].path;
            let name = path.strip_prefix(group.path.as_str()).unwrap_or(path);
            writeln!(out, "{indent}{edge}{}", one_line(name.trim_start_matches('/')))?;
            self.branch(child, &format!("{indent}{rest}"), out)?;
        }
        Ok(())
    }
}

fn is_inside(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

fn command(process: &ProcessInfo) -> String {
    let dead = if process.zombie { " (zombie)" } else { "" };
    format!("{}{dead}", one_line(&process.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, pids: &[u32]) -> ProcessGroup {
        let process = |pid: &u32| ProcessInfo {
            pid: *pid,
            comm: "p".into(),
            command: format!("/bin/p {pid}"),
            zombie: *pid == 13,
        };
        ProcessGroup { path: path.into(), processes: pids.iter().map(process).collect() }
    }

    fn drawn(groups: Vec<ProcessGroup>) -> String {
        let mut out = Vec::new();
        write(&GetProcessesReply { groups, ..GetProcessesReply::default() }, "", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn processes_stand_before_the_groups_below_and_pids_are_aligned() {
        let groups = vec![
            group("/a.service", &[9, 1000]),
            group("/a.service/x", &[13]),
            group("/a.service/x/deep", &[14]),
            group("/a.service/y", &[15]),
        ];
        let expected = "\
├─   9 /bin/p 9
├─1000 /bin/p 1000
├─x
│ ├─  13 /bin/p 13 (zombie)
│ └─deep
│   └─  14 /bin/p 14
└─y
  └─  15 /bin/p 15
";
        assert_eq!(drawn(groups), expected);
    }

    #[test]
    fn one_process_is_one_line_and_none_is_no_line() {
        assert_eq!(drawn(vec![group("/a.service", &[7])]), "└─7 /bin/p 7\n");
        assert_eq!(drawn(vec![group("/a.service", &[])]), "");
        assert_eq!(drawn(Vec::new()), "");
    }

    #[test]
    fn ten_thousand_groups_are_drawn_at_once() {
        let groups: Vec<_> = (0..10_000).map(|n| group(&format!("/a/{n}"), &[n])).collect();
        assert_eq!(drawn([vec![group("/a", &[])], groups].concat()).lines().count(), 20_000);
    }

    #[test]
    fn a_group_whose_parent_is_not_listed_hangs_below_the_nearest_one() {
        let groups = vec![group("/a", &[]), group("/a/b/c", &[7]), group("/a/b-d", &[8])];
        assert_eq!(drawn(groups), "├─b/c\n│ └─7 /bin/p 7\n└─b-d\n  └─8 /bin/p 8\n");
    }
}
