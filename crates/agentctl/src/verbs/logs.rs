//! `logs`: the lines of units, from the manager's own log or from the journal, in one form.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use agentd_protocol::method;
use agentd_protocol::unit::{GetLogsReply, LogEntry};
use agentd_protocol::words::{LogSource, LogStream};
use agentd_unit::UnitName;

use crate::args::Logs;
use crate::client::{ANSWER, Client, ClientError};
use crate::context::{Context, last_lines};
use crate::exit::{Exit, Failure, Outcome};
use crate::print::time::Clock;
use crate::print::{json_line, one_line};
use crate::report::complain;

mod journal;

/// How many lines `-f` begins with, as journalctl has it.
const FOLLOW_LINES: u32 = 10;

/// How many entries wait between those who read and the one who prints.
const QUEUE: usize = 256;

/// `agentctl logs UNIT… [-f] [-n N]`: a unit whose log cannot be read does not keep the others from being shown.
pub(crate) fn logs(context: &Context, logs: &Logs, out: &mut impl Write) -> Outcome {
    let lines = logs.lines.or(logs.follow.then_some(FOLLOW_LINES));
    if logs.follow {
        return follow(context, &logs.units, lines, out);
    }
    let mut client = context.connect()?;
    let mut worst = Exit::Done;
    let mut entries = Vec::new();
    for unit in &logs.units {
        let read = read(context, &mut client, unit, lines, false, &mut |entry| {
            entries.push(entry);
            Ok(())
        });
        worst = worst.max(only_this_log(unit, read)?);
    }
    // Each unit's own lines are in order already; a stable sort keeps them so.
    entries.sort_by_key(|entry| entry.timestamp);
    for entry in &entries {
        write_entry(context, entry, out)?;
    }
    Ok(worst)
}

/// Tells that one unit's log cannot be read, and goes on; that the manager is gone ends the verb.
fn only_this_log(unit: &UnitName, read: Result<(), Failure>) -> Outcome {
    match read {
        Ok(()) => Ok(Exit::Done),
        Err(failure @ (Failure::Client(ClientError::Call(_)) | Failure::Other { .. })) => {
            complain(&format!("Failed to read the log of {unit}"), &failure);
            Ok(failure.exit())
        }
        Err(failure) => Err(failure),
    }
}

/// The last `lines` of a unit, oldest first. They were asked for before, by [`last_lines`].
pub(crate) fn tail(
    context: &Context,
    client: &mut Client,
    unit: &UnitName,
    lines: u32,
) -> Result<Vec<LogEntry>, Failure> {
    let mut entries = Vec::new();
    receive(context, client, unit, Some(lines), false, &mut |entry| {
        entries.push(entry);
        Ok(())
    })?;
    Ok(entries)
}

/// Follows each unit in a thread and over a connection of its own, and prints lines as they come.
///
/// The threads are not waited for: if what is printed goes nowhere any more, they may be waiting for lines that never
/// come, and the end of the program is theirs too.
fn follow(context: &Context, units: &[UnitName], lines: Option<u32>, out: &mut impl Write) -> Outcome {
    let (sender, receiver) = sync_channel(QUEUE);
    for unit in units.iter().cloned() {
        let (context, sender) = (context.clone(), sender.clone());
        thread::spawn(move || {
            let ended = follow_one(&context, &unit, lines, &mut |entry| give(&sender, entry));
            // If nobody receives any more, the verb is over.
            drop(sender.send(Message::Ended(unit, ended)));
        });
    }
    drop(sender);
    print_all(context, receiver, out)
}

/// Follows one unit over re-executions of the manager: its successor closes the connection, and is asked for what came after
/// the last line.
fn follow_one(
    context: &Context,
    unit: &UnitName,
    mut lines: Option<u32>,
    each: &mut dyn FnMut(LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut last = Last::default();
    loop {
        let (begun, before) = (Instant::now(), last);
        let mut new = last.skipping();
        let mut fresh = |entry: LogEntry| if new.is_new(&mut last, &entry) { each(entry) } else { Ok(()) };
        let ended = context
            .connect()
            .map_err(Failure::from)
            .and_then(|mut client| read(context, &mut client, unit, lines, true, &mut fresh));
        let is_cut_off = matches!(&ended, Err(Failure::Client(ClientError::Closed | ClientError::Broken(_))));
        // Who is cut off at once, again and again, is not wanted.
        if !is_cut_off || last == before && begun.elapsed() < AT_ONCE {
            return ended;
        }
        lines = Some(CATCH_UP);
    }
}

/// A connection that ends sooner, without a new line, is not made again.
const AT_ONCE: Duration = Duration::from_millis(100);

/// How many lines may have come between two managers.
const CATCH_UP: u32 = 10_000;

/// The time of the last line, and how many lines of that time there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Last {
    time: u64,
    count: usize,
}

