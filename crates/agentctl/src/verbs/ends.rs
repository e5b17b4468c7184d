//! `--wait`: until the units that were started have ended again, systemctl(1).

use agentd_protocol::manager::{AwaitEndsReply, AwaitEndsRequest, UnitEnd};
use agentd_protocol::{ActiveState, JobResult, Method, method};

use super::jobs::{Report, because};
use crate::client::{Client, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::print::one_line;

/// Waits for the end of each unit whose job has succeeded, tells those that have failed, and notes the ends.
pub(super) fn wait(context: &Context, reports: &mut [Report]) -> Result<Exit, Failure> {
    let mut started: Vec<&mut Report> = reports.iter_mut().filter(|report| came_up(report)).collect();
    let mut pending = Vec::new();
    // All are asked for before the first is waited for, so that no end is missed meanwhile.
    for some in started.chunks_mut(AwaitEndsRequest::MOST) {
        let units: Vec<String> = some.iter().map(|report| report.unit.clone()).collect();
        let request = AwaitEndsRequest { units };
        let client = ask(context, &request)?;
        pending.push((client, request, some));
    }
    let mut worst = Exit::Done;
    for (client, request, some) in pending {
        let ends = receive(context, client, &request)?;
        for (report, end) in some.iter_mut().zip(ends) {
            worst = worst.max(note(report, end));
        }
    }
    Ok(worst)
}

fn came_up(report: &Report) -> bool {
    report.error.is_none() && matches!(report.result, Some(JobResult::Done | JobResult::Skipped))
}

fn ask(context: &Context, request: &AwaitEndsRequest) -> Result<Client, ClientError> {
    let mut client = context.connect()?;
    client.send(&[method::AwaitEnds::call(request)?])?;
    Ok(client)
}

/// The answer. A manager that executes itself again closes its connections, and the one after it is asked anew; where there
/// is none any more, there is nobody to connect to.
fn receive(
    context: &Context,
    mut client: Client,
    request: &AwaitEndsRequest,
) -> Result<Vec<UnitEnd>, ClientError> {
    loop {
        match client.receive::<AwaitEndsReply>(None) {
            Ok((reply, _)) => return Ok(reply.ends),
            Err(ClientError::Closed) => client = ask(context, request)?,
            Err(error) => return Err(error),
        }
    }
}

fn note(report: &mut Report, end: UnitEnd) -> Exit {
    let failed = end.active_state == ActiveState::Failed;
    if failed {
        let (unit, why) = (&report.unit, because(&end.result));
        let why = if why.is_empty() { format!(": {}", one_line(&end.result)) } else { why.to_owned() };
        let error = format!(
            "{unit} failed{why}.\nSee 'agentctl status {unit}' and 'agentctl logs {unit}' for details."
        );
        eprintln!("{error}");
        report.error = Some(error);
    }
    report.end = Some(end.result);
    if failed { Exit::Failed } else { Exit::Done }
}
