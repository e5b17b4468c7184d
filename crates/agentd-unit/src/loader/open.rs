//! Opening what lies in a search path, safely: once, no link followed, never blocking, bounded, and only if nobody
//! but the trusted can have written it.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::door::{Kind, open_path};

/// The largest file that is read, in bytes. A unit is a page of text; a megabyte is beyond every honest one.
pub const MAX_FILE: u64 = 1024 * 1024;

/// `ELOOP`: what open(2) says to a link under `O_NOFOLLOW`.
const ELOOP: i32 = 40;

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A system call failed.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the call said.
        #[source]
        error: io::Error,
    },
    /// It is no regular file.
    #[error("{} is {kind}, not a file", path.display())]
    Kind {
        /// Where it lies.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// It is larger than [`MAX_FILE`].
    #[error("{} is larger than 1 MiB, the most that a unit file may have", .0.display())]
    TooLarge(PathBuf),
    /// Somebody who is not trusted could have written it.
    #[error("{} {why}", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Who and how, and what to do.
        why: String,
    },
}

impl OpenError {
    /// The message with its cause, on one line.
    #[must_use]
    pub fn one_line(&self) -> String {
        match self {
            Self::Read { error, .. } => format!("{self}: {error}"),
            _ => self.to_string(),
        }
    }

    /// Whether there simply is nothing of this name.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Who may write units: the users by number. The system manager trusts root, a user's manager that user too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted(pub Vec<u32>);

impl Trusted {
    /// Whether nobody else could have written what has this metadata.
    ///
    /// # Errors
    /// Who could have, and what to do.
    pub(super) fn check(&self, path: &Path, meta: &Metadata) -> Result<(), OpenError> {
        let refuse = |why: String| Err(OpenError::Writable { path: path.to_owned(), why });
        let (owner, mode) = (meta.uid(), meta.mode());
        if !self.0.contains(&owner) {
            return refuse(format!(
                "belongs to user {owner}, who is not trusted with units here; chown it to {self}"
            ));
        }
        // In a folder with the sticky bit, as /tmp, others can add names but not change what is there.
        let sticky = meta.is_dir() && mode & 0o1000 != 0;
        if mode & 0o002 != 0 && !sticky {
            return refuse("can be written by everybody; run chmod o-w on it".to_owned());
        }
        if mode & 0o020 != 0 && !sticky {
            return refuse(format!("can be written by group {}; run chmod g-w on it", meta.gid()));
        }
        Ok(())
    }

    /// Checks a folder, which must hold no link in its path, and every folder above it.
    ///
    /// # Errors
    /// A folder that cannot be looked at, or that somebody else could change.
    pub fn folder(&self, path: &Path) -> Result<(), OpenError> {
        for folder in path.ancestors() {
            let meta = std::fs::symlink_metadata(folder)
                .map_err(|error| OpenError::Read { path: folder.to_owned(), error })?;
            self.check(folder, &meta)?;
        }
        // What lies directly in a sticky folder may be anybody's; each file is checked itself.
        Ok(())
    }
}

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<String> =
            self.0.iter().map(|uid| if *uid == 0 { "root".into() } else { uid.to_string() }).collect();
        f.write_str(&users.join(" or "))
    }
}

/// All bytes of a regular file. It is opened once and looked at through its descriptor; a link is not followed, a
/// FIFO or a device is not read.
///
/// # Errors
/// See [`OpenError`].
pub fn read_file(path: &Path, trusted: &Trusted) -> Result<Vec<u8>, OpenError> {
    // A socket cannot be opened and a device may do things when it is: look before, and again through the descriptor.
    let before =
        std::fs::symlink_metadata(path).map_err(|error| OpenError::Read { path: path.to_owned(), error })?;
    let kind = Kind::from(before.file_type());
    if kind != Kind::File {
        return Err(OpenError::Kind { path: path.to_owned(), kind: kind.as_str() });
    }
    let mut buffer = Vec::new();
    read_opened(open_path(path), path, trusted, &mut buffer)?;
    Ok(buffer)
}

/// The same of what its folder listed as a regular file, so that it was not looked at before it was opened. The bytes are
/// put behind those that are in the buffer.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn read_opened(
    opened: io::Result<File>,
    path: &Path,
    trusted: &Trusted,
    buffer: &mut Vec<u8>,
) -> Result<(), OpenError> {
    let failed = |error: io::Error| OpenError::Read { path: path.to_owned(), error };
    let kind = |kind: &'static str| OpenError::Kind { path: path.to_owned(), kind };
    let file = opened.map_err(|error| {
        if error.raw_os_error() == Some(ELOOP) { kind(Kind::Link.as_str()) } else { failed(error) }
    })?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(kind(Kind::from(meta.file_type()).as_str()));
    }
    trusted.check(path, &meta)?;
    let start = buffer.len();
    let read = read_bounded(&file, &meta, buffer).map_err(failed);
    match read {
        Ok(length) if length as u64 <= MAX_FILE => {
            buffer.truncate(start + length);
            Ok(())
        }
        refused => {
            buffer.truncate(start);
            refused.and(Err(OpenError::TooLarge(path.to_owned())))
        }
    }
}

/// Reads the bytes, but no more than one beyond [`MAX_FILE`], also if the file grows meanwhile; how many there are.
fn read_bounded(mut file: &File, meta: &Metadata, buffer: &mut Vec<u8>) -> io::Result<usize> {
    // One more than there should be, so that the end shows in the same call: a regular file reads short only there.
    let expected = usize::try_from(meta.len().min(MAX_FILE)).unwrap_or(0) + 1;
    let start = buffer.len();
    buffer.resize(start + expected, 0);
    let mut length = 0;
    loop {
        let room = buffer.len() - start - length;
        let read = match file.read(&mut buffer[start + length..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read;
        if read < room || length as u64 > MAX_FILE {
            return Ok(length);
        }
        buffer.resize(start + length + 4096, 0);
    }
}
