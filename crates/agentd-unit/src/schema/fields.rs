//! The settings whose values are more than one parser's work: choices, commands, environment, capabilities.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use super::apply::{ApplyContext, resets, set};
use crate::assignment::{Raw, Value};
use crate::diagnostic::{nearest, quote};
use crate::draft::Draft;
use crate::exec::ExecCommand;
use crate::specifier;
use crate::values::words::Escapes;
use crate::values::{self, Refused};

pub(super) fn choice(
    value: &Value<'_>,
    words: fn() -> Vec<&'static str>,
    mut put: impl FnMut(&str) -> bool,
    cx: &mut ApplyContext<'_>,
) {
    // As it should be: no table of the words need be made.
    if let Raw::Text(text) = &value.raw
        && put(text)
    {
        return;
    }
    let words = words();
    // Restart = false reads well and means no.
    let word = match &value.raw {
        Raw::Bool(false) if words.contains(&"no") => Cow::Borrowed("no"),
        Raw::Bool(true) if words.contains(&"yes") => Cow::Borrowed("yes"),
        Raw::Text(text) if words.contains(&"yes") && values::boolean::parse(text).is_ok() => {
            Cow::Borrowed(if values::boolean::parse(text) == Ok(true) { "yes" } else { "no" })
        }
        Raw::Text(text) if !text.contains('%') => Cow::Borrowed(&**text),
        _ => match cx.text(value, &format!("a word ({})", words.join(", "))) {
            Some(word) => word,
            None => return,
        },
    };
    if !put(&word) {
        let near = nearest(&word, words.iter().copied());
        let all = format!("the words are {}", words.join(", "));
        let help = near.map_or(all, |near| format!("did you mean '{near}'?"));
        cx.refuse(&value.span, Refused::of(&word, "is not known here", &help));
    }
}

/// Commands add up; an empty value takes back what was set before.
pub(super) fn command_list(field: &mut Vec<ExecCommand>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    match &value.raw {
        _ if resets(value) => field.clear(),
        Raw::Text(text) if field.is_empty() => *field = command_line(value, text, cx),
        Raw::Text(text) => field.extend(command_line(value, text, cx)),
        Raw::List(list) if list.iter().all(|item| matches!(item.raw, Raw::List(_))) => {
            for item in list {
                if let Raw::List(words) = &item.raw {
                    let command = one_command(words, cx);
                    field.extend(cx.take(&item.span, command));
                }
            }
        }
        Raw::List(list) => {
            let command = one_command(list, cx);
            field.extend(cx.take(&value.span, command));
        }
        _ => set(&mut (), cx.wrong_shape(value, "a command: a list of strings")),
    }
}

/// A command that is written as a list of its words.
fn one_command<'v>(list: &'v [Value<'_>], cx: &ApplyContext<'_>) -> Result<ExecCommand, Refused> {
    let word = |item: &'v Value<'_>| -> Option<&'v str> {
        if let Raw::Text(text) = &item.raw { Some(&**text) } else { None }
    };
    let Some(argv) = list.iter().map(word).collect::<Option<Vec<&str>>>() else {
        let help = "write [\"/bin/a\", \"b\"], or a list of such lists";
        return Err(Refused::with_help("wants a list of strings", help));
    };
    values::command::parse_argv(&argv, &|text| cx.context.specifiers.expand(text, cx.unit))
}

/// The commands of a line in systemd's quoting. In systemd's syntax an unknown escape or specifier stays as it stands,
/// with a warning.
fn command_line(value: &Value<'_>, text: &str, cx: &mut ApplyContext<'_>) -> Vec<ExecCommand> {
    let (unit, specifiers, foreign) = (cx.unit, cx.context.specifiers, cx.foreign);
    let expand = |text: &str| match foreign {
        true => specifiers.expand_known(text, unit),
        false => specifiers.expand(text, unit),
    };
    let escapes = if foreign { Escapes::Relaxed } else { Escapes::Resolve };
    let parsed = values::command::parse_line(text, escapes, &expand);
    let unknown = |what: &str, help: &str| {
        Refused::with_help(format!("{what} means nothing and is left as it is"), help)
    };
    if foreign && parsed.is_ok() {
        if let Some(escape) = values::words::unknown_escape(text) {
            cx.warn(
                &value.span,
                unknown(&format!("the escape {}", quote(escape)), "write \\\\ for a backslash"),
            );
        }
        if let Some(specifier) = specifier::first_unknown(text) {
            cx.warn(
                &value.span,
                unknown(&format!("the specifier {specifier}"), "write %% for a percent sign"),
            );
        }
    }
    cx.take(&value.span, parsed).unwrap_or_default()
}

