//! The kinds of settings: what a value of each may be and which field it goes to.

use std::path::PathBuf;
use std::time::Duration;

use super::apply::ApplyContext;
use crate::assignment::Value;
use crate::draft::Draft;
use crate::exec::ExecKind;
use crate::name::UnitName;
use crate::names::UnitNames;
use crate::sections::TimerTrigger;
use crate::words::Words;

/// Where a draft keeps a setting's value.
pub(crate) type Field<T> = fn(&mut Draft) -> &mut T;

/// What puts a value into its field by rules of its own.
pub(crate) type Apply = fn(&Value<'_>, &mut Draft, &mut ApplyContext<'_>);

/// A kind of value with its field.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    /// Free text.
    Text(Field<Option<String>>),
    /// A list of free texts.
    Texts(Field<Vec<String>>),
    /// Yes or no.
    Bool(Field<bool>),
    /// Yes or no, and whether it was said at all.
    MaybeBool(Field<Option<bool>>),
    /// A whole number from 0 to 4294967295.
    Count(Field<u32>),
    /// Names of units.
    Units(Field<UnitNames>),
    /// Names of units or templates.
    Names(Field<UnitNames>),
    /// The name of one unit.
    UnitName(Field<Option<UnitName>>),
    /// The name of a slice.
    Slice(Field<Option<UnitName>>),
    /// A span of time that ends.
    Span(Field<Duration>),
    /// A span of time; 0 and `infinity` mean no bound.
    Timeout(Field<Option<Duration>>),
    /// `TimeoutStartSec` and `TimeoutStopSec` in one.
    BothTimeouts,
    /// One of a few words.
    Choice(fn() -> Vec<&'static str>, fn(&mut Draft, &str) -> bool),
    /// A signal.
    Signal(Field<crate::signal::Signal>),
    /// Command lines.
    Commands(ExecKind),
    /// Environment variables.
    Environment,
    /// A user or a group.
    Principal(Field<Option<String>>),
    /// An absolute path.
    Path(Field<Option<PathBuf>>),
    /// Absolute paths.
    Paths(Field<Vec<PathBuf>>),
    /// Paths below a folder that the manager makes.
    PathsBelow(Field<Vec<PathBuf>>),
    /// The same, each with a link to it if it names one.
    LinkedPathsBelow(Field<Vec<PathBuf>>),
    /// `WorkingDirectory`: an absolute path; with `-` in front it may be missing.
    WorkingDirectory,
    /// `Module`: an absolute `.py` file or a dotted name.
    Module,
    /// A bound on memory.
    Memory(Field<Option<crate::sections::MemoryLimit>>),
    /// A bound on the number of tasks.
    Tasks(Field<Option<crate::sections::TasksLimit>>),
    /// A share of processor time.
    CpuQuota(Field<Option<u64>>),
    /// Spans after which a timer fires; the second field: whether zero makes sense.
    Triggers(fn(Duration) -> TimerTrigger, bool),
    /// Calendar expressions at which a timer fires.
    Calendars,
    /// Cron expressions at which a timer fires.
    Crons,
    /// A set of capabilities; `None` in the field: never set.
    Capabilities(Field<Option<u64>>),
    /// A kind of value of its own, named for documentation.
    Own(&'static str, Apply),
}

/// How the values of a setting are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One text, in which specifiers count.
    Text,
    /// One text in which a percent sign is one, or a number.
    Plain,
    /// Yes or no.
    Bool,
    /// Words: in systemd's syntax several on a line.
    Words,
    /// One value a line, several add up.
    Lines,
    /// Command lines.
    Commands,
    /// Environment variables.
    Variables,
    /// Capabilities, of which a line can take away.
    Capabilities,
}

impl Slot {
    /// How its values are written.
    #[must_use]
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::Commands(_) => Shape::Commands,
            Self::Environment => Shape::Variables,
            Self::Capabilities(_) => Shape::Capabilities,
            Self::Triggers(..) | Self::Calendars | Self::Crons => Shape::Lines,
            _ => match self.kind() {
                "boolean" => Shape::Bool,
                "command" => Shape::Commands,
                kind if kind.ends_with("or a list of them") => Shape::Lines,
                "text" | "word" | "octal digits" | "unit" | "slice" | "user or group" => Shape::Text,
                kind if kind.contains("path") && !kind.starts_with("list") => Shape::Text,
                kind if kind.starts_with("list") || kind.starts_with("numbers") => Shape::Words,
                _ => Shape::Plain,
            },
        }
    }

    /// Whether its values are names of units that exist or are made.
    #[must_use]
    pub(crate) const fn names_units(&self) -> bool {
        matches!(self, Self::Units(_))
    }

    /// The kind of value, for documentation.
    #[must_use]
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Texts(_) => "list of texts",
            Self::Bool(_) | Self::MaybeBool(_) => "boolean",
            Self::Count(_) => "whole number",
            Self::Units(_) => "list of units",
            Self::Names(_) => "list of units or templates",
            Self::UnitName(_) => "unit",
            Self::Slice(_) => "slice",
            Self::Span(_) => "span of time",
            Self::Timeout(_) | Self::BothTimeouts => "span of time or \"infinity\"",
            Self::Choice(..) => "word",
            Self::Signal(_) => "signal",
            Self::Commands(_) => "command",
            Self::Environment => "table of variables",
            Self::Principal(_) => "user or group",
            Self::Path(_) | Self::WorkingDirectory => "absolute path",
            Self::Paths(_) => "list of absolute paths",
            Self::PathsBelow(_) => "list of relative paths",
            Self::LinkedPathsBelow(_) => "list of relative paths, or path:link",
            Self::Module => "absolute path or dotted name",
            Self::Memory(_) => "size, percentage or \"infinity\"",
            Self::Tasks(_) => "number, percentage or \"infinity\"",
            Self::CpuQuota(_) => "percentage",
            Self::Triggers(..) => "span of time, or a list of them",
            Self::Calendars => "calendar expression, or a list of them",
            Self::Crons => "cron expression, or a list of them",
            Self::Capabilities(_) => "list of capabilities",
            Self::Own(kind, _) => kind,
        }
    }
}

/// The words of a choice.
pub(super) fn names<T: Words>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// Sets a choice by its word; whether there is such a word.
pub(super) fn put<T: Words>(field: &mut T, word: &str) -> bool {
    match T::from_word(word) {
        Some(value) => {
            *field = value;
            true
        }
        None => false,
    }
}
