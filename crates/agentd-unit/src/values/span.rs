//! Spans of time, systemd.time(7) "PARSING TIME SPANS".

use std::time::Duration;

use super::Refused;

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// 30.4375 days, as in systemd.
const MONTH: u64 = 2_629_800 * SECOND;
/// 365.25 days, as in systemd.
const YEAR: u64 = 31_557_600 * SECOND;

/// The units with their microseconds.
const UNITS: [(&str, u64); 28] = [
    ("", SECOND),
    ("s", SECOND),
    ("sec", SECOND),
    ("second", SECOND),
    ("seconds", SECOND),
    ("us", 1),
    ("usec", 1),
    ("µs", 1),
    ("μs", 1),
    ("ms", 1000),
    ("msec", 1000),
    ("m", MINUTE),
    ("min", MINUTE),
    ("minute", MINUTE),
    ("minutes", MINUTE),
    ("h", HOUR),
    ("hr", HOUR),
    ("hour", HOUR),
    ("hours", HOUR),
    ("d", DAY),
    ("day", DAY),
    ("days", DAY),
    ("w", WEEK),
    ("week", WEEK),
    ("weeks", WEEK),
    ("M", MONTH),
    ("month", MONTH),
    ("months", MONTH),
];
const YEARS: [&str; 3] = ["y", "year", "years"];

const HELP: &str = "write for example 90, \"1min 30s\", \"500ms\" or \"infinity\"";

/// A span such as `1min 30s`, `1.5s` or a bare number of seconds; `None` is `infinity`. Exact to a microsecond.
///
/// # Errors
/// Text that is no span, a negative one, and one beyond 2^64 microseconds.
pub fn parse(text: &str) -> Result<Option<Duration>, Refused> {
    let trimmed = text.trim();
    if trimmed == "infinity" {
        return Ok(None);
    }
    if trimmed.is_empty() {
        return Err(Refused::with_help("a span of time is missing", HELP));
    }
    let mut total: u64 = 0;
    let mut rest = trimmed;
    while !rest.is_empty() {
        let (micros, after) = component(text, rest)?;
        total = total.checked_add(micros).ok_or_else(|| too_long(text))?;
        rest = after.trim_start();
    }
    if total == u64::MAX {
        return Err(too_long(text));
    }
    Ok(Some(Duration::from_micros(total)))
}

fn too_long(text: &str) -> Refused {
    Refused::of(text, "is longer than 584542 years", "write \"infinity\" for no bound")
}

/// One number with its unit, in microseconds, and what stands behind it.
fn component<'t>(text: &str, rest: &'t str) -> Result<(u64, &'t str), Refused> {
    if rest.starts_with('-') {
        return Err(Refused::of(text, "is negative", "a span of time counts forward"));
    }
    let no_span = || Refused::of(text, "is no span of time", HELP);
    let (whole, after) = digits(rest);
    let (fraction, after) = match after.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(no_span());
    }
    let spaced = after.trim_start();
    let (word, behind) = spaced.split_at(spaced.find(|c: char| !c.is_alphabetic()).unwrap_or(spaced.len()));
    if word.is_empty() && spaced.len() == after.len() && !spaced.is_empty() {
        return Err(no_span()); // As in 12.34.56.
    }
    let unit = UNITS.iter().find(|(name, _)| *name == word).map(|(_, micros)| *micros);
    let unit = unit.or(YEARS.contains(&word).then_some(YEAR)).ok_or_else(|| {
        Refused::of(text, &format!("has the unknown unit '{word}'"), "units are us ms s min h d w M y")
    })?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_long(text))? };
    let micros = whole.checked_mul(unit).ok_or_else(|| too_long(text))?;
    Ok((micros.checked_add(fraction_of(fraction, unit)).ok_or_else(|| too_long(text))?, behind))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The decimals of one unit in microseconds, rounded down; digits beyond the twentieth cannot matter.
fn fraction_of(decimals: &str, unit: u64) -> u64 {
    let mut scale: u128 = 1;
    let mut value: u128 = 0;
    for digit in decimals.bytes().take(20) {
        scale *= 10;
        value = value * 10 + u128::from(digit - b'0');
    }
    u64::try_from(u128::from(unit) * value / scale).unwrap_or(0)
}

/// The span as systemd prints it: `1min 30s`; `0`; the parser reads it back to the microsecond.
#[must_use]
pub fn display(span: Duration) -> String {
    const PRINTED: [(&str, u64); 9] = [
        ("y", YEAR),
        ("month", MONTH),
        ("w", WEEK),
        ("d", DAY),
        ("h", HOUR),
        ("min", MINUTE),
        ("s", SECOND),
        ("ms", 1000),
        ("us", 1),
    ];
    let mut left = u64::try_from(span.as_micros()).unwrap_or(u64::MAX - 1);
    let mut parts = Vec::new();
    for (name, micros) in PRINTED {
        if left >= micros {
            parts.push(format!("{}{name}", left / micros));
            left %= micros;
        }
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join(" ") }
}
