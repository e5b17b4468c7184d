//! So many in so long: a window that slides.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Monotonic;

/// What was admitted lately, the oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rate(VecDeque<Monotonic>);

impl Rate {
    /// What another manager has admitted.
    pub(crate) fn of(recent: impl IntoIterator<Item = Monotonic>) -> Self {
        Self(recent.into_iter().collect())
    }

    /// What was admitted lately, the oldest first.
    pub(crate) fn recent(&self) -> impl Iterator<Item = Monotonic> + '_ {
        self.0.iter().copied()
    }

    /// Whether one more at `at` stays within `burst` in any `interval`. If so it is counted. A limit of zero is none.
    pub(crate) fn admit(&mut self, interval: Duration, burst: u32, at: Monotonic) -> bool {
        if interval.is_zero() || burst == 0 {
            return true;
        }
        while self.0.front().is_some_and(|earlier| *earlier + interval <= at) {
            self.0.pop_front();
        }
        if self.0.len() >= burst as usize {
            return false;
        }
        self.0.push_back(at);
        true
    }
}
