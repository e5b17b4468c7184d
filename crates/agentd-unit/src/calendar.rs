//! Calendar expressions, systemd.time(7) "CALENDAR EVENTS".

/// A parsed `OnCalendar` expression with its time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarSpec {}
