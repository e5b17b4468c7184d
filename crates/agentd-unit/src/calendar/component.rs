//! One field of a calendar expression: a list of values, ranges and steps.

use std::fmt::Write as _;

/// One part: `start`, `start..stop`, `start/step` or `start..stop/step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) start: u64,
    /// The last value; `None`: as far as the field goes, or for a part without a step `start` alone.
    pub(super) stop: Option<u64>,
    /// 0: `start` alone.
    pub(super) step: u64,
}

impl Part {
    /// The first of its values at or after `from`, none beyond `max`.
    fn next(self, from: u64, max: u64) -> Option<u64> {
        let last = self.stop.unwrap_or(max).min(max);
        let value = match from.checked_sub(self.start) {
            None | Some(0) => self.start,
            Some(_) if self.step == 0 => return None,
            Some(beyond) => self.start.checked_add(beyond.div_ceil(self.step).checked_mul(self.step)?)?,
        };
        (value <= last).then_some(value)
    }
}

/// A field: its parts, sorted, each once; none means any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Components {
    parts: Vec<Part>,
}

impl Components {
    /// A field of these parts. Equal ones are merged, and a range ends at the last value that it reaches.
    pub(super) fn new(mut parts: Vec<Part>) -> Self {
        for part in &mut parts {
            if let (Some(stop), true) = (part.stop, part.step > 0) {
                let last = stop - (stop - part.start) % part.step;
                part.stop = (last > part.start).then_some(last);
                part.step = if last > part.start { part.step } else { 0 };
            }
        }
        parts.sort_unstable();
        parts.dedup();
        Self { parts }
    }

    /// A field of one value.
    pub(super) fn only(value: u64) -> Self {
        Self { parts: vec![Part { start: value, stop: None, step: 0 }] }
    }

    /// The first value at or after `from`, none beyond `max`.
    pub(super) fn next(&self, from: u64, max: u64) -> Option<u64> {
        if self.parts.is_empty() {
            return (from <= max).then_some(from);
        }
        self.parts.iter().filter_map(|part| part.next(from, max)).min()
    }

    /// The same where values count from the end: 1 is the last day, and steps lead on to it.
    pub(super) fn next_from_end(&self, from: u64, last: u64) -> Option<u64> {
        if self.parts.is_empty() {
            return (from <= last).then_some(from);
        }
        let turned = self.parts.iter().filter_map(|part| {
            let day = |value: u64| (last + 1).checked_sub(value).filter(|day| *day > 0);
            match part.stop {
                Some(stop) => Some(Part { start: day(stop)?, stop: day(part.start), step: part.step }),
                None => Some(Part { start: day(part.start)?, ..*part }),
            }
        });
        turned.filter_map(|part| part.next(from, last)).min()
    }

    /// As systemd prints it. `unit` is what a whole step counts: microseconds for seconds, else 1.
    pub(super) fn display(&self, width: usize, unit: u64) -> String {
        let any_second = Part { start: 0, stop: None, step: unit };
        if self.parts.is_empty() || (unit > 1 && self.parts == [any_second]) {
            return "*".to_owned();
        }
        let mut text = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            number(&mut text, part.start, width, unit);
            if let Some(stop) = part.stop {
                text.push_str("..");
                number(&mut text, stop, width, unit);
            }
            if part.step > 0 && !(part.stop.is_some() && part.step == unit) {
                text.push('/');
                number(&mut text, part.step, 0, unit);
            }
        }
        text
    }
}

fn number(text: &mut String, value: u64, width: usize, unit: u64) {
    let fraction = value % unit;
    let written = write!(text, "{:0width$}", value / unit)
        .and_then(|()| if fraction == 0 { Ok(()) } else { write!(text, ".{fraction:06}") });
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}
