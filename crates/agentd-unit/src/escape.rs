//! systemd's escaping of texts and paths into unit names, systemd.unit(5) "STRING ESCAPING FOR INCLUSION IN UNIT
//! NAMES".

use std::fmt::Write as _;

use crate::values::Refused;

/// The text as part of a unit name, as `systemd-escape` prints it: `/` becomes `-`, all else that is not a letter,
/// a digit, `:`, `_` or `.` (and a first `.`) becomes `\xNN`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b":_".contains(&byte) || (byte == b'.' && index > 0);
        let result = match byte {
            b'/' => escaped.write_char('-'),
            _ if plain => escaped.write_char(char::from(byte)),
            _ => write!(escaped, "\\x{byte:02x}"),
        };
        debug_assert!(result.is_ok(), "writing to a string cannot fail");
    }
    escaped
}

/// A path as part of a unit name, as `systemd-escape --path` prints it: without slashes at its ends; `/` is `-`.
///
/// # Errors
/// A path with `.` or `..` in it.
pub fn escape_path(path: &str) -> Result<String, Refused> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(Refused::of(path, "has '.' or '..' in it", "write the plain path"));
    }
    Ok(if parts.is_empty() { "-".to_owned() } else { escape(&parts.join("/")) })
}

/// The text that was escaped.
///
/// # Errors
/// A backslash that does not start `\xNN`, and bytes that are no UTF-8.
pub fn unescape(name: &str) -> Result<String, Refused> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'-' => bytes.push(b'/'),
            b'\\' => {
                let digits = rest.strip_prefix(b"x").and_then(|digits| digits.get(..2));
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                let byte =
                    digits.filter(|d| !d.starts_with('+')).and_then(|d| u8::from_str_radix(d, 16).ok());
                bytes.push(byte.ok_or_else(|| {
                    Refused::of(name, "has a backslash that starts no escape", "escapes are \\xNN")
                })?);
                rest = &rest[3..];
            }
            _ => bytes.push(first),
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Refused::of(name, "escapes no valid UTF-8", "systemd-escape(1) makes names"))
}

/// The path that was escaped: absolute.
///
/// # Errors
/// As [`unescape`].
pub fn unescape_path(name: &str) -> Result<String, Refused> {
    if name == "-" {
        return Ok("/".to_owned());
    }
    Ok(format!("/{}", unescape(name)?))
}
