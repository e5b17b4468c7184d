//! `[Slice]`, systemd.resource-control(5): what all units of a branch may use together.

use super::{MemoryLimit, Resources, TasksLimit};

/// `[Slice]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SliceSection {
    /// `MemoryMax`.
    pub memory_max: Option<MemoryLimit>,
    /// `CPUQuota`: in hundredths of a percent of one CPU.
    pub cpu_quota: Option<u64>,
    /// `TasksMax`.
    pub tasks_max: Option<TasksLimit>,
    /// The finer ones; `OOMPolicy` and `Delegate` are a service's alone.
    pub resources: Resources,
}
