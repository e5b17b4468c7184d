//! Conditions on files and folders.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Machine;
use crate::pattern;

/// Whether anything is there that fits a pattern, glob(7): a pattern fits within one part of the path.
#[must_use]
pub fn glob(root: &Path, text: &str) -> bool {
    fits(root, &parts_of(text))
}

fn fits(folder: &Path, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return folder.exists() };
    if !first.contains(['*', '?', '[']) {
        return fits(&folder.join(first), rest);
    }
    fitting(folder, first).any(|path| fits(&path, rest))
}

/// Whether a path is a pattern, glob(7).
#[must_use]
pub fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// All that fits a pattern, by name.
#[must_use]
pub fn all_of_glob(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut ahead = vec![(PathBuf::from("/"), parts_of(text))];
    while let Some((folder, parts)) = ahead.pop() {
        match parts.split_first() {
            None => found.extend(folder.symlink_metadata().is_ok().then_some(folder)),
            Some((first, rest)) if !is_pattern(Path::new(first)) => {
                ahead.push((folder.join(first), rest.to_vec()))
            }
            Some((first, rest)) => ahead.extend(fitting(&folder, first).map(|path| (path, rest.to_vec()))),
        }
    }
    found.sort();
    found
}

fn parts_of(text: &str) -> Vec<&str> {
    text.split('/').filter(|part| !part.is_empty()).collect()
}

/// What a folder has that fits one part of a pattern. A leading dot is hidden from patterns.
fn fitting(folder: &Path, part: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(move |entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            (!name.starts_with('.') || part.starts_with('.')) && pattern::matches(part, &name)
        })
        .map(|entry| entry.path())
}

/// The folders whose entries decide whether a pattern fits anything, and what it leads to without a pattern.
#[must_use]
pub fn folders_of_glob(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    decide(Path::new("/"), &parts_of(text), &mut found);
    found
}

fn decide(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) {
    let Some((first, rest)) = parts.split_first() else { return found.push(folder.to_owned()) };
    if !first.contains(['*', '?', '[']) {
        return decide(&folder.join(first), rest, found);
    }
    found.push(folder.to_owned());
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|_| !rest.is_empty()) {
        if pattern::matches(first, &entry.file_name().to_string_lossy()) && entry.path().is_dir() {
            decide(&entry.path(), rest, found);
        }
    }
}

/// Whether it is a regular file of this kind.
pub(super) fn is_file(machine: &Machine, path: &str, and: impl Fn(&Metadata) -> bool) -> bool {
    fs::metadata(machine.path(path)).is_ok_and(|data| data.is_file() && and(&data))
}

pub(super) fn is_executable(data: &Metadata) -> bool {
    data.permissions().mode() & 0o111 != 0
}

/// The mount points of /proc/self/mounts with their options, proc(5).
fn mounts(machine: &Machine) -> Vec<(String, String)> {
    let text = machine.read("/proc/self/mounts");
    let fields = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        Some((unescaped(fields.next()?), fields.nth(1)?.to_owned()))
    };
    text.lines().filter_map(fields).collect()
}

/// Spaces and the like stand there as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

pub(super) fn is_mount_point(machine: &Machine, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    mounts(machine).iter().any(|(point, _)| point.trim_end_matches('/') == path)
}

/// It is there, and the file system that it is on is not mounted read-only.
pub(super) fn is_read_write(machine: &Machine, path: &str) -> bool {
    let mounts = mounts(machine);
    let around = mounts.iter().filter(|(point, _)| Path::new(path).starts_with(point));
    // Of several mounts over each other the last one is what is seen.
    let seen = around.max_by_key(|(point, _)| point.len());
    machine.path(path).exists()
        && seen.is_some_and(|(_, options)| !options.split(',').any(|option| option == "ro"))
}
