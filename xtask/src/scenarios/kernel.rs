//! The tests of agentd-linux that want a machine of their own: all cgroup controllers, a watchdog, a clock to set.
//!
//! `cargo test` leaves them out, as they fail or do harm where somebody works; here they run from their own programs.

use std::path::PathBuf;

use serde_json::Value;

use super::context::{Context, FILES};
use super::guest::ok;
use super::{Scenario, expect};
use crate::error::{Error, Result};
use crate::image::tree::Tree;
use crate::run::{cargo, command, output, run};

/// See the module.
pub const SCENARIOS: &[Scenario] = &[Scenario { name: "vm::kernel-facilities", run: facilities }];

/// The test programs, and what a machine needs before they run.
const PROGRAMS: [&str; 2] = ["controllers", "machine"];
const GROUND: &str = "mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /tmp && mount -t \
                      cgroup2 cgroup2 /sys/fs/cgroup && modprobe softdog && ln -sfn /proc/self/fd /dev/fd";

fn facilities(context: &mut Context) -> Result<()> {
    let tree = Tree::new()?;
    tree.test_console()?;
    for program in PROGRAMS {
        let place = tree.write(&format!("{FILES}/{program}"), 0o755, b"")?;
        run(command("strip", &["-o"]).arg(place).arg(test_program(program)?))?;
    }
    let payload = context.scratch().path().join("kernel.tar");
    tree.pack(&payload)?;
    let spec = context.disk(payload, "quiet init=/usr/lib/agentd-test/console");
    let machine = context.boot_any(&spec)?;
    ok(machine, GROUND)?;
    for program in PROGRAMS {
        let words = format!(
            "cd /tmp && CI=1 AGENTD_TEST_MACHINE=1 RUST_BACKTRACE=0 /{FILES}/{program} --ignored --test-threads=1"
        );
        let text = ok(machine, &words)?;
        let all_ran = text.contains("test result: ok.") && !text.contains(" 0 passed");
        expect(all_ran, || format!("{program} ran no test:\n{text}"))?;
        println!("{}", text.lines().filter(|line| line.ends_with("... ok")).collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

/// Builds a test program of agentd-linux; where it lies.
fn test_program(name: &str) -> Result<PathBuf> {
    let words = ["test", "--package", "agentd-linux", "--test", name, "--no-run", "--message-format=json"];
    let messages = output(&mut cargo(&words))?;
    let of = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == name && message["profile"]["test"] == true;
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    };
    messages.lines().find_map(of).ok_or_else(|| Error::new(format!("cargo has built no test program {name}")))
}
