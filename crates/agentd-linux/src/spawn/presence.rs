//! Whether a child still uses its parent's memory.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::hear::LONG;
use super::raw;
use crate::cgroup;
use crate::pidfd::PidFd;

/// How a child has left its parent's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// By its exec or its end.
    ByItself,
    /// It was killed, as it had not left by the deadline.
    Late,
    /// It was killed, as it stood in a frozen cgroup.
    Frozen,
}

/// The word of a child that was born with CLONE_CHILD_CLEARTID, clone(2): the kernel sets it to 0, and wakes who waits for
/// that, when the child is past its exec or gone. It must stay where it is until then.
#[derive(Debug, Default)]
pub(super) struct Presence(AtomicU32);

impl Presence {
    /// Before the birth: the child is there. The address is for the kernel.
    pub(super) fn begin(&self) -> *mut u32 {
        self.0.store(1, Ordering::Relaxed);
        self.0.as_ptr()
    }

    /// The birth has failed, and the kernel will say nothing.
    pub(super) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Waits until the child has left. What it has written is seen afterwards.
    fn wait(&self) {
        while self.is_there(None) {}
    }

    /// The same until the deadline, at which the child is killed; and earlier where it stands in a cgroup that somebody has
    /// frozen, where SIGKILL still works.
    pub(super) fn wait_until(
        &self,
        deadline: Instant,
        child: &PidFd,
        group: Option<BorrowedFd<'_>>,
    ) -> Departure {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let most = left.min(LONG);
            let most = libc::timespec {
                tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(most.subsec_nanos()),
            };
            let begun = Instant::now();
            if !self.is_there(Some(&most)) {
                return Departure::ByItself;
            }
            let stands = begun.elapsed() >= LONG.min(left) && group.is_some_and(cgroup::is_frozen);
            if stands || left.is_zero() {
                // An error says that it is gone, or that it cannot be killed; then there is only waiting.
                let _sent = child.send_signal(libc::SIGKILL);
                self.wait();
                return if stands { Departure::Frozen } else { Departure::Late };
            }
        }
    }

    /// Whether the child is there; if so, waits for a change.
    fn is_there(&self, most: Option<&libc::timespec>) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        if seen != 0 {
            // Woken, interrupted, late, or the word is another one by now: the word says what there is to do.
            let _woken = raw::futex_wait(&self.0, seen, most);
        }
        seen != 0
    }
}

/// It must not go while the kernel may still write to it, nor may anything else that the child uses.
impl Drop for Presence {
    fn drop(&mut self) {
        self.wait();
    }
}
