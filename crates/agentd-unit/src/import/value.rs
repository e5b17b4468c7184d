//! One value of systemd's syntax as TOML writes it.

use crate::schema::Shape;
use crate::specifier;
use crate::values::Refused;
use crate::values::words::{self, Escapes};

/// What one line gives to its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// The whole value, as TOML.
    Scalar(String),
    /// Items of a list, each as TOML.
    Items(Vec<String>),
    /// Takes back what was said before.
    Reset,
}

/// The value of a line, or why there is none.
///
/// # Errors
/// Broken quoting, and what is no boolean.
pub(super) fn item(text: &str, shape: Shape) -> Result<Item, Refused> {
    if text.trim().is_empty() {
        return Ok(Item::Reset);
    }
    Ok(match shape {
        Shape::Text => Item::Scalar(string(&specifiers_escaped(text))),
        Shape::Plain => Item::Scalar(plain(text)),
        Shape::Bool => {
            // Some booleans have further words, as ProtectSystem=strict.
            let word = crate::values::boolean::parse(text).map(|yes| yes.to_string());
            Item::Scalar(word.unwrap_or_else(|_| string(text)))
        }
        Shape::Lines => Item::Items(vec![string(&specifiers_escaped(text))]),
        Shape::Words | Shape::Capabilities => {
            let words = words::split_with(text, Escapes::Retain)?;
            Item::Items(words.iter().map(|word| string(&specifiers_escaped(&word.text))).collect())
        }
        Shape::Variables => {
            let words = words::split(text)?;
            Item::Items(words.iter().map(|word| string(&specifiers_escaped(&word.text))).collect())
        }
        Shape::Commands => Item::Items(commands(text)?),
    })
}

/// The value of a key whose text has escapes in systemd's syntax, which are TOML's own there.
pub(super) fn escaped(key: &str, text: &str) -> Option<Result<Item, Refused>> {
    let resolved = |text: &str, secret: bool| {
        let wrong =
            || Refused::with_help("has escapes that make no valid UTF-8", "no text in TOML can have them");
        let text = String::from_utf8(words::unescaped(text, secret)?).map_err(|_| wrong())?;
        // A string with NUL is refused where TOML is read.
        if text.contains('\0') {
            return Err(Refused::with_help("has an escape for NUL", "no text in TOML can have it"));
        }
        Ok(text)
    };
    let text = match key {
        "StandardInputText" if text.contains('\\') => {
            resolved(text, false).map(|text| specifiers_escaped(&text))
        }
        "SetCredential" => {
            let (name, secret) = text.split_once(':')?;
            // Behind the name nothing is a specifier in systemd's syntax.
            let secret = resolved(secret, true).map(|secret| secret.replace('%', "%%"));
            secret.map(|secret| format!("{}:{secret}", specifiers_escaped(name)))
        }
        _ => return None,
    };
    Some(text.map(|text| Item::Scalar(string(&text))))
}

/// Each command of a line as a list of its words.
fn commands(text: &str) -> Result<Vec<String>, Refused> {
    let words = words::split_with(text, Escapes::Relaxed)?;
    let parts = words.split(|word| word.plain && word.text == ";").filter(|part| !part.is_empty());
    let list = |part: &[words::Word<'_>]| {
        let words: Vec<String> = part.iter().map(|word| string(&specifiers_escaped(&word.text))).collect();
        format!("[{}]", words.join(", "))
    };
    Ok(parts.map(list).collect())
}

/// What is no specifier, with its percent sign doubled: TOML wants it said.
fn specifiers_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(unknown) = specifier::first_unknown(rest) {
        // `unknown` is a part of `rest`.
        let at = unknown.as_ptr() as usize - rest.as_ptr() as usize;
        escaped.push_str(&rest[..at]);
        escaped.push_str("%%");
        rest = &rest[at + 1..];
    }
    escaped.push_str(rest);
    escaped
}

/// A number as such, all else as a string.
fn plain(text: &str) -> String {
    let number = text.parse::<u32>().is_ok_and(|number| number.to_string() == text);
    if number { text.to_owned() } else { string(text) }
}

/// A TOML string.
pub(super) fn string(text: &str) -> String {
    let control = |c: char| c.is_control();
    if text.contains(['\\', '"']) && !text.contains('\'') && !text.contains(control) {
        return format!("'{text}'");
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A key as TOML writes it.
pub(super) fn key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(bare) { text.to_owned() } else { string(text) }
}
