//! Where the standard descriptors lead, systemd.exec(5) "LOGGING AND STANDARD INPUT/OUTPUT".

use super::{Refused, path};
use crate::sections::{Input, Output, Seize};

/// The name behind `fd:`; without one, the stream's own.
fn named(text: &str, own: &str) -> Result<Option<String>, Refused> {
    let Some(name) = text.strip_prefix("fd:").or_else(|| (text == "fd").then_some(own)) else {
        return Ok(None);
    };
    let plain = |c: char| c.is_ascii_graphic() && c != ':';
    if name.is_empty() || name.len() > 255 || !name.chars().all(plain) {
        return Err(Refused::of(
            text,
            "names no descriptor",
            "write fd:NAME, as FDNAME or FileDescriptorName says it",
        ));
    }
    Ok(Some(name.to_owned()))
}

/// `StandardInput`.
///
/// # Errors
/// A word that is none of the key's.
pub fn input(text: &str) -> Result<Input, Refused> {
    if let Some(name) = named(text, "stdin")? {
        return Ok(Input::Named(name));
    }
    Ok(match text.split_once(':') {
        Some(("file", path)) => Input::File(path::absolute(path)?),
        _ => match text {
            "null" => Input::Null,
            "socket" => Input::Socket,
            "data" => Input::Data,
            "tty" | "tty-fail" => Input::Terminal(Seize::Ask),
            "tty-force" => Input::Terminal(Seize::Force),
            _ => {
                let help =
                    "the words are null, data, socket, tty, tty-force, tty-fail, file:/path and fd:NAME";
                return Err(Refused::of(text, "is not known here", help));
            }
        },
    })
}

/// `StandardOutput` and `StandardError`.
///
/// # Errors
/// A word that is none of the keys'.
pub fn output(text: &str, own: &str) -> Result<Output, Refused> {
    if let Some(name) = named(text, own)? {
        return Ok(Output::Named(name));
    }
    Ok(match text.split_once(':') {
        Some(("file", path)) => Output::File(path::absolute(path)?),
        Some(("append", path)) => Output::Append(path::absolute(path)?),
        Some(("truncate", path)) => Output::Truncate(path::absolute(path)?),
        _ => match text {
            "inherit" => Output::Inherit,
            "null" => Output::Null,
            "socket" => Output::Socket,
            "journal" => Output::Log,
            "kmsg" => Output::KernelLog,
            "tty" => Output::Terminal,
            _ => {
                let help = "the words are inherit, null, socket, tty, journal, kmsg, file:/path, append:/path, \
                            truncate:/path and fd:NAME";
                return Err(Refused::of(text, "is not known here", help));
            }
        },
    })
}

/// `StandardInputData`: Base64, RFC 4648, with white space anywhere.
///
/// # Errors
/// Any other text.
pub fn base64(text: &str) -> Result<Vec<u8>, Refused> {
    let wrong = || Refused::with_help("is no Base64", "write what base64(1) prints");
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padding = letters.iter().rev().take_while(|byte| **byte == b'=').count();
    let body = &letters[..letters.len() - padding];
    if !letters.len().is_multiple_of(4) || padding > 2 {
        return Err(wrong());
    }
    let mut bytes = Vec::with_capacity(body.len() * 3 / 4);
    for group in body.chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | u32::from(sextet(*byte).ok_or_else(wrong)?);
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Ok(bytes)
}

/// The same the other way, on one line.
#[must_use]
pub fn to_base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place) & 63) as usize;
            text.push(if place <= group.len() { char::from(LETTERS[sextet]) } else { '=' });
        }
    }
    text
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{base64, to_base64};

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9v\n YmFy", "foobar")]
        {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes(), "{text}");
            let plain: String = text.split_whitespace().collect();
            assert_eq!(to_base64(bytes.as_bytes()), plain);
        }
        for text in ["Z", "Zg", "Zg=", "Z===", "Zm9v!", "=", "Zm8=Zg=="] {
            assert!(base64(text).is_err(), "{text}");
        }
    }
}
