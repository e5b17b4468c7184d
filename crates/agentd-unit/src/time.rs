//! Points on the wall clock, as calendars need them.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on CLOCK_REALTIME: microseconds since 1970-01-01T00:00:00Z, negative before it.
///
/// Only calendars and displays use it; every duration is measured on a clock that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Realtime(pub i64);

impl Realtime {
    /// The microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl Add<Duration> for Realtime {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl Sub for Realtime {
    type Output = Duration;

    /// How long after `earlier` this is; zero if it is not after it.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
