//! `list`, `list-timers`, `list-jobs`.

use std::io::Write;

use agentd_protocol::manager::{Empty, JobInfo, ListUnitsRequest, TimerInfo, UnitSummary};
use agentd_protocol::{ActiveState, LoadState, method};

use crate::args::List;
use crate::client::{ANSWER, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::print::table::{Cell, Table};
use crate::print::{Style, json, one_line};

/// `agentctl list [PATTERN…]`.
pub(crate) fn units(context: &Context, list: &List, out: &mut impl Write) -> Outcome {
    let mut states = list.states.clone();
    states.extend(list.failed.then(|| ActiveState::Failed.as_str().to_owned()));
    // The manager need not look up for each unit what the table does not show.
    let properties = if context.is_json() { &[][..] } else { &SHOWN };
    let request = ListUnitsRequest {
        types: list.types.clone(),
        states,
        patterns: list.patterns.clone(),
        all: list.all,
        properties: properties.iter().map(ToString::to_string).collect(),
    };
    let mut units = Vec::new();
    context.connect()?.stream::<method::ListUnits, ClientError>(&request, Some(ANSWER), |page| {
        units.extend(page.units);
        Ok(())
    })?;
    if context.is_json() {
        json(&units, out)?;
    } else {
        write_units(context, &units, list.all, out)?;
    }
    Ok(Exit::Done)
}

/// The properties of the table.
const SHOWN: [&str; 6] = ["Id", "LoadState", "ActiveState", "SubState", "Job", "Description"];

fn write_units(
    context: &Context,
    units: &[UnitSummary],
    all: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut table = Table::new([" ", "UNIT", "LOAD", "ACTIVE", "SUB", "JOB", "DESCRIPTION"]);
    for unit in units {
        table.row(unit_row(unit));
    }
    let hint = if all { "" } else { " Pass --all to see loaded but inactive units, too." };
    write(context, &table, ["unit", "units"], hint, out)
}

/// A list as every verb prints it: the table, an empty line, and how many there are of what, with a hint behind it.
pub(super) fn write<const N: usize>(
    context: &Context,
    table: &Table<N>,
    [one, many]: [&str; 2],
    hint: &str,
    out: &mut impl Write,
) -> std::io::Result<()> {
    table.write_rows(context.style, context.legend, out)?;
    if context.quiet || !context.legend {
        return Ok(());
    }
    let gap = if table.len() == 0 { "" } else { "\n" };
    let what = if table.len() == 1 { one } else { many };
    writeln!(out, "{gap}{} {what} listed.{hint}", table.len())
}

fn unit_row(unit: &UnitSummary) -> [Cell; 7] {
    let failed = unit.active_state == ActiveState::Failed;
    let unloaded = !matches!(unit.load_state, LoadState::Loaded | LoadState::Masked);
    let dot = if failed || unloaded { Style::dot(unit.active_state).to_string() } else { String::new() };
    [
        Cell::bad(dot, failed),
        one_line(&unit.id).into_owned().into(),
        Cell::bad(unit.load_state.as_str(), unloaded),
        Cell::bad(unit.active_state.as_str(), failed),
        Cell::bad(one_line(&unit.sub_state), failed),
        unit.job.as_ref().map_or_else(|| "".into(), |job| one_line(&job.kind).into_owned().into()),
        one_line(&unit.description).into_owned().into(),
    ]
}

/// `agentctl list-timers`.
pub(crate) fn timers(context: &Context, out: &mut impl Write) -> Outcome {
    let timers = context.connect()?.call::<method::ListTimers>(&Empty {}, Some(ANSWER))?.timers;
    if context.is_json() {
        json(&timers, out)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["NEXT", "LEFT", "LAST", "PASSED", "SKIPPED", "UNIT", "ACTIVATES"]);
    for timer in &timers {
        table.row(timer_row(context, timer));
    }
    write(context, &table, ["timer", "timers"], "", out)?;
    Ok(Exit::Done)
}

fn timer_row(context: &Context, timer: &TimerInfo) -> [Cell; 7] {
    let clock = &context.clock;
    let time = |micros: u64, show: &dyn Fn(u64) -> String| match micros {
        0 => "-".into(),
        micros => show(micros).into(),
    };
    [
        time(timer.next_elapse_usec, &|micros| clock.point(micros)),
        time(timer.next_elapse_usec, &|micros| clock.relative(micros)),
        time(timer.last_trigger_usec, &|micros| clock.point(micros)),
        time(timer.last_trigger_usec, &|micros| clock.relative(micros)),
        timer.skipped.to_string().into(),
        one_line(&timer.id).into_owned().into(),
        one_line(&timer.unit).into_owned().into(),
    ]
}

/// `agentctl list-jobs`.
pub(crate) fn jobs(context: &Context, out: &mut impl Write) -> Outcome {
    let jobs = context.connect()?.call::<method::ListJobs>(&Empty {}, Some(ANSWER))?.jobs;
    if context.is_json() {
        json(&jobs, out)?;
    } else if jobs.is_empty() {
        if !context.quiet && context.legend {
            writeln!(out, "No jobs running.")?;
        }
    } else {
        let mut table = Table::new(["JOB", "UNIT", "TYPE", "STATE", "WAITS FOR"]);
        for job in &jobs {
            table.row(job_row(job));
        }
        write(context, &table, ["job", "jobs"], "", out)?;
    }
    Ok(Exit::Done)
}

fn job_row(job: &JobInfo) -> [Cell; 5] {
    [
        job.id.to_string().into(),
        one_line(&job.unit).into_owned().into(),
        one_line(&job.kind).into_owned().into(),
        job.state.as_str().into(),
        one_line(&job.waits_for.join(" ")).into_owned().into(),
    ]
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
