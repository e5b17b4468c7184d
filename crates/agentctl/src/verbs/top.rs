//! `top`: what units use of the machine, as systemd-cgtop shows it. The manager counts nothing for it: it is asked for
//! what the kernel has counted, once each round.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use agentd_protocol::manager::ListUnitsRequest;
use agentd_protocol::unit::UnitRequest;
use agentd_protocol::{CallError, UnitProperties, method};
use serde::Serialize;

use crate::args::files::{Order, Top};
use crate::client::{ANSWER, Client, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::print::size::bytes;
use crate::print::table::{Cell, Table};
use crate::print::{json_line, one_line};

/// Clears the screen and goes to its first place, console_codes(4).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What the kernel had counted for a unit at one look.
#[derive(Debug, Clone, Default)]
struct Look {
    cpu_nsec: Option<u64>,
    memory: Option<u64>,
    tasks: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
}

/// One line; what is not known is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    id: String,
    /// Of one processor, in percent.
    #[serde(rename = "CPUPercent")]
    cpu: Option<f64>,
    memory_current: Option<u64>,
    tasks_current: Option<u64>,
    #[serde(rename = "IOReadBytesPerSecond")]
    read: Option<u64>,
    #[serde(rename = "IOWriteBytesPerSecond")]
    written: Option<u64>,
}

/// `agentctl top`: rates need two looks, so the first table comes after the first delay. Where nobody looks at a terminal
/// one table is enough, as in systemd-cgtop, and there is no screen to clear.
pub(crate) fn top(context: &Context, top: &Top, out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let (mut before, mut at) = (look(&mut client)?, Instant::now());
    let is_screen = io::stdout().is_terminal();
    let mut left = top.iterations.or((!is_screen).then_some(1));
    while left != Some(0) {
        std::thread::sleep(top.delay);
        let (now, then) = (look(&mut client)?, std::mem::replace(&mut at, Instant::now()));
        let mut rows = rows(&before, &now, at.duration_since(then).as_secs_f64());
        sort(&mut rows, top.order);
        if context.is_json() {
            json_line(&rows, out)?;
        } else {
            let is_batch = top.batch || !is_screen;
            if !is_batch {
                write!(out, "{CLEAR}")?;
            }
            write(context, &rows, out)?;
            if is_batch && left != Some(1) {
                writeln!(out)?;
            }
        }
        out.flush()?;
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(Exit::Done)
}

/// Every unit that has processes.
fn look(client: &mut Client) -> Result<HashMap<String, Look>, ClientError> {
    let mut names = Vec::new();
    client.stream::<method::ListUnits, ClientError>(&ListUnitsRequest::default(), Some(ANSWER), |page| {
        names.extend(
            page.units.into_iter().filter(|unit| unit.main_pid > 0 || !unit.control_group.is_empty()),
        );
        Ok(())
    })?;
    let mut looks = HashMap::new();
    for unit in names {
        match client.call::<method::Get>(&UnitRequest { unit: unit.id.clone() }, Some(ANSWER)) {
            Ok(reply) => drop(looks.insert(unit.id, of(&reply.properties))),
            // It has gone since.
            Err(ClientError::Call(CallError::NoSuchUnit { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(looks)
}

const fn of(unit: &UnitProperties) -> Look {
    Look {
        cpu_nsec: unit.cpu_usage_nsec,
        memory: unit.memory_current,
        tasks: unit.tasks_current,
        read: unit.io_read_bytes,
        written: unit.io_write_bytes,
    }
}

/// What was used in between, by the second. Counters that went back belong to another run: nothing is known of it yet.
fn rows(before: &HashMap<String, Look>, now: &HashMap<String, Look>, seconds: f64) -> Vec<Row> {
    let rate = |old: Option<u64>, new: Option<u64>| Some(new?.checked_sub(old?)? as f64 / seconds);
    now.iter()
        .map(|(id, new)| {
            let old = before.get(id).cloned().unwrap_or_default();
            Row {
                id: id.clone(),
                cpu: rate(old.cpu_nsec, new.cpu_nsec).map(|nsec| (nsec / 1e6).round() / 10.0),
                memory_current: new.memory,
                tasks_current: new.tasks,
                read: rate(old.read, new.read).map(|bytes| bytes as u64),
                written: rate(old.written, new.written).map(|bytes| bytes as u64),
            }
        })
        .collect()
}

/// The largest first, those of which nothing is known last, equals by name.
fn sort(rows: &mut [Row], order: Order) {
    let key = |row: &Row| match order {
        Order::Cpu => row.cpu.map(|cpu| (cpu * 10.0) as u64),
        Order::Memory => row.memory_current,
        Order::Tasks => row.tasks_current,
        Order::Io => row.read.zip(row.written).map(|(read, written)| read.saturating_add(written)),
        Order::Unit => None,
    };
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.id.cmp(&b.id)));
}

fn write(context: &Context, rows: &[Row], out: &mut impl Write) -> std::io::Result<()> {
    let mut table = Table::new(["UNIT", "TASKS", "%CPU", "MEMORY", "INPUT/S", "OUTPUT/S"]);
    let size = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), bytes);
    for row in rows {
        table.row([
            Cell::from(one_line(&row.id).into_owned()),
            row.tasks_current.map_or_else(|| "-".to_owned(), |tasks| tasks.to_string()).into(),
            row.cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.1}")).into(),
            size(row.memory_current).into(),
            size(row.read).into(),
            size(row.written).into(),
        ]);
    }
    table.write(context.style, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(cpu_nsec: u64, memory: u64) -> Look {
        Look { cpu_nsec: Some(cpu_nsec), memory: Some(memory), ..Look::default() }
    }

    #[test]
    fn rates_are_what_was_used_in_between() {
        let before =
            HashMap::from([("a".to_owned(), looked(1_000_000_000, 7)), ("b".to_owned(), looked(9, 5))]);
        let now = HashMap::from([
            ("a".to_owned(), looked(2_000_000_000, 8)),
            ("b".to_owned(), looked(3, 6)),
            ("c".to_owned(), looked(4, 9)),
        ]);
        let mut rows = rows(&before, &now, 2.0);
        let ids = |rows: &[Row]| rows.iter().map(|row| row.id.clone()).collect::<String>();
        sort(&mut rows, Order::Cpu);
        assert_eq!(ids(&rows), "abc");
        assert_eq!(rows.iter().map(|row| row.cpu).collect::<Vec<_>>(), [Some(50.0), None, None]);
        sort(&mut rows, Order::Memory);
        assert_eq!(ids(&rows), "cab");
        sort(&mut rows, Order::Unit);
        assert_eq!(ids(&rows), "abc");
    }
}
