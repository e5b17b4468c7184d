//! What the kernel is told of a process, from the unit's words to a plan.

use agentd_engine::SpawnFailure;
use agentd_linux::rlimit::{self, Resource, Rlimit};
use agentd_linux::spawn::{Keyring, MemoryPolicy, NumaMode, Policy, Scheduling, SpawnPlan};
use agentd_unit::UnitName;
use agentd_unit::sections::{
    CpuPolicy, Execution, IoClass, KeyringMode, LimitedResource, NumaPolicy, Personality, ServiceSection,
};

use crate::config::Mode;
use crate::world::World;

/// The rank at the disks of a class that names none, ioprio_set(2).
const IO_PRIORITY: i32 = 4;

/// Where the class stands in the number of ioprio_set(2): above 13 bits of priority.
const IO_CLASS_UNIT: i32 = 1 << 13;

/// Fills in what the keys say of the process itself.
///
/// # Errors
/// A path that no call can take.
pub fn describe(
    plan: &mut SpawnPlan<'_>,
    world: &World,
    unit: &UnitName,
    service: &ServiceSection,
) -> Result<(), SpawnFailure> {
    let how = &service.execution;
    plan.umask = how.umask;
    plan.nice = how.nice;
    plan.oom_score_adjust = how.oom_score_adjust.or(world.oom_score_adjust);
    plan.scheduling = scheduling(how);
    plan.affinity.clone_from(&how.cpu_affinity);
    plan.io_priority = io_priority(how);
    plan.ignore_sigpipe = how.ignore_sigpipe;
    plan.keyring = keyring(how, world.config.mode);
    plan.coredump_filter = how.coredump_filter;
    plan.timer_slack = how.timer_slack;
    plan.personality = how.personality.map(personality);
    plan.memory_policy = memory_policy(how, unit);
    plan.rlimits = rlimits(&world.rlimits, how);
    if world.births.may_raise() {
        reach(&mut plan.rlimits);
    } else {
        lower(plan, unit);
    }
    Ok(())
}

/// `infinity` is the most that there may be, and of descriptors the kernel says how many that are, proc_sys_fs(5). A first
/// process of a machine has been given far less, and may give more.
fn reach(limits: &mut [Rlimit]) {
    let is_asked = |limit: &Rlimit| limit.resource == Resource::Nofile && limit.hard == rlimit::INFINITY;
    let Some(limit) = limits.iter_mut().find(|limit| is_asked(limit)) else { return };
    let Some(most) = most_descriptors() else { return };
    (limit.soft, limit.hard) = (limit.soft.min(most), most);
}

fn most_descriptors() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}

/// What a manager without CAP_SYS_RESOURCE, as in most containers, may not give: its processes get the nearest that it may,
/// as systemd has it, and it says so.
fn lower(plan: &mut SpawnPlan<'_>, unit: &UnitName) {
    for limit in &mut plan.rlimits {
        let Ok(own) = rlimit::get(limit.resource) else { continue };
        // infinity is the most that there may be, in any case.
        if limit.hard > own.hard && limit.hard != rlimit::INFINITY {
            let asked = *limit;
            (limit.soft, limit.hard) = (limit.soft.min(own.hard), own.hard);
            tracing::warn!(unit = %unit, "{asked} is more than this manager may give without CAP_SYS_RESOURCE; {limit} holds");
        }
    }
    if let Some(asked) = plan.oom_score_adjust
        && let Some(own) = own_oom_score()
        && asked < own
    {
        plan.oom_score_adjust = None;
        tracing::warn!(unit = %unit, "OOMScoreAdjust={asked} is less than this manager may give without CAP_SYS_RESOURCE; {own} holds");
    }
}

fn own_oom_score() -> Option<i32> {
    std::fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse().ok()
}

/// A user's services have the keys of the user's session, as in systemd.
fn keyring(how: &Execution, mode: Mode) -> Option<Keyring> {
    let usual = if mode == Mode::User { KeyringMode::Inherit } else { KeyringMode::Private };
    match how.keyring.unwrap_or(usual) {
        KeyringMode::Inherit => None,
        KeyringMode::Private => Some(Keyring::Empty),
        KeyringMode::Shared => Some(Keyring::Linked),
    }
}

/// PER_LINUX, PER_LINUX32: personality(2).
const fn personality(personality: Personality) -> u32 {
    match personality {
        Personality::Native => 0,
        Personality::Elder => 8,
    }
}

/// Where a kernel that knows of memory nodes tells of them.
const NODES: &str = "/sys/devices/system/node";

