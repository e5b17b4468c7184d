//! The journal, read through journalctl, which alone may know its files' format.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Command, Stdio};

use agentd_protocol::unit::LogEntry;
use agentd_protocol::words::LogStream;
use agentd_unit::UnitName;
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// The longest entry that is read, in bytes of JSON; a message in bytes takes up to five for each.
const ENTRY_MAX: u64 = 4 << 20;

/// Hands every entry of a unit to `each`.
pub(super) fn read(
    user: bool,
    unit: &UnitName,
    lines: Option<u32>,
    follow: bool,
    each: &mut dyn FnMut(LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut child = command(user, unit, lines, follow).spawn().map_err(|error| missing(unit, &error))?;
    let result = match child.stdout.take() {
        Some(stdout) => entries(BufReader::new(stdout), each),
        None => Ok(()),
    };
    if result.is_err() {
        // It may follow for ever; nobody listens any more. That it has ended already is as well.
        drop(child.kill());
    }
    let status = child.wait().map_err(|error| failed(unit, &error.to_string()))?;
    result?;
    if status.success() { Ok(()) } else { Err(failed(unit, &format!("journalctl ended with {status}"))) }
}

fn command(user: bool, unit: &UnitName, lines: Option<u32>, follow: bool) -> Command {
    let mut command = Command::new("journalctl");
    command.arg(if user { "--user-unit" } else { "--unit" }).arg(unit.as_str());
    command.args(["--output=json", "--all", "--no-pager", "--quiet"]);
    command.arg(lines.map_or_else(|| "--lines=all".to_owned(), |lines| format!("--lines={lines}")));
    if follow {
        command.arg("--follow");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn missing(unit: &UnitName, error: &std::io::Error) -> Failure {
    let message = match error.kind() {
        ErrorKind::NotFound => format!(
            "the log of {unit} is in the journal, and journalctl, which reads it, is not installed here; \
             run agentctl on a system that has it"
        ),
        _ => format!("the log of {unit} is in the journal, but journalctl cannot be run: {error}"),
    };
    Failure::Other { exit: Exit::Failed, message }
}

fn failed(unit: &UnitName, reason: &str) -> Failure {
    let message = format!("the log of {unit} cannot be read from the journal: {reason}");
    Failure::Other { exit: Exit::Failed, message }
}

fn entries(
    mut source: impl BufRead,
    each: &mut dyn FnMut(LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let broken = |error: std::io::Error| Failure::Other {
            exit: Exit::Failed,
            message: format!("journalctl's output cannot be read: {error}"),
        };
        if source.by_ref().take(ENTRY_MAX).read_until(b'\n', &mut line).map_err(broken)? == 0 {
            return Ok(());
        }
        // What is no entry (a piece of one that was too long) is left out; the rest still counts.
        if let Some(entry) = serde_json::from_slice(&line).ok().as_ref().and_then(entry) {
            each(entry)?;
        }
    }
}

/// One entry by the fields of systemd.journal-fields(7).
fn entry(fields: &Value) -> Option<LogEntry> {
    let text = |name: &str| fields.get(name).map(message).unwrap_or_default();
    let number = |name: &str| fields.get(name).and_then(Value::as_str).and_then(|text| text.parse().ok());
    let first = |names: &[&str]| names.iter().map(|name| text(name)).find(|text| !text.is_empty());
    let of_manager = fields.get("UNIT").or_else(|| fields.get("USER_UNIT")).is_some();
    Some(LogEntry {
        timestamp: number("__REALTIME_TIMESTAMP")?,
        priority: number("PRIORITY").and_then(|priority| u8::try_from(priority).ok()).unwrap_or(6),
        invocation_id: first(&["INVOCATION_ID", "_SYSTEMD_INVOCATION_ID", "USER_INVOCATION_ID"])
            .unwrap_or_default(),
        identifier: first(&["SYSLOG_IDENTIFIER", "_COMM"]).unwrap_or_default(),
        pid: number("SYSLOG_PID").or_else(|| number("_PID")).and_then(|pid| u32::try_from(pid).ok()),
        stream: if of_manager { LogStream::Manager } else { LogStream::Output },
        message: text("MESSAGE"),
    })
}

/// A field is a text, or its bytes where they are no text, or a list where it came more than once.
fn message(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_u64) => {
            let bytes: Vec<u8> = items.iter().filter_map(Value::as_u64).map(|byte| byte as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Value::Array(items) => items.first().map(message).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<LogEntry> {
        let mut seen = Vec::new();
        entries(text.as_bytes(), &mut |entry| {
            seen.push(entry);
            Ok(())
        })
        .unwrap();
        seen
    }

    #[test]
    fn the_fields_of_the_journal_become_those_of_an_entry() {
        let text = r#"{"__REALTIME_TIMESTAMP":"5","PRIORITY":"3","_PID":"7","SYSLOG_IDENTIFIER":"web","_SYSTEMD_INVOCATION_ID":"ab","MESSAGE":"hot"}
{"__REALTIME_TIMESTAMP":"6","UNIT":"web.service","INVOCATION_ID":"cd","MESSAGE":[104,195,164,255]}
no entry
{"__REALTIME_TIMESTAMP":"7","MESSAGE":null}
{"MESSAGE":"no time"}
"#;
        let output = LogEntry {
            timestamp: 5,
            priority: 3,
            invocation_id: "ab".into(),
            identifier: "web".into(),
            pid: Some(7),
            stream: LogStream::Output,
            message: "hot".into(),
        };
        let manager = LogEntry {
            timestamp: 6,
            priority: 6,
            invocation_id: "cd".into(),
            identifier: String::new(),
            pid: None,
            stream: LogStream::Manager,
            message: "hä\u{fffd}".into(),
        };
        let empty = LogEntry { timestamp: 7, priority: 6, ..LogEntry::default() };
        assert_eq!(all(text), [output, manager, empty]);
    }

    #[test]
    fn journalctl_is_asked_for_just_this_unit() {
        let unit = UnitName::parse("web.service").unwrap();
        let arguments = |command: Command| {
            command
                .get_args()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            arguments(command(false, &unit, Some(5), true)),
            "--unit web.service --output=json --all --no-pager --quiet --lines=5 --follow"
        );
        assert_eq!(
            arguments(command(true, &unit, None, false)),
            "--user-unit web.service --output=json --all --no-pager --quiet --lines=all"
        );
    }
}
