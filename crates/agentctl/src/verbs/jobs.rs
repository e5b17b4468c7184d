//! `start`, `stop`, `restart`, `try-restart`, `reload`, `reload-or-restart`: one job for each unit.
//!
//! Several units are asked for together and waited for one after the other, so that they start in parallel as far as
//! their order allows. One that fails does not keep the others from being done; the worst exit code counts.

use std::io::Write;

use agentd_protocol::manager::{JobReply, JobRequest};
use agentd_protocol::{CallError, JobMode, JobResult, Method, UnitProperties, method};
use agentd_unit::UnitName;
use serde::Serialize;

use super::ends;
use crate::args::{Jobs, Starts};
use crate::client::{ANSWER, Client, ClientError};
use crate::context::{Context, properties};
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{json, one_line};
use crate::report::only_this_unit;

/// How many units are asked for at once, each over a connection of its own; managers bound their clients.
const TOGETHER: usize = 16;

/// What a job verb prints for each unit with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Report {
    pub(super) unit: String,
    job: Option<u32>,
    pub(super) result: Option<JobResult>,
    pub(super) error: Option<String>,
    /// systemd's `Result` of a unit whose end was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<String>,
}

/// `agentctl start [--wait] UNIT…`.
pub(crate) fn start(context: &Context, starts: &Starts, out: &mut impl Write) -> Outcome {
    run_to_the_end::<method::StartUnit>(context, "start", starts, out)
}

/// `agentctl stop UNIT…`.
pub(crate) fn stop(context: &Context, jobs: &Jobs, out: &mut impl Write) -> Outcome {
    run::<method::StopUnit>(context, "stop", jobs, out)
}

/// `agentctl restart [--wait] UNIT…`.
pub(crate) fn restart(context: &Context, starts: &Starts, out: &mut impl Write) -> Outcome {
    run_to_the_end::<method::RestartUnit>(context, "restart", starts, out)
}

/// `agentctl try-restart UNIT…`.
pub(crate) fn try_restart(context: &Context, jobs: &Jobs, out: &mut impl Write) -> Outcome {
    run::<method::TryRestartUnit>(context, "restart", jobs, out)
}

/// `agentctl reload UNIT…`.
pub(crate) fn reload(context: &Context, jobs: &Jobs, out: &mut impl Write) -> Outcome {
    run::<method::ReloadUnit>(context, "reload", jobs, out)
}

/// `agentctl reload-or-restart UNIT…`.
pub(crate) fn reload_or_restart(context: &Context, jobs: &Jobs, out: &mut impl Write) -> Outcome {
    run::<method::ReloadOrRestartUnit>(context, "reload or restart", jobs, out)
}

/// `agentctl isolate UNIT`, `default`, `rescue`, `emergency`.
pub(crate) fn isolate(context: &Context, unit: &str, out: &mut impl Write) -> Outcome {
    let unit = UnitName::parse(unit).map_err(|error| Failure::Usage(error.to_string()))?;
    let jobs = Jobs { units: vec![unit], job_mode: JobMode::Isolate };
    run::<method::StartUnit>(context, "isolate", &jobs, out)
}

fn run<M>(context: &Context, verb: &str, jobs: &Jobs, out: &mut impl Write) -> Outcome
where
    M: Method<Parameters = JobRequest, Reply = JobReply>,
{
    let (worst, reports) = carry_out::<M>(context, verb, &jobs.units, jobs.job_mode)?;
    if context.is_json() {
        json(&reports, out)?;
    }
    Ok(worst)
}

