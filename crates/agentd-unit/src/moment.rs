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
        let (instant, next_from) = place(zone, civil, after)?;
        if instant > after {
            return Some(instant);
        }
        from = next_from;
    }
}

/// The instant of a civil time, and from which civil time on to look further if that is not late enough.
fn place(zone: &TimeZone, civil: DateTime, after: Timestamp) -> Option<(Timestamp, DateTime)> {
    let next = civil.checked_add(TICK).ok()?;
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => Some((offset.to_timestamp(civil).ok()?, next)),
        AmbiguousOffset::Gap { after: behind, .. } => {
            let end = change(zone, behind.to_timestamp(civil).ok()?, behind)?;
            Some((end, behind.to_datetime(end)))
        }
        AmbiguousOffset::Fold { before, after: behind } => {
            let first = before.to_timestamp(civil).ok()?;
            let change = change(zone, first, behind)?;
            // In the second pass all of the fold's times have had their turn.
            Some((first, if change <= after { before.to_datetime(change) } else { next }))
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
