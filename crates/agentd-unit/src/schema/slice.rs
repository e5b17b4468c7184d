//! `[Slice]`, systemd.resource-control(5).

use super::execution::OF_SLICES;
use super::{Setting, Slot, joined};

const COUNT: usize = BOUNDS.len() + OF_SLICES.len();

/// The keys.
pub(super) const SETTINGS: &[Setting] = &ALL;

const ALL: [Setting; COUNT] = joined(&[BOUNDS, OF_SLICES]);

const BOUNDS: &[Setting] = &[
    Setting::limit(
        "MemoryMax",
        Slot::Memory(|d| &mut d.slice.memory_max),
        "How much memory all its units may use together.",
    ),
    Setting::limit(
        "CPUQuota",
        Slot::CpuQuota(|d| &mut d.slice.cpu_quota),
        "How much processor time they may use; 100% is one CPU.",
    ),
    Setting::limit(
        "TasksMax",
        Slot::Tasks(|d| &mut d.slice.tasks_max),
        "How many tasks there may be at once.",
    ),
];
