//! What a service or a slice may use of the machine, as the kernel is told it.

use agentd_linux::cgroup::{CgroupRoot, Controller, INFINITY, Limits};
use agentd_unit::sections::{MemoryLimit, OomPolicy, Resources, TasksLimit};
use agentd_unit::{Body, Unit, UnitSet};

use super::disks;
use crate::world::World;

/// The bounds of one unit, systemd.resource-control(5).
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    unit: &'a Unit,
    memory_max: Option<MemoryLimit>,
    cpu_quota: Option<u64>,
    tasks_max: Option<TasksLimit>,
    more: &'a Resources,
}

impl<'a> Bounds<'a> {
    /// Those of a unit that has a cgroup.
    #[must_use]
    pub fn of(unit: &'a Unit) -> Option<Self> {
        Some(match &unit.body {
            Body::Service(body) => {
                let service = &body.service;
                let (cpu_quota, more) = (service.cpu_quota, &service.resources);
                Self { unit, memory_max: service.memory_max, cpu_quota, tasks_max: service.tasks_max, more }
            }
            Body::Slice(slice) => {
                let (cpu_quota, more) = (slice.cpu_quota, &slice.resources);
                Self { unit, memory_max: slice.memory_max, cpu_quota, tasks_max: slice.tasks_max, more }
            }
            Body::Target | Body::Timer(_) | Body::Socket(_) | Body::Path(_) => return None,
        })
    }

