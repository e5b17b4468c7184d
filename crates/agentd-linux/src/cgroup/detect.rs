//! Where cgroup v2 is mounted and where in it this process stands: cgroups(7), proc_pid_mountinfo(5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mount::unescape;
use crate::signal::is_gone;
use crate::small;

/// How the machine mounts its cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// v2 alone, at `/sys/fs/cgroup`: all controllers are there to be enabled.
    Unified,
    /// v2 beside v1, mostly at `/sys/fs/cgroup/unified`: controllers that v1 holds are missing.
    Hybrid,
}

/// The mount of cgroup v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is.
    pub path: PathBuf,
    /// The cgroup that is seen there as the root: `/` but in a bind mount without a namespace of its own.
    pub root: String,
    /// Whether v1 is there too.
    pub layout: Layout,
}

/// Finds the mount, if there is one.
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read.
pub fn find_mount() -> io::Result<Option<Mount>> {
    Ok(parse_mountinfo(&fs::read_to_string("/proc/self/mountinfo")?))
}

/// The first cgroup2 mount wins: later ones may be of containers.
fn parse_mountinfo(text: &str) -> Option<Mount> {
    let mut found = None;
    let mut v1 = false;
    for line in text.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(3);
        let (Some(root), Some(path)) = (left.next(), left.next()) else { continue };
        match right.split(' ').next() {
            Some("cgroup2") if found.is_none() => found = Some((unescape(path), unescape(root))),
            Some("cgroup") => v1 = true,
            _ => {}
        }
    }
    let layout = if v1 { Layout::Hybrid } else { Layout::Unified };
    found.map(|(path, root)| Mount { path: PathBuf::from(path), root, layout })
}

/// The cgroup v2 path of a process, such as `/system.slice/redis.service`, as seen from our cgroup namespace. It
/// is there until the process is reaped, for a zombie too. None: there is no such process, or no cgroup v2.
///
/// # Errors
/// `/proc` cannot be read.
pub fn of_process(pid: u32) -> io::Result<Option<String>> {
    match small::read_path(&format!("/proc/{pid}/cgroup")) {
        Ok(text) => Ok(parse_cgroup(&text)),
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Line `0::PATH`. A cgroup that was removed under a zombie ends in ` (deleted)`.
pub(super) fn parse_cgroup(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// Where a cgroup path is in the file system.
pub(super) fn folder_of(mount: &Mount, cgroup: &str) -> PathBuf {
    let inside = match mount.root.as_str() {
        "/" => cgroup,
        root => cgroup.strip_prefix(root).unwrap_or(cgroup),
    };
    join(&mount.path, inside)
}

/// `Path::join` would replace the whole by an absolute path.
pub(super) fn join(base: &Path, cgroup: &str) -> PathBuf {
    match cgroup.trim_matches('/') {
        "" => base.to_owned(),
        inside => base.join(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn mounts_are_found_in_every_layout() {
        let path = |p: &str| PathBuf::from(p);
        assert_eq!(parse_mountinfo(V1), None);
        assert_eq!(parse_mountinfo(""), None);
        let hybrid = parse_mountinfo(&format!("{V1}{V2}")).unwrap();
        assert_eq!((hybrid.path, hybrid.layout), (path("/sys/fs/cgroup/unified"), Layout::Hybrid));
        let unified = parse_mountinfo("9 8 0:26 / /sys/fs/cgroup rw - cgroup2 none rw,nsdelegate").unwrap();
        assert_eq!((unified.path, unified.layout), (path("/sys/fs/cgroup"), Layout::Unified));
        let bound = parse_mountinfo("9 8 0:26 /a.slice /my\\040cg rw - cgroup2 none rw").unwrap();
        assert_eq!((bound.path, bound.root.as_str()), (path("/my cg"), "/a.slice"));
    }

    #[test]
    fn the_v2_line_of_a_process_counts() {
        for (text, path) in [
            ("0::/\n", Some("/")),
            ("9:name=systemd:/x\n0::/system.slice/a.service\n", Some("/system.slice/a.service")),
            ("0::/a.service (deleted)\n", Some("/a.service")),
            ("4:memory:/x\n", None),
            ("", None),
        ] {
            assert_eq!(parse_cgroup(text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn a_cgroup_is_found_below_a_bound_root() {
        let mount = |root: &str| Mount { path: "/m".into(), root: root.into(), layout: Layout::Unified };
        assert_eq!(folder_of(&mount("/"), "/"), Path::new("/m"));
        assert_eq!(folder_of(&mount("/"), "/a/b"), Path::new("/m/a/b"));
        assert_eq!(folder_of(&mount("/a"), "/a/b"), Path::new("/m/b"));
    }

    #[test]
    fn our_own_cgroup_is_known() {
        let own = of_process(std::process::id()).unwrap();
        assert_eq!(own.is_some(), find_mount().unwrap().is_some());
        assert_eq!(of_process(1 << 23).unwrap(), None);
    }
}
