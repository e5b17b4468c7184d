//! Limits of resources, systemd.exec(5) `LimitCPU` and the like: one number for both, or `soft:hard`.

use super::{Refused, limit, span};
use crate::sections::{LimitedResource, ResourceLimit};

/// A limit in the unit of its resource.
///
/// # Errors
/// Text that is none of the resource, and a soft limit above the hard one.
pub fn parse(resource: LimitedResource, text: &str) -> Result<ResourceLimit, Refused> {
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    let (soft, hard) = (one(resource, soft.trim())?, one(resource, hard.trim())?);
    if soft > hard {
        return Err(Refused::of(text, "has its soft limit above the hard one", "write soft:hard"));
    }
    Ok(ResourceLimit { resource, soft, hard })
}

fn one(resource: LimitedResource, text: &str) -> Result<u64, Refused> {
    use LimitedResource as R;
    if text == "infinity" {
        return Ok(u64::MAX);
    }
    match resource {
        R::Cpu => time(text, 1_000_000),
        R::Rttime if text.bytes().all(|byte| byte.is_ascii_digit()) => count(text),
        R::Rttime => time(text, 1),
        R::Nice => nice(text),
        R::Fsize | R::Data | R::Stack | R::Core | R::Rss | R::As | R::Memlock | R::Msgqueue => {
            limit::size(text)
        }
        R::Nofile | R::Nproc | R::Locks | R::Sigpending | R::Rtprio => count(text),
    }
}

/// A span of time in units of so many microseconds, rounded up.
fn time(text: &str, unit: u128) -> Result<u64, Refused> {
    let span = span::parse(text)?;
    Ok(span.map_or(u64::MAX, |span| u64::try_from(span.as_micros().div_ceil(unit)).unwrap_or(u64::MAX)))
}

fn count(text: &str) -> Result<u64, Refused> {
    const HELP: &str = "write a whole number, soft:hard, or \"infinity\"";
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| Refused::of(text, "is no number", HELP))
}

/// `+5` and `-5` are nice values, of which the kernel counts 20 minus the value; a plain number is the kernel's.
fn nice(text: &str) -> Result<u64, Refused> {
    if text.starts_with(['+', '-']) {
        let value = super::numbers::between(text.trim_start_matches('+'), -20, 19)?;
        return Ok(u64::from((20 - value).unsigned_abs()));
    }
    count(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_counts_in_its_own_unit() {
        use LimitedResource as R;
        for (resource, text, soft, hard) in [
            (R::Nofile, "1024", 1024, 1024),
            (R::Nofile, "1024:infinity", 1024, u64::MAX),
            (R::Core, "1M:2G", 1 << 20, 2 << 30),
            (R::Cpu, "1500ms", 2, 2),
            (R::Cpu, "10", 10, 10),
            (R::Rttime, "200ms:1s", 200_000, 1_000_000),
            (R::Rttime, "500", 500, 500),
            (R::Nice, "-5", 25, 25),
            (R::Nice, "+5:30", 15, 30),
        ] {
            let limit = parse(resource, text).unwrap();
            assert_eq!((limit.soft, limit.hard), (soft, hard), "{resource:?} {text}");
        }
    }

    #[test]
    fn a_typo_is_refused() {
        use LimitedResource as R;
        for (resource, text) in
            [(R::Nofile, "ininity"), (R::Nofile, "-1"), (R::Nofile, "2:1"), (R::Core, "1X"), (R::Nice, "-21")]
        {
            assert!(parse(resource, text).is_err(), "{resource:?} {text}");
        }
    }
}
