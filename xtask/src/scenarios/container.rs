//! agentd as PID 1 of a container: private namespaces, no machine of its own.

use std::time::Duration;

use super::context::Context;
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Result};
use crate::vm::SHUTDOWN_TIMEOUT;
use crate::vm::container::Container;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "container::exits-with-the-code-asked-for", run: exit_code },
    Scenario { name: "container::a-runtimes-stop-ends-it-in-reverse-order", run: stopped },
];

fn exit_code(context: &mut Context) -> Result<()> {
    let mut container = context.container()?;
    let answer = container.run("readlink /proc/1/exe; agentctl is-active default.target library.service")?;
    expect_eq("PID 1 and its units", &answer.text.as_str(), &"/usr/bin/agentd\nactive\nactive")?;
    container.run("agentctl --no-block exit 7")?;
    expect_eq("exit code", &ended(&mut container, SHUTDOWN_TIMEOUT)?, &Some(7))
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