    /// As the kernel is told them. Shares are reckoned from what the machine has now.
    #[must_use]
    pub fn limits(&self, world: &World) -> Limits {
        let more = self.more;
        let memory = |limit: Option<MemoryLimit>| {
            limit.map(|limit| match limit {
                MemoryLimit::Bytes(bytes) => bytes,
                MemoryLimit::Permyriad(share) => part(world.machine_memory, share),
                MemoryLimit::Infinity => INFINITY,
            })
        };
        let list = |numbers: &[u32]| {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            (!words.is_empty()).then(|| words.join(","))
        };
        Limits {
            memory_min: memory(
                more.memory_min.or_else(|| inherited(self.unit, &world.loaded, |of| of.default_memory_min)),
            ),
            memory_low: memory(
                more.memory_low.or_else(|| inherited(self.unit, &world.loaded, |of| of.default_memory_low)),
            ),
            memory_high: memory(more.memory_high),
            memory_max: memory(self.memory_max),
            memory_swap_max: memory(more.memory_swap_max),
            memory_zswap_max: memory(more.memory_zswap_max),
            oom_group: more.oom_policy() == OomPolicy::Kill,
            tasks_max: self.tasks_max.map(|limit| match limit {
                TasksLimit::Count(count) => count,
                TasksLimit::Permyriad(share) => part(world.machine_tasks, share),
                TasksLimit::Infinity => INFINITY,
            }),
            cpu_quota: self.cpu_quota,
            cpu_period: more.cpu_period.map(|span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
            cpu_weight: more.cpu_weight.filter(|weight| *weight > 0),
            cpu_idle: more.cpu_weight.map(|weight| weight == 0).filter(|idle| *idle),
            io_weight: more.io_weight,
            io_weights: disks::weights(&self.unit.name, more),
            io_bounds: disks::bounds(&self.unit.name, more),
            allowed_cpus: list(&more.allowed_cpus),
            allowed_nodes: list(&more.allowed_nodes),
        }
    }

    /// Those that this machine does not enforce: one sentence each.
    pub fn not_enforced(self, cgroups: Option<&CgroupRoot>) -> impl Iterator<Item = String> + use<> {
        let has = cgroups.map(CgroupRoot::enforceable).unwrap_or_default();
        let more = self.more;
        let keys = [
            ("MemoryMax", self.memory_max.is_some(), Controller::Memory),
            ("MemoryMin", more.memory_min.is_some(), Controller::Memory),
            ("MemoryLow", more.memory_low.is_some(), Controller::Memory),
            ("DefaultMemoryMin", more.default_memory_min.is_some(), Controller::Memory),
            ("DefaultMemoryLow", more.default_memory_low.is_some(), Controller::Memory),
            ("MemoryHigh", more.memory_high.is_some(), Controller::Memory),
            ("MemorySwapMax", more.memory_swap_max.is_some(), Controller::Memory),
            ("MemoryZSwapMax", more.memory_zswap_max.is_some(), Controller::Memory),
            ("CPUWeight", more.cpu_weight.is_some(), Controller::Cpu),
            ("IOWeight", more.io_weight.is_some(), Controller::Io),
            ("What is said of single disks", !more.io_devices.is_empty(), Controller::Io),
            ("AllowedCPUs", !more.allowed_cpus.is_empty(), Controller::Cpuset),
            ("AllowedMemoryNodes", !more.allowed_nodes.is_empty(), Controller::Cpuset),
            ("CPUQuota", self.cpu_quota.is_some(), Controller::Cpu),
            ("TasksMax", self.tasks_max.is_some(), Controller::Pids),
        ];
        keys.into_iter().filter(move |(_, wanted, controller)| *wanted && !has.has(*controller)).map(
            |(key, _, controller)| {
                let name = controller.name();
                format!("{key} is not enforced: units have no cgroups with the controller {name} here")
            },
        )
    }
}

/// What the nearest slice above that says something has for those below it.
fn inherited(
    unit: &Unit,
    loaded: &UnitSet,
    of: impl Fn(&Resources) -> Option<MemoryLimit>,
) -> Option<MemoryLimit> {
    let mut above = unit.slice();
    while let Some(name) = above {
        let slice = loaded.get(&name);
        if let Some(default) = slice.and_then(|slice| Bounds::of(slice)).and_then(|bounds| of(bounds.more)) {
            return Some(default);
        }
        above = name.parent_slice();
    }
    None
}

/// What a slice has for those below it.
#[must_use]
pub fn defaults(unit: &Unit) -> (Option<MemoryLimit>, Option<MemoryLimit>) {
    Bounds::of(unit)
        .map(|bounds| (bounds.more.default_memory_min, bounds.more.default_memory_low))
        .unwrap_or_default()
}

/// A share in hundredths of a percent.
fn part(whole: u64, permyriad: u32) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(permyriad) / 10_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, UnitName, parse_unit};

    use super::*;

    fn unit(name: &str, text: &str) -> Unit {
        let source = Arc::new(SourceFile::new(name, text.to_owned()));
        let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
        let name = UnitName::parse(name).unwrap();
        parse_unit(&name, &[source], &ParseContext { specifiers: &specifiers, zone: &zone }).unit
    }

    #[test]
    fn the_nearest_slice_that_has_a_default_counts() {
        let mut set = UnitSet::new();
        set.insert(unit("a.slice", "[Slice]\nDefaultMemoryLow=3M\nDefaultMemoryMin=1M\n"));
        set.insert(unit("a-b-c.slice", "[Slice]\nDefaultMemoryLow=2M\nMemoryLow=9M\n"));
        let low = |of: &Resources| of.default_memory_low;
        let min = |of: &Resources| of.default_memory_min;
        let service =
            |slice: &str| unit("x.service", &format!("[Service]\nExecStart=/bin/x\nSlice={slice}\n"));
        let bytes = |megabytes: u64| Some(MemoryLimit::Bytes(megabytes << 20));
        for (case, unit, expected) in [
            ("its own slice", service("a-b-c.slice"), (bytes(2), bytes(1))),
            ("over a slice without a file", service("a-b.slice"), (bytes(3), bytes(1))),
            ("a slice looks above itself", unit("a-b-c.slice", "[Slice]\n"), (bytes(3), bytes(1))),
            ("nobody says anything", service("system.slice"), (None, None)),
        ] {
            assert_eq!((inherited(&unit, &set, low), inherited(&unit, &set, min)), expected, "{case}");
        }
    }

    #[test]
    fn shares_are_rounded_down_and_do_not_overflow() {
        assert_eq!(part(1000, 5000), 500);
        assert_eq!(part(3, 3333), 0);
        assert_eq!(part(u64::MAX, 10_000), u64::MAX);
    }
}
