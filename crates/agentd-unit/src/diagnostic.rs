//! What is wrong with a file, where, and what to do about it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::source::SourceFile;

/// The longest source line that a report shows around its place, in bytes to each side.
const SHOWN: usize = 200;

/// Whether the unit can be used all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can; `status` shows the text.
    Warning,
    /// It cannot: the unit does not start.
    Error,
}

/// One finding. `Display` is the one-line form for logs: `path:line:col: [Service] MemoryMax: what is wrong`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the unit can be used all the same.
    pub severity: Severity,
    /// The file it was found in.
    pub source: Arc<SourceFile>,
    /// The place in it, in bytes.
    pub span: Range<usize>,
    /// What is wrong, with `[Section] Key` in front where it concerns one.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    #[must_use]
    pub fn error(source: &Arc<SourceFile>, span: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Error, source: Arc::clone(source), span, message, help: None }
    }

    /// A warning at a place.
    #[must_use]
    pub fn warning(source: &Arc<SourceFile>, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(source, span, message) }
    }

    /// The same with a word on what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    /// Whether the unit cannot be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The report for a person: file, line, column, the source line, a caret and the help; with colours if asked.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let level = if self.is_error() { Level::ERROR } else { Level::WARNING };
        let (excerpt, line, span) = self.excerpt();
        let path = self.source.path().display().to_string();
        let snippet = Snippet::source(excerpt)
            .path(path)
            .line_start(line)
            .annotation(AnnotationKind::Primary.span(span));
        let message = printable(&self.message);
        let mut group = level.primary_title(message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(printable(help)));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// The line of the place, cut where it is very long, with its number and the place within the excerpt.
    fn excerpt(&self) -> (&str, usize, Range<usize>) {
        let text = self.source.text();
        let span = self.source.clamp(&self.span);
        let (line, _) = self.source.line_column(span.start);
        let line_start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[span.start..].find('\n').map_or(text.len(), |length| span.start + length);
        let from = self.source.clamp(&(span.start.saturating_sub(SHOWN).max(line_start)..line_end)).start;
        let until = self.source.clamp(&(from..line_end.min(span.start + SHOWN))).end;
        (&text[from..until], line, span.start - from..span.end.min(until).max(span.start) - from)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.line_column(self.span.start);
        write!(f, "{}:{line}:{column}: {}", self.source.path().display(), printable(&self.message))?;
        match &self.help {
            Some(help) => write!(f, " ({})", printable(help)),
            None => Ok(()),
        }
    }
}

/// The longest text of a file that a message repeats, in characters.
const QUOTED: usize = 60;

/// A piece of a file in quotes, for a message: cut where it is long, control characters escaped.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("'{}'", printable(&short))
}

/// The text without characters that would move a terminal's cursor or change its colours.
fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// The candidate nearest to what was written, if it is near enough to be meant.
#[must_use]
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.chars().count() > 64 {
        return None;
    }
    let lower = written.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(steps, candidate)| {
            *steps <= (candidate.chars().count().min(lower.chars().count()) / 3).max(1)
        })
        .min_by_key(|(steps, candidate)| (*steps, candidate.len(), *candidate))
        .map(|(_, candidate)| candidate)
}

/// How many characters must be put in, taken out, changed or swapped with their neighbour (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}
