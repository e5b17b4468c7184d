//! `show`: properties by systemd's names, as `NAME=VALUE` lines or JSON.

use std::io::{self, Write};

use agentd_protocol::manager::Empty;
use agentd_protocol::method;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::Show;
use crate::client::ANSWER;
use crate::context::{Context, properties_if_any};
use crate::exit::{Exit, Failure, Outcome};
use crate::print::time::{Clock, span};
use crate::print::{json, one_line};

/// `agentctl show [UNIT…]`: a unit that is not there shows `LoadState=not-found`, which is no failure.
pub(crate) fn show(context: &Context, show: &Show, out: &mut impl Write) -> Outcome {
    let names = [&show.properties[..], &show.values].concat();
    let as_text = !context.is_json();
    let mut client = context.connect()?;
    let mut objects = Vec::new();
    if show.units.is_empty() {
        objects.push(object(&client.call::<method::GetStatus>(&Empty {}, Some(ANSWER))?, as_text)?);
    }
    for unit in &show.units {
        objects.push(object(&properties_if_any(&mut client, unit)?, as_text)?);
    }
    if let Some(first) = objects.first() {
        check_names(first, &names)?;
    }
    for object in &mut objects {
        object.retain(|name, _| wanted(name, &names));
    }
    if context.is_json() {
        match objects.as_slice() {
            [one] => json(one, out)?,
            several => json(&several, out)?,
        }
        return Ok(Exit::Done);
    }
    for (at, object) in objects.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        write_object(&context.clock, object, show.value || !show.values.is_empty(), out)?;
    }
    Ok(Exit::Done)
}

fn object<T: Serialize>(value: &T, as_text: bool) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(value).map_err(io::Error::from)? {
        Value::Object(mut object) => {
            // Each key of the unit's sections is a property like any other. What has a field of its own is more exact
            // there, where it is known; but as text a command is as systemctl has it, its prefixes too.
            if let Some(Value::Object(settings)) = object.remove("Settings") {
                for (key, value) in settings {
                    let known = object.entry(&key).or_insert(Value::Null);
                    if known.is_null() || as_text && key == "ExecStart" {
                        *known = value;
                    }
                }
            }
            Ok(object)
        }
        other => Ok(Map::from_iter([("Value".to_owned(), other)])),
    }
}

/// Names are asked for as they are written; a wrong one is told, since an empty answer would be taken for a value.
fn check_names(known: &Map<String, Value>, asked: &[String]) -> Result<(), Failure> {
    let Some(wrong) = asked.iter().find(|name| !known.contains_key(name.as_str())) else {
        return Ok(());
    };
    let alike = known.keys().find(|name| name.eq_ignore_ascii_case(wrong));
    let advice = match alike {
        Some(name) => format!("did you mean {name}?"),
        None => "'agentctl show UNIT' lists all".to_owned(),
    };
    Err(Failure::Usage(format!("there is no property {}; {advice}", one_line(wrong))))
}

fn wanted(name: &str, asked: &[String]) -> bool {
    asked.is_empty() || asked.iter().any(|one| one == name)
}

fn write_object(
    clock: &Clock,
    object: &Map<String, Value>,
    bare: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    for (name, value) in object {
        let text = text(clock, name, value);
        match bare {
            true => writeln!(out, "{}", one_line(&text))?,
            false => writeln!(out, "{name}={}", one_line(&text))?,
        }
    }
    Ok(())
}

/// A value as systemctl shows it.
fn text(clock: &Clock, name: &str, value: &Value) -> String {
    match value {
        Value::Null if is_limit(name) => "infinity".to_owned(),
        Value::Null if name == "Job" => String::new(),
        Value::Null => "[not set]".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number_text(clock, name, number.as_u64(), number.to_string()),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|item| text(clock, "", item)).collect::<Vec<_>>().join(" "),
        Value::Object(object) => match object.get("Id") {
            Some(id) => text(clock, "", id),
            None => value.to_string(),
        },
    }
}

fn is_limit(name: &str) -> bool {
    matches!(name, "MemoryMax" | "TasksMax" | "CPUQuotaPerSecUSec" | "WatchdogUSec")
}

fn number_text(clock: &Clock, name: &str, number: Option<u64>, plain: String) -> String {
    let point = name.ends_with("Timestamp") || matches!(name, "LastTriggerUSec" | "NextElapseUSecRealtime");
    match number {
        Some(0) if point => String::new(),
        Some(0) if name == "NextElapseUSecMonotonic" => "infinity".to_owned(),
        Some(micros) if point => clock.point(micros),
        Some(micros) if name.ends_with("USec") || name == "NextElapseUSecMonotonic" => span(micros, 1),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use agentd_protocol::UnitProperties;
    use agentd_protocol::manager::JobBrief;

    /// Sun 2026-11-29 16:47:00 UTC.
    const NOW: u64 = 1_795_970_820_000_000;

    fn shown(properties: &UnitProperties, name: &str) -> String {
        let value = &object(properties, true).unwrap()[name];
        text(&Clock::fixed(NOW), name, value)
    }

    #[test]
    fn each_kind_of_value_is_shown_as_systemctl_shows_it() {
        let properties = UnitProperties {
            id: "a.service".into(),
            names: vec!["a.service".into(), "b.service".into()],
            need_daemon_reload: true,
            main_pid: 77,
            active_enter_timestamp: NOW,
            memory_current: Some(4096),
            restart_usec: Some(100_000),
            cpu_quota_per_sec_usec: Some(500_000),
            exec_start: vec![vec!["/bin/a".into()]],
            job: Some(JobBrief { id: 9, kind: "start".into() }),
            settings: [
                ("Nice", "5"),
                ("TasksMax", "50%"),
                ("Restart", "x"),
                ("ExecStart", "{ path=/bin/a }"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
            ..UnitProperties::default()
        };
        for (name, text) in [
            ("Id", "a.service"),
            ("Names", "a.service b.service"),
            ("NeedDaemonReload", "yes"),
            ("MainPID", "77"),
            ("Restart", ""),
            ("ActiveEnterTimestamp", "Sun 2026-11-29 16:47:00 UTC"),
            ("ActiveExitTimestamp", ""),
            ("MemoryCurrent", "4096"),
            ("MemoryPeak", "[not set]"),
            ("MemoryMax", "infinity"),
            ("RestartUSec", "100ms"),
            ("CPUQuotaPerSecUSec", "500ms"),
            ("NextElapseUSecMonotonic", "infinity"),
            ("ExecStart", "{ path=/bin/a }"),
            ("Job", "9"),
            ("LoadState", "not-found"),
            ("Nice", "5"),
            ("TasksMax", "50%"),
        ] {
            assert_eq!(shown(&properties, name), text, "{name}");
        }
    }

    #[test]
    fn a_property_that_does_not_exist_is_an_error_and_not_an_empty_answer() {
        let known = object(&UnitProperties::default(), false).unwrap();
        let error = check_names(&known, &["Id".into(), "mainpid".into()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no property mainpid; did you mean MainPID?");
        assert_eq!(error.exit(), Exit::Usage);
        assert!(check_names(&known, &["Requires".into(), "MainPID".into()]).is_ok());
    }

    #[test]
    fn a_value_never_breaks_its_line() {
        let properties = UnitProperties { status_text: "one\ntwo\x1b".into(), ..UnitProperties::default() };
        let mut out = Vec::new();
        write_object(&Clock::fixed(NOW), &object(&properties, true).unwrap(), false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\nStatusText=one\\ntwo\\u{1b}\n"));
    }
}
