//! Agents at work, killed, hung, given up.

use serde_json::Value;

use super::context::Context;
use super::guest::{code, console_lines, ok, show, then_console};
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Result};
use crate::vm::{COMMAND_TIMEOUT, Machine};

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::a-document-goes-through-both-agents", run: document },
    Scenario { name: "vm::a-killed-agent-comes-back-and-works-on", run: killed },
    Scenario { name: "vm::a-stopped-agent-stays-stopped", run: stopped },
    Scenario { name: "vm::a-hung-agent-is-killed-with-its-tree-and-comes-back", run: hung },
    Scenario { name: "vm::a-hopeless-unit-is-given-up-once", run: hopeless },
];

/// `StartLimitBurst` of hopeless.service, and the start by hand, which spends none of them.
const TRIES: usize = 4;

const TEXT: &str =
    "The ferry left the harbour at noon. The ferry carried sixty cars. A storm turned it back.";

fn document(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    summarize(machine, "first").map(|_| ())
}

/// Sends a text to the Go agent and waits for what the Python agent makes of it.
fn summarize(machine: &mut Machine, name: &str) -> Result<Value> {
    let post = format!(
        "curl -sSf --data-binary '{TEXT} This is the {name} tale.' 'http://127.0.0.1:8080/documents?name={name}'"
    );
    let document = json(&ok(machine, &post)?)?;
    let id = document["id"].as_str().map_or_else(|| document["id"].to_string(), str::to_owned);
    let get = format!("curl -sSf 'http://127.0.0.1:8080/documents/{id}/summary?wait=30s'");
    let summary = json(&ok(machine, &get)?)?;
    expect(summary.to_string().contains("ferry"), || format!("the summary of {id} says nothing: {summary}"))?;
    Ok(summary)
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).during(|| format!("the agent answers with no JSON: {text}"))
}

fn killed(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    let before = show(machine, "summarizer.service")?;
    ok(machine, "agentctl kill --signal SIGKILL summarizer.service")?;
    // Only its next life can answer this one: the text is new.
    summarize(machine, "second")?;
    let after = show(machine, "summarizer.service")?;
    expect_eq("ActiveState", &after["ActiveState"].as_str(), &Some("active"))?;
    expect(before["MainPID"] != after["MainPID"], || format!("still {}", after["MainPID"]))?;
    expect(before["InvocationID"] != after["InvocationID"], || "the same invocation".into())?;
    expect_eq("the Go agent went on", &show(machine, "library.service")?["NRestarts"].as_u64(), &Some(0))
}

fn stopped(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    ok(machine, "agentctl stop summarizer.service")?;
    expect_eq("is-active", &code(machine, "agentctl is-active summarizer.service")?, &3)?;
    let properties = show(machine, "summarizer.service")?;
    expect_eq("Result", &properties["Result"].as_str(), &Some("success"))?;
    expect_eq("ActiveState", &properties["ActiveState"].as_str(), &Some("inactive"))?;
    ok(machine, "agentctl start summarizer.service && agentctl is-active summarizer.service").map(|_| ())
}

fn hung(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    let born = then_console(machine, |m| ok(m, "agentctl start stuck.service").map(|_| ()), "STUCK lives")?;
    let mark = machine.console().mark();
    let stop = |m: &mut Machine| ok(m, "agentctl kill --kill-whom main --signal SIGSTOP stuck.service");
    then_console(machine, |m| stop(m).map(|_| ()), "STUCK lives")?;
    let child = born.rsplit(' ').next().unwrap_or_default();
    expect_eq("the child of its first life", &code(machine, &format!("kill -0 {child} 2>/dev/null"))?, &1)?;
    let since = machine.console().text().split_off(mark);
    expect(since.to_lowercase().contains("watchdog"), || format!("nothing tells of the watchdog:\n{since}"))?;
    expect_eq("NRestarts", &show(machine, "stuck.service")?["NRestarts"].as_u64(), &Some(1))?;
    ok(machine, "agentctl stop stuck.service").map(|_| ())
}

fn hopeless(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    let start = |m: &mut Machine| m.run("agentctl start hopeless.service").map(|_| ());
    then_console(machine, start, "LAST WORDS")?;
    expect_eq("tries", &console_lines(machine, "HOPELESS tries").len(), &TRIES)?;
    expect_eq("is-failed", &code(machine, "agentctl is-failed hopeless.service")?, &0)?;
    let properties = show(machine, "hopeless.service")?;
    expect_eq("ExecMainStatus", &properties["ExecMainStatus"].as_u64(), &Some(7))?;
    // Had it been tried again, the console would tell within the longest delay; the timer of one second is a witness.
    let mark = machine.console().mark();
    ok(machine, "agentctl start ticker.timer")?;
    for _ in 0..2 {
        machine.console().wait_for(mark, "TICK", COMMAND_TIMEOUT)?;
    }
    ok(machine, "agentctl stop ticker.timer")?;
    expect_eq("last words", &console_lines(machine, "LAST WORDS").len(), &1)?;
    expect_eq("tries after giving up", &console_lines(machine, "HOPELESS tries").len(), &TRIES)?;
    ok(machine, "agentctl reset-failed hopeless.service").map(|_| ())
}
