//! The thread that writes the files. It alone ever waits for a disk.
//!
//! # Invariants
//! - Lines of a unit are written, told to followers, and answered from, in the order in which they came.
//! - What cannot be written is held, bounded, and tried again; what is dropped is counted in the file.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentd_unit::UnitName;

use super::config::LogConfig;
use super::entry::{self, Ending, Entry, Origin};
use super::file::{self, UnitFile};
use super::outbox::{Outbox, TOTAL_BYTES, UNIT_BYTES, Work};
use super::ring::{Chunk, Ring};
use super::{FollowId, budget, stamp, tail};

/// How soon a write that failed is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// Why lines are missing where no write has failed.
const BEHIND: &str = "the disk was behind";

/// Takes the answer to a read.
pub(crate) type Reply = Box<dyn FnOnce(io::Result<Vec<Entry>>) + Send>;
/// Takes what follows.
pub(crate) type Sink = Box<dyn FnMut(Vec<Entry>) + Send>;

/// What the writing thread can be asked for.
pub(crate) enum Job {
    /// The newest entries of a unit.
    Read { unit: UnitName, last: usize, reply: Reply },
    /// The newest entries, then each new one.
    Follow { id: FollowId, unit: UnitName, last: usize, sink: Sink },
    /// No more of it.
    Unfollow { id: FollowId },
    /// Say when everything so far is in the files, or held because it cannot be.
    Flush { done: Box<dyn FnOnce() + Send> },
}

/// What is known of a unit that has something open, held or followed.
#[derive(Default)]
struct UnitLog {
    file: Option<UnitFile>,
    /// When the file was last used, for choosing which to close.
    used: u64,
    /// What could not be written.
    held: Ring,
    failure: Option<Failure>,
    followers: Vec<(FollowId, Sink)>,
}

