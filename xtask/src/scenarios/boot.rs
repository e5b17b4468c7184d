//! agentd as PID 1 of a machine: how it comes up and how it goes down.

use std::time::Duration;

use super::context::{Context, FILES};
use super::guest::{active, code, console_lines, ok};
use super::{Scenario, expect, expect_eq};
use crate::error::Result;
use crate::vm::{BOOT_TIMEOUT, COMMAND_TIMEOUT, Ending, Machine, UP};

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::initramfs-boots-without-flags", run: initramfs },
    Scenario { name: "vm::disk-boots-without-flags", run: disk },
    Scenario { name: "vm::poweroff-stops-in-reverse-order", run: poweroff },
    Scenario { name: "vm::reboot-stops-in-reverse-order", run: reboot },
    Scenario { name: "vm::ctrl-alt-del-reboots", run: ctrl_alt_del },
    Scenario { name: "vm::sigterm-powers-off", run: sigterm },
    Scenario { name: "vm::rescue-and-emergency-give-a-shell", run: shells },
];

/// No libc, no shell of a system: what runs here is static.
fn initramfs(context: &mut Context) -> Result<()> {
    let spec = context.product_initramfs()?;
    let machine = context.boot(&spec)?;
    is_up(machine)?;
    expect_eq("no libc", &code(machine, "ls /lib /lib64 2>/dev/null")?, &1)?;
    // There is no journal, so all of it is in the kernel's log, which takes few lines of those that do not ask for more.
    let last = format!("/{FILES}/busybox dmesg | grep -q 'agentd.1.: {UP}'");
    ok(machine, &last)?;
    machine.send("agentctl poweroff")?;
    reverse_order(machine)?;
    expect_eq("poweroff", &machine.ending()?, &Ending::PowerOff)
}

fn disk(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    is_up(machine)?;
    ok(machine, "touch /root-is-writable")?;
    expect_eq("hostname", &ok(machine, "cat /proc/sys/kernel/hostname")?.as_str(), &"agentd")?;
    let id = ok(machine, "cat /etc/machine-id")?;
    expect(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), || format!("machine-id is {id:?}"))
}

/// What holds in every machine that agentd has brought up.
fn is_up(machine: &mut Machine) -> Result<()> {
    let name = ok(machine, "readlink /proc/1/exe")?;
    expect_eq("PID 1", &name.as_str(), &"/usr/bin/agentd")?;
    active(machine, &["default.target", "multi-user.target", "order-third.service"])?;
    expect_eq("no unit has failed", &ok(machine, "agentctl list --state failed -o json")?.trim(), &"[]")?;
    let restarting = ok(machine, "agentctl list --state auto-restart -o json")?;
    expect_eq("no unit is to be restarted", &restarting.trim(), &"[]")?;
    for point in ["/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/run", "/sys/fs/cgroup"] {
        ok(machine, &format!("grep -q ' {point} ' /proc/self/mounts"))?;
    }
    let controllers = ok(machine, "cat /sys/fs/cgroup/cgroup.subtree_control")?;
    for controller in ["cpu", "memory", "pids"] {
        expect(controllers.split(' ').any(|word| word == controller), || {
            format!("controller {controller} is not enabled: {controllers}")
        })?;
    }
    // The kernel's own limits of an init are the services', and not enough for it.
    let limits = ok(machine, "grep 'Max open files' /proc/1/limits /proc/self/limits")?;
    let numbers: Vec<&str> = limits.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    expect_eq("descriptors of agentd and of a service", &numbers, &vec!["524288", "524288", "1024", "4096"])?;
    expect_eq("agentd's cgroup", &ok(machine, "cat /proc/1/cgroup")?.as_str(), &"0::/init.scope")?;
    ok(machine, "ping -c 1 -W 5 127.0.0.1 2>/dev/null || curl -s http://127.0.0.1:8080/healthz")?;
    let begun = console_lines(machine, "ORDER begin");
    expect_eq("order of the start", &begun, &ordered("begin", ["first", "second", "third"]))
}

