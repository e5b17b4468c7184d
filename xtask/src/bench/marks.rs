//! The FIFO on which programs tell when their first instruction ran: 16 bytes a mark, see `xtask/bench/driver.c`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use super::PATIENCE;
use crate::error::{During, Error, Result};

/// The tag that ends the reading.
const END: u32 = u32::MAX;

/// A program that told of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub nanoseconds: u64,
    /// Who.
    pub pid: u32,
    tag: u32,
}

/// The reading end. It takes the marks up as they come, so that nobody who writes one waits.
#[derive(Debug)]
pub struct Marks {
    path: PathBuf,
    arrived: Receiver<(Mark, Instant)>,
}

impl Marks {
    /// Makes the FIFO.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn new(path: &Path) -> Result<Self> {
        crate::run::run(Command::new("mkfifo").arg(path))?;
        let cannot = || format!("cannot open {}", path.display());
        // For writing too: so opening waits for nobody, and the end comes only when we say so.
        let mut fifo = File::options().read(true).write(true).open(path).during(cannot)?;
        let (sender, arrived) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 16];
            while fifo.read_exact(&mut bytes).is_ok() {
                let mark = Mark::read(bytes);
                if mark.tag == END || sender.send((mark, Instant::now())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { path: path.to_owned(), arrived })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next mark, and tells when it arrived.
    ///
    /// # Errors
    /// None comes.
    pub fn next(&self) -> Result<(Mark, Instant)> {
        self.arrived
            .recv_timeout(PATIENCE)
            .during(|| "no mark comes: what was to be measured does not run".into())
    }

    /// Waits for this many, and tells when the last one arrived.
    ///
    /// # Errors
    /// Fewer come.
    pub fn all(&self, count: usize) -> Result<Instant> {
        let mut last = None;
        for _ in 0..count {
            last = Some(self.next()?.1);
        }
        last.ok_or_else(|| Error::new("nothing was to be waited for"))
    }
}

impl Mark {
    fn read(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self {
            nanoseconds: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            pid: u32::from_ne_bytes([i, j, k, l]),
            tag: u32::from_ne_bytes([m, n, o, p]),
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // Ends the reading thread; if the FIFO is gone, so is the thread's file soon.
        if let Ok(mut fifo) = File::options().read(true).write(true).open(&self.path) {
            drop(fifo.write_all(&[u8::MAX; 16]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn marks_arrive_in_their_order() {
        let scratch = Scratch::new("marks").unwrap();
        let marks = Marks::new(&scratch.path().join("fifo")).unwrap();
        let mut fifo = File::options().write(true).open(marks.path()).unwrap();
        for pid in [7_u32, 8] {
            let mut bytes = 5_u64.to_ne_bytes().to_vec();
            bytes.extend(pid.to_ne_bytes());
            bytes.extend([0; 4]);
            fifo.write_all(&bytes).unwrap();
        }
        assert_eq!(marks.next().unwrap().0, Mark { nanoseconds: 5, pid: 7, tag: 0 });
        assert_eq!(marks.next().unwrap().0.pid, 8);
    }
}
