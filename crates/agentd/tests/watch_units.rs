//! `WatchUnits`: unit files are dropped into the folders of a running manager, and nobody asks for anything.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use common::{Manager, Setup, agentctl, text, write};

const INSTALL: &str = "[Install]\nWantedBy = [\"multi-user.target\"]\n";

fn sleep(seconds: u32) -> String {
    format!("[Service]\nExecStart = [\"/bin/sleep\", \"{seconds}\"]\n{INSTALL}")
}

fn unit(manager: &Manager, name: &str) -> PathBuf {
    manager.path(&format!("config/agentd/units/{name}.toml"))
}

fn setup(name: &str, watch: &str) -> Setup {
    let setup = Setup::new(name).tiers();
    setup.file("config/agentd/agentd.toml", &format!("[Manager]\nWatchUnits = \"{watch}\"\n"));
    setup
}

fn loadings(manager: &mut Manager) -> usize {
    manager.collect();
    manager.log.iter().filter(|line| line.contains("changed on disk and loaded")).count()
}

#[test]
fn what_is_dropped_in_is_loaded_and_no_unit_is_started_or_stopped() {
    // No folder of units is there yet: it comes with the first unit.
    let mut manager = setup("watch-load", "load").start();
    write(&unit(&manager, "web.service"), &sleep(1000));
    manager.until_property("web", "LoadState", "loaded");
    assert_eq!(manager.property("web", "ActiveState"), "inactive", "a loading starts nothing");
    manager.wait_for_log("changed on disk and loaded (WatchUnits): ", "what was loaded is told");
    assert!(manager.log.last().unwrap().contains("web.service"), "{:?}", manager.log);
    manager.ok(&["start", "web"]);
    let pid = manager.main_pid("web");

    write(&manager.path("config/agentd/units/web.service.d/10-nice.toml"), "[Service]\nNice = 5\n");
    manager.until_property("web", "NeedRestart", "yes");
    write(&manager.path("config/agentd/units/web.service.d/20-umask.toml"), "[Service]\nUMask = \"0077\"\n");
    let files = |m: &Manager| m.property("web", "DropInPaths").contains("20-umask.toml");
    manager.ok(&["stop", "web"]);
    manager.until("a drop-in of a folder that came later", |m| files(m));
    let wants = manager.path("config/agentd/units/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    write(&unit(&manager, "db.service"), "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    std::os::unix::fs::symlink("../db.service.toml", wants.join("db.service")).unwrap();
    manager.until("the link in .wants", |m| m.property("multi-user.target", "Wants").contains("db.service"));

    manager.ok(&["start", "web"]);
    assert_ne!(manager.main_pid("web"), pid);
    let pid = manager.main_pid("web");
    fs::rename(unit(&manager, "web.service"), unit(&manager, "www.service")).unwrap();
    manager.until_property("www", "LoadState", "loaded");
    manager.until_property("web", "NeedRestart", "yes");
    assert_eq!(manager.main_pid("web"), pid, "a unit whose file is gone lives on");
}

#[test]
fn what_changed_is_started_restarted_and_stopped_and_the_rest_is_left_alone() {
    let setup = setup("watch-apply", "apply");
    for name in ["same", "changed", "gone"] {
        setup.file(&format!("config/agentd/units/{name}.service.toml"), &sleep(1000));
    }
    let mut manager = setup.start();
    for name in ["same", "changed", "gone"] {
        manager.until_property(name, "ActiveState", "active");
    }
    let same = manager.main_pid("same");
    let changed = manager.main_pid("changed");
    write(&unit(&manager, "new.service"), &sleep(1000));
    write(&unit(&manager, "idle.service"), "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    write(&unit(&manager, "changed.service"), &sleep(2000));
    write(&unit(&manager, "broken.service"), "[Service]\nExecStrat = [\"/bin/true\"]\n");
    fs::remove_file(unit(&manager, "gone.service")).unwrap();
    manager.until_property("new", "ActiveState", "active");
    manager.until_property("gone", "ActiveState", "inactive");
    manager.until("it is restarted", |m| ![0, changed].contains(&m.main_pid("changed")));
    assert!(manager.property("changed", "ExecStart").contains(" argv[]=/bin/sleep 2000 ;"));
    assert_eq!(manager.main_pid("same"), same, "what did not change is the same process");
    assert_eq!(manager.property("idle", "ActiveState"), "inactive", "it is not enabled");
    manager.wait_for_log("did you mean ExecStart?", "what is wrong with a file is told");
    manager.wait_for_log("start (WatchUnits), as it is new and enabled", "why it is started");
    assert_eq!(manager.ctl(&["apply"]).status.code(), Some(0), "nothing is left to be done");
}

#[test]
fn without_the_setting_nothing_is_read() {
    let mut manager = setup("watch-off", "off").start();
    write(&unit(&manager, "web.service"), &sleep(1000));
    // The manager would have told of what it saw before it answers the last of these.
    let watches = format!("/proc/{}/fdinfo", manager.pid());
    let counts = || {
        let infos = fs::read_dir(&watches).unwrap().flatten();
        infos
            .map(|info| fs::read_to_string(info.path()).unwrap_or_default().matches("inotify wd").count())
            .sum()
    };
    let off: usize = counts();
    assert!(off <= 1 + usize::from(manager.ok(&["list"]).contains("service")), "{off} watches");
    let plan = manager.ok(&["apply", "--dry-run"]);
    assert!(plan.contains("it is new and enabled"), "{plan}");
    assert_eq!(loadings(&mut manager), 0);
}

#[test]
fn a_file_that_is_written_in_pieces_is_not_read_half() {
    let mut manager = setup("watch-pieces", "apply").start();
    write(&unit(&manager, "first.service"), &sleep(1000));
    manager.until_property("first", "ActiveState", "active");
    let mut file = File::create(unit(&manager, "web.service")).unwrap();
    file.write_all(b"[Service]\nExecStart = [\"/bin/sl").unwrap();
    // As long as somebody writes it nothing of it is read: five settling times, and half of the limit.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(loadings(&mut manager), 1, "{}", manager.everything());
    file.write_all(format!("eep\", \"1000\"]\n{INSTALL}").as_bytes()).unwrap();
    drop(file);
    manager.until_property("web", "ActiveState", "active");
    manager.collect();
    assert!(!manager.log.iter().any(|line| line.contains("web.service.toml:")), "{}", manager.everything());
}

#[test]
fn a_flood_is_a_few_loadings_and_hides_nothing() {
    let mut manager = setup("watch-flood", "apply").start();
    fs::create_dir_all(manager.path("config/agentd/units")).unwrap();
    let noise = manager.path("config/agentd/units/noise.service.d");
    fs::create_dir_all(&noise).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flood = {
        let stop = std::sync::Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut writes = 0u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let name = noise.join(format!("{}.conf", writes % 50));
                fs::write(name, format!("# {writes}\n")).unwrap();
                writes += 1;
            }
            writes
        })
    };
    let began = std::time::Instant::now();
    write(&unit(&manager, "web.service"), &sleep(1000));
    manager.until_property("web", "ActiveState", "active");
    let took = began.elapsed();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let writes = flood.join().unwrap();
    let loadings = loadings(&mut manager);
    let bound = 2 + usize::try_from(took.as_secs() / 5).unwrap();
    assert!(loadings <= bound, "{loadings} loadings of {writes} writes in {took:?}");
    assert!(manager.ok(&["list"]).contains("web.service"));
}

