//! Times as systemd prints them: points in the zone of the system, spans with their units.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// systemd's mean month of 30.44 days.
const MONTH: u64 = 2_629_800 * SECOND;
/// systemd's mean year of 365.25 days.
const YEAR: u64 = 31_557_600 * SECOND;

/// The time by which "ago" and "left" are reckoned, and the zone in which points are shown.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    now: u64,
    /// How long the machine runs, where that is fixed too.
    uptime: Option<u64>,
    zone: TimeZone,
}

impl Clock {
    /// The system's time and zone.
    pub(crate) fn of_system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        Self { now, uptime: None, zone: system_zone() }
    }

    /// The wall clock's time when the clock that counts from the start of the machine shows this; proc_uptime(5).
    pub(crate) fn since_boot(&self, micros: u64) -> Option<u64> {
        let uptime = self.uptime.or_else(|| {
            let text = std::fs::read_to_string("/proc/uptime").ok()?;
            let (seconds, hundredths) = text.split(' ').next()?.split_once('.')?;
            Some(seconds.parse::<u64>().ok()? * SECOND + hundredths.parse::<u64>().ok()? * (SECOND / 100))
        })?;
        Some(self.now.saturating_sub(uptime).saturating_add(micros))
    }

    /// A fixed time in UTC.
    #[cfg(test)]
    pub(crate) const fn fixed(now: u64) -> Self {
        Self { now, uptime: Some(SECOND), zone: TimeZone::UTC }
    }

    /// `Sun 2026-11-29 16:47:00 UTC`; microseconds since the epoch.
    pub(crate) fn point(&self, micros: u64) -> String {
        self.format(micros, "%a %Y-%m-%d %H:%M:%S %Z")
    }

    /// The same point in universal time, where the zone is another one.
    pub(crate) fn point_in_utc(&self, micros: u64) -> Option<String> {
        let here = self.point(micros);
        let there = Self { zone: TimeZone::UTC, ..*self }.point(micros);
        (here != there).then_some(there)
    }

    /// A point of time as people write it: `now`, `@SECONDS`, `2026-11-29 10:00:00` or a part of it, in the clock's zone;
    /// microseconds since the epoch.
    pub(crate) fn read(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        if text == "now" {
            return Some(self.now);
        }
        if let Some(seconds) = text.strip_prefix('@') {
            return seconds.parse::<u64>().ok()?.checked_mul(SECOND);
        }
        let (text, zone) = match text.strip_suffix(" UTC") {
            Some(text) => (text, &TimeZone::UTC),
            None => (text, &self.zone),
        };
        let date_time: jiff::civil::DateTime = text.parse().ok()?;
        let point = zone.to_ambiguous_timestamp(date_time).compatible().ok()?;
        u64::try_from(point.as_microsecond()).ok()
    }

    /// `Nov 29 16:47:00`, as lines of logs begin.
    pub(crate) fn short(&self, micros: u64) -> String {
        self.format(micros, "%b %d %H:%M:%S")
    }

    fn format(&self, micros: u64, pattern: &str) -> String {
        let point = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        point.map_or_else(
            // Beyond the year 9999; no clock says so, but an answer might.
            || format!("@{}", micros / SECOND),
            |point| point.to_zoned_datetime(self.zone.clone()).strftime(pattern).to_string(),
        )
    }

    /// `5s ago`, `2h 5min left`, `now`.
    pub(crate) fn relative(&self, micros: u64) -> String {
        match micros.abs_diff(self.now) {
            0 => "now".to_owned(),
            distance => {
                format!("{} {}", coarse(distance), if micros <= self.now { "ago" } else { "left" })
            }
        }
    }

    /// How long it was, without "ago".
    pub(crate) fn distance(&self, micros: u64) -> String {
        coarse(micros.abs_diff(self.now))
    }
}

/// The zone that `TZ` names, else the machine's, localtime(5): the file itself has the rules. To ask for the machine's zone
/// by its name would read the list of all zones, which takes longer than all else that agentctl does.
fn system_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    zone_of(Path::new("/etc/localtime"))
}

/// The zone whose rules a file has; without one universal time, as the C library does.
fn zone_of(localtime: &Path) -> TimeZone {
    let rules = std::fs::read(localtime).ok();
    rules.and_then(|rules| TimeZone::tzif("localtime", &rules).ok()).unwrap_or(TimeZone::UTC)
}

/// Two units at most, as systemd's "ago" has them.
fn coarse(span: u64) -> String {
    let pair = |large: u64, name: &str, small: u64, small_name: &str| {
        let (many, rest) = (span / large, span % large / small);
        let plural = |count: u64, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        format!("{} {}", plural(many, name), plural(rest, small_name))
    };
    match span {
        YEAR.. => pair(YEAR, "year", MONTH, "month"),
        MONTH.. => pair(MONTH, "month", DAY, "day"),
        WEEK.. => pair(WEEK, "week", DAY, "day"),
        _ if span >= 2 * DAY => format!("{} days", span / DAY),
        _ if span >= 25 * HOUR => format!("1 day {}h", (span - DAY) / HOUR),
        _ if span >= 6 * HOUR => format!("{}h", span / HOUR),
        HOUR.. => format!("{}h {}min", span / HOUR, span % HOUR / MINUTE),
        _ if span >= 5 * MINUTE => format!("{}min", span / MINUTE),
        MINUTE.. => format!("{}min {}s", span / MINUTE, span % MINUTE / SECOND),
        SECOND.. => format!("{}s", span / SECOND),
        MILLISECOND.. => format!("{}ms", span / MILLISECOND),
        _ => format!("{span}us"),
    }
}

