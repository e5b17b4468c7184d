//! Where the standard descriptors lead, systemd.exec(5) "LOGGING AND STANDARD INPUT/OUTPUT".

use super::{Refused, path};
use crate::sections::{Input, Output, Seize};

/// `StandardInput`.
///
/// # Errors
/// A word that is none of the key's.
pub fn input(text: &str) -> Result<Input, Refused> {
    Ok(match text.split_once(':') {
        Some(("file", path)) => Input::File(path::absolute(path)?),
        _ => match text {
            "null" => Input::Null,
            "tty" | "tty-fail" => Input::Terminal(Seize::Ask),
            "tty-force" => Input::Terminal(Seize::Force),
            _ => {
                let help = "the words are null, tty, tty-force, tty-fail and file:/path";
                return Err(Refused::of(text, "is not known here", help));
            }
        },
    })
}

/// `StandardOutput` and `StandardError`.
///
/// # Errors
/// A word that is none of the keys'.
pub fn output(text: &str) -> Result<Output, Refused> {
    Ok(match text.split_once(':') {
        Some(("file", path)) => Output::File(path::absolute(path)?),
        Some(("append", path)) => Output::Append(path::absolute(path)?),
        Some(("truncate", path)) => Output::Truncate(path::absolute(path)?),
        _ => match text {
            "inherit" => Output::Inherit,
            "null" => Output::Null,
            "journal" => Output::Log,
            "kmsg" => Output::KernelLog,
            "tty" => Output::Terminal,
            _ => {
                let help = "the words are inherit, null, tty, journal, kmsg, file:/path, append:/path and \
                            truncate:/path";
                return Err(Refused::of(text, "is not known here", help));
            }
        },
    })
}
