//! Limits of a unit, written to its leaf: cgroup-v2.rst, "Controllers".

use super::error::CgroupError;
use super::leaf::Leaf;
use super::root::{Controller, Enforceable};

/// No limit: `max`.
pub const INFINITY: u64 = u64::MAX;

/// The span over which a CPU quota is counted: the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;

/// What the kernel takes as the period.
const CPU_PERIOD_LEAST_US: u64 = 1_000;
const CPU_PERIOD_MOST_US: u64 = 1_000_000;

/// The kernel refuses less than a millisecond of each period.
const CPU_QUOTA_LEAST_US: u64 = 1_000;

/// The limits of one unit. None leaves the kernel's default; [`INFINITY`] writes `max`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// `MemoryMin`, bytes: never reclaimed.
    pub memory_min: Option<u64>,
    /// `MemoryLow`, bytes: reclaimed last.
    pub memory_low: Option<u64>,
    /// `MemoryHigh`, bytes: slowed down above.
    pub memory_high: Option<u64>,
    /// `MemoryMax`, bytes: the OOM killer above.
    pub memory_max: Option<u64>,
    /// `MemorySwapMax`, bytes.
    pub memory_swap_max: Option<u64>,
    /// `MemoryZSwapMax`, bytes.
    pub memory_zswap_max: Option<u64>,
    /// `OOMPolicy=kill`: the OOM killer takes the whole cgroup.
    pub oom_group: bool,
    /// `TasksMax`: processes and threads.
    pub tasks_max: Option<u64>,
    /// `CPUQuota` in hundredths of a percent of one processor: 15 000 is one and a half.
    pub cpu_quota: Option<u64>,
    /// `CPUQuotaPeriodSec` in microseconds, 1 000 to 1 000 000, default 100 000.
    pub cpu_period: Option<u64>,
    /// `CPUWeight`, 1 to 10 000, default 100.
    pub cpu_weight: Option<u64>,
    /// `CPUWeight=idle`: only processor time that nobody else wants (Linux 5.15). It has no weight then.
    pub cpu_idle: Option<bool>,
    /// `IOWeight`, 1 to 10 000, default 100.
    pub io_weight: Option<u64>,
    /// `IODeviceWeight`: numbers of a device with its weight.
    pub io_weights: Vec<(Device, u64)>,
    /// `IOReadBandwidthMax` and the like, a device each.
    pub io_bounds: Vec<(Device, IoBounds)>,
    /// `AllowedCPUs` as the kernel lists them: `0-3,6`.
    pub allowed_cpus: Option<String>,
    /// `AllowedMemoryNodes` in the same way.
    pub allowed_nodes: Option<String>,
}

/// The numbers of a block device: major, minor.
pub type Device = (u64, u64);

/// What a cgroup may do on one device in a second; None is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoBounds {
    /// Bytes read.
    pub rbps: Option<u64>,
    /// Bytes written.
    pub wbps: Option<u64>,
    /// Reads.
    pub riops: Option<u64>,
    /// Writes.
    pub wiops: Option<u64>,
}

impl IoBounds {
    /// A line of io.max.
    fn line(self, (major, minor): Device) -> String {
        let all = [("rbps", self.rbps), ("wbps", self.wbps), ("riops", self.riops), ("wiops", self.wiops)];
        let bounds = all.map(|(name, bound)| format!("{name}={}", maximum(bound.unwrap_or(INFINITY))));
        format!("{major}:{minor} {}", bounds.join(" "))
    }
}

impl Limits {
    /// The controllers that these limits need and that are not there: what a unit that insists on its limits
    /// cannot start for. The reason stands in [`CgroupRoot::problems`](super::CgroupRoot::problems).
    #[must_use]
    pub fn missing(&self, enforceable: Enforceable) -> Vec<Controller> {
        let mut missing: Vec<Controller> = self
            .settings()
            .iter()
            .map(|setting| setting.controller)
            .filter(|c| !enforceable.has(*c))
            .collect();
        missing.dedup();
        missing
    }

