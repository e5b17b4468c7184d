//! Cron expressions, crontab(5): five fields in the machine's time zone, or one of the `@` words.
//!
//! Day of month and day of week are joined as POSIX has it: if both are restricted, either is enough. A field that
//! starts with `*` (also `*/2`) does not restrict, as in Vixie cron; then both must match. (`OnCalendar` always wants
//! both.)

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::moment::{self, Pattern};
use crate::time::Realtime;
use crate::values::{Refused, span};
use crate::zone::LocalZone;

/// The last year in which expressions match.
const LAST_YEAR: i16 = 2199;
/// The shortest `@every`.
const EVERY_MIN: Duration = Duration::from_secs(1);

const HELP: &str = "write \"minute hour day month weekday\", as in \"30 2 * * 1-5\", or @daily";
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The `@` words with their five fields.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A parsed `Cron` expression.
#[derive(Debug, Clone, PartialEq)]
pub struct CronSpec {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// `@every`: so long after the time that is asked about.
    Every(Duration),
    Fields(Box<Fields>, TimeZone),
}

/// Five sets of numbers, bit n for number n.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both day fields are restricted, so that either is enough.
    either_day: bool,
}

impl CronSpec {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, and a way to write it.
    pub fn parse(text: &str, local: &LocalZone) -> Result<Self, Refused> {
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        let kind = match lower.split_ascii_whitespace().next() {
            None => return Err(Refused::with_help("a cron expression is missing", HELP)),
            Some("@every") => Kind::Every(every(text, trimmed[6..].trim())?),
            Some("@reboot") => {
                let help = "write OnBootSec = 0 or OnStartupSec = 0";
                return Err(Refused::of(text, "has no time in it", help));
            }
            Some(word) if word.starts_with('@') => {
                let fields = WORDS.iter().find(|(known, _)| *known == lower).map(|(_, fields)| fields);
                let Some(fields) = fields else {
                    let near = crate::diagnostic::nearest(&lower, WORDS.iter().map(|(word, _)| *word));
                    let help = near.map_or(HELP.to_owned(), |near| format!("did you mean {near}?"));
                    return Err(Refused::of(text, "is no word of cron", &help));
                };
                Kind::Fields(Box::new(Fields::parse(text, fields)?), local.0.clone())
            }
            Some(word) if word.starts_with("tz=") || word.starts_with("cron_tz=") => {
                let help = "write OnCalendar with the zone at its end, as in \"*-*-* 02:30 Europe/Paris\"";
                return Err(Refused::of(text, "names a time zone, which Cron does not take", help));
            }
            Some(_) => Kind::Fields(Box::new(Fields::parse(text, &lower)?), local.0.clone()),
        };
        Ok(Self { text: trimmed.split_ascii_whitespace().collect::<Vec<_>>().join(" "), kind })
    }

    /// The first match after `after`, by the policy for clock changes of `OnCalendar`; for `@every` so long after it.
    #[must_use]
    pub fn next_after(&self, after: Realtime) -> Option<Realtime> {
        match &self.kind {
            Kind::Every(span) => Some(after + *span).filter(|next| *next > after),
            Kind::Fields(fields, zone) => moment::next_after(fields.as_ref(), zone, after),
        }
    }
}

impl fmt::Display for CronSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn every(text: &str, written: &str) -> Result<Duration, Refused> {
    let span = span::parse(written)?.ok_or_else(|| Refused::of(text, "never comes", "write @every 5min"))?;
    Ok(span.max(EVERY_MIN))
}

impl Fields {
    fn parse(text: &str, lower: &str) -> Result<Self, Refused> {
        let fields: Vec<&str> = lower.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let why = format!("has {} fields where cron has five", fields.len());
            let help = if fields.len() == 6 {
                "cron has no seconds; write OnCalendar = \"*:*:0/10\" for those"
            } else {
                HELP
            };
            return Err(Refused::of(text, &why, help));
        };
        let mut weekdays = field(text, weekday, 0, 7, &WEEKDAYS, 0)?;
        weekdays |= weekdays >> 7 & 1; // 7 is Sunday too.
        Ok(Self {
            minutes: field(text, minute, 0, 59, &[], 0)?,
            hours: field(text, hour, 0, 23, &[], 0)?,
            days: field(text, day, 1, 31, &[], 0)?,
            months: field(text, month, 1, 12, &MONTHS, 1)?,
            weekdays: weekdays & 0x7f,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        })
    }

    fn day_matches(&self, date: jiff::civil::Date) -> bool {
        let day = self.days >> date.day() & 1 == 1;
        let weekday = self.weekdays >> date.weekday().to_sunday_zero_offset() & 1 == 1;
        if self.either_day { day || weekday } else { day && weekday }
    }
}

