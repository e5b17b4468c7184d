//! What a program writes, read by a thread as it comes and kept whole, so that anyone can wait for a part of it.
//!
//! # Invariants
//!
//! - Nothing is lost: waiting looks at what came before as well, from the place that the waiter names.
//! - Waiting wakes by the arrival, not by looking now and then; it ends at its deadline or with the stream.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    ended: bool,
}

/// A stream that is being read. Copies share it.
#[derive(Debug, Clone)]
pub struct Feed {
    shared: Arc<(Mutex<State>, Condvar)>,
    name: &'static str,
}

impl Feed {
    /// Reads `stream` to its end in a thread of its own. `name` is for messages. With `shown` all of it goes to our
    /// standard output as well, as it comes.
    pub fn new(name: &'static str, mut stream: impl Read + Send + 'static, shown: bool) -> Self {
        let feed = Self { shared: Arc::default(), name };
        let writer = feed.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match stream.read(&mut buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    // A reset by the other side ends the stream as its closing does.
                    Ok(0) | Err(_) => break,
                    Ok(count) => {
                        if shown {
                            show(&buffer[..count]);
                        }
                        writer.lock().bytes.extend_from_slice(&buffer[..count]);
                    }
                }
                writer.shared.1.notify_all();
            }
            writer.lock().ended = true;
            writer.shared.1.notify_all();
        });
        feed
    }

    /// All that came so far.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// How many bytes came so far: a place to wait from.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.lock().bytes.len()
    }

    /// Waits until `found` finds something in what came after `from`. Only whole lines are shown to it, and the last
    /// one when the stream has ended.
    ///
    /// # Errors
    /// The deadline passed or the stream ended first; the message ends with the last lines that came.
    pub fn wait<T>(
        &self,
        from: usize,
        timeout: Duration,
        what: &str,
        mut found: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            let new = state.bytes.get(from..).unwrap_or_default();
            let whole = if state.ended { new.len() } else { end_of_lines(new) };
            if let Some(value) = found(&String::from_utf8_lossy(&new[..whole])) {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                let why = if state.ended { "it ended" } else { "time is up" };
                let last = tail(&String::from_utf8_lossy(&state.bytes));
                drop(state);
                return Err(Error::new(format!(
                    "waiting on the {} for {what}: {why} after {timeout:?}; its last lines:\n{last}",
                    self.name
                )));
            }
            state = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a line that contains `needle` and returns it.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_for(&self, from: usize, needle: &str, timeout: Duration) -> Result<String> {
        self.wait(from, timeout, &format!("{needle:?}"), |text| {
            text.lines().find(|line| line.contains(needle)).map(str::to_owned)
        })
    }

    /// Waits until the other side has closed the stream.
    ///
    /// # Errors
    /// It has not, at the deadline.
    pub fn wait_end(&self, timeout: Duration) -> Result<()> {
        let (state, _) = self
            .shared
            .1
            .wait_timeout_while(self.lock(), timeout, |state| !state.ended)
            .unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return Ok(());
        }
        Err(Error::new(format!("the {} is still open after {timeout:?}", self.name)))
    }

    /// Waits until the other side has closed the stream, however long that takes.
    pub fn wait_end_forever(&self) {
        let ended = self.shared.1.wait_while(self.lock(), |state| !state.ended);
        drop(ended);
    }

    /// A reader that panicked leaves bytes that are still true.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A terminal that is gone is no reason to stop reading.
fn show(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).ok();
}

fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// The last lines of a text, for a message.
fn tail(text: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn a_line_is_seen_when_it_is_whole_and_from_the_mark_on() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let feed = Feed::new("pipe", reader, false);
        writer.write_all(b"one ready\ntwo re").unwrap();
        assert_eq!(feed.wait_for(0, "ready", SOON).unwrap(), "one ready");
        let mark = "one ready\n".len();
        writer.write_all(b"ady\n").unwrap();
        assert_eq!(feed.wait_for(mark, "ready", SOON).unwrap(), "two ready");
    }

    #[test]
    fn the_end_is_told_with_the_last_lines() {
        let feed = Feed::new("pipe", &b"last words"[..], false);
        let error = feed.wait_for(0, "never", SOON).unwrap_err().to_string();
        assert!(error.contains("it ended") && error.contains("last words"), "{error}");
        feed.wait_end(SOON).unwrap();
    }

    #[test]
    fn a_deadline_ends_the_waiting() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let feed = Feed::new("pipe", reader, false);
        let error = feed.wait_for(0, "never", Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.contains("time is up"), "{error}");
        assert!(feed.wait_end(Duration::from_millis(1)).is_err());
    }
}
