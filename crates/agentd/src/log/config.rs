//! How much the log may hold.

use std::io;
use std::path::{Path, PathBuf};

use super::entry::{ENTRY_OVERHEAD, RUN_LENGTH};
use super::rate::RateLimit;

/// Where the log is and how much it may hold.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The folder of the files. It is made when the first line comes, and again when it is removed.
    pub dir: PathBuf,
    /// What all files of one unit may take, in bytes.
    pub max_bytes_per_unit: u64,
    /// How many full files of a unit are kept beside the one that is written.
    pub files_kept: u32,
    /// What all files of all units may take, in bytes; beyond it the oldest ones go.
    pub max_total_bytes: u64,
    /// The longest text of one entry, in bytes; longer lines are cut into several.
    pub max_line: usize,
    /// How many lines each unit may say.
    pub rate: Option<RateLimit>,
    /// How many files are kept open; more are opened anew for each write.
    pub open_files: usize,
}

impl LogConfig {
    /// 8 MiB a unit in 4 files, 1 GiB in all, lines of up to 64 KiB, no rate limit, 64 open files.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            max_bytes_per_unit: 8 << 20,
            files_kept: 3,
            max_total_bytes: 1 << 30,
            max_line: 64 << 10,
            rate: None,
            open_files: Self::most_open_files(u64::MAX),
        }
    }

    /// The same for a process that may have so many descriptors.
    #[must_use]
    pub fn with_descriptors(mut self, limit: u64) -> Self {
        self.open_files = Self::most_open_files(limit);
        self
    }

    /// How many of so many descriptors the log takes for its files at most.
    fn most_open_files(limit: u64) -> usize {
        usize::try_from(limit / 16).unwrap_or(usize::MAX).clamp(4, 64)
    }

    /// What one file may hold.
    pub(crate) fn max_file_bytes(&self) -> u64 {
        self.max_bytes_per_unit / (u64::from(self.files_kept) + 1)
    }

    /// Whether the bounds can be kept.
    pub(crate) fn check(&self) -> io::Result<()> {
        // A file holds at least its run line, what tells of a gap, and one longest line.
        let least = (self.max_line + 2 * (ENTRY_OVERHEAD + RUN_LENGTH) + 200) as u64;
        if self.max_line < 4
            || self.max_file_bytes() < least
            || self.max_total_bytes < self.max_bytes_per_unit
        {
            let text = format!(
                "the log's bounds contradict each other: {} bytes a unit in {} files, {} in all, {} a line",
                self.max_bytes_per_unit,
                u64::from(self.files_kept) + 1,
                self.max_total_bytes,
                self.max_line
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(())
    }
}