/// One field: a list of `*`, numbers, names and ranges, each with an optional step.
fn field(
    text: &str,
    written: &str,
    from: u32,
    to: u32,
    names: &[&str],
    first_name: u32,
) -> Result<u64, Refused> {
    let mut bits = 0;
    for part in written.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(text, step, 1, to, &[], 0)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (from, to),
            Some((first, last)) => {
                let first = number(text, first, from, to, names, first_name)?;
                let last = match number(text, last, from, to, names, first_name)? {
                    0 if to == 7 && first > 0 => 7, // fri-sun
                    last => last,
                };
                (first, last)
            }
            None => {
                let first = number(text, range, from, to, names, first_name)?;
                (first, if step.is_some() { to } else { first })
            }
        };
        if last < first {
            let why = format!("has the range {range}, which runs backwards");
            return Err(Refused::of(text, &why, "write two ranges with a comma between"));
        }
        for value in (first..=last).step_by(step.unwrap_or(1) as usize) {
            bits |= 1_u64 << value;
        }
    }
    Ok(bits)
}

fn number(
    text: &str,
    written: &str,
    from: u32,
    to: u32,
    names: &[&str],
    first_name: u32,
) -> Result<u32, Refused> {
    if let Some(index) = names.iter().position(|name| *name == written) {
        return Ok(first_name + u32::try_from(index).unwrap_or(0));
    }
    let digits = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
    let value = written.parse::<u32>().ok().filter(|value| digits && (from..=to).contains(value));
    value.ok_or_else(|| {
        let why =
            format!("has {} where a number from {from} to {to} is wanted", crate::diagnostic::quote(written));
        Refused::of(text, &why, HELP)
    })
}

