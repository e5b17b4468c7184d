//! From the bytes of a pipe to lines: what journald does with a service's standard output, systemd-journald.service(8).
//!
//! A line ends with a newline (a carriage return before it goes) or with a NUL byte. A line that is longer than
//! allowed is cut, between two characters where it is UTF-8. `<N>` at its beginning is its priority, sd-daemon(3).
//!
//! # Invariants
//! - What a splitter holds is never longer than one line may be.
//! - A line is either emitted whole, or in pieces of which all but the last say that they continue.

use super::entry::{self, Ending, Origin, write_entry};
use super::rate::{Limiter, RateLimit};
use super::ring::Chunk;
use super::stamp;

/// What a unit says of its lines, systemd.exec(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRules {
    /// `LogLevelMax`: lines whose priority is a larger number are dropped.
    pub level_max: Option<u8>,
    /// `SyslogLevel`: the priority of lines that name none.
    pub level: u8,
    /// `SyslogLevelPrefix`: whether lines can name one.
    pub prefixes: bool,
    /// `LogRateLimitIntervalSec`, `LogRateLimitBurst`. None: as the log has it for all.
    pub rate: Option<RateLimit>,
}

impl Default for LineRules {
    fn default() -> Self {
        Self { level_max: None, level: DEFAULT_PRIORITY, prefixes: true, rate: None }
    }
}

/// The priority of a line that names none: info, the default of `SyslogLevel=`, systemd.exec(5).
const DEFAULT_PRIORITY: u8 = 6;

/// Where lines go.
pub(crate) struct Target<'a> {
    /// The time of all lines of one read.
    stamp: &'a [u8; stamp::LENGTH],
    /// What stands before a line that says nothing of itself.
    head: [u8; entry::HEAD_LENGTH],
    /// They are appended here.
    chunk: &'a mut Chunk,
    /// Counts them, and says which are too many.
    limiter: Option<&'a mut Limiter>,
}

impl<'a> Target<'a> {
    /// Lines of one read, that came at the time of the stamp, go to the end of the chunk; those that name no priority
    /// have that of the splitter.
    pub(crate) fn new(
        splitter: &Splitter,
        stamp: &'a [u8; stamp::LENGTH],
        chunk: &'a mut Chunk,
        limiter: Option<&'a mut Limiter>,
    ) -> Self {
        Self { stamp, head: entry::head(stamp, splitter.rules.level), chunk, limiter }
    }

    /// A line with its newline, as it was read.
    fn emit_plain(&mut self, line: &[u8]) {
        if self.limiter.as_mut().is_none_or(|limiter| limiter.admit()) {
            self.chunk.bytes.extend_from_slice(&self.head);
            self.chunk.bytes.extend_from_slice(line);
            self.chunk.lines += 1;
        }
    }

    fn emit(&mut self, priority: u8, ending: Ending, text: &[u8]) {
        if self.limiter.as_mut().is_none_or(|limiter| limiter.admit()) {
            write_entry(&mut self.chunk.bytes, self.stamp, priority, Origin::Output, ending, text);
            self.chunk.lines += 1;
        }
    }
}

/// The unfinished line of one pipe.
#[derive(Debug)]
pub(crate) struct Splitter {
    max_line: usize,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The priority of a line of which pieces were emitted already.
    continued: Option<u8>,
    rules: LineRules,
}

impl Splitter {
    /// `max_line`: the longest text of one entry, in bytes; at least 4, the longest UTF-8 character.
    pub(crate) fn new(max_line: usize) -> Self {
        Self { max_line: max_line.max(4), partial: Vec::new(), continued: None, rules: LineRules::default() }
    }

    /// Keeps to these rules.
    pub(crate) fn with(mut self, rules: LineRules) -> Self {
        self.rules = rules;
        self
    }

    /// Goes on with a line that another one began: its text, and its priority where pieces of it were emitted already.
    pub(crate) fn going_on(&mut self, text: Vec<u8>, continued: Option<u8>) {
        (self.partial, self.continued) = (text, continued);
    }

    /// The line that has no end yet, if there is one, as [`Splitter::going_on`] takes it.
    pub(crate) fn unfinished(&self) -> Option<(&[u8], Option<u8>)> {
        let is_there = !self.partial.is_empty() || self.continued.is_some();
        is_there.then_some((&self.partial, self.continued))
    }

    /// Whether lines of this priority are kept.
    fn keeps(&self, priority: u8) -> bool {
        self.rules.level_max.is_none_or(|most| priority <= most)
    }

