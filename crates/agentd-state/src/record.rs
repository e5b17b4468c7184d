//! One checksummed value in one small text file.
//!
//! ```text
//! agentd stamp 1
//! backup.timer
//! 1795953600000000
//! sha256 4f0c…
//! ```
//!
//! Kind and format version, subject, value, and the SHA-256 of the three lines before it. The subject is part of what
//! is summed, so that a file copied to another name is found out.

use sha2::{Digest, Sha256};

/// The format of this version of the program.
const VERSION: u32 = 1;

/// The longest file that is read: a longest unit name, three short lines, and room.
pub(crate) const MAX_BYTES: u64 = 4096;

/// The file's content for a value.
pub(crate) fn encode(kind: &str, subject: &str, value: &str) -> Vec<u8> {
    let mut text = format!("agentd {kind} {VERSION}\n{subject}\n{value}\n");
    let sum = hex(&Sha256::digest(text.as_bytes()));
    text.push_str(&format!("sha256 {sum}\n"));
    text.into_bytes()
}

/// The value in a file's content, or what is wrong with it.
pub(crate) fn decode<'a>(kind: &str, subject: &str, content: &'a [u8]) -> Result<&'a str, &'static str> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not text")?;
    let body = text.strip_suffix('\n').ok_or("its end is missing")?;
    let (body, last) = body.rsplit_once('\n').ok_or("its end is missing")?;
    let sum = last.strip_prefix("sha256 ").ok_or("its checksum is missing")?;
    // The newline before the checksum is part of what is summed.
    let summed = &text[..body.len() + 1];
    if hex(&Sha256::digest(summed.as_bytes())) != sum {
        return Err("its checksum does not match");
    }
    let mut lines = body.split('\n');
    if lines.next() != Some(&format!("agentd {kind} {VERSION}")) {
        return Err("it is of another kind or version");
    }
    if lines.next() != Some(subject) {
        return Err("it belongs to another name");
    }
    match (lines.next(), lines.next()) {
        (Some(value), None) => Ok(value),
        _ => Err("it has too many or too few lines"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let content = encode("stamp", "web.timer", "-17");
        assert_eq!(decode("stamp", "web.timer", &content), Ok("-17"));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let content = encode("stamp", "web.timer", "1795953600000000");
        for position in 0..content.len() * 8 {
            let mut damaged = content.clone();
            damaged[position / 8] ^= 1 << (position % 8);
            assert!(decode("stamp", "web.timer", &damaged).is_err(), "bit {position}");
        }
    }

    #[test]
    fn every_cut_is_found() {
        let content = encode("stamp", "web.timer", "1795953600000000");
        for length in 0..content.len() {
            assert!(decode("stamp", "web.timer", &content[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_file_of_another_name_or_kind_is_found() {
        let content = encode("stamp", "web.timer", "1");
        assert_eq!(decode("stamp", "db.timer", &content), Err("it belongs to another name"));
        assert_eq!(decode("token", "web.timer", &content), Err("it is of another kind or version"));
    }
}
