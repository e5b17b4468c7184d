//! Programs that know nothing of agentd: Debian's journald and redis as units.

use serde_json::Value;

use super::context::Context;
use super::guest::{active, ok, show, until};
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Error, Result};
use crate::vm::Machine;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::redis-runs-as-a-notify-service", run: redis },
    Scenario { name: "vm::journald-has-the-lines-of-agents-and-manager", run: journald },
];

fn redis(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    active(machine, &["redis-server.service"])?;
    expect_eq("PING", &ok(machine, "redis-cli ping")?.as_str(), &"PONG")?;
    let properties = show(machine, "redis-server.service")?;
    let status = properties["StatusText"].as_str().unwrap_or_default();
    expect(status.contains("Ready"), || format!("STATUS= did not arrive: {properties}"))
}

fn journald(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    active(machine, &["systemd-journald.service"])?;
    // It takes what it is sent in its own time.
    let invocation = show(machine, "library.service")?["InvocationID"].clone();
    let invocation = invocation.as_str().unwrap_or_default();
    until(machine, &format!("journalctl -q -n 1 INVOCATION_ID={invocation} | grep ."))?;
    let lines = journal(machine, "library.service")?;
    expect(lines.iter().any(|line| line["_SYSTEMD_UNIT"] == "library.service"), || {
        format!("no line is of _SYSTEMD_UNIT=library.service: {lines:?}")
    })?;
    let managers: Vec<&Value> = lines.iter().filter(|line| line["_PID"] == "1").collect();
    let Some(line) = managers.iter().find(|line| line["INVOCATION_ID"] == invocation) else {
        return Err(Error::new(format!("no line of the manager has this INVOCATION_ID: {managers:?}")));
    };
    expect_eq("UNIT", &line["UNIT"].as_str(), &Some("library.service"))?;
    for field in ["MESSAGE", "PRIORITY", "CODE_FILE", "CODE_LINE", "SYSLOG_IDENTIFIER"] {
        expect(line[field].is_string(), || format!("the manager's line has no {field}: {line}"))?;
    }
    let logs = ok(machine, "agentctl logs -n 5 library.service")?;
    expect(!logs.is_empty(), || "agentctl logs prints nothing".into())?;
    once(machine, "agentctl logs library.service")?;
    // What comes while it is followed is seen: it is followed once its last line is shown.
    let follow = "agentctl logs -f -n 1 library.service >>/run/followed 2>&1 & echo $! >/run/follower";
    ok(machine, &format!("rm -f /run/followed; {follow}"))?;
    until(machine, "test -s /run/followed")?;
    ok(machine, "echo -- >>/run/followed; agentctl restart library.service")?;
    until(machine, "sed 1,/^--/d /run/followed | grep 'Stopping library'")?;
    ok(machine, "kill $(cat /run/follower)").map(|_| ())
}

/// Each line of the manager is in both logs and is shown once.
fn once(machine: &mut Machine, command: &str) -> Result<()> {
    let text = ok(machine, command)?;
    let started = text.lines().filter(|line| line.contains("Started library")).count();
    let runs = 1 + show(machine, "library.service")?["NRestarts"].as_u64().unwrap_or(0);
    expect(started as u64 <= runs && started > 0, || {
        format!("'Started library' stands {started} times for {runs} runs:\n{text}")
    })
}

/// What journalctl finds for a unit.
fn journal(machine: &mut Machine, unit: &str) -> Result<Vec<Value>> {
    let text = ok(machine, &format!("journalctl -a -o json --no-pager -u {unit}"))?;
    text.lines()
        .map(|line| serde_json::from_str(line).during(|| format!("journalctl prints no JSON: {line}")))
        .collect()
}