impl Last {
    /// What tells the lines that came since from those that were seen.
    const fn skipping(self) -> Skipping {
        Skipping { until: self, same: 0 }
    }

    fn note(&mut self, time: u64) {
        let count = if time == self.time { self.count + 1 } else { 1 };
        *self = Self { time, count };
    }
}

/// See [`Last::skipping`].
struct Skipping {
    until: Last,
    /// So many lines of that time have come again.
    same: usize,
}

impl Skipping {
    fn is_new(&mut self, last: &mut Last, entry: &LogEntry) -> bool {
        let is_new = match entry.timestamp.cmp(&self.until.time) {
            Ordering::Less => false,
            Ordering::Equal => {
                self.same += 1;
                self.same > self.until.count
            }
            Ordering::Greater => true,
        };
        if is_new {
            last.note(entry.timestamp);
        }
        is_new
    }
}

/// What the threads send to the one who prints.
enum Message {
    Entry(LogEntry),
    Ended(UnitName, Result<(), Failure>),
}

fn give(sender: &SyncSender<Message>, entry: LogEntry) -> Result<(), Failure> {
    sender.send(Message::Entry(entry)).map_err(|_| Failure::Output(io::ErrorKind::BrokenPipe.into()))
}

/// Ends when the last one who reads has ended, or when what is printed goes nowhere.
fn print_all(context: &Context, receiver: Receiver<Message>, out: &mut impl Write) -> Outcome {
    let mut worst = Exit::Done;
    for message in receiver {
        match message {
            Message::Entry(entry) => {
                write_entry(context, &entry, out)?;
                out.flush()?;
            }
            Message::Ended(unit, ended) => worst = worst.max(only_this_log(&unit, ended)?),
        }
    }
    Ok(worst)
}

