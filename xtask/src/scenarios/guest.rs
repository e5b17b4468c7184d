//! Steps that many scenarios take in a guest.

use serde_json::Value;

use crate::error::{During, Error, Result};
use crate::vm::{COMMAND_TIMEOUT, Machine};

/// Runs a command that must succeed, and returns what it wrote.
///
/// # Errors
/// It fails, or does not end.
pub fn ok(machine: &mut Machine, command: &str) -> Result<String> {
    let answer = machine.run(command)?;
    if answer.code == 0 {
        return Ok(answer.text);
    }
    Err(Error::new(format!("in the guest, {command} exits with {}:\n{}", answer.code, answer.text)))
}

/// How long a command that is tried again and again may fail, in seconds: less than one command of ours may take.
pub const PATIENCE: u32 = 50;

/// A command as Debian's own shell runs it: the one that commands are given to takes its own programs for those of the same
/// name in the image.
#[must_use]
pub fn by_bash(command: &str) -> String {
    format!("bash -c '{}'", command.replace('\'', "'\\''"))
}

/// Waits until a command succeeds, in an image that has bash; what it says at last is told if it does not.
///
/// # Errors
/// It fails for as long as [`PATIENCE`].
pub fn until(machine: &mut Machine, command: &str) -> Result<()> {
    let wait = by_bash(&format!("until ( {command} ) >/tmp/why 2>&1; do sleep 0.2; done"));
    ok(machine, &format!("timeout {PATIENCE} {wait} || {{ cat /tmp/why; false; }}")).map(|_| ())
}

/// All of these units are active.
///
/// # Errors
/// One is not.
pub fn active(machine: &mut Machine, units: &[&str]) -> Result<()> {
    units.iter().try_for_each(|unit| ok(machine, &format!("agentctl is-active {unit}")).map(|_| ()))
}

/// Runs a command that may fail, and returns its exit code.
///
/// # Errors
/// It does not end.
pub fn code(machine: &mut Machine, command: &str) -> Result<u8> {
    machine.run(command).map(|answer| answer.code)
}

/// The properties of a unit, as `agentctl show -o json` tells them.
///
/// # Errors
/// There is no such unit, or the answer is no JSON.
pub fn show(machine: &mut Machine, unit: &str) -> Result<Value> {
    let text = ok(machine, &format!("agentctl show -o json {unit}"))?;
    let value: Value =
        serde_json::from_str(&text).during(|| format!("agentctl show prints no JSON:\n{text}"))?;
    Ok(value.as_array().and_then(|list| list.first().cloned()).unwrap_or(value))
}

/// The whole lines on the console, from a mark on, that contain a word.
#[must_use]
pub fn console_lines(machine: &Machine, word: &str) -> Vec<String> {
    machine.console().text().lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
}

/// Does something and waits for the line on the console that follows from it.
///
/// # Errors
/// The line does not come in time.
pub fn then_console(
    machine: &mut Machine,
    step: impl FnOnce(&mut Machine) -> Result<()>,
    line: &str,
) -> Result<String> {
    let mark = machine.console().mark();
    step(machine)?;
    machine.console().wait_for(mark, line, COMMAND_TIMEOUT)
}
