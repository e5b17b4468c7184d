//! Programs that know nothing of agentd: Debian's journald and redis as units.

use serde_json::Value;

use super::context::Context;
use super::guest::{active, ok, show};
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
    let lines = journal(machine, "library.service")?;
    expect(lines.iter().any(|line| line["_SYSTEMD_UNIT"] == "library.service"), || {
        format!("no line is of _SYSTEMD_UNIT=library.service: {lines:?}")
    })?;
    let managers: Vec<&Value> = lines.iter().filter(|line| line["_PID"] == "1").collect();
    let invocation = show(machine, "library.service")?["InvocationID"].clone();
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
    // What comes while it is followed is seen: the restart's own line ends the wait.
    let follow = "timeout 60 agentctl logs -f -n 0 library.service | grep -m 1 'Stopping library' & \
                  sleep 2; agentctl restart library.service && wait $!";
    let seen = ok(machine, follow)?;
    expect(seen.contains("Stopping library"), || format!("logs -f shows no new line: {seen:?}"))
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
