//! Calendar expressions, systemd.time(7) "CALENDAR EVENTS".
//!
//! # Invariants
//!
//! - [`CalendarSpec::next_after`] is strictly later than what it is given, or there is none up to the end of 2199.
//! - The printed form is normalised as `systemd-analyze calendar` prints it, and reads back as the same value.

mod component;
mod parse;

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::moment::{self, Pattern};
use crate::time::Realtime;
use crate::values::Refused;
use crate::zone::LocalZone;
use component::Components;

/// The years in which expressions can match, as in systemd.
const YEARS: (u64, u64) = (1970, 2199);

/// A second, in the unit of the seconds' component.
const SECOND: u64 = 1_000_000;

/// The weekdays in the order of their bits.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A parsed `OnCalendar` expression with its time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarSpec {
    /// Bit 0 is Monday; all seven: any day.
    weekdays: u8,
    year: Components,
    month: Components,
    day: Components,
    /// Whether days count from the end of the month.
    from_month_end: bool,
    hour: Components,
    minute: Components,
    /// In microseconds of the minute.
    second: Components,
    zone: Zone,
}

/// The zone an expression is in.
#[derive(Debug, Clone, PartialEq)]
enum Zone {
    /// The machine's.
    Local(TimeZone),
    /// One that was written, with its name.
    Named(String, TimeZone),
}

impl CalendarSpec {
    /// Reads an expression such as `Mon..Fri *-*-* 08:00`, `hourly` or `2027-01-01 12:00 Europe/Paris`.
    ///
    /// # Errors
    /// What is wrong with it, and a way to write it.
    pub fn parse(text: &str, local: &LocalZone) -> Result<Self, Refused> {
        parse::parse(text, local)
    }

    /// The first match after `after`. A time of day that a change of the clock skips comes right after the gap; one
    /// that is shown twice comes once, at the first; what matches in every hour follows elapsed time.
    #[must_use]
    pub fn next_after(&self, after: Realtime) -> Option<Realtime> {
        let (Zone::Local(zone) | Zone::Named(_, zone)) = &self.zone;
        moment::next_after(self, zone, after)
    }

    /// The first matching day at or after a day of a month, in that month.
    fn next_day(&self, year: i16, month: i8, from: u64) -> Option<u64> {
        let first = jiff::civil::Date::new(year, month, 1).ok()?;
        let last = first.days_in_month().unsigned_abs().into();
        let mut day = from;
        while let Some(next) =
            if self.from_month_end { self.day.next_from_end(day, last) } else { self.day.next(day, last) }
        {
            let weekday = (first.weekday().to_monday_zero_offset().unsigned_abs() as u64 + next - 1) % 7;
            if self.weekdays >> weekday & 1 == 1 {
                return Some(next);
            }
            day = next + 1;
        }
        None
    }

    /// The first matching time of day at or after one: hour, minute, microsecond.
    fn next_time(&self, hour: u64, minute: u64, micros: u64) -> Option<(u64, u64, u64)> {
        let next_hour = self.hour.next(hour, 23)?;
        let (minute, micros) = if next_hour > hour { (0, 0) } else { (minute, micros) };
        if let Some(next_minute) = self.minute.next(minute, 59) {
            let micros = if next_minute > minute { 0 } else { micros };
            if let Some(micros) = self.second.next(micros, 60 * SECOND - 1) {
                return Some((next_hour, next_minute, micros));
            }
            if let Some(next_minute) = self.minute.next(next_minute + 1, 59) {
                return Some((next_hour, next_minute, self.second.next(0, 60 * SECOND - 1)?));
            }
        }
        let next_hour = self.hour.next(next_hour + 1, 23)?;
        Some((next_hour, self.minute.next(0, 59)?, self.second.next(0, 60 * SECOND - 1)?))
    }
}

impl Pattern for CalendarSpec {
    fn next_civil(&self, from: DateTime) -> Option<DateTime> {
        let micros_of_minute = from.second().unsigned_abs() as u64 * SECOND + micros(from);
        let mut time = self.next_time(
            from.hour().unsigned_abs().into(),
            from.minute().unsigned_abs().into(),
            micros_of_minute,
        );
        let mut year = u64::try_from(from.year()).unwrap_or(0);
        let (mut month, mut day) =
            (u64::from(from.month().unsigned_abs()), u64::from(from.day().unsigned_abs()));
        if time.is_none() {
            day += 1; // Past the last time of this day.
        }
        loop {
            let next_year = self.year.next(year.max(YEARS.0), YEARS.1)?;
            if next_year > year {
                (month, day) = (1, 1);
                time = None;
            }
            year = next_year;
            let Some(next_month) = self.month.next(month, 12) else {
                (year, month, day, time) = (year + 1, 1, 1, None);
                continue;
            };
            if next_month > month {
                day = 1;
                time = None;
            }
            month = next_month;
            let (civil_year, civil_month) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?);
            match self.next_day(civil_year, civil_month, day) {
                Some(next_day) => {
                    let time = time.filter(|_| next_day == day).or_else(|| self.next_time(0, 0, 0))?;
                    return civil(civil_year, civil_month, next_day, time);
                }
                None => (month, day, time) = (month + 1, 1, None),
            }
        }
    }

    fn every_hour(&self) -> bool {
        (0..24).all(|hour| self.hour.next(hour, 23) == Some(hour))
    }
}

/// The microseconds of a time's second.
fn micros(time: DateTime) -> u64 {
    u64::from(time.subsec_nanosecond().unsigned_abs()) / 1000
}

fn civil(year: i16, month: i8, day: u64, (hour, minute, micros): (u64, u64, u64)) -> Option<DateTime> {
    let small = |number: u64| i8::try_from(number).ok();
    let nanos = i32::try_from(micros % SECOND * 1000).ok()?;
    DateTime::new(year, month, small(day)?, small(hour)?, small(minute)?, small(micros / SECOND)?, nanos).ok()
}

impl fmt::Display for CalendarSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weekdays != 0x7f {
            write!(f, "{} ", weekdays(self.weekdays))?;
        }
        let month_end = if self.from_month_end { '~' } else { '-' };
        let [year, month, day] =
            [(&self.year, 4), (&self.month, 2), (&self.day, 2)].map(|(c, w)| c.display(w, 1));
        write!(f, "{year}-{month}{month_end}{day} ")?;
        let [hour, minute] = [&self.hour, &self.minute].map(|c| c.display(2, 1));
        write!(f, "{hour}:{minute}:{}", self.second.display(2, SECOND))?;
        match &self.zone {
            Zone::Local(_) => Ok(()),
            Zone::Named(name, _) => write!(f, " {name}"),
        }
    }
}

/// `Mon..Wed,Sat`.
fn weekdays(bits: u8) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut day = 0;
    while day < 7 {
        let run = (day..7).take_while(|d| bits >> d & 1 == 1).count();
        match run {
            0 => {}
            1 => parts.push(WEEKDAYS[day].to_owned()),
            2 => parts.push(format!("{},{}", WEEKDAYS[day], WEEKDAYS[day + 1])),
            _ => parts.push(format!("{}..{}", WEEKDAYS[day], WEEKDAYS[day + run - 1])),
        }
        day += run.max(1);
    }
    parts.join(",")
}

#[cfg(test)]
mod tests;
