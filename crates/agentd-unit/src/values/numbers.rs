//! Numbers that have a form or a range of their own.

use super::Refused;

/// File mode bits in octal, `0022` or `750`.
///
/// # Errors
/// Any other digit, and bits that are no mode.
pub fn mode(text: &str) -> Result<u32, Refused> {
    const HELP: &str = "write up to four octal digits in quotes, as in \"0750\"";
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| digits && *bits <= 0o7777);
    bits.ok_or_else(|| Refused::of(text, "is no file mode", HELP))
}

/// A whole number between two bounds.
///
/// # Errors
/// Any other text, with the bounds.
pub fn between(text: &str, low: i32, high: i32) -> Result<i32, Refused> {
    let number = text.trim().parse().ok().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| Refused::of(text, &format!("is no whole number from {low} to {high}"), "write one"))
}

/// The highest number that a processor may have here: the kernel's largest NR_CPUS.
const CPU_MAX: u32 = 8191;

/// Numbers of processors and ranges of them, `0 2-3` or `0,2-3`: sorted, each once.
///
/// # Errors
/// Any other text, a range that goes down, and a number above 8191.
pub fn processors(text: &str) -> Result<Vec<u32>, Refused> {
    const HELP: &str = "write numbers and ranges, as in \"0 2-3\"";
    let mut found = Vec::new();
    for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number <= CPU_MAX);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => found.extend(first..=last),
            _ => return Err(Refused::of(word, "names no processors", HELP)),
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The secure bits and their locks by name, capabilities(7), at the kernel's positions.
const SECURE_BITS: [(&str, u32); 6] = [
    ("noroot", 1),
    ("noroot-locked", 1 << 1),
    ("no-setuid-fixup", 1 << 2),
    ("no-setuid-fixup-locked", 1 << 3),
    ("keep-caps", 1 << 4),
    ("keep-caps-locked", 1 << 5),
];

/// One secure bit.
///
/// # Errors
/// Any other word.
pub fn secure_bit(text: &str) -> Result<u32, Refused> {
    let known = SECURE_BITS.iter().find(|(name, _)| *name == text);
    known.map(|(_, bit)| *bit).ok_or_else(|| {
        let near = crate::diagnostic::nearest(text, SECURE_BITS.map(|(name, _)| name));
        let help = near.map_or("capabilities(7) lists them".into(), |near| format!("did you mean '{near}'?"));
        Refused::of(text, "is no secure bit", &help)
    })
}

/// A span of time in nanoseconds: a number alone counts them, and so does one with `ns` or `nsec`; all else is as elsewhere.
///
/// # Errors
/// Any other text, and a span without an end.
pub fn nanoseconds(text: &str) -> Result<u64, Refused> {
    let number = text.trim();
    let number = number.strip_suffix("nsec").or_else(|| number.strip_suffix("ns")).unwrap_or(number);
    if let Ok(count) = number.trim_end().parse() {
        return Ok(count);
    }
    let span = super::span::parse(text)?;
    let count = span.and_then(|span| u64::try_from(span.as_nanos()).ok());
    count.ok_or_else(|| Refused::of(text, "does not end", "write for example \"50us\""))
}

/// The levels of syslog(3) by name, the most important first.
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// The facilities of syslog(3) by name, with their numbers.
const FACILITIES: [(&str, u8); 20] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// A facility of syslog, by name.
///
/// # Errors
/// Any other text.
pub fn log_facility(text: &str) -> Result<u8, Refused> {
    FACILITIES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number).ok_or_else(|| {
        let near = crate::diagnostic::nearest(text, FACILITIES.map(|(name, _)| name));
        let help = near.map_or("syslog(3) lists them".to_owned(), |near| format!("did you mean '{near}'?"));
        Refused::of(text, "is no facility of syslog", &help)
    })
}

/// A level of the log, by name or number.
///
/// # Errors
/// Any other text.
pub fn log_level(text: &str) -> Result<u8, Refused> {
    let by_name = LEVELS.iter().position(|name| *name == text);
    let number = by_name.or_else(|| text.parse().ok().filter(|number| *number < LEVELS.len()));
    number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| {
        Refused::of(text, "is no level of the log", &format!("the levels are {}", LEVELS.join(", ")))
    })
}
