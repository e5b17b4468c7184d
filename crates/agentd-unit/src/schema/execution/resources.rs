//! What the cgroup is given, systemd.resource-control(5).

use super::super::slot::names;
use super::super::{Setting, Slot};
use super::process::put_some;
use super::{processors, scalar, texts};
use crate::assignment::{Raw, Value};
use crate::schema::apply::{ApplyContext, resets, set};
use crate::sections::{IoBound, IoDevice, MemoryLimit, OomPolicy};
use crate::values::{Refused, boolean, limit, numbers, path};

/// The keys that a service and a slice have alike.
macro_rules! limits {
    ($section:ident) => {
        &[
    Setting::limit(
        "MemoryMin",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.memory_min, bound.map(Some));
        }),
        "Memory that the kernel never takes back; default none.",
    ),
    Setting::limit(
        "MemoryLow",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.memory_low, bound.map(Some));
        }),
        "Memory that the kernel takes back last; default none.",
    ),
    Setting::limit(
        "DefaultMemoryMin",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.default_memory_min, bound.map(Some));
        }),
        "MemoryMin of the units and slices below it that set none, and of those below these; default that of the slice above.",
    ),
    Setting::limit(
        "DefaultMemoryLow",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.default_memory_low, bound.map(Some));
        }),
        "MemoryLow of the units and slices below it that set none, and of those below these; default that of the slice above.",
    ),
    Setting::limit(
        "MemoryHigh",
        Slot::Memory(|d| &mut d.$section.resources.memory_high),
        "Above this its processes are slowed down and their memory is taken back.",
    ),
    Setting::limit(
        "MemorySwapMax",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.memory_swap_max, bound.map(Some));
        }),
        "How much of its memory may be swapped out; default all.",
    ),
    Setting::new(
        "MemoryZSwapMax",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.$section.resources.memory_zswap_max, bound.map(Some));
        }),
        "How much of what is swapped out may stay in memory, packed; default all.",
    ),
    Setting::limit(
        "CPUQuotaPeriodSec",
        Slot::Own("span of time", |v, d, cx| {
            let period = scalar(v, cx, "a span of time", crate::values::span::parse);
            set(&mut d.$section.resources.cpu_period, period);
        }),
        "The span over which CPUQuota counts, from 1 ms to 1 s; default 100 ms.",
    ),
    Setting::limit(
        "CPUWeight",
        Slot::Own(CPU_WEIGHT, |v, d, cx| {
            let weight = scalar(v, cx, "a weight", cpu_weight);
            set(&mut d.$section.resources.cpu_weight, weight.map(Some));
        }),
        "Its share of the processors beside others, or idle: only what nobody else wants; default 100.",
    ),
    Setting::limit(
        "IOWeight",
        Slot::Own(WEIGHT, |v, d, cx| {
            let weight = scalar(v, cx, "a weight", weight);
            set(&mut d.$section.resources.io_weight, weight.map(Some));
        }),
        "Its share of the disks beside others; default 100.",
    ),
    Setting::new(
        "IODeviceWeight",
        Slot::Own(DEVICE_WEIGHT, |v, d, cx| io(IoBound::Weight, v, &mut d.$section.resources.io_devices, cx)),
        "The same for single disks.",
    ),
    Setting::new(
        "IOReadBandwidthMax",
        Slot::Own(DEVICE_BYTES, |v, d, cx| io(IoBound::ReadBytes, v, &mut d.$section.resources.io_devices, cx)),
        "How many bytes a second it may read of a disk; K, M, G count by 1000.",
    ),
    Setting::new(
        "IOWriteBandwidthMax",
        Slot::Own(DEVICE_BYTES, |v, d, cx| io(IoBound::WriteBytes, v, &mut d.$section.resources.io_devices, cx)),
        "How many bytes a second it may write to a disk.",
    ),
    Setting::new(
        "IOReadIOPSMax",
        Slot::Own(DEVICE_BYTES, |v, d, cx| io(IoBound::ReadOperations, v, &mut d.$section.resources.io_devices, cx)),
        "How many times a second it may read of a disk.",
    ),
    Setting::new(
        "IOWriteIOPSMax",
        Slot::Own(DEVICE_BYTES, |v, d, cx| io(IoBound::WriteOperations, v, &mut d.$section.resources.io_devices, cx)),
        "How many times a second it may write to a disk.",
    ),
    Setting::limit(
        "AllowedMemoryNodes",
        Slot::Own("numbers and ranges of memory nodes", |value, d, cx| {
            processors(&mut d.$section.resources.allowed_nodes, value, cx);
        }),
        "The memory nodes that all of its processes may use; default all.",
    ),
    Setting::limit(
        "AllowedCPUs",
        Slot::Own("numbers and ranges of processors", |value, d, cx| {
            processors(&mut d.$section.resources.allowed_cpus, value, cx);
        }),
        "The processors that all of its processes may run on; default all.",
    ),
        ]
    };
}

