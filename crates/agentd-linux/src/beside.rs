//! Two things at once, on two processors from the first moment on.
//!
//! The scheduler may leave a new thread on the processor of its maker for a slice or two, above all when both processors
//! have rested: for work of twenty milliseconds that is a tenth of the time. So a thread is moved where its maker is not,
//! and may run anywhere again: sched_setaffinity(2).

use std::mem::size_of;
use std::os::unix::thread::JoinHandleExt as _;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

/// Does the first on this thread and the second on one of its own, if the system lets one be started, else only the first.
/// Both are over on return; a panic of either goes on here.
pub fn both(first: impl FnOnce(), second: impl FnOnce() + Send) {
    // SAFETY: the thread is joined before this returns or unwinds, so it uses nothing that is gone.
    let other = unsafe { Builder::new().name("beside".to_owned()).spawn_unchecked(second) }.ok();
    let mut joined = Joined(other);
    if let Some(thread) = &joined.0 {
        place_elsewhere(thread);
    }
    first();
    if let Some(Err(panic)) = joined.0.take().map(JoinHandle::join) {
        resume_unwind(panic);
    }
}

/// Waits for the thread also where its maker panics.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        // Its panic would hide the first.
        let _ended = self.0.take().map(JoinHandle::join);
    }
}

/// Moves a thread to another processor than this one, if it may have another. It is better off there and right anywhere: what
/// fails leaves it where it is.
fn place_elsewhere(thread: &JoinHandle<()>) {
    // SAFETY: zeroes are a set: the empty one.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes at most so many bytes to the set.
    let read = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) };
    // SAFETY: the call takes nothing.
    let here = unsafe { libc::sched_getcpu() };
    let Some(here) = usize::try_from(here).ok().filter(|here| *here < libc::CPU_SETSIZE as usize) else {
        return;
    };
    let mut others = allowed;
    // SAFETY: the set has this number.
    unsafe { libc::CPU_CLR(here, &mut others) };
    // SAFETY: the set is only looked at.
    let elsewhere = unsafe { libc::CPU_COUNT(&others) };
    if read != 0 || elsewhere == 0 {
        return;
    }
    for set in [&others, &allowed] {
        // SAFETY: the thread is not joined yet, and the set is as large as it says.
        unsafe { libc::pthread_setaffinity_np(thread.as_pthread_t(), size_of::<libc::cpu_set_t>(), set) };
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn both_are_done_on_return_and_a_panic_of_either_goes_on() {
        let done = AtomicU32::new(0);
        both(
            || {
                done.fetch_add(1, Ordering::Relaxed);
            },
            || {
                std::thread::sleep(Duration::from_millis(20));
                done.fetch_add(2, Ordering::Relaxed);
            },
        );
        assert_eq!(done.into_inner(), 3);
        for first_panics in [true, false] {
            let ended = AtomicU32::new(0);
            let end = |panics: bool| {
                ended.fetch_add(1, Ordering::Relaxed);
                assert!(!panics, "planted");
            };
            let result = catch_unwind(AssertUnwindSafe(|| both(|| end(first_panics), || end(!first_panics))));
            assert!(result.is_err());
            assert_eq!(ended.into_inner(), 2, "{first_panics}");
        }
    }

    /// The processors that this thread may run on.
    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned()
    }

    #[test]
    fn the_second_runs_elsewhere_and_may_run_where_the_first_may() {
        let before = allowed();
        let processors = std::thread::available_parallelism().unwrap().get();
        let mut apart = 0;
        for _ in 0..50 {
            let (mine, other) = (AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX));
            // SAFETY: the call takes nothing.
            let here = || u32::try_from(unsafe { libc::sched_getcpu() }).unwrap();
            both(
                || {
                    mine.store(here(), Ordering::SeqCst);
                    let begun = Instant::now();
                    while other.load(Ordering::SeqCst) == u32::MAX && begun.elapsed() < Duration::from_secs(5)
                    {
                    }
                },
                || {
                    other.store(here(), Ordering::SeqCst);
                    // It is let go everywhere a moment after it was moved.
                    let begun = Instant::now();
                    while allowed() != before {
                        assert!(begun.elapsed() < Duration::from_secs(5), "{} and not {before}", allowed());
                    }
                },
            );
            apart += u32::from(mine.into_inner() != other.into_inner());
        }
        assert_eq!(allowed(), before, "whoever makes it stays as it is");
        assert!(processors == 1 || apart > 0, "never on another one");
    }
}
