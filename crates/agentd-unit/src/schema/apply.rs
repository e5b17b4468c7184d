//! Applying one value to its field. Every refusal carries the place of the part that is wrong.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use super::fields::{capabilities, choice, command_list, environment, module, working_directory};
use super::slot::Field;
use super::triggers::{calendars, crons, finite_span, spans_of_timer};
use super::{SYSTEMD_TYPES, Setting, Shape, Slot};
use crate::assignment::{Raw, Value};
use crate::diagnostic::quote;
use crate::draft::Draft;
use crate::name::{UnitName, UnitType};
use crate::names::UnitNames;
use crate::parse::ParseContext;
use crate::specifier;
use crate::toml_front::MAX_ERRORS;
use crate::values::words::Escapes;
use crate::values::{self, Refused};

/// One word of a list, with its place in the file.
pub(crate) type PlacedWord<'v> = (Range<usize>, Cow<'v, str>);

/// What applying needs to know, and where it puts what is wrong.
pub(crate) struct ApplyContext<'a> {
    /// The unit, for its specifiers.
    pub(crate) unit: &'a UnitName,
    /// The values of the other specifiers, and the time zone.
    pub(crate) context: &'a ParseContext<'a>,
    /// Whether the value stands in systemd's syntax: what systemd lets pass is a warning then.
    pub(crate) foreign: bool,
    /// What was refused, with its place.
    pub(crate) refused: Vec<(Range<usize>, Refused)>,
    /// What is left out or taken as it is, with its place.
    pub(crate) warned: Vec<(Range<usize>, Refused)>,
    /// Whether the value was empty and the setting is what it is by default again.
    pub(crate) reset: bool,
}

impl<'a> ApplyContext<'a> {
    /// For one value.
    pub(crate) fn new(unit: &'a UnitName, context: &'a ParseContext<'a>, value: &Value<'_>) -> Self {
        let foreign = value.is_line();
        Self { unit, context, foreign, refused: Vec::new(), warned: Vec::new(), reset: false }
    }

    pub(super) fn refuse(&mut self, span: &Range<usize>, refused: Refused) {
        if self.refused.len() < MAX_ERRORS {
            self.refused.push((span.clone(), refused));
        }
    }

    pub(super) fn warn(&mut self, span: &Range<usize>, warned: Refused) {
        if self.warned.len() < MAX_ERRORS {
            self.warned.push((span.clone(), warned));
        }
    }

