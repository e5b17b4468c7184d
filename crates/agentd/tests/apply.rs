//! What changed on disk: seen, shown, and brought into force, with everything else left alone.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Manager, Setup, text, write};

const INSTALL: &str = "[Install]\nWantedBy = [\"multi-user.target\"]\n";

fn sleep(seconds: u32) -> String {
    format!("[Service]\nExecStart = [\"/bin/sleep\", \"{seconds}\"]\n{INSTALL}")
}

fn unit(manager: &Manager, name: &str) -> PathBuf {
    manager.path(&format!("config/agentd/units/{name}.toml"))
}

/// A user's manager with these units, all of them up.
fn start(name: &str, units: &[&str]) -> Manager {
    let setup = Setup::new(name).tiers();
    for unit in units {
        setup.file(&format!("config/agentd/units/{unit}.service.toml"), &sleep(1000));
    }
    let mut manager = setup.start();
    for unit in units {
        manager.until_property(unit, "ActiveState", "active");
    }
    manager
}

fn life(manager: &Manager, unit: &str) -> (u32, String) {
    (manager.main_pid(unit), manager.property(unit, "InvocationID"))
}

#[test]
fn exactly_what_changed_is_started_restarted_or_stopped() {
    let mut manager = start("apply", &["same", "changed", "gone", "broken", "masked", "retired"]);
    let lives: Vec<_> = ["same", "broken", "changed"].map(|unit| life(&manager, unit)).into();
    assert_eq!(manager.ok(&["apply"]), "Nothing has changed.\n");

    write(&unit(&manager, "changed.service"), &sleep(2000));
    write(&unit(&manager, "new.service"), &sleep(1000));
    write(&unit(&manager, "idle.service"), "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    write(&unit(&manager, "broken.service"), "[Service]\nExecStrat = [\"/bin/true\"]\n");
    write(&unit(&manager, "retired.service"), &format!("{}Enabled = false\n", sleep(1000)));
    fs::remove_file(unit(&manager, "gone.service")).unwrap();
    fs::create_dir_all(manager.path("config/agentd/control")).unwrap();
    std::os::unix::fs::symlink("/dev/null", manager.path("config/agentd/control/masked.service")).unwrap();

    let plan = [
        ("stop", "gone.service", "its file is gone"),
        ("stop", "masked.service", "it is masked"),
        ("restart", "changed.service", "its definition changed"),
        ("restart", "retired.service", "its definition changed"),
        ("start", "new.service", "it is new and enabled"),
        ("keep", "broken.service", "its files cannot be used"),
    ];
    let dry = manager.ctl(&["apply", "--dry-run"]);
    let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), plan.len(), "{shown}");
    for (line, (action, unit, reason)) in lines.iter().zip(plan) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words[..2] == [action, unit] && line.contains(reason), "{shown}");
    }
    assert_eq!(dry.status.code(), Some(1), "what cannot be used is a failure");
    assert_eq!(life(&manager, "changed"), lives[2], "a dry run does nothing");
    assert_eq!(manager.ctl(&["is-active", "new"]).status.code(), Some(3));

    let applied = manager.ctl(&["apply"]);
    assert_eq!(String::from_utf8_lossy(&applied.stdout), shown, "the plan is what was shown");
    assert!(text(&applied).contains("did you mean ExecStart?"), "{}", text(&applied));
    for (unit, state) in [
        ("same", "active"),
        ("changed", "active"),
        ("gone", "inactive"),
        ("broken", "active"),
        ("masked", "inactive"),
        ("new", "active"),
        ("idle", "inactive"),
    ] {
        assert_eq!(manager.property(unit, "ActiveState"), state, "{unit}");
    }
    assert_eq!(life(&manager, "same"), lives[0], "what did not change is the same process");
    assert_eq!(life(&manager, "broken"), lives[1], "what cannot be used lives on as it was");
    assert_ne!(life(&manager, "changed").0, lives[2].0);
    assert!(manager.property("changed", "ExecStart").contains(" argv[]=/bin/sleep 2000 ;"));
    write(&unit(&manager, "broken.service"), &sleep(1000));
    assert_eq!(manager.ok(&["apply"]), "Nothing has changed.\n", "as it was before");
}

