//! A disk that takes nothing more: agents are started all the same, and their generations stay in order.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::cases::is_root;
use common::{Manager, Setup, text};

/// The token of its run, for whoever looks.
const TELLS: &str =
    "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"echo $$AGENTD_FENCING_TOKEN >SEEN; exec sleep 1000\"]\n";

fn token(manager: &mut Manager) -> u64 {
    manager.ok(&["restart", "a"]);
    let seen = manager.path("seen");
    manager.until("the agent says nothing", |_| {
        fs::read_to_string(&seen).is_ok_and(|text| text.ends_with('\n'))
    });
    let text = fs::read_to_string(&seen).unwrap();
    fs::remove_file(&seen).unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn agents_are_started_on_a_full_disk_and_it_is_said_once() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("full-disk");
    let state = setup.path("state");
    let fill = format!(
        "mount -t tmpfs -o size=16k none {0} && ! head -c 64k /dev/zero >{0}/filler",
        state.display()
    );
    setup.unit("a.service", &TELLS.replace("SEEN", &setup.path("seen").display().to_string()));
    let mut manager = setup.mounts(&fill).start();
    let (first, second) = (token(&mut manager), token(&mut manager));
    assert!(first < second, "{first} {second}");
    let said = |m: &mut Manager| {
        m.collect();
        m.log.iter().filter(|line| line.contains("fencing tokens follow the clock")).count()
    };
    assert_eq!(said(&mut manager), 1, "{}", manager.log.join("\n"));
    assert!(manager.log.iter().any(|line| line.contains("No space left on device")));
    let filler = format!("/proc/{}/root{}/filler", manager.pid(), state.display());
    fs::remove_file(filler).unwrap();
    assert!(token(&mut manager) > second);
    let saved = format!("/proc/{}/root{}/fencing-token", manager.pid(), state.display());
    assert!(fs::read_to_string(saved).unwrap().contains("fencing-token"), "it is reserved again");
}

#[test]
fn a_manager_that_is_no_init_says_what_to_name_instead() {
    let setup = Setup::new("no-state");
    fs::remove_dir(setup.path("state")).unwrap();
    setup.file("state", "");
    let mut manager = setup.spawn();
    assert_eq!(manager.wait().code(), Some(1));
    manager.wait_for_log("--state-dir names another one", "no advice");
    assert!(manager.log.iter().any(|line| line.contains("cannot create") && line.contains("/state")));
}

#[test]
fn a_runtime_folder_that_may_not_be_made_is_told_once_with_what_to_do() {
    if !is_root() {
        return;
    }
    let agentd = std::path::Path::new(env!("CARGO_BIN_EXE_agentd"));
    let place = std::env::temp_dir().join(format!("agentd-test-{}-program", std::process::id()));
    common::install(agentd, &place);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&place);
    let output = command.args(["--runtime-dir", "/agentd-none"]).stdin(Stdio::null()).output().unwrap();
    fs::remove_file(&place).unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/agentd-none cannot be made"), "{said}");
    assert!(said.contains("agentd --user"), "{said}");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}
