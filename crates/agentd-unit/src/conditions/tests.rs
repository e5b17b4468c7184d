//! Each test against a machine made of files.

#![allow(clippy::unwrap_used, reason = "a test helper fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crate::sections::{Condition, Test};

use super::compare::order;
use super::{Machine, check};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn machine(name: &str) -> (Folder, Machine) {
    let root = std::env::temp_dir().join(format!("agentd-conditions-{}-{name}", std::process::id()));
    let folder = Folder(root.clone());
    for (file, text) in [
        ("etc/a", "text"),
        ("etc/empty", ""),
        ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n"),
        ("etc/group", "root:x:0:\nadm:x:4:\n"),
        ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n"),
        ("proc/sys/kernel/hostname", "Box7\n"),
        ("proc/sys/kernel/osrelease", "6.14.2-arch1\n"),
        ("proc/cmdline", "quiet root=/dev/vda systemd.unit=x\n"),
        ("proc/meminfo", "MemTotal:  2097152 kB\n"),
        ("proc/cpuinfo", "flags : fpu hypervisor\n"),
        ("proc/1/environ", "HOME=/\0container=podman\0"),
        (
            "proc/self/status",
            "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t4 \nCapBnd:\t0000000000000021\nCpus_allowed_list:\t0-2,5\n",
        ),
        (
            "proc/self/mounts",
            "r / ext4 rw 0 0\np /proc proc rw 0 0\nu /usr ext4 ro,x 0 0\ns /a\\040b ext4 rw 0 0\n",
        ),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n"),
        ("sys/module/zram/x", ""),
        ("sys/class/power_supply/AC/type", "Mains\n"),
        ("sys/class/power_supply/AC/online", "0\n"),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
        ("usr/bin/tool", "#!"),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir_all(root.join("var/void")).unwrap();
    fs::set_permissions(root.join("usr/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", root.join("etc/link")).unwrap();
    let environment = vec![("LANG".to_owned(), "C".to_owned())];
    (folder, Machine { root, environment, architecture: "x86_64" })
}

fn condition(test: Test, text: &str) -> Condition {
    Condition { test, parameter: text.to_owned(), negate: false, trigger: false, assert: false }
}

#[test]
fn each_test_tells_what_holds_from_what_does_not() {
    use Test as T;
    let (_folder, machine) = machine("each");
    let mut seen = std::collections::BTreeSet::new();
    for (test, yes, no) in [
        (T::PathExists, &["/etc/a", "/etc"][..], &["/etc/b"][..]),
        (T::PathExistsGlob, &["/etc/m*-id", "/*/a", "/etc/[a]"], &["/etc/z*", "/*/z"]),
        (T::PathIsDirectory, &["/etc"], &["/etc/a"]),
        (T::PathIsSymbolicLink, &["/etc/link"], &["/etc/a"]),
        (T::PathIsMountPoint, &["/usr", "/", "/a b"], &["/etc"]),
        (T::PathIsReadWrite, &["/etc"], &["/usr/bin", "/nowhere"]),
        (T::DirectoryNotEmpty, &["/etc"], &["/var/void", "/etc/a"]),
        (T::FileNotEmpty, &["/etc/a"], &["/etc/empty", "/etc"]),
        (T::FileIsExecutable, &["/usr/bin/tool"], &["/etc/a", "/usr/bin"]),
        (T::Host, &["box7", "BOX*", "0123456789abcdef0123456789abcdef"], &["box", "0123"]),
        (T::Architecture, &["x86-64", "native"], &["arm64", "x86_64"]),
        (T::Virtualization, &["yes", "container", "podman"], &["no", "vm", "kvm"]),
        (T::KernelCommandLine, &["quiet", "root", "root=/dev/vda"], &["quie", "root=/dev/vdb"]),
        (T::KernelVersion, &["6.14.*", ">=6.1", ">= 6.1 < 7", "!= 5"], &["5.*", "<6.9", ">6.14.2-arch1", ""]),
        (T::KernelModuleLoaded, &["zram"], &["zfs"]),
        (T::Environment, &["LANG", "LANG=C"], &["LC_ALL", "LANG=de"]),
        (T::User, &["root", "0", "@system"], &["bob", "7", "nobody"]),
        (T::Group, &["root", "adm", "4"], &["wheel", "5"]),
        (T::Memory, &["1G", ">= 2G", "<3G"], &["3G", "<2G", "much"]),
        (T::CPUs, &["4", ">3", "= 4"], &["5", "<4", "four"]),
        (
            T::OSRelease,
            &["ID=debian", "ID=debian VERSION_ID>=9", "ID!=arch"],
            &["ID=arch", "VERSION_ID>12", "ID"],
        ),
        (T::ControlGroupController, &["v2", "cpu memory"], &["v1", "cpu io"]),
        (T::Capability, &["CAP_CHOWN", "CAP_KILL"], &["CAP_SYS_ADMIN", "CAP_NONE"]),
        (T::ACPower, &["no", "false"], &["yes", "1"]),
        (T::CPUFeature, &["fpu"], &["fp", "flags"]),
    ] {
        seen.insert(test);
        for (texts, expected) in [(yes, true), (no, false)] {
            for text in texts {
                let found = check(&[condition(test, text)], &machine).condition.is_ok();
                assert_eq!(found, expected, "{test:?} {text:?}");
                let negated = Condition { negate: true, ..condition(test, text) };
                assert_eq!(check(&[negated], &machine).condition.is_ok(), !expected, "{test:?} !{text:?}");
            }
        }
    }
    assert_eq!(seen.len(), Test::ALL.len(), "a test of its own for each");
}

#[test]
fn a_machine_without_a_mains_supply_is_taken_for_one_that_has_power() {
    let (_folder, machine) = machine("mains");
    let power = condition(Test::ACPower, "true");
    assert!(check(std::slice::from_ref(&power), &machine).condition.is_err());
    fs::write(machine.root.join("sys/class/power_supply/AC/online"), "1\n").unwrap();
    assert!(check(std::slice::from_ref(&power), &machine).condition.is_ok());
    fs::remove_dir_all(machine.root.join("sys/class/power_supply/AC")).unwrap();
    assert!(check(&[power], &machine).condition.is_ok());
}

#[test]
fn all_must_hold_and_of_those_with_a_bar_one() {
    let (_folder, machine) = machine("all");
    for (case, texts, unmet) in [
        ("none", &[][..], None),
        ("both", &["/etc/a", "/etc"], None),
        ("the second does not", &["/etc/a", "/x"], Some("ConditionPathExists=/x")),
        ("one with a bar", &["|/x", "|/etc"], None),
        ("none with a bar", &["|/x", "|/y"], Some("ConditionPathExists=|/x")),
        ("one with a bar, and one without", &["|/etc", "/x"], Some("ConditionPathExists=/x")),
    ] {
        let conditions: Vec<Condition> = texts
            .iter()
            .map(|text| Condition {
                trigger: text.starts_with('|'),
                ..condition(Test::PathExists, text.trim_start_matches('|'))
            })
            .collect();
        let checked = check(&conditions, &machine);
        assert_eq!(checked.condition.err().as_deref(), unmet, "{case}");
        assert!(checked.assertion.is_ok(), "{case}: an assert is another matter");
    }
}

#[test]
fn versions_stand_in_their_order() {
    let row = ["1~rc1", "1", "1.2", "1.2a", "1.10", "2-1", "2.1", "10"];
    for (i, a) in row.iter().enumerate() {
        for (j, b) in row.iter().enumerate() {
            if [a, b].iter().all(|version| version.starts_with("2")) {
                continue; // Separators do not count.
            }
            assert_eq!(order(a, b), i.cmp(&j), "{a} {b}");
        }
    }
}
