//! Applying one value to its field. Every refusal carries the place of the part that is wrong.

use std::ops::Range;
use std::path::PathBuf;

use super::{Setting, Slot};
use crate::assignment::{Raw, Value};
use crate::calendar::CalendarSpec;
use crate::cron::CronSpec;
use crate::diagnostic::nearest;
use crate::draft::Draft;
use crate::exec::ExecKind;
use crate::name::{UnitName, UnitType};
use crate::parse::ParseContext;
use crate::sections::{TimerSection, TimerTrigger};
use crate::toml_front::MAX_ERRORS;
use crate::values::{self, Refused};

/// What applying needs to know, and where it puts what is wrong.
pub(crate) struct ApplyContext<'a> {
    /// The unit, for its specifiers.
    pub(crate) unit: &'a UnitName,
    /// The values of the other specifiers, and the time zone.
    pub(crate) context: &'a ParseContext<'a>,
    /// What was refused, with its place.
    pub(crate) refused: Vec<(Range<usize>, Refused)>,
}

impl ApplyContext<'_> {
    fn refuse(&mut self, span: &Range<usize>, refused: Refused) {
        if self.refused.len() < MAX_ERRORS {
            self.refused.push((span.clone(), refused));
        }
    }

    fn expand(&self, text: &str) -> Result<String, Refused> {
        self.context.specifiers.expand(text, self.unit)
    }

    /// The text of a scalar; a shape that cannot be one is refused.
    fn scalar(&mut self, value: &Value, wanted: &str) -> Option<String> {
        match &value.raw {
            Raw::Text(text) | Raw::Float(text) => Some(text.clone()),
            Raw::Integer(number) => Some(number.to_string()),
            Raw::Bool(_) | Raw::Date(_) | Raw::List(_) | Raw::Table(_) => self.wrong_shape(value, wanted),
        }
    }

    /// A string, its specifiers resolved.
    fn text(&mut self, value: &Value, wanted: &str) -> Option<String> {
        let Raw::Text(text) = &value.raw else { return self.wrong_shape(value, wanted) };
        match self.expand(text) {
            Ok(text) => Some(text),
            Err(refused) => {
                self.refuse(&value.span, refused);
                None
            }
        }
    }

    fn wrong_shape<T>(&mut self, value: &Value, wanted: &str) -> Option<T> {
        let why = format!("wants {wanted}, not {}", value.shape());
        self.refuse(&value.span, Refused::new(why));
        None
    }

    /// Parses a scalar.
    fn parse<T>(
        &mut self,
        value: &Value,
        wanted: &str,
        parser: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let text = self.scalar(value, wanted)?;
        self.take(&value.span, parser(&text))
    }

    /// Parses a string whose specifiers are resolved first.
    fn parse_text<T>(
        &mut self,
        value: &Value,
        wanted: &str,
        parser: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let text = self.text(value, wanted)?;
        self.take(&value.span, parser(&text))
    }

    fn take<T>(&mut self, span: &Range<usize>, result: Result<T, Refused>) -> Option<T> {
        result.map_err(|refused| self.refuse(span, refused)).ok()
    }

    /// The words of a list: its strings, or a string's words. `None` resets: an empty list or string.
    fn words(&mut self, value: &Value, wanted: &str) -> Option<Vec<(Range<usize>, String)>> {
        let parts: Vec<&Value> = match &value.raw {
            Raw::Text(_) => vec![value],
            Raw::List(list) => list.iter().collect(),
            _ => return self.wrong_shape(value, wanted),
        };
        let split = matches!(value.raw, Raw::Text(_));
        let mut words = Vec::new();
        for part in parts {
            let Some(text) = self.text(part, wanted) else { continue };
            if split {
                words.extend(text.split_ascii_whitespace().map(|word| (part.span.clone(), word.to_owned())));
            } else {
                words.push((part.span.clone(), text));
            }
        }
        Some(words)
    }
}

