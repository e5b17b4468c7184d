//! The short way through TOML: files that are written as nearly all are.
//!
//! Sections, bare keys, strings without escapes, small whole numbers, booleans, lists and inline tables of these, each
//! key once: such a file is read here, in one walk over its bytes and with no copies. Whatever else stands in it, right
//! or wrong, makes the whole file one for the full reader, which alone knows errors. A test holds the two to the same
//! result.

use std::borrow::Cow;
use std::ops::Range;

use crate::assignment::{Assignment, Assignments, Name, Raw, Value};

/// So deep values may be nested; no setting takes more.
const DEPTH: usize = 8;

/// So many keys or sections are compared with each other, to see that each stands once.
const KEYS: usize = 64;

/// Puts the file's content into an empty list; `None`: the full reader is needed, and what was put there is a part.
#[must_use]
pub(crate) fn read<'a>(text: &'a str, found: &mut Assignments<'a>) -> Option<()> {
    let mut reader = Reader { text, at: 0 };
    // Where the keys of the present section begin.
    let mut first = 0;
    while reader.next_line() {
        if reader.eat(b'[') {
            let name = reader.key()?;
            reader.expect(b']')?;
            reader.end_of_line()?;
            if found.sections.len() >= KEYS || found.sections.iter().any(|known| known.text == name.text) {
                return None;
            }
            found.sections.push(name);
            first = found.assignments.len();
            continue;
        }
        let section = found.sections.len().checked_sub(1)?;
        let key = reader.key()?;
        let earlier = found.assignments.get(first..)?;
        if earlier.len() >= KEYS || earlier.iter().any(|known| known.key.text == key.text) {
            return None;
        }
        reader.blanks();
        reader.expect(b'=')?;
        reader.blanks();
        let value = reader.value(DEPTH)?;
        reader.end_of_line()?;
        found.assignments.push(Assignment { section, key, value });
    }
    (reader.at == text.len()).then_some(())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    /// Walks over bytes of a kind; where they stand.
    fn walk(&mut self, is_one: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !is_one(*byte)).unwrap_or(rest.len());
        start..self.at
    }

    fn blanks(&mut self) {
        self.walk(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Walks over a comment, if there is one. Control characters are for the full reader.
    fn comment(&mut self) {
        if self.peek() == Some(b'#') {
            self.walk(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
        }
    }

    /// Goes to the next line that has something; false at the end, or where this reader is at its own.
    fn next_line(&mut self) -> bool {
        loop {
            self.blanks();
            self.comment();
            if !self.eat(b'\n') {
                return self.peek().is_some_and(|byte| byte == b'[' || is_bare(byte));
            }
        }
    }

    fn end_of_line(&mut self) -> Option<()> {
        self.blanks();
        self.comment();
        (self.at == self.text.len() || self.eat(b'\n')).then_some(())
    }

    /// Blanks, comments and newlines inside of a list.
    fn space(&mut self) {
        loop {
            self.blanks();
            self.comment();
            if !self.eat(b'\n') {
                return;
            }
        }
    }

    /// A bare key; one with dots or quotes is for the full reader.
    fn key(&mut self) -> Option<Name<'a>> {
        let span = self.walk(is_bare);
        let text = self.text.get(span.clone()).filter(|text| !text.is_empty())?;
        Some(Name { text: Cow::Borrowed(text), span })
    }

    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        let start = self.at;
        let raw = match self.peek()? {
            b'"' => self.string(b'"', |byte| byte != b'\\')?,
            b'\'' => self.string(b'\'', |_| true)?,
            b'[' => self.list(depth.checked_sub(1)?)?,
            b'{' => self.table(depth.checked_sub(1)?)?,
            b't' | b'f' => self.boolean()?,
            _ => self.number()?,
        };
        Some(Value { raw, span: start..self.at, line: None })
    }

    /// A string on one line, with nothing in it that stands for something else.
    fn string(&mut self, quote: u8, is_plain: impl Fn(u8) -> bool) -> Option<Raw<'a>> {
        self.expect(quote)?;
        let plain = |byte: u8| byte != quote && (byte >= b' ' || byte == b'\t') && byte != 0x7f;
        let span = self.walk(|byte| plain(byte) && is_plain(byte));
        self.expect(quote)?;
        // Three quotes begin another kind of string.
        if span.is_empty() && self.peek() == Some(quote) {
            return None;
        }
        Some(Raw::Text(Cow::Borrowed(self.text.get(span)?)))
    }

    fn boolean(&mut self) -> Option<Raw<'a>> {
        let word = self.walk(|byte| byte.is_ascii_alphanumeric());
        match self.text.get(word)? {
            "true" => Some(Raw::Bool(true)),
            "false" => Some(Raw::Bool(false)),
            _ => None,
        }
    }

    /// A whole number in decimal digits that fits wherever one is taken; dates, fractions and all else that begins with
    /// a digit is for the full reader.
    fn number(&mut self) -> Option<Raw<'a>> {
        let word = self.walk(|byte| byte.is_ascii_alphanumeric() || b"+-_.:".contains(&byte));
        let word = self.text.get(word)?;
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 18;
        if !is_plain || digits.is_empty() || (digits.starts_with('0') && word != "0") {
            return None;
        }
        word.parse().ok().map(Raw::Integer)
    }

    fn list(&mut self, depth: usize) -> Option<Raw<'a>> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        loop {
            self.space();
            if self.eat(b']') {
                return Some(Raw::List(items));
            }
            items.push(self.value(depth)?);
            self.space();
            if !self.eat(b',') {
                self.expect(b']')?;
                return Some(Raw::List(items));
            }
        }
    }

    /// A table on one line.
    fn table(&mut self, depth: usize) -> Option<Raw<'a>> {
        self.expect(b'{')?;
        let mut entries: Vec<(Name<'a>, Value<'a>)> = Vec::new();
        self.blanks();
        if self.eat(b'}') {
            return Some(Raw::Table(entries));
        }
        loop {
            self.blanks();
            let key = self.key()?;
            if entries.len() >= KEYS || entries.iter().any(|(known, _)| known.text == key.text) {
                return None;
            }
            self.blanks();
            self.expect(b'=')?;
            self.blanks();
            let value = self.value(depth)?;
            entries.push((key, value));
            self.blanks();
            if !self.eat(b',') {
                self.expect(b'}')?;
                return Some(Raw::Table(entries));
            }
        }
    }
}

/// What a key without quotes is made of.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
