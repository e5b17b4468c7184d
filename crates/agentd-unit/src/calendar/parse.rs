//! Reading calendar expressions, by systemd's grammar.

use super::component::{Components, Part};
use super::{CalendarSpec, SECOND, WEEKDAYS, YEARS, Zone};
use crate::values::Refused;
use crate::zone::LocalZone;

const HELP: &str = "write for example \"Mon..Fri *-*-* 08:00\", \"daily\" or \"*:0/15\"; see systemd.time(7)";

/// The longest expression, in bytes. A list of every minute of a day has 3 KiB.
const LENGTH_MAX: usize = 16 * 1024;

/// The whole-expression words.
const WORDS: [(&str, &str); 13] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("biannually", "*-01,07-01 00:00:00"),
    ("bi-annually", "*-01,07-01 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
    ("anually", "*-01-01 00:00:00"),
];

pub(super) fn parse(text: &str, local: &LocalZone) -> Result<CalendarSpec, Refused> {
    let whole = text.trim();
    if whole.is_empty() {
        return Err(Refused::with_help("a calendar expression is missing", HELP));
    }
    if whole.len() > LENGTH_MAX {
        return Err(Refused::of(text, "is longer than 16 KiB", "split it over several OnCalendar"));
    }
    let (rest, zone) = zone_suffix(whole, local)?;
    let word = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(rest));
    let mut reader = Reader { whole: text, rest: word.map_or(rest, |(_, expression)| expression) };
    if let Some(epoch) = reader.rest.strip_prefix('@') {
        return reader.epoch(epoch);
    }
    let weekdays = reader.weekdays()?;
    let (year, month, day, from_month_end, dated) = reader.date()?;
    if weekdays.is_none() && !dated && reader.rest.is_empty() {
        return Err(reader.wrong());
    }
    let (hour, minute, second) = reader.time()?;
    let weekdays = weekdays.unwrap_or(0x7f);
    Ok(CalendarSpec { weekdays, year, month, day, from_month_end, hour, minute, second, zone })
}

/// Takes a time zone off the end: `UTC`, or the name of a zone. Other last words belong to the expression.
fn zone_suffix<'t>(text: &'t str, local: &LocalZone) -> Result<(&'t str, Zone), Refused> {
    let Some((before, last)) = text.rsplit_once(' ') else {
        return Ok((text, Zone::Local(local.0.clone())));
    };
    if last.eq_ignore_ascii_case("UTC") {
        return Ok((before.trim_end(), Zone::Named("UTC".to_owned(), jiff::tz::TimeZone::UTC)));
    }
    if last.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let zone = LocalZone::named(last)?;
        return Ok((before.trim_end(), Zone::Named(last.to_owned(), zone.0)));
    }
    Ok((text, Zone::Local(local.0.clone())))
}

type Date = (Components, Components, Components, bool, bool);