/// A kernel without memory nodes has but one place for memory to come from, and says so.
fn memory_policy(how: &Execution, unit: &UnitName) -> Option<MemoryPolicy> {
    let mode = match how.numa_policy? {
        NumaPolicy::Default => NumaMode::Default,
        NumaPolicy::Preferred => NumaMode::Preferred,
        NumaPolicy::Bind => NumaMode::Bind,
        NumaPolicy::Interleave => NumaMode::Interleave,
        NumaPolicy::Local => NumaMode::Local,
    };
    if !std::path::Path::new(NODES).exists() {
        tracing::warn!(unit = %unit, "NUMAPolicy has no effect here: this kernel has no memory nodes");
        return None;
    }
    let nodes = match mode {
        NumaMode::Default | NumaMode::Local => Vec::new(),
        NumaMode::Preferred | NumaMode::Bind | NumaMode::Interleave => how.numa_nodes.clone(),
    };
    Some(MemoryPolicy { mode, nodes })
}

fn scheduling(how: &Execution) -> Option<Scheduling> {
    let policy = how.cpu_policy.or(how.cpu_reset_on_fork.then_some(CpuPolicy::Other))?;
    let (policy, real_time) = match policy {
        CpuPolicy::Other => (Policy::Other, false),
        CpuPolicy::Batch => (Policy::Batch, false),
        CpuPolicy::Idle => (Policy::Idle, false),
        CpuPolicy::Fifo => (Policy::Fifo, true),
        CpuPolicy::RoundRobin => (Policy::RoundRobin, true),
    };
    let priority = i32::try_from(how.cpu_priority.unwrap_or(1)).unwrap_or(1);
    let priority = if real_time { priority } else { 0 };
    Some(Scheduling { policy, priority, reset_on_fork: how.cpu_reset_on_fork })
}

/// A priority alone means the usual class, as in systemd.
fn io_priority(how: &Execution) -> Option<i32> {
    let class = how.io_class.or(how.io_priority.map(|_| IoClass::BestEffort))?;
    let priority = how.io_priority.and_then(|number| i32::try_from(number).ok()).unwrap_or(IO_PRIORITY);
    Some(match class {
        IoClass::None => 0,
        IoClass::Realtime => IO_CLASS_UNIT + priority,
        IoClass::BestEffort => 2 * IO_CLASS_UNIT + priority,
        IoClass::Idle => 3 * IO_CLASS_UNIT,
    })
}

/// The unit's limits over those that all processes get.
fn rlimits(all: &[Rlimit], how: &Execution) -> Vec<Rlimit> {
    let own = how.limits.iter().map(|limit| Rlimit {
        resource: resource(limit.resource),
        soft: limit.soft,
        hard: limit.hard,
    });
    let own: Vec<Rlimit> = own.collect();
    let others = all.iter().filter(|limit| own.iter().all(|o| o.resource != limit.resource));
    others.copied().chain(own.iter().copied()).collect()
}

const fn resource(resource: LimitedResource) -> Resource {
    match resource {
        LimitedResource::Cpu => Resource::Cpu,
        LimitedResource::Fsize => Resource::Fsize,
        LimitedResource::Data => Resource::Data,
        LimitedResource::Stack => Resource::Stack,
        LimitedResource::Core => Resource::Core,
        LimitedResource::Rss => Resource::Rss,
        LimitedResource::Nofile => Resource::Nofile,
        LimitedResource::As => Resource::As,
        LimitedResource::Nproc => Resource::Nproc,
        LimitedResource::Memlock => Resource::Memlock,
        LimitedResource::Locks => Resource::Locks,
        LimitedResource::Sigpending => Resource::Sigpending,
        LimitedResource::Msgqueue => Resource::Msgqueue,
        LimitedResource::Nice => Resource::Nice,
        LimitedResource::Rtprio => Resource::Rtprio,
        LimitedResource::Rttime => Resource::Rttime,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
    use super::*;

    #[test]
    fn infinity_of_descriptors_is_what_the_kernel_allows() {
        let limit = |resource, soft, hard| Rlimit { resource, soft, hard };
        let most = most_descriptors().unwrap();
        for (case, asked, given) in [
            ("both", (rlimit::INFINITY, rlimit::INFINITY), (most, most)),
            ("the hard one", (1024, rlimit::INFINITY), (1024, most)),
            ("a number is left", (7, 8), (7, 8)),
        ] {
            let core = limit(Resource::Core, rlimit::INFINITY, rlimit::INFINITY);
            let mut limits = [core, limit(Resource::Nofile, asked.0, asked.1)];
            reach(&mut limits);
            assert_eq!((limits[1].soft, limits[1].hard), given, "{case}");
            assert_eq!(limits[0].hard, rlimit::INFINITY, "{case}");
        }
    }
}
