//! The same work on a list of things, shared by two processors where there are two.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, TrySendError};
use std::thread;

use super::Door;

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
    door: &dyn Door,
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
    if things.len() <= ALONE || *LONELY { in_order(own()) } else { in_order(both(door, own, help)) }
}

/// What `make` makes of what `read` has read of some things at a time, handed over one by one in the order of the things.
/// The second thread reads ahead, and makes things only if the first falls behind: reading is the kernel's work, and making
/// takes memory, for which threads that share one heap wait for each other, and who waits sleeps. So what is read into is
/// used again and again, and `read` finds in it what was read before.
pub(super) fn read_and_make<T: Sync, A: Default + Send, R: Send, S: Default>(
    door: &dyn Door,
    things: &[T],
    read: impl Fn(&mut S, &[T], &mut A) + Sync,
    make: impl Fn(&mut S, &[T], &mut A, &mut dyn FnMut(R)) + Sync,
) -> Vec<R> {
    if things.len() <= ALONE || *LONELY {
        let (mut own, mut batch, mut done) = (S::default(), A::default(), Vec::with_capacity(things.len()));
        for chunk in things.chunks(CHUNK) {
            read(&mut own, chunk, &mut batch);
            make(&mut own, chunk, &mut batch, &mut |made| done.push(made));
        }
        return done;
    }
    let next = AtomicUsize::new(0);
    let chunk = |start: usize| things.get(start..).map(|rest| &rest[..rest.len().min(CHUNK)]);
    // Reads the next chunk; where it begins.
    let take = |own: &mut S, batch: &mut A| {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        let things = chunk(start).filter(|things| !things.is_empty())?;
        read(own, things, batch);
        Some(start)
    };
    let finish = |own: &mut S, done: &mut Vec<(usize, R)>, start: usize, batch: &mut A| {
        let mut places = start..;
        make(own, chunk(start).unwrap_or_default(), batch, &mut |made| {
            done.extend(places.next().zip(Some(made)))
        });
    };
    let (full, to_make) = mpsc::sync_channel(WAITING);
    let (empty, to_fill) = mpsc::sync_channel(WAITING);
    let (take, finish) = (&take, &finish);
    let ahead = move || {
        let (mut own, mut done, mut batch) = (S::default(), Vec::new(), A::default());
        while let Some(start) = take(&mut own, &mut batch) {
            match full.try_send((start, batch)) {
                Ok(()) => batch = to_fill.try_recv().unwrap_or_default(),
                Err(TrySendError::Full((_, back)) | TrySendError::Disconnected((_, back))) => {
                    batch = back;
                    finish(&mut own, &mut done, start, &mut batch);
                }
            }
        }
        done
    };
    let (mut own, mut mine) = (S::default(), A::default());
    let first = || {
        let mut done = Vec::with_capacity(things.len());
        loop {
            if let Ok((start, mut batch)) = to_make.try_recv() {
                finish(&mut own, &mut done, start, &mut batch);
                // Who reads ahead has enough of them if there is no room for it.
                let _kept = empty.try_send(batch);
            } else if let Some(start) = take(&mut own, &mut mine) {
                finish(&mut own, &mut done, start, &mut mine);
            } else {
                return done;
            }
        }
    };
    let mut done = both(door, first, ahead);
    // What was read last.
    for (start, mut batch) in to_make.try_iter() {
        finish(&mut own, &mut done, start, &mut batch);
    }
    in_order(done)
}

/// What this thread has done and what another has meanwhile, if the system lets one be started.
fn both<R: Send>(
    door: &dyn Door,
    first: impl FnOnce() -> Vec<R>,
    second: impl FnOnce() -> Vec<R> + Send,
) -> Vec<R> {
    let (mut done, mut others) = (Vec::new(), Vec::new());
    let (mut first, mut second) = (Some(first), Some(second));
    door.both(&mut || done = first.take().map(|first| first()).unwrap_or_default(), &mut || {
        others = second.take().map(|second| second()).unwrap_or_default()
    });
    done.append(&mut others);
    done
}

/// Without the places, in their order.
fn in_order<R>(mut all: Vec<(usize, R)>) -> Vec<R> {
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::loader::{Kind, OpenFolder, StandardDoor};

    /// A door whose thread starts when all else is done, or never.
    #[derive(Debug)]
    struct Late {
        starts: bool,
    }

    impl Door for Late {
        fn open(&self, _: OpenFolder<'_>, _: &Path) -> io::Result<File> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn list(&self, _: OpenFolder<'_>, _: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn both(&self, first: &mut dyn FnMut(), second: &mut (dyn FnMut() + Send)) {
            first();
            if self.starts {
                second();
            }
        }
    }

    const DOORS: [&dyn Door; 3] = [&StandardDoor, &Late { starts: true }, &Late { starts: false }];

    #[test]
    fn everything_is_done_once_and_stays_in_order() {
        let counts = [0, 1, CHUNK + 1, ALONE, ALONE + 1, 10 * ALONE + 7];
        for (door, count) in DOORS.into_iter().flat_map(|door| counts.map(|count| (door, count))) {
            let things: Vec<usize> = (0..count).collect();
            let calls = AtomicUsize::new(0);
            let mut other = false;
            let double = |(): &mut (), thing: &usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                thing * 2
            };
            let made = map_beside(door, &things, double, || other = true);
            assert!(other, "{count}");
            assert_eq!(made, things.iter().map(|thing| thing * 2).collect::<Vec<_>>(), "{count}");
            assert_eq!(calls.load(Ordering::Relaxed), count);
        }
    }

    #[test]
    fn what_was_read_is_made_something_of_whoever_is_faster() {
        let slow = [(0, 0), (200, 0), (0, 200)];
        for (door, (slow_to_read, slow_to_make)) in
            DOORS.into_iter().flat_map(|door| slow.map(|slow| (door, slow)))
        {
            for count in [0, 1, ALONE, ALONE + 1, 10 * ALONE + 7] {
                let things: Vec<usize> = (0..count).collect();
                let (reads, makes) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let work = |calls: &AtomicUsize, micros| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    let begun = std::time::Instant::now();
                    while begun.elapsed().as_micros() < micros {}
                };
                let read = |(): &mut (), things: &[usize], batch: &mut Vec<String>| {
                    batch.clear();
                    for thing in things {
                        work(&reads, slow_to_read);
                        batch.push(thing.to_string());
                    }
                };
                let make =
                    |(): &mut (), things: &[usize], batch: &mut Vec<String>, each: &mut dyn FnMut(String)| {
                        assert_eq!(things.len(), batch.len());
                        for (thing, text) in things.iter().zip(batch) {
                            work(&makes, slow_to_make);
                            each(format!("{thing}={text}"));
                        }
                    };
                let made = read_and_make(door, &things, read, make);
                let expected: Vec<String> = things.iter().map(|thing| format!("{thing}={thing}")).collect();
                assert_eq!(made, expected);
                let calls = [reads, makes].map(|calls| calls.load(Ordering::Relaxed));
                assert_eq!(calls, [count; 2]);
            }
        }
    }
}
