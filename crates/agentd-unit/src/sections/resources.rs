//! What a service's cgroup is given, systemd.resource-control(5), besides the bounds of
//! [`ServiceSection`](super::ServiceSection).

use std::path::PathBuf;
use std::time::Duration;

use super::MemoryLimit;
use crate::words::Words;

/// The finer resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// `MemoryMin`: never reclaimed.
    pub memory_min: Option<MemoryLimit>,
    /// `MemoryLow`: reclaimed last.
    pub memory_low: Option<MemoryLimit>,
    /// `DefaultMemoryMin`: [`Resources::memory_min`] of what lies below and sets none.
    pub default_memory_min: Option<MemoryLimit>,
    /// `DefaultMemoryLow`: [`Resources::memory_low`] of what lies below and sets none.
    pub default_memory_low: Option<MemoryLimit>,
    /// `MemoryHigh`: slowed down above.
    pub memory_high: Option<MemoryLimit>,
    /// `MemorySwapMax`.
    pub memory_swap_max: Option<MemoryLimit>,
    /// `MemoryZSwapMax`: how much of what is swapped out may stay in memory, packed.
    pub memory_zswap_max: Option<MemoryLimit>,
    /// `CPUQuotaPeriodSec`: the span over which CPUQuota counts.
    pub cpu_period: Option<Duration>,
    /// `CPUWeight`: 1 to 10 000; 0 stands for `idle`.
    pub cpu_weight: Option<u64>,
    /// `IOWeight`: 1 to 10 000.
    pub io_weight: Option<u64>,
    /// `IODeviceWeight` and the bounds for single disks, in the order of the file.
    pub io_devices: Vec<IoDevice>,
    /// `AllowedCPUs`: numbers, sorted; empty: all.
    pub allowed_cpus: Vec<u32>,
    /// `AllowedMemoryNodes`: numbers, sorted; empty: all.
    pub allowed_nodes: Vec<u32>,
    /// `OOMPolicy` as it was written; [`Resources::oom_policy`] is what counts.
    pub oom_policy: Option<OomPolicy>,
    /// `Delegate`: the cgroup belongs to the service's user, to make others in.
    pub delegate: bool,
}

impl Resources {
    /// `OOMPolicy`: default stop, and continue where the cgroup is delegated, since what is killed there may be none of the
    /// service's own.
    #[must_use]
    pub const fn oom_policy(&self) -> OomPolicy {
        match (self.oom_policy, self.delegate) {
            (Some(policy), _) => policy,
            (None, true) => OomPolicy::Continue,
            (None, false) => OomPolicy::Stop,
        }
    }
}

/// What a service is given of one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoDevice {
    /// Which key says it.
    pub what: IoBound,
    /// A device, or a path in a file system that lies on it.
    pub path: PathBuf,
    /// Bytes or operations a second, or the weight; `u64::MAX` is no bound.
    pub value: u64,
}

/// What is bounded or weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoBound {
    /// `IODeviceWeight`: 1 to 10 000.
    Weight,
    /// `IOReadBandwidthMax`: bytes a second.
    ReadBytes,
    /// `IOWriteBandwidthMax`: bytes a second.
    WriteBytes,
    /// `IOReadIOPSMax`: operations a second.
    ReadOperations,
    /// `IOWriteIOPSMax`: operations a second.
    WriteOperations,
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
