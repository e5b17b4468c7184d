//! Manual pages in the little of man(7) that ours need: headings, paragraphs, lists with tags, and texts as they are.

use std::fmt::Write;

/// The day that stands at the foot of each page: that of the last change of this text that a reader would notice.
const DATE: &str = "2026-11-30";
/// How long a line of the source is at most, in bytes; more is bad style to mandoc(1).
const WIDTH: usize = 78;

/// A page that is being written.
#[derive(Debug, Clone)]
pub struct Page(String);

impl Page {
    /// A page with its name, the section of the manual, and one line on what it is about.
    #[must_use]
    pub fn new(name: &str, section: u8, about: &str) -> Self {
        let mut page = Self(format!(
            ".\\\" Made from the code; the tests say how, and fail when it is stale.\n\
             .TH {} {section} {DATE} \"agentd {}\" \"agentd\"\n",
            escape(&name.to_uppercase()),
            env!("CARGO_PKG_VERSION"),
        ));
        page.heading("NAME");
        page.line(&format!("{} \\- {}", escape(name), escape(about)));
        page
    }

    /// A heading of the page.
    pub fn heading(&mut self, title: &str) {
        self.line(&format!(".SH {}", quoted(title)));
    }

    /// A heading below one.
    pub fn subheading(&mut self, title: &str) {
        self.line(&format!(".SS {}", quoted(title)));
    }

    /// A paragraph. Words between backticks are set in bold.
    pub fn paragraph(&mut self, text: &str) {
        self.begin();
        self.fill(text);
    }

    /// One item of a list: what it is about, and what is said of it.
    pub fn item(&mut self, tag: &str, text: &str) {
        self.line(".TP");
        self.line(&inline(tag));
        self.fill(text);
    }

    /// Lines as they are, such as a file.
    pub fn verbatim(&mut self, text: &str) {
        self.begin();
        self.line(".nf\n.RS 4");
        text.lines().for_each(|line| self.line(&at_line_start(&escape(line))));
        self.line(".RE\n.fi");
    }

    /// The page's source.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }

    /// Behind a heading a paragraph begins by itself.
    fn begin(&mut self) {
        if !self.0.lines().last().is_some_and(|line| line.starts_with(".S")) {
            self.line(".PP");
        }
    }

    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _written = writeln!(self.0, "{line}");
    }

    fn fill(&mut self, text: &str) {
        let mut line = String::new();
        for word in inline(text).split_ascii_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
                self.line(&at_line_start(&line));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&at_line_start(&line));
        }
    }
}

/// A text whose words between backticks are bold.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('`').enumerate() {
        match place % 2 {
            0 => out.push_str(&escape(part)),
            _ => {
                out.push_str("\\fB");
                // A bold text is one word, so that no line ends within it in bold.
                out.push_str(&escape(part).replace(' ', "\\~"));
                out.push_str("\\fR");
            }
        }
    }
    out
}

/// A text in which no character means anything to roff, and all are ASCII.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            c if c.is_ascii() => out.push(c),
            c => {
                let _written = write!(out, "\\[u{:04X}]", u32::from(c));
            }
        }
    }
    out
}

/// A line that begins with a dot would be a request.
fn at_line_start(line: &str) -> String {
    if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() }
}

/// An argument of a request.
fn quoted(text: &str) -> String {
    let text = escape(text).replace('"', "\\(dq");
    if text.contains(' ') { format!("\"{text}\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_means_anything_to_roff() {
        let mut page = Page::new("a.b", 5, "things - and others");
        page.heading("TWO WORDS");
        page.paragraph(".TH is `no request` of 'ours' \\n");
        page.item("`Key`=\u{2026}", "a value");
        page.verbatim(".x\n  -y");
        let text = page.finish();
        for line in [
            ".TH A.B 5 ",
            "a.b \\- things \\- and others",
            ".SH \"TWO WORDS\"",
            "\\&.TH is \\fBno\\~request\\fR of \\(aqours\\(aq \\en",
            "\\fBKey\\fR=\\[u2026]",
            "\\&.x",
            "  \\-y",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "{line}\n{text}");
        }
        assert!(text.is_ascii());
    }

    #[test]
    fn lines_are_no_longer_than_mandoc_likes() {
        let mut page = Page::new("a", 1, "b");
        page.paragraph(&"word ".repeat(200));
        assert!(page.finish().lines().all(|line| line.len() <= WIDTH));
    }
}
