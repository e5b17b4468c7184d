//! The same work on a list of things, shared by two processors where there are two.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, TryRecvError, TrySendError};
use std::thread;

/// For more than so many things a second thread helps: starting it costs about as much as reading one unit.
const ALONE: usize = 32;

/// So many things are taken at once. The thread that is done first waits for the other's last ones.
const CHUNK: usize = 8;

/// So many chunks that were read may wait to be made something of.
const WAITING: usize = 4;

/// Whether there is one processor alone. Asking reads files of the cgroup tree.
static LONELY: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count == NonZero::<usize>::MIN));

/// What `work` makes of each thing, in their order, after the calling thread has done something else. Each thread has a `S` of
/// its own, so that what one thing after the other uses again needs no lock. A second thread helps if there are many of them,
/// more than one processor, and the system lets one be started; all it does is this work, and it is gone on return.
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
    let own = || {
        before();
        help()
    };
    if things.len() <= ALONE || *LONELY { in_order(own()) } else { in_order(both(own, help)) }
}

/// What `make` makes of what `read` has read of each thing, in their order. The second thread reads ahead, and makes things
/// only if the first falls behind: reading is the kernel's work, and making takes memory, for which threads that share one
/// heap wait for each other.
pub(super) fn read_and_make<T: Sync, A: Send, R: Send, S: Default>(
    things: &[T],
    read: impl Fn(&mut S, &T) -> A + Sync,
    make: impl Fn(&mut S, &T, A) -> R + Sync,
) -> Vec<R> {
    if things.len() <= ALONE || *LONELY {
        let mut own = S::default();
        return things
            .iter()
            .map(|thing| {
                let found = read(&mut own, thing);
                make(&mut own, thing, found)
            })
            .collect();
    }
    let next = AtomicUsize::new(0);
    // The next chunk, read.
    let take = |own: &mut S| {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        let rest = things.get(start..).filter(|rest| !rest.is_empty())?;
        let chunk: Vec<A> = rest.iter().take(CHUNK).map(|thing| read(own, thing)).collect();
        Some((start, chunk))
    };
    let finish = |own: &mut S, done: &mut Vec<(usize, R)>, (start, chunk): (usize, Vec<A>)| {
        let places = (start..).zip(chunk);
        done.extend(places.map(|(place, found)| (place, make(own, &things[place], found))));
    };
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    let ahead = || {
        let (mut own, mut done) = (S::default(), Vec::new());
        while let Some(chunk) = take(&mut own) {
            match sender.try_send(chunk) {
                Ok(()) => {}
                Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) => {
                    finish(&mut own, &mut done, chunk);
                }
            }
        }
        drop(sender);
        done
    };
    let first = || {
        let (mut own, mut done) = (S::default(), Vec::with_capacity(things.len()));
        loop {
            let waiting = match receiver.try_recv() {
                Err(TryRecvError::Empty) => take(&mut own).or_else(|| receiver.recv().ok()),
                Err(TryRecvError::Disconnected) => take(&mut own),
                Ok(chunk) => Some(chunk),
            };
            let Some(chunk) = waiting else { return done };
            finish(&mut own, &mut done, chunk);
        }
    };
    in_order(both(first, ahead))
}

/// What this thread has done and what another has meanwhile, if the system lets one be started.
fn both<R: Send>(first: impl FnOnce() -> Vec<R>, second: impl FnOnce() -> Vec<R> + Send) -> Vec<R> {
    thread::scope(|scope| {
        let other = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, second).ok();
        let mut done = first();
        match other.map(thread::ScopedJoinHandle::join) {
            None => {}
            Some(Ok(others)) => done.extend(others),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
        done
    })
}

/// Without the places, in their order.
fn in_order<R>(mut all: Vec<(usize, R)>) -> Vec<R> {
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

    #[test]
    fn what_was_read_is_made_something_of_whoever_is_faster() {
        for (slow_to_read, slow_to_make) in [(0, 0), (200, 0), (0, 200)] {
            for count in [0, 1, ALONE, ALONE + 1, 10 * ALONE + 7] {
                let things: Vec<usize> = (0..count).collect();
                let (reads, makes) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let work = |calls: &AtomicUsize, micros| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    let begun = std::time::Instant::now();
                    while begun.elapsed().as_micros() < micros {}
                };
                let read = |(): &mut (), thing: &usize| {
                    work(&reads, slow_to_read);
                    thing.to_string()
                };
                let make = |(): &mut (), thing: &usize, text: String| {
                    work(&makes, slow_to_make);
                    format!("{thing}={text}")
                };
                let made = read_and_make(&things, read, make);
                let expected: Vec<String> = things.iter().map(|thing| format!("{thing}={thing}")).collect();
                assert_eq!(made, expected);
                let calls = [reads, makes].map(|calls| calls.load(Ordering::Relaxed));
                assert_eq!(calls, [count; 2]);
            }
        }
    }
}
