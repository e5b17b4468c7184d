//! Units that are read when somebody names them, and a runtime folder that somebody else empties.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::{Setup, text};

const TEMPLATE: &str = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nEnvironment = { NAME = \"%i\" }\n";

#[test]
fn an_instance_is_made_of_its_template_when_it_is_named() {
    let setup = Setup::new("instance");
    setup.unit("worker@.service", TEMPLATE);
    let mut manager = setup.start();
    assert_eq!(manager.property("worker@two", "LoadState"), "loaded", "reading makes it too");
    assert_eq!(manager.property("worker@two", "ActiveState"), "inactive");
    manager.ok(&["start", "worker@one"]);
    assert_eq!(manager.property("worker@one", "ActiveState"), "active");
    let pid = manager.main_pid("worker@one");
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(String::from_utf8_lossy(&environ).contains("NAME=one\0"), "the instance is not told");
    assert!(manager.ok(&["list"]).contains("worker@one.service"));

    // A reload makes it anew, also where no unit names it, and changes nothing for a running one.
    manager.ok(&["daemon-reload"]);
    assert_eq!(manager.property("worker@one", "LoadState"), "loaded");
    assert_eq!(manager.main_pid("worker@one"), pid);
    manager.ok(&["stop", "worker@one"]);
    assert_eq!(manager.property("worker@one", "ActiveState"), "inactive");
}

#[test]
fn a_unit_that_came_after_the_loading_starts_with_what_it_requires() {
    let setup = Setup::new("new-file");
    let units = setup.unit("first.service", TEMPLATE).parent().unwrap().to_owned();
    let mut manager = setup.start();
    fs::write(units.join("base.service.toml"), TEMPLATE).unwrap();
    let upper = format!("[Unit]\nRequires = [\"base.service\"]\nAfter = [\"base.service\"]\n{TEMPLATE}");
    fs::write(units.join("upper.service.toml"), upper).unwrap();
    // What is known already is not read again: a change of it waits for a reload.
    let first = manager.property("first", "Description");
    fs::write(units.join("first.service.toml"), format!("[Unit]\nDescription = \"new\"\n{TEMPLATE}"))
        .unwrap();
    manager.ok(&["start", "upper"]);
    assert_eq!(manager.property("base", "ActiveState"), "active");
    assert_eq!(manager.property("first", "Description"), first);
}

#[test]
fn a_name_without_a_file_is_not_found_and_a_bad_file_says_what_is_wrong() {
    let setup = Setup::new("no-file");
    setup.unit("bad@.service", "[Service]\nExecStrat = [\"/bin/true\"]\n");
    let mut manager = setup.start();
    let missing = manager.ctl(&["start", "nothing@1"]);
    assert_eq!(missing.status.code(), Some(5), "{}", text(&missing));
    assert!(text(&missing).contains("Unit nothing@1.service not found"), "{}", text(&missing));
    let template = manager.ctl(&["start", "bad@"]);
    assert!(!template.status.success(), "a template is nothing to start: {}", text(&template));
    let bad = manager.ctl(&["start", "bad@1"]);
    assert!(!bad.status.success() && text(&bad).contains("ExecStrat"), "{}", text(&bad));
    manager.ok(&["list"]);
}

#[test]
fn what_is_taken_out_of_the_runtime_folder_is_made_anew() {
    let setup = Setup::new("wiped");
    let ready = setup.file(
        "ready.py",
        "import os, socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])\ntime.sleep(1000)\n",
    );
    setup.unit(
        "ready.service",
        &format!(
            "[Service]\nType = \"notify\"\nNotifyAccess = \"all\"\nTimeoutStartSec = \"20s\"\nExecStart = [\"/usr/bin/env\", \"python3\", \"{}\"]\n",
            ready.display()
        ),
    );
    let mut manager = setup.start();
    let run = manager.path("run");
    for name in ["control", "notify", "lock"] {
        let path = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
        let found = path.filter(|path| path.file_name().unwrap().to_string_lossy().contains(name)).count();
        assert!(found > 0, "no {name} in the runtime folder: the test looks at the wrong place");
    }
    for entry in fs::read_dir(&run).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            fs::remove_file(path).unwrap();
        }
    }
    manager.until("the control socket does not come back", |m| m.ctl(&["list"]).status.success());
    manager.ok(&["start", "ready"]);
    assert_eq!(manager.property("ready", "ActiveState"), "active", "the notification came through");
    // In one step: what is removed one by one comes back too soon for that.
    fs::rename(&run, manager.path("gone")).unwrap();
    manager.until("the folder does not come back", |m| m.ctl(&["list"]).status.success());
    manager.ok(&["restart", "ready"]);
    manager.wait_for_log("was made anew", "the removal is not told");
}
