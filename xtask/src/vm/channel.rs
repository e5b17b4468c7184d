//! Commands for the guest, over its second serial line.
//!
//! The guest runs `guest-console.sh` there. We send `ID BASE64(command)`, it runs the command in a shell and answers
//! `ID EXIT-CODE BASE64(output)`, one line each.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base64ct::{Base64, Encoding};

use super::feed::Feed;
use crate::error::{During, Error, Result};

/// What the guest says when its side is up.
const READY: &str = "TEST-CONSOLE-READY";

/// How a command in the guest went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code.
    pub code: u8,
    /// What it wrote to both outputs, without the line breaks at the end.
    pub text: String,
}

/// The host's end of the line.
pub struct Channel {
    stream: UnixStream,
    feed: Feed,
    next_id: u64,
}

impl Channel {
    /// Takes over a connection to the guest's second serial line.
    ///
    /// # Errors
    /// The descriptor cannot be copied.
    pub fn new(stream: UnixStream) -> Result<Self> {
        let reader = stream.try_clone().during(|| "cannot copy the socket of ttyS1".into())?;
        Ok(Self { stream, feed: Feed::new("command line (ttyS1)", reader, false), next_id: 1 })
    }

    /// Waits until the guest takes commands.
    ///
    /// # Errors
    /// It does not, at the deadline.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        self.feed.wait_for(0, READY, timeout).map(|_| ())
    }

    /// Runs a command in the guest's shell and waits for its end.
    ///
    /// # Errors
    /// The guest does not answer in time, or is gone.
    pub fn run(&mut self, command: &str, timeout: Duration) -> Result<Answer> {
        self.send(command)?;
        let id = self.next_id - 1;
        let line = self.feed.wait(0, timeout, &format!("the end of {command:?}"), |text| {
            text.lines().find_map(|line| line.trim_end().strip_prefix(&format!("{id} ")).map(str::to_owned))
        })?;
        answer(&line).ok_or_else(|| Error::new(format!("the guest answers {command:?} with {line:?}")))
    }

    /// Hands a command to the guest without waiting: for those that end it.
    ///
    /// # Errors
    /// The line is closed.
    pub fn send(&mut self, command: &str) -> Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        writeln!(self.stream, "{id} {}", Base64::encode_string(command.as_bytes()))
            .during(|| format!("cannot send {command:?} to the guest"))
    }
}

fn answer(line: &str) -> Option<Answer> {
    let (code, text) = line.split_once(' ').unwrap_or((line, ""));
    let bytes = Base64::decode_vec(text).ok()?;
    Some(Answer { code: code.parse().ok()?, text: String::from_utf8_lossy(&bytes).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_code_and_a_text() {
        for (case, line, expected) in [
            ("text", "0 YcOkCg==", Some((0, "aä\n"))),
            ("no output", "3 ", Some((3, ""))),
            ("no output, no space", "3", Some((3, ""))),
            ("no code", "x YQ==", None),
            ("a torn text", "0 YQ=", None),
        ] {
            let expected = expected.map(|(code, text): (u8, &str)| Answer { code, text: text.to_owned() });
            assert_eq!(answer(line), expected, "{case}");
        }
    }
}
