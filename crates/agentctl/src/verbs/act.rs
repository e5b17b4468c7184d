//! Verbs that act without a job: `kill`, `freeze`, `thaw`, `cancel`, `reset-failed`, `daemon-reload`, and those that end everything.

use std::io::Write;

use agentd_protocol::manager::{
    CancelJobRequest, Empty, FreezeRequest, KillRequest, Problem, ResetFailedRequest, ShutdownRequest,
};
use agentd_protocol::{ShutdownKind, method};
use agentd_unit::UnitName;

use crate::args::{Cancel, Kill, Verb};
use crate::client::{ANSWER, ClientError, RELOAD};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{json, one_line};
use crate::report::{complain, only_this_unit};

/// `agentctl kill [-s SIGNAL] [--kill-whom WHOM] UNIT…`.
pub(crate) fn kill(context: &Context, kill: &Kill) -> Outcome {
    let mut client = context.connect()?;
    each(&kill.units, "kill", |unit| {
        let request = KillRequest { unit, whom: kill.kill_whom, signal: kill.signal.number() };
        client.call::<method::KillUnit>(&request, Some(ANSWER))
    })
}

/// `agentctl freeze UNIT…`.
pub(crate) fn freeze(context: &Context, units: &[UnitName]) -> Outcome {
    let mut client = context.connect()?;
    each(units, "freeze", |unit| client.call::<method::FreezeUnit>(&FreezeRequest { unit }, Some(ANSWER)))
}

/// `agentctl thaw UNIT…`.
pub(crate) fn thaw(context: &Context, units: &[UnitName]) -> Outcome {
    let mut client = context.connect()?;
    each(units, "thaw", |unit| client.call::<method::ThawUnit>(&FreezeRequest { unit }, Some(ANSWER)))
}

/// Does one thing with each unit; one that fails does not keep the others from being done.
fn each(
    units: &[UnitName],
    what: &str,
    mut call: impl FnMut(String) -> Result<Empty, ClientError>,
) -> Outcome {
    let mut worst = Exit::Done;
    for unit in units {
        worst = worst.max(tell(call(unit.to_string()), &format!("Failed to {what} {unit}"))?);
    }
    Ok(worst)
}

/// `agentctl cancel [JOB…]`.
pub(crate) fn cancel(context: &Context, cancel: &Cancel) -> Outcome {
    let mut client = context.connect()?;
    let jobs = if cancel.jobs.is_empty() {
        let all = client.call::<method::ListJobs>(&Empty {}, Some(ANSWER))?.jobs;
        all.into_iter().map(|job| job.id).collect()
    } else {
        cancel.jobs.clone()
    };
    let mut worst = Exit::Done;
    for job in jobs {
        let answer = client.call::<method::CancelJob>(&CancelJobRequest { job }, Some(ANSWER));
        worst = worst.max(tell(answer, &format!("Failed to cancel job {job}"))?);
    }
    Ok(worst)
}

/// `agentctl reset-failed [UNIT…]`.
pub(crate) fn reset_failed(context: &Context, units: &[UnitName]) -> Outcome {
    let mut client = context.connect()?;
    let mut call = |unit| client.call::<method::ResetFailed>(&ResetFailedRequest { unit }, Some(ANSWER));
    if units.is_empty() {
        call(None)?;
        return Ok(Exit::Done);
    }
    each(units, "reset failed state of", |unit| call(Some(unit)))
}

/// `agentctl daemon-reload`: what is wrong is told; the rest is in force, so that it is no failure.
pub(crate) fn daemon_reload(context: &Context, out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let problems = client.call::<method::Reload>(&Empty {}, Some(RELOAD))?.problems;
    if context.is_json() {
        json(&problems, out)?;
    } else {
        for problem in &problems {
            eprintln!("Warning: {}", problem_line(problem));
        }
    }
    Ok(Exit::Done)
}

/// `agentctl daemon-reexec`: waits until no unit has a job any more, and says for which; done once the manager is about
/// to execute itself. Whoever calls next is answered by the new one.
pub(crate) fn daemon_reexec(context: &Context) -> Outcome {
    let mut client = context.connect()?;
    let jobs = client.call::<method::ListJobs>(&Empty {}, Some(ANSWER))?.jobs;
    if !jobs.is_empty() && !context.quiet {
        let units: Vec<&str> = jobs.iter().map(|job| job.unit.as_str()).collect();
        eprintln!("Waiting for the jobs of {}.", one_line(&units.join(", ")));
    }
    client.call::<method::Reexecute>(&Empty {}, None)?;
    Ok(Exit::Done)
}

/// One problem of loading on one line. The message names the place itself where it has line and column.
pub(crate) fn problem_line(problem: &Problem) -> String {
    let about = problem.path.as_deref().or(problem.unit.as_deref());
    let text = match about {
        Some(about) if !problem.message.starts_with(about) => format!("{about}: {}", problem.message),
        _ => problem.message.clone(),
    };
    one_line(&text).into_owned()
}

/// `agentctl poweroff|reboot|halt|exit [CODE]`: done as soon as the manager has begun.
pub(crate) fn shutdown(context: &Context, verb: &Verb) -> Outcome {
    let (kind, exit_code) = match verb {
        Verb::Reboot => (ShutdownKind::Reboot, None),
        Verb::Halt => (ShutdownKind::Halt, None),
        Verb::Exit(exit) => (ShutdownKind::Exit, Some(exit.code)),
        _ => (ShutdownKind::Poweroff, None),
    };
    let mut client = context.connect()?;
    match client.call::<method::Shutdown>(&ShutdownRequest { kind, exit_code }, Some(ANSWER)) {
        // A manager that has nothing to stop may be gone before its answer is; that is what was asked for.
        Ok(_) | Err(ClientError::Closed) => Ok(Exit::Done),
        Err(error) => Err(error.into()),
    }
}

/// Tells why one of several could not be done, and goes on.
fn tell<T>(answer: Result<T, ClientError>, what: &str) -> Result<Exit, Failure> {
    match answer.map_err(only_this_unit) {
        Ok(_) => Ok(Exit::Done),
        Err(error) => {
            let error = error?;
            complain(what, &error);
            Ok(Exit::of_call(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_place_once() {
        let problem = |unit: Option<&str>, path: Option<&str>, message: &str| Problem {
            unit: unit.map(str::to_owned),
            path: path.map(str::to_owned),
            message: message.to_owned(),
        };
        for (problem, line) in [
            (problem(None, Some("/u/a.service.toml"), "cannot be read"), "/u/a.service.toml: cannot be read"),
            (problem(None, Some("/u/a"), "/u/a:3:1: no such key"), "/u/a:3:1: no such key"),
            (problem(Some("a.service"), None, "two files"), "a.service: two files"),
            (problem(None, None, "x\n\x1b[2J"), "x\\n\\u{1b}[2J"),
        ] {
            assert_eq!(problem_line(&problem), line);
        }
    }
}
