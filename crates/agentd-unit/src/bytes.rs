//! Looking for one byte.

/// One in each byte of a word, and the highest bit of each.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHEST: u64 = ONES << 7;

/// Where a byte stands first, looked for in eight bytes at a time: lines are too short for what the standard library
/// does before it begins.
#[must_use]
#[inline]
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks();
    for (place, word) in words.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ (ONES * u64::from(byte));
        // Taking one from a byte that is zero, and from no other before it, sets a highest bit that was not set.
        let found = differing.wrapping_sub(ONES) & !differing & HIGHEST;
        if found != 0 {
            return Some(place * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let behind = rest.iter().position(|other| *other == byte)?;
    Some(words.len() * 8 + behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_stands() {
        for length in 0..20 {
            for first in 0..=length {
                // What differs in one bit only, and what follows, must not be taken for it.
                let mut text = vec![b'<'; length];
                text.iter_mut().skip(first).for_each(|byte| *byte = b'=');
                assert_eq!(find(b'=', &text), (first < length).then_some(first), "{first} of {length}");
                assert_eq!(find(b'<', &text), (first > 0).then_some(0));
                assert_eq!(find(0, &text), None);
            }
        }
        for byte in 0..=255 {
            let all: Vec<u8> = (0..=255).collect();
            assert_eq!(find(byte, &all), Some(usize::from(byte)));
        }
    }
}
