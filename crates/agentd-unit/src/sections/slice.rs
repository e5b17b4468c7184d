//! `[Slice]`, systemd.resource-control(5): what all units of a branch may use together.

use super::{MemoryLimit, TasksLimit};

/// `[Slice]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SliceSection {
    /// `MemoryLow`: reclaimed last.
    pub memory_low: Option<MemoryLimit>,
    /// `MemoryHigh`: slowed down above.
    pub memory_high: Option<MemoryLimit>,
    /// `MemoryMax`.
    pub memory_max: Option<MemoryLimit>,
    /// `CPUQuota`: in hundredths of a percent of one CPU.
    pub cpu_quota: Option<u64>,
    /// `CPUWeight`: 1 to 10 000.
    pub cpu_weight: Option<u32>,
    /// `IOWeight`: 1 to 10 000.
    pub io_weight: Option<u32>,
    /// `TasksMax`.
    pub tasks_max: Option<TasksLimit>,
}
