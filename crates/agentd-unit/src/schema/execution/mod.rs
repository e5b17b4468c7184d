//! The keys of `[Service]` that say how its processes are executed, systemd.exec(5).

mod calls;
mod credentials;
mod environment;
mod folders;
mod kernel;
mod limits;
mod process;
mod resources;
mod sandbox;
mod streams;

use std::ops::Range;

pub(super) use resources::OF_SLICES;

use super::apply::{ApplyContext, append, resets};
use super::{Setting, joined};
use crate::assignment::{Raw, Value};
use crate::values::{Refused, words};

/// How many keys there are.
const COUNT: usize = process::SETTINGS.len()
    + limits::SETTINGS.len()
    + environment::SETTINGS.len()
    + streams::SETTINGS.len()
    + folders::SETTINGS.len()
    + kernel::SETTINGS.len()
    + sandbox::SETTINGS.len()
    + calls::SETTINGS.len()
    + credentials::SETTINGS.len()
    + resources::SETTINGS.len()
    + resources::OWN.len();

/// The keys.
pub(super) const SETTINGS: [Setting; COUNT] = joined(&[
    process::SETTINGS,
    kernel::SETTINGS,
    limits::SETTINGS,
    environment::SETTINGS,
    streams::SETTINGS,
    folders::SETTINGS,
    sandbox::SETTINGS,
    calls::SETTINGS,
    credentials::SETTINGS,
    resources::SETTINGS,
    resources::OWN,
]);

/// A scalar whose specifiers are resolved first; what was parsed, if it was.
pub(super) fn scalar<T>(
    value: &Value<'_>,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl FnOnce(&str) -> Result<T, Refused>,
) -> Option<T> {
    match value.raw {
        Raw::Text(_) => cx.parse_text(value, wanted, parser),
        _ => cx.parse(value, wanted, parser),
    }
}

/// A number in octal, which has to be written as a string: in TOML 22 and 022 are other numbers or none.
pub(super) fn octal(value: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<u32> {
    match value.raw {
        Raw::Integer(_) => cx.wrong_shape(value, "octal digits in quotes, as in \"0022\""),
        _ => cx.parse_text(value, "octal digits in quotes", crate::values::numbers::mode),
    }
}

/// Adds processors to those that were set, each once and in order; an empty list takes them back.
fn processors(field: &mut Vec<u32>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    let mut found = Vec::new();
    list(&mut found, value, cx, "numbers of processors", crate::values::numbers::processors);
    if resets(value) {
        field.clear();
    }
    field.extend(found.into_iter().flatten());
    field.sort_unstable();
    field.dedup();
}

/// Appends the texts of a list, or one text, each parsed whole, with the spaces in it; an empty one takes back what was
/// set before.
pub(super) fn texts<T>(
    field: &mut Vec<T>,
    value: &Value<'_>,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<T, Refused>,
) {
    if resets(value) {
        field.clear();
        return;
    }
    for part in value.parts() {
        let Some(text) = cx.text(part, wanted) else { continue };
        field.extend(cx.take(&part.span, parser(&text)));
    }
}

/// A text in systemd's syntax with its escapes resolved. One that has a backslash that is no escape is left out with a
/// warning, as systemd does.
fn unescaped(text: &str, secret: bool, span: &Range<usize>, cx: &mut ApplyContext<'_>) -> Option<Vec<u8>> {
    words::unescaped(text, secret).map_err(|refused| cx.warn(span, refused)).ok()
}

/// Appends the words of a list, or one number, each parsed; an empty list takes back what was set before.
fn list<T>(
    field: &mut Vec<T>,
    value: &Value<'_>,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<T, Refused>,
) {
    match value.raw {
        Raw::Integer(_) => field.extend(cx.parse(value, wanted, parser)),
        _ => append(field, value, cx, wanted, parser),
    }
}
