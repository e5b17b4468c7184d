//! Messages as lines of text: standard error, the console, the kernel's log.

use std::io::{self, Write};

use agentd_linux::kmsg::Kmsg;

use super::message::Message;
use super::queue::{Outlet, Refusal};

/// Standard error, for people and for whatever started us: `2026-11-29T12:00:00.123456Z warning web.service: …`.
pub(crate) struct Stream<W> {
    out: W,
    /// With time and level.
    stamped: bool,
}

impl<W: Write + Send + 'static> Stream<W> {
    /// Lines with time and level.
    pub(crate) fn stamped(out: W) -> Self {
        Self { out, stamped: true }
    }

    /// Lines for a console, which has the machine's boot around them: `agentd: web.service: …`.
    pub(crate) fn console(out: W) -> Self {
        Self { out, stamped: false }
    }
}

impl<W: Write + Send + 'static> Outlet for Stream<W> {
    fn deliver(&mut self, message: &Message) -> Result<(), Refusal> {
        let head = if self.stamped {
            let stamp = crate::log::stamp::format(message.realtime.0);
            format!("{} {} ", String::from_utf8_lossy(&stamp), message.level)
        } else {
            "agentd: ".to_owned()
        };
        // A terminal that is not a console needs no carriage return; a raw one would need it, and loses nothing by it.
        let end = if self.stamped { "\n" } else { "\r\n" };
        let lines: String =
            printable(&message.line()).lines().map(|line| format!("{head}{line}{end}")).collect();
        match self.out.write_all(lines.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Refusal::Later),
            // Nobody is there to read it, and nowhere is left to say so.
            Err(_) | Ok(()) => Ok(()),
        }
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
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
