//! The front end for systemd's own syntax, systemd.syntax(7): one file's text into [`Assignments`].
//!
//! Comments are lines that begin with `#` or `;`. A backslash at the end of a line joins it with the next; comments
//! between the two are left out, an empty line ends it, and so does the end of the file. A line may be as long as the
//! file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::assignment::{Assignment, Assignments, Name, Pieces, Raw, Value};
use crate::bytes;
use crate::diagnostic::{Diagnostic, quote};
use crate::source::SourceFile;
use crate::toml_front::MAX_ERRORS;

/// So many sections few files exceed.
const FEW: usize = 16;

/// What some editors put in front of a text in UTF-8.
const BOM: char = '\u{feff}';

/// What systemd takes for white space.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The text from its first byte that is not white space.
fn trim_start(text: &str) -> &str {
    let start = text.bytes().position(|byte| !is_blank(byte));
    &text[start.unwrap_or(text.len())..]
}

/// The text up to its last byte that is not white space.
fn trim_end(text: &str) -> &str {
    let end = text.bytes().rposition(|byte| !is_blank(byte));
    &text[..end.map_or(0, |end| end + 1)]
}

/// One thing that stands in a file, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item<'a> {
    /// An empty line.
    Blank,
    /// A comment: its text without the line's end.
    Comment(Range<usize>),
    /// `[NAME]`.
    Section(Name<'a>),
    /// `KEY=VALUE`, below the section named last.
    Assignment {
        /// The section it belongs to; `None`: the header above it was broken.
        section: Option<Cow<'a, str>>,
        /// The key.
        key: Name<'a>,
        /// The value.
        value: Value<'a>,
    },
}

/// Reads a file into an empty list; what is wrong with it. What could be read is there also where there are errors, so
/// that all are found in one pass.
#[must_use]
pub(crate) fn read<'a>(source: &'a Arc<SourceFile>, found: &mut Assignments<'a>) -> Vec<Diagnostic> {
    // The sections from the first on that are not few any more.
    let mut places = BTreeMap::new();
    let mut current = 0;
    walk(source, &mut |item| match item {
        Item::Section(name) => {
            let count = found.sections.len();
            let early = found.sections.iter().take(FEW).position(|known| known.text == name.text);
            current = match early {
                Some(place) => place,
                None if count < FEW => count,
                None => *places.entry(name.text.clone()).or_insert(count),
            };
            if current == count {
                found.sections.push(name);
            }
        }
        Item::Assignment { section: Some(_), key, value } => {
            found.assignments.push(Assignment { section: current, key, value });
        }
        Item::Assignment { .. } | Item::Blank | Item::Comment(_) => {}
    })
}

/// Reads a file into all that stands in it, comments too.
#[must_use]
pub(crate) fn items(source: &Arc<SourceFile>) -> (Vec<Item<'_>>, Vec<Diagnostic>) {
    let mut items = Vec::new();
    let problems = walk(source, &mut |item| items.push(item));
    (items, problems)
}

/// Hands on what stands in a file, one thing after the other; what is wrong with it.
fn walk<'a>(source: &'a Arc<SourceFile>, each: &mut impl FnMut(Item<'a>)) -> Vec<Diagnostic> {
    let text = source.text();
    let has = |byte| bytes::find(byte, text.as_bytes()).is_some();
    let fine = source.broken().is_empty() && !has(b'\0') && !has(b'\r');
    let mut reader = Reader { source, each, problems: Vec::new(), section: Where::Nowhere, fine };
    let mut pending: Option<Logical<'_>> = None;
    let mut start = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    while start < text.len() {
        let rest = &text[start..];
        let physical = bytes::find(b'\n', rest.as_bytes()).map_or(rest, |end| &rest[..end]);
        let (first, next) = (start, start + physical.len() + 1);
        start = next;
        let physical = physical.strip_suffix('\r').unwrap_or(physical);
        let trimmed = trim_start(physical);
        if trimmed.starts_with(['#', ';']) {
            let end = first + physical.len();
            (reader.each)(Item::Comment(end - trimmed.len()..end));
            continue;
        }
        let mut logical = match pending.take() {
            None => Logical { text: Cow::Borrowed(physical), pieces: Pieces { first, later: Vec::new() } },
            Some(mut logical) => {
                logical.pieces.later.push((logical.text.len(), first));
                logical.text.to_mut().push_str(physical);
                logical
            }
        };
        let backslashes = physical.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 {
            let joined = logical.text.to_mut();
            joined.pop();
            joined.push(' ');
            pending = Some(logical);
            continue;
        }
        reader.line(&logical);
    }
    if let Some(logical) = pending {
        reader.line(&logical);
    }
    reader.problems
}

/// A line with those that its backslashes join to it.
#[derive(Debug)]
struct Logical<'a> {
    text: Cow<'a, str>,
    pieces: Pieces,
}

impl<'a> Logical<'a> {
    /// A part of the text: of the file's, where the line is one of the file's.
    fn part(&self, part: Range<usize>) -> Cow<'a, str> {
        match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[part]),
            Cow::Owned(text) => Cow::Owned(text[part].to_owned()),
        }
    }
}

/// Below which header a line stands.
enum Where<'a> {
    /// Above the first.
    Nowhere,
    /// Below one that is broken: what stands there is not told once more.
    Broken,
    /// Below this one.
    In(Cow<'a, str>),
}

