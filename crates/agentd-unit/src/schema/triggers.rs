//! The triggers of a timer: several of one key add up.

use std::time::Duration;

use super::apply::{ApplyContext, resets};
use crate::assignment::Value;
use crate::calendar::CalendarSpec;
use crate::cron::CronSpec;
use crate::sections::{TimerSection, TimerTrigger};
use crate::values::{self, Refused};

/// One trigger or a list of them; they add up. An empty list resets all of the timer's triggers, as in systemd.
fn triggers(
    value: &Value<'_>,
    timer: &mut TimerSection,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<TimerTrigger, Refused>,
) {
    if resets(value) {
        timer.triggers.clear();
        return;
    }
    for part in value.parts() {
        timer.triggers.extend(cx.parse(part, wanted, &parser));
    }
}

/// A span that ends.
///
/// # Errors
/// What is no span, and `infinity`.
pub(super) fn finite_span(text: &str) -> Result<Duration, Refused> {
    values::span::parse(text)?.ok_or_else(|| Refused::of(text, "never ends", "write a span such as \"10s\""))
}

/// A span after which a timer fires.
pub(super) fn spans_of_timer(
    value: &Value<'_>,
    timer: &mut TimerSection,
    cx: &mut ApplyContext<'_>,
    trigger: fn(Duration) -> TimerTrigger,
    zero_is_fine: bool,
) {
    triggers(value, timer, cx, "a span of time", |text| match finite_span(text)? {
        span if span.is_zero() && !zero_is_fine => {
            Err(Refused::of(text, "would fire without a pause", "write a span above zero"))
        }
        span => Ok(trigger(span)),
    });
}

/// A calendar expression.
pub(super) fn calendars(value: &Value<'_>, timer: &mut TimerSection, cx: &mut ApplyContext<'_>) {
    let zone = cx.context.zone;
    triggers(value, timer, cx, "a calendar expression", |text| {
        CalendarSpec::parse(text, zone).map(TimerTrigger::Calendar)
    });
}

/// A cron expression.
pub(super) fn crons(value: &Value<'_>, timer: &mut TimerSection, cx: &mut ApplyContext<'_>) {
    let zone = cx.context.zone;
    triggers(value, timer, cx, "a cron expression", |text| {
        CronSpec::parse(text, zone).map(TimerTrigger::Cron)
    });
}