/// A service's.
pub(super) const SETTINGS: &[Setting] = limits!(service);

/// A slice's.
pub(in crate::schema) const OF_SLICES: &[Setting] = limits!(slice);

/// What a service's cgroup has besides.
pub(super) const OWN: &[Setting] = &[
    Setting::new(
        "OOMPolicy",
        Slot::Choice(names::<OomPolicy>, |d, word| put_some(&mut d.service.resources.oom_policy, word)),
        "When one process is killed for memory: stop the service, continue, or have the kernel kill all of it; default stop, and continue with Delegate.",
    ),
    Setting::new(
        "Delegate",
        Slot::Own("boolean, or controllers", |value, d, cx| {
            let delegate = match &value.raw {
                Raw::Bool(yes) => Some(*yes),
                Raw::Text(text) if text.trim().is_empty() => Some(false),
                _ => scalar(value, cx, "true, false or controllers", delegate),
            };
            set(&mut d.service.resources.delegate, delegate);
        }),
        "Its user may make cgroups of its own below the service's; default no.",
    ),
];

const SIZE: &str = "size, percentage or \"infinity\"";
const CPU_WEIGHT: &str = "number from 1 to 10000, or idle";
const WEIGHT: &str = "number from 1 to 10000";
const DEVICE_WEIGHT: &str = "list of \"PATH WEIGHT\"";
const DEVICE_BYTES: &str = "list of \"PATH NUMBER\"";

/// Adds what is said of disks; nothing takes back what this key has said.
fn io(what: IoBound, value: &Value<'_>, known: &mut Vec<IoDevice>, cx: &mut ApplyContext<'_>) {
    let mut found = Vec::new();
    texts(&mut found, value, cx, "a path and a number", |text| io_device(what, text));
    known.retain(|device| !resets(value) || device.what != what);
    known.extend(found);
}

fn io_device(what: IoBound, text: &str) -> Result<IoDevice, Refused> {
    let wrong = || Refused::of(text, "is no path and number", "write for example \"/dev/sda 10M\"");
    let (path, number) = text.trim().rsplit_once([' ', '\t']).ok_or_else(wrong)?;
    let path = path::absolute(path.trim_end())?;
    let value = match what {
        IoBound::Weight => weight(number)?,
        _ if number == "infinity" => u64::MAX,
        _ => thousands(number).filter(|value| *value > 0).ok_or_else(wrong)?,
    };
    Ok(IoDevice { what, path, value })
}

/// A number with K, M, G or T, which count by 1000 here, systemd.resource-control(5).
fn thousands(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let power = match &text[digits.len()..] {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1000_u64.pow(power))
}

/// As for a bound, and nothing at all.
fn or_zero(text: &str) -> Result<MemoryLimit, Refused> {
    match text.trim() {
        "0" | "0%" => Ok(MemoryLimit::Bytes(0)),
        text => limit::memory(text),
    }
}

/// 0 stands for `idle`.
fn cpu_weight(text: &str) -> Result<u64, Refused> {
    if text == "idle" { Ok(0) } else { weight(text) }
}

fn weight(text: &str) -> Result<u64, Refused> {
    numbers::between(text, 1, 10_000).map(|number| u64::from(number.unsigned_abs()))
}

/// Yes or no; naming controllers is a yes, since all that there are come along.
fn delegate(text: &str) -> Result<bool, Refused> {
    const CONTROLLERS: [&str; 8] = ["cpu", "cpuacct", "cpuset", "io", "blkio", "memory", "devices", "pids"];
    match boolean::parse(text) {
        Err(_) if text.split_ascii_whitespace().all(|word| CONTROLLERS.contains(&word)) => Ok(true),
        result => result,
    }
}
