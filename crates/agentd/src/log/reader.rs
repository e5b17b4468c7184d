//! The thread that reads the agents' output: it waits for all pipes at once and never for a disk.
//!
//! # Invariants
//! - Each pipe is read until its last writer is gone, whatever becomes of the lines.
//! - A pipe is left unread for at most [`PATIENCE`] because the disk is behind; then its oldest lines are dropped.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use agentd_engine::InvocationId;
use agentd_linux::descriptor;
use agentd_linux::epoll::{Epoll, Waker};
use agentd_unit::UnitName;

use super::carried::{Carried, Counted, Unfinished};
use super::entry::{self, Ending, Origin};
use super::outbox::{Haste, Outbox};
use super::rate::{Limiter, RateLimit};
use super::ring::Chunk;
use super::split::{self, LineRules, Splitter, Target};
use super::stamp;
use super::writer::Job;

/// How long an agent may be held up by a disk that is behind, so that a short burst loses nothing.
const PATIENCE: Duration = Duration::from_millis(200);

/// Output that goes on within this time of the last is a flood …
const FLOOD: Duration = Duration::from_millis(1);
/// … of which more is let gather before it is read. A pipe does not fill in this time, so no agent is held up; and
/// the work of a wake-up, of which each small write would cost one, is shared by hundreds of lines.
const GATHER: Duration = Duration::from_micros(500);

/// Commands that come within this time of the last are a flood as well, of a manager that starts or stops many units …
const COMMAND_FLOOD: Duration = Duration::from_millis(2);
/// … of which more is let gather, so that the work of a wake-up is shared by what belongs together. Shorter than a pipe
/// takes to fill.
const COMMAND_GATHER: Duration = Duration::from_millis(1);

/// What is read at once: what a pipe holds, pipe(7).
const READ_BYTES: usize = 64 << 10;

/// A read of as much may have emptied a full pipe. The kernel begins a new page for a write that does not fit into the
/// rest of the last one, pipe(7), so a pipe that is full of lines holds less than its size; but more than half of it.
const FULL: usize = READ_BYTES / 2;

/// What the pipe of an agent that fills it may hold from then on, so that it waits less for us, and we are woken less for
/// it. Read in [`READS`] parts.
const WIDE_PIPE: usize = 256 << 10;

/// How often one pipe is read in its turn while there is more, at most.
const READS: usize = WIDE_PIPE / READ_BYTES;

/// The token of the waker; those of pipes count up from the next.
const WAKER: u64 = 0;

/// What the reading thread is told, in the order in which it was said.
pub(crate) enum Command {
    /// Read this pipe.
    Attach(UnitName, InvocationId, OwnedFd, LineRules),
    /// The manager says something about a unit; whether that may wait for what it says next.
    Record(UnitName, Option<InvocationId>, u8, Vec<u8>, Haste),
    /// Read what is in the pipes of a run now, and end its unfinished line.
    Drain(InvocationId),
    /// Read what is in all pipes now.
    DrainAll,
    /// Hand this on to the writing thread, after all lines so far.
    Ask(Job),
    /// Go on with what another log has handed on, where pipes of the same runs are read from now on.
    CarryOn(Carried),
    /// What nobody goes on with of that ends now.
    Settle,
    /// Read what the pipes hold for the last time, and end; what has no end yet is handed on.
    HandOn(Sender<Carried>),
    /// Read what the pipes hold for the last time, and end.
    Stop,
}

/// Where commands come from.
pub(crate) struct Orders {
    /// In the order in which they were said.
    pub(crate) received: Receiver<Command>,
    /// Set by whoever wakes us for them, cleared by us before we look.
    pub(crate) woken: Arc<AtomicBool>,
}

struct Stream {
    unit: UnitName,
    run: InvocationId,
    pipe: File,
    splitter: Splitter,
    rate: Option<RateLimit>,
    /// The disk is behind: not read until there is room, or until then.
    paused: Option<Instant>,
    /// The disk was behind for too long: read all the same, until there is room.
    dropping: bool,
    /// The pipe was found full, and may hold more since.
    wide: bool,
}

