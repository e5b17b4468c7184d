//! agentd as PID 1 of private namespaces: it needs nothing but the kernel's file systems, and ends as it is asked to.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::Command;

use common::{Manager, Setup};

/// Namespaces as a container runtime makes them, and a cgroup of its own that is all it sees: an init ends what it finds in
/// those that it takes over. What is in them dies with the wrapper; the cgroups of containers before are removed.
const WRAPPER: &[&str] = &["sh", "-c", OUTSIDE, "sh"];

const OUTSIDE: &str = r#"
tree=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$tree" ] && [ -w "$tree/cgroup.procs" ]; then
    find "$tree" -depth -path '*/agentd-test-container-*' -type d -exec rmdir {} + 2>/dev/null
    mkdir "$tree/agentd-test-container-$$" && echo $$ > "$tree/agentd-test-container-$$/cgroup.procs" || exit 1
fi
exec unshare --fork --pid --mount --net --uts --ipc --cgroup --propagation private --kill-child \
    sh -c 'tree=$1; shift; [ -z "$tree" ] || { umount -l "$tree" && mount -t cgroup2 none "$tree"; } || exit 1; exec "$@"' sh "$tree" "$@"
"#;

const SLOW_TO_STOP: &str = "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"trap 'sleep 0.3; echo stopped > $${MARK}; exit 0' TERM; echo up > $${MARK}.up; while :; do sleep 0.05; done\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n";

/// The containers have no cgroups of their own, and an init ends what it finds in those that it takes over: so there is
/// one at a time, for as long as this is held.
fn alone() -> fs::File {
    let file = fs::File::create(std::env::temp_dir().join("agentd-test-container.lock")).unwrap();
    file.lock().unwrap();
    file
}

fn container(name: &str) -> (Manager, std::path::PathBuf) {
    let setup = Setup::new(name).wrapper(WRAPPER);
    let mark = setup.path("mark");
    let unit = SLOW_TO_STOP.replace("$${MARK}", &mark.display().to_string());
    setup.unit("slow.service", &unit);
    let mut manager = setup.start();
    // Before its trap is set, the agent would end at once and leave no mark.
    manager.until("the agent is not up", |m| m.path("mark.up").exists());
    (manager, mark)
}

/// The pid, as seen from here, of the manager below the wrapper.
fn init_of(manager: &Manager) -> String {
    let children = format!("/proc/{0}/task/{0}/children", manager.pid());
    fs::read_to_string(children).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn it_knows_its_place_and_its_exit_code_is_the_one_asked_for() {
    let _alone = alone();
    let (mut manager, mark) = container("container-exit");
    manager.wait_for_log("starts as container init", "it does not know its place");
    assert_eq!(manager.property("slow", "ActiveState"), "active");
    manager.ok(&["exit", "9"]);
    assert_eq!(manager.wait().code(), Some(9));
    assert_eq!(fs::read_to_string(mark).unwrap(), "stopped\n", "agents are stopped first");
}

#[test]
fn what_container_tools_send_is_an_orderly_stop() {
    let _alone = alone();
    for signal in ["TERM", "37", "38"] {
        let (mut manager, mark) = container(&format!("container-{signal}"));
        let status = Command::new("kill").args(["-s", signal, &init_of(&manager)]).status().unwrap();
        assert!(status.success());
        assert_eq!(manager.wait().code(), Some(0), "signal {signal}");
        assert_eq!(fs::read_to_string(mark).unwrap(), "stopped\n", "signal {signal}");
    }
}

#[test]
fn poweroff_ends_the_container_and_not_the_machine() {
    let _alone = alone();
    let (mut manager, mark) = container("container-poweroff");
    manager.ok(&["poweroff"]);
    assert_eq!(manager.wait().code(), Some(0));
    assert!(mark.exists());
}

#[test]
fn orphans_are_adopted_and_reaped() {
    let _alone = alone();
    let setup = Setup::new("container-orphans").wrapper(WRAPPER);
    setup.unit(
        "fork.service",
        "[Service]\nType = \"oneshot\"\nKillMode = \"process\"\nExecStart = [\"/bin/sh\", \"-c\", \"for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sleep 0.2 &); done\"]\n",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "fork"]);
    manager.until("the orphans are not counted", |m| {
        common::text(&m.ctl(&["status"])).lines().any(|line| line.contains("Orphans: 10"))
    });
}

