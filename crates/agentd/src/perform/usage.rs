//! What the kernel counts for a run.

use agentd_linux::cgroup::{Leaf, Pressure};

/// The counters of a cgroup; `None` where the controller is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes in use.
    pub memory_current: Option<u64>,
    /// The most bytes that were in use (Linux 5.19).
    pub memory_peak: Option<u64>,
    /// CPU time in nanoseconds.
    pub cpu_nsec: Option<u64>,
    /// Tasks.
    pub tasks: Option<u64>,
    /// Bytes in swap.
    pub swap: Option<u64>,
    /// Bytes read from disks.
    pub io_read: Option<u64>,
    /// Bytes written to disks.
    pub io_write: Option<u64>,
    /// How much its tasks wait.
    pub pressure: Pressure,
}

/// Reads the counters of a unit's cgroup.
#[must_use]
pub fn read(leaf: &Leaf) -> Usage {
    let stats = leaf.stats();
    Usage {
        memory_current: stats.memory_current,
        memory_peak: stats.memory_peak,
        cpu_nsec: stats.cpu_usage_us.map(|us| us.saturating_mul(1000)),
        tasks: stats.tasks_current,
        swap: stats.memory_swap_current,
        io_read: stats.io_read_bytes,
        io_write: stats.io_write_bytes,
        pressure: leaf.pressure(),
    }
}
