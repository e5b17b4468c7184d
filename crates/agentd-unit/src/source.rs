//! The text of one file and places in it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::name::UnitType;

/// One file as it was read: where it lay and what it said. Places in it are byte ranges of `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    path: Arc<Path>,
    /// Units made of the same text (instances, drop-ins of a type) share it.
    text: Arc<str>,
    origin: Origin,
    syntax: Syntax,
    /// Where the bytes were no UTF-8 and the text has U+FFFD instead.
    broken: Box<[usize]>,
}

/// The language that a file is written in: its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// TOML: `NAME.TYPE.toml`.
    #[default]
    Toml,
    /// systemd.syntax(7): `NAME.TYPE`, and `*.conf` for drop-ins.
    Systemd,
}

impl Syntax {
    fn of(path: &Path) -> Self {
        let path = path.as_os_str().as_encoded_bytes();
        let ending = path.rsplit(|byte| matches!(byte, b'.' | b'/')).next().unwrap_or_default();
        if ending == b"conf" || UnitType::ALL.iter().any(|unit_type| unit_type.as_str().as_bytes() == ending)
        {
            Self::Systemd
        } else {
            Self::Toml
        }
    }
}

/// Who wrote a file, and so what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A person: a unit file or a drop-in of the unit tiers. Every key is allowed.
    #[default]
    Unit,
    /// The manager itself, below `control/`: it needs no signature and so may set resource limits alone.
    Control,
}

impl SourceFile {
    /// A file of the unit tiers.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self::shared(path.into().into(), text.into().into())
    }

    /// A file of the unit tiers from its bytes. Where they are no UTF-8 the text has U+FFFD, and reading the file finds
    /// an error there.
    #[must_use]
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: &[u8]) -> Self {
        let (mut text, mut broken) = (String::with_capacity(bytes.len()), Vec::new());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                broken.push(text.len());
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Self { broken: broken.into(), ..Self::new(path, text) }
    }

    /// A file of the unit tiers whose path and text others have too.
    #[must_use]
    pub(crate) fn shared(path: Arc<Path>, text: Arc<str>) -> Self {
        let syntax = Syntax::of(&path);
        Self { path, text, origin: Origin::Unit, syntax, broken: Box::default() }
    }

    /// The language of the file, told by its name: `.conf` and the types of units are systemd's.
    #[must_use]
    pub const fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The bytes of the text at which the file was no UTF-8, in order.
    #[must_use]
    pub fn broken(&self) -> &[usize] {
        &self.broken
    }

    /// The same file with another writer.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Where it lay.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it lay, to keep.
    pub(crate) const fn shared_path(&self) -> &Arc<Path> {
        &self.path
    }

    /// What it said.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Who wrote it.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Line and column of a byte, both from 1; columns count characters. Behind the end: the end.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.floor(offset)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// A range that lies within the text and on character boundaries.
    #[must_use]
    pub fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.floor(span.start);
        start..self.floor(span.end).max(start)
    }

    fn floor(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let file = SourceFile::new("a", "é=1\nzwei\n");
        for (offset, place) in
            [(0, (1, 1)), (2, (1, 2)), (5, (2, 1)), (8, (2, 4)), (10, (3, 1)), (99, (3, 1))]
        {
            assert_eq!(file.line_column(offset), place, "{offset}");
        }
    }

    #[test]
    fn a_place_inside_a_character_moves_to_its_start() {
        assert_eq!(SourceFile::new("a", "é").clamp(&(1..9)), 0..2);
    }
}
