//! `[Timer]`, systemd.timer(5).

use super::{Setting, Slot};
use crate::sections::TimerTrigger;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "OnActiveSec",
        Slot::Triggers(TimerTrigger::Active, true),
        "Fires so long after the timer itself became active.",
    ),
    Setting::new(
        "OnBootSec",
        Slot::Triggers(TimerTrigger::Boot, true),
        "Fires so long after the kernel started.",
    ),
    Setting::new(
        "OnStartupSec",
        Slot::Triggers(TimerTrigger::Startup, true),
        "Fires so long after the manager started.",
    ),
    Setting::new(
        "OnUnitActiveSec",
        Slot::Triggers(TimerTrigger::UnitActive, false),
        "Fires so long after its unit was last activated, again and again.",
    ),
    Setting::new(
        "OnUnitInactiveSec",
        Slot::Triggers(TimerTrigger::UnitInactive, false),
        "Fires so long after its unit last ended, again and again.",
    ),
    Setting::new("OnCalendar", Slot::Calendars, "Fires at these times, as systemd.time(7) writes them."),
    Setting::new("Cron", Slot::Crons, "Fires at these times, as crontab(5) writes them."),
    Setting::new(
        "Unit",
        Slot::UnitName(|d| &mut d.timer.unit),
        "What the timer starts; default: the service of the same name.",
    ),
    Setting::new(
        "Persistent",
        Slot::Bool(|d| &mut d.timer.persistent),
        "A calendar time missed while the machine was off is made up for, once; default no.",
    ),
    Setting::typed(
        "AccuracySec",
        Slot::Span(|d| &mut d.timer.accuracy),
        "How much later it may fire so that several fire together; default 1 min.",
        TIMERS,
    ),
    Setting::typed(
        "RandomizedDelaySec",
        Slot::Span(|d| &mut d.timer.randomized_delay),
        "At most so much is added to each time, by chance; default 0.",
        TIMERS,
    ),
    Setting::typed(
        "FixedRandomDelay",
        Slot::Bool(|d| &mut d.timer.fixed_random_delay),
        "The same addition each time; default no.",
        TIMERS,
    ),
    Setting::typed(
        "RemainAfterElapse",
        Slot::Bool(|d| &mut d.timer.remain_after_elapse),
        "It stays active after its last time; default yes.",
        TIMERS,
    ),
    Setting::typed(
        "OnClockChange",
        Slot::Bool(|d| &mut d.timer.on_clock_change),
        "It fires when the clock is set; default no.",
        TIMERS,
    ),
    Setting::typed(
        "OnTimezoneChange",
        Slot::Bool(|d| &mut d.timer.on_timezone_change),
        "It fires when the zone of the machine is set; default no.",
        TIMERS,
    ),
    Setting::typed(
        "WakeSystem",
        Slot::Bool(|d| &mut d.timer.wake_system),
        "It wakes a machine that is suspended; default no.",
        TIMERS,
    ),
];

/// Where what is only checked here comes to have its effect.
const TIMERS: &str = "timers apply it in a later version";