impl UnitLog {
    /// Closes the file; `open` counts those that are open.
    fn close(&mut self, open: &AtomicUsize) {
        if self.file.take().is_some() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Why and until when lines are held.
struct Failure {
    reason: String,
    delay: Duration,
    retry_at: Instant,
}

pub(crate) struct Writer {
    config: LogConfig,
    outbox: Arc<Outbox>,
    units: HashMap<UnitName, UnitLog>,
    uses: u64,
    /// Some unit may have a write that failed: only then is one looked for among all of them.
    failing: bool,
    /// At most this is in all files: those that somebody removed since the folder was last looked at are counted too.
    total: Option<u64>,
    /// How many files are open, for others to read.
    open: Arc<AtomicUsize>,
}

impl Writer {
    pub(crate) fn new(config: LogConfig, outbox: Arc<Outbox>, open: Arc<AtomicUsize>) -> Self {
        Self { config, outbox, units: HashMap::new(), uses: 0, failing: false, total: None, open }
    }

    /// Runs until everything was written that will ever be handed over.
    pub(crate) fn run(mut self) {
        loop {
            let timeout = self.next_retry().map(|at| at.saturating_duration_since(Instant::now()));
            match self.outbox.next(timeout) {
                Work::Write(unit, lines) => self.take(&unit, lines),
                Work::Do(job) => self.answer(job),
                Work::Retry => {}
                Work::End => break,
            }
            self.retry(Instant::now());
        }
        // The last chance of what was held.
        self.retry(Instant::now() + RETRY.1);
        for (unit, log) in &self.units {
            if let Some(failure) = &log.failure {
                let bytes = log.held.bytes();
                tracing::error!(unit = %unit, "the newest {bytes} bytes of the log of {unit} are lost: {}", failure.reason);
            }
        }
    }

    fn take(&mut self, unit: &UnitName, lines: Ring) {
        let log = self.units.entry(unit.clone()).or_default();
        let why = log.failure.as_ref().map_or(BEHIND, |failure| &failure.reason);
        follow(&mut log.followers, &lines, why);
        log.held.append(lines);
        let failing = log.failure.is_some();
        if failing {
            self.bound(unit);
        } else {
            self.write(unit);
        }
        self.forget(unit);
    }

    /// Drops the oldest of what a unit holds where it is too much, by itself or together with the others.
    fn bound(&mut self, unit: &UnitName) {
        let total: usize = self.units.values().map(|u| u.held.bytes()).sum();
        let Some(log) = self.units.get_mut(unit) else { return };
        let others = total - log.held.bytes();
        log.held.shrink(UNIT_BYTES.min(TOTAL_BYTES.saturating_sub(others)));
    }

    /// When a write that failed is tried again.
    fn next_retry(&mut self) -> Option<Instant> {
        if !self.failing {
            return None;
        }
        let next = self.units.values().filter_map(|u| u.failure.as_ref().map(|f| f.retry_at)).min();
        self.failing = next.is_some();
        next
    }

    fn retry(&mut self, now: Instant) {
        if !self.failing {
            return;
        }
        let is_due = |log: &UnitLog| log.failure.as_ref().is_some_and(|f| f.retry_at <= now);
        let due: Vec<_> =
            self.units.iter().filter(|(_, u)| is_due(u)).map(|(name, _)| name.clone()).collect();
        for unit in due {
            self.write(&unit);
            self.forget(&unit);
        }
    }

    /// Writes what a unit holds, as far as the disk takes it.
    fn write(&mut self, unit: &UnitName) {
        match self.try_write(unit) {
            Ok(()) => {
                if let Some(failure) = self.units.get_mut(unit).and_then(|log| log.failure.take()) {
                    tracing::info!(unit = %unit, "the log of {unit} is written again, after: {}", failure.reason);
                }
            }
            Err(error) => self.fail(unit, &error),
        }
    }

    fn fail(&mut self, unit: &UnitName, error: &io::Error) {
        self.failing = true;
        let Some(log) = self.units.get_mut(unit) else { return };
        // It may stand in a state that only opening repairs, and hold more than was counted.
        log.close(&self.open);
        self.total = None;
        let reason = error.to_string();
        let delay = match log.failure.take() {
            Some(earlier) => (earlier.delay * 2).min(RETRY.1),
            None => {
                let path = file::path_of(&self.config.dir, unit);
                tracing::warn!(unit = %unit, %error, "cannot write the log of {unit} to {}; its newest lines are kept in memory until it can be written", path.display());
                RETRY.0
            }
        };
        log.failure = Some(Failure { reason, delay, retry_at: Instant::now() + delay });
        self.bound(unit);
    }

    fn try_write(&mut self, unit: &UnitName) -> io::Result<()> {
        let mut sacrificed = false;
        loop {
            let Some(mut chunk) = self.units.get_mut(unit).and_then(|log| log.held.pop()) else {
                return Ok(());
            };
            let written = self.write_chunk(unit, &mut chunk);
            if written.is_ok() {
                self.outbox.reuse(chunk.bytes);
                sacrificed = false;
                continue;
            }
            if let Some(log) = self.units.get_mut(unit) {
                log.held.put_back(chunk);
            }
            match written {
                // A full disk: the unit's own oldest lines make room for its newest, one file a chunk.
                Err(error) if error.kind() == io::ErrorKind::StorageFull && !sacrificed => {
                    let path = file::path_of(&self.config.dir, unit);
                    sacrificed = budget::sacrifice(&path, self.config.files_kept)?;
                    if !sacrificed {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }

    /// Writes one chunk and the gap before it. After an error the chunk holds what is not in the files.
    fn write_chunk(&mut self, unit: &UnitName, chunk: &mut Chunk) -> io::Result<()> {
        self.open(unit)?;
        let Some(log) = self.units.get_mut(unit) else { return Ok(()) };
        let Some(file) = log.file.as_mut() else { return Ok(()) };
        if chunk.dropped_before > 0 {
            let why = log.failure.as_ref().map_or(BEHIND, |failure| &failure.reason);
            file.append(chunk.run, &mut &gap(chunk.dropped_before, why)[..])?;
            chunk.dropped_before = 0;
        }
        let mut rest = &chunk.bytes[..];
        let written = file.append(chunk.run, &mut rest);
        if written.is_err() {
            let done = chunk.bytes.len() - rest.len();
            chunk.bytes.drain(..done);
            chunk.lines = chunk.bytes.iter().filter(|b| **b == b'\n').count() as u64;
        }
        let added = file.take_written();
        self.total = self.total.map(|total| total + added);
        if file.take_begun() {
            self.enforce_budget(unit);
        }
        written
    }

    /// Sees to it that the unit's file is open, and is the one that its path leads to.
    fn open(&mut self, unit: &UnitName) -> io::Result<()> {
        self.uses += 1;
        let Some(log) = self.units.get_mut(unit) else { return Ok(()) };
        log.used = self.uses;
        if log.file.as_ref().is_some_and(UnitFile::is_current) {
            return Ok(());
        }
        let path = file::path_of(&self.config.dir, unit);
        let file = UnitFile::open(&path, self.config.max_file_bytes(), self.config.files_kept)?;
        if log.file.replace(file).is_none() {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        self.close_oldest();
        Ok(())
    }

    /// Closes the file that was not used for longest, if too many are open.
    fn close_oldest(&mut self) {
        if self.open.load(Ordering::Relaxed) <= self.config.open_files {
            return;
        }
        let open = self.units.iter().filter(|(_, log)| log.file.is_some());
        let oldest = open.min_by_key(|(_, log)| log.used).map(|(unit, _)| unit.clone());
        if let Some(unit) = oldest {
            if let Some(log) = self.units.get_mut(&unit) {
                log.close(&self.open);
            }
            self.forget(&unit);
        }
    }

    /// Makes room for the file that was begun for a unit. The lines are in it; that older ones stay is no reason to
    /// write them again.
    fn enforce_budget(&mut self, unit: &UnitName) {
        // Looking at a thousand files for each new one would cost more than all else.
        if self.total.is_some_and(|total| total <= self.config.max_total_bytes) {
            return;
        }
        let keep = file::path_of(&self.config.dir, unit);
        match budget::enforce(&self.config.dir, self.config.max_total_bytes, &keep) {
            Ok((freed, left)) => {
                self.total = Some(left);
                if freed > 0 {
                    tracing::info!("the agents' logs took too much: their oldest {freed} bytes were removed");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the agents' logs may take too much, as old ones cannot be removed")
            }
        }
    }

    /// Forgets a unit of which nothing is open, held or followed.
    fn forget(&mut self, unit: &UnitName) {
        let idle = |log: &UnitLog| {
            log.file.is_none() && log.held.is_empty() && log.failure.is_none() && log.followers.is_empty()
        };
        if self.units.get(unit).is_some_and(idle) {
            self.units.remove(unit);
        }
    }

    fn answer(&mut self, job: Job) {
        match job {
            Job::Read { unit, last, reply } => reply(self.read(&unit, last)),
            Job::Follow { id, unit, last, mut sink } => {
                sink(self.read(&unit, last).unwrap_or_else(|error| vec![unreadable(&error)]));
                self.units.entry(unit).or_default().followers.push((id, sink));
            }
            Job::Unfollow { id } => {
                let followed = |log: &UnitLog| log.followers.iter().any(|(other, _)| *other == id);
                let unit = self.units.iter().find(|(_, log)| followed(log)).map(|(unit, _)| unit.clone());
                if let Some(unit) = unit {
                    if let Some(log) = self.units.get_mut(&unit) {
                        log.followers.retain(|(other, _)| *other != id);
                    }
                    self.forget(&unit);
                }
            }
            Job::Flush { done } => done(),
        }
    }

    /// The newest entries: those in the files, then those that could not be written yet.
    fn read(&self, unit: &UnitName, last: usize) -> io::Result<Vec<Entry>> {
        let last = last.min(super::MAX_READ);
        let mut held = Vec::new();
        if let Some(log) = self.units.get(unit) {
            let why = log.failure.as_ref().map_or(BEHIND, |failure| &failure.reason);
            held.extend(log.held.parts().flat_map(|chunk| told(chunk, why)));
        }
        held.drain(..held.len().saturating_sub(last));
        let path = file::path_of(&self.config.dir, unit);
        let mut entries = tail::read(&path, self.config.files_kept, last - held.len())?;
        entries.append(&mut held);
        Ok(entries)
    }
}

/// Gives new lines to those who follow the unit.
fn follow(followers: &mut [(FollowId, Sink)], lines: &Ring, why: &str) {
    if followers.is_empty() {
        return;
    }
    for chunk in lines.parts() {
        let entries = told(chunk, why);
        for (_, sink) in &mut *followers {
            sink(entries.clone());
        }
    }
}

/// The entries of a chunk, after what tells of the gap before it.
fn told(chunk: &Chunk, why: &str) -> Vec<Entry> {
    let mut lines = if chunk.dropped_before > 0 { gap(chunk.dropped_before, why) } else { Vec::new() };
    lines.extend_from_slice(&chunk.bytes);
    entry::entries(&lines, chunk.run)
}

/// The line that stands where lines are missing.
fn gap(count: u64, why: &str) -> Vec<u8> {
    let mut line = Vec::new();
    let text = format!("{count} lines dropped: {why}");
    let now = stamp::format(super::now().0);
    entry::write_entry(&mut line, &now, 4, Origin::Manager, Ending::Newline, text.as_bytes());
    line
}

/// What a follower is told where the past cannot be read.
fn unreadable(error: &io::Error) -> Entry {
    Entry {
        realtime: super::now(),
        priority: 3,
        run: None,
        origin: Origin::Manager,
        ending: Ending::Newline,
        text: format!("the log so far cannot be read: {error}").into_bytes(),
    }
}
