//! Many services that are started at once, whose births go on by themselves: what each of them does in its first instant
//! counts as ever.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::process::Command;

use common::cases::is_root;
use common::{Manager, Setup};

/// Says that it is ready in its first instant, and waits.
const READY: &str = "#include <stdlib.h>\n#include <string.h>\n#include <sys/socket.h>\n#include <sys/un.h>\n\
    #include <unistd.h>\n\
    int main(void) {\n\
        struct sockaddr_un to = { AF_UNIX, \"\" };\n\
        strncpy(to.sun_path, getenv(\"NOTIFY_SOCKET\"), sizeof to.sun_path - 1);\n\
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);\n\
        sendto(fd, \"READY=1\", 7, 0, (struct sockaddr *)&to, sizeof to);\n\
        for (;;) pause();\n\
    }\n";

/// What a service does, and what comes of it: the lines of `[Service]`, SubState, Result, ExecMainStatus.
fn kinds(setup: &Setup) -> Vec<(String, [&'static str; 3])> {
    let program = setup.path("ready");
    let source = setup.file("ready.c", READY);
    let compiled = Command::new("gcc").arg("-o").arg(&program).arg(source).status().unwrap();
    assert!(compiled.success());
    let mut kinds = vec![
        ("ExecStart = \"/bin/sleep 1000\"".to_owned(), ["running", "success", "0"]),
        (
            format!("Type = \"notify\"\nTimeoutStartSec = 50\nExecStart = [{program:?}]"),
            ["running", "success", "0"],
        ),
        (
            "Type = \"exec\"\nExecStart = \"/nowhere/to/be/found\"".to_owned(),
            ["failed", "exit-code", "203"],
        ),
        ("ExecStart = [\"/bin/sh\", \"-c\", \"exit 7\"]".to_owned(), ["failed", "exit-code", "7"]),
        (
            "Type = \"oneshot\"\nRemainAfterExit = true\nExecStartPre = \"/bin/true\"\nExecStart = \"/bin/true\""
                .to_owned(),
            ["exited", "success", "0"],
        ),
    ];
    if is_root() {
        // Born with a copy of the memory.
        kinds.push((
            "User = \"nobody\"\nExecStart = \"/bin/sleep 1000\"".to_owned(),
            ["running", "success", "0"],
        ));
    }
    kinds
}

fn check(manager: &mut Manager, units: &[(String, [&str; 3])]) {
    for (name, [sub, result, status]) in units {
        let words = ["show", name, "--property", "SubState,Result,ExecMainStatus"];
        let lines =
            [format!("SubState={sub}"), format!("Result={result}"), format!("ExecMainStatus={status}")];
        manager.until(&format!("{name} has not come to {lines:?}"), |m| {
            let shown = m.ok(&words);
            lines.iter().all(|line| shown.lines().any(|shown| shown == line))
        });
    }
}

#[test]
fn services_that_are_started_at_once_live_as_if_they_were_started_one_by_one() {
    let setup = Setup::new("births");
    let kinds = kinds(&setup);
    let units: Vec<_> = (0..30)
        .map(|number| {
            let (text, expected) = &kinds[number % kinds.len()];
            let name = format!("s{number}.service");
            setup.unit(&name, &format!("[Unit]\nStartLimitIntervalSec = 0\n[Service]\n{text}\n"));
            (name, *expected)
        })
        .collect();
    let names: Vec<&str> = units.iter().map(|(name, _)| name.as_str()).collect();
    setup.unit("default.target", &format!("[Unit]\nWants = {names:?}\n"));
    let mut manager = setup.start();
    check(&mut manager, &units);
    for _ in 0..2 {
        let stop: Vec<&str> = ["stop"].into_iter().chain(names.iter().copied()).collect();
        manager.ok(&stop);
        // Those that end at once fail the call, one way or the other.
        drop(manager.ctl(&["start"].into_iter().chain(names.iter().copied()).collect::<Vec<_>>()));
        check(&mut manager, &units);
    }
}
