//! A cgroup file that could not be used.

use std::io;
use std::path::{Path, PathBuf};

/// Something about a cgroup failed: what, where, and what the kernel said.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no cgroup v2 here.
    #[error("no cgroup v2 is mounted; limits are not enforced and processes are followed by parenthood")]
    NotMounted,
    /// A file could not be read, or a folder made, opened or removed.
    #[error("cannot {what} {}", path.display())]
    Access {
        /// `read`, `make`, `open`, `remove` ….
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A value could not be written.
    #[error("cannot write '{value}' to {}{}", path.display(), hint(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl CgroupError {
    pub(super) fn access(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Access { what, path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, value: &str, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), value: value.to_owned(), source }
    }

    /// What the kernel said, if it was asked.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NotMounted => None,
            Self::Access { source, .. } | Self::Write { source, .. } => source.raw_os_error(),
        }
    }
}

/// What the commonest errors of a write mean.
fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOENT) => " (this kernel has no such limit, or its controller is not enabled here)",
        Some(libc::EBUSY) => " (the cgroup has processes of its own)",
        Some(libc::EROFS) => " (cgroups are mounted read-only, as in most containers)",
        Some(libc::EACCES | libc::EPERM) => " (the cgroup is not delegated to this user)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_has_two_reasons() {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        let text = CgroupError::write(Path::new("/c/memory.zswap.max"), "7", error).to_string();
        assert_eq!(
            text,
            "cannot write '7' to /c/memory.zswap.max (this kernel has no such limit, or its controller is not enabled here)"
        );
    }
}
