//! `analyze calendar` and `analyze timespan`, as systemd-analyze(1) prints them.

use std::io::Write;

use agentd_unit::Realtime;
use agentd_unit::calendar::CalendarSpec;
use agentd_unit::values::span;
use serde::Serialize;

use crate::args::analyze::{Calendar, Timespan};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::offline;
use crate::print::{json, one_line};

/// What `calendar` prints for an expression with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Matches {
    original: String,
    normalized: String,
    #[serde(rename = "NextElapseUSec")]
    next: Vec<u64>,
}

/// `agentctl analyze calendar EXPRESSION…`: 1 if one of them is none.
pub(super) fn calendar(context: &Context, arguments: &Calendar, out: &mut impl Write) -> Outcome {
    let base = context.clock.read(&arguments.base_time).ok_or_else(|| {
        let text = one_line(&arguments.base_time);
        Failure::Usage(format!(
            "--base-time: '{text}' is no time; write 'now', '@SECONDS' or '2026-11-29 10:00:00'"
        ))
    })?;
    let zone = offline::zone();
    let (mut exit, mut all) = (Exit::Done, Vec::new());
    for original in &arguments.expressions {
        match CalendarSpec::parse(original, &zone) {
            Ok(spec) => {
                let mut at = Realtime(i64::try_from(base).unwrap_or(i64::MAX));
                let mut next = Vec::new();
                while let (true, Some(time)) =
                    (next.len() < arguments.iterations as usize, spec.next_after(at))
                {
                    next.push(u64::try_from(time.as_micros()).unwrap_or(0));
                    at = time;
                }
                all.push(Matches { original: original.clone(), normalized: spec.to_string(), next });
            }
            Err(refused) => {
                complain("calendar specification", original, &refused);
                exit = Exit::Failed;
            }
        }
    }
    if context.is_json() {
        json(&all, out)?;
        return Ok(exit);
    }
    for (at, matches) in all.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        write_matches(context, matches, out)?;
    }
    Ok(exit)
}

fn write_matches(context: &Context, matches: &Matches, out: &mut impl Write) -> std::io::Result<()> {
    let mut line = |label: &str, value: &str| writeln!(out, "{label:>15}: {}", one_line(value));
    if matches.original != matches.normalized {
        line("Original form", &matches.original)?;
    }
    line("Normalized form", &matches.normalized)?;
    if matches.next.is_empty() {
        return line("Next elapse", "never");
    }
    for (at, micros) in matches.next.iter().enumerate() {
        let label = if at == 0 { "Next elapse".to_owned() } else { format!("Iter. #{}", at + 1) };
        line(&label, &context.clock.point(*micros))?;
        if let Some(utc) = context.clock.point_in_utc(*micros) {
            line("(in UTC)", &utc)?;
        }
        line("From now", &context.clock.relative(*micros))?;
    }
    Ok(())
}

/// What `timespan` prints for a span with `-o json`; `null`: without end.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Meaning {
    original: String,
    #[serde(rename = "USec")]
    usec: Option<u64>,
    human: String,
}

/// `agentctl analyze timespan SPAN…`: 1 if one of them is none.
pub(super) fn timespan(context: &Context, arguments: &Timespan, out: &mut impl Write) -> Outcome {
    let (mut exit, mut all) = (Exit::Done, Vec::new());
    for original in &arguments.spans {
        match span::parse(original) {
            Ok(found) => {
                let usec = found.map(|span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
                let human = usec.map_or_else(|| "infinity".to_owned(), human);
                all.push(Meaning { original: original.clone(), usec, human });
            }
            Err(refused) => {
                complain("time span", original, &refused);
                exit = Exit::Failed;
            }
        }
    }
    if context.is_json() {
        json(&all, out)?;
        return Ok(exit);
    }
    for (at, meaning) in all.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "Original: {}", one_line(&meaning.original))?;
        // systemd's number for a span without end.
        writeln!(out, "      μs: {}", meaning.usec.unwrap_or(u64::MAX))?;
        writeln!(out, "   Human: {}", meaning.human)?;
    }
    Ok(exit)
}

fn complain(what: &str, text: &str, refused: &agentd_unit::values::Refused) {
    let help = refused.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    eprintln!("Failed to parse {what} '{}': {}{help}", one_line(text), one_line(&refused.why));
}

/// A span as systemd's format_timespan() has it to the microsecond: below a minute what is left becomes decimals, with
/// all their zeros.
fn human(micros: u64) -> String {
    const MINUTE: u64 = 60_000_000;
    const UNITS: [(&str, u64, usize); 9] = [
        ("y", 31_557_600_000_000, 0),
        ("month", 2_629_800_000_000, 0),
        ("w", 604_800_000_000, 0),
        ("d", 86_400_000_000, 0),
        ("h", 3_600_000_000, 0),
        ("min", MINUTE, 0),
        ("s", 1_000_000, 6),
        ("ms", 1_000, 3),
        ("us", 1, 0),
    ];
    let (mut left, mut parts) = (micros, Vec::new());
    for (name, unit, digits) in UNITS {
        if left < unit {
            continue;
        }
        let (count, rest) = (left / unit, left % unit);
        if left < MINUTE && rest > 0 {
            parts.push(format!("{count}.{rest:0digits$}{name}"));
            left = 0;
        } else {
            parts.push(format!("{count}{name}"));
            left = rest;
        }
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_printed_as_systemd_analyze_prints_it() {
        for (micros, text) in [
            (0, "0"),
            (1, "1us"),
            (1_500, "1.500ms"),
            (1_500_000, "1.500000s"),
            (61_250_000, "1min 1.250000s"),
            (7_200_250_000, "2h 250ms"),
            (1_296_000_000_000, "2w 1d"),
        ] {
            assert_eq!(human(micros), text);
        }
    }
}
