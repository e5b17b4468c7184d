//! `[Slice]`, systemd.resource-control(5).

use super::apply::set;
use super::execution::scalar;
use super::{Setting, Slot};
use crate::values::numbers;

const fn slice(key: &'static str, slot: Slot, doc: &'static str) -> Setting {
    Setting::typed(key, slot, doc, "limits of slices come with a later version")
}

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    slice("MemoryLow", Slot::Memory(|d| &mut d.slice.memory_low), "Memory that is taken back last."),
    slice("MemoryHigh", Slot::Memory(|d| &mut d.slice.memory_high), "Above this they are slowed down."),
    slice("MemoryMax", Slot::Memory(|d| &mut d.slice.memory_max), "How much memory all its units may use."),
    slice(
        "CPUQuota",
        Slot::CpuQuota(|d| &mut d.slice.cpu_quota),
        "How much processor time; 100% is one CPU.",
    ),
    slice(
        "CPUWeight",
        Slot::Own("number from 1 to 10000", |value, d, cx| {
            let weight = scalar(value, cx, "a weight", |text| numbers::between(text, 1, 10_000));
            set(&mut d.slice.cpu_weight, weight.map(|weight| Some(weight.unsigned_abs())));
        }),
        "Its share of the processors beside others; default 100.",
    ),
    slice(
        "IOWeight",
        Slot::Own("number from 1 to 10000", |value, d, cx| {
            let weight = scalar(value, cx, "a weight", |text| numbers::between(text, 1, 10_000));
            set(&mut d.slice.io_weight, weight.map(|weight| Some(weight.unsigned_abs())));
        }),
        "Its share of the disks beside others; default 100.",
    ),
    slice("TasksMax", Slot::Tasks(|d| &mut d.slice.tasks_max), "How many tasks there may be at once."),
];
