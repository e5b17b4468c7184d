//! Environment variables, systemd.exec(5) `Environment`.

use super::Refused;

/// Checks a variable's name: letters, digits and `_`, no digit first.
///
/// # Errors
/// Any other name; programs could not use it.
pub fn name(text: &str) -> Result<&str, Refused> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit()) {
        Ok(text)
    } else {
        let help = "names are made of letters, digits and _, and start with no digit";
        Err(Refused::of(text, "is no name of an environment variable", help))
    }
}

/// Splits one `NAME=value`.
///
/// # Errors
/// No `=`, or a name that is none.
pub fn assignment(text: &str) -> Result<(String, String), Refused> {
    let (variable, value) = text
        .split_once('=')
        .ok_or_else(|| Refused::of(text, "has no '='", "write Environment = { NAME = \"value\" }"))?;
    Ok((name(variable)?.to_owned(), value.to_owned()))
}
