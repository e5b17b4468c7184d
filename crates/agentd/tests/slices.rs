//! Slices: active with what lies in them, stopped with all of it, and there without a file.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use common::{Setup, text};

const SLEEP: &str = "ExecStart = [\"/bin/sleep\", \"1000\"]\n";

fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    setup.unit("plain.service", &format!("[Unit]\nWants = [\"many@1.service\"]\n[Service]\n{SLEEP}"));
    setup.unit("deep.service", &format!("[Service]\n{SLEEP}Slice = \"x-y.slice\"\n"));
    setup.unit("many@.service", &format!("[Service]\n{SLEEP}"));
    setup
}

/// Where a cgroup lies that is beside that of a unit.
fn cgroup_folder(group: &str, other: &str) -> std::path::PathBuf {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let tree = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
    let above = group.trim_end_matches("/x.slice/x-y.slice/deep.service").trim_start_matches('/');
    std::path::Path::new(tree.split(' ').nth(1).unwrap()).join(above).join(other)
}

#[test]
fn a_slice_comes_with_its_units_and_takes_them_along() {
    let mut manager = setup("slices").start();
    let root = manager.ok(&["show", "-p", "ActiveState", "--", "-.slice"]);
    assert_eq!(root.trim_end(), "ActiveState=active");
    for (unit, state) in [("system.slice", "active"), ("x-y.slice", "inactive")] {
        assert_eq!(manager.property(unit, "ActiveState"), state, "{unit}");
        assert_eq!(manager.property(unit, "LoadState"), "loaded", "{unit}");
    }
    manager.ok(&["start", "plain", "deep"]);
    for (unit, slice) in [
        ("plain.service", "system.slice"),
        ("deep.service", "x-y.slice"),
        ("many@1.service", "system-many.slice"),
        ("x-y.slice", "x.slice"),
        ("system-many.slice", "system.slice"),
        ("x.slice", "-.slice"),
    ] {
        assert_eq!(manager.property(unit, "Slice"), slice, "{unit}");
        assert_eq!(manager.property(unit, "ActiveState"), "active", "{unit}");
        let requires = manager.property(unit, "Requires");
        assert!(requires.split(' ').any(|name| name == slice), "{unit}: {requires}");
    }
    let group = manager.property("deep", "ControlGroup");
    if !group.is_empty() {
        assert!(group.ends_with("/x.slice/x-y.slice/deep.service"), "{group}");
        assert_eq!(manager.property("x-y.slice", "ControlGroup"), group.trim_end_matches("/deep.service"));
    }
    let list = manager.ok(&["list", "--type", "slice"]);
    for line in ["-.slice", "system-many.slice", "system.slice", "x-y.slice", "x.slice"] {
        assert!(list.contains(line), "{line}: {list}");
    }
    assert!(manager.ok(&["status", "x-y.slice"]).contains("Slice /x/y"), "its description");
    assert!(manager.ok(&["list-dependencies", "--reverse", "x-y.slice"]).contains("deep.service"));

    manager.ok(&["stop", "x.slice"]);
    for (unit, state) in
        [("deep", "inactive"), ("x-y.slice", "inactive"), ("x.slice", "inactive"), ("plain", "active")]
    {
        assert_eq!(manager.property(unit, "ActiveState"), state, "{unit}");
    }
    if !group.is_empty() {
        let folder = |slice: &str| cgroup_folder(&group, slice);
        for slice in ["x.slice", "x.slice/x-y.slice"] {
            manager.until(&format!("the cgroup of {slice} stays"), |_| !folder(slice).exists());
        }
        assert!(folder("system.slice").exists());
        manager.ok(&["start", "deep"]);
        assert!(folder("x.slice/x-y.slice/deep.service").exists(), "and comes again");
        manager.ok(&["stop", "deep"]);
        assert!(folder("x.slice/x-y.slice").exists(), "nobody has stopped the slice");
    }
    manager.ok(&["start", "new-one.slice"]);
    assert_eq!(manager.property("new.slice", "ActiveState"), "active", "nobody has named it before");
    let refused = manager.ctl(&["stop", "system.slice"]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    assert_eq!(manager.property("plain", "ActiveState"), "active");
}

#[test]
fn slices_are_there_without_cgroups_and_over_a_reload() {
    let mut manager = setup("slices-degraded").without_cgroups().start();
    manager.ok(&["start", "deep"]);
    manager.ok(&["daemon-reload"]);
    assert_eq!(manager.property("x-y.slice", "ActiveState"), "active");
    manager.ok(&["stop", "x-y.slice"]);
    assert_eq!(manager.property("deep", "ActiveState"), "inactive");
}

#[test]
fn units_of_a_user_lie_in_the_app_slice() {
    let setup = Setup::new("slices-user").tiers();
    setup.file("config/agentd/units/a.service.toml", &format!("[Service]\n{SLEEP}"));
    setup.file("config/agentd/units/b@.service.toml", &format!("[Service]\n{SLEEP}"));
    let mut manager = setup.start();
    manager.ok(&["start", "a", "b@1"]);
    assert_eq!(manager.property("a", "Slice"), "app.slice");
    assert_eq!(manager.property("b@1", "Slice"), "app-b.slice");
    manager.ok(&["stop", "app.slice"]);
    for unit in ["a", "b@1", "app-b.slice", "app.slice"] {
        assert_eq!(manager.property(unit, "ActiveState"), "inactive", "{unit}");
    }
}

#[test]
fn a_slice_is_frozen_with_all_that_runs_in_it() {
    let mut manager = setup("slices-frozen").start();
    manager.ok(&["start", "plain", "deep"]);
    let refused = manager.ctl(&["freeze", "--", "-.slice"]);
    assert!(text(&refused).contains("it holds the manager"), "{}", text(&refused));
    manager.ok(&["freeze", "x.slice"]);
    let states = |manager: &common::Manager| {
        ["x.slice", "x-y.slice", "deep", "plain", "system.slice"]
            .map(|unit| manager.property(unit, "FreezerState"))
    };
    assert_eq!(states(&manager), ["frozen", "frozen", "frozen", "running", "running"]);
    let status = manager.ctl(&["status", "x.slice"]);
    assert!(text(&status).contains("(frozen)"), "{}", text(&status));
    let group = manager.property("deep", "ControlGroup");
    let events = cgroup_folder(&group, "x.slice/x-y.slice/deep.service/cgroup.events");
    manager
        .until("it does not stand still", |_| std::fs::read_to_string(&events).unwrap().contains("frozen 1"));
    manager.ok(&["thaw", "x.slice"]);
    assert_eq!(states(&manager), ["running"; 5]);
    manager.until("it stands still", |_| std::fs::read_to_string(&events).unwrap().contains("frozen 0"));
}
