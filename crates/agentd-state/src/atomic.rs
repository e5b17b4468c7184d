//! Replacing a file as a whole: a temporary file in the same folder, fsync(2), rename(2), fsync of the folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of temporary files begin. `#` stands in no unit name, so that none is ever read as data.
pub(crate) const TEMPORARY: &str = "#tmp-";

/// Replaces the content of `path` by `content`, durably: after a crash at any moment the file holds either the old
/// content or the new one, whole; once this returns Ok it holds the new one, whatever happens to the machine.
///
/// The file gets `mode`. The folder must exist.
///
/// # Errors
/// That of the step that failed; the old content is untouched then, and the temporary file is gone. Only an error of
/// the last step, the fsync of the folder, leaves open which of the two a crash would leave behind.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
    let replaced = write_synced(&temporary, content, mode).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = replaced {
        // The first error is the one to tell. What cannot be removed here is removed by the next open of the folder.
        let _unremovable = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

fn write_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // A name of ours can be left over only from a process that had our pid before: it is no one's data.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Removes the temporary files that a crash left in `folder`.
pub(crate) fn remove_temporaries(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn the_new_content_replaces_the_old() {
        let dir = TempDir::new();
        let path = dir.path().join("f");
        write_atomic(&path, b"a long first content", 0o600).unwrap();
        write_atomic(&path, b"second", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_failed_replacement_leaves_no_temporary_file() {
        let dir = TempDir::new();
        let path = dir.path().join("folder");
        fs::create_dir_all(path.join("full")).unwrap();
        write_atomic(&path, b"x", 0o600).expect_err("a folder cannot be replaced by a file");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn temporaries_of_a_crash_are_removed_and_nothing_else() {
        let dir = TempDir::new();
        fs::write(dir.path().join("#tmp-1-0"), b"half").unwrap();
        fs::write(dir.path().join("web.timer"), b"data").unwrap();
        remove_temporaries(dir.path()).unwrap();
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["web.timer"]);
    }
}
