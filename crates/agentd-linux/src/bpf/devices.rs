//! Which devices the processes of a cgroup may use: a program that the kernel asks at each open and mknod.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::code::{Instruction, Part, and, copy, give, load, rule, shift};

/// The two kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// Of blocks.
    Block,
    /// Of characters.
    Character,
}

/// What may be done with which devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAccess {
    /// Their kind.
    pub kind: DeviceKind,
    /// Their major number; None: any.
    pub major: Option<u32>,
    /// Their minor number; None: any.
    pub minor: Option<u32>,
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
    /// Its node may be made.
    pub make: bool,
}

/// BPF_DEVCG_ACC_MKNOD, _READ and _WRITE of linux/bpf.h; what is asked for stands above the kind.
const MAKE: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
const ALL: u32 = MAKE | READ | WRITE;

/// Registers: what is asked for, the kind, the numbers, and one for a while.
const ASKED: u8 = 2;
const KIND: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;
const WHILE: u8 = 6;

/// The program that lets through what one of the entries allows, and nothing else.
#[must_use]
pub fn only(entries: &[DeviceAccess]) -> Vec<Instruction> {
    // struct bpf_cgroup_dev_ctx: asked for and kind, major, minor.
    let mut code = vec![load(ASKED, 1, 0), copy(KIND, ASKED), and(KIND, 0xffff), shift(ASKED, 16)];
    code.extend([load(MAJOR, 1, 4), load(MINOR, 1, 8)]);
    for entry in entries {
        let mut parts = vec![Part::Must(
            KIND,
            match entry.kind {
                DeviceKind::Block => 1,
                DeviceKind::Character => 2,
            },
        )];
        let allowed = [(entry.read, READ), (entry.write, WRITE), (entry.make, MAKE)];
        let allowed = allowed.iter().filter(|(yes, _)| *yes).fold(0, |all, (_, bit)| all | bit);
        if allowed != ALL {
            let beyond = and(WHILE, ALL & !allowed);
            parts.extend([Part::Do(copy(WHILE, ASKED)), Part::Do(beyond), Part::Must(WHILE, 0)]);
        }
        parts.extend(entry.major.map(|major| Part::Must(MAJOR, major)));
        parts.extend(entry.minor.map(|minor| Part::Must(MINOR, minor)));
        code.extend(rule(&parts, &give(1)));
    }
    code.extend(give(0));
    code
}

/// The kind and the numbers of the device at a path.
///
/// # Errors
/// ENOENT; `InvalidInput`: it is no device.
pub fn of_path(path: &Path) -> io::Result<(DeviceKind, u32, u32)> {
    let meta = fs::metadata(path)?;
    let kind = match meta.file_type() {
        kind if kind.is_block_device() => DeviceKind::Block,
        kind if kind.is_char_device() => DeviceKind::Character,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no device")),
    };
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok((kind, number(nix::sys::stat::major(meta.rdev())), number(nix::sys::stat::minor(meta.rdev()))))
}

/// The major numbers of the drivers of a kind whose names are `wanted`, from `/proc/devices`.
///
/// # Errors
/// /proc is not there.
pub fn majors(kind: DeviceKind, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<u32>> {
    Ok(majors_in(&fs::read_to_string("/proc/devices")?, kind, wanted))
}

fn majors_in(table: &str, kind: DeviceKind, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let head = match kind {
        DeviceKind::Block => "Block devices:",
        DeviceKind::Character => "Character devices:",
    };
    let lines = table.lines().skip_while(|line| *line != head).skip(1);
    let entries = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.trim().split_once(' '));
    entries.filter(|(_, name)| wanted(name.trim())).filter_map(|(major, _)| major.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_by_name_among_those_of_their_kind() {
        let table = "Character devices:\n  1 mem\n136 pts\n137 pts\n\nBlock devices:\n  8 sd\n 65 sd\n";
        for (kind, name, found) in [
            (DeviceKind::Character, "pts", vec![136, 137]),
            (DeviceKind::Block, "sd", vec![8, 65]),
            (DeviceKind::Block, "pts", vec![]),
            (DeviceKind::Character, "sd", vec![]),
        ] {
            assert_eq!(majors_in(table, kind, |known| known == name), found, "{name}");
        }
    }
}