    /// The same limits, with the kernel's default in the place of each that is not set: for a cgroup that may have had
    /// others before.
    #[must_use]
    pub fn or_defaults(self) -> Self {
        Self {
            memory_min: self.memory_min.or(Some(0)),
            memory_low: self.memory_low.or(Some(0)),
            memory_high: self.memory_high.or(Some(INFINITY)),
            memory_max: self.memory_max.or(Some(INFINITY)),
            memory_swap_max: self.memory_swap_max.or(Some(INFINITY)),
            memory_zswap_max: self.memory_zswap_max,
            oom_group: self.oom_group,
            tasks_max: self.tasks_max.or(Some(INFINITY)),
            cpu_quota: self.cpu_quota.or(Some(INFINITY)),
            cpu_period: self.cpu_period,
            cpu_weight: self.cpu_weight.or(Some(100)).filter(|_| self.cpu_idle != Some(true)),
            cpu_idle: self.cpu_idle.or(Some(false)),
            io_weight: self.io_weight.or(Some(100)),
            io_weights: self.io_weights,
            io_bounds: self.io_bounds,
            // An empty line is no restriction; nothing at all would not be written.
            allowed_cpus: self.allowed_cpus.or(Some("\n".to_owned())),
            allowed_nodes: self.allowed_nodes.or(Some("\n".to_owned())),
        }
    }

    /// What is to be written where, grouped by controller.
    fn settings(&self) -> Vec<Setting> {
        use Controller::{Cpu, Cpuset, Io, Memory, Pids};
        let number = |controller, file, value: Option<u64>| {
            value.map(|value| Setting { controller, file, value: maximum(value) })
        };
        let text =
            |controller, file, value: Option<String>| value.map(|value| Setting { controller, file, value });
        // Upward, so that no order of writes has a lower bound above an upper one for long.
        [
            number(Memory, "memory.max", self.memory_max),
            number(Memory, "memory.high", self.memory_high),
            number(Memory, "memory.low", self.memory_low),
            number(Memory, "memory.min", self.memory_min),
            number(Memory, "memory.swap.max", self.memory_swap_max),
            number(Memory, "memory.zswap.max", self.memory_zswap_max),
            text(Memory, "memory.oom.group", self.oom_group.then(|| "1".to_owned())),
            number(Pids, "pids.max", self.tasks_max),
            text(Cpu, "cpu.max", self.cpu_quota.map(|quota| cpu_max(quota, self.cpu_period))),
            // What is idle takes no weight.
            text(Cpu, CPU_IDLE, self.cpu_idle.map(|idle| u8::from(idle).to_string())),
            number(Cpu, "cpu.weight", self.cpu_weight),
            text(Io, "io.weight", self.io_weight.map(|weight| format!("default {weight}"))),
            text(Cpuset, "cpuset.cpus", self.allowed_cpus.clone()),
            text(Cpuset, "cpuset.mems", self.allowed_nodes.clone()),
        ]
        .into_iter()
        .flatten()
        .chain(self.of_devices())
        .collect()
    }

    /// One line a write.
    fn of_devices(&self) -> impl Iterator<Item = Setting> + '_ {
        let line = |file, value| Setting { controller: Controller::Io, file, value };
        let weights = self.io_weights.iter();
        let weights = weights.map(move |((a, b), weight)| line("io.weight", format!("{a}:{b} {weight}")));
        weights.chain(self.io_bounds.iter().map(move |(device, bounds)| line("io.max", bounds.line(*device))))
    }
}

const CPU_IDLE: &str = "cpu.idle";

fn is_never_idle(setting: &Setting) -> bool {
    setting.file == CPU_IDLE && setting.value == "0"
}

/// One value for one file.
struct Setting {
    controller: Controller,
    file: &'static str,
    value: String,
}

fn maximum(value: u64) -> String {
    if value == INFINITY { "max".into() } else { value.to_string() }
}

/// `cpu.max` is the quota and the period in microseconds.
fn cpu_max(hundredths: u64, period: Option<u64>) -> String {
    let period = period.unwrap_or(CPU_PERIOD_US).clamp(CPU_PERIOD_LEAST_US, CPU_PERIOD_MOST_US);
    if hundredths == INFINITY {
        return format!("max {period}");
    }
    let quota = (hundredths.saturating_mul(period) / 10_000).max(CPU_QUOTA_LEAST_US);
    format!("{quota} {period}")
}

