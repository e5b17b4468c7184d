//! enable, disable, mask and unmask: what they write, what they mean for the boot, and what they may never do.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::Command;

use common::{Manager, Setup, agentctl, text};

const SLEEP: &str = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n";
const INSTALL: &str = "[Install]\nWantedBy = [\"multi-user.target\"]\n";

/// A user's manager with units in `config/agentd/units`, where control folders stand above them.
fn setup(name: &str) -> Setup {
    let setup = Setup::new(name).tiers();
    unit(&setup, "web.service", &format!("{SLEEP}{INSTALL}"));
    unit(&setup, "named.service", &format!("{SLEEP}{INSTALL}Alias = [\"given.service\"]\n"));
    unit(&setup, "quiet.service", &format!("{SLEEP}{INSTALL}Enabled = false\n"));
    unit(&setup, "plain.service", SLEEP);
    unit(&setup, "worker@.service", &format!("{SLEEP}{INSTALL}"));
    unit(&setup, "backup.service", &format!("{SLEEP}[Timer]\nOnCalendar = \"yearly\"\n{INSTALL}"));
    unit(&setup, "broken.service", "[Service]\nExecStrat = [\"/bin/true\"]\n");
    setup
}

fn unit(setup: &Setup, name: &str, text: &str) {
    setup.file(&format!("config/agentd/units/{name}.toml"), text);
}

/// Exit code and what was printed on standard output.
fn run(manager: &Manager, line: &str) -> (i32, String) {
    let output = manager.ctl(&line.split_whitespace().collect::<Vec<_>>());
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn every_kind_of_file_has_systemctls_word_and_exit_code() {
    let setup = setup("states");
    std::os::unix::fs::symlink("web.service.toml", setup.path("config/agentd/units/www.service.toml"))
        .unwrap();
    std::os::unix::fs::symlink("/dev/null", setup.path("config/agentd/units/gone.service")).unwrap();
    let manager = setup.start();
    for (unit, code, word) in [
        ("web", 0, "enabled"),
        ("quiet", 1, "disabled"),
        ("plain", 0, "static"),
        ("worker@.service", 1, "disabled"),
        ("worker@1", 1, "disabled"),
        ("backup.timer", 0, "enabled"),
        ("backup.service", 0, "indirect"),
        ("broken", 1, "bad"),
        ("www", 0, "alias"),
        ("given", 0, "alias"),
        ("gone", 1, "masked"),
        ("sysinit.target", 0, "generated"),
        ("nothing", 4, "not-found"),
        ("quiet web", 0, "disabled\nenabled"),
    ] {
        assert_eq!(run(&manager, &format!("is-enabled {unit}")), (code, word.to_owned()), "{unit}");
    }
    let (_, listed) = run(&manager, "list-unit-files");
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        ["UNIT", "FILE", "STATE"].as_slice(),
        &["web.service", "enabled"],
        &["www.service", "alias"],
        &["given.service", "alias"],
        &["worker@.service", "disabled"],
        &["broken.service", "bad"],
        &["backup.timer", "enabled"],
    ] {
        assert!(words.iter().any(|line| line == row), "{row:?}: {listed}");
    }
    assert!(!listed.contains("sysinit.target"), "what has no file is not listed: {listed}");
    let (code, json) = run(&manager, "list-unit-files --state=masked,bad --type service -o json");
    let files: Vec<String> = json.lines().filter(|line| line.contains("\"Id\"")).map(str::to_owned).collect();
    assert!(code == 0 && files.len() == 2 && json.contains("/units/gone.service"), "{json}");
    assert_eq!(run(&manager, "list-unit-files --state=enbled").0, 2);
}

#[test]
fn disable_and_enable_decide_what_boots_and_last() {
    let mut manager = setup("boots").start();
    manager.until_property("web", "ActiveState", "active");
    let pid = manager.main_pid("web");
    let control = manager.path("config/agentd/control");

    let told = manager.ok(&["disable", "web"]);
    assert_eq!(told, format!("Created {}.\n", control.join("web.service.disabled").display()));
    assert_eq!(run(&manager, "is-enabled web"), (1, "disabled".to_owned()));
    assert_eq!(manager.main_pid("web"), pid, "what runs goes on, the same process");
    assert_eq!(manager.property("web", "UnitFileState"), "disabled");
    assert_eq!(manager.ok(&["disable", "web"]), "", "done already, nothing to say");
    manager.ok(&["enable", "quiet"]);

    manager.ok(&["exit"]);
    manager.wait();
    let mut manager = manager.again();
    manager.until_property("quiet", "ActiveState", "active");
    assert_eq!(manager.property("web", "ActiveState"), "inactive", "disabled: the boot does not start it");
    let told = manager.ok(&["enable", "web", "--now"]);
    assert!(told.contains("Created ") && told.contains("Removed "), "{told}");
    assert_eq!(manager.property("web", "ActiveState"), "active");
    let told = manager.ok(&["disable", "--now", "web", "-o", "json"]);
    assert!(told.contains("\"Result\": \"done\""), "{told}");
    assert_eq!(manager.property("web", "ActiveState"), "inactive");
    assert_eq!(fs::read_dir(&control).unwrap().count(), 2, "one marker a unit and nothing left over");
}