/// As [`run`]; with `--wait` also until the units that came up have ended again.
fn run_to_the_end<M>(context: &Context, verb: &str, starts: &Starts, out: &mut impl Write) -> Outcome
where
    M: Method<Parameters = JobRequest, Reply = JobReply>,
{
    if !starts.wait {
        return run::<M>(context, verb, &starts.jobs, out);
    }
    if !context.wait {
        let message = "--wait waits for the end and --no-block for nothing; leave one of them out";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (mut worst, mut reports) = carry_out::<M>(context, verb, &starts.jobs.units, starts.jobs.job_mode)?;
    worst = worst.max(ends::wait(context, &mut reports)?);
    if context.is_json() {
        json(&reports, out)?;
    }
    Ok(worst)
}

/// Asks for a job for each unit and waits for their ends: the worst exit code, and what became of each.
pub(crate) fn carry_out<M>(
    context: &Context,
    verb: &str,
    units: &[UnitName],
    mode: JobMode,
) -> Result<(Exit, Vec<Report>), Failure>
where
    M: Method<Parameters = JobRequest, Reply = JobReply>,
{
    let mut worst = Exit::Done;
    let mut reports = Vec::new();
    for batch in units.chunks(TOGETHER) {
        let mut pending = Vec::new();
        for unit in batch {
            pending.push((unit, ask::<M>(context, unit, mode)?));
        }
        for (unit, mut client) in pending {
            let answer = client.receive(if context.wait { None } else { Some(ANSWER) });
            let (exit, report) = settle(&mut client, verb, unit, answer.map(|(reply, _)| reply))?;
            worst = worst.max(exit);
            if let Some(error) = &report.error {
                eprintln!("{error}");
            }
            reports.push(report);
        }
    }
    Ok((worst, reports))
}

fn ask<M>(context: &Context, unit: &UnitName, mode: JobMode) -> Result<Client, ClientError>
where
    M: Method<Parameters = JobRequest>,
{
    let request = JobRequest { unit: unit.to_string(), mode, wait: context.wait };
    let mut client = context.connect()?;
    client.send(&[M::call(&request)?])?;
    Ok(client)
}

/// What became of one unit's job, for the exit code and for people.
fn settle(
    client: &mut Client,
    verb: &str,
    unit: &UnitName,
    answer: Result<JobReply, ClientError>,
) -> Result<(Exit, Report), Failure> {
    let mut report = Report { unit: unit.to_string(), job: None, result: None, error: None, end: None };
    let exit = match answer.map_err(only_this_unit) {
        Ok(reply) => {
            (report.job, report.result) = (reply.job, reply.result);
            let result = reply.result.unwrap_or_default();
            if !matches!(result, JobResult::Done | JobResult::Skipped) {
                // The job's own result is what counts; without the unit's properties the sentence is only shorter.
                let known = properties(client, unit).unwrap_or_default();
                report.error = Some(explain(verb, unit, result, &known));
            }
            Exit::of_job(result)
        }
        Err(error) => {
            let error = error?;
            report.error = Some(refused(verb, unit, &error));
            Exit::of_refused_job(&error)
        }
    };
    Ok((exit, report))
}

/// Why a job was not even begun, and what to do about it.
pub(crate) fn refused(verb: &str, unit: &UnitName, error: &CallError) -> String {
    let reason = error.to_string();
    let advice = match error {
        CallError::NoSuchUnit { .. } => " 'agentctl list --all' shows what there is.".to_owned(),
        // What is wrong with a signature says itself what to do.
        CallError::LoadFailed { .. } if reason.contains("trust: ") => {
            format!("\nThen run 'agentctl daemon-reload'. See 'agentctl status {unit}'.")
        }
        CallError::LoadFailed { .. } => format!(
            "\nCorrect the file ('agentctl analyze verify FILE' shows every mistake), then run 'agentctl \
             daemon-reload'. See 'agentctl status {unit}'."
        ),
        _ => String::new(),
    };
    format!("Failed to {verb} {unit}: {}{advice}", one_line(&reason))
}

/// Why a job did not succeed, in systemctl's words, and where to read more.
fn explain(verb: &str, unit: &UnitName, result: JobResult, known: &UnitProperties) -> String {
    let why = match result {
        JobResult::Done | JobResult::Skipped => return String::new(),
        JobResult::Canceled => return format!("Job for {unit} canceled."),
        JobResult::Timeout => return format!("Job for {unit} timed out. See 'agentctl status {unit}'."),
        JobResult::Invalid if verb == "reload" => {
            return format!("{unit} is not active or has no ExecReload, cannot {verb}.");
        }
        JobResult::Invalid => return format!("Job for {unit} is not applicable: it cannot {verb}."),
        JobResult::Assert => {
            return format!("Job for {unit} failed: {} does not hold.", one_line(&known.unmet_condition));
        }
        JobResult::Dependency => {
            format!("A dependency job for {unit} failed.")
        }
        JobResult::Failed => format!("Job for {unit} failed{}.", because(&known.result)),
    };
    let detail =
        if known.failure.is_empty() { String::new() } else { format!(" {}", one_line(&known.failure)) };
    let retry = if known.result == "start-limit-hit" {
        format!("\nTo force a start use 'agentctl reset-failed {unit}' followed by 'agentctl start {unit}'.")
    } else {
        String::new()
    };
    format!("{why}{detail}\nSee 'agentctl status {unit}' and 'agentctl logs {unit}' for details.{retry}")
}

/// systemctl's half sentence for each `Result`.
pub(super) fn because(result: &str) -> &'static str {
    match result {
        "resources" => " because of unavailable resources or another system error",
        "protocol" => " because the service did not take the steps required by its unit configuration",
        "timeout" => " because a timeout was exceeded",
        "exit-code" => " because a process of it exited with error code",
        "signal" => " because a fatal signal was delivered to a process of it",
        "core-dump" => " because a fatal signal caused a process of it to dump core",
        "watchdog" => " because the service failed to send watchdog ping",
        "oom-kill" => " because the kernel ran out of memory for it and killed a process of it",
        "start-limit-hit" => " because start of the service was attempted too often",
        "trust" => " because what would run is not what was signed",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> UnitName {
        UnitName::parse("web.service").unwrap()
    }

    #[test]
    fn a_failed_job_is_explained_with_the_next_step() {
        let known = UnitProperties { result: "exit-code".into(), ..UnitProperties::default() };
        assert_eq!(
            explain("start", &unit(), JobResult::Failed, &known),
            "Job for web.service failed because a process of it exited with error code.\n\
             See 'agentctl status web.service' and 'agentctl logs web.service' for details."
        );
    }

    #[test]
    fn a_start_limit_comes_with_the_command_that_lifts_it() {
        let known = UnitProperties { result: "start-limit-hit".into(), ..UnitProperties::default() };
        let text = explain("start", &unit(), JobResult::Failed, &known);
        assert!(
            text.contains("'agentctl reset-failed web.service' followed by 'agentctl start web.service'")
        );
    }

    #[test]
    fn every_end_but_success_has_a_sentence_that_names_the_unit() {
        for result in JobResult::ALL {
            let text = explain("start", &unit(), *result, &UnitProperties::default());
            let success = matches!(result, JobResult::Done | JobResult::Skipped);
            assert_eq!(text.contains("web.service"), !success, "{result}: {text}");
        }
    }

    #[test]
    fn what_does_not_load_is_to_be_corrected_and_what_is_not_signed_is_not() {
        let refusal = |message: &str| {
            let error = CallError::LoadFailed { unit: "web.service".into(), message: message.into() };
            refused("start", &unit(), &error)
        };
        assert!(refusal("/u/web.service.toml:1:1: bad").contains("'agentctl analyze verify FILE'"));
        let unsigned = refusal("trust: not signed");
        assert!(unsigned.contains("agentctl daemon-reload") && !unsigned.contains("Correct"), "{unsigned}");
    }

    #[test]
    fn a_reason_from_the_manager_cannot_steer_the_terminal() {
        let error = CallError::LoadFailed { unit: "web.service".into(), message: "bad \x1b[2J".into() };
        assert!(!refused("start", &unit(), &error).contains('\x1b'));
    }
}
