//! `apply`: what changed on disk comes into force, and nothing else is touched.

use std::io::{self, Write};

use agentd_protocol::manager::{Empty, PlannedChange, Problem};
use agentd_protocol::words::PlannedAction;
use agentd_protocol::{JobMode, Method, method};
use agentd_unit::UnitName;
use serde::Serialize;

use super::act::problem_line;
use super::jobs::{self, Report};
use crate::args::definitions::Apply;
use crate::client::RELOAD;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{json, one_line};

/// What `apply` prints with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Applied {
    plan: Vec<PlannedChange>,
    problems: Vec<Problem>,
    jobs: Vec<Report>,
}

/// `agentctl apply [--dry-run]`: 1 if something could not be used or a job failed.
pub(crate) fn apply(context: &Context, apply: &Apply, out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let plan = client.call::<method::PlanReload>(&Empty {}, Some(RELOAD))?;
    if !context.is_json() {
        write_plan(context, &plan.changes, out)?;
        // What follows may take its time.
        out.flush()?;
    }
    let mut applied = Applied { plan: plan.changes, problems: plan.problems, jobs: Vec::new() };
    let is_kept = |change: &PlannedChange| change.action == PlannedAction::Keep;
    let mut exit = if applied.plan.iter().any(is_kept) { Exit::Failed } else { Exit::Done };
    if !apply.dry_run {
        applied.problems = client.call::<method::Reload>(&Empty {}, Some(RELOAD))?.problems;
        exit = exit.max(run::<method::StopUnit>(context, PlannedAction::Stop, &mut applied)?);
        exit = exit.max(run::<method::RestartUnit>(context, PlannedAction::Restart, &mut applied)?);
        exit = exit.max(run::<method::StartUnit>(context, PlannedAction::Start, &mut applied)?);
    }
    if context.is_json() {
        json(&applied, out)?;
    } else {
        for problem in &applied.problems {
            eprintln!("Warning: {}", problem_line(problem));
        }
    }
    Ok(exit)
}

/// The jobs of one kind, all at once.
fn run<M>(context: &Context, action: PlannedAction, applied: &mut Applied) -> Result<Exit, Failure>
where
    M: Method<Parameters = agentd_protocol::manager::JobRequest, Reply = agentd_protocol::manager::JobReply>,
{
    let of_kind = applied.plan.iter().filter(|change| change.action == action);
    let units: Vec<UnitName> = of_kind.filter_map(|change| UnitName::parse(&change.unit).ok()).collect();
    let (exit, reports) = jobs::carry_out::<M>(context, action.as_str(), &units, JobMode::Replace)?;
    applied.jobs.extend(reports);
    Ok(exit)
}

fn write_plan(context: &Context, changes: &[PlannedChange], out: &mut impl Write) -> io::Result<()> {
    if changes.is_empty() && !context.quiet {
        return writeln!(out, "Nothing has changed.");
    }
    let width = changes.iter().map(|change| change.unit.chars().count()).max().unwrap_or(0);
    for change in changes {
        let (action, unit) = (change.action.as_str(), one_line(&change.unit));
        let line = format!("{action:7} {unit:width$}  {}", one_line(&change.reason));
        match change.action {
            PlannedAction::Keep => writeln!(out, "{}", context.style.bad(line))?,
            _ => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}
