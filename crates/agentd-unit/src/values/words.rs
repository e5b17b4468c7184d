//! Splitting text into words with systemd's quotes and escapes, systemd.syntax(7) "QUOTING" and systemd.service(5)
//! "COMMAND LINES".

use std::iter::Peekable;
use std::str::Chars;

use super::Refused;

/// One word and whether any of it was quoted or escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word with its quotes and escapes resolved.
    pub text: String,
    /// Whether it was written plainly: no quote, no escape. Only a plain `;` separates commands.
    pub plain: bool,
}

/// All words of a text. Quotes may stand anywhere in a word and keep what is between them together; escapes work
/// inside and outside of them.
///
/// # Errors
/// An unbalanced quote, a backslash at the end, an unknown escape, and an escape that makes no character.
pub fn split(text: &str) -> Result<Vec<Word>, Refused> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        words.push(word(text, &mut chars)?);
    }
}

fn word(text: &str, chars: &mut Peekable<Chars<'_>>) -> Result<Word, Refused> {
    let mut bytes = Vec::new();
    let mut plain = true;
    let mut quoted: Option<char> = None;
    while let Some(c) = chars.next_if(|c| quoted.is_some() || !c.is_ascii_whitespace()) {
        match c {
            '\\' => {
                plain = false;
                escape(text, chars, &mut bytes)?;
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
        return Err(Refused::of(
            text,
            &why,
            &format!("close it, or write \\{quote} for the character itself"),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Refused::of(text, "has escapes that make no valid UTF-8", "write characters with \\uXXXX")
    })?;
    Ok(Word { text, plain })
}

/// What stands behind a backslash, as its bytes.
fn escape(text: &str, chars: &mut Peekable<Chars<'_>>, bytes: &mut Vec<u8>) -> Result<(), Refused> {
    let Some(c) = chars.next() else {
        return Err(Refused::of(text, "ends in a backslash", "write \\\\ for the character itself"));
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
        'x' => return push_byte(text, digits(text, chars, None, 2, 16)?, bytes),
        '0'..='7' => return push_byte(text, digits(text, chars, Some(c), 3, 8)?, bytes),
        'u' => return push_char(text, digits(text, chars, None, 4, 16)?, bytes),
        'U' => return push_char(text, digits(text, chars, None, 8, 16)?, bytes),
        _ => {
            let why = format!("has the unknown escape \\{}", c.escape_debug());
            return Err(Refused::of(text, &why, "write \\\\ for a backslash"));
        }
    };
    bytes.push(simple);
    Ok(())
}

/// The number that the next digits make, exactly `count` of them.
fn digits(
    text: &str,
    chars: &mut Peekable<Chars<'_>>,
    first: Option<char>,
    count: usize,
    radix: u32,
) -> Result<u32, Refused> {
    let mut written: String = first.into_iter().collect();
    while written.len() < count {
        match chars.next_if(|c| c.is_digit(radix)) {
            Some(digit) => written.push(digit),
            None => {
                let why = format!("has an escape with fewer than {count} digits");
                return Err(Refused::of(text, &why, "write \\x20, \\040, \\u0020 or \\U00000020"));
            }
        }
    }
    u32::from_str_radix(&written, radix).map_err(|_| no_character(text))
}

fn no_character(text: &str) -> Refused {
    Refused::of(
        text,
        "has an escape for no character",
        "the character NUL and numbers beyond Unicode are refused",
    )
}

fn push_byte(text: &str, number: u32, bytes: &mut Vec<u8>) -> Result<(), Refused> {
    let byte = u8::try_from(number).ok().filter(|byte| *byte != 0).ok_or_else(|| no_character(text))?;
    bytes.push(byte);
    Ok(())
}

fn push_char(text: &str, number: u32, bytes: &mut Vec<u8>) -> Result<(), Refused> {
    let c = char::from_u32(number).filter(|c| *c != '\0').ok_or_else(|| no_character(text))?;
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}