#[test]
fn a_marker_of_the_runtime_folder_gives_way_to_a_lasting_one() {
    let mut manager = setup("runtime").start();
    manager.ok(&["enable", "--runtime", "quiet", "worker@7"]);
    assert!(manager.path("xdg/agentd/control/quiet.service.enabled").exists());
    assert_eq!(run(&manager, "is-enabled quiet worker@7").1, "enabled-runtime\nenabled-runtime");
    assert_eq!(run(&manager, "is-enabled worker@.service"), (0, "indirect".to_owned()));
    assert_eq!(run(&manager, "is-enabled worker@8"), (1, "disabled".to_owned()));
    manager.ok(&["disable", "quiet"]);
    assert_eq!(run(&manager, "is-enabled quiet").1, "disabled");
    let refused = manager.ctl(&["enable", "--runtime", "quiet"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("quiet.service.disabled decides over it"), "{}", text(&refused));
}

#[test]
fn what_cannot_be_enabled_is_told_with_the_reason_and_nothing_is_written() {
    let manager = setup("refused").start();
    for (units, reason) in [
        ("web nothing", "Unit file nothing.service does not exist."),
        ("web broken", "did you mean ExecStart?"),
        ("web worker@.service", "name an instance of it, as in worker@NAME.service"),
    ] {
        let words: Vec<&str> = ["enable"].into_iter().chain(units.split(' ')).collect();
        let output = manager.ctl(&words);
        assert_eq!(output.status.code(), Some(1), "{units}");
        assert!(text(&output).contains(reason), "{}", text(&output));
    }
    let output = manager.ctl(&["enable", "plain"]);
    assert!(output.status.success() && text(&output).contains("no [Install] section"), "{}", text(&output));
    assert!(!manager.path("config/agentd/control").exists());
}

#[test]
fn the_timer_of_a_service_is_what_is_enabled_with_it() {
    let mut manager = setup("own-timer").start();
    manager.until_property("backup.timer", "ActiveState", "active");
    manager.ok(&["disable", "--now", "backup"]);
    assert_eq!(run(&manager, "is-enabled backup.timer"), (1, "disabled".to_owned()));
    assert_eq!(manager.property("backup.timer", "ActiveState"), "inactive");
}

#[test]
fn a_masked_unit_cannot_start_until_it_is_unmasked() {
    let mut manager = setup("masks").start();
    manager.until_property("web", "ActiveState", "active");
    let link = manager.path("config/agentd/control/web.service");
    assert_eq!(
        manager.ok(&["mask", "--now", "web"]),
        format!("Created symlink {} -> /dev/null.\n", link.display())
    );
    assert_eq!(manager.property("web", "ActiveState"), "inactive");
    assert_eq!(run(&manager, "is-enabled web"), (1, "masked".to_owned()));
    assert_eq!(run(&manager, "start web").0, 4);
    let refused = manager.ctl(&["enable", "web"]);
    assert!(refused.status.code() == Some(1) && text(&refused).contains("agentctl unmask"));
    assert_eq!(manager.ok(&["unmask", "web"]), format!("Removed {}.\n", link.display()));
    manager.ok(&["start", "web"]);
    manager.ok(&["mask", "--runtime", "web", "later"]);
    assert_eq!(run(&manager, "is-enabled web later").1, "masked-runtime\nmasked-runtime");
    manager.ok(&["unmask", "web"]);
    assert_eq!(run(&manager, "is-enabled web").1, "enabled", "without --runtime every mask goes");
}

#[test]
fn a_folder_of_development_above_the_masks_is_told() {
    let setup = setup("above");
    setup.unit("web.service", SLEEP);
    let manager = setup.start();
    let output = manager.ctl(&["mask", "web"]);
    assert!(text(&output).contains("decides over the control folders"), "{}", text(&output));
}

#[test]
fn without_a_control_folder_the_request_is_refused_with_what_to_do() {
    let setup = Setup::new("no-control");
    setup.unit("web.service", &format!("{SLEEP}{INSTALL}"));
    let manager = setup.start();
    let output = manager.ctl(&["disable", "web"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("AGENTD_UNIT_PATH_EXCLUSIVE"), "{}", text(&output));
}

#[test]
fn in_enforce_a_marker_starts_what_is_signed_and_nothing_else() {
    let setup = setup("enforce").args(&["--trust", "enforce"]);
    let key = setup.path("keys/me.key");
    let ran = |command: &mut Command| assert!(command.output().unwrap().status.success(), "{command:?}");
    ran(Command::new(agentctl()).args(["key", "generate", "me", "--out"]).arg(setup.path("keys")));
    let file = |name: &str| setup.path(&format!("config/agentd/units/{name}.service.toml"));
    ran(Command::new(agentctl()).arg("sign").arg("--key").arg(&key).args([file("quiet"), file("web")]));
    fs::remove_file(file("web").with_extension("toml.sig")).unwrap();
    // A marker that somebody put there by hand, for a unit that nobody signed.
    setup.file("config/agentd/control/web.service.enabled", "");
    // And a unit in the place of a marker: a control folder holds none.
    setup.file("config/agentd/control/evil.service.toml", &format!("{SLEEP}{INSTALL}"));
    let mut manager = setup.start();
    manager.ok(&["enable", "--now", "quiet"]);
    assert_eq!(manager.property("quiet", "Trust"), "trusted");
    assert_eq!(manager.property("quiet", "ActiveState"), "active");
    assert_eq!(manager.property("web", "ActiveState"), "inactive");
    assert_eq!(manager.property("evil", "LoadState"), "error");
    let refused = manager.ctl(&["enable", "web"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("trust: "), "{}", text(&refused));
}

#[test]
fn changes_that_come_all_at_once_are_each_in_force_when_they_are_answered() {
    let setup = setup("at-once");
    for unit in 0..6 {
        self::unit(&setup, &format!("u{unit}.service"), &format!("{SLEEP}{INSTALL}Enabled = false\n"));
    }
    let manager = setup.start();
    let runtime = manager.path("run");
    let ctl = |line: &str| {
        let mut command = Command::new(agentctl());
        command.arg("--runtime-dir").arg(&runtime).args(line.split_whitespace());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    std::thread::scope(|scope| {
        for unit in 0..6 {
            let (ctl, name) = (&ctl, format!("u{unit}"));
            scope.spawn(move || {
                for _ in 0..3 {
                    assert_eq!(ctl(&format!("enable -q {name}")).0, 0, "{name}");
                    // What another loading has seen before must not come back.
                    assert_eq!(ctl(&format!("is-enabled {name}")), (0, "enabled".to_owned()), "{name}");
                    assert_eq!(ctl(&format!("disable -q {name}")).0, 0, "{name}");
                    assert_eq!(ctl(&format!("is-enabled {name}")), (1, "disabled".to_owned()), "{name}");
                }
            });
        }
        scope.spawn(|| (0..6).for_each(|_| assert_eq!(ctl("daemon-reload -q").0, 0)));
    });
}

#[test]
fn a_link_that_comes_later_is_another_name_of_the_unit_that_runs() {
    let setup = setup("later-link");
    let folder = setup.path("config/agentd/units");
    let mut manager = setup.start();
    manager.ok(&["start", "web", "worker@one"]);
    std::os::unix::fs::symlink("web.service.toml", folder.join("late.service.toml")).unwrap();
    std::os::unix::fs::symlink("worker@.service.toml", folder.join("other@.service.toml")).unwrap();
    for (other, id) in [("late.service", "web.service"), ("other@one.service", "worker@one.service")] {
        assert_eq!(manager.property(other, "Id"), id);
        assert_eq!(manager.property(other, "ActiveState"), "active");
        assert!(manager.property(id, "Names").split(' ').any(|name| name == other), "{other}");
        manager.ok(&["stop", other]);
        assert_eq!(manager.property(id, "ActiveState"), "inactive");
        manager.ok(&["start", other]);
    }
    let said = text(&manager.ctl(&["start", "worker@.service"]));
    assert!(said.contains("is a template; name an instance of it, as in worker@1.service."), "{said}");
    manager.ok(&["daemon-reload"]);
    assert_eq!(manager.property("late.service", "Id"), "web.service");
    assert_eq!(manager.property("other@one.service", "Id"), "worker@one.service");
    assert_eq!(manager.property("other@two.service", "Id"), "worker@two.service");
}
