//! The files of one unit: appended to, rotated by size, repaired after a crash, made again when somebody removes them.
//!
//! `UNIT.log` is written; when it is full it becomes `UNIT.log.1`, that one `UNIT.log.2`, and so on.
//!
//! # Invariants
//! - A file consists of whole lines, save that a crash of the machine may cut the last one short; the next line after
//!   it then says so.
//! - No file is longer than a file may be.
//! - Every file begins with a run line, and no two are further apart than [`RUN_LINE_EVERY`] and one chunk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agentd_engine::InvocationId;
use agentd_unit::UnitName;

use super::entry::{self, Ending, Origin};
use super::stamp;

/// After this many bytes the run line is repeated, so that the reader of a file's end finds it near.
const RUN_LINE_EVERY: u64 = 64 << 10;

/// The file that is written for a unit.
pub(crate) fn path_of(dir: &Path, unit: &UnitName) -> PathBuf {
    dir.join(format!("{}.log", stem(unit)))
}

/// The file that was written `number` rotations ago.
pub(crate) fn rotated(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The unit's name, or, where the endings would make it too long for a file name, its beginning and a hash of it.
fn stem(unit: &UnitName) -> String {
    let name = unit.as_str();
    if name.len() <= 240 {
        return name.to_owned();
    }
    // FNV-1a: names of one length do not collide by chance, and `~` stands in no other unit's name.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{}~{hash:016x}", &name[..200])
}

/// The file that is open for a unit.
#[derive(Debug)]
pub(crate) struct UnitFile {
    path: PathBuf,
    file: File,
    /// Device and inode, to see whether the path still leads here.
    identity: (u64, u64),
    size: u64,
    /// The run of the last line, and how many bytes ago its run line stands; `None` before the first.
    run: Option<(Option<InvocationId>, u64)>,
    limit: u64,
    kept: u32,
    /// A file was begun since somebody asked.
    begun: bool,
    /// Bytes that were written since somebody asked.
    written: u64,
}

impl UnitFile {
    /// Opens the file, making it and the folders above it where they are missing. Mode 0640.
    pub(crate) fn open(path: &Path, limit: u64, kept: u32) -> io::Result<Self> {
        let file = match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
                }
                open(path)?
            }
            opened => opened?,
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(not_regular());
        }
        let identity = (found.dev(), found.ino());
        let size = found.len();
        let path = path.to_owned();
        let mut opened =
            Self { path, file, identity, size, run: None, limit, kept, begun: size == 0, written: 0 };
        opened.repair()?;
        Ok(opened)
    }

    /// Whether the path still leads to this file; not if somebody removed or replaced it.
    pub(crate) fn is_current(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// Whether a file was begun since the last call, so that all files together may take too much now.
    pub(crate) fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.begun)
    }

    /// How many bytes were written since the last call.
    pub(crate) fn take_written(&mut self) -> u64 {
        std::mem::take(&mut self.written)
    }

    /// Appends whole lines of one run, in as many files as they need.
    ///
    /// # Errors
    /// Those of the system; then the lines that are left in `lines` do not stand in the files, and the others do.
    pub(crate) fn append(&mut self, run: Option<InvocationId>, lines: &mut &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            let head = self.run_line(run, lines);
            let room = self.limit.saturating_sub(self.size + head.len() as u64);
            let mut part = whole_lines(lines, usize::try_from(room).unwrap_or(usize::MAX));
            if part.is_empty() {
                if self.size > 0 {
                    self.rotate()?;
                    continue;
                }
                // Longer than a file may be by itself: cannot be, by LogConfig::check, but must not loop for ever.
                part = whole_lines(lines, lines.len());
            }
            self.write(&head, part)?;
            let since = if head.is_empty() { self.run.map_or(0, |(_, since)| since) } else { 0 };
            self.run = Some((run, since + part.len() as u64));
            *lines = &lines[part.len()..];
        }
        Ok(())
    }

    /// The run line that must stand before the lines, or nothing.
    fn run_line(&self, run: Option<InvocationId>, lines: &[u8]) -> Vec<u8> {
        match self.run {
            Some((last, since)) if last == run && since < RUN_LINE_EVERY => Vec::new(),
            _ => {
                let mut head = Vec::with_capacity(entry::RUN_LENGTH);
                // The time of the first line, so that times never run backwards in the file.
                let at = lines.first_chunk().copied().unwrap_or(stamp::format(0));
                entry::write_run(&mut head, &at, run);
                head
            }
        }
    }

    /// Writes both or nothing.
    fn write(&mut self, head: &[u8], lines: &[u8]) -> io::Result<()> {
        let written = if head.is_empty() {
            self.file.write_all(lines)
        } else {
            self.file.write_all(&[head, lines].concat())
        };
        if let Err(error) = written {
            // A part of it may stand there. If it cannot be cut off, the next opening repairs the file.
            self.file
                .set_len(self.size)
                .map_err(|_| io::Error::other("cannot be cut after a failed write"))?;
            return Err(error);
        }
        self.size += (head.len() + lines.len()) as u64;
        self.written += (head.len() + lines.len()) as u64;
        Ok(())
    }

    /// Moves every file one number up, the last one out, and begins a new one. Each step is one rename, so that a crash
    /// in between loses nothing but leaves a number free.
    fn rotate(&mut self) -> io::Result<()> {
        if self.kept == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for number in (1..self.kept).rev() {
                rename_if_there(&rotated(&self.path, number), &rotated(&self.path, number + 1))?;
            }
            rename_if_there(&self.path, &rotated(&self.path, 1))?;
        }
        let written = self.written;
        *self = Self::open(&self.path, self.limit, self.kept)?;
        self.written += written;
        Ok(())
    }

    /// A last line without an end was cut short by a crash: ends it and says so.
    fn repair(&mut self) -> io::Result<()> {
        if self.size == 0 {
            return Ok(());
        }
        let mut last = [0];
        self.file.read_exact_at(&mut last, self.size - 1)?;
        if last == *b"\n" {
            return Ok(());
        }
        let mut lines = b"\n".to_vec();
        let now = stamp::format(super::now().0);
        let text = b"the line before this one was cut short by a crash";
        entry::write_entry(&mut lines, &now, 4, Origin::Manager, Ending::Newline, text);
        self.write(&[], &lines)
    }
}

/// Opens the file for reading and appending, and makes it where it is missing. What is no file is neither followed nor
/// waited for.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o640);
    options.custom_flags(agentd_linux::open::NOFOLLOW | agentd_linux::open::NONBLOCK);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let other = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
            Err(if other { not_regular() } else { error })
        }
        opened => opened,
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// As many whole lines from the beginning as fit into `room` bytes.
fn whole_lines(lines: &[u8], room: usize) -> &[u8] {
    if lines.len() <= room {
        return lines;
    }
    let end = lines[..room].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    &lines[..end]
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
