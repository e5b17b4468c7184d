//! What the cgroup is given, systemd.resource-control(5).

use super::super::slot::{names, put};
use super::super::{Setting, Slot};
use super::{processors, scalar};
use crate::assignment::Raw;
use crate::schema::apply::set;
use crate::sections::{MemoryLimit, OomPolicy};
use crate::values::{Refused, boolean, limit, numbers};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::limit(
        "MemoryMin",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.service.resources.memory_min, bound.map(Some));
        }),
        "Memory that the kernel never takes back; default none.",
    ),
    Setting::limit(
        "MemoryLow",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.service.resources.memory_low, bound.map(Some));
        }),
        "Memory that the kernel takes back last; default none.",
    ),
    Setting::limit(
        "MemoryHigh",
        Slot::Memory(|d| &mut d.service.resources.memory_high),
        "Above this its processes are slowed down and their memory is taken back.",
    ),
    Setting::limit(
        "MemorySwapMax",
        Slot::Own(SIZE, |v, d, cx| {
            let bound = scalar(v, cx, "a size", or_zero);
            set(&mut d.service.resources.memory_swap_max, bound.map(Some));
        }),
        "How much of its memory may be swapped out; default all.",
    ),
    Setting::limit(
        "CPUWeight",
        Slot::Own(WEIGHT, |v, d, cx| {
            let weight = scalar(v, cx, "a weight", weight);
            set(&mut d.service.resources.cpu_weight, weight.map(Some));
        }),
        "Its share of the processors beside others; default 100.",
    ),
    Setting::limit(
        "IOWeight",
        Slot::Own(WEIGHT, |v, d, cx| {
            let weight = scalar(v, cx, "a weight", weight);
            set(&mut d.service.resources.io_weight, weight.map(Some));
        }),
        "Its share of the disks beside others; default 100.",
    ),
    Setting::limit(
        "AllowedCPUs",
        Slot::Own("numbers and ranges of processors", |value, d, cx| {
            processors(&mut d.service.resources.allowed_cpus, value, cx);
        }),
        "The processors that all of its processes may run on; default all.",
    ),
    Setting::new(
        "OOMPolicy",
        Slot::Choice(names::<OomPolicy>, |d, word| put(&mut d.service.resources.oom_policy, word)),
        "When one process is killed for memory: stop the service, continue, or have the kernel kill all of it; default stop.",
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
const WEIGHT: &str = "number from 1 to 10000";

/// As for a bound, and nothing at all.
fn or_zero(text: &str) -> Result<MemoryLimit, Refused> {
    match text.trim() {
        "0" | "0%" => Ok(MemoryLimit::Bytes(0)),
        text => limit::memory(text),
    }
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
