//! Sizes, percentages and the limits made of them, systemd.resource-control(5).

use super::Refused;
use crate::sections::{MemoryLimit, TasksLimit};

/// The suffixes of a size, each 1024 times the one before.
const SUFFIXES: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
const SIZE_HELP: &str = "write a number of bytes, or one with K, M, G or T, as in \"512M\"";

/// A number of bytes such as `512M` or `1.5G`: base 1024, as systemd counts memory.
///
/// # Errors
/// Text that is no size, a negative one, and one beyond 2^64 − 2 bytes.
pub fn size(text: &str) -> Result<u64, Refused> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(Refused::of(text, "is negative", SIZE_HELP));
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, suffix) = (&trimmed[..end], trimmed[end..].trim_start());
    let power = match suffix {
        "B" => 0,
        _ => {
            SUFFIXES.iter().position(|known| *known == suffix).ok_or_else(|| unknown_suffix(text, suffix))?
        }
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || decimals.contains('.') || (number.contains('.') && decimals.is_empty()) {
        return Err(Refused::of(text, "is no size", SIZE_HELP));
    }
    let unit = 1_u64 << (10 * power);
    let too_large = || Refused::of(text, "is too large", "write \"infinity\" for no bound");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let bytes = whole.checked_mul(unit).and_then(|bytes| bytes.checked_add(scaled(decimals, unit)));
    bytes.filter(|bytes| *bytes < u64::MAX).ok_or_else(too_large)
}

fn unknown_suffix(text: &str, suffix: &str) -> Refused {
    let letter: String = suffix.chars().take(1).map(|c| c.to_ascii_uppercase()).collect();
    let known = !letter.is_empty() && SUFFIXES.contains(&letter.as_str());
    if !text.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        Refused::of(text, "is no size", SIZE_HELP)
    } else if known && suffix.len() <= 3 {
        Refused::of(text, &format!("has the unknown unit '{suffix}'"), &format!("did you mean '{letter}'?"))
    } else {
        Refused::of(text, &format!("has the unknown unit '{suffix}'"), SIZE_HELP)
    }
}

/// The decimals of one unit, rounded down.
fn scaled(decimals: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u128, 1_u128);
    for digit in decimals.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(value * u128::from(unit) / scale).unwrap_or(0)
}

/// A percentage with up to two decimals, in hundredths of a percent: `50%` is 5000.
///
/// # Errors
/// Text without `%`, more decimals, and numbers beyond 42 million percent.
pub fn permyriad(text: &str) -> Result<u32, Refused> {
    const HELP: &str = "write for example \"50%\" or \"12.5%\"";
    let number = text.trim().strip_suffix('%');
    let number = number.ok_or_else(|| Refused::of(text, "is no percentage", HELP))?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let numeric = |s: &str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
    if number.starts_with('-') {
        return Err(Refused::of(text, "is negative", HELP));
    }
    if !numeric(whole) || !numeric(decimals) || decimals.len() > 2 {
        return Err(Refused::of(text, "is no percentage", HELP));
    }
    let hundredths = format!("{decimals:0<2}").parse::<u32>().ok();
    whole
        .parse::<u32>()
        .ok()
        .and_then(|whole| whole.checked_mul(100)?.checked_add(hundredths?))
        .ok_or_else(|| Refused::of(text, "is too large", HELP))
}

/// Hundredths of a percent as text, which [`permyriad`] reads.
pub(crate) fn percent(hundredths: u64) -> String {
    match hundredths % 100 {
        0 => format!("{}%", hundredths / 100),
        rest => format!("{}.{rest:02}%", hundredths / 100),
    }
}

/// A share of a whole: a percentage from above 0 to 100.
fn share(text: &str) -> Result<u32, Refused> {
    match permyriad(text)? {
        0 => Err(Refused::of(text, "leaves nothing", "write a share above 0%")),
        share if share > 10_000 => {
            Err(Refused::of(text, "is more than all there is", "write at most \"100%\""))
        }
        share => Ok(share),
    }
}

/// `MemoryMax`: bytes, a share of the machine's memory, or `infinity`.
///
/// # Errors
/// Everything else, and zero: no process can live in no memory.
pub fn memory(text: &str) -> Result<MemoryLimit, Refused> {
    match text.trim() {
        "infinity" => Ok(MemoryLimit::Infinity),
        trimmed if trimmed.ends_with('%') => share(trimmed).map(MemoryLimit::Permyriad),
        _ => match size(text)? {
            0 => Err(Refused::of(text, "leaves no memory at all", SIZE_HELP)),
            bytes => Ok(MemoryLimit::Bytes(bytes)),
        },
    }
}

/// `TasksMax`: a number of tasks, a share of the machine's limit, or `infinity`.
///
/// # Errors
/// Everything else, and zero.
pub fn tasks(text: &str) -> Result<TasksLimit, Refused> {
    match text.trim() {
        "infinity" => Ok(TasksLimit::Infinity),
        trimmed if trimmed.ends_with('%') => share(trimmed).map(TasksLimit::Permyriad),
        trimmed => match trimmed.parse::<u64>() {
            Ok(0) => Err(Refused::of(text, "leaves no task at all", "the main process counts as one")),
            Ok(count) if count < u64::MAX => Ok(TasksLimit::Count(count)),
            _ => Err(Refused::of(
                text,
                "is no number of tasks",
                "write for example 100, \"10%\" or \"infinity\"",
            )),
        },
    }
}

/// `CPUQuota`: hundredths of a percent of one CPU; above 100 % is more than one.
///
/// # Errors
/// Everything but a percentage above zero.
pub fn cpu_quota(text: &str) -> Result<u64, Refused> {
    match permyriad(text) {
        Ok(0) => Err(Refused::of(text, "leaves no processor time at all", "write a quota above 0%")),
        Ok(quota) => Ok(u64::from(quota)),
        Err(refused) if text.trim().bytes().all(|b| b.is_ascii_digit()) => {
            Err(Refused { help: Some(format!("did you mean \"{}%\"?", text.trim())), ..refused })
        }
        Err(refused) => Err(refused),
    }
}
