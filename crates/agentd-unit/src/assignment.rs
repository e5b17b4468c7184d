//! What a front end makes of a file: its sections and, in order, what is assigned to which key.
//!
//! Nothing here knows a syntax; both front ends yield the same. Merging a unit's files is applying their assignments
//! one after the other: lists append and an empty list resets, tables merge and an empty table resets, anything
//! else replaces. In systemd's syntax every value is text, and an empty one resets whatever it is.

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
    /// For a value in systemd's syntax, whose quotes and escapes are not resolved yet: where its text stands.
    pub line: Option<Pieces>,
}

/// Where a text that was joined from several lines stands in its file: for the beginning of each piece its byte in the
/// text and its byte in the file, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pieces(pub Vec<(usize, usize)>);

impl Pieces {
    /// The place in the file of a byte of the text.
    #[must_use]
    pub(crate) fn at(&self, offset: usize) -> usize {
        let behind = self.0.partition_point(|(start, _)| *start <= offset);
        match behind.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some((start, place)) => place + (offset - start),
            None => offset,
        }
    }

    /// The byte of the text that stands at a byte of the file, counted from the beginning of its piece.
    #[must_use]
    pub(crate) fn offset_of(&self, place: usize) -> Option<usize> {
        let behind = self.0.partition_point(|(_, start)| *start <= place);
        let (offset, start) = self.0.get(behind.checked_sub(1)?)?;
        Some(offset + (place - start))
    }

    /// The place in the file of a part of the text.
    #[must_use]
    pub(crate) fn range(&self, part: &Range<usize>) -> Range<usize> {
        let start = self.at(part.start);
        // The end belongs to the piece of the last byte: behind it may stand a line's end.
        let end = if part.is_empty() { start } else { self.at(part.end - 1) + 1 };
        start..end
    }

    /// The pieces of a part of the text, counted from its beginning.
    #[must_use]
    pub(crate) fn part(&self, part: &Range<usize>) -> Self {
        let first = (0, self.at(part.start));
        let later = self.0.iter().filter(|(start, _)| part.start < *start && *start < part.end);
        Self(std::iter::once(first).chain(later.map(|(start, place)| (start - part.start, *place))).collect())
    }
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
    /// A string: in TOML with its escapes resolved, in systemd's syntax as it stands behind the `=`.
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

    /// Whether it stands in systemd's syntax.
    #[must_use]
    pub(crate) const fn is_line(&self) -> bool {
        self.line.is_some()
    }

    /// The place in the file of a part of its text.
    #[must_use]
    pub(crate) fn place(&self, part: &Range<usize>) -> Range<usize> {
        self.line.as_ref().map_or_else(|| self.span.clone(), |pieces| pieces.range(part))
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
