//! One line of a unit's log, and how it stands in the file.
//!
//! ```text
//! 2026-11-29T12:00:00.000001Z run 0f2d9c5a6e1b4c7f8a9b0c1d2e3f4a5b
//! 2026-11-29T12:00:00.123456Z <6> listening on port 8080
//! 2026-11-29T12:00:07.000100Z <3>. panicked, and these last words have no end of line
//! 2026-11-29T12:00:07.000150Z <4>* web.service: Main process exited, code=dumped
//! ```
//!
//! A *run line* says to which invocation the lines after it belong, up to the next one. It opens every file, and is
//! repeated now and then so that nobody has to look far back for it. `run -` stands before lines of no invocation.
//! Every other line has its priority (syslog(3), 0 to 7), marks, one space and the text. The text has no newline
//! and no NUL; all other bytes stand as they were written.

use agentd_engine::InvocationId;
use agentd_unit::Realtime;

use super::stamp;

/// One line of a unit's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it was read from the agent.
    pub realtime: Realtime,
    /// How loud: 0 (emergency) to 7 (debug), syslog(3).
    pub priority: u8,
    /// The invocation that it belongs to; `None` for what the manager says between two of them.
    pub run: Option<InvocationId>,
    /// Who says it.
    pub origin: Origin,
    /// How the line ended where it was written.
    pub ending: Ending,
    /// What it says: any bytes but newline and NUL. Not always UTF-8, and not safe for a terminal as it is.
    pub text: Vec<u8>,
}

/// Who says a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Origin {
    /// A process of the unit, on its standard output or standard error.
    #[default]
    Output,
    /// The manager, about the unit.
    Manager,
}

/// How a line ended where it was written; journald has the same in `_LINE_BREAK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ending {
    /// With a newline.
    #[default]
    Newline,
    /// Not at all: it is longer than a line may be, and goes on in the next entry of its run (`line-max`).
    Continues,
    /// Not at all: the process ended or closed its output (`eof`).
    Eof,
    /// With a NUL byte (`nul`).
    Nul,
}

/// What a line of a file is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The lines after it belong to this run.
    Run(Option<InvocationId>),
    /// An entry; its run is that of the last run line.
    Entry(Entry),
}

/// Appends one entry as a line. `text` has no newline and no NUL.
pub(crate) fn write_entry(
    out: &mut Vec<u8>,
    stamp: &[u8; stamp::LENGTH],
    priority: u8,
    origin: Origin,
    ending: Ending,
    text: &[u8],
) {
    out.extend_from_slice(stamp);
    out.extend_from_slice(&[b' ', b'<', b'0' + (priority & 7), b'>']);
    if origin == Origin::Manager {
        out.push(b'*');
    }
    match ending {
        Ending::Newline => {}
        Ending::Continues => out.push(b'+'),
        Ending::Eof => out.push(b'.'),
        Ending::Nul => out.push(b'0'),
    }
    out.push(b' ');
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// The bytes of [`head`].
pub(crate) const HEAD_LENGTH: usize = stamp::LENGTH + 5;

/// What [`write_entry`] writes before the text of a process's line that ends with a newline.
pub(crate) fn head(stamp: &[u8; stamp::LENGTH], priority: u8) -> [u8; HEAD_LENGTH] {
    let mut head = [b' '; HEAD_LENGTH];
    head[..stamp::LENGTH].copy_from_slice(stamp);
    head[stamp::LENGTH + 1..stamp::LENGTH + 4].copy_from_slice(&[b'<', b'0' + (priority & 7), b'>']);
    head
}

/// The bytes that [`write_entry`] adds to a text, at most.
pub(crate) const ENTRY_OVERHEAD: usize = stamp::LENGTH + 8;

/// Appends one run line.
pub(crate) fn write_run(out: &mut Vec<u8>, stamp: &[u8; stamp::LENGTH], run: Option<InvocationId>) {
    out.extend_from_slice(stamp);
    match run {
        Some(run) => out.extend_from_slice(format!(" run {run}\n").as_bytes()),
        None => out.extend_from_slice(b" run -\n"),
    }
}

/// The longest run line, in bytes.
pub(crate) const RUN_LENGTH: usize = stamp::LENGTH + 38;

/// What a line says, without its newline; `None` if it is damaged.
pub(crate) fn parse(line: &[u8]) -> Option<Line> {
    let (stamp, rest) = line.split_at_checked(stamp::LENGTH)?;
    let realtime = Realtime(stamp::parse(stamp)?);
    if let Some(run) = rest.strip_prefix(b" run ") {
        return parse_run(run).map(Line::Run);
    }
    let rest = rest.strip_prefix(b" <")?;
    let (&[digit, close], mut rest) = rest.split_first_chunk()?;
    if !(b'0'..=b'7').contains(&digit) || close != b'>' {
        return None;
    }
    let (mut origin, mut ending) = (Origin::Output, Ending::Newline);
    loop {
        let (mark, after) = rest.split_first()?;
        rest = after;
        match mark {
            b' ' => break,
            b'*' => origin = Origin::Manager,
            b'+' => ending = Ending::Continues,
            b'.' => ending = Ending::Eof,
            b'0' => ending = Ending::Nul,
            _ => return None,
        }
    }
    let text = rest.to_vec();
    Some(Line::Entry(Entry { realtime, priority: digit - b'0', run: None, origin, ending, text }))
}

/// Whether a line is a run line, told without allocating.
pub(crate) fn is_run_line(line: &[u8]) -> bool {
    line.get(stamp::LENGTH..)
        .and_then(|rest| rest.strip_prefix(b" run "))
        .is_some_and(|run| parse_run(run).is_some())
}

fn parse_run(text: &[u8]) -> Option<Option<InvocationId>> {
    if text == b"-" {
        return Some(None);
    }
    let text = std::str::from_utf8(text).ok().filter(|t| t.len() == 32 && !t.starts_with('+'))?;
    text.parse().ok().map(Some)
}

/// The entries in the bytes of whole lines, with their runs; lines before the first run line get `run`. Damaged
/// lines are told as one entry of the manager for each stretch of them.
pub(crate) fn entries(bytes: &[u8], mut run: Option<InvocationId>) -> Vec<Entry> {
    let mut out = Vec::new();
    let mut damaged = 0;
    let mut last = Realtime(0);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let parsed = parse(line.strip_suffix(b"\n").unwrap_or(line));
        if parsed.is_none() {
            damaged += line.len();
            continue;
        }
        tell_damage(&mut out, &mut damaged, last, run);
        match parsed {
            Some(Line::Run(next)) => run = next,
            Some(Line::Entry(entry)) => {
                last = entry.realtime;
                out.push(Entry { run, ..entry });
            }
            None => {}
        }
    }
    tell_damage(&mut out, &mut damaged, last, run);
    out
}

