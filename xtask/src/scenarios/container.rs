//! agentd as PID 1 of a container: private namespaces, no machine of its own.

use std::time::Duration;

use super::context::Context;
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Result};
use crate::vm::container::Container;
use crate::vm::{COMMAND_TIMEOUT, SHUTDOWN_TIMEOUT};

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "container::exits-with-the-code-asked-for", run: exit_code },
    Scenario { name: "container::an-agent-that-beats-is-left-alone", run: beats },
    Scenario { name: "container::a-runtimes-stop-ends-it-in-reverse-order", run: stopped },
];

fn exit_code(context: &mut Context) -> Result<()> {
    let mut container = context.container()?;
    let answer = container.run("readlink /proc/1/exe; agentctl is-active default.target library.service")?;
    expect_eq("PID 1 and its units", &answer.text.as_str(), &"/usr/bin/agentd\nactive\nactive")?;
    container.run("agentctl --no-block exit 7")?;
    expect_eq("exit code", &ended(&mut container, SHUTDOWN_TIMEOUT)?, &Some(7))
}

/// Its namespaces are not the manager's host's, and its beats arrive all the same, longer than its WatchdogSec of 8 s.
fn beats(context: &mut Context) -> Result<()> {
    let mut container = context.container()?;
    let started = container.run("agentctl start stuck.service ticker.timer")?;
    expect_eq("start", &started.text.as_str(), &"")?;
    container.console().wait(0, COMMAND_TIMEOUT, "six ticks, two seconds apart", |text| {
        (text.matches("TICK").count() >= 6).then_some(())
    })?;
    let restarts = container.run("agentctl show --value -p NRestarts stuck.service")?;
    expect_eq("NRestarts", &restarts.text.as_str(), &"0")
}

/// SIGTERM is what container runtimes send.
fn stopped(context: &mut Context) -> Result<()> {
    let mut container = context.container()?;
    container.signal("TERM")?;
    expect_eq("exit code", &ended(&mut container, SHUTDOWN_TIMEOUT)?, &Some(0))?;
    let text = container.console().text();
    let ends: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("ORDER end ")).map(|(_, n)| n).collect();
    expect_eq("order of the stop", &ends, &vec!["third", "second", "first"])
}

fn ended(container: &mut Container, timeout: Duration) -> Result<Option<i32>> {
    let status = container.ending(timeout);
    let console = container.console().text();
    if status.is_err() {
        println!("---- console of the container\n{console}----");
    }
    let status = status.during(|| "agentd was told to end".into())?;
    expect(!console.contains("panicked"), || format!("agentd panicked:\n{console}"))?;
    Ok(status.code())
}
