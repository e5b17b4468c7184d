//! Files that are there whole or not at all, and on disk when the call returns.
//!
//! # Invariants
//!
//! - A file is born with `O_EXCL` and mode 0600 and gets its own mode, whatever the umask, before it gets its name:
//!   at no moment is it more open than it will be in the end.
//! - A reader of the final name sees the old content or the new, and a descriptor held on the old file stays there.
//! - After an error no temporary file is left, unless the process itself was killed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells apart the temporary files that one process writes at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Writes `path` with `mode`, in the place of what may be there.
///
/// # Errors
/// The first call that fails; what was there before is then still there.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = Temporary::write(path, bytes, mode)?;
    fs::rename(&temporary.0, path)?;
    sync_parent(path)
}

/// Writes `path` with `mode`, if nothing is there yet; for keys, which nothing brings back once they are replaced.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] (link(2) decides, so of two writers one wins), or the first call that fails.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = Temporary::write(path, bytes, mode)?;
    fs::hard_link(&temporary.0, path)?;
    sync_parent(path)
}

/// A file beside the one that is meant, removed when dropped (after a rename there is nothing left to remove).
struct Temporary(PathBuf);

impl Temporary {
    fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{number}.tmp", std::process::id()));
        let hidden = path.with_file_name(hidden);
        // A process of our number may have been killed here before (always so for the first in a container).
        match fs::remove_file(&hidden) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
        let temporary = Self(hidden);
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing to report: the file itself is in its place or the caller has the error that matters.
        fs::remove_file(&self.0).ok();
    }
}

/// A new name is on disk only once its folder is, fsync(2).
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}
