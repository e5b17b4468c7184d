//! Bytes as systemd prints them: one decimal, powers of 1024.

/// `512B`, `1.5K`, `64.0M`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(u32, char); 6] = [(60, 'E'), (50, 'P'), (40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
    for (bits, unit) in UNITS {
        if count >> bits > 0 {
            let tenths = ((u128::from(count) * 10) >> bits) % 10;
            return format!("{}.{tenths}{unit}", count >> bits);
        }
    }
    format!("{count}B")
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_are_printed_as_systemd_does() {
        for (count, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (64 << 20, "64.0M"),
            ((1 << 30) - 1, "1023.9M"),
            (u64::MAX, "15.9E"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
