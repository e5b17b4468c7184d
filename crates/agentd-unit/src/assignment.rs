//! What a front end makes of a file: its sections and, in order, what is assigned to which key.
//!
//! Nothing here knows TOML; a second syntax yields the same. Merging a unit's files is applying their assignments
//! one after the other: lists append and an empty list resets, tables merge and an empty table resets, anything
//! else replaces.

use std::ops::Range;
use std::sync::Arc;

use crate::source::SourceFile;

/// A value as written, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    /// What was written.
    pub raw: Raw,
    /// Where, in bytes of the file.
    pub span: Range<usize>,
}

/// The shapes a value can have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction, as written.
    Float(String),
    /// A string, escapes resolved.
    Text(String),
    /// A date or a time, as written.
    Date(String),
    /// A list.
    List(Vec<Value>),
    /// A table, in the order of the file.
    Table(Vec<(Name, Value)>),
}

impl Value {
    /// The shape, with its article, for messages.
    #[must_use]
    pub(crate) const fn shape(&self) -> &'static str {
        match self.raw {
            Raw::Bool(_) => "a boolean",
            Raw::Integer(_) => "a whole number",
            Raw::Float(_) => "a fraction",
            Raw::Text(_) => "a string",
            Raw::Date(_) => "a date",
            Raw::List(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }
}

/// A section's or key's name with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Range<usize>,
}

/// One key set to one value by one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    /// The section's name, as written.
    pub section: String,
    /// The key's name and place.
    pub key: Name,
    /// The value.
    pub value: Value,
    /// The file.
    pub source: Arc<SourceFile>,
}

/// All that one file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignments {
    /// Its sections, also those without a key.
    pub sections: Vec<Name>,
    /// What it assigns, in the order of the file.
    pub assignments: Vec<Assignment>,
}
