//! The manager as a whole, and the processes of a unit.

use std::collections::BTreeMap;
use std::fs;

use agentd_engine::{ActiveState, Manager, UnitView};
use agentd_linux::cgroup::CgroupRoot;
use agentd_protocol::TrustState;
use agentd_protocol::manager::ManagerStatus;
use agentd_protocol::unit::{GetProcessesReply, ProcessGroup, ProcessInfo};
use agentd_protocol::words::SystemState;
use agentd_trust::Verdict;
use agentd_unit::Unit;

use crate::config::Mode;
use crate::world::World;

/// How many processes of a unit are listed; the rest is counted.
const MAX_PROCESSES: usize = 1000;

/// How much of a command line is shown, in characters.
const MAX_COMMAND: usize = 256;

/// The manager as it stands.
#[must_use]
pub fn status(manager: &Manager, world: &World) -> ManagerStatus {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let count_units = |(all, failed): (usize, usize), unit: UnitView| {
        (all + 1, failed + usize::from(unit.active == ActiveState::Failed))
    };
    let (all, failed) = manager.units().fold((0, 0), count_units);
    let jobs = manager.jobs().count();
    let system_state = match (manager.is_shutting_down(), world.booted, failed) {
        (true, ..) => SystemState::Stopping,
        (false, false, _) => SystemState::Starting,
        (false, true, 0) => SystemState::Running,
        (false, true, _) => SystemState::Degraded,
    };
    let limits = world.cgroups.as_ref().map(CgroupRoot::enforceable).unwrap_or_default();
    let enforced = [("MemoryMax", limits.memory), ("CPUQuota", limits.cpu), ("TasksMax", limits.pids)];
    ManagerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        scope: if world.config.mode == Mode::User { "user" } else { "system" }.to_owned(),
        system_state,
        hostname: agentd_linux::machine::hostname(),
        startup_timestamp: u64::try_from(world.started.as_micros()).unwrap_or(0),
        n_units: count(all),
        n_failed_units: count(failed),
        n_jobs: count(jobs),
        n_reaped_orphans: world.orphans,
        trust_policy: world.trust.policy.as_str().to_owned(),
        key_ids: world
            .trust
            .ring
            .keys()
            .filter(|known| !known.revoked)
            .map(|known| known.key.id().to_string())
            .collect(),
        control_group: agentd_linux::cgroup::of_process(std::process::id())
            .ok()
            .flatten()
            .unwrap_or_default(),
        enforced_limits: enforced.iter().filter(|(_, on)| *on).map(|(key, _)| (*key).to_owned()).collect(),
        missing: world.missing.clone(),
        unit_path: world.unit_path().iter().map(|path| path.display().to_string()).collect(),
        problems: world.problems.clone(),
    }
}

/// The wire's word for a verdict; units without a file have nothing to be signed.
#[must_use]
pub fn trust_state(unit: &Unit, verdict: &Verdict) -> TrustState {
    match verdict {
        _ if unit.fragment.is_none() => TrustState::Unchecked,
        Verdict::Trusted { .. } => TrustState::Trusted,
        Verdict::Unsigned => TrustState::Unsigned,
        Verdict::Refused(_) => TrustState::Refused,
    }
}

/// The processes of a unit by cgroup, lowest number first.
#[must_use]
pub fn processes(view: &UnitView, world: &World) -> GetProcessesReply {
    let Some((_, run)) = world.runs.of_unit(&view.unit.name) else {
        return GetProcessesReply::default();
    };
    let mut pids: Vec<u32> = match &run.cgroup {
        Some(leaf) => leaf.processes().unwrap_or_default(),
        None => run.processes.values().map(|process| process.pid).collect(),
    };
    pids.sort_unstable();
    let omitted = pids.len().saturating_sub(MAX_PROCESSES) as u64;
    pids.truncate(MAX_PROCESSES);
    let zombies = pids.iter().map(|pid| agentd_linux::tree::zombies_of(*pid)).sum();
    let mut groups: BTreeMap<String, Vec<ProcessInfo>> = BTreeMap::new();
    for pid in pids {
        // One that is gone by now is left out.
        let Some(info) = process(pid) else { continue };
        let path = agentd_linux::cgroup::of_process(pid).ok().flatten().unwrap_or_default();
        groups.entry(path).or_default().push(info);
    }
    let groups = groups.into_iter().map(|(path, processes)| ProcessGroup { path, processes }).collect();
    GetProcessesReply { groups, omitted, zombies }
}

fn process(pid: u32) -> Option<ProcessInfo> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let comm = head.split_once('(').map_or("", |(_, comm)| comm).to_owned();
    let zombie = tail.trim_start().starts_with('Z');
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    let command = line.chars().take(MAX_COMMAND).collect();
    Some(ProcessInfo { pid, comm, command, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_is_described() {
        let own = process(std::process::id()).unwrap();
        assert!(!own.zombie && !own.comm.is_empty() && !own.command.is_empty(), "{own:?}");
        assert!(process(u32::MAX).is_none());
    }
}
