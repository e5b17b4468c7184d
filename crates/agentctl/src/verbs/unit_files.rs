//! `enable`, `disable`, `mask`, `unmask`, `is-enabled`, `list-unit-files`: what is part of what boots.

use std::io::Write;

use agentd_protocol::unit::UnitRequest;
use agentd_protocol::unit_files::{
    FileChange, ListUnitFilesRequest, SetPropertiesRequest, UnitFileInfo, UnitFilesReply, UnitFilesRequest,
};
use agentd_protocol::words::{FileChangeKind, UnitFileState};
use agentd_protocol::{CallError, JobMode, Method, method};
use agentd_unit::UnitName;
use serde::Serialize;

use super::act::problem_line;
use super::jobs::{self, Report};
use super::list as list_verb;
use crate::args::files::{ListUnitFiles, Mark, SetProperty, Unmask};
use crate::client::{ANSWER, ClientError, RELOAD};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::table::{Cell, Table};
use crate::print::{json, one_line};
use crate::report::only_this_unit;

/// What `enable` and its kin print with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Marked<'a> {
    changes: &'a [FileChange],
    units: &'a [String],
    without_install: &'a [String],
    problems: &'a [agentd_protocol::manager::Problem],
    jobs: Vec<Report>,
}

/// `agentctl enable UNIT…`.
pub(crate) fn enable(context: &Context, mark: &Mark, out: &mut impl Write) -> Outcome {
    let reply = ask::<method::EnableUnitFiles>(context, "enable", &mark.units, mark.runtime)?;
    let (exit, jobs) = if mark.now {
        jobs::carry_out::<method::StartUnit>(context, "start", &names(&reply)?, JobMode::Replace)?
    } else {
        (Exit::Done, Vec::new())
    };
    tell(context, &reply, jobs, out)?;
    Ok(exit)
}

/// `agentctl disable UNIT…`.
pub(crate) fn disable(context: &Context, mark: &Mark, out: &mut impl Write) -> Outcome {
    let reply = ask::<method::DisableUnitFiles>(context, "disable", &mark.units, mark.runtime)?;
    stop_now(context, mark.now, &reply, out)
}

/// `agentctl mask UNIT…`.
pub(crate) fn mask(context: &Context, mark: &Mark, out: &mut impl Write) -> Outcome {
    let reply = ask::<method::MaskUnitFiles>(context, "mask", &mark.units, mark.runtime)?;
    stop_now(context, mark.now, &reply, out)
}

/// `agentctl unmask UNIT…`.
pub(crate) fn unmask(context: &Context, unmask: &Unmask, out: &mut impl Write) -> Outcome {
    let reply = ask::<method::UnmaskUnitFiles>(context, "unmask", &unmask.units, unmask.runtime)?;
    tell(context, &reply, Vec::new(), out)?;
    Ok(Exit::Done)
}

/// `agentctl set-property UNIT KEY=VALUE…`.
pub(crate) fn set_property(context: &Context, set: &SetProperty, out: &mut impl Write) -> Outcome {
    let request = SetPropertiesRequest {
        unit: set.unit.to_string(),
        properties: set.properties.clone(),
        runtime: set.runtime,
    };
    let reply = context.connect()?.call::<method::SetProperties>(&request, Some(RELOAD));
    tell(context, &reply.map_err(|error| nothing_done("set properties", error))?, Vec::new(), out)?;
    Ok(Exit::Done)
}

/// Sends the request. That nothing was done, and why, is told in one sentence; systemctl's exit code for it is 1.
fn ask<M>(context: &Context, verb: &str, units: &[UnitName], runtime: bool) -> Result<UnitFilesReply, Failure>
where
    M: Method<Parameters = UnitFilesRequest, Reply = UnitFilesReply>,
{
    let request = UnitFilesRequest { units: units.iter().map(UnitName::to_string).collect(), runtime };
    context.connect()?.call::<M>(&request, Some(RELOAD)).map_err(|error| nothing_done(verb, error))
}