fn poweroff(context: &mut Context) -> Result<()> {
    ends(context, |machine| machine.send("agentctl poweroff"), Ending::PowerOff)
}

fn reboot(context: &mut Context) -> Result<()> {
    ends(context, |machine| machine.send("agentctl reboot"), Ending::Reset)
}

fn ctrl_alt_del(context: &mut Context) -> Result<()> {
    ends(context, Machine::ctrl_alt_del, Ending::Reset)
}

fn sigterm(context: &mut Context) -> Result<()> {
    ends(context, |machine| machine.send("kill -TERM 1"), Ending::PowerOff)
}

/// Boots the initramfs, which is the quickest, and ends it.
fn ends(
    context: &mut Context,
    order: impl FnOnce(&mut Machine) -> Result<()>,
    expected: Ending,
) -> Result<()> {
    let spec = context.product_initramfs()?;
    let machine = context.boot(&spec)?;
    order(machine)?;
    let ending = machine.ending()?;
    reverse_order(machine)?;
    expect_eq("no panic", &console_lines(machine, "Kernel panic"), &vec![])?;
    expect_eq("how it ended", &ending, &expected)
}

/// The kernel command line's word `rescue`, from there to the emergency shell, and from that to what is booted
/// otherwise.
fn shells(context: &mut Context) -> Result<()> {
    let mut spec = context.product_disk(|_| Ok(()))?;
    spec.append.push_str(" rescue");
    let machine = context.switch_on(&spec)?;
    let from = shell(machine, 0)?;
    says(
        machine,
        from,
        "agentctl is-active sysinit.target rescue.service multi-user.target | xargs",
        "active active inactive",
    )?;
    let from = machine.console().mark();
    machine.type_line("agentctl emergency")?;
    let from = shell(machine, from)?;
    says(
        machine,
        from,
        "agentctl is-active sysinit.target emergency.service rescue.service | xargs",
        "inactive active inactive",
    )?;
    machine.type_line("exit")?;
    machine.console().wait_for(from, UP, BOOT_TIMEOUT)?;
    machine.wait_ready()?;
    expect_eq("emergency mode is left", &code(machine, "agentctl is-active -q emergency.target")?, &3)
}

/// Takes the shell that sulogin offers on the console.
fn shell(machine: &mut Machine, from: usize) -> Result<usize> {
    machine.console().wait_for(from, "Press Enter for maintenance", BOOT_TIMEOUT)?;
    let from = machine.console().mark();
    // What is typed before sulogin and the shell have set the terminal up, they throw away.
    for attempt in 1.. {
        machine.type_line("")?;
        // Job control is there, so the terminal is the shell's own.
        machine.type_line("set -m; sleep 0 & wait; echo job-$((40 + 2))-$(tty)")?;
        match machine.console().wait_for(from, "job-42-/dev/", ANSWER) {
            Ok(_) => break,
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => {}
        }
    }
    Ok(machine.console().mark())
}

/// How often, and for how long each time, somebody at the console tries.
const ATTEMPTS: u32 = 12;
const ANSWER: Duration = Duration::from_secs(5);

fn says(machine: &mut Machine, from: usize, command: &str, answer: &str) -> Result<()> {
    machine.type_line(command)?;
    machine.console().wait_for(from, answer, COMMAND_TIMEOUT).map(|_| ())
}

fn reverse_order(machine: &mut Machine) -> Result<()> {
    machine.console().wait_end(crate::vm::SHUTDOWN_TIMEOUT)?;
    let ended = console_lines(machine, "ORDER end");
    expect_eq("order of the stop", &ended, &ordered("end", ["third", "second", "first"]))
}

fn ordered(what: &str, names: [&str; 3]) -> Vec<String> {
    names.iter().map(|name| format!("ORDER {what} {name}")).collect()
}