pub(super) fn environment(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        draft.service.environment.clear();
        return;
    }
    match &value.raw {
        Raw::Table(table) => {
            for (name, item) in table {
                let checked = values::environment::name(&name.text).map(str::to_owned);
                let checked = checked.map_err(|refused| cx.refused.push((name.span.clone(), refused))).ok();
                let text = match &item.raw {
                    Raw::Bool(yes) => Some(Cow::Owned(yes.to_string())),
                    Raw::Integer(_) | Raw::Float(_) => cx.scalar(item, "a string"),
                    _ => cx.text(item, "a string"),
                };
                draft.service.environment.extend(checked.zip(text.map(Cow::into_owned)));
            }
        }
        Raw::Text(text) => {
            let words = values::words::split(text);
            for word in cx.take(&value.span, words).unwrap_or_default() {
                variable(&value.place(&word.span), &word.text, draft, cx);
            }
        }
        Raw::List(list) => {
            for item in list {
                match &item.raw {
                    Raw::Text(text) => variable(&item.span, text, draft, cx),
                    _ => set(&mut (), cx.wrong_shape(item, "a string \"NAME=value\"")),
                }
            }
        }
        _ => set(&mut (), cx.wrong_shape(value, "a table of variables")),
    }
}

fn variable(place: &Range<usize>, text: &str, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let expanded = cx.expand(text, place).and_then(|text| values::environment::assignment(&text));
    draft.service.environment.extend(cx.take(place, expanded));
}

pub(super) fn working_directory(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let parsed = cx.parse_text(value, "an absolute path", |text| {
        let (optional, path) = text.strip_prefix('-').map_or((false, text), |path| (true, path));
        if path == "~" {
            return Ok((optional, None));
        }
        if path.starts_with('~') {
            return Err(Refused::of(
                text,
                "is no absolute path",
                "write ~ alone for the home of the unit's User",
            ));
        }
        Ok((optional, Some(values::path::absolute(path)?)))
    });
    if let Some((optional, path)) = parsed {
        draft.service.execution.in_home = path.is_none();
        draft.service.working_directory = path;
        draft.service.working_directory_optional = optional;
    }
}

pub(super) fn module(text: &str) -> Result<String, Refused> {
    const HELP: &str = "write \"/path/agent.py\" or a dotted name such as \"package.module\"";
    let identifier = |part: &str| {
        let first = |c: char| c.is_alphabetic() || c == '_';
        part.starts_with(first) && part.chars().all(|c| first(c) || c.is_alphanumeric())
    };
    if text.starts_with('/') {
        let path: PathBuf = values::path::absolute(text)?;
        return match path.extension() {
            Some(ending) if ending == "py" => Ok(path.display().to_string()),
            _ => Err(Refused::of(text, "is no .py file", HELP)),
        };
    }
    if text.contains('/') || text.ends_with(".py") {
        return Err(Refused::of(text, "is a relative path", HELP));
    }
    if text.split('.').all(identifier) {
        Ok(text.to_owned())
    } else {
        Err(Refused::of(text, "names no Python module", HELP))
    }
}

pub(super) fn capabilities(field: &mut Option<u64>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        *field = Some(0);
        return;
    }
    let Some(words) = cx.words(value, "a list of capabilities") else { return };
    match values::capability::parse(words.iter().map(|(_, word)| &**word)) {
        Ok(set) => *field = Some(values::capability::merge(*field, set)),
        Err(refused) => {
            let wrong = words.iter().find(|(_, word)| values::capability::parse([&**word]).is_err());
            let place = wrong.map_or(&value.span, |(place, _)| place);
            cx.refuse(place, refused);
        }
    }
}
