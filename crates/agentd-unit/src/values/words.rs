//! Splitting text into words with systemd's quotes and escapes, systemd.syntax(7) "QUOTING" and systemd.service(5)
//! "COMMAND LINES".

use std::borrow::Cow;
use std::ops::Range;

use super::Refused;

/// One word and whether any of it was quoted or escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'t> {
    /// The word with its quotes and escapes resolved: a part of the text where it stands there as it is.
    pub text: Cow<'t, str>,
    /// Whether it was written plainly: no quote, no escape. Only a plain `;` separates commands.
    pub plain: bool,
    /// Where it stands in the text, its quotes included.
    pub span: Range<usize>,
}

/// What is made of a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// It begins an escape, and an unknown one is an error.
    Resolve,
    /// It begins an escape; an unknown one stays as it is, as systemd takes command lines.
    Relaxed,
    /// It is a character like any other, as in names of units (`a\x2db.service`).
    Retain,
}

/// All words of a text. Quotes may stand anywhere in a word and keep what is between them together; escapes work
/// inside and outside of them.
///
/// # Errors
/// An unbalanced quote, a backslash at the end, an unknown escape, and an escape that makes no character.
pub fn split(text: &str) -> Result<Vec<Word<'_>>, Refused> {
    split_with(text, Escapes::Resolve)
}

/// Whether a text is one word as it stands there: no white space, no quote, no backslash.
pub(crate) fn is_one_plain(text: &str) -> bool {
    let is_plain = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'\\');
    !text.is_empty() && text.bytes().all(is_plain)
}

/// All words of a text, with a choice of what a backslash means.
///
/// # Errors
/// An unbalanced quote; with [`Escapes::Resolve`] also an escape that is none; and one that makes no character.
pub fn split_with(text: &str, escapes: Escapes) -> Result<Vec<Word<'_>>, Refused> {
    let mut cursor = Cursor { text, at: 0, escapes, nul: false };
    let mut words = Vec::new();
    loop {
        cursor.run(|byte| byte.is_ascii_whitespace());
        if cursor.peek().is_none() {
            return Ok(words);
        }
        words.push(cursor.word()?);
    }
}

/// The first escape of a text that means nothing, as it stands there: what [`Escapes::Relaxed`] leaves alone.
#[must_use]
pub fn unknown_escape(text: &str) -> Option<&str> {
    if !text.contains('\\') {
        return None;
    }
    let mut cursor = Cursor { text, at: 0, escapes: Escapes::Resolve, nul: false };
    while let Some(c) = cursor.next() {
        let start = cursor.at - c.len_utf8();
        if c == '\\' && cursor.escape(&mut Vec::new()).is_err() {
            let length = text[start..].chars().take(2).map(char::len_utf8).sum::<usize>();
            return Some(&text[start..start + length]);
        }
    }
    None
}

/// The bytes of a text with its escapes resolved, systemd.syntax(7); quotes are characters like any other.
///
/// # Errors
/// A backslash at the end, an unknown escape, and one that makes no character. The text is not quoted in it if it is
/// `secret`; a secret is bytes of any kind and may hold NUL.
pub fn unescaped(text: &str, secret: bool) -> Result<Vec<u8>, Refused> {
    let mut cursor = Cursor { text, at: 0, escapes: Escapes::Resolve, nul: secret };
    let mut bytes = Vec::with_capacity(text.len());
    while cursor.peek().is_some() {
        bytes.extend_from_slice(cursor.run(|byte| byte != b'\\').as_bytes());
        if cursor.next().is_some() {
            cursor.escape(&mut bytes).map_err(|refused| {
                let hidden =
                    || Refused::with_help("has a backslash that is no escape", "write \\\\ for a backslash");
                if secret { hidden() } else { refused }
            })?;
        }
    }
    Ok(bytes)
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
    escapes: Escapes,
    /// Whether an escape may make NUL.
    nul: bool,
}

impl<'t> Cursor<'t> {
    /// Goes over bytes of a kind, which must end where characters do; the text that they are.
    fn run(&mut self, is_one: impl Fn(u8) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| !is_one(byte)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        self.next_if(|_| true)
    }

    fn next_if(&mut self, wanted: impl FnOnce(char) -> bool) -> Option<char> {
        let c = self.peek().filter(|c| wanted(*c))?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn word(&mut self) -> Result<Word<'t>, Refused> {
        let start = self.at;
        let escapes = self.escapes != Escapes::Retain;
        let run = self.run(|byte| match byte {
            b'"' | b'\'' => false,
            b'\\' => !escapes,
            byte => !byte.is_ascii_whitespace(),
        });
        if self.text.as_bytes().get(self.at).is_none_or(u8::is_ascii_whitespace) {
            return Ok(Word { text: Cow::Borrowed(run), plain: true, span: start..self.at });
        }
        self.quoted_word(start, run.as_bytes().to_vec())
    }

