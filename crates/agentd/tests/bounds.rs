//! At the bounds: an answer of very many lines, and a manager that has no descriptors left.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use common::{Setup, text};

#[test]
fn a_log_of_very_many_lines_is_answered_whole() {
    let setup = Setup::new("lines");
    setup.unit("count.service", "[Service]\nType = \"oneshot\"\nExecStart = [\"/usr/bin/seq\", \"30000\"]\n");
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "count"]);
    let logs = manager.ok(&["logs", "count", "-n", "40000"]);
    let numbers: Vec<u32> =
        logs.lines().filter_map(|line| line.rsplit_once(" count: ")?.1.parse().ok()).collect();
    assert_eq!((numbers.len(), numbers.last().copied()), (30000, Some(30000)));
}

#[test]
fn b122_a_manager_without_descriptors_refuses_starts_with_the_reason_and_still_answers() {
    let setup = Setup::new("descriptors").wrapper(&["prlimit", "--nofile=80:80"]);
    setup.unit("idler@.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    let names: Vec<String> = (0..60).map(|number| format!("idler@{number}")).collect();
    let mut start = vec!["start"];
    start.extend(names.iter().map(String::as_str));
    let said = text(&manager.ctl(&start));
    assert!(said.contains("of agentd's 80 descriptors are in use"), "{said}");
    let running =
        manager.ok(&["list", "--state", "running"]).lines().filter(|line| line.contains("idler@")).count();
    assert!((1..60).contains(&running), "{running} run\n{said}");
    let mut stop = vec!["stop"];
    stop.extend(names.iter().map(String::as_str));
    manager.ok(&stop);
    manager.ok(&["start", "idler@59"]);
    assert_eq!(manager.property("idler@59", "SubState"), "running");
}