pub(crate) struct Reader {
    epoll: Epoll,
    waker: Arc<Waker>,
    orders: Orders,
    outbox: Arc<Outbox>,
    /// Boxed: half of a table's places are empty.
    streams: HashMap<u64, Box<Stream>>,
    /// The streams of each run.
    runs: BTreeSet<(InvocationId, u64)>,
    /// The streams that are not read for now.
    paused: Vec<u64>,
    next_token: u64,
    max_line: usize,
    rate: Option<RateLimit>,
    limiters: HashMap<UnitName, Limiter>,
    /// Of the log before, what no pipe goes on with yet.
    carried: Carried,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(
        waker: Arc<Waker>,
        orders: Orders,
        outbox: Arc<Outbox>,
        max_line: usize,
        rate: Option<RateLimit>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(&*waker, WAKER)?;
        Ok(Self {
            epoll,
            waker,
            orders,
            outbox,
            streams: HashMap::new(),
            runs: BTreeSet::new(),
            paused: Vec::new(),
            next_token: WAKER + 1,
            max_line,
            rate,
            limiters: HashMap::new(),
            carried: Carried::default(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Runs until it is told to stop; then what the pipes hold is read for the last time.
    pub(crate) fn run(mut self) {
        let mut ready = Vec::new();
        let mut last_output = Instant::now();
        let mut last_command = last_output;
        let heir = loop {
            ready.clear();
            let timeout = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
            if let Err(error) = self.epoll.wait(&mut ready, timeout) {
                tracing::error!(%error, "the log of the agents' output cannot wait for it and ends");
                break None;
            }
            let woken = ready.contains(&WAKER);
            if ready.iter().any(|t| *t != WAKER) {
                if last_output.elapsed() < FLOOD {
                    std::thread::sleep(GATHER);
                }
                ready.iter().filter(|t| **t != WAKER).for_each(|token| self.read(*token));
                last_output = Instant::now();
            }
            if woken {
                if last_command.elapsed() < COMMAND_FLOOD {
                    std::thread::sleep(COMMAND_GATHER);
                }
                last_command = Instant::now();
                self.waker.clear();
                self.orders.woken.store(false, Ordering::Release);
            }
            self.resume();
            self.tell_suppressed(Instant::now());
            if woken && let Some(heir) = self.obey() {
                break heir;
            }
            self.outbox.publish();
        };
        self.drain_all(heir.is_none());
        if let Some(heir) = heir {
            // An error says that nobody waits for it any more.
            let _nobody = heir.send(self.hand_on());
        }
        self.outbox.end();
    }

    /// Carries out what was said, until that was to end: then to whom something is to be handed on, if to anybody.
    fn obey(&mut self) -> Option<Option<Sender<Carried>>> {
        loop {
            match self.orders.received.try_recv() {
                Ok(Command::Attach(unit, run, pipe, rules)) => self.attach(unit, run, pipe, rules),
                Ok(Command::Record(unit, run, priority, text, haste)) => {
                    self.record(&unit, run, priority, &text, haste);
                }
                Ok(Command::Drain(run)) => self.drain_run(run),
                Ok(Command::DrainAll) => self.drain_all(false),
                Ok(Command::Ask(job)) => self.outbox.ask(job),
                Ok(Command::CarryOn(carried)) => self.carried = carried,
                Ok(Command::Settle) => self.settle(),
                Err(TryRecvError::Empty) => return None,
                Ok(Command::HandOn(heir)) => return Some(Some(heir)),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Some(None),
            }
        }
    }

    fn attach(&mut self, unit: UnitName, run: InvocationId, pipe: OwnedFd, rules: LineRules) {
        let token = self.next_token;
        self.next_token += 1;
        if let Err(error) = descriptor::set_nonblocking(&pipe).and_then(|()| self.epoll.add(&pipe, token)) {
            tracing::error!(unit = %unit, %error, "the output of {unit} cannot be read and is lost");
            return;
        }
        let mut splitter = Splitter::new(self.max_line).with(rules);
        if let Some(line) = self.carried.line_of(run) {
            splitter.going_on(line.text, line.continued);
        }
        let rate = rules.rate.or(self.rate).filter(RateLimit::bounds);
        let counted = rate.and_then(|rate| self.carried.limiter_of(&unit, rate, Instant::now()));
        if let Some(limiter) = counted {
            self.limiters.insert(unit.clone(), limiter);
        }
        let pipe = File::from(pipe);
        self.runs.insert((run, token));
        let stream = Stream { unit, run, pipe, splitter, rate, paused: None, dropping: false, wide: false };
        self.streams.insert(token, Box::new(stream));
    }

    fn record(
        &mut self,
        unit: &UnitName,
        run: Option<InvocationId>,
        priority: u8,
        text: &[u8],
        haste: Haste,
    ) {
        let stamp = stamp::format(super::now().0);
        let mut chunk = Chunk::new(run);
        for line in text.split(|b| matches!(b, b'\n' | 0)) {
            for (piece, ending) in split::pieces(line, self.max_line) {
                entry::write_entry(&mut chunk.bytes, &stamp, priority, Origin::Manager, ending, piece);
                chunk.lines += 1;
            }
        }
        self.outbox.push_record(unit, chunk, haste);
    }

    /// Reads from a pipe that has something, as long as it is full and its lines can be taken.
    fn read(&mut self, token: u64) {
        for _ in 0..READS {
            if !self.read_once(token) {
                break;
            }
        }
    }

    /// One read; whether it was as much as a read can be.
    fn read_once(&mut self, token: u64) -> bool {
        let Some(stream) = self.streams.get_mut(&token) else { return false };
        if self.outbox.has_room(&stream.unit, stream.dropping) {
            stream.dropping = false;
        } else if !stream.dropping {
            // Level-triggered: out of the set, or it would be told without end.
            if self.epoll.remove(&stream.pipe).is_ok() {
                stream.paused = Some(Instant::now() + PATIENCE);
                self.paused.push(token);
            }
            return false;
        }
        match self.read_some(token, READ_BYTES) {
            Ok(0) => self.close(token),
            Ok(length) => {
                if length >= FULL {
                    self.widen(token);
                }
                return length == READ_BYTES;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                tracing::error!(%error, "the output of a run cannot be read any more");
                self.close(token);
            }
        }
        false
    }

    /// Lets a pipe that was full hold more.
    fn widen(&mut self, token: u64) {
        if let Some(stream) = self.streams.get_mut(&token).filter(|stream| !stream.wide) {
            stream.wide = true;
            // EPERM: the user's pipes hold as much as they may, pipe(7). It stays as it is, and costs more.
            let _as_it_was = descriptor::set_pipe_size(&stream.pipe, WIDE_PIPE);
        }
    }

    /// One read of at most `limit` bytes; its lines go out. Returns how much there was.
    fn read_some(&mut self, token: u64, limit: usize) -> io::Result<usize> {
        let Some(stream) = self.streams.get_mut(&token) else { return Ok(0) };
        let limit = limit.min(self.buffer.len());
        let length = stream.pipe.read(&mut self.buffer[..limit])?;
        let input = std::mem::take(&mut self.buffer);
        self.emit(token, |splitter, target| splitter.feed(&input[..length], target));
        self.buffer = input;
        Ok(length)
    }

    /// Has the splitter of a stream make lines, and hands them on.
    fn emit(&mut self, token: u64, make: impl FnOnce(&mut Splitter, &mut Target<'_>)) {
        let Some(stream) = self.streams.get_mut(&token) else { return };
        let stamp = stamp::format(super::now().0);
        let mut chunk = Chunk::new(Some(stream.run));
        chunk.bytes = self.outbox.buffer();
        let mut limiter = None;
        if let Some(rate) = stream.rate {
            let now = Instant::now();
            let known = self.limiters.entry(stream.unit.clone()).or_insert_with(|| Limiter::new(rate, now));
            if let Some(count) = known.advance(now) {
                write_suppressed(&mut chunk, &stamp, count);
            }
            limiter = Some(known);
        }
        let mut target = Target::new(&stream.splitter, &stamp, &mut chunk, limiter);
        make(&mut stream.splitter, &mut target);
        if chunk.bytes.is_empty() {
            self.outbox.reuse(chunk.bytes);
        } else {
            self.outbox.push(&stream.unit, chunk);
        }
    }

    /// Reads what is in the pipes of a run now, and ends the unfinished line.
    fn drain_run(&mut self, run: InvocationId) {
        let tokens: Vec<u64> = self.runs.range((run, 0)..=(run, u64::MAX)).map(|(_, token)| *token).collect();
        for token in tokens {
            self.drain(token, true);
        }
    }

    fn drain_all(&mut self, finish: bool) {
        let tokens: Vec<u64> = self.streams.keys().copied().collect();
        for token in tokens {
            self.drain(token, finish);
        }
    }

    /// What another log needs to go on where this one ends.
    fn hand_on(&self) -> Carried {
        let now = Instant::now();
        let line = |stream: &Stream| {
            let (text, continued) = stream.splitter.unfinished()?;
            let (unit, run) = (stream.unit.clone(), stream.run);
            Some(Unfinished { unit, run, text: text.to_vec(), continued })
        };
        let counted = |(unit, limiter): (&UnitName, &Limiter)| {
            let (age, admitted, suppressed) = limiter.counts(now);
            Counted { unit: unit.clone(), age, admitted, suppressed }
        };
        Carried {
            unfinished: self.streams.values().filter_map(|stream| line(stream)).collect(),
            counted: self.limiters.iter().map(counted).collect(),
        }
    }

    /// Ends what the log before has handed on and no pipe goes on with: whoever wrote it is gone.
    fn settle(&mut self) {
        let carried = std::mem::take(&mut self.carried);
        for line in carried.unfinished {
            let stamp = stamp::format(super::now().0);
            let mut splitter = Splitter::new(self.max_line);
            splitter.going_on(line.text, line.continued);
            let mut chunk = Chunk::new(Some(line.run));
            splitter.finish(&mut Target::new(&splitter, &stamp, &mut chunk, None));
            if chunk.lines > 0 {
                self.outbox.push(&line.unit, chunk);
            }
        }
        for counted in carried.counted.iter().filter(|counted| counted.suppressed > 0) {
            self.push_suppressed(&counted.unit, counted.suppressed);
        }
    }

    /// Reads what is in a pipe now, and no more than that, as left-over processes may write on without end.
    fn drain(&mut self, token: u64, finish: bool) {
        let Some(stream) = self.streams.get(&token) else { return };
        let unit = stream.unit.clone();
        // Without an answer, one pipe's worth is the best guess.
        let mut left = descriptor::bytes_ready(&stream.pipe).unwrap_or(READ_BYTES);
        loop {
            // Once more after the last byte: an end that is there already is seen, and the pipe closed.
            match self.read_some(token, left.clamp(1, READ_BYTES)) {
                Ok(0) => return self.close(token),
                Ok(length) if length < left => left -= length,
                // All of it; or empty, or broken, which the next turn of the loop sees to.
                Ok(_) if left > 0 => left = 0,
                Ok(_) | Err(_) => break,
            }
        }
        if finish {
            self.emit(token, Splitter::finish);
            if let Some(count) = self.limiters.get_mut(&unit).and_then(Limiter::take_suppressed) {
                self.push_suppressed(&unit, count);
            }
        }
    }

    /// The last writer is gone.
    fn close(&mut self, token: u64) {
        self.emit(token, Splitter::finish);
        let Some(stream) = self.streams.remove(&token) else { return };
        self.runs.remove(&(stream.run, token));
        // Closing takes it out of the set by itself.
        drop(stream.pipe);
        if self.limiters.contains_key(&stream.unit)
            && self.streams.values().all(|other| other.unit != stream.unit)
            && let Some(mut limiter) = self.limiters.remove(&stream.unit)
            && let Some(count) = limiter.take_suppressed()
        {
            self.push_suppressed(&stream.unit, count);
        }
    }

    /// Reads again from pipes that were left for which there is room now, or for which there was none for too long.
    fn resume(&mut self) {
        let now = Instant::now();
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|token| !self.resume_one(*token, now));
        self.paused = paused;
    }

    /// Whether the stream is in the set again, or gone.
    fn resume_one(&mut self, token: u64, now: Instant) -> bool {
        let Some(stream) = self.streams.get_mut(&token) else { return true };
        let Some(until) = stream.paused else { return true };
        let room = self.outbox.has_room(&stream.unit, false);
        if !room && now < until {
            return false;
        }
        match self.epoll.add(&stream.pipe, token) {
            Ok(()) => {
                stream.paused = None;
                stream.dropping = !room;
                true
            }
            Err(_) => {
                // No memory for it now: tried again soon.
                stream.paused = Some(now + PATIENCE);
                false
            }
        }
    }

    /// When the next thing is due that no descriptor tells.
    fn deadline(&self) -> Option<Instant> {
        let paused = self.paused.iter().filter_map(|token| self.streams.get(token)?.paused);
        paused.chain(self.limiters.values().filter_map(Limiter::due)).min()
    }

    fn tell_suppressed(&mut self, now: Instant) {
        let due =
            |(unit, limiter): (&UnitName, &mut Limiter)| limiter.advance(now).map(|n| (unit.clone(), n));
        let told: Vec<_> = self.limiters.iter_mut().filter_map(due).collect();
        for (unit, count) in told {
            self.push_suppressed(&unit, count);
        }
    }

    fn push_suppressed(&self, unit: &UnitName, count: u64) {
        let mut chunk = Chunk::new(None);
        write_suppressed(&mut chunk, &stamp::format(super::now().0), count);
        self.outbox.push(unit, chunk);
    }
}

fn write_suppressed(chunk: &mut Chunk, stamp: &[u8; stamp::LENGTH], count: u64) {
    let text = format!("{count} lines suppressed by the rate limit");
    entry::write_entry(&mut chunk.bytes, stamp, 4, Origin::Manager, Ending::Newline, text.as_bytes());
    chunk.lines += 1;
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::super::outbox::{TOTAL_BYTES, Work};
    use super::*;

    /// More than there is room for.
    const UNITS: u128 = 20;

    #[test]
    fn a_pipe_that_is_full_of_lines_holds_more_from_then_on() {
        let waker = Arc::new(Waker::new().unwrap());
        let outbox = Arc::new(Outbox::new(Arc::clone(&waker)));
        let orders = Orders { received: mpsc::channel().1, woken: Arc::default() };
        let mut reader = Reader::new(waker, orders, outbox, 100, None).unwrap();
        let (read, mut write) = io::pipe().unwrap();
        descriptor::set_nonblocking(&write).unwrap();
        let mut fill = || {
            let line = [b"x".repeat(99), b"\n".to_vec()].concat();
            let written = (0..).take_while(|_| write.write_all(&line).is_ok()).count();
            written * line.len()
        };
        reader.attach(
            UnitName::parse("u.service").unwrap(),
            InvocationId(1),
            read.into(),
            LineRules::default(),
        );
        let before = fill();
        // Pages of 40 lines: the pipe is full, and a read brings less than its size.
        assert!(before < READ_BYTES, "{before}");
        reader.read(WAKER + 1);
        assert!(fill() > 2 * before);
    }

    /// A disk that hangs is a writing thread that takes nothing.
    #[test]
    fn a_disk_that_hangs_holds_no_agent_up_and_every_line_is_held_or_counted() {
        let waker = Arc::new(Waker::new().unwrap());
        let outbox = Arc::new(Outbox::new(Arc::clone(&waker)));
        let (commands, received) = mpsc::channel();
        let orders = Orders { received, woken: Arc::default() };
        let reader = Reader::new(Arc::clone(&waker), orders, Arc::clone(&outbox), 100, None).unwrap();
        let thread = std::thread::spawn(move || reader.run());
        let (mut longest, mut written, start) = (Duration::ZERO, 0_u64, Instant::now());
        for number in 0..UNITS {
            let unit = UnitName::parse(&format!("u{number}.service")).unwrap();
            let (read, mut write) = io::pipe().unwrap();
            commands
                .send(Command::Attach(unit, InvocationId(number), read.into(), LineRules::default()))
                .unwrap();
            waker.wake();
            let line = [b"x".repeat(99), b"\n".to_vec()].concat();
            for _ in 0..30_000 {
                let before = Instant::now();
                write.write_all(&line).unwrap();
                longest = longest.max(before.elapsed());
                written += 1;
            }
        }
        assert!(longest < Duration::from_secs(1), "held up for {longest:?}");
        // 20 times 200 ms of patience and 600,000 writes; not 200 ms for each 64 KiB, which would be 180 s.
        assert!(start.elapsed() < Duration::from_secs(60), "slowed down to {:?}", start.elapsed());
        commands.send(Command::Stop).unwrap();
        waker.wake();
        thread.join().unwrap();
        let (mut held, mut counted, mut bytes) = (0, 0, 0);
        while let Work::Write(_, mut ring) = outbox.next(None) {
            bytes += ring.bytes();
            while let Some(chunk) = ring.pop() {
                held += chunk.lines;
                counted += chunk.dropped_before;
            }
        }
        assert_eq!(held + counted, written);
        assert!(
            counted > 0 && bytes <= TOTAL_BYTES + UNITS as usize * 2 * READ_BYTES,
            "{counted} lines counted, {bytes} bytes held"
        );
    }
}
