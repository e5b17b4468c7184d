//! What all files together may take: beyond it the oldest go, full ones before those that are written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

struct Found {
    path: PathBuf,
    bytes: u64,
    /// Full files are removed first, then those of units that have not written for longest.
    rank: (bool, SystemTime),
}

/// Removes files until all take at most `limit` bytes; `keep`, which is being written, stays. Returns how many bytes
/// went, and how many are left. A file that is open elsewhere is found missing at its next use, and made again.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub(crate) fn enforce(dir: &Path, limit: u64, keep: &Path) -> io::Result<(u64, u64)> {
    let mut files = list(dir)?;
    let total: u64 = files.iter().map(|f| f.bytes).sum();
    let mut excess = total.saturating_sub(limit);
    files.retain(|f| f.path != keep);
    files.sort_by_key(|f| f.rank);
    let mut freed = 0;
    for file in files {
        if excess == 0 {
            break;
        }
        fs::remove_file(&file.path)?;
        excess = excess.saturating_sub(file.bytes);
        freed += file.bytes;
    }
    Ok((freed, total.saturating_sub(freed)))
}

/// Removes the oldest full file of one unit, as the disk is full; whether there was one.
pub(crate) fn sacrifice(path: &Path, kept: u32) -> io::Result<bool> {
    for number in (1..=kept).rev() {
        match fs::remove_file(super::file::rotated(path, number)) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn list(dir: &Path) -> io::Result<Vec<Found>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_full = match name.rsplit_once(".log") {
            Some((_, "")) => false,
            Some((_, number)) if number.strip_prefix('.').is_some_and(|n| n.parse::<u32>().is_ok()) => true,
            // Not ours.
            _ => continue,
        };
        let Ok(found) = entry.metadata() else { continue };
        if found.is_file() {
            let changed = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(Found { path: entry.path(), bytes: found.len(), rank: (!is_full, changed) });
        }
    }
    Ok(files)
}