/// Whether the value is an empty list, table or string: for lists and tables it takes back what was set before.
fn resets(value: &Value) -> bool {
    match &value.raw {
        Raw::List(list) => list.is_empty(),
        Raw::Table(table) => table.is_empty(),
        Raw::Text(text) => text.trim().is_empty(),
        Raw::Bool(_) | Raw::Integer(_) | Raw::Float(_) | Raw::Date(_) => false,
    }
}

/// Applies one assignment: lists append and an empty one resets, all else replaces.
pub(crate) fn apply(setting: &Setting, value: &Value, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    match &setting.slot {
        Slot::Text(field) => set(field(draft), cx.text(value, "a string").map(Some)),
        Slot::Texts(field) => {
            append(field(draft), value, cx, "a list of strings", |text| Ok(text.to_owned()))
        }
        Slot::Bool(field) => set(field(draft), boolean(value, cx)),
        Slot::MaybeBool(field) => set(field(draft), boolean(value, cx).map(Some)),
        Slot::Count(field) => set(field(draft), cx.parse(value, "a whole number", count)),
        Slot::Units(field) => units(field(draft), value, cx),
        Slot::UnitName(field) => {
            set(field(draft), cx.parse_text(value, "a unit's name", unit_name).map(Some))
        }
        Slot::Slice(field) => set(field(draft), cx.parse_text(value, "a slice's name", slice).map(Some)),
        Slot::Span(field) => set(field(draft), cx.parse(value, "a span of time", finite_span)),
        Slot::Timeout(field) => set(field(draft), cx.parse(value, "a span of time", timeout)),
        Slot::BothTimeouts => {
            let span = cx.parse(value, "a span of time", timeout);
            set(&mut draft.service.timeout_start, span);
            set(&mut draft.service.timeout_stop, span);
        }
        Slot::Choice(words, put) => choice(value, &words(), |word| put(draft, word), cx),
        Slot::Signal(field) => set(field(draft), cx.parse(value, "a signal", signal)),
        Slot::Commands(kind) => commands(*kind, value, draft, cx),
        Slot::Environment => environment(value, draft, cx),
        Slot::Principal(field) => set(field(draft), principal(value, cx).map(Some)),
        Slot::Path(field) => {
            set(field(draft), cx.parse_text(value, "an absolute path", values::path::absolute).map(Some))
        }
        Slot::Paths(field) => {
            append(field(draft), value, cx, "a list of absolute paths", values::path::absolute)
        }
        Slot::PathsBelow(field) => {
            append(field(draft), value, cx, "a list of relative paths", values::path::below)
        }
        Slot::WorkingDirectory => working_directory(value, draft, cx),
        Slot::Module => set(&mut draft.agent.module, cx.parse_text(value, "a string", module).map(Some)),
        Slot::Memory(field) => set(field(draft), cx.parse(value, "a size", values::limit::memory).map(Some)),
        Slot::Tasks(field) => set(field(draft), cx.parse(value, "a number", values::limit::tasks).map(Some)),
        Slot::CpuQuota(field) => {
            set(field(draft), cx.parse(value, "a percentage", values::limit::cpu_quota).map(Some))
        }
        Slot::Triggers(trigger, zero) => triggers(value, &mut draft.timer, cx, "a span of time", |text| {
            let span = finite_span(text)?;
            if span.is_zero() && !zero {
                return Err(Refused::of(text, "would fire without a pause", "write a span above zero"));
            }
            Ok(trigger(span))
        }),
        Slot::Calendars => {
            let zone = cx.context.zone;
            triggers(value, &mut draft.timer, cx, "a calendar expression", |text| {
                CalendarSpec::parse(text, zone).map(TimerTrigger::Calendar)
            });
        }
        Slot::Crons => {
            let zone = cx.context.zone;
            triggers(value, &mut draft.timer, cx, "a cron expression", |text| {
                CronSpec::parse(text, zone).map(TimerTrigger::Cron)
            });
        }
        Slot::Capabilities(field) => capabilities(field(draft), value, cx),
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn append<T>(
    field: &mut Vec<T>,
    value: &Value,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<T, Refused>,
) {
    if resets(value) {
        field.clear();
        return;
    }
    for (span, word) in cx.words(value, wanted).unwrap_or_default() {
        field.extend(cx.take(&span, parser(&word)));
    }
}

/// One trigger or a list of them; they add up. An empty list resets all of the timer's triggers, as in systemd.
fn triggers(
    value: &Value,
    timer: &mut TimerSection,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<TimerTrigger, Refused>,
) {
    if resets(value) {
        timer.triggers.clear();
        return;
    }
    let parts: &[Value] = if let Raw::List(list) = &value.raw { list } else { std::slice::from_ref(value) };
    for part in parts {
        timer.triggers.extend(cx.parse(part, wanted, &parser));
    }
}

fn boolean(value: &Value, cx: &mut ApplyContext<'_>) -> Option<bool> {
    match &value.raw {
        Raw::Bool(yes) => Some(*yes),
        _ => cx.parse(value, "true or false", values::boolean::parse),
    }
}

fn principal(value: &Value, cx: &mut ApplyContext<'_>) -> Option<String> {
    match &value.raw {
        Raw::Integer(number) => cx.take(&value.span, values::principal::parse(&number.to_string())),
        _ => cx.parse_text(value, "a name or a number", values::principal::parse),
    }
}

fn count(text: &str) -> Result<u32, Refused> {
    text.parse()
        .map_err(|_| Refused::of(text, "is no whole number from 0 to 4294967295", "write for example 5"))
}

fn finite_span(text: &str) -> Result<std::time::Duration, Refused> {
    values::span::parse(text)?.ok_or_else(|| Refused::of(text, "never ends", "write a span such as \"10s\""))
}

/// Zero means no bound, as in systemd.
fn timeout(text: &str) -> Result<Option<std::time::Duration>, Refused> {
    Ok(values::span::parse(text)?.filter(|span| !span.is_zero()))
}

fn signal(text: &str) -> Result<crate::signal::Signal, Refused> {
    text.parse().map_err(|error: crate::signal::SignalError| Refused::new(error.to_string()))
}

fn unit_name(text: &str) -> Result<UnitName, Refused> {
    if let Some(name) = text.strip_suffix(".toml").and_then(|name| UnitName::parse(name).ok()) {
        return Err(Refused::of(text, "is a file's name", &format!("the unit is called {name}")));
    }
    let name = UnitName::parse(text).map_err(|error| {
        let with_service = UnitName::parse(&format!("{text}.service")).ok().filter(|_| !text.contains('.'));
        Refused { why: error.to_string(), help: with_service.map(|name| format!("did you mean '{name}'?")) }
    })?;
    if name.is_template() {
        let example = format!("{}@1.{}", name.prefix(), name.unit_type());
        return Err(Refused::of(
            text,
            "is a template, which never runs",
            &format!("name an instance such as {example}"),
        ));
    }
    Ok(name)
}

fn slice(text: &str) -> Result<UnitName, Refused> {
    unit_name(text).and_then(|name| match name.unit_type() {
        UnitType::Slice => Ok(name),
        _ => Err(Refused::of(text, "is no slice", "a slice's name ends in .slice")),
    })
}

fn units(field: &mut std::collections::BTreeSet<UnitName>, value: &Value, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        field.clear();
        return;
    }
    for (span, word) in cx.words(value, "a list of units").unwrap_or_default() {
        field.extend(cx.take(&span, unit_name(&word)));
    }
}

fn choice(
    value: &Value,
    words: &[&'static str],
    mut put: impl FnMut(&str) -> bool,
    cx: &mut ApplyContext<'_>,
) {
    // Restart = false reads well and means no.
    let word = match &value.raw {
        Raw::Bool(false) if words.contains(&"no") => "no".to_owned(),
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

fn commands(kind: ExecKind, value: &Value, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let expand = |text: &str| cx.context.specifiers.expand(text, cx.unit);
    let mut refused = Vec::new();
    let mut found = Vec::new();
    let mut keep = |span: &Range<usize>, result: Result<Vec<_>, Refused>| match result {
        Ok(mut commands) => found.append(&mut commands),
        Err(why) => refused.push((span.clone(), why)),
    };
    let argv = |list: &[Value]| -> Option<Vec<String>> {
        list.iter()
            .map(|item| if let Raw::Text(text) = &item.raw { Some(text.clone()) } else { None })
            .collect()
    };
    let one = |list: &[Value]| match argv(list) {
        Some(argv) => values::command::parse_argv(&argv, &expand).map(|command| vec![command]),
        None => Err(Refused::with_help(
            "wants a list of strings",
            "write [\"/bin/a\", \"b\"], or a list of such lists",
        )),
    };
    match &value.raw {
        _ if resets(value) => {
            draft.service.commands_mut(kind).clear();
            return;
        }
        Raw::Text(text) => keep(&value.span, values::command::parse_line(text, &expand)),
        Raw::List(list) if list.iter().all(|item| matches!(item.raw, Raw::List(_))) => {
            for item in list {
                if let Raw::List(words) = &item.raw {
                    keep(&item.span, one(words));
                }
            }
        }
        Raw::List(list) => keep(&value.span, one(list)),
        _ => {
            cx.wrong_shape::<()>(value, "a command: a list of strings");
            return;
        }
    }
    cx.refused.append(&mut refused);
    draft.service.commands_mut(kind).append(&mut found);
}

fn environment(value: &Value, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
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
                    Raw::Bool(yes) => Some(yes.to_string()),
                    Raw::Integer(_) | Raw::Float(_) => cx.scalar(item, "a string"),
                    _ => cx.text(item, "a string"),
                };
                draft.service.environment.extend(checked.zip(text));
            }
        }
        Raw::Text(text) => {
            let words = values::words::split(text);
            for word in cx.take(&value.span, words).unwrap_or_default() {
                variable(value, &word.text, draft, cx);
            }
        }
        Raw::List(list) => {
            for item in list {
                match &item.raw {
                    Raw::Text(text) => variable(item, text, draft, cx),
                    _ => set(&mut (), cx.wrong_shape(item, "a string \"NAME=value\"")),
                }
            }
        }
        _ => set(&mut (), cx.wrong_shape(value, "a table of variables")),
    }
}