    /// A word that has quotes or escapes, from the first of them on.
    fn quoted_word(&mut self, start: usize, mut bytes: Vec<u8>) -> Result<Word<'t>, Refused> {
        let mut plain = true;
        let mut quoted: Option<char> = None;
        loop {
            // What stands for itself, which is nearly all, is taken at once.
            let (inside, escapes) = (quoted.is_some(), self.escapes != Escapes::Retain);
            let plain_run = self.run(|byte| match byte {
                b'"' | b'\'' => false,
                b'\\' => !escapes,
                byte => inside || !byte.is_ascii_whitespace(),
            });
            bytes.extend_from_slice(plain_run.as_bytes());
            let Some(c) = self.next_if(|c| inside || !c.is_ascii_whitespace()) else { break };
            match c {
                '\\' if self.escapes != Escapes::Retain => {
                    plain = false;
                    self.escape_or_keep(&mut bytes)?;
                }
                '"' | '\'' if quoted == Some(c) => quoted = None,
                '"' | '\'' if quoted.is_none() => {
                    plain = false;
                    quoted = Some(c);
                }
                _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if let Some(quote) = quoted {
            let why = format!("has a {quote} that is never closed");
            let help = format!("close it, or write \\{quote} for the character itself");
            return Err(Refused::of(self.text, &why, &help));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Refused::of(self.text, "has escapes that make no valid UTF-8", "write characters with \\uXXXX")
        })?;
        Ok(Word { text: Cow::Owned(text), plain, span: start..self.at })
    }

    /// What stands behind a backslash, as its bytes; where unknown escapes are let be, an unknown one as it is.
    fn escape_or_keep(&mut self, bytes: &mut Vec<u8>) -> Result<(), Refused> {
        // The usual unknown ones, as in a pattern: no error need be worded to be thrown away.
        let unknown = |c: char| !c.is_ascii_digit() && !"abfnrtvsxuU\\\"';".contains(c);
        if self.escapes == Escapes::Relaxed
            && let Some(c) = self.next_if(unknown)
        {
            bytes.push(b'\\');
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        let (start, length) = (self.at, bytes.len());
        let result = self.escape(bytes);
        if result.is_err() && self.escapes == Escapes::Relaxed {
            bytes.truncate(length);
            bytes.push(b'\\');
            self.at = start;
            if let Some(c) = self.next() {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            return Ok(());
        }
        result
    }

    /// What stands behind a backslash, as its bytes.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Refused> {
        let Some(c) = self.next() else {
            return Err(Refused::of(self.text, "ends in a backslash", "write \\\\ for the character itself"));
        };
        let simple = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            's' => b' ',
            '\\' | '"' | '\'' | ';' => c as u8,
            'x' => return self.push_byte(None, 2, 16, bytes),
            '0'..='7' => return self.push_byte(Some(c), 3, 8, bytes),
            'u' => return self.push_char(4, bytes),
            'U' => return self.push_char(8, bytes),
            _ => {
                let why = format!("has the unknown escape \\{}", c.escape_debug());
                return Err(Refused::of(self.text, &why, "write \\\\ for a backslash"));
            }
        };
        bytes.push(simple);
        Ok(())
    }

    /// The number that the next digits make, exactly `count` of them.
    fn digits(&mut self, first: Option<char>, count: usize, radix: u32) -> Result<u32, Refused> {
        let mut written: String = first.into_iter().collect();
        while written.len() < count {
            match self.next_if(|c| c.is_digit(radix)) {
                Some(digit) => written.push(digit),
                None => {
                    let why = format!("has an escape with fewer than {count} digits");
                    return Err(Refused::of(self.text, &why, "write \\x20, \\040, \\u0020 or \\U00000020"));
                }
            }
        }
        u32::from_str_radix(&written, radix).map_err(|_| self.no_character())
    }

    fn no_character(&self) -> Refused {
        Refused::of(
            self.text,
            "has an escape for no character",
            "the character NUL and numbers beyond Unicode are refused",
        )
    }

    fn push_byte(
        &mut self,
        first: Option<char>,
        count: usize,
        radix: u32,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let number = self.digits(first, count, radix)?;
        let byte = u8::try_from(number).ok().filter(|byte| *byte != 0 || self.nul);
        bytes.push(byte.ok_or_else(|| self.no_character())?);
        Ok(())
    }

    fn push_char(&mut self, count: usize, bytes: &mut Vec<u8>) -> Result<(), Refused> {
        let number = self.digits(None, count, 16)?;
        let c =
            char::from_u32(number).filter(|c| *c != '\0' || self.nul).ok_or_else(|| self.no_character())?;
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }
}