struct Reader<'t> {
    whole: &'t str,
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn wrong(&self) -> Refused {
        match self.rest {
            "" => Refused::of(self.whole, "is no calendar expression", HELP),
            rest => Refused::with_help(
                format!(
                    "{} is no calendar expression from {} on",
                    crate::diagnostic::quote(self.whole),
                    crate::diagnostic::quote(rest)
                ),
                HELP,
            ),
        }
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `@seconds`: one instant, in UTC.
    fn epoch(&self, seconds: &str) -> Result<CalendarSpec, Refused> {
        let instant = seconds.parse::<i64>().ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
        let civil = instant
            .map(|instant| jiff::tz::TimeZone::UTC.to_datetime(instant))
            .ok_or_else(|| self.wrong())?;
        let year = u64::try_from(civil.year()).unwrap_or(0);
        if !(YEARS.0..=YEARS.1).contains(&year) {
            return Err(Refused::of(self.whole, "is not between 1970 and 2199", HELP));
        }
        let only = |value: i8| Components::only(value.unsigned_abs().into());
        Ok(CalendarSpec {
            weekdays: 0x7f,
            year: Components::only(year),
            month: only(civil.month()),
            day: only(civil.day()),
            from_month_end: false,
            hour: only(civil.hour()),
            minute: only(civil.minute()),
            second: Components::only(u64::from(civil.second().unsigned_abs()) * SECOND),
            zone: Zone::Named("UTC".to_owned(), jiff::tz::TimeZone::UTC),
        })
    }

    /// `Mon,Wed..Fri`, if the expression starts with weekdays.
    fn weekdays(&mut self) -> Result<Option<u8>, Refused> {
        if !self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let mut bits = 0;
        loop {
            let first = self.weekday()?;
            let last = if self.take("..") || self.take("-") { self.weekday()? } else { first };
            if last < first {
                let help = "a range of weekdays runs from Mon to Sun; write two with a comma between";
                return Err(Refused::of(self.whole, "has a range of weekdays that runs backwards", help));
            }
            (first..=last).for_each(|day| bits |= 1 << day);
            // A comma that nothing follows is systemd's too.
            if !self.take(",") || self.rest.is_empty() || self.rest.starts_with(' ') {
                break;
            }
        }
        if !self.rest.is_empty() && !self.rest.starts_with(' ') {
            return Err(self.wrong());
        }
        self.rest = self.rest.trim_start_matches(' ');
        Ok(Some(bits))
    }

    fn weekday(&mut self) -> Result<usize, Refused> {
        const LONG: [&str; 7] =
            ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let is = |names: [&str; 7]| names.iter().position(|name| name.eq_ignore_ascii_case(word));
        let Some(day) = is(WEEKDAYS).or_else(|| is(LONG)) else {
            let near = crate::diagnostic::nearest(word, WORDS.iter().map(|(word, _)| *word));
            let help = near.map_or(HELP.to_owned(), |near| format!("did you mean '{near}'?"));
            return Err(Refused::with_help(
                format!(
                    "{} has no weekday's name in {}",
                    crate::diagnostic::quote(self.whole),
                    crate::diagnostic::quote(word)
                ),
                help,
            ));
        };
        self.rest = &self.rest[end..];
        Ok(day)
    }

    /// `YYYY-MM-DD` or `MM-DD`, with `~` for days from the month's end; nothing, if a time stands there.
    fn date(&mut self) -> Result<Date, Refused> {
        let any = Components::default;
        let before = self.rest;
        if self.rest.is_empty() {
            return Ok((any(), any(), any(), false, false));
        }
        let first = self.chain(1)?;
        if self.rest.is_empty() || self.rest.starts_with(':') {
            self.rest = before;
            return Ok((any(), any(), any(), false, false));
        }
        let early_end = self.separator()?;
        let second = self.chain(1)?;
        if self.rest.is_empty() || self.rest.starts_with(' ') {
            self.rest = self.rest.trim_start_matches(' ');
            let month = self.field(first, 1, 12, false)?;
            return Ok((any(), month, self.field(second, 1, 31, early_end)?, early_end, true));
        }
        if early_end {
            return Err(self.wrong());
        }
        let month_end = self.separator()?;
        let third = self.chain(1)?;
        if !self.rest.is_empty() && !self.rest.starts_with(' ') {
            return Err(self.wrong());
        }
        self.rest = self.rest.trim_start_matches(' ');
        let year = self.field(full_years(first), YEARS.0, YEARS.1, false)?;
        let month = self.field(second, 1, 12, false)?;
        Ok((year, month, self.field(third, 1, 31, month_end)?, month_end, true))
    }

    /// `-`, or `~` for days that count from the month's end.
    fn separator(&mut self) -> Result<bool, Refused> {
        if self.take("~") {
            Ok(true)
        } else if self.take("-") {
            Ok(false)
        } else {
            Err(self.wrong())
        }
    }

    /// `HH:MM` or `HH:MM:SS.frac`; nothing is midnight.
    fn time(&mut self) -> Result<(Components, Components, Components), Refused> {
        if self.rest.is_empty() {
            return Ok((Components::only(0), Components::only(0), Components::only(0)));
        }
        let hour = self.chain(1)?;
        if !self.take(":") {
            return Err(self.wrong());
        }
        let minute = self.chain(1)?;
        let second =
            if self.take(":") { self.chain(SECOND)? } else { vec![Part { start: 0, stop: None, step: 0 }] };
        if !self.rest.is_empty() {
            return Err(self.wrong());
        }
        let hour = self.field(hour, 0, 23, false)?;
        let minute = self.field(minute, 0, 59, false)?;
        Ok((hour, minute, self.field(second, 0, 60 * SECOND - 1, false)?))
    }

    /// A list of parts; empty for `*`. `unit` is one step: microseconds for seconds, which may have decimals.
    fn chain(&mut self, unit: u64) -> Result<Vec<Part>, Refused> {
        if self.take("*") {
            if self.rest.starts_with('/') {
                let help = "write the first value before the step, as in *:0/5";
                return Err(Refused::of(self.whole, "has a step behind *", help));
            }
            let every = Part { start: 0, stop: None, step: unit };
            return Ok(if unit > 1 { vec![every] } else { Vec::new() });
        }
        let mut parts = Vec::new();
        loop {
            let start = self.number(unit)?;
            let stop = if self.take("..") { Some(self.number(unit)?) } else { None };
            let mut step = if stop.is_some() { unit } else { 0 };
            if self.take("/") {
                step = self.number(unit)?;
                if step == 0 {
                    return Err(Refused::of(self.whole, "has a step of zero", "write a step of 1 or more"));
                }
            }
            parts.push(Part { start, stop, step });
            if !self.take(",") {
                return Ok(parts);
            }
        }
    }

    /// A decimal number; with decimals, rounded to a microsecond, where it is a second.
    fn number(&mut self, unit: u64) -> Result<u64, Refused> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let whole: u64 = self.rest[..end].parse().map_err(|_| self.wrong())?;
        self.rest = &self.rest[end..];
        let mut value = whole.checked_mul(unit).ok_or_else(|| self.wrong())?;
        let decimals =
            self.rest.strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(decimals) = decimals.filter(|_| unit > 1) {
            let end = decimals.find(|c: char| !c.is_ascii_digit()).unwrap_or(decimals.len());
            let mut worth = unit;
            for digit in decimals[..end].bytes().take(6) {
                worth /= 10;
                value = value.saturating_add(u64::from(digit - b'0') * worth);
            }
            let round_up = decimals.as_bytes()[..end].get(6).is_some_and(|digit| *digit >= b'5');
            value = value.saturating_add(u64::from(round_up));
            self.rest = &decimals[end..];
        }
        Ok(value)
    }

    /// Checks the parts of a field against its bounds, as systemd does: a step that has no end must be able to happen. One
    /// that leads beyond the end of its range leaves the first value alone.
    fn field(&self, parts: Vec<Part>, from: u64, to: u64, from_end: bool) -> Result<Components, Refused> {
        // The last three days that a month may have are not counted from its end: not every month has them.
        let to = if from_end { to - 3 } else { to };
        for part in &parts {
            let inside = |value: u64| (from..=to).contains(&value);
            let range = part.stop.is_none_or(|stop| inside(stop) && part.start <= stop);
            if !inside(part.start) || !range {
                return Err(Refused::of(self.whole, "has a number beyond what its place can hold", HELP));
            }
            let second = part.start.saturating_add(part.step);
            let happens = match part.stop {
                Some(_) => true,
                None if from_end => part.start >= from.saturating_add(part.step),
                None => second <= to,
            };
            if !happens {
                return Err(Refused::of(self.whole, "has a step that never comes to its second value", HELP));
            }
        }
        Ok(Components::new(parts))
    }
}

/// Two-digit years are of 1970 to 2069, as in systemd.
fn full_years(mut parts: Vec<Part>) -> Vec<Part> {
    let full = |year: u64| match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    for part in &mut parts {
        part.start = full(part.start);
        part.stop = part.stop.map(full);
    }
    parts
}