fn variable(place: &Value, text: &str, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let expanded = cx.expand(text).and_then(|text| values::environment::assignment(&text));
    draft.service.environment.extend(cx.take(&place.span, expanded));
}

fn working_directory(value: &Value, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let parsed = cx.parse_text(value, "an absolute path", |text| {
        let (optional, path) = text.strip_prefix('-').map_or((false, text), |path| (true, path));
        if path.starts_with('~') {
            return Err(Refused::of(
                text,
                "is no absolute path",
                "write the home folder itself, or %h for the manager's",
            ));
        }
        Ok((optional, values::path::absolute(path)?))
    });
    if let Some((optional, path)) = parsed {
        draft.service.working_directory = Some(path);
        draft.service.working_directory_optional = optional;
    }
}

fn module(text: &str) -> Result<String, Refused> {
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

fn capabilities(field: &mut Option<u64>, value: &Value, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        *field = Some(0);
        return;
    }
    let Some(words) = cx.words(value, "a list of capabilities") else { return };
    match values::capability::parse(words.iter().map(|(_, word)| word.as_str())) {
        Ok(set) => *field = Some(values::capability::merge(*field, set)),
        Err(refused) => {
            let wrong = words.iter().find(|(_, word)| values::capability::parse([word.as_str()]).is_err());
            let place = wrong.map_or(&value.span, |(place, _)| place);
            cx.refuse(place, refused);
        }
    }
}