impl Leaf {
    /// Writes every limit whose controller is there. What is left out is what [`Limits::missing`] says.
    ///
    /// # Errors
    /// The first value that the kernel refuses, with its file.
    pub fn limit(&self, limits: &Limits, enforceable: Enforceable) -> Result<(), CgroupError> {
        let settings = limits.settings();
        let held = settings.iter().filter(|setting| enforceable.has(setting.controller));
        held.into_iter().try_for_each(|setting| match self.write(setting.file, &setting.value) {
            // An older kernel has nothing idle.
            Err(error) if is_never_idle(setting) && error.errno() == Some(libc::ENOENT) => Ok(()),
            result => result,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limits: &Limits) -> Vec<(&'static str, String)> {
        limits.settings().into_iter().map(|s| (s.file, s.value)).collect()
    }

    #[test]
    fn a_quota_is_a_share_of_each_period() {
        for (hundredths, period, text) in [
            (10_000, None, "100000 100000"),
            (15_000, None, "150000 100000"),
            (2_000, None, "20000 100000"),
            (1, None, "1000 100000"),
            (INFINITY, None, "max 100000"),
            (15_000, Some(20_000), "30000 20000"),
            (10_000, Some(1), "1000 1000"),
            (10_000, Some(u64::MAX), "1000000 1000000"),
        ] {
            assert_eq!(cpu_max(hundredths, period), text, "{hundredths} of {period:?}");
        }
    }

    #[test]
    fn each_disk_has_its_lines() {
        let bounds = IoBounds { rbps: Some(1000), wiops: Some(7), ..IoBounds::default() };
        let limits = Limits {
            io_weight: Some(200),
            io_weights: vec![((8, 0), 300)],
            io_bounds: vec![((8, 0), bounds), ((254, 16), IoBounds::default())],
            ..Limits::default()
        };
        assert_eq!(
            written(&limits),
            [
                ("io.weight", "default 200".into()),
                ("io.weight", "8:0 300".into()),
                ("io.max", "8:0 rbps=1000 wbps=max riops=max wiops=7".into()),
                ("io.max", "254:16 rbps=max wbps=max riops=max wiops=max".into()),
            ]
        );
    }

    #[test]
    fn only_what_is_set_is_written() {
        assert_eq!(written(&Limits::default()), []);
        let limits = Limits { memory_max: Some(1 << 26), tasks_max: Some(INFINITY), ..Limits::default() };
        assert_eq!(written(&limits), [("memory.max", "67108864".into()), ("pids.max", "max".into())]);
        let limits = Limits { memory_zswap_max: Some(1 << 20), ..Limits::default() };
        assert_eq!(written(&limits), [("memory.zswap.max", "1048576".into())]);
    }

    #[test]
    fn what_is_not_set_any_more_goes_back_to_the_default() {
        let limits = Limits { memory_max: Some(1 << 26), ..Limits::default() }.or_defaults();
        let text: Vec<String> =
            written(&limits).iter().map(|(file, value)| format!("{file}={value}")).collect();
        assert_eq!(
            text,
            [
                "memory.max=67108864",
                "memory.high=max",
                "memory.low=0",
                "memory.min=0",
                "memory.swap.max=max",
                "pids.max=max",
                "cpu.max=max 100000",
                "cpu.idle=0",
                "cpu.weight=100",
                "io.weight=default 100",
                "cpuset.cpus=\n",
                "cpuset.mems=\n",
            ]
        );
    }

    #[test]
    fn what_is_idle_has_no_weight() {
        let limits = Limits { cpu_idle: Some(true), ..Limits::default() };
        assert_eq!(written(&limits), [("cpu.idle", "1".to_owned())]);
        let again = written(&limits.or_defaults());
        assert!(
            again.contains(&("cpu.idle", "1".to_owned()))
                && again.iter().all(|(file, _)| *file != "cpu.weight")
        );
    }

    #[test]
    fn a_limit_without_its_controller_is_missing() {
        let limits =
            Limits { memory_max: Some(1), memory_high: Some(1), tasks_max: Some(8), ..Limits::default() };
        let only_pids = Enforceable { pids: true, ..Enforceable::default() };
        assert_eq!(limits.missing(only_pids), [Controller::Memory]);
        assert_eq!(limits.missing(Enforceable::default()), [Controller::Memory, Controller::Pids]);
        assert_eq!(Limits::default().missing(Enforceable::default()), []);
    }
}