/// A span in full: `1min 2.500s`, `250ms`, `0`; what is below `accuracy` is left out.
pub(crate) fn span(micros: u64, accuracy: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MILLISECOND, "ms")];
    let mut rest = micros - micros % accuracy.max(1);
    if rest == 0 {
        return "0".to_owned();
    }
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        let (count, below) = (rest / unit, rest % unit);
        if count == 0 {
            continue;
        }
        rest = below;
        // Below a minute the rest becomes decimals, as in "2.5s".
        if unit <= SECOND && below > 0 {
            let digits = unit.ilog10() as usize;
            let decimals = format!("{below:0digits$}");
            parts.push(format!("{count}.{}{name}", decimals.trim_end_matches('0')));
            rest = 0;
        } else {
            parts.push(format!("{count}{name}"));
        }
    }
    if rest > 0 {
        parts.push(format!("{rest}us"));
    }
    parts.join(" ")
}

/// A span down to the millisecond.
pub(crate) fn span_ms(micros: u64) -> String {
    span(micros, MILLISECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun 2026-11-29 16:47:00 UTC.
    const NOW: u64 = 1_795_970_820_000_000;

    #[test]
    fn points_are_read_in_the_forms_that_people_write() {
        let clock = Clock::fixed(NOW);
        for (text, micros) in [
            ("now", Some(NOW)),
            ("@12", Some(12_000_000)),
            ("2026-11-29 16:47:00", Some(NOW)),
            ("2026-11-29 16:47", Some(NOW)),
            ("2026-11-29 16:47:00 UTC", Some(NOW)),
            ("2026-11-29", Some(NOW - (16 * 60 + 47) * MINUTE)),
            ("soon", None),
            ("@-1", None),
        ] {
            assert_eq!(clock.read(text), micros, "{text}");
        }
    }

    #[test]
    fn points_are_printed_in_systemds_form() {
        let clock = Clock::fixed(NOW);
        assert_eq!(clock.point(NOW), "Sun 2026-11-29 16:47:00 UTC");
        assert_eq!(clock.short(NOW), "Nov 29 16:47:00");
        assert_eq!(clock.point(u64::MAX), "@18446744073709");
    }

    #[test]
    fn the_zone_of_the_system_counts_with_its_summer_time() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let clock = Clock { zone, ..Clock::fixed(NOW) };
        assert_eq!(clock.point(NOW), "Sun 2026-11-29 17:47:00 CET");
        assert_eq!(clock.point(NOW - 120 * DAY), "Sat 2026-08-01 18:47:00 CEST");
    }

    #[test]
    fn a_zone_is_read_from_its_file_and_named_by_its_rules() {
        // The shortest file of tzfile(5): one type of local time, six hours east, named XYZ, and no rule for later.
        let mut rules = b"TZif\0".to_vec();
        rules.extend([0; 15]);
        rules.extend([0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat());
        rules.extend(21_600_u32.to_be_bytes());
        rules.extend(b"\0\0XYZ\0");
        let path = std::env::temp_dir().join(format!("agentctl-localtime-{}", std::process::id()));
        std::fs::write(&path, rules).unwrap();
        let clock = Clock { zone: zone_of(&path), ..Clock::fixed(NOW) };
        std::fs::remove_file(&path).unwrap();
        assert_eq!(clock.point(NOW), "Sun 2026-11-29 22:47:00 XYZ");
        assert_eq!(zone_of(&path), TimeZone::UTC);
    }

    #[test]
    fn distances_have_two_units_at_most() {
        let clock = Clock::fixed(NOW);
        for (distance, text) in [
            (1, "1us ago"),
            (999 * MILLISECOND, "999ms ago"),
            (5 * SECOND, "5s ago"),
            (90 * SECOND, "1min 30s ago"),
            (6 * MINUTE + SECOND, "6min ago"),
            (2 * HOUR + 5 * MINUTE, "2h 5min ago"),
            (7 * HOUR + 5 * MINUTE, "7h ago"),
            (24 * HOUR, "24h ago"),
            (26 * HOUR, "1 day 2h ago"),
            (3 * DAY, "3 days ago"),
            (8 * DAY, "1 week 1 day ago"),
            (2 * MONTH + DAY, "2 months 1 day ago"),
            (WEEK, "1 week 0 days ago"),
            (YEAR, "1 year 0 months ago"),
        ] {
            assert_eq!(clock.relative(NOW - distance), text);
        }
        assert_eq!(clock.relative(NOW), "now");
        assert_eq!(clock.relative(NOW + 61 * SECOND), "1min 1s left");
    }

    #[test]
    fn spans_are_printed_as_systemd_does() {
        for (micros, accuracy, text) in [
            (0, 1, "0"),
            (999, 1_000, "0"),
            (1, 1, "1us"),
            (1_500, 1, "1.5ms"),
            (12_345, 1_000, "12ms"),
            (1_234_567, 1_000, "1.234s"),
            (100_000, 1, "100ms"),
            (62_500_000, 1_000, "1min 2.5s"),
            (60_000_000, 1, "1min"),
            (60_250_000, 1, "1min 250ms"),
            (90_061_000_000, 1, "1d 1h 1min 1s"),
            (2_050_000, 1, "2.05s"),
        ] {
            assert_eq!(span(micros, accuracy), text);
        }
    }
}
