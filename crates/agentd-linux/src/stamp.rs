//! Whether a file is still what it was when it was read.
//!
//! The kernel sets the time of the last change (`ctime`, inode(7)) at every write, and nobody can set it to a value of
//! their choice. So a file with the same number, size and times as before holds what it held before, as long as the
//! times were old enough when it was read: a clock that ticks every few milliseconds gives two writes within one tick
//! the same time. [`Stamp::is_at_rest`] keeps a second's distance.
//!
//! What this does not see is a write through a shared mapping of a file in memory, mmap(2), which no clock notes. Only
//! who may write to the file can do that, so whose file it is must be looked at as well.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, fstatfs,
};

/// How old the times of a file must be: a hundred ticks of the slowest clock.
const REST: Duration = Duration::from_secs(1);

/// `RAMFS_MAGIC` of linux/magic.h: what an initramfs is without a tmpfs.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// `SQUASHFS_MAGIC` of linux/magic.h, and `EROFS_SUPER_MAGIC_V1`: images that nobody can write to.
const IMAGES: [FsType; 2] = [FsType(0x7371_7368), FsType(0xe0f5_e1e2)];

/// Which file it is, and when it was changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The file's device and number, stat(2).
    #[must_use]
    pub fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the last change lies so far before `now` that another one would have another time.
    #[must_use]
    pub fn is_at_rest(&self, now: SystemTime) -> bool {
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(self.changed.0), u32::try_from(self.changed.1))
        else {
            return false;
        };
        let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        now.duration_since(changed).is_ok_and(|age| age >= REST)
    }
}

/// Whether this machine's own kernel sets the times of a file: on a file system of another machine, or of a program
/// (FUSE), they are what somebody else says.
///
/// # Errors
/// fstatfs(2).
pub fn has_own_times(file: &File) -> io::Result<bool> {
    let kind = fstatfs(file)?.filesystem_type();
    let known = [
        EXT4_SUPER_MAGIC,
        XFS_SUPER_MAGIC,
        BTRFS_SUPER_MAGIC,
        TMPFS_MAGIC,
        OVERLAYFS_SUPER_MAGIC,
        RAMFS_MAGIC,
    ];
    Ok(known.contains(&kind) || IMAGES.contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_stamp_is_another_one_after_a_write_of_the_same_length_and_time() {
        let folder = TempDir::new();
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let (before, modified) =
            (Stamp::of(&file.metadata().unwrap()), file.metadata().unwrap().modified().unwrap());
        assert_eq!(Stamp::of(&file.metadata().unwrap()), before);
        // Until the kernel's clock ticks, a write has the same time: as long as that, nothing is at rest.
        while Stamp::of(&file.metadata().unwrap()) == before {
            assert!(!before.is_at_rest(SystemTime::now()));
            fs::write(&path, "two").unwrap();
            file.set_modified(modified).unwrap();
        }
        assert_eq!(file.metadata().unwrap().modified().unwrap(), modified);
    }

    #[test]
    fn a_file_is_at_rest_a_second_after_its_last_change_and_never_before_it() {
        let at = |changed| Stamp { device: 1, inode: 2, size: 3, modified: (0, 0), changed };
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        for (changed, rests) in [
            ((0, 0), true),
            ((998, 999_999_999), true),
            ((999, 0), true),
            ((999, 1), false),
            ((1000, 0), false),
            ((2000, 0), false),
            ((-1, 0), false),
        ] {
            assert_eq!(at(changed).is_at_rest(now), rests, "{changed:?}");
        }
    }

    #[test]
    fn the_kernels_own_tables_have_no_times_to_go_by() {
        let tables = File::open("/proc/self/status").unwrap();
        assert!(!has_own_times(&tables).unwrap());
    }
}