    /// The text with its specifiers resolved. In systemd's syntax what is no specifier stays as it stands, with a
    /// warning.
    pub(super) fn expand<'t>(&mut self, text: &'t str, span: &Range<usize>) -> Result<Cow<'t, str>, Refused> {
        if !text.contains('%') {
            return Ok(Cow::Borrowed(text));
        }
        if !self.foreign {
            return self.context.specifiers.expand(text, self.unit).map(Cow::Owned);
        }
        if let Some(specifier) = specifier::first_unknown(text) {
            let why =
                format!("{} has the unknown specifier {specifier}, which is left as it is", quote(text));
            self.warn(span, Refused::with_help(why, "write %% for a percent sign"));
        }
        self.context.specifiers.expand_known(text, self.unit).map(Cow::Owned)
    }

    /// The text of a scalar; a shape that cannot be one is refused.
    pub(super) fn scalar<'v>(&mut self, value: &'v Value<'_>, wanted: &str) -> Option<Cow<'v, str>> {
        match &value.raw {
            Raw::Text(text) => Some(Cow::Borrowed(text)),
            Raw::Float(text) => Some(Cow::Borrowed(text)),
            Raw::Integer(number) => Some(Cow::Owned(number.to_string())),
            Raw::Bool(_) | Raw::Date(_) | Raw::List(_) | Raw::Table(_) => self.wrong_shape(value, wanted),
        }
    }

    /// A string, its specifiers resolved.
    pub(super) fn text<'v>(&mut self, value: &'v Value<'_>, wanted: &str) -> Option<Cow<'v, str>> {
        let Raw::Text(text) = &value.raw else { return self.wrong_shape(value, wanted) };
        match self.expand(text, &value.span) {
            Ok(text) => Some(text),
            Err(refused) => {
                self.refuse(&value.span, refused);
                None
            }
        }
    }

    pub(super) fn wrong_shape<T>(&mut self, value: &Value<'_>, wanted: &str) -> Option<T> {
        let why = format!("wants {wanted}, not {}", value.shape());
        self.refuse(&value.span, Refused::new(why));
        None
    }

    /// Parses a scalar.
    pub(super) fn parse<T>(
        &mut self,
        value: &Value<'_>,
        wanted: &str,
        parser: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let text = self.scalar(value, wanted)?;
        self.take(&value.span, parser(&text))
    }

    /// Parses a string whose specifiers are resolved first.
    pub(super) fn parse_text<T>(
        &mut self,
        value: &Value<'_>,
        wanted: &str,
        parser: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        let text = self.text(value, wanted)?;
        self.take(&value.span, parser(&text))
    }

    pub(super) fn take<T>(&mut self, span: &Range<usize>, result: Result<T, Refused>) -> Option<T> {
        result.map_err(|refused| self.refuse(span, refused)).ok()
    }

    /// The words of a list: its strings, or a string's words. `None` resets: an empty list or string.
    pub(super) fn words<'v>(&mut self, value: &'v Value<'_>, wanted: &str) -> Option<Vec<PlacedWord<'v>>> {
        let parts = match &value.raw {
            Raw::Text(text) if value.is_line() => return self.words_of_line(value, text),
            Raw::Text(_) => std::slice::from_ref(value),
            Raw::List(list) => list.as_slice(),
            _ => return self.wrong_shape(value, wanted),
        };
        let split = matches!(value.raw, Raw::Text(_));
        let mut words = Vec::new();
        for part in parts {
            match self.text(part, wanted) {
                None => {}
                Some(text) if !split => words.push((part.span.clone(), text)),
                Some(Cow::Borrowed(text)) => {
                    let found = text.split_ascii_whitespace();
                    words.extend(found.map(|word| (part.span.clone(), Cow::Borrowed(word))));
                }
                Some(Cow::Owned(text)) => {
                    let found = text.split_ascii_whitespace().map(str::to_owned);
                    words.extend(found.map(|word| (part.span.clone(), Cow::Owned(word))));
                }
            }
        }
        Some(words)
    }

    /// The words of a line: quotes keep one together and go, escapes stay, then specifiers are resolved.
    fn words_of_line<'v>(&mut self, value: &Value<'_>, text: &'v str) -> Option<Vec<PlacedWord<'v>>> {
        if values::words::is_one_plain(text) && !text.contains('%') {
            return Some(vec![(value.span.clone(), Cow::Borrowed(text))]);
        }
        let split = values::words::split_with(text, Escapes::Retain);
        let mut words = Vec::new();
        for word in self.take(&value.span, split)? {
            let place = value.place(&word.span);
            if !word.text.contains('%') {
                words.push((place, word.text));
                continue;
            }
            let expanded = self.expand(&word.text, &place).map(|text| Cow::Owned(text.into_owned()));
            words.extend(self.take(&place, expanded).map(|word| (place, word)));
        }
        Some(words)
    }
}

/// Whether the value is an empty list, table or string: for lists and tables it takes back what was set before.
pub(crate) fn resets(value: &Value<'_>) -> bool {
    match &value.raw {
        Raw::List(list) => list.is_empty(),
        Raw::Table(table) => table.is_empty(),
        Raw::Text(text) => text.chars().all(char::is_whitespace),
        Raw::Bool(_) | Raw::Integer(_) | Raw::Float(_) | Raw::Date(_) => false,
    }
}