    /// Takes what was read and emits the lines that are complete.
    pub(crate) fn feed(&mut self, mut input: &[u8], target: &mut Target<'_>) {
        while let Some((end, ending)) = find_end(input) {
            let (line, rest) = (&input[..end], &input[end + 1..]);
            if self.is_plain(line, ending) {
                target.emit_plain(&input[..=end]);
            } else if self.partial.is_empty() {
                self.line(line, ending, target);
            } else {
                self.extend(line, target);
                let partial = std::mem::take(&mut self.partial);
                self.line(&partial, ending, target);
            }
            input = rest;
        }
        self.extend(input, target);
    }

    /// Whether a line goes out as it came, as nearly all do: this is what a flood of lines costs.
    fn is_plain(&self, line: &[u8], ending: Ending) -> bool {
        self.partial.is_empty()
            && self.continued.is_none()
            && ending == Ending::Newline
            && line.len() <= self.max_line
            && line.first() != Some(&b'<')
            && line.last() != Some(&b'\r')
            && self.keeps(self.rules.level)
    }

    /// The writer is gone or done: emits the line that has no end, if there is one.
    pub(crate) fn finish(&mut self, target: &mut Target<'_>) {
        if self.partial.is_empty() {
            self.continued = None;
        } else {
            let partial = std::mem::take(&mut self.partial);
            self.line(&partial, Ending::Eof, target);
        }
    }

    /// Adds to the unfinished line; what is too long for one entry is emitted.
    fn extend(&mut self, mut input: &[u8], target: &mut Target<'_>) {
        while self.partial.len() + input.len() > self.max_line {
            let room = self.max_line.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&input[..room]);
            input = &input[room..];
            let mut partial = std::mem::take(&mut self.partial);
            let cut = character_boundary(&partial);
            self.piece(&partial[..cut], target);
            partial.drain(..cut);
            self.partial = partial;
        }
        self.partial.extend_from_slice(input);
    }

    /// A line, or the last piece of one, with its end.
    fn line(&mut self, mut text: &[u8], ending: Ending, target: &mut Target<'_>) {
        if ending == Ending::Newline {
            text = text.strip_suffix(b"\r").unwrap_or(text);
        }
        while text.len() > self.max_line {
            let (piece, rest) = text.split_at(character_boundary(&text[..self.max_line]));
            self.piece(piece, target);
            text = rest;
        }
        let (priority, text) = self.priority(text);
        self.continued = None;
        // A megabyte of zeros is no line, and must not become a million of them.
        if !(text.is_empty() && ending == Ending::Nul) && self.keeps(priority) {
            target.emit(priority, ending, text);
        }
    }

    fn piece(&mut self, text: &[u8], target: &mut Target<'_>) {
        let (priority, text) = self.priority(text);
        self.continued = Some(priority);
        if self.keeps(priority) {
            target.emit(priority, Ending::Continues, text);
        }
    }

    /// The priority and the text without its prefix. Only the beginning of a line can have one.
    fn priority<'t>(&self, text: &'t [u8]) -> (u8, &'t [u8]) {
        match (self.continued, text) {
            (Some(priority), _) => (priority, text),
            (None, _) if !self.rules.prefixes => (self.rules.level, text),
            (None, [b'<', digit @ b'0'..=b'7', b'>', rest @ ..])
            | (None, [b'<', b'0', digit @ b'0'..=b'7', b'>', rest @ ..])
            | (None, [b'<', b'0', b'0', digit @ b'0'..=b'7', b'>', rest @ ..]) => (digit - b'0', rest),
            (None, _) => (self.rules.level, text),
        }
    }
}

/// A line that somebody has whole, in pieces of at most `max_line` bytes.
pub(crate) fn pieces(mut line: &[u8], max_line: usize) -> Vec<(&[u8], Ending)> {
    let mut pieces = Vec::new();
    while line.len() > max_line {
        let (piece, rest) = line.split_at(character_boundary(&line[..max_line]));
        pieces.push((piece, Ending::Continues));
        line = rest;
    }
    pieces.push((line, Ending::Newline));
    pieces
}

/// The end of the first line and what ends it.
fn find_end(input: &[u8]) -> Option<(usize, Ending)> {
    let at = memchr::memchr2(b'\n', 0, input)?;
    Some((at, if input[at] == 0 { Ending::Nul } else { Ending::Newline }))
}

/// Where to cut `text` so that no UTF-8 character is cut: at its end, or up to three bytes before it.
fn character_boundary(text: &[u8]) -> usize {
    let lead = text.iter().rposition(|b| b & 0xc0 != 0x80).unwrap_or(0);
    let length = match text.get(lead) {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => return text.len(),
    };
    if text.len() - lead < length && lead > 0 { lead } else { text.len() }
}

