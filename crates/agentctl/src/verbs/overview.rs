//! The manager as a whole: `status` without a unit, and `version`.

use std::io::{self, Write};

use agentd_protocol::manager::{Empty, ListUnitsRequest, ManagerStatus, UnitSummary};
use agentd_protocol::text::cut;
use agentd_protocol::words::SystemState;
use agentd_protocol::{ActiveState, method};
use serde::Serialize;

use crate::client::{ANSWER, Client, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::print::{Style, json, one_line};
use crate::verbs::act::problem_line;

/// How many failed units and problems are shown; there may be thousands.
const SHOWN: usize = 20;

/// What `status -o json` prints for the manager.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Overview {
    #[serde(flatten)]
    status: ManagerStatus,
    failed_units: Vec<UnitSummary>,
}

/// `agentctl status`: 0 as long as the manager answers, as with systemctl.
pub(crate) fn overview(context: &Context, out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let status = client.call::<method::GetStatus>(&Empty {}, Some(ANSWER))?;
    // To ask for units of which there is none would be one more way there and back.
    let failed_units = if status.n_failed_units == 0 { Vec::new() } else { failed(&mut client)? };
    let overview = Overview { status, failed_units };
    if context.is_json() {
        json(&overview, out)?
    } else {
        write(context, &overview, out)?
    }
    Ok(Exit::Done)
}

/// `agentctl is-system-running`: a word, and 0 only for `running`.
pub(crate) fn is_system_running(context: &Context, out: &mut impl Write) -> Outcome {
    let status = context.connect()?.call::<method::GetStatus>(&Empty {}, Some(ANSWER))?;
    if context.is_json() {
        json(&serde_json::json!({ "SystemState": status.system_state }), out)?;
    } else if !context.quiet {
        writeln!(out, "{}", status.system_state)?;
    }
    Ok(if status.system_state == SystemState::Running { Exit::Done } else { Exit::Failed })
}

fn failed(client: &mut Client) -> Result<Vec<UnitSummary>, ClientError> {
    let request = ListUnitsRequest {
        states: vec![ActiveState::Failed.to_string()],
        all: true,
        ..ListUnitsRequest::default()
    };
    let mut units = Vec::new();
    client.stream::<method::ListUnits, ClientError>(&request, Some(ANSWER), |page| {
        units.extend(page.units);
        Ok(())
    })?;
    Ok(units)
}

fn write(context: &Context, overview: &Overview, out: &mut impl Write) -> io::Result<()> {
    let (status, clock, style) = (&overview.status, &context.clock, context.style);
    let state = match status.system_state {
        SystemState::Running => ActiveState::Active,
        SystemState::Degraded => ActiveState::Failed,
        SystemState::Starting => ActiveState::Activating,
        SystemState::Stopping => ActiveState::Deactivating,
    };
    let name = if status.hostname.is_empty() { "agentd" } else { &status.hostname };
    writeln!(out, "{} {}", style.state(state, Style::dot(state)), one_line(name))?;
    let since = match status.startup_timestamp {
        0 => "n/a".to_owned(),
        at => format!("{}; {}", clock.point(at), clock.relative(at)),
    };
    for (label, value) in [
        ("State", style.state(state, status.system_state).to_string()),
        ("Units", format!("{} loaded", status.n_units)),
        ("Jobs", format!("{} queued", status.n_jobs)),
        ("Failed", format!("{} units", status.n_failed_units)),
        ("Since", since),
        ("agentd", format!("{} ({} manager, PID {})", status.version, status.scope, status.pid)),
        ("Trust", trust(status)),
        ("Limits", limits(status)),
        ("Orphans", format!("{} reaped", status.n_reaped_orphans)),
        ("CGroup", status.control_group.clone()),
    ] {
        if !value.is_empty() {
            writeln!(
                out,
                "{label:>11}: {}",
                if label == "State" { value } else { one_line(&value).into_owned() }
            )?;
        }
    }
    write_wrongs(context, overview, out)
}

fn trust(status: &ManagerStatus) -> String {
    match status.key_ids.len() {
        1 => format!("{}, 1 key", status.trust_policy),
        count => format!("{}, {count} keys", status.trust_policy),
    }
}

