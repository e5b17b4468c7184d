//! How things look: text that is safe to show, columns, times, sizes, colours.

pub(crate) mod exit_name;
pub(crate) mod safe;
pub(crate) mod size;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;

use std::io::{self, Write};

use serde::Serialize;

pub(crate) use safe::{one_line, plain};
pub(crate) use style::Style;

/// Writes a value as JSON and ends the line. Characters that could steer a terminal are escaped.
pub(crate) fn json<T: Serialize>(value: &T, out: &mut impl Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    writeln!(out, "{}", safe::json(&text))
}

/// Writes a value as one line of JSON, as streams do.
pub(crate) fn json_line<T: Serialize>(value: &T, out: &mut impl Write) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    writeln!(out, "{}", safe::json(&text))
}
