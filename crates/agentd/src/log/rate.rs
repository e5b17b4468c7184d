//! How many lines a unit may say in a span of time; what is more is counted and said.

use std::time::{Duration, Instant};

/// `LogRateLimitIntervalSec=` and `LogRateLimitBurst=`, systemd.exec(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The span.
    pub interval: Duration,
    /// The lines that are let through in each span.
    pub burst: u32,
}

impl RateLimit {
    /// Whether it holds anything back: a span or a number of zero is no limit.
    pub(crate) fn bounds(&self) -> bool {
        self.interval > Duration::ZERO && self.burst > 0
    }
}

/// The count of one unit.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    /// When the present span began; spans begin with a line.
    since: Instant,
    admitted: u32,
    suppressed: u64,
}

impl Limiter {
    pub(crate) fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, since: now, admitted: 0, suppressed: 0 }
    }

    /// A count that another log began.
    pub(super) fn going_on(limit: RateLimit, since: Instant, admitted: u32, suppressed: u64) -> Self {
        Self { limit, since, admitted, suppressed }
    }

    /// What another log needs to go on with it: how long ago its span began, what was let through and what not.
    pub(super) fn counts(&self, now: Instant) -> (Duration, u32, u64) {
        (now.duration_since(self.since), self.admitted, self.suppressed)
    }

    /// Takes the time of the lines that follow. Once a span is over, returns how many lines were suppressed in it, if
    /// any were; they are to be told before those lines.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) < self.limit.interval {
            return None;
        }
        self.since = now;
        self.admitted = 0;
        self.take_suppressed()
    }

    /// Counts a line; whether it may pass.
    pub(crate) fn admit(&mut self) -> bool {
        if self.admitted < self.limit.burst {
            self.admitted += 1;
            true
        } else {
            self.suppressed += 1;
            false
        }
    }

    /// When suppressed lines are to be told even if none follows.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.since + self.limit.interval)
    }

    /// How many lines were suppressed and not told, if any were.
    pub(crate) fn take_suppressed(&mut self) -> Option<u64> {
        let count = std::mem::take(&mut self.suppressed);
        (count > 0).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_admitted_and_what_is_told_is_everything() {
        let limit = RateLimit { interval: Duration::from_secs(5), burst: 3 };
        let start = Instant::now();
        let mut limiter = Limiter::new(limit, start);
        let (mut admitted, mut told) = (0, 0);
        for tenth in 0..1000 {
            told += limiter.advance(start + Duration::from_millis(100 * tenth)).unwrap_or(0);
            admitted += u64::from(limiter.admit());
        }
        assert_eq!(admitted, 3 * 20);
        assert!(limiter.due().is_some());
        told += limiter.take_suppressed().unwrap();
        assert_eq!((admitted + told, limiter.due()), (1000, None));
    }
}
