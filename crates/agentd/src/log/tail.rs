//! The newest entries of a unit, from its files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::entry::{self, Entry};
use super::file;

/// How much of a file's end is looked at first; fourfold each time that it is not enough.
const FIRST_WINDOW: u64 = 32 << 10;

/// The newest `count` entries in the files at `path`, oldest first.
///
/// # Errors
/// A file that is there cannot be read.
pub(crate) fn read(path: &Path, kept: u32, count: usize) -> io::Result<Vec<Entry>> {
    let mut entries = of_file(path, count)?;
    for number in 1..=kept {
        if entries.len() >= count {
            break;
        }
        let mut older = of_file(&file::rotated(path, number), count - entries.len())?;
        older.append(&mut entries);
        entries = older;
    }
    Ok(entries)
}

fn of_file(path: &Path, count: usize) -> io::Result<Vec<Entry>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let size = file.metadata()?.len();
    let mut window = FIRST_WINDOW;
    loop {
        let start = size.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&mut file).take(size - start).read_to_end(&mut bytes)?;
        let known = if start == 0 { &bytes[..] } else { from_first_run(&bytes) };
        // Counted before they are parsed: a window that is too small costs no allocation a line.
        if start == 0 || known.iter().filter(|b| **b == b'\n').count() > count {
            let mut entries = entry::entries(known, None);
            if start == 0 || entries.len() >= count {
                entries.drain(..entries.len().saturating_sub(count));
                return Ok(entries);
            }
        }
        window = window.saturating_mul(4);
    }
}

/// What stands from the first run line on: before it nobody knows whose lines they are.
fn from_first_run(bytes: &[u8]) -> &[u8] {
    // The first line may be cut by the window.
    let mut at = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| n + 1);
    while at < bytes.len() {
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
        if entry::is_run_line(&bytes[at..end]) {
            return &bytes[at..];
        }
        at = end + 1;
    }
    &[]
}
