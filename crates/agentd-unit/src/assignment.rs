//! What a front end makes of a file: its sections and, in order, what is assigned to which key.
//!
//! Names and values are parts of the file's text where they stand there as they are.
//!
//! Nothing here knows a syntax; both front ends yield the same. Merging a unit's files is applying their assignments
//! one after the other: lists append and an empty list resets, tables merge and an empty table resets, anything
//! else replaces. In systemd's syntax every value is text, and an empty one resets whatever it is.

use std::borrow::Cow;
use std::ops::Range;

/// A value as written, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value<'a> {
    /// What was written.
    pub raw: Raw<'a>,
    /// Where, in bytes of the file.
    pub span: Range<usize>,
    /// For a value in systemd's syntax, whose quotes and escapes are not resolved yet: where its text stands.
    pub line: Option<Pieces>,
}

/// Where a text that was joined from several lines stands in its file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pieces {
    /// The byte in the file at which the first piece begins.
    pub first: usize,
    /// For the beginning of each further piece its byte in the text and its byte in the file, in order.
    pub later: Vec<(usize, usize)>,
}

impl Pieces {
    /// The place in the file of a byte of the text.
    #[must_use]
    pub(crate) fn at(&self, offset: usize) -> usize {
        let behind = self.later.partition_point(|(start, _)| *start <= offset);
        match behind.checked_sub(1).and_then(|index| self.later.get(index)) {
            Some((start, place)) => place + (offset - start),
            None => self.first + offset,
        }
    }

    /// The byte of the text that stands at a byte of the file, counted from the beginning of its piece.
    #[must_use]
    pub(crate) fn offset_of(&self, place: usize) -> Option<usize> {
        let behind = self.later.partition_point(|(_, start)| *start <= place);
        match behind.checked_sub(1).and_then(|index| self.later.get(index)) {
            Some((offset, start)) => Some(offset + (place - start)),
            None => place.checked_sub(self.first),
        }
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
        let later = self.later.iter().filter(|(start, _)| part.start < *start && *start < part.end);
        let later = later.map(|(start, place)| (start - part.start, *place)).collect();
        Self { first: self.at(part.start), later }
    }
}

/// The shapes a value can have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction, as written.
    Float(String),
    /// A string: in TOML with its escapes resolved, in systemd's syntax as it stands behind the `=`.
    Text(Cow<'a, str>),
    /// A date or a time, as written.
    Date(String),
    /// A list.
    List(Vec<Value<'a>>),
    /// A table, in the order of the file.
    Table(Vec<(Name<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The items of a list, or the one value.
    pub(crate) fn parts(&self) -> &[Value<'a>] {
        if let Raw::List(list) = &self.raw { list } else { std::slice::from_ref(self) }
    }

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
pub(crate) struct Name<'a> {
    /// The name.
    pub text: Cow<'a, str>,
    /// Where it stands.
    pub span: Range<usize>,
}

/// One key set to one value by one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment<'a> {
    /// The section: its place among those of the file.
    pub section: usize,
    /// The key's name and place.
    pub key: Name<'a>,
    /// The value.
    pub value: Value<'a>,
}

/// All that one file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignments<'a> {
    /// Its sections, also those without a key; each once.
    pub sections: Vec<Name<'a>>,
    /// What it assigns, in the order of the file.
    pub assignments: Vec<Assignment<'a>>,
}

impl Assignments<'_> {
    /// Takes everything out; the room stays.
    pub(crate) fn clear(&mut self) {
        self.sections.clear();
        self.assignments.clear();
    }

    /// The room that this has, for other texts: what is as large as before is put where the old stood, and of nothing
    /// there is nothing to move.
    pub(crate) fn emptied<'b>(mut self) -> Assignments<'b> {
        self.clear();
        Assignments {
            sections: self.sections.into_iter().map_while(|_| None).collect(),
            assignments: self.assignments.into_iter().map_while(|_| None).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again() {
        let (sections, assignments) = (Vec::with_capacity(7), Vec::with_capacity(30));
        let again = Assignments { sections, assignments }.emptied();
        assert_eq!((again.sections.capacity(), again.assignments.capacity()), (7, 30));
    }
}
