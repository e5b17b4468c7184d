//! Where the standard descriptors lead, and what becomes of what is written to them.

use std::time::Duration;

use super::super::{Setting, Slot};
use super::{scalar, texts, unescaped};
use crate::assignment::{Raw, Value};
use crate::draft::Draft;
use crate::schema::apply::{ApplyContext, resets, set};
use crate::values::{Refused, numbers, path, stream};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "StandardInput",
        Slot::Own("null, data, socket, tty, tty-force, tty-fail, file:/path or fd:NAME", |value, d, cx| {
            let input = scalar(value, cx, "a word", stream::input);
            set(&mut d.service.execution.input, input);
        }),
        "What descriptor 0 is; default null, and data where StandardInputText or StandardInputData say something.",
    ),
    Setting::new(
        "StandardInputText",
        Slot::Own("lines of text", |value, d, cx| match &value.raw {
            Raw::Text(text) if cx.foreign && text.contains('\\') => escaped_input(text, value, d, cx),
            _ => input(value, d, cx, |text| Ok([text.as_bytes(), b"\n"].concat())),
        }),
        "What descriptor 0 reads, each line with its end, with data.",
    ),
    Setting::new(
        "StandardInputData",
        Slot::Own("Base64", |value, d, cx| input(value, d, cx, stream::base64)),
        "The same as bytes.",
    ),
    Setting::new(
        "StandardOutput",
        Slot::Own(OUTPUT, |value, d, cx| {
            let output = scalar(value, cx, "a word", |text| stream::output(text, "stdout"));
            set(&mut d.service.execution.output, output);
        }),
        "What descriptor 1 is; default inherit, the same as descriptor 0 where that is a socket, a terminal or a descriptor by \
         its name, and journal elsewhere, which is the embedded log where there is no journal.",
    ),
    Setting::new(
        "StandardError",
        Slot::Own(OUTPUT, |value, d, cx| {
            let output = scalar(value, cx, "a word", |text| stream::output(text, "stderr"));
            set(&mut d.service.execution.error, output);
        }),
        "What descriptor 2 is; default inherit, the same as descriptor 1.",
    ),
    Setting::new(
        "TTYPath",
        Slot::Own("absolute path", |value, d, cx| {
            let tty = scalar(value, cx, "an absolute path", path::absolute);
            set(&mut d.service.execution.tty, tty);
        }),
        "The terminal of the tty words; default /dev/console.",
    ),
    Setting::new(
        "SyslogIdentifier",
        Slot::Own("word", |value, d, cx| {
            let name = scalar(value, cx, "a word", identifier);
            set(&mut d.service.execution.syslog_identifier, name);
        }),
        "How its lines are called in the journal; default the unit's name up to its @.",
    ),
    Setting::new(
        "LogLevelMax",
        Slot::Own("level of the log", |value, d, cx| {
            let level = scalar(value, cx, "a level", numbers::log_level);
            set(&mut d.service.execution.log_level_max, level.map(Some));
        }),
        "Lines that are less important than this level are dropped; default debug, none.",
    ),
    Setting::new(
        "SyslogLevel",
        Slot::Own("level of the log", |value, d, cx| {
            let level = scalar(value, cx, "a level", numbers::log_level);
            set(&mut d.service.execution.log_level, level);
        }),
        "The level of lines that do not name one; default info.",
    ),
    Setting::new(
        "SyslogFacility",
        Slot::Own("facility of syslog", |value, d, cx| {
            let facility = scalar(value, cx, "a facility", numbers::log_facility);
            set(&mut d.service.execution.log_facility, facility);
        }),
        "The facility of its lines in the journal; default daemon.",
    ),
    Setting::new(
        "SyslogLevelPrefix",
        Slot::Bool(|d| &mut d.service.execution.log_prefixes),
        "A number between < and > in front of a line is its level; default yes.",
    ),
    Setting::new(
        "LogRateLimitIntervalSec",
        Slot::Own("span of time", |value, d, cx| {
            let span = scalar(value, cx, "a span of time", crate::values::span::parse);
            let span = span.map(|span| Some(span.unwrap_or(Duration::ZERO)));
            set(&mut d.service.execution.log_rate_interval, span);
        }),
        "The span over which LogRateLimitBurst counts; 0 is no limit; default the log's, or 30 s with a burst.",
    ),
    Setting::new(
        "LogRateLimitBurst",
        Slot::Own("whole number", |value, d, cx| {
            let burst = scalar(value, cx, "a whole number", |text| numbers::between(text, 0, i32::MAX));
            set(&mut d.service.execution.log_rate_burst, burst.map(|number| Some(number.unsigned_abs())));
        }),
        "How many lines it may say in that span; what is more is counted and told in one line; default the log's, or 10000 \
         with a span.",
    ),
];

const OUTPUT: &str =
    "inherit, null, socket, tty, journal, kmsg, file:/path, append:/path, truncate:/path or fd:NAME";

/// Adds to what descriptor 0 reads; nothing takes all of it back.
fn input(
    value: &Value<'_>,
    draft: &mut Draft,
    cx: &mut ApplyContext<'_>,
    bytes: impl Fn(&str) -> Result<Vec<u8>, Refused>,
) {
    let mut found = Vec::new();
    texts(&mut found, value, cx, "a text", bytes);
    let data = &mut draft.service.execution.input_data;
    if resets(value) {
        data.clear();
    }
    data.extend(found.into_iter().flatten());
}

/// Adds a text in systemd's syntax: escapes first, so that what a specifier stands for has none.
fn escaped_input(text: &str, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let Some(bytes) = unescaped(text, false, &value.span, cx) else { return };
    let Ok(line) = String::from_utf8(bytes) else {
        let why = "has escapes that make no valid UTF-8";
        return cx.warn(&value.span, Refused::with_help(why, "write such bytes with StandardInputData"));
    };
    let line = cx.expand(&line, &value.span).map(|line| format!("{line}\n").into_bytes());
    draft.service.execution.input_data.extend(cx.take(&value.span, line).into_iter().flatten());
}

/// The stream's header has one line for it.
fn identifier(text: &str) -> Result<Option<String>, Refused> {
    match text {
        "" => Ok(None),
        text if text.chars().any(char::is_control) => {
            Err(Refused::of(text, "has characters that no line can hold", "write a plain word"))
        }
        text => Ok(Some(text.to_owned())),
    }
}
