//! Messages as lines of text: standard error, the console, the kernel's log.

use std::borrow::Cow;
use std::io::{self, Write};

use agentd_linux::kmsg::Kmsg;

use super::message::Message;
use super::queue::{Outlet, Refusal};

/// Standard error, for people and for whatever started us: `2026-11-29T12:00:00.123456Z warning web.service: …`.
pub(crate) struct Stream<W> {
    out: W,
    /// With time and level.
    stamped: bool,
    /// Whole lines that are not written yet.
    kept: Vec<u8>,
}

/// Up to this many bytes are written at once: as many as a pipe takes whole, so that lines of others come between ours
/// and never into them, pipe(7) PIPE_BUF.
const KEPT_BYTES: usize = 4096;

impl<W: Write + Send + 'static> Stream<W> {
    /// Lines with time and level.
    pub(crate) fn stamped(out: W) -> Self {
        Self { out, stamped: true, kept: Vec::new() }
    }

    /// Lines for a console, which has the machine's boot around them: `agentd: web.service: …`.
    pub(crate) fn console(out: W) -> Self {
        Self { out, stamped: false, kept: Vec::new() }
    }
}

impl<W: Write + Send + 'static> Outlet for Stream<W> {
    fn deliver(&mut self, message: &Message) -> Result<(), Refusal> {
        let stamp = crate::log::stamp::format(message.realtime.0);
        let head: &[&[u8]] = match self.stamped {
            true => &[&stamp, b" ", message.level.as_str().as_bytes(), b" "],
            false => &[b"agentd: "],
        };
        // A terminal that is not a console needs no carriage return; a raw one would need it, and loses nothing by it.
        let end: &[u8] = if self.stamped { b"\n" } else { b"\r\n" };
        let line = message.line();
        let text = printable(&line);
        let around: usize = head.iter().map(|part| part.len()).sum::<usize>() + end.len();
        let bytes: usize = text.lines().map(|line| around + line.len()).sum();
        if self.kept.len() + bytes > KEPT_BYTES {
            self.flush()?;
        }
        for line in text.lines() {
            head.iter().chain(&[line.as_bytes(), end]).for_each(|part| self.kept.extend_from_slice(part));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Refusal> {
        while !self.kept.is_empty() {
            match self.out.write(&self.kept) {
                Ok(count) if count > 0 => drop(self.kept.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Refusal::Later),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nobody is there to read it, and nowhere is left to say so.
                Err(_) | Ok(_) => self.kept.clear(),
            }
        }
        if self.kept.capacity() > 2 * KEPT_BYTES {
            self.kept = Vec::new();
        }
        Ok(())
    }
}

/// The kernel's log.
pub(crate) struct KernelLog(pub(crate) Kmsg);

impl Outlet for KernelLog {
    fn deliver(&mut self, message: &Message) -> Result<(), Refusal> {
        let tag = format!("agentd[{}]", std::process::id());
        for line in printable(&message.line()).lines() {
            self.0.write(message.level.number(), &tag, line).map_err(Refusal::Never)?;
        }
        Ok(())
    }
}

/// The text with every control character but newline spelled out: a name or a status text of an agent must not steer
/// the terminal that shows it.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}