struct Reader<'a, 'e, E> {
    source: &'a Arc<SourceFile>,
    each: &'e mut E,
    problems: Vec<Diagnostic>,
    section: Where<'a>,
    /// Whether no line can have a character that no value can hold: the file has none.
    fine: bool,
}

impl<'a, E: FnMut(Item<'a>)> Reader<'a, '_, E> {
    fn line(&mut self, logical: &Logical<'a>) {
        let text = &*logical.text;
        let content = trim_start(text);
        let begin = text.len() - content.len();
        let content = trim_end(content);
        let whole = begin..begin + content.len();
        if content.is_empty() {
            return (self.each)(Item::Blank);
        }
        if !self.fine && !self.characters_are_fine(logical, &whole) {
            return;
        }
        if content.starts_with('[') {
            return self.header(logical, whole);
        }
        let Some(equal) = bytes::find(b'=', content.as_bytes()) else {
            return self.no_equal_sign(content, logical.pieces.range(&whole));
        };
        let (before, after) = (&content[..equal], &content[equal + 1..]);
        let key = whole.start..whole.start + trim_end(before).len();
        let key = Name { span: logical.pieces.range(&key), text: logical.part(key) };
        if key.text.is_empty() {
            let help = "write KEY=VALUE".to_owned();
            return self.refuse(key.span, "there is no key before the '='".to_owned(), help);
        }
        let value = trim_start(after);
        let value = whole.end - value.len()..whole.end;
        let section = match &self.section {
            Where::In(section) => Some(section.clone()),
            Where::Broken => None,
            Where::Nowhere => return self.outside(&key),
        };
        let value = Value {
            span: logical.pieces.range(&value),
            line: Some(logical.pieces.part(&value)),
            raw: Raw::Text(logical.part(value)),
        };
        (self.each)(Item::Assignment { section, key, value });
    }

    fn no_equal_sign(&mut self, content: &str, place: Range<usize>) {
        let help = match content.split_once(':') {
            Some((key, value)) if !key.trim().contains(' ') => {
                format!("write {}={}", key.trim(), value.trim())
            }
            _ => "write KEY=VALUE; a comment begins with #, a line that goes on ends with \\".to_owned(),
        };
        self.refuse(place, format!("there is no '=' in {}", quote(content)), help);
    }

    fn outside(&mut self, key: &Name<'_>) {
        let home = crate::schema::home_of(&key.text);
        let help = home.map_or("write it below a section such as [Unit]".to_owned(), |home| {
            format!("it belongs to [{home}]")
        });
        self.refuse(key.span.clone(), format!("{} stands outside of any section", quote(&key.text)), help);
    }

    /// Whether there is nothing in the line that no value can hold and no editor shows.
    fn characters_are_fine(&mut self, logical: &Logical<'_>, whole: &Range<usize>) -> bool {
        let wrong =
            logical.text.as_bytes()[whole.clone()].iter().position(|byte| matches!(byte, b'\0' | b'\r'));
        let wrong = wrong.map(|at| whole.start + at);
        if let Some(at) = wrong {
            let (what, help) = if logical.text[at..].starts_with('\0') {
                ("NUL character", "no setting can hold one")
            } else {
                ("carriage return in its middle", "end lines with a newline alone, or with both")
            };
            let message = format!("the line has a {what}");
            self.refuse(logical.pieces.range(&(at..at + 1)), message, help.to_owned());
            return false;
        }
        let broken = self.source.broken();
        if broken.is_empty() {
            return true;
        }
        let place = logical.pieces.range(whole);
        let first = broken.partition_point(|at| *at < place.start);
        let near = broken[first..].iter().take_while(|at| **at < place.end);
        // Comments between the joined lines may hold what they like.
        let in_text = |at: &&usize| {
            logical.pieces.offset_of(**at).is_some_and(|offset| {
                let rest = logical.text.get(offset..).unwrap_or_default();
                rest.starts_with(char::REPLACEMENT_CHARACTER)
            })
        };
        match near.into_iter().find(in_text) {
            Some(at) => {
                let help = "write the file as UTF-8 text".to_owned();
                self.refuse(*at..*at + 1, "the line is no UTF-8 text".to_owned(), help);
                false
            }
            None => true,
        }
    }

    fn header(&mut self, logical: &Logical<'a>, whole: Range<usize>) {
        let (content, place) = (&logical.text[whole.clone()], logical.pieces.range(&whole));
        self.section = Where::Broken;
        let help = "write it as [Section], on a line of its own".to_owned();
        let Some(name) = content[1..].strip_suffix(']') else {
            let why = if content.contains(']') {
                "there is text behind the section's name"
            } else {
                "the section's name is not closed"
            };
            return self.refuse(place, why.to_owned(), help);
        };
        if name.is_empty() || name.contains(|c: char| c.is_control() || "[]\"'\\".contains(c)) {
            return self.refuse(place, format!("{} is no name of a section", quote(name)), help);
        }
        let name = logical.part(whole.start + 1..whole.end - 1);
        self.section = Where::In(name.clone());
        let span = place.start + 1..place.end - 1;
        (self.each)(Item::Section(Name { text: name, span }));
    }

    fn refuse(&mut self, span: Range<usize>, message: String, help: String) {
        if self.problems.len() < MAX_ERRORS {
            self.problems.push(Diagnostic::error(self.source, span, message).with_help(help));
        }
    }
}