#[test]
fn what_is_disabled_is_stopped_and_what_is_enabled_is_started() {
    let mut manager = start("apply-marks", &["web"]);
    write(&unit(&manager, "later.service"), &format!("{}Enabled = false\n", sleep(1000)));
    assert_eq!(manager.ok(&["apply"]), "Nothing has changed.\n", "it is new and not enabled");
    // Markers as enable and disable write them, but without the reload that they do.
    write(&manager.path("config/agentd/control/later.service.enabled"), "");
    write(&manager.path("config/agentd/control/web.service.disabled"), "");
    let json = manager.ok(&["apply", "-o", "json"]);
    assert!(json.contains("it is disabled") && json.contains("it is enabled"), "{json}");
    assert_eq!(manager.property("web", "ActiveState"), "inactive");
    assert_eq!(manager.property("later", "ActiveState"), "active");
}

#[test]
fn a_change_on_disk_shows_until_it_is_in_force() {
    let mut manager = start("marks", &["web"]);
    let marks =
        |manager: &Manager| ["NeedDaemonReload", "NeedRestart"].map(|name| manager.property("web", name));
    assert_eq!(marks(&manager), ["no", "no"]);
    manager.ok(&["disable", "web"]);
    assert_eq!(marks(&manager), ["no", "no"], "whether it boots is no other definition");
    manager.ok(&["enable", "web"]);

    let drop_in = manager.path("config/agentd/units/web.service.d/10-nice.toml");
    write(&drop_in, "[Service]\nMemoryMax = \"64M\"\n");
    assert_eq!(marks(&manager), ["yes", "no"]);
    assert!(manager.ok(&["status", "web"]).contains("'agentctl daemon-reload' loads them"));
    assert!(manager.ok(&["cat", "web"]).contains("MemoryMax"), "cat shows what is on disk");
    let diff = manager.ctl(&["diff", "web"]);
    assert_eq!(diff.status.code(), Some(1));
    let shown = text(&diff);
    assert!(shown.contains("--- /dev/null\n+++ ") && shown.contains("+MemoryMax = \"64M\"\n"), "{shown}");

    let pid = manager.main_pid("web");
    manager.ok(&["daemon-reload"]);
    assert_eq!(marks(&manager), ["no", "yes"]);
    assert!(manager.ok(&["status", "web"]).contains("changed on disk, restart to apply"));
    assert_eq!(manager.ctl(&["diff", "web"]).status.code(), Some(1), "it lives by the old definition");
    assert_eq!(manager.main_pid("web"), pid);
    manager.ok(&["restart", "web"]);
    assert_eq!(marks(&manager), ["no", "no"]);
    assert_eq!(manager.ok(&["diff", "web"]), "");

    fs::write(unit(&manager, "web.service"), sleep(2000)).unwrap();
    let shown = text(&manager.ctl(&["diff", "web", "-o", "json"]));
    assert!(shown.contains("\"Running\": ") && shown.contains("2000"), "{shown}");
    assert_eq!(marks(&manager), ["yes", "no"]);
    assert_eq!(manager.ctl(&["diff", "nothing"]).status.code(), Some(4));
}

#[test]
fn isolate_stops_what_its_target_does_not_need_and_nothing_may_be_isolated_that_is_not_made_for_it() {
    let mut manager = start("isolate", &["web", "db"]);
    let target = "[Unit]\nAllowIsolate = true\nRequires = [\"db.service\"]\n";
    write(&unit(&manager, "small.target"), target);
    write(&unit(&manager, "plain.target"), "[Unit]\nRequires = [\"db.service\"]\n");
    manager.ok(&["daemon-reload"]);
    let refused = manager.ctl(&["isolate", "plain"]);
    assert!(
        refused.status.code() == Some(4) && text(&refused).contains("AllowIsolate"),
        "{}",
        text(&refused)
    );
    let refused = manager.ctl(&["start", "--job-mode=isolate", "web"]);
    assert_eq!(refused.status.code(), Some(4));
    assert_eq!(manager.property("web", "ActiveState"), "active");

    let pid = manager.main_pid("db");
    assert_eq!(manager.ok(&["is-system-running"]), "running\n");
    manager.ok(&["isolate", "small"]);
    manager.until_property("web", "ActiveState", "inactive");
    assert_eq!(manager.main_pid("db"), pid, "what it needs goes on");
    manager.ok(&["default"]);
    assert_eq!(manager.property("web", "ActiveState"), "active");
    assert_eq!(manager.ctl(&["rescue"]).status.code(), Some(5), "this manager has no rescue.target");
}
