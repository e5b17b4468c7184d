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
];