fn limits(status: &ManagerStatus) -> String {
    match status.enforced_limits.as_slice() {
        [] => "none is enforced here".to_owned(),
        some => format!("{} are enforced", some.join(", ")),
    }
}

/// What asks for attention, below the page.
fn write_wrongs(context: &Context, overview: &Overview, out: &mut impl Write) -> io::Result<()> {
    let style = context.style;
    let status = &overview.status;
    let missing = status.missing.iter().map(|text| format!("Warning: {text}"));
    let problems = status.problems.iter().map(|problem| format!("Warning: {}", problem_line(problem)));
    let failed = overview
        .failed_units
        .iter()
        .map(|unit| format!("× {} - {} (Result: {})", unit.id, cut(&unit.description, 200), unit.result));
    for (lines, bad) in [
        (missing.collect::<Vec<_>>(), false),
        (problems.collect::<Vec<_>>(), false),
        (failed.collect::<Vec<_>>(), true),
    ] {
        if !lines.is_empty() {
            writeln!(out)?;
        }
        for line in lines.iter().take(SHOWN) {
            let line = one_line(line);
            let line = if bad { style.bad(line) } else { style.warning(line) };
            writeln!(out, "{line}")?;
        }
        if lines.len() > SHOWN {
            writeln!(out, "({} more)", lines.len() - SHOWN)?;
        }
    }
    Ok(())
}

/// `agentctl version`: a manager that is not there is no failure of this verb.
pub(crate) fn version(context: &Context, out: &mut impl Write) -> Outcome {
    #[derive(Serialize)]
    struct Versions {
        agentctl: &'static str,
        agentd: Option<String>,
    }
    let ask = || context.connect()?.call::<method::GetStatus>(&Empty {}, Some(ANSWER));
    let answer = ask();
    let agentctl = env!("CARGO_PKG_VERSION");
    if context.is_json() {
        json(&Versions { agentctl, agentd: answer.ok().map(|status| status.version) }, out)?;
        return Ok(Exit::Done);
    }
    writeln!(out, "agentctl {agentctl}")?;
    match answer {
        Ok(status) => writeln!(out, "agentd {}", one_line(&status.version))?,
        Err(error) => writeln!(out, "agentd: {}", crate::report::with_causes(&error))?,
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    use agentd_protocol::manager::Problem;

    use crate::args::Format;
    use crate::print::time::Clock;

    /// Sun 2026-11-29 16:47:00 UTC.
    const NOW: u64 = 1_795_970_820_000_000;

    #[test]
    fn the_overview_names_what_asks_for_attention() {
        let status = ManagerStatus {
            version: "1.2.3".into(),
            pid: 1,
            scope: "system".into(),
            system_state: SystemState::Degraded,
            hostname: "box".into(),
            startup_timestamp: NOW - 60_000_000,
            n_units: 12,
            n_failed_units: 1,
            trust_policy: "enforce".into(),
            key_ids: vec!["0123456789abcdef".into()],
            enforced_limits: vec!["MemoryMax".into(), "TasksMax".into()],
            missing: vec!["CPUQuota is not enforced: controller cpu is missing".into()],
            problems: vec![Problem { message: "/u/x: is a folder".into(), ..Problem::default() }],
            ..ManagerStatus::default()
        };
        let failed_units = vec![UnitSummary {
            id: "a.service".into(),
            description: "About a".into(),
            result: "exit-code".into(),
            ..UnitSummary::default()
        }];
        let context = Context {
            socket: "/run/agentd/control.sock".into(),
            user: false,
            format: Format::Text,
            wait: true,
            quiet: false,
            legend: true,
            style: Style::PLAIN,
            clock: Clock::fixed(NOW),
        };
        let mut out = Vec::new();
        write(&context, &Overview { status, failed_units }, &mut out).unwrap();
        let expected = "\
× box
      State: degraded
      Units: 12 loaded
       Jobs: 0 queued
     Failed: 1 units
      Since: Sun 2026-11-29 16:46:00 UTC; 1min 0s ago
     agentd: 1.2.3 (system manager, PID 1)
      Trust: enforce, 1 key
     Limits: MemoryMax, TasksMax are enforced
    Orphans: 0 reaped

Warning: CPUQuota is not enforced: controller cpu is missing

Warning: /u/x: is a folder

× a.service - About a (Result: exit-code)
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
