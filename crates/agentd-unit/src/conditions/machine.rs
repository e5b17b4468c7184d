//! Conditions on the machine, its kernel, and what runs the manager.

use crate::values::{capability, limit};

use super::compare::{self, operator, order};
use super::{Machine, paths};
use crate::pattern;

/// Below this number an account is the system's, systemd's default.
const FIRST_USER: u64 = 1000;

pub(super) fn host(machine: &Machine, wanted: &str) -> bool {
    let id = machine.read("/etc/machine-id");
    let name = machine.read("/proc/sys/kernel/hostname").to_ascii_lowercase();
    (!id.is_empty() && wanted == id) || pattern::matches(&wanted.to_ascii_lowercase(), &name)
}

/// systemd's names of what Rust calls otherwise.
pub(super) fn architecture(machine: &Machine, wanted: &str) -> bool {
    let name = match machine.architecture {
        "x86_64" => "x86-64",
        "aarch64" => "arm64",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64-le",
        "powerpc64" => "ppc64",
        other => other,
    };
    wanted == "native" || wanted == name
}

/// What the machine runs in: the container's or the hypervisor's name.
fn surroundings(machine: &Machine) -> (Option<String>, Option<&'static str>) {
    // container-interface.systemd.io: the container's maker tells its first process.
    let own = machine.read("/proc/1/environ");
    let told = own.split('\0').find_map(|entry| entry.strip_prefix("container=")).map(str::to_owned);
    let marks = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];
    let marked =
        || marks.iter().find(|(file, _)| machine.path(file).exists()).map(|(_, name)| (*name).to_owned());
    let vendor =
        machine.read("/sys/class/dmi/id/sys_vendor") + &machine.read("/sys/class/dmi/id/product_name");
    let known = [
        ("KVM", "kvm"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("VirtualBox", "oracle"),
        ("innotek", "oracle"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("Amazon EC2", "amazon"),
        ("Google Compute", "google"),
        ("Virtual Machine", "microsoft"),
    ];
    let machine_flag = machine.read("/proc/cpuinfo").lines().any(|line| {
        line.starts_with("flags") && line.split_ascii_whitespace().any(|flag| flag == "hypervisor")
    });
    let named = known.iter().find(|(mark, _)| vendor.contains(mark)).map(|(_, name)| *name);
    (told.or_else(marked), named.or(machine_flag.then_some("vm-other")))
}

pub(super) fn virtualization(machine: &Machine, wanted: &str) -> bool {
    let (container, hypervisor) = surroundings(machine);
    match wanted {
        "yes" | "true" | "1" | "on" => container.is_some() || hypervisor.is_some(),
        "no" | "false" | "0" | "off" => container.is_none() && hypervisor.is_none(),
        "vm" => container.is_none() && hypervisor.is_some(),
        "container" => container.is_some(),
        name => container.as_deref().or(hypervisor) == Some(name),
    }
}

/// A word stands for itself and for its `word=value`; a `word=value` for itself.
pub(super) fn kernel_command_line(machine: &Machine, wanted: &str) -> bool {
    let line = machine.read("/proc/cmdline");
    line.split_ascii_whitespace()
        .any(|word| word == wanted || (!wanted.contains('=') && word.split('=').next() == Some(wanted)))
}

pub(super) fn environment(machine: &Machine, wanted: &str) -> bool {
    let mut variables = machine.environment.iter();
    match wanted.split_once('=') {
        Some((name, value)) => variables.any(|(n, v)| n == name && v == value),
        None => variables.any(|(n, _)| n == wanted),
    }
}

/// The numbers behind a key of /proc/self/status, proc(5).
fn status(machine: &Machine, key: &str) -> Vec<u64> {
    let text = machine.read("/proc/self/status");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default();
    line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The number of a name in a file of passwd(5) or group(5).
fn account(machine: &Machine, file: &str, name: &str) -> Option<u64> {
    let text = machine.read(file);
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

fn is_account(machine: &Machine, file: &str, wanted: &str, mine: &[u64]) -> bool {
    if wanted == "@system" {
        return mine.iter().any(|id| *id < FIRST_USER);
    }
    let id = wanted.parse().ok().or_else(|| account(machine, file, wanted));
    id.is_some_and(|id| mine.contains(&id))
}

/// The real or the effective user.
pub(super) fn user(machine: &Machine, wanted: &str) -> bool {
    let mine = status(machine, "Uid");
    is_account(machine, "/etc/passwd", wanted, &mine[..mine.len().min(2)])
}

/// The real or the effective group, or one of the others.
pub(super) fn group(machine: &Machine, wanted: &str) -> bool {
    let mut mine = status(machine, "Gid");
    mine.truncate(2);
    mine.extend(status(machine, "Groups"));
    is_account(machine, "/etc/group", wanted, &mine)
}

pub(super) fn memory(machine: &Machine, wanted: &str) -> bool {
    let text = machine.read("/proc/meminfo");
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    let found = kib.unwrap_or_default().saturating_mul(1024);
    compare::number(found, wanted, |text| limit::size(text).ok())
}

/// As many as /proc/self/status lists: `0-3,8`.
pub(super) fn cpus(machine: &Machine, wanted: &str) -> bool {
    let text = machine.read("/proc/self/status");
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let count = |part: &str| -> Option<u64> {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    let found = list.split(',').filter_map(count).sum();
    compare::number(found, wanted, |text| text.parse().ok())
}

/// All the comparisons of fields hold, os-release(5).
pub(super) fn os_release(machine: &Machine, wanted: &str) -> bool {
    let file = if paths::is_file(machine, "/etc/os-release", |_| true) {
        "/etc/os-release"
    } else {
        "/usr/lib/os-release"
    };
    let text = machine.read(file);
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.trim_matches(['"', '\'']).to_owned()).unwrap_or_default()
    };
    let mut words = wanted.split_ascii_whitespace().peekable();
    words.peek().is_some()
        && words.all(|word| {
            let Some(at) = word.find(['<', '>', '=', '!']) else { return false };
            let (name, rest) = word.split_at(at);
            let found = field(name);
            match operator(rest) {
                Some((holds, value)) if rest.starts_with(['<', '>']) && !rest.starts_with("<>") => {
                    holds(order(&found, value))
                }
                Some((holds, value)) => holds(found.as_str().cmp(value)),
                None => false,
            }
        })
}

/// What a process of the manager can ever have, capabilities(7) "bounding set".
pub(super) fn capability(machine: &Machine, wanted: &str) -> bool {
    let text = machine.read("/proc/self/status");
    let bounding = text.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let bounding = bounding.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or_default();
    matches!(capability::parse([wanted]), Ok(capability::Set::Only(mask)) if mask != 0 && bounding & mask == mask)
}

/// Where there is no mains supply, or one of them gives power: as in systemd, who does not know is on mains.
pub(super) fn ac_power(machine: &Machine) -> bool {
    let entries = std::fs::read_dir(machine.path("/sys/class/power_supply")).into_iter().flatten().flatten();
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mains =
        entries.map(|entry| entry.path()).filter(|supply| text(supply.join("type")).trim() == "Mains");
    let mut online = mains.map(|supply| text(supply.join("online")).trim() == "1").peekable();
    online.peek().is_none() || online.any(|online| online)
}

pub(super) fn cpu_feature(machine: &Machine, wanted: &str) -> bool {
    let text = machine.read("/proc/cpuinfo");
    let flags = text.lines().find_map(|line| {
        let (name, flags) = line.split_once(':')?;
        matches!(name.trim(), "flags" | "Features").then_some(flags)
    });
    flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == wanted))
}

pub(super) fn controllers(machine: &Machine, wanted: &str) -> bool {
    const FILE: &str = "/sys/fs/cgroup/cgroup.controllers";
    let unified = machine.path(FILE).exists();
    let there = machine.read(FILE);
    let mut words = wanted.split_ascii_whitespace().peekable();
    words.peek().is_some()
        && words.all(|word| match word {
            "v2" => unified,
            "v1" => !unified,
            name => there.split_ascii_whitespace().any(|controller| controller == name),
        })
}
