//! Conditions on files and folders.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Machine;
use crate::pattern;

/// Whether anything is there that fits a pattern, glob(7): a pattern fits within one part of the path.
#[must_use]
pub fn glob(root: &Path, text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    fits(root, &parts)
}

fn fits(folder: &Path, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return folder.exists() };
    if !first.contains(['*', '?', '[']) {
        return fits(&folder.join(first), rest);
    }
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A leading dot is hidden from patterns.
        let seen = !name.starts_with('.') || first.starts_with('.');
        seen && pattern::matches(first, &name) && fits(&entry.path(), rest)
    })
}

/// The folders whose entries decide whether a pattern fits anything, and what it leads to without a pattern.
#[must_use]
pub fn folders_of_glob(text: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    decide(Path::new("/"), &parts, &mut found);
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
