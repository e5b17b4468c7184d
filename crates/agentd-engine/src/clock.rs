//! Points in time, as they are handed to the engine. Each deadline lives on one clock from end to end.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use agentd_unit::Realtime;

macro_rules! clock {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub Duration);

        impl Add<Duration> for $name {
            type Output = Self;

            fn add(self, span: Duration) -> Self {
                Self(self.0.saturating_add(span))
            }
        }

        impl Sub for $name {
            type Output = Duration;

            /// How long after `earlier` this is; zero if it is not after it.
            fn sub(self, earlier: Self) -> Duration {
                self.0.saturating_sub(earlier.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

clock!(
    /// A point on CLOCK_MONOTONIC, clock_gettime(2): stands still while the machine sleeps. Timeouts, back-off,
    /// watchdogs.
    Monotonic
);
clock!(
    /// A point on CLOCK_BOOTTIME, clock_gettime(2): goes on while the machine sleeps. Timer units' spans.
    Boottime
);

/// The three clocks, read together just before an event is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For spans in which the machine was awake.
    pub monotonic: Monotonic,
    /// For spans that count sleep.
    pub boottime: Boottime,
    /// For calendars and displays.
    pub realtime: Realtime,
}

/// When the next [`Event::Tick`](crate::Event::Tick) is due on each clock; `None`: nothing waits on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadlines {
    /// The earliest timeout.
    pub monotonic: Option<Monotonic>,
    /// The earliest span of a timer unit.
    pub boottime: Option<Boottime>,
    /// The earliest calendar time of a timer unit.
    pub realtime: Option<Realtime>,
}