/// Hands every entry of a unit to `each`, from wherever it is kept.
fn read(
    context: &Context,
    client: &mut Client,
    unit: &UnitName,
    lines: Option<u32>,
    follow: bool,
    each: &mut dyn FnMut(LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    client.send(&[Client::for_many::<method::GetLogs>(&last_lines(unit, lines, follow))?])?;
    receive(context, client, unit, lines, follow, each)
}

/// The same of what was asked for before.
fn receive(
    context: &Context,
    client: &mut Client,
    unit: &UnitName,
    lines: Option<u32>,
    follow: bool,
    each: &mut dyn FnMut(LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut kept = Vec::new();
    let mut source = LogSource::Embedded;
    let limit = if follow { None } else { Some(ANSWER) };
    client.receive_all(limit, |page: GetLogsReply| {
        source = page.source;
        let mut entries = page.entries.into_iter().map(|entry| named(unit, entry));
        if source == LogSource::Embedded {
            return entries.try_for_each(&mut *each);
        }
        kept.extend(entries);
        Ok(())
    })?;
    match (source, follow) {
        (LogSource::Embedded, _) => Ok(()),
        (LogSource::Journal, false) => {
            let mut journal = Vec::new();
            let read = journal::read(context.user, unit, lines, false, &mut |entry| {
                journal.push(entry);
                Ok(())
            });
            merged(kept, journal, lines).into_iter().try_for_each(each)?;
            read
        }
        (LogSource::Journal, true) => {
            // The journal has all that the manager said, but not what the unit said before it was there.
            let early = kept.into_iter().filter(|entry| entry.stream == LogStream::Output);
            early.into_iter().try_for_each(&mut *each)?;
            journal::read(context.user, unit, lines, true, each)
        }
    }
}

/// The last `lines` of both, in the order of their times. What the manager says is in both: its own log keeps it for
/// when there is no journal.
fn merged(kept: Vec<LogEntry>, journal: Vec<LogEntry>, lines: Option<u32>) -> Vec<LogEntry> {
    let in_journal: HashSet<(String, String)> = journal
        .iter()
        .filter(|entry| entry.stream == LogStream::Manager)
        .map(|entry| (entry.invocation_id.clone(), entry.message.clone()))
        .collect();
    let twice = |entry: &LogEntry| {
        entry.stream == LogStream::Manager
            && in_journal.contains(&(entry.invocation_id.clone(), entry.message.clone()))
    };
    let mut all: Vec<LogEntry> = kept.into_iter().filter(|entry| !twice(entry)).chain(journal).collect();
    all.sort_by_key(|entry| entry.timestamp);
    let wanted = lines.map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
    all.split_off(all.len().saturating_sub(wanted))
}

/// The manager's own log does not say who speaks: its lines are the unit's or its own.
fn named(unit: &UnitName, mut entry: LogEntry) -> LogEntry {
    if entry.identifier.is_empty() {
        entry.identifier = match entry.stream {
            LogStream::Output => unit.stem().to_owned(),
            LogStream::Manager => "agentd".to_owned(),
        };
    }
    entry
}

fn write_entry(context: &Context, entry: &LogEntry, out: &mut impl Write) -> io::Result<()> {
    if context.is_json() { json_line(entry, out) } else { writeln!(out, "{}", line(&context.clock, entry)) }
}

/// `Nov 29 16:47:00 web[123]: what it said`.
pub(crate) fn line(clock: &Clock, entry: &LogEntry) -> String {
    let pid = entry.pid.map_or_else(String::new, |pid| format!("[{pid}]"));
    let who = one_line(&entry.identifier);
    format!("{} {who}{pid}: {}", clock.short(entry.timestamp), one_line(&entry.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_speaker_is_the_units_or_the_managers() {
        let unit = UnitName::parse("web@2.service").unwrap();
        let said_by = |stream| named(&unit, LogEntry { stream, ..LogEntry::default() }).identifier;
        assert_eq!(said_by(LogStream::Output), "web@2");
        assert_eq!(said_by(LogStream::Manager), "agentd");
        let entry = LogEntry { identifier: "own".into(), ..LogEntry::default() };
        assert_eq!(named(&unit, entry).identifier, "own");
    }

    #[test]
    fn lines_that_come_again_are_told_from_those_that_came_since() {
        let mut last = Last::default();
        let mut shown = |times: &[u64]| {
            let mut skipping = last.skipping();
            let entry = |time| LogEntry { timestamp: time, ..LogEntry::default() };
            times
                .iter()
                .filter(|time| skipping.is_new(&mut last, &entry(**time)))
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&[1, 2, 2]), [1, 2, 2]);
        assert_eq!(shown(&[1, 2, 2, 2, 3]), [2, 3]);
        assert!(shown(&[2, 2, 2, 3]).is_empty());
        assert_eq!(shown(&[3, 3]), [3]);
    }

    #[test]
    fn what_both_logs_have_is_shown_once_and_the_rest_in_order() {
        let entry = |timestamp, stream, run: &str, message: &str| LogEntry {
            timestamp,
            stream,
            invocation_id: run.into(),
            message: message.into(),
            ..LogEntry::default()
        };
        let kept = vec![
            entry(1, LogStream::Output, "a", "before the journal"),
            entry(2, LogStream::Manager, "a", "Started"),
            entry(6, LogStream::Manager, "b", "Started"),
        ];
        let journal = vec![
            entry(3, LogStream::Manager, "a", "Started"),
            entry(4, LogStream::Output, "a", "Started"),
            entry(5, LogStream::Output, "a", "at work"),
        ];
        let texts = |lines| -> Vec<(u64, String)> {
            let all = merged(kept.clone(), journal.clone(), lines);
            all.into_iter().map(|entry| (entry.timestamp, entry.message)).collect()
        };
        let times = |lines| texts(lines).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(times(None), [1, 3, 4, 5, 6]);
        assert_eq!(times(Some(2)), [5, 6]);
    }

    #[test]
    fn a_line_says_when_who_and_what() {
        let entry = LogEntry {
            timestamp: 1_795_970_820_000_000,
            identifier: "web".into(),
            pid: Some(7),
            message: "hot\x1b[31m".into(),
            ..LogEntry::default()
        };
        let clock = Clock::fixed(0);
        assert_eq!(line(&clock, &entry), "Nov 29 16:47:00 web[7]: hot\\u{1b}[31m");
        assert_eq!(line(&clock, &LogEntry { pid: None, ..entry }), "Nov 29 16:47:00 web: hot\\u{1b}[31m");
    }
}
