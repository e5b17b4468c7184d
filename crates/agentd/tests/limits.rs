//! What becomes of limits where the kernel does not hold them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use common::cases::is_root;
use common::{Setup, text};

#[test]
fn a_limit_that_is_not_enforced_is_told_and_a_unit_that_requires_it_does_not_start() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("no-limits").without_cgroups();
    let limits = "MemoryMax = \"64M\"\nTasksMax = 20\nIOReadBandwidthMax = \"/ 1M\"";
    let service = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n";
    setup.unit("loose.service", &format!("{service}{limits}\n"));
    setup.unit("strict.service", &format!("{service}{limits}\n[Agent]\nRequireLimits = true\n"));
    setup.unit("free.service", &format!("{service}[Agent]\nRequireLimits = true\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "loose", "free"]);
    let status = manager.ok(&["status", "loose"]);
    for (key, controller) in
        [("MemoryMax", "memory"), ("TasksMax", "pids"), ("What is said of single disks", "io")]
    {
        let warning = format!(
            "Warning: {key} is not enforced: units have no cgroups with the controller {controller} here"
        );
        assert!(status.contains(&warning), "{warning}\n{status}");
    }
    assert!(!manager.ok(&["status", "free"]).contains("not enforced"));
    manager.wait_for_log("limits are not enforced here: no controller", "it is not told");
    let refused = manager.ctl(&["start", "strict"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("RequireLimits: limits cannot be enforced here"), "{}", text(&refused));
    assert_eq!(manager.property("strict", "Result"), "resources");
}
