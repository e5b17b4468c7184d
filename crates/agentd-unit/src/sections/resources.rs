//! What a service's cgroup is given, systemd.resource-control(5), besides the bounds of
//! [`ServiceSection`](super::ServiceSection).

use super::MemoryLimit;
use crate::words::Words;

/// The finer resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// `MemoryMin`: never reclaimed.
    pub memory_min: Option<MemoryLimit>,
    /// `MemoryLow`: reclaimed last.
    pub memory_low: Option<MemoryLimit>,
    /// `MemoryHigh`: slowed down above.
    pub memory_high: Option<MemoryLimit>,
    /// `MemorySwapMax`.
    pub memory_swap_max: Option<MemoryLimit>,
    /// `CPUWeight`: 1 to 10 000.
    pub cpu_weight: Option<u64>,
    /// `IOWeight`: 1 to 10 000.
    pub io_weight: Option<u64>,
    /// `AllowedCPUs`: numbers, sorted; empty: all.
    pub allowed_cpus: Vec<u32>,
    /// `OOMPolicy`: default stop.
    pub oom_policy: OomPolicy,
    /// `Delegate`: the cgroup belongs to the service's user, to make others in.
    pub delegate: bool,
}

/// `OOMPolicy`: what it means that the kernel killed a process for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OomPolicy {
    /// The service is stopped, and has failed.
    #[default]
    Stop,
    /// Nothing, besides what the loss of the process itself means.
    Continue,
    /// The kernel kills all of it at once.
    Kill,
}

impl Words for OomPolicy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("stop", Self::Stop), ("continue", Self::Continue), ("kill", Self::Kill)];
}