impl Pattern for Fields {
    fn next_civil(&self, from: DateTime) -> Option<DateTime> {
        // Matches lie on whole minutes: begin at the next one unless this is one.
        let whole = from.with().second(0).subsec_nanosecond(0).build().ok()?;
        let from =
            if whole < from { whole.checked_add(jiff::SignedDuration::from_mins(1)).ok()? } else { whole };
        let mut date = from.date();
        let mut time = self.next_time(from.hour(), from.minute());
        while date.year() <= LAST_YEAR {
            if self.months >> date.month() & 1 == 0 {
                date = date.last_of_month().tomorrow().ok()?;
                time = self.next_time(0, 0);
                continue;
            }
            if let (true, Some((hour, minute))) = (self.day_matches(date), time) {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            time = self.next_time(0, 0);
        }
        None
    }

    fn every_hour(&self) -> bool {
        self.hours == (1 << 24) - 1
    }
}

impl Fields {
    /// The first matching time of day at or after one.
    fn next_time(&self, hour: i8, minute: i8) -> Option<(i8, i8)> {
        let minute_from = |from: i8| (from..60).find(|minute| self.minutes >> minute & 1 == 1);
        let hour_from = |from: i8| (from..24).find(|hour| self.hours >> hour & 1 == 1);
        let next = hour_from(hour)?;
        match minute_from(if next > hour { 0 } else { minute }) {
            Some(minute) => Some((next, minute)),
            None => Some((hour_from(next + 1)?, minute_from(0)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let local = LocalZone::named(zone).expect("a zone of the database");
        let spec = CronSpec::parse(expression, &local).expect("a cron expression");
        let civil: DateTime = from.parse().expect("a civil time");
        let mut now = Realtime(local.0.to_timestamp(civil).expect("an instant").as_microsecond());
        let mut found = Vec::new();
        while found.len() < count {
            let Some(next) = spec.next_after(now) else { break };
            assert!(next > now, "{expression}");
            let instant = jiff::Timestamp::from_microsecond(next.0).expect("an instant");
            found.push(instant.to_zoned_datetime(local.0.clone()).strftime("%m-%d %H:%M%:z").to_string());
            now = next;
        }
        found
    }

    #[test]
    fn expressions_match_as_crontab_says() {
        for (case, expression, from, expected) in [
            ("either day", "0 0 13 * 5", "2027-08-01T00:00", "08-06 08-13 08-20"),
            ("a star in the day wants both", "0 0 */2 * 1", "2027-08-01T00:00", "08-09 08-23 09-13"),
            ("weekday alone", "0 0 * * mon-wed/2", "2027-08-01T00:00", "08-02 08-04 08-09"),
            ("seven is Sunday", "0 0 * * 7", "2027-08-01T00:00", "08-08 08-15"),
            ("a range up to Sunday", "0 0 * * sat-sun", "2027-08-01T00:00", "08-07 08-08 08-14"),
            ("month's name", "0 0 1 feb,jul *", "2027-08-01T00:00", "02-01 07-01"),
            ("the end of a month", "0 0 31 * *", "2027-08-31T00:00", "10-31 12-31"),
            ("a leap day", "0 0 29 2 *", "2027-01-01T00:00", "02-29 02-29"),
            ("weekly", "@weekly", "2027-08-01T00:00", "08-08 08-15"),
        ] {
            let expected: Vec<String> = expected.split(' ').map(|day| format!("{day} 00:00+00:00")).collect();
            assert_eq!(series(expression, "UTC", from, expected.len()), expected, "{case}");
        }
    }

    #[test]
    fn steps_and_lists_of_minutes() {
        let found = series("0-20/10,58 8 * * *", "UTC", "2027-01-01T08:10:30", 4);
        assert_eq!(
            found,
            ["01-01 08:20+00:00", "01-01 08:58+00:00", "01-02 08:00+00:00", "01-02 08:10+00:00"]
        );
    }

    #[test]
    fn changes_of_the_clock_lose_no_job_and_double_none() {
        for (expression, zone, from, expected) in [
            (
                "30 2 * * *",
                "America/New_York",
                "2027-03-12T12:00",
                ["03-13 02:30-05:00", "03-14 03:00-04:00", "03-15 02:30-04:00"],
            ),
            (
                "30 1 * * *",
                "America/New_York",
                "2027-11-05T12:00",
                ["11-06 01:30-04:00", "11-07 01:30-04:00", "11-08 01:30-05:00"],
            ),
            (
                "15 2 * * *",
                "Australia/Lord_Howe",
                "2027-10-01T12:00",
                ["10-02 02:15+10:30", "10-03 02:30+11:00", "10-04 02:15+11:00"],
            ),
            (
                "0 * * * *",
                "America/New_York",
                "2027-11-07T00:30",
                ["11-07 01:00-04:00", "11-07 01:00-05:00", "11-07 02:00-05:00"],
            ),
        ] {
            assert_eq!(series(expression, zone, from, 3), expected, "{expression} {zone}");
        }
    }

    #[test]
    fn a_day_that_never_comes_has_no_next() {
        assert!(series("0 0 31 2 *", "UTC", "2027-01-01T00:00", 1).is_empty());
    }

    #[test]
    fn every_counts_from_the_time_asked_about_and_is_at_least_a_second() {
        for (expression, micros) in
            [("@every 5min", 300_000_000), ("@every 10ms", 1_000_000), ("@EVERY 1h 1s", 3_601_000_000)]
        {
            let spec = CronSpec::parse(expression, &LocalZone::utc()).expect(expression);
            assert_eq!(spec.next_after(Realtime(7)), Some(Realtime(7 + micros)), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_advice() {
        for (expression, advice) in [
            ("", "write \"minute hour"),
            ("* * * *", "write \"minute hour"),
            ("0 * * * * *", "cron has no seconds"),
            ("60 * * * *", "write"),
            ("* 24 * * *", "write"),
            ("* * 0 * *", "write"),
            ("* * * 13 *", "write"),
            ("* * * * 8", "write"),
            ("*/0 * * * *", "write"),
            ("5-1 * * * *", "write two ranges"),
            ("+5 * * * *", "write"),
            ("* * L * *", "write"),
            ("@dialy", "did you mean @daily?"),
            ("@reboot", "write OnBootSec = 0"),
            ("@every", "write for example 90"),
            ("@every -1s", "counts forward"),
            ("@every infinity", "write @every 5min"),
            ("CRON_TZ=UTC 0 0 * * *", "write OnCalendar with the zone"),
        ] {
            let refused = CronSpec::parse(expression, &LocalZone::utc()).expect_err(expression);
            assert!(
                refused.help.as_deref().unwrap_or_default().contains(advice),
                "{expression}: {refused:?}"
            );
        }
    }
}
