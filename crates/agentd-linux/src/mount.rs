//! The file systems that an init mounts first, and how everything is unmounted at the end. mount(2), umount2(2).
//!
//! # Invariants
//!
//! - What is mounted already (by an initramfs, a container runtime, a previous try) is left as it is.
//! - A mount that is refused is reported, and the others are still tried.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// One file system of the table.
#[derive(Debug, Clone, Copy)]
pub struct MountPoint {
    /// What is mounted: the device's name for the kernel, shown in mountinfo.
    pub source: &'static str,
    /// Where.
    pub target: &'static str,
    /// The file system.
    pub fstype: &'static str,
    flags: MsFlags,
    /// Options of the file system, tried in order: an old kernel may not know the first.
    options: &'static [&'static str],
}

const NOSUID: MsFlags = MsFlags::MS_NOSUID;

/// `nosuid,nodev,noexec`.
fn strict() -> MsFlags {
    NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC
}

/// The mounts of PID 1, in order: each needs those above it. As systemd's mount-setup has them.
#[must_use]
pub fn table() -> [MountPoint; 8] {
    let m = |source, target, fstype, flags, options| MountPoint { source, target, fstype, flags, options };
    [
        m("proc", "/proc", "proc", strict(), &[""]),
        m("sysfs", "/sys", "sysfs", strict(), &[""]),
        m("devtmpfs", "/dev", "devtmpfs", NOSUID, &["mode=0755"]),
        m(
            "devpts",
            "/dev/pts",
            "devpts",
            NOSUID | MsFlags::MS_NOEXEC,
            &["mode=0620,gid=5,ptmxmode=0666", ""],
        ),
        m("tmpfs", "/dev/shm", "tmpfs", NOSUID | MsFlags::MS_NODEV, &["mode=1777"]),
        m("tmpfs", "/run", "tmpfs", NOSUID | MsFlags::MS_NODEV, &["mode=0755,size=20%"]),
        // memory_recursiveprot is of Linux 5.7, cgroup-v2.rst.
        m(
            "cgroup2",
            "/sys/fs/cgroup",
            "cgroup2",
            strict(),
            &["nsdelegate,memory_recursiveprot", "nsdelegate", ""],
        ),
        m("tmpfs", "/tmp", "tmpfs", NOSUID | MsFlags::MS_NODEV, &["mode=1777,size=50%"]),
    ]
}

/// What came of one mount.
#[derive(Debug)]
pub enum Outcome {
    /// It is mounted now.
    Mounted,
    /// It was mounted before.
    AlreadyThere,
    /// The kernel or the container does not allow it.
    Refused(io::Error),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted => f.write_str("mounted"),
            Self::AlreadyThere => f.write_str("mounted already"),
            Self::Refused(error) => write!(f, "not mounted: {error}"),
        }
    }
}

/// Mounts one of the table, making its folder if it is missing.
pub fn ensure(point: &MountPoint) -> Outcome {
    let target = Path::new(point.target);
    if is_mount_point(target) && (point.fstype != "proc" || is_own_proc()) {
        return Outcome::AlreadyThere;
    }
    if let Err(error) = fs::create_dir_all(target) {
        return Outcome::Refused(error);
    }
    let mut refused = Errno::EINVAL;
    for options in point.options {
        let data = (!options.is_empty()).then_some(*options);
        match mount(Some(point.source), target, Some(point.fstype), point.flags, data) {
            Ok(()) => return Outcome::Mounted,
            // EBUSY: the same file system is mounted there already.
            Err(Errno::EBUSY) => return Outcome::AlreadyThere,
            Err(errno) => refused = errno,
        }
    }
    Outcome::Refused(refused.into())
}

/// Whether /proc shows our pid namespace: one that came with an unshared mount namespace shows its parent's, in which
/// our numbers are others'.
fn is_own_proc() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&std::process::id().to_string()))
}

/// Whether something is mounted there: its device or inode differs from its parent folder's, or mountinfo says so.
fn is_mount_point(target: &Path) -> bool {
    match mounts() {
        Ok(mounts) => mounts.iter().any(|mounted| mounted.as_path() == target),
        // Before /proc there is no mountinfo: a root of a mount has another device than the folder it stands in.
        Err(_) => {
            device(target).zip(target.parent().and_then(device)).is_some_and(|(here, above)| here != above)
        }
    }
}

fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).ok().map(|meta| meta.dev())
}

/// The mount points of the calling thread's namespace, in the order of mounting. proc_pid_mountinfo(5), field 5.
///
/// # Errors
/// If /proc is not there.
pub fn mounts() -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/thread-self/mountinfo")?;
    Ok(text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(|field| PathBuf::from(unescape(field)))
        .collect())
}

/// Undoes the kernel's octal escapes for space, tab, newline and backslash.
pub(crate) fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

/// The links that programs expect in /dev, bash(1) "/dev/fd", proc(5).
const DEV_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Makes the links in /dev where they are missing; returns those that could not be made.
pub fn ensure_dev_links() -> Vec<(&'static str, io::Error)> {
    let mut failed = Vec::new();
    for (link, target) in DEV_LINKS {
        match symlink(target, link) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => failed.push((link, error)),
        }
    }
    failed
}

