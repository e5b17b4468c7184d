//! From civil times, which people write, to instants, which timers need: what happens when clocks are changed.
//!
//! - A time of day that a change to summer time skips comes at the first instant after the gap, so that a daily job
//!   is never lost.
//! - A time of day that a change back shows twice comes once, at the first.
//! - An expression that matches in every hour of the day follows elapsed time: it skips what does not exist and
//!   comes in both passes of what is shown twice.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::time::Realtime;

/// The resolution of all this: one microsecond.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// A set of civil times.
pub(crate) trait Pattern {
    /// The first match at or after a civil time; `None` where there is no further one.
    fn next_civil(&self, from: DateTime) -> Option<DateTime>;

    /// Whether there is a match in every hour of a matching day, so that elapsed time counts.
    fn every_hour(&self) -> bool;
}

/// The first instant after `after` that matches: strictly later, always.
pub(crate) fn next_after(pattern: &dyn Pattern, zone: &TimeZone, after: Realtime) -> Option<Realtime> {
    let after = Timestamp::from_microsecond(after.0).ok()?;
    let next = if pattern.every_hour() {
        next_elapsed(pattern, zone, after)
    } else {
        next_fixed(pattern, zone, after)
    }?;
    (next > after).then(|| Realtime(next.as_microsecond()))
}

/// Fixed times of day. The instant of a civil time never falls as the civil time grows, so the first civil match
/// whose instant is late enough is the one.
fn next_fixed(pattern: &dyn Pattern, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = zone.to_datetime(after);
    loop {
        let civil = pattern.next_civil(from)?;
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                let instant = offset.to_timestamp(civil).ok()?;
                if instant > after {
                    return Some(instant);
                }
                from = civil.checked_add(TICK).ok()?;
            }
            AmbiguousOffset::Gap { before, after: behind } => {
                let instant = change(zone, behind.to_timestamp(civil).ok()?, behind)?;
                if instant > after {
                    return Some(instant);
                }
                from = behind.to_datetime(instant).max(before.to_datetime(instant));
            }
            AmbiguousOffset::Fold { before, after: behind } => {
                let instant = before.to_timestamp(civil).ok()?;
                if instant > after {
                    return Some(instant);
                }
                // All of the fold's times had their turn in the first pass.
                from = if change(zone, instant, behind)? <= after {
                    before.to_datetime(change(zone, instant, behind)?)
                } else {
                    civil.checked_add(TICK).ok()?
                };
            }
        }
    }
}

/// The first change of the clock after an instant that leads to this offset.
fn change(zone: &TimeZone, before: Timestamp, to: Offset) -> Option<Timestamp> {
    zone.following(before).find(|change| change.offset() == to).map(|change| change.timestamp())
}

/// Elapsed time: between two changes of the clock civil time and time are one.
fn next_elapsed(pattern: &dyn Pattern, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = after.checked_add(TICK).ok()?;
    loop {
        let offset = zone.to_offset(from);
        let civil = pattern.next_civil(offset.to_datetime(from))?;
        let instant = offset.to_timestamp(civil).ok()?;
        let change =
            zone.following(from).find(|change| change.offset() != offset).map(|change| change.timestamp());
        match change {
            Some(change) if change <= instant => from = change,
            _ => return Some(instant),
        }
    }
}