#[cfg(test)]
mod tests {
    use super::super::entry::entries;
    use super::*;

    /// The lines of `inputs`, each one read, then the end: priority, ending, text.
    fn lines(max_line: usize, inputs: &[&[u8]]) -> Vec<(u8, Ending, String)> {
        let mut splitter = Splitter::new(max_line);
        let mut chunk = Chunk::new(None);
        let stamp = stamp::format(0);
        let mut target = Target::new(&splitter, &stamp, &mut chunk, None);
        for input in inputs {
            splitter.feed(input, &mut target);
            assert!(splitter.partial.len() <= max_line, "bounded");
        }
        splitter.finish(&mut target);
        let entries = entries(&chunk.bytes, None);
        assert_eq!(entries.len() as u64, chunk.lines);
        entries
            .into_iter()
            .map(|e| (e.priority, e.ending, String::from_utf8_lossy(&e.text).into_owned()))
            .collect()
    }

    #[test]
    fn lines_end_as_journald_has_it() {
        use Ending::{Eof, Newline, Nul};
        for (case, input, expected) in [
            ("two lines", &b"a\nb\n"[..], vec![(6, Newline, "a"), (6, Newline, "b")]),
            ("last words", b"a\nb", vec![(6, Newline, "a"), (6, Eof, "b")]),
            (
                "an empty line stays",
                b"a\n\nb\n",
                vec![(6, Newline, "a"), (6, Newline, ""), (6, Newline, "b")],
            ),
            ("carriage returns", b"a\r\nb\rc\r\n", vec![(6, Newline, "a"), (6, Newline, "b\rc")]),
            ("NUL ends a line", b"a\0b\n", vec![(6, Nul, "a"), (6, Newline, "b")]),
            ("zeros are no lines", b"\0\0\0a\n\0\0", vec![(6, Newline, "a")]),
            ("not UTF-8", b"\xff\n", vec![(6, Newline, "\u{fffd}")]),
            ("nothing", b"", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(p, e, t)| (p, e, t.to_owned())).collect();
            assert_eq!(lines(100, &[input]), expected, "{case}");
            let bytes: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(lines(100, &bytes), expected, "{case}, a byte a read");
        }
    }

    #[test]
    fn a_priority_prefix_is_read_as_sd_daemon_has_it() {
        for (input, priority, text) in [
            ("<3>bad", 3, "bad"),
            ("<03>bad", 3, "bad"),
            ("<003>bad", 3, "bad"),
            ("<7>", 7, ""),
            ("<8>no priority", 6, "<8>no priority"),
            ("<13>no facility", 6, "<13>no facility"),
            (" <3>not at the beginning", 6, " <3>not at the beginning"),
            ("<3", 6, "<3"),
        ] {
            let line = format!("{input}\n");
            assert_eq!(lines(100, &[line.as_bytes()]), [(priority, Ending::Newline, text.to_owned())]);
        }
    }

    #[test]
    fn a_long_line_is_cut_and_keeps_its_priority() {
        use Ending::{Continues, Eof, Newline};
        for (input, expected) in [
            (
                &b"<3>abcdefghijk\n"[..],
                vec![(3, Continues, "abcde"), (3, Continues, "fghijk"), (3, Newline, "")],
            ),
            (b"abcdefgh\n", vec![(6, Newline, "abcdefgh")]),
            (b"abcdefghi\n", vec![(6, Continues, "abcdefgh"), (6, Newline, "i")]),
            (b"abcdefghi", vec![(6, Continues, "abcdefgh"), (6, Eof, "i")]),
        ] {
            let got = lines(8, &[input]);
            let texts: String = got.iter().map(|(_, _, t)| t.as_str()).collect();
            let wanted: String = expected.iter().map(|(_, _, t)| *t).collect();
            assert_eq!(texts, wanted, "nothing is lost");
            assert!(got.iter().all(|(p, _, _)| *p == expected[0].0), "{got:?}");
            assert_eq!(got.last().unwrap().1, expected.last().unwrap().1, "{got:?}");
            let bytes: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(lines(8, &bytes), got, "the cut does not depend on the reads");
        }
    }

    #[test]
    fn a_cut_keeps_characters_whole() {
        let text = "ä€𝄞".repeat(50);
        for max_line in 4..20 {
            let got = lines(max_line, &[text.as_bytes(), b"\n"]);
            assert!(got.iter().all(|(_, _, t)| !t.contains('\u{fffd}')), "{max_line}: {got:?}");
            assert_eq!(got.iter().map(|(_, _, t)| t.as_str()).collect::<String>(), text);
        }
    }
}
