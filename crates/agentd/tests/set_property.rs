//! Limits that are set while a unit runs, what units use, and what SIGKILL does not end.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::cases::is_root;
use common::{Manager, Setup, text};

/// A user's manager with a service that runs.
fn start(name: &str) -> Manager {
    let setup = Setup::new(name).tiers();
    setup.file(
        "config/agentd/units/web.service.toml",
        "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nMemoryMax = \"1G\"\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "web"]);
    manager
}

fn drop_in(manager: &Manager, folder: &str, key: &str) -> PathBuf {
    manager.path(&format!("{folder}/web.service.d/50-{key}.toml"))
}

const LASTING: &str = "config/agentd/control";
const RUNTIME: &str = "xdg/agentd/control";

#[test]
fn limits_are_in_force_at_once_and_stay_as_long_as_was_asked() {
    let mut manager = start("set");
    let pid = manager.main_pid("web");
    assert_eq!(manager.property("web", "MemoryMax"), "1073741824");
    let said = manager.ok(&["set-property", "web", "MemoryMax=64M", "TasksMax=17"]);
    let file = drop_in(&manager, LASTING, "MemoryMax");
    assert!(said.contains(&format!("Created {}.", file.display())), "{said}");
    assert!(fs::read_to_string(&file).unwrap().ends_with("[Service]\nMemoryMax = '64M'\n"));
    for (property, value) in [("MemoryMax", "67108864"), ("TasksMax", "17"), ("NeedRestart", "no")] {
        manager.until_property("web", property, value);
    }
    manager.ok(&["set-property", "--runtime", "web", "CPUQuota=20%"]);
    manager.until_property("web", "CPUQuotaPerSecUSec", "200ms");
    assert!(drop_in(&manager, RUNTIME, "CPUQuota").exists());
    assert_eq!(manager.main_pid("web"), pid, "nothing was restarted");
    let plan = manager.ok(&["apply", "--dry-run"]);
    assert!(!plan.contains("web.service"), "{plan}");
    manager.ok(&["set-property", "web", "MemoryMax="]);
    manager.until_property("web", "MemoryMax", "1073741824");
    assert!(!file.exists());
    manager.ok(&["restart", "web"]);
    assert_eq!(manager.property("web", "TasksMax"), "17");
}

#[test]
fn limits_of_slices_are_set_with_and_without_a_file() {
    let mut manager = start("set-slice");
    manager.ok(&["set-property", "app.slice", "MemoryMax=64M", "CPUWeight=idle"]);
    let file = manager.path(&format!("{LASTING}/app.slice.d/50-MemoryMax.toml"));
    assert!(fs::read_to_string(&file).unwrap().ends_with("[Slice]\nMemoryMax = '64M'\n"));
    manager.until_property("app.slice", "MemoryMax", "67108864");
    assert_eq!(manager.property("app.slice", "CPUWeight"), "idle");
    assert_eq!(manager.property("web", "ActiveState"), "active");
    manager.ok(&["set-property", "app.slice", "MemoryMax="]);
    manager.until_property("app.slice", "MemoryMax", "infinity");
    let output = manager.ctl(&["set-property", "app.slice", "User=root"]);
    assert!(text(&output).contains("[Slice] has no key User"), "{}", text(&output));
}

#[test]
fn what_cannot_be_set_changes_nothing() {
    let manager = start("set-bad");
    for (words, part) in [
        (&["web", "MemoryMax=64M", "TasksMax=many"][..], "TasksMax"),
        (&["web", "TasksMax=many"], "Nothing was set, and the drop-in was taken back."),
        (&["web", "ExecStart=/bin/true"], "ExecStart cannot change while the unit runs"),
        (&["web", "MemoryMix=1"], "[Service] has no key MemoryMix"),
        (&["web", "MemoryMax"], "'MemoryMax' is no KEY=VALUE"),
        (&["web", "MemoryMax=1'\n[Service]\nExecStart='x"], "takes no such value"),
        (&["nothing", "MemoryMax=1G"], "nothing.service not found"),
        (&["default.target", "MemoryMax=1G"], "limits are set of services"),
    ] {
        let mut all = vec!["set-property"];
        all.extend(words);
        let output = manager.ctl(&all);
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(text(&output).contains(part), "{words:?}: {}", text(&output));
    }
    assert!(!drop_in(&manager, LASTING, "MemoryMax").exists());
    assert_eq!(manager.property("web", "MemoryMax"), "1073741824");
    assert_eq!(manager.property("web", "LoadState"), "loaded");
}

#[test]
fn who_works_most_is_at_the_top() {
    let setup = Setup::new("top");
    setup.unit("busy.service", "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"while :; do :; done\"]\n");
    setup.unit("quiet.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "busy", "quiet"]);
    if manager.property("busy", "ControlGroup").is_empty() {
        return;
    }
    manager.until("nothing is used", |m| m.property("busy", "CPUUsageNSec").len() > 7);
    let shown = manager.ok(&["top", "-b", "-n", "2", "-d", "0.3"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("UNIT"), "{shown}");
    assert!(lines[1].starts_with("busy.service"), "{shown}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("quiet.service")).count(), 2, "{shown}");
    let once = manager.ok(&["top", "-d", "0.1"]);
    assert!(
        once.starts_with("UNIT") && once.matches("UNIT").count() == 1,
        "without a terminal one table, and no screen: {once:?}"
    );
    let rows = manager.ok(&["top", "-n", "1", "-d", "0.3", "-o", "json", "--order", "unit"]);
    assert!(rows.starts_with("[{\"Id\":\"busy.service\",\"CPUPercent\":"), "{rows}");
    assert_eq!(rows.lines().count(), 1);
}

/// Stands still in the freezer of cgroup v1, where no signal reaches it: what a process in the kernel's hands is like.
struct Frozen(PathBuf);

impl Frozen {
    fn new(pid: u32) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/freezer");
        let folder = root.join(format!("agentd-test-{}", std::process::id()));
        fs::create_dir(&folder).ok().filter(|()| folder.join("freezer.state").exists())?;
        fs::write(folder.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(folder.join("freezer.state"), "FROZEN").unwrap();
        Some(Self(folder))
    }

    fn thaw(&self) {
        fs::write(self.0.join("freezer.state"), "THAWED").unwrap();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _thawed = fs::write(self.0.join("freezer.state"), "THAWED");
        let deadline = std::time::Instant::now() + common::PATIENCE;
        while fs::remove_dir(&self.0).is_err() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_sigkill_does_not_end_is_named_while_others_stop() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("survivor");
    for name in ["stuck", "other"] {
        setup.unit(
            &format!("{name}.service"),
            "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\nTimeoutStopSec = \"300ms\"\n",
        );
    }
    let mut manager = setup.start();
    manager.ok(&["start", "stuck", "other"]);
    let pid = manager.main_pid("stuck");
    // Machines with cgroup v2 alone have no way to hold a process so.
    let Some(frozen) = Frozen::new(pid) else { return };
    manager.ok(&["--no-block", "stop", "stuck"]);
    manager.wait_for_log(&format!("SIGKILL has not ended {pid} (sleep), state "), "it is not named");
    assert!(manager.property("stuck", "Survivors").starts_with(&format!("{pid} (sleep), state ")));
    let status = text(&manager.ctl(&["status", "stuck"]));
    assert!(status.contains(&format!("Survivor: {pid} (sleep)")), "{status}");
    manager.ok(&["stop", "other"]);
    assert_eq!(manager.property("stuck", "ActiveState"), "deactivating");
    frozen.thaw();
    manager.until_property("stuck", "ActiveState", "failed");
    assert_eq!(manager.property("stuck", "Survivors"), "");
}
