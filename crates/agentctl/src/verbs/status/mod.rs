//! `status UNIT…`: what a person wants to know of a unit, on one page each.

mod page;
mod tree;

use std::io::Write;

use agentd_protocol::unit::{GetProcessesReply, GetReply, LogEntry, UnitRequest};
use agentd_protocol::{ActiveState, CallError, Method, UnitProperties, method};
use agentd_unit::UnitName;
use serde::Serialize;

use crate::args::Status;
use crate::client::{ANSWER, Client, ClientError};
use crate::context::{Context, last_lines};
use crate::exit::{Exit, Failure, Outcome};
use crate::print::json;
use crate::report::{complain, only_this_unit};
use crate::verbs::logs;
use crate::verbs::query::is_unknown;

/// All that the page of a unit shows; with `-o json` it is printed as it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct UnitStatus {
    #[serde(flatten)]
    properties: UnitProperties,
    processes: GetProcessesReply,
    log: Vec<LogEntry>,
}

/// `agentctl status UNIT…`: 0 active, 3 not active, 4 no such unit.
pub(crate) fn status(context: &Context, status: &Status, out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let mut worst = Exit::Done;
    let mut pages = Vec::new();
    for unit in &status.units {
        ask(&mut client, unit, status.lines)?;
        let properties = *client.receive::<GetReply>(Some(ANSWER))?.0.properties;
        if is_unknown(&properties) {
            eprintln!("Unit {unit} could not be found. 'agentctl list --all' shows what there is.");
            worst = worst.max(Exit::NoSuchUnit);
            // Nobody waits for the other answers.
            client = context.connect()?;
            continue;
        }
        worst = worst.max(exit_of(&properties));
        let page = gather(context, &mut client, unit, properties, status.lines)?;
        if !context.is_json() {
            if !pages.is_empty() {
                writeln!(out)?;
            }
            page::write(context, &page, out)?;
        }
        pages.push(page);
    }
    if context.is_json() {
        json(&pages, out)?;
    }
    Ok(worst)
}

const fn exit_of(properties: &UnitProperties) -> Exit {
    match properties.active_state {
        ActiveState::Active | ActiveState::Reloading => Exit::Done,
        ActiveState::Inactive | ActiveState::Failed | ActiveState::Activating | ActiveState::Deactivating => {
            Exit::NotActive
        }
    }
}

/// Asks for all that the page shows, at once: the manager answers one call after the other, and agentctl waits once.
fn ask(client: &mut Client, unit: &UnitName, lines: u32) -> Result<(), ClientError> {
    let request = UnitRequest { unit: unit.to_string() };
    let mut calls = vec![method::Get::call(&request)?, method::GetProcesses::call(&request)?];
    if lines > 0 {
        calls.push(Client::for_many::<method::GetLogs>(&last_lines(unit, Some(lines), false))?);
    }
    client.send(&calls)
}

/// Processes and lines belong to the page; that they cannot be had is told, and the rest is still shown.
fn gather(
    context: &Context,
    client: &mut Client,
    unit: &UnitName,
    properties: UnitProperties,
    lines: u32,
) -> Result<UnitStatus, Failure> {
    let answer = client.receive::<GetProcessesReply>(Some(ANSWER));
    let processes = match answer.map_err(only_this_unit) {
        Ok((reply, _)) => reply,
        Err(error) => {
            complain(&format!("Processes of {unit} cannot be listed"), &error?);
            GetProcessesReply::default()
        }
    };
    let log = if lines == 0 { Ok(Vec::new()) } else { logs::tail(context, client, unit, lines) };
    let log = log.or_else(|failure| match failure {
        Failure::Client(ClientError::Call(CallError::Malformed { .. })) => Err(failure),
        Failure::Client(ClientError::Call(_)) | Failure::Other { .. } => {
            complain(&format!("Log of {unit} cannot be shown"), &failure);
            Ok(Vec::new())
        }
        failure => Err(failure),
    })?;
    Ok(UnitStatus { properties, processes, log })
}
