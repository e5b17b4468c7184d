//! `+`, `!`, `-`, `@` and `:` in front of a command, systemd.service(5) "COMMAND LINES".

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::Setup;
use common::cases::is_root;

/// The same command with each prefix, in a unit of another user with walls: what it says of itself.
#[test]
fn each_prefix_takes_back_what_it_is_for() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("prefixes");
    let told = setup.path("told");
    let tell = setup.file(
        "tell",
        "#!/bin/sh\necho \"$1 uid $(id -u) caps $(grep -c '^CapBnd:.0000000000000000' /proc/self/status) write $(test -w /usr && echo yes || echo no) name $2\"\n",
    );
    let tell = tell.display();
    setup.file(
        "units/one.service",
        &format!(
            "[Service]\nType=oneshot\nUser=64123\nCapabilityBoundingSet=\nProtectSystem=strict\nEnvironment=NAME=value\n\
             StandardOutput=append:{}\n\
             ExecStart={tell} plain ${{NAME}}\n\
             ExecStart=+{tell} plus ${{NAME}}\n\
             ExecStart=!{tell} bang ${{NAME}}\n\
             ExecStart=:{tell} colon ${{NAME}}\n\
             ExecStart=-/bin/false\n\
             ExecStart=@/bin/sh another -c 'echo \"called $$0\"; tr \"\\\\0\" \" \" < /proc/$$$$/cmdline; echo'\n\
             ExecStart=/bin/false\n\
             ExecStart={tell} never x\n",
            told.display()
        ),
    );
    let mut manager = setup.start();
    let failed = manager.ctl(&["start", "one"]);
    assert!(!failed.status.success(), "the false without a minus fails it");
    manager.collect();
    let told = fs::read_to_string(told).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "plain uid 64123 caps 1 write no name value",
            "plus uid 0 caps 0 write yes name value",
            "bang uid 0 caps 1 write no name value",
            "colon uid 64123 caps 1 write no name ${NAME}",
            "called another",
            "another -c echo \"called $0\"; tr \"\\0\" \" \" < /proc/$$/cmdline; echo ",
        ],
        "{told}\n{}",
        manager.everything()
    );
}