fn tell_damage(out: &mut Vec<Entry>, damaged: &mut usize, realtime: Realtime, run: Option<InvocationId>) {
    if *damaged > 0 {
        let text = format!("{damaged} bytes of the log are damaged here").into_bytes();
        let (origin, ending) = (Origin::Manager, Ending::Newline);
        out.push(Entry { realtime, priority: 4, run, origin, ending, text });
        *damaged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_comes_back_as_it_was_written() {
        let run = Some(InvocationId(0x0f2d_9c5a));
        for priority in 0..8 {
            for origin in [Origin::Output, Origin::Manager] {
                for ending in [Ending::Newline, Ending::Continues, Ending::Eof, Ending::Nul] {
                    for text in
                        [&b"hello"[..], b"", b" * <3> run -", b"\xff\x1b[31m\r\t\x01", "müde".as_bytes()]
                    {
                        let entry = Entry {
                            realtime: Realtime(1_795_953_600_123_456),
                            priority,
                            run,
                            origin,
                            ending,
                            text: text.to_vec(),
                        };
                        let mut bytes = Vec::new();
                        let stamp = stamp::format(entry.realtime.0);
                        write_run(&mut bytes, &stamp, run);
                        write_entry(&mut bytes, &stamp, priority, origin, ending, text);
                        assert_eq!(entries(&bytes, None), [entry]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_line_is_no_longer_than_its_bound() {
        let mut bytes = Vec::new();
        write_run(&mut bytes, &stamp::format(0), Some(InvocationId(u128::MAX)));
        assert_eq!(bytes.len(), RUN_LENGTH);
    }

    #[test]
    fn damaged_lines_are_told_once_and_the_others_kept() {
        let mut bytes = b"\0\0\0\0\ngarbage\n".to_vec();
        write_entry(&mut bytes, &stamp::format(7), 6, Origin::Output, Ending::Newline, b"good");
        bytes.extend_from_slice(b"1970-01-01T00:00:0");
        let entries = entries(&bytes, None);
        let texts: Vec<_> = entries.iter().map(|e| String::from_utf8_lossy(&e.text)).collect();
        assert_eq!(
            texts,
            ["13 bytes of the log are damaged here", "good", "18 bytes of the log are damaged here"]
        );
    }
}