fn nothing_done(verb: &str, error: ClientError) -> Failure {
    match error {
        ClientError::Call(error) => {
            let exit = match error {
                CallError::NotPermitted { .. } => Exit::NoSuchUnit,
                _ => Exit::Failed,
            };
            Failure::Other { exit, message: format!("cannot {verb}: {}", one_line(&error.to_string())) }
        }
        other => Failure::Client(other),
    }
}

fn stop_now(context: &Context, now: bool, reply: &UnitFilesReply, out: &mut impl Write) -> Outcome {
    let mut units = names(reply)?;
    let (mut exit, mut jobs) = (Exit::Done, Vec::new());
    if now {
        // What is not loaded does not run.
        let mut client = context.connect()?;
        let mut known = Vec::new();
        for unit in units.drain(..) {
            let properties = crate::context::properties(&mut client, &unit);
            if !matches!(properties, Err(ClientError::Call(CallError::NoSuchUnit { .. }))) {
                known.push(unit);
            }
        }
        (exit, jobs) = jobs::carry_out::<method::StopUnit>(context, "stop", &known, JobMode::Replace)?;
    }
    tell(context, reply, jobs, out)?;
    Ok(exit)
}

fn names(reply: &UnitFilesReply) -> Result<Vec<UnitName>, Failure> {
    let name = |unit: &String| {
        UnitName::parse(unit)
            .map_err(|error| Failure::Other { exit: Exit::Failed, message: error.to_string() })
    };
    reply.units.iter().chain(&reply.without_install).map(name).collect()
}

fn tell(
    context: &Context,
    reply: &UnitFilesReply,
    jobs: Vec<Report>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    for problem in &reply.problems {
        eprintln!("Warning: {}", problem_line(problem));
    }
    if context.is_json() {
        let UnitFilesReply { changes, units, without_install, problems } = reply;
        json(&Marked { changes, units, without_install, problems, jobs }, out)?;
        return Ok(());
    }
    if context.quiet {
        return Ok(());
    }
    for change in &reply.changes {
        writeln!(out, "{}", change_line(change))?;
    }
    for unit in &reply.without_install {
        eprintln!(
            "{unit} has no [Install] section, so it cannot be enabled or disabled: it starts when a unit that \
             wants or requires it starts, by a timer, or by hand. Write [Install] WantedBy = [\"multi-user.target\"] \
             into its file to have it started at boot."
        );
    }
    Ok(())
}

fn change_line(change: &FileChange) -> String {
    let path = one_line(&change.path);
    match (change.kind, &change.target) {
        (FileChangeKind::Created, Some(target)) => {
            format!("Created symlink {path} -> {}.", one_line(target))
        }
        (FileChangeKind::Created, None) => format!("Created {path}."),
        (FileChangeKind::Removed, _) => format!("Removed {path}."),
    }
}

/// What `is-enabled` prints for each unit with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    id: String,
    unit_file_state: Option<UnitFileState>,
}

/// `agentctl is-enabled UNIT…`: 0 if one of them is enabled or needs not be; else 1, or 4 if none of them is there.
pub(crate) fn is_enabled(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let mut answers = Vec::new();
    for unit in units {
        let request = UnitRequest { unit: unit.to_string() };
        let answer = client.call::<method::GetUnitFileState>(&request, Some(ANSWER));
        let unit_file_state = match answer.map_err(only_this_unit) {
            Ok(reply) => Some(reply.file.unit_file_state),
            Err(error) => match error? {
                CallError::NoSuchUnit { .. } => None,
                other => return Err(ClientError::Call(other).into()),
            },
        };
        answers.push(Answer { id: unit.to_string(), unit_file_state });
    }
    if context.is_json() {
        json(&answers, out)?;
    } else if !context.quiet {
        for answer in &answers {
            writeln!(out, "{}", answer.unit_file_state.map_or("not-found", UnitFileState::as_str))?;
        }
    }
    Ok(enabled_exit(&answers))
}