#[test]
fn an_init_is_executed_again_under_its_agents() {
    let _alone = alone();
    let (mut manager, mark) = container("container-reexec");
    let (init, agent) = (init_of(&manager), manager.main_pid("slow"));
    for _ in 0..3 {
        manager.ok(&["daemon-reexec"]);
        assert_eq!((init_of(&manager), manager.main_pid("slow")), (init.clone(), agent));
        assert_eq!(manager.property("slow", "ActiveState"), "active");
    }
    manager.ok(&["exit", "9"]);
    assert_eq!(manager.wait().code(), Some(9));
    assert_eq!(fs::read_to_string(mark).unwrap(), "stopped\n", "a stop is as gentle as ever");
}

#[test]
fn an_init_comes_up_whatever_its_disk_and_its_own_file_are_like() {
    let _alone = alone();
    let setup = Setup::new("container-poor");
    let etc = setup.file("etc/agentd.toml", "[Manager]\nTrust = \"maybe\"\nLogLevel = \"debug\"\n");
    let etc = etc.parent().unwrap();
    // Where the state should be lies a file, and a folder cannot be made.
    fs::remove_dir(setup.path("state")).unwrap();
    setup.file("state", "");
    let begin = format!(
        "mkdir -p /etc/agentd && mount -t tmpfs none /etc && mkdir /etc/agentd && mount --bind {} /etc/agentd && exec \"$@\"",
        etc.display()
    );
    let setup = setup.wrapper(&[WRAPPER, &["sh", "-c", &begin, "sh"]].concat());
    setup.unit("a.service", "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    let mut manager = setup.start();
    manager.ok(&["start", "a"]);
    let log = manager.log.join("\n");
    for said in
        ["agentd.toml: [Manager] Trust: ", "until then the defaults hold", "/run/state until the next boot"]
    {
        assert!(log.contains(said), "{said}: {log}");
    }
    assert!(manager.path("run/state/fencing-token").exists());
}

#[test]
fn b045_a_stop_that_comes_while_the_init_begins_is_heard() {
    let _alone = alone();
    for round in 0..12 {
        let setup = Setup::new(&format!("container-early-{round}")).wrapper(WRAPPER);
        for number in 0..20 {
            let text = "[Service]\nExecStart = [\"/bin/sleep\", \"1000\"]\n[Install]\nWantedBy = [\"multi-user.target\"]\n";
            setup.unit(&format!("u{number}.service"), text);
        }
        let mut manager = setup.spawn();
        let patience = std::time::Instant::now() + common::PATIENCE;
        while !hears_term(&manager) {
            assert!(std::time::Instant::now() < patience, "there is no init\n{}", manager.everything());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // Somewhere between its first instruction and its last unit.
        std::thread::sleep(std::time::Duration::from_millis(round * 5));
        assert!(Command::new("kill").args(["-s", "TERM", &init_of(&manager)]).status().unwrap().success());
        assert_eq!(manager.wait().code(), Some(0), "round {round}\n{}", manager.log.join("\n"));
    }
}

/// Whether the process below the wrapper is an agentd that has come as far as to hold SIGTERM back.
fn hears_term(manager: &Manager) -> bool {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", manager.pid()));
    let init = children.unwrap_or_default().split_whitespace().next().map(str::to_owned);
    let status =
        init.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok()).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap_or("0").trim();
    status.starts_with("Name:\tagentd\n") && u64::from_str_radix(blocked, 16).unwrap_or(0) & (1 << 14) != 0
}
