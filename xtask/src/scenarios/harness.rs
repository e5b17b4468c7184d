//! The harness itself: if these fail, no other scenario means anything. The guest's console script is PID 1 here, so
//! nothing of agentd takes part.

use std::time::Duration;

use super::context::Context;
use super::{Scenario, expect_eq};
use crate::error::Result;
use crate::image::tree::Tree;
use crate::vm::{BOOT_TIMEOUT, COMMAND_TIMEOUT, Ending, Machine};

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::harness-runs-commands", run: commands },
    Scenario { name: "vm::harness-tells-endings-apart", run: endings },
    Scenario { name: "vm::harness-presses-ctrl-alt-del", run: ctrl_alt_del },
];

fn boot(context: &mut Context) -> Result<&mut Machine> {
    let tree = Tree::new()?;
    tree.test_console()?;
    let payload = context.scratch().path().join("harness.tar");
    tree.pack(&payload)?;
    let spec = context.disk(payload, "quiet init=/usr/lib/agentd-test/console");
    let machine = context.boot_any(&spec)?;

    Ok(machine)
}

fn commands(context: &mut Context) -> Result<()> {
    let machine = boot(context)?;
    let answer = machine.run("echo out; echo err >&2; exit 3")?;
    expect_eq("both outputs", &answer.text.as_str(), &"out\nerr")?;
    expect_eq("exit code", &answer.code, &3)?;
    let long = machine.run("seq 1 20000 | sha256sum; seq 1 20000")?;
    let lines = long.text.lines().count();
    expect_eq("a long output comes whole", &lines, &20_001)?;
    let python = machine.run("python3 -c 'import http.client, json, threading; print(6 * 7)'")?;
    expect_eq("python has its library", &python.text.as_str(), &"42")
}

fn endings(context: &mut Context) -> Result<()> {
    let machine = boot(context)?;
    machine.send("/usr/lib/agentd-test/busybox poweroff -f")?;
    expect_eq("poweroff", &machine.ending()?, &Ending::PowerOff)?;

    let machine = boot(context)?;
    machine.send("/usr/lib/agentd-test/busybox reboot -f")?;
    expect_eq("reboot", &machine.ending()?, &Ending::Reset)?;

    let machine = boot(context)?;
    machine.send("mount -t proc proc /proc; echo c > /proc/sysrq-trigger")?;
    machine.console().wait_for(0, "Kernel panic", BOOT_TIMEOUT)?;
    expect_eq("panic", &machine.ending()?, &Ending::Reset)
}

/// The kernel restarts the machine at once unless PID 1 has asked for the signal, which this one has not.
fn ctrl_alt_del(context: &mut Context) -> Result<()> {
    let machine = boot(context)?;
    let early = machine.console().wait_for(0, "no such line", Duration::from_millis(1));
    expect_eq("a line that never comes is an error", &early.is_err(), &true)?;
    machine.ctrl_alt_del()?;
    let ending = machine.ending()?;
    machine.console().wait_end(COMMAND_TIMEOUT)?;
    expect_eq("Ctrl-Alt-Del", &ending, &Ending::Reset)
}
