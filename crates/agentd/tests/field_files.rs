//! Faults that supervisors have had with what users write: too much of it, and files that change under their eyes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{PATIENCE, Setup, agentctl, text};

#[test]
fn b112_what_is_too_much_for_the_kernel_fails_its_unit_with_the_reason() {
    let setup = Setup::new("b112");
    let sleep = "ExecStart=/bin/sleep 1000\n";
    let environment: String = (0..20_000).map(|number| format!("Environment=V{number}=x\n")).collect();
    let wants: String = (0..20_000).map(|number| format!("Wants=w{number}.service\n")).collect();
    for (name, unit) in [
        ("words", format!("[Service]\nExecStart=/bin/sleep 1000 {}\n", "x".repeat(900_000))),
        ("environment", format!("[Service]\n{environment}{sleep}")),
        ("wants", format!("[Unit]\n{wants}[Service]\n{sleep}")),
        ("name", format!("[Unit]\nDescription={}\n[Service]\n{sleep}", "d".repeat(900_000))),
        ("paint", format!("[Unit]\nDescription=a\u{1b}[31mred\n[Service]\n{sleep}")),
    ] {
        setup.file(&format!("units/{name}.service"), &unit);
    }
    let mut manager = setup.start();
    let refused = manager.ctl(&["start", "words"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    manager.until("the reason is not told", |m| {
        m.log.iter().any(|line| line.contains("words.service") && line.contains("Argument list too long"))
    });
    for name in ["environment", "wants", "name", "paint"] {
        let start = manager.ctl(&["start", name]);
        let state = manager.property(name, "ActiveState");
        assert_eq!(start.status.success(), state == "active", "{name} is {state}: {}", text(&start));
        let shown = text(&manager.ctl(&["status", name]));
        assert!(shown.len() < 64 << 10, "the status of {name} has {} bytes", shown.len());
        assert!(!shown.contains('\u{1b}'), "{name} paints: {shown:?}");
    }
    assert_eq!(manager.property("environment", "ActiveState"), "active");
}

/// Puts what a file may be in the place of one, again and again, and in the end the first of them for good.
fn swap(place: &Path, kinds: &[&str; 2], mode: u32, ended: &AtomicBool) {
    let next = place.with_extension("next");
    let mut round = 0;
    while !ended.load(Ordering::Relaxed) || round % 2 == 0 {
        round += 1;
        fs::write(&next, kinds[round % 2]).unwrap();
        fs::set_permissions(&next, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(&next, place).unwrap();
    }
}

#[test]
fn b113_files_that_are_swapped_all_the_time_never_run_what_is_not_signed() {
    let setup = Setup::new("b113").args(&["--trust", "enforce"]);
    let mark = setup.path("evil").display().to_string();
    // Where everybody may swap a program. What only root can, root may.
    let program = setup.file("shared/agent.sh", "#!/bin/sh\nexec sleep 1000\n");
    fs::set_permissions(setup.path("shared"), fs::Permissions::from_mode(0o777)).unwrap();
    let unit = format!("[Service]\nExecStart = [{:?}]\n", program.display().to_string());
    let good = setup.unit("good.service", &unit);
    for args in [
        vec!["key", "generate", "test", "--out", setup.path("keys").to_str().unwrap()],
        vec!["sign", "--key", setup.path("keys/test.key").to_str().unwrap(), good.to_str().unwrap()],
    ] {
        let output = Command::new(agentctl()).args(args).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
    let evil_unit = format!("[Service]\nExecStart = [\"/usr/bin/touch\", {mark:?}]\n");
    let evil_program = format!("#!/bin/sh\ntouch {mark}-program\nexec sleep 1000\n");
    let mut manager = setup.start();
    let ended = AtomicBool::new(false);
    let (mut taken, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&good, &[&evil_unit, &unit], 0o644, &ended));
        scope.spawn(|| swap(&program, &[&evil_program, "#!/bin/sh\nexec sleep 1000\n"], 0o755, &ended));
        let patience = std::time::Instant::now() + PATIENCE;
        while (taken < 8 || refused < 8) && std::time::Instant::now() < patience {
            let _either = manager.ctl(&["daemon-reload"]);
            if manager.ctl(&["start", "good"]).status.success() {
                taken += 1
            } else {
                refused += 1
            }
            let _either = manager.ctl(&["stop", "good"]);
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert!(taken >= 8 && refused >= 8, "{taken} starts, {refused} refusals\n{}", manager.everything());
    for kind in ["", "-program"] {
        assert!(!fs::exists(format!("{mark}{kind}")).unwrap(), "what nobody signed has run: {kind}");
    }
    manager.ok(&["daemon-reload"]);
    manager.ok(&["start", "good"]);
}
