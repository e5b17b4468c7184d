//! The file of what is kept: a head, then places of one size, each with one unit or none.
//!
//! # Invariants
//! - A place is written by one call that lies within a page, so that a manager that is killed leaves it whole; a sum over
//!   its bytes says so.
//! - It holds for one boot: the head names it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use agentd_engine::Boottime;
use agentd_unit::UnitName;

use super::record::{self, Record};

/// A power of two, so that no place crosses a page.
const PLACE_BYTES: usize = 1024;

/// What a place has room for besides its length and its sum.
const ROOM: usize = PLACE_BYTES - 8;

/// How a table of this kind begins.
const KIND: &str = "agentd units 1";

/// What was found in a table.
#[derive(Debug, Default)]
pub struct Found {
    /// Of each unit.
    pub records: Vec<Record>,
    /// When the first manager of this boot began; none if there was none.
    pub born: Option<Boottime>,
}

/// The open table.
#[derive(Debug)]
pub struct Table {
    file: File,
    places: HashMap<UnitName, u64>,
    free: Vec<u64>,
    next: u64,
}

impl Table {
    /// Opens the table, and gives what it has of this boot. One of another boot, or that is none, is begun anew.
    ///
    /// # Errors
    /// The file cannot be opened, read or written.
    pub fn open(path: &Path, boot: &str, now: Boottime) -> io::Result<(Self, Found)> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut table = Self { file, places: HashMap::new(), free: Vec::new(), next: 1 };
        let born = table.read(0)?.and_then(|head| born(&head, boot));
        let Some(born) = born else {
            table.file.set_len(0)?;
            table.write(0, format!("{KIND}\n{boot}\n{}\n", now.0.as_nanos()).as_bytes())?;
            return Ok((table, Found::default()));
        };
        let end = table.file.metadata()?.len().div_ceil(PLACE_BYTES as u64);
        let mut found = Found { records: Vec::new(), born: Some(born) };
        for place in 1..end {
            match table.read(place)?.and_then(|bytes| record::decode(&bytes)) {
                Some(record) => {
                    table.places.insert(record.memo.unit.clone(), place);
                    found.records.push(record);
                }
                None => table.free.push(place),
            }
        }
        table.next = end.max(1);
        Ok((table, found))
    }

    /// Puts a record in place of what the unit had.
    ///
    /// # Errors
    /// ENOSPC; the file cannot be written.
    pub fn put(&mut self, record: &Record) -> io::Result<()> {
        let unit = &record.memo.unit;
        let place = match self.places.get(unit) {
            Some(place) => *place,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.next += 1;
                    self.next - 1
                });
                self.places.insert(unit.clone(), place);
                place
            }
        };
        self.write(place, &record::encode(record, ROOM))
    }

    /// Forgets a unit.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn clear(&mut self, unit: &UnitName) -> io::Result<()> {
        let Some(place) = self.places.remove(unit) else { return Ok(()) };
        self.free.push(place);
        self.file.write_all_at(&[0; 8], place * PLACE_BYTES as u64)
    }

    fn write(&self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(8 + bytes.len());
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(&sum(bytes).to_le_bytes());
        buffer.extend_from_slice(bytes);
        self.file.write_all_at(&buffer, place * PLACE_BYTES as u64)
    }

    /// What stands in a place, if it is whole.
    fn read(&self, place: u64) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; PLACE_BYTES];
        let mut filled = 0;
        while filled < PLACE_BYTES {
            match self.file.read_at(&mut buffer[filled..], place * PLACE_BYTES as u64 + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        let Some((head, bytes)) = buffer[..filled].split_at_checked(8) else { return Ok(None) };
        let number = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let bytes = usize::try_from(number(0))
            .ok()
            .filter(|length| *length > 0)
            .and_then(|length| bytes.get(..length));
        Ok(bytes.filter(|bytes| sum(bytes) == number(4)).map(<[u8]>::to_vec))
    }
}

fn born(head: &[u8], boot: &str) -> Option<Boottime> {
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let same = lines.next()? == KIND && lines.next()? == boot;
    let nanos = lines.next()?.parse::<u64>().ok()?;
    same.then(|| Boottime(Duration::from_nanos(nanos)))
}

/// FNV-1a: it is there against a half-written place, not against anybody.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("agentd-table-{}-{name}", std::process::id()));
        std::fs::remove_file(&path).ok();
        path
    }

    fn names(found: &Found) -> Vec<String> {
        let mut names: Vec<String> =
            found.records.iter().map(|record| record.memo.unit.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_next_manager_finds_what_is_up_and_not_what_went_down() {
        let path = path("found");
        let (mut table, found) = Table::open(&path, "boot", Boottime(Duration::from_secs(5))).unwrap();
        assert!(found.born.is_none() && found.records.is_empty());
        for unit in ["a.service", "b.service", "c.service"] {
            table.put(&sample(unit)).unwrap();
        }
        table.clear(&sample("b.service").memo.unit).unwrap();
        table.put(&sample("d.service")).unwrap();
        drop(table);
        let (mut table, found) = Table::open(&path, "boot", Boottime(Duration::from_secs(9))).unwrap();
        assert_eq!(names(&found), ["a.service", "c.service", "d.service"]);
        assert_eq!(found.born, Some(Boottime(Duration::from_secs(5))), "the first manager's");
        assert_eq!(
            found.records.iter().find(|r| r.memo.unit.as_str() == "a.service"),
            Some(&sample("a.service"))
        );
        let size = std::fs::metadata(&path).unwrap().len();
        table.put(&sample("a.service")).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size, "a unit has one place");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_half_written_place_and_another_boot_are_nothing() {
        let path = path("half");
        let (mut table, _) = Table::open(&path, "boot", Boottime::default()).unwrap();
        table.put(&sample("a.service")).unwrap();
        table.put(&sample("b.service")).unwrap();
        table.file.write_all_at(b"x", PLACE_BYTES as u64 + 20).unwrap();
        drop(table);
        assert_eq!(names(&Table::open(&path, "boot", Boottime::default()).unwrap().1), ["b.service"]);
        assert!(Table::open(&path, "other", Boottime::default()).unwrap().1.records.is_empty());
        std::fs::write(&path, "no table at all").unwrap();
        assert!(Table::open(&path, "boot", Boottime::default()).unwrap().1.records.is_empty());
        std::fs::remove_file(path).unwrap();
    }
}