/// systemctl(1), the table of `is-enabled`.
fn enabled_exit(answers: &[Answer]) -> Exit {
    let counts = |state: UnitFileState| match state {
        UnitFileState::Enabled
        | UnitFileState::EnabledRuntime
        | UnitFileState::Alias
        | UnitFileState::Static
        | UnitFileState::Indirect
        | UnitFileState::Generated => true,
        UnitFileState::Masked
        | UnitFileState::MaskedRuntime
        | UnitFileState::Disabled
        | UnitFileState::Bad => false,
    };
    if answers.iter().any(|answer| answer.unit_file_state.is_some_and(counts)) {
        Exit::Done
    } else if answers.iter().all(|answer| answer.unit_file_state.is_none()) {
        Exit::NoSuchUnit
    } else {
        Exit::Failed
    }
}

/// `agentctl list-unit-files [PATTERN…]`.
pub(crate) fn list(context: &Context, list: &ListUnitFiles, out: &mut impl Write) -> Outcome {
    if let Some(wrong) = list.states.iter().find(|word| word.parse::<UnitFileState>().is_err()) {
        let known = UnitFileState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!("there is no state '{}'; it is one of {known}", one_line(wrong))));
    }
    let request = ListUnitFilesRequest {
        types: list.types.clone(),
        states: list.states.clone(),
        patterns: list.patterns.clone(),
    };
    let mut files = Vec::new();
    let mut client = context.connect()?;
    client.stream::<method::ListUnitFiles, ClientError>(&request, Some(ANSWER), |page| {
        files.extend(page.files);
        Ok(())
    })?;
    if context.is_json() {
        json(&files, out)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["UNIT FILE", "STATE"]);
    for file in &files {
        table.row(row(file));
    }
    list_verb::write(context, &table, ["unit file", "unit files"], "", out)?;
    Ok(Exit::Done)
}

fn row(file: &UnitFileInfo) -> [Cell; 2] {
    let state = file.unit_file_state;
    let bad = matches!(state, UnitFileState::Masked | UnitFileState::MaskedRuntime | UnitFileState::Bad);
    [one_line(&file.id).into_owned().into(), Cell::bad(state.as_str(), bad)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_enabled_ends_as_systemctl_does() {
        use UnitFileState as S;
        let answer = |unit_file_state| Answer { id: String::new(), unit_file_state };
        for (states, exit) in [
            (vec![Some(S::Enabled)], 0),
            (vec![Some(S::EnabledRuntime)], 0),
            (vec![Some(S::Static)], 0),
            (vec![Some(S::Alias)], 0),
            (vec![Some(S::Indirect)], 0),
            (vec![Some(S::Generated)], 0),
            (vec![Some(S::Disabled)], 1),
            (vec![Some(S::Masked)], 1),
            (vec![Some(S::MaskedRuntime)], 1),
            (vec![Some(S::Bad)], 1),
            (vec![None], 4),
            (vec![None, Some(S::Disabled)], 1),
            (vec![None, Some(S::Masked), Some(S::Enabled)], 0),
        ] {
            let answers: Vec<Answer> = states.iter().copied().map(answer).collect();
            assert_eq!(enabled_exit(&answers) as u8, exit, "{states:?}");
        }
    }

    #[test]
    fn each_change_of_a_file_is_one_sentence() {
        let change = |kind, target: Option<&str>| FileChange {
            kind,
            path: "/etc/x\x1b".into(),
            target: target.map(str::to_owned),
        };
        for (change, line) in [
            (change(FileChangeKind::Created, None), "Created /etc/x\\u{1b}."),
            (
                change(FileChangeKind::Created, Some("/dev/null")),
                "Created symlink /etc/x\\u{1b} -> /dev/null.",
            ),
            (change(FileChangeKind::Removed, None), "Removed /etc/x\\u{1b}."),
        ] {
            assert_eq!(change_line(&change), line);
        }
    }
}
