//! list-dependencies, and whether what looks at definitions agrees with what starts units.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::process::Command;

use common::{Setup, agentctl, text};

const SLEEP: &str = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n";

fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    let unit = |name: &str, head: &str, tail: &str| setup.unit(name, &format!("{head}{SLEEP}{tail}"));
    unit(
        "web.service",
        "[Unit]\nRequires = [\"db.service\"]\nWants = [\"cache.service\"]\n",
        "[Install]\nWantedBy = [\"multi-user.target\"]\n",
    );
    unit("db.service", "[Unit]\nDefaultDependencies = false\n", "");
    unit("cache.service", "[Unit]\nDefaultDependencies = false\nAfter = [\"db.service\"]\n", "");
    unit("part.service", "[Unit]\nDefaultDependencies = false\nPartOf = [\"web.service\"]\n", "");
    setup
}

#[test]
fn the_tree_unfolds_targets_or_all_units_in_systemctls_form() {
    let mut manager = setup("tree").start();
    manager.until_property("web", "ActiveState", "active");
    let tree = manager.ok(&["list-dependencies", "web"]);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        lines(&tree),
        [
            "web.service",
            "● ├─cache.service",
            "● ├─db.service",
            "○ ├─part.service",
            "● ├─system.slice",
            "● └─sysinit.target"
        ]
    );
    let tree = manager.ok(&["list-dependencies"]);
    assert!(tree.starts_with("default.target\n● └─multi-user.target\n●   ├─web.service\n"), "{tree}");
    assert!(!tree.contains("db.service"), "services are not unfolded: {tree}");
    let all = manager.ok(&["list-dependencies", "--all"]);
    assert!(all.contains("●   │ ├─db.service"), "{all}");

    let reverse = manager.ok(&["list-dependencies", "--reverse", "db"]);
    assert_eq!(lines(&reverse), ["db.service", "● └─web.service"]);
    let reverse = manager.ok(&["list-dependencies", "--reverse", "web"]);
    assert_eq!(lines(&reverse)[1], "● └─multi-user.target");
    let after = manager.ok(&["list-dependencies", "--after", "cache"]);
    assert_eq!(lines(&after), ["cache.service", "● ├─db.service", "● └─system.slice"]);
    let before = manager.ok(&["list-dependencies", "--before", "db"]);
    assert_eq!(lines(&before), ["db.service", "● ├─cache.service", "● └─web.service"]);

    let dot = manager.ok(&["list-dependencies", "web", "-o", "dot"]);
    assert!(dot.contains("\t\"web.service\" -> \"db.service\" [color=\"black\"];\n"), "{dot}");
    let json = manager.ok(&["list-dependencies", "--after", "cache", "-o", "json"]);
    assert!(
        json.contains("\"Dependencies\": [\n      \"db.service\",\n      \"system.slice\"\n    ]"),
        "{json}"
    );
    assert_eq!(manager.ctl(&["list-dependencies", "nothing"]).status.code(), Some(4));
}

#[test]
fn what_units_are_to_each_other_shows_from_both_ends_with_the_defaults() {
    let mut manager = setup("both-ends").start();
    for (unit, name, value) in [
        ("web", "Requires", "db.service sysinit.target system.slice"),
        ("web", "WantedBy", "multi-user.target"),
        ("web", "ConsistsOf", "part.service"),
        ("web", "After", "basic.target cache.service db.service sysinit.target system.slice"),
        ("db", "RequiredBy", "web.service"),
        ("db", "Before", "cache.service web.service"),
    ] {
        assert_eq!(manager.property(unit, name), value, "{unit} {name}");
    }
    manager.ok(&["status", "web"]);
}

#[test]
fn the_check_of_files_finds_the_cycles_that_the_manager_refuses() {
    let setup = Setup::new("cycles");
    for (name, other) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "e")] {
        setup.unit(&format!("{name}.service"), &format!("[Unit]\nRequires = [\"{other}.service\"]\n{SLEEP}"));
    }
    setup.unit("e.service", SLEEP);
    setup.unit("m.service", &format!("[Unit]\nWants = [\"n.service\"]\n{SLEEP}"));
    setup.unit("n.service", &format!("[Unit]\nRequires = [\"m.service\"]\n{SLEEP}"));
    let units = setup.path("units");
    let manager = setup.start();
    let mut check = Command::new(agentctl());
    check.args(["analyze", "verify", "--all"]);
    check.env("AGENTD_UNIT_PATH", units).env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
    let found = text(&check.output().unwrap());
    let path = "a.service -> b.service -> c.service -> a.service";
    assert!(found.contains(&format!("error: a.service: Ordering cycle {path}: none of")), "{found}");
    let refused = text(&manager.ctl(&["start", "a"]));
    assert!(refused.contains(path), "{refused}");
    for (unit, starts) in [("b", false), ("c", false), ("d", true), ("m", true), ("n", true)] {
        let name = format!("{unit}.service");
        assert_eq!(manager.ctl(&["start", unit]).status.success(), starts, "{unit}");
        let refused = found.lines().any(|line| line.starts_with("error:") && line.contains(&name));
        assert_eq!(refused, !starts, "{unit}: {found}");
    }
    let soft = "m.service will not wait for n.service when they start together";
    assert!(found.contains(soft), "{found}");
}

#[test]
fn an_instance_that_nobody_names_shows_its_edges_as_every_unit_does() {
    let setup = Setup::new("edges-of-instances");
    setup.unit(
        "many@.service",
        "[Unit]\nWants = [\"other@%i.service\"]\nAfter = [\"other@%i.service\"]\n[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n",
    );
    setup.unit("other@.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "many@x"]);
    for (unit, property, other) in [
        ("many@x", "Requires", "system-many.slice"),
        ("many@x", "Requires", "sysinit.target"),
        ("many@x", "After", "other@x.service"),
        ("many@x", "Conflicts", "shutdown.target"),
        ("other@x", "WantedBy", "many@x.service"),
        ("system-many.slice", "RequiredBy", "many@x.service"),
    ] {
        let shown = manager.property(unit, property);
        assert!(shown.split(' ').any(|name| name == other), "{unit}: {property}={shown}");
    }
    let tree = manager.ok(&["list-dependencies", "many@x"]);
    assert!(tree.contains("other@x.service") && tree.contains("sysinit.target"), "{tree}");
    manager.ok(&["start", "many@y"]);
    let shown = manager.property("system-many.slice", "RequiredBy");
    assert!(shown.contains("many@x.service") && shown.contains("many@y.service"), "{shown}");
}