#[test]
fn a_file_that_is_not_signed_is_refused_by_one_line_and_taken_once_it_is() {
    let setup = setup("watch-trust", "apply");
    let key = |setup: &Setup| setup.path("keys/test.key");
    let program = setup.path("agent");
    fs::copy("/bin/sleep", &program).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", text(&output));
    };
    run(Command::new(agentctl()).args(["key", "generate", "test", "--out"]).arg(setup.path("keys")));
    let (key, mut manager) = (key(&setup), setup.args(&["--trust", "enforce"]).start());
    let service =
        format!("[Service]\nExecStart = [{:?}, \"1000\"]\n{INSTALL}", program.display().to_string());
    write(&unit(&manager, "web.service"), &service);
    manager.wait_for_log("not signed", "an unsigned file is refused");
    // Others come meanwhile, and the refusal is not told again.
    for name in ["one", "two"] {
        write(&unit(&manager, &format!("{name}.target")), "[Unit]\nDescription = \"x\"\n");
        manager.wait_for_log(&format!("{name}.target"), "the other is seen");
    }
    manager.collect();
    let refusals =
        manager.log.iter().filter(|line| line.contains("web.service") && line.contains("not signed"));
    assert_eq!(refusals.count(), 1, "{}", manager.everything());
    assert_ne!(manager.property("web", "ActiveState"), "active");
    run(Command::new(agentctl()).arg("sign").arg("--key").arg(key).arg(unit(&manager, "web.service")));
    manager.until_property("web", "ActiveState", "active");
}