/// Applies one assignment: lists append and an empty one resets, all else replaces.
pub(crate) fn apply(setting: &Setting, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    if cx.foreign && resets(value) && restore(&setting.slot, draft) {
        cx.reset = true;
        return;
    }
    if let Some(parts) = lines_of(&setting.slot, value) {
        return parts.iter().for_each(|part| apply(setting, part, draft, cx));
    }
    match &setting.slot {
        Slot::Text(field) => {
            set(field(draft), cx.text(value, "a string").map(|text| Some(text.into_owned())))
        }
        Slot::Texts(field) => {
            append(field(draft), value, cx, "a list of strings", |text| Ok(text.to_owned()))
        }
        Slot::Bool(field) => set(field(draft), boolean(value, cx)),
        Slot::MaybeBool(field) => set(field(draft), boolean(value, cx).map(Some)),
        Slot::Count(field) => set(field(draft), cx.parse(value, "a whole number", count)),
        Slot::Units(field) => units(field(draft), value, cx, Templates::Instantiate),
        Slot::Names(field) => units(field(draft), value, cx, Templates::Keep),
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
        Slot::Choice(words, put) => choice(value, *words, |word| put(draft, word), cx),
        Slot::Signal(field) => set(field(draft), cx.parse(value, "a signal", signal)),
        Slot::Commands(kind) => command_list(draft.service.commands_mut(*kind), value, cx),
        Slot::Environment => environment(value, draft, cx),
        Slot::Principal(field) => set(field(draft), principal(value, cx).map(Some)),
        Slot::Path(field) => {
            set(field(draft), cx.parse_text(value, "an absolute path", values::path::absolute).map(Some))
        }
        Slot::Paths(field) => {
            append(field(draft), value, cx, "a list of absolute paths", values::path::absolute)
        }
        Slot::PathsBelow(field) => {
            append(field(draft), value, cx, "a list of relative paths", values::path::folder)
        }
        Slot::LinkedPathsBelow(field) => {
            append(field(draft), value, cx, "a list of relative paths", values::path::linked_folder)
        }
        Slot::WorkingDirectory => working_directory(value, draft, cx),
        Slot::Module => set(&mut draft.agent.module, cx.parse_text(value, "a string", module).map(Some)),
        Slot::Memory(field) => set(field(draft), cx.parse(value, "a size", values::limit::memory).map(Some)),
        Slot::Tasks(field) => set(field(draft), cx.parse(value, "a number", values::limit::tasks).map(Some)),
        Slot::CpuQuota(field) => {
            set(field(draft), cx.parse(value, "a percentage", values::limit::cpu_quota).map(Some))
        }
        Slot::Triggers(trigger, zero) => spans_of_timer(value, &mut draft.timer, cx, *trigger, *zero),
        Slot::Calendars => calendars(value, &mut draft.timer, cx),
        Slot::Crons => crons(value, &mut draft.timer, cx),
        Slot::Capabilities(field) => capabilities(field(draft), value, cx),
        Slot::Own(_, apply) => apply(value, draft, cx),
    }
}

/// What several lines are in systemd's syntax, in TOML: a list whose first item is empty takes back what was set before
/// and sets the others; a list of lists is one line after the other. Commands are lists themselves, so there only an
/// empty list among them takes back.
fn lines_of<'a>(slot: &Slot, value: &Value<'a>) -> Option<Vec<Value<'a>>> {
    let Raw::List(list) = &value.raw else { return None };
    // As nearly all: texts that say something.
    if list.iter().all(|item| matches!(&item.raw, Raw::Text(text) if !text.is_empty())) {
        return None;
    }
    let with = |list: &[Value<'a>]| Value { raw: Raw::List(list.to_vec()), ..value.clone() };
    let is_command = slot.shape() == Shape::Commands;
    let lists = list.iter().all(|item| matches!(item.raw, Raw::List(_)));
    if !is_command && lists && !list.is_empty() {
        return Some(list.clone());
    }
    let (first, rest) = list.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let empty = match &first.raw {
        Raw::List(words) => words.is_empty(),
        Raw::Text(text) => text.is_empty() && !is_command,
        _ => false,
    };
    empty.then(|| vec![with(&[]), with(rest)])
}

/// Makes a scalar what it is by default, as an empty value does in systemd's syntax; whether the slot is one. Lists
/// know themselves what an empty value means.
fn restore(slot: &Slot, draft: &mut Draft) -> bool {
    fn default<T>(field: Field<T>, draft: &mut Draft) {
        std::mem::swap(field(draft), field(&mut Draft::default()));
    }
    match slot {
        Slot::Text(field) | Slot::Principal(field) => default(*field, draft),
        Slot::Bool(field) => default(*field, draft),
        Slot::MaybeBool(field) => default(*field, draft),
        Slot::Count(field) => default(*field, draft),
        Slot::UnitName(field) | Slot::Slice(field) => default(*field, draft),
        Slot::Span(field) => default(*field, draft),
        Slot::Timeout(field) => default(*field, draft),
        Slot::Signal(field) => default(*field, draft),
        Slot::Path(field) => default(*field, draft),
        Slot::Memory(field) => default(*field, draft),
        Slot::Tasks(field) => default(*field, draft),
        Slot::CpuQuota(field) => default(*field, draft),
        Slot::WorkingDirectory => {
            default(|draft| &mut draft.service.working_directory, draft);
            default(|draft| &mut draft.service.working_directory_optional, draft);
        }
        _ => return false,
    }
    true
}

pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Appends the words of a list, each parsed; an empty list takes back what was set before.
pub(super) fn append<T>(
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
    for (span, word) in cx.words(value, wanted).unwrap_or_default() {
        field.extend(cx.take(&span, parser(&word)));
    }
}

fn boolean(value: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<bool> {
    match &value.raw {
        Raw::Bool(yes) => Some(*yes),
        _ => cx.parse(value, "true or false", values::boolean::parse),
    }
}

fn principal(value: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<String> {
    match &value.raw {
        Raw::Integer(number) => cx.take(&value.span, values::principal::parse(&number.to_string())),
        _ => cx.parse_text(value, "a name or a number", values::principal::parse),
    }
}

fn count(text: &str) -> Result<u32, Refused> {
    text.parse()
        .map_err(|_| Refused::of(text, "is no whole number from 0 to 4294967295", "write for example 5"))
}

/// Zero means no bound, as in systemd.
fn timeout(text: &str) -> Result<Option<Duration>, Refused> {
    Ok(values::span::parse(text)?.filter(|span| !span.is_zero()))
}

fn signal(text: &str) -> Result<crate::signal::Signal, Refused> {
    text.parse().map_err(|error: crate::signal::SignalError| Refused::new(error.to_string()))
}

fn unit_name(text: &str) -> Result<UnitName, Refused> {
    let name = unit_or_template(text)?;
    if name.is_template() {
        let example = format!("{}@1.{}", name.prefix(), name.unit_type());
        let help = format!("name an instance such as {example}");
        return Err(Refused::of(text, "is a template, which never runs", &help));
    }
    Ok(name)
}

fn unit_or_template(text: &str) -> Result<UnitName, Refused> {
    if let Some(name) = text.strip_suffix(".toml").and_then(|name| UnitName::parse(name).ok()) {
        return Err(Refused::of(text, "is a file's name", &format!("the unit is called {name}")));
    }
    UnitName::parse(text).map_err(|error| {
        let with_service = UnitName::parse(&format!("{text}.service")).ok().filter(|_| !text.contains('.'));
        Refused { why: error.to_string(), help: with_service.map(|name| format!("did you mean '{name}'?")) }
    })
}

fn slice(text: &str) -> Result<UnitName, Refused> {
    unit_name(text).and_then(|name| match name.unit_type() {
        UnitType::Slice => Ok(name),
        _ => Err(Refused::of(text, "is no slice", "a slice's name ends in .slice")),
    })
}

/// What a template among units stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Templates {
    /// In systemd's syntax its instance of the unit's own instance, else of its prefix; in TOML it is refused.
    Instantiate,
    /// Itself.
    Keep,
}

fn units(field: &mut UnitNames, value: &Value<'_>, cx: &mut ApplyContext<'_>, templates: Templates) {
    if resets(value) {
        field.clear();
        return;
    }
    for (span, word) in cx.words(value, "a list of units").unwrap_or_default() {
        let ending = word.rsplit('.').next().unwrap_or_default();
        if cx.foreign && SYSTEMD_TYPES.contains(&ending) {
            let why = format!("{} is left out: not supported: agentd has no {ending} units", quote(&word));
            cx.warn(&span, Refused::new(why));
            continue;
        }
        let name = match templates {
            Templates::Keep => unit_or_template(&word),
            Templates::Instantiate if cx.foreign => unit_or_template(&word).and_then(|name| {
                let own = cx.unit.instance().unwrap_or_else(|| cx.unit.prefix());
                let instance = || format!("{}@{own}.{}", name.prefix(), name.unit_type());
                if name.is_template() { unit_name(&instance()) } else { Ok(name) }
            }),
            Templates::Instantiate => unit_name(&word),
        };
        field.extend(cx.take(&span, name));
    }
}
