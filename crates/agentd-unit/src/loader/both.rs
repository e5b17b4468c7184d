//! The same work on a list of things, shared by two processors where there are two.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// For more than so many things a second thread helps: starting it costs about as much as reading one unit.
const ALONE: usize = 32;

/// So many things are taken at once. The thread that is done first waits for the other's last ones.
const CHUNK: usize = 8;

/// Whether there is one processor alone. Asking reads files of the cgroup tree.
static LONELY: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count == NonZero::<usize>::MIN));

/// What `work` makes of each thing, in their order. Each thread has a `S` of its own, so that what one thing after the
/// other uses again needs no lock. A second thread helps if there are many of them, more than one
/// processor, and the system lets one be started; all it does is this work, and it is gone on return.
pub(super) fn map<T: Sync, R: Send, S: Default>(
    things: &[T],
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    map_beside(things, work, || ())
}

/// The same, after the calling thread has done something else; the other one begins meanwhile.
pub(super) fn map_beside<T: Sync, R: Send, S: Default>(
    things: &[T],
    work: impl Fn(&mut S, &T) -> R + Sync,
    before: impl FnOnce(),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let help = || {
        let mut own = S::default();
        let mut done: Vec<(usize, R)> = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = things.get(start..).filter(|rest| !rest.is_empty()) else { return done };
            let chunk = rest.iter().take(CHUNK).enumerate();
            done.extend(chunk.map(|(place, thing)| (start + place, work(&mut own, thing))));
        }
    };
    let mut all = if things.len() <= ALONE || *LONELY {
        before();
        help()
    } else {
        thread::scope(|scope| {
            let other = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, help).ok();
            before();
            let mut done = help();
            match other.map(thread::ScopedJoinHandle::join) {
                None => {}
                Some(Ok(others)) => done.extend(others),
                Some(Err(panic)) => std::panic::resume_unwind(panic),
            }
            done
        })
    };
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_stays_in_order() {
        for count in [0, 1, CHUNK + 1, ALONE, ALONE + 1, 10 * ALONE + 7] {
            let things: Vec<usize> = (0..count).collect();
            let calls = AtomicUsize::new(0);
            let mut other = false;
            let double = |(): &mut (), thing: &usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                thing * 2
            };
            let made = map_beside(&things, double, || other = true);
            assert!(other, "{count}");
            assert_eq!(made, things.iter().map(|thing| thing * 2).collect::<Vec<_>>(), "{count}");
            assert_eq!(calls.load(Ordering::Relaxed), count);
        }
    }
}
