//! The lines of a unit, for `logs`: from the embedded log, or the word that the journal has them.

use agentd_engine::UnitView;
use agentd_protocol::unit::{GetLogsReply, GetLogsRequest, LogEntry};
use agentd_protocol::words::{LogSource, LogStream};
use agentd_protocol::{CallError, Reply};

use super::{Answer, continued, last};
use crate::log::{Entry, Origin};
use crate::world::World;

/// How many entries stand in one reply: with lines of up to 64 KiB, a page that is too long is cut in two.
const PAGE: usize = 256;

/// How many bytes of text stand in one reply, well below the bound on a frame even when every byte is escaped.
const PAGE_BYTES: usize = 128 << 10;

/// Sends the newest lines of a unit, all that are kept where the client does not say how many, and with `follow` each new one as it comes, unless the journal has them: then the
/// call ends with that word.
pub fn send(
    view: &UnitView,
    request: &GetLogsRequest,
    more: bool,
    answer: &Answer,
    world: &mut World,
) -> bool {
    if request.follow && !more {
        return answer.result::<GetLogsReply>(Err(CallError::ExpectedMore {}));
    }
    let unit = &view.unit.name;
    let identifier = unit.stem().to_owned();
    let source = if world.journal_has(unit) { LogSource::Journal } else { LogSource::Embedded };
    let lines = request.lines.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let Some(log) = &world.log else {
        return answer.send(last(&GetLogsReply { source, entries: Vec::new() }));
    };
    let answer = answer.clone();
    // What the journal gets is followed there: this log would never have another line of the unit.
    if request.follow && source == LogSource::Embedded {
        // The sink stays until the client goes; the main loop then ends it.
        let follower = answer.downgrade();
        let mut sink = Some(answer);
        let id = log.follow(unit, lines, move |entries| {
            // A client that reads too slowly is let go, as a gap in what it sees would be worse.
            let pages = pages(source, &identifier, entries, false);
            if !sink.as_ref().is_some_and(|answer| answer.send_all(pages)) {
                sink = None;
            }
        });
        world.followers.push((id, follower));
        return true;
    }
    log.read(unit, lines, move |entries| match entries {
        Ok(entries) => {
            let all = pages(source, &identifier, entries, true);
            if more || all.len() == 1 {
                answer.send_all(all);
            } else {
                answer.result::<GetLogsReply>(Err(CallError::ExpectedMore {}));
            }
        }
        Err(error) => {
            let message = format!("the log cannot be read: {error}");
            answer.result::<GetLogsReply>(Err(CallError::Failed { message }));
        }
    });
    true
}

/// The entries as replies; the last of them ends the call if `end`.
fn pages(source: LogSource, identifier: &str, entries: Vec<Entry>, end: bool) -> Vec<Reply> {
    let mut pages: Vec<Vec<LogEntry>> = vec![Vec::new()];
    let mut bytes = 0;
    for entry in entries {
        let full =
            pages.last().is_some_and(|page| page.len() == PAGE || bytes + entry.text.len() > PAGE_BYTES);
        if full {
            pages.push(Vec::new());
            bytes = 0;
        }
        bytes += entry.text.len();
        if let Some(page) = pages.last_mut() {
            page.push(wire(identifier, entry));
        }
    }
    let count = pages.len();
    let page = |(i, entries)| {
        let reply = GetLogsReply { source, entries };
        if end && i + 1 == count { last(&reply) } else { continued(&reply) }
    };
    pages.into_iter().enumerate().map(page).collect()
}

fn wire(identifier: &str, entry: Entry) -> LogEntry {
    LogEntry {
        timestamp: u64::try_from(entry.realtime.as_micros()).unwrap_or(0),
        priority: entry.priority,
        invocation_id: entry.run.map(|run| run.to_string()).unwrap_or_default(),
        identifier: match entry.origin {
            Origin::Output => identifier.to_owned(),
            Origin::Manager => "agentd".to_owned(),
        },
        pid: None,
        stream: match entry.origin {
            Origin::Output => LogStream::Output,
            Origin::Manager => LogStream::Manager,
        },
        message: String::from_utf8_lossy(&entry.text).into_owned(),
    }
}
