//! Points in time as the log files have them: `2026-11-29T12:00:00.123456Z`, RFC 3339 in UTC, always 27 bytes.

/// The length of every stamp.
pub(crate) const LENGTH: usize = 27;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The last microsecond that four digits of year can say.
const LAST: i64 = 253_402_300_799_999_999;

/// The stamp of `micros` microseconds after 1970-01-01T00:00:00Z; a time before that or after the year 9999 becomes
/// the nearest one that a stamp can say.
pub(crate) fn format(micros: i64) -> [u8; LENGTH] {
    let micros = micros.clamp(0, LAST);
    let (year, month, day) = date(micros / MICROS_PER_DAY);
    let rest = micros % MICROS_PER_DAY;
    let mut out = *b"0000-00-00T00:00:00.000000Z";
    for (at, width, value) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, rest / 3_600_000_000),
        (14, 2, rest / 60_000_000 % 60),
        (17, 2, rest / 1_000_000 % 60),
        (20, 6, rest % 1_000_000),
    ] {
        put(&mut out[at..at + width], value);
    }
    out
}

/// The microseconds that a stamp says, or `None` where the text is no stamp.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (26, b'Z')];
    if text.len() != LENGTH || marks.iter().any(|&(at, mark)| text[at] != mark) {
        return None;
    }
    let (year, month, day) = (number(&text[0..4])?, number(&text[5..7])?, number(&text[8..10])?);
    let (hour, minute) = (number(&text[11..13])?, number(&text[14..16])?);
    let (second, micro) = (number(&text[17..19])?, number(&text[20..26])?);
    let valid = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days(year, month, day) * MICROS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro)
}

fn put(out: &mut [u8], mut value: i64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
}

/// The days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that the leap day
/// is the last of its year and the lengths of the months before a given one are a linear sum.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719468 days lie between the first of March of the year 0 and the epoch.
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The date that lies `count` days after 1970-01-01: year, month, day.
fn date(count: i64) -> (i64, i64, i64) {
    // 400 years are 146097 days. The guess by the mean year is exact, or one off at the turn of a year.
    let guess = 1970 + count * 400 / 146_097;
    let year = (guess - 1..=guess + 1).rev().find(|&y| days(y, 1, 1) <= count).unwrap_or(1970);
    let month = (2..=12).rev().find(|&m| days(year, m, 1) <= count).unwrap_or(1);
    (year, month, count - days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_have_their_stamps() {
        for (micros, stamp) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z"),
            (1_795_953_600_123_456, "2026-11-29T12:00:00.123456Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (LAST, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(String::from_utf8_lossy(&format(micros)), stamp);
            assert_eq!(parse(stamp.as_bytes()), Some(micros), "{stamp}");
        }
    }

    #[test]
    fn every_day_of_three_centuries_comes_back() {
        for day in 0..110_000 {
            let micros = day * MICROS_PER_DAY + 86_399_000_007;
            assert_eq!(parse(&format(micros)), Some(micros), "day {day}");
        }
    }

    #[test]
    fn what_is_no_stamp_is_refused() {
        for text in
            ["", "2026-11-29T12:00:00.123456", "2026-13-29T12:00:00.123456Z", "2026-11-29 12:00:00.123456Z"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
