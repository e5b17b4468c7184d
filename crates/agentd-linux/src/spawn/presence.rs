//! Whether a child still uses its parent's memory.

use std::sync::atomic::{AtomicU32, Ordering};

use super::raw;

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
    pub(super) fn wait(&self) {
        loop {
            let seen = self.0.load(Ordering::Acquire);
            if seen == 0 {
                return;
            }
            // Woken, interrupted, or the word is another one by now: the word says what there is to do.
            let _woken = raw::futex_wait(&self.0, seen);
        }
    }
}

/// It must not go while the kernel may still write to it, nor may anything else that the child uses.
impl Drop for Presence {
    fn drop(&mut self) {
        self.wait();
    }
}