/// Makes the root file system writable, as fstab(5) would have it.
///
/// # Errors
/// The errno of mount(2); EROFS for a medium that cannot be written.
pub fn remount_root_writable() -> io::Result<()> {
    let none: Option<&str> = None;
    Ok(mount(none, "/", none, MsFlags::MS_REMOUNT, none)?)
}

/// Puts one file over another that cannot be written, mount(8) "bind mounts".
///
/// # Errors
/// The errno of mount(2); ENOENT if there is no file to put it over.
pub fn bind_file(from: &Path, over: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    Ok(mount(Some(from), over, none, MsFlags::MS_BIND, none)?)
}

/// Mounts an empty file system in memory: no devices, no programs, no set-user-id bits.
///
/// # Errors
/// The errno of mount(2); EPERM without CAP_SYS_ADMIN.
pub fn memory(folder: &Path, options: &str) -> io::Result<()> {
    Ok(mount(Some("tmpfs"), folder, Some("tmpfs"), strict(), Some(options))?)
}

/// Lets nobody write to a file system of [`memory`] any more.
///
/// # Errors
/// The errno of mount(2).
pub fn shut(folder: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | strict();
    Ok(mount(none, folder, none, flags, none)?)
}

/// Whether something is mounted there, of our own or left behind. A folder that is not there is none.
///
/// # Errors
/// If /proc is not there.
pub fn is_mounted(folder: &Path) -> io::Result<bool> {
    Ok(mounts()?.iter().any(|mounted| mounted == folder))
}

/// Takes what is mounted last out of the tree, though it may be in use: umount2(2) MNT_DETACH.
///
/// # Errors
/// The errno of umount2(2).
pub fn detach(folder: &Path) -> io::Result<()> {
    Ok(umount2(folder, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW)?)
}

/// Whether the file system of a path is mounted read-only. statvfs(3).
///
/// # Errors
/// The errno of statvfs.
pub fn is_read_only(path: &Path) -> io::Result<bool> {
    let stat = nix::sys::statvfs::statvfs(path)?;
    Ok(stat.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY))
}

/// The kernel's own file systems: they hold nothing that could be lost, and /proc and /sys serve us to the end.
const KEPT: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/"];

/// Unmounts all that can be, last mounted first. What is still in use, and the root, becomes read-only instead, so
/// that nothing on it is lost when the machine ends. Returns what is still writable, with the reason.
pub fn unmount_all() -> Vec<(PathBuf, io::Error)> {
    let mut left = Vec::new();
    let mut points = mounts().unwrap_or_default();
    points.reverse();
    for point in points {
        if KEPT.iter().any(|kept| is_below(&point, kept)) {
            continue;
        }
        if umount2(&point, MntFlags::UMOUNT_NOFOLLOW).is_err()
            && let Err(error) = remount_read_only(&point)
        {
            left.push((point, error));
        }
    }
    if let Err(error) = remount_read_only(Path::new("/")) {
        left.push(("/".into(), error));
    }
    left
}

/// Makes the file system that is mounted there read-only, wherever else it is mounted.
fn remount_read_only(point: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    Ok(mount(none, point, none, MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, none)?)
}

/// Whether `point` is `kept` or, for all but the root, below it.
fn is_below(point: &Path, kept: &str) -> bool {
    if kept == "/" { point == Path::new("/") } else { point.starts_with(kept) }
}

/// Takes every swap device out of use, swapoff(2). Returns what is still in use, with the reason.
pub fn swap_off() -> Vec<(PathBuf, io::Error)> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let devices = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let mut left = Vec::new();
    for device in devices.map(unescape) {
        let Ok(path) = std::ffi::CString::new(device.as_str()) else { continue };
        // SAFETY: the call reads one NUL-terminated path that lives until it returns.
        if unsafe { libc::swapoff(path.as_ptr()) } != 0 {
            left.push((device.into(), io::Error::last_os_error()));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mounts_of_this_process_are_found() {
        let mounts = mounts().unwrap();
        assert!(mounts.contains(&PathBuf::from("/")) && mounts.contains(&PathBuf::from("/proc")));
    }

    #[test]
    fn what_is_mounted_already_is_left_alone() {
        let proc = &table()[0];
        assert!(matches!(ensure(proc), Outcome::AlreadyThere));
    }

    #[test]
    fn the_kernels_escapes_are_undone() {
        for (field, path) in
            [("/a\\040b", "/a b"), ("/a\\134", "/a\\"), ("/a\\", "/a\\"), ("/a", "/a"), ("\\04", "\\04")]
        {
            assert_eq!(unescape(field), path);
        }
    }

    #[test]
    fn only_the_kernels_own_file_systems_are_kept_at_the_end() {
        for (point, kept) in
            [("/", true), ("/proc", true), ("/dev/shm", true), ("/home", false), ("/develop", false)]
        {
            assert_eq!(KEPT.iter().any(|k| is_below(Path::new(point), k)), kept, "{point}");
        }
    }
}
