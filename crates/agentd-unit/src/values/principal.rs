//! Names and numbers of users and groups. Whether one exists is the start's question; a text that can be none is
//! an error at once, since a service that was to run as somebody must never run as root instead.

use super::Refused;

/// The longest name, in bytes, as login records hold it.
const NAME_MAX: usize = 31;

/// A name (`a-z A-Z 0-9 _ - .`, not a digit, `-` or `.` first) or a decimal number, neither 65535 nor 4294967295.
///
/// # Errors
/// Anything else: `0day`, ` svc`, `#1`, the empty text.
pub fn parse(text: &str) -> Result<String, Refused> {
    const HELP: &str = "write a name such as \"www-data\" or a number such as 33";
    if text.is_empty() {
        return Err(Refused::with_help("the name is empty", HELP));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse::<u32>() {
            Ok(u32::MAX) | Ok(0xFFFF) => {
                Err(Refused::of(text, "means \"nobody in particular\" to the kernel", HELP))
            }
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err(Refused::of(text, "is too large for a user or group", HELP)),
        };
    }
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let further = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.starts_with(first) || !text.chars().all(further) {
        return Err(Refused::of(text, "is no valid name of a user or group", HELP));
    }
    if text.len() > NAME_MAX {
        return Err(Refused::of(text, "is longer than 31 characters", HELP));
    }
    Ok(text.to_owned())
}
