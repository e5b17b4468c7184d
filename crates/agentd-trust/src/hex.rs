//! Lower-case hexadecimal, the one spelling of digests and key ids.

use std::fmt::{self, Write};

/// Writes `bytes` as two lower-case digits each.
pub(crate) fn write(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Reads exactly `N` bytes from `2 * N` lower-case digits; `None` for anything else.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
