//! Signals to processes of a run: through pidfds and the cgroup, never by number alone.

use std::fs;

use agentd_engine::{EffectId, InvocationId, KillTarget};
use agentd_linux::pidfd::PidFd;
use agentd_linux::tree::Tree;
use agentd_unit::Signal;

use super::plan::chain;
use super::runs::Run;
use crate::world::World;

/// Sends a signal; a target that is gone is no error.
pub fn signal(world: &mut World, run: InvocationId, target: KillTarget, signal: Signal, cont: bool) {
    let Some(entry) = world.runs.get_mut(run) else { return };
    if target == KillTarget::All && entry.went_with_its_last() {
        return;
    }
    // A stopped process acts on a signal only once it goes on.
    let cont = (cont && signal != Signal::KILL && signal != Signal::CONT).then_some(Signal::CONT.number());
    let signals: Vec<i32> = [Some(signal.number()), cont].into_iter().flatten().collect();
    send(run, entry, target, &signals);
}

fn send(run: InvocationId, entry: &Run, target: KillTarget, signals: &[i32]) {
    match (target, &entry.cgroup) {
        (KillTarget::Process(effect), _) => {
            if let Some(process) = entry.processes.get(effect) {
                signals.iter().for_each(|signal| through(&process.pidfd, process.pid, *signal));
            }
        }
        (KillTarget::All, Some(leaf)) => {
            let known = entry.processes.values().map(|process| (process.pid, &process.pidfd));
            if let Err(error) = leaf.signal(signals, known) {
                tracing::warn!(unit = %entry.unit.name, %error, "signals {signals:?} did not reach every process");
            }
        }
        (KillTarget::All, None) => {
            for signal in signals {
                if let Err(error) = with_tree(run, entry, |tree| tree.signal(*signal)) {
                    tracing::warn!(unit = %entry.unit.name, "signal {signal} did not reach every process: {error}");
                }
            }
        }
    }
}

fn through(pidfd: &PidFd, pid: u32, signal: i32) {
    if let Err(error) = pidfd.send_signal(signal) {
        tracing::warn!(pid, %error, "signal {signal} cannot be sent");
    }
}

/// Sends a process the signal that has it reload, if it handles that: what is not handled would be its end.
///
/// # Errors
/// Why it was not sent, for people.
pub fn ask_reload(world: &World, run: InvocationId, process: EffectId, signal: Signal) -> Result<(), String> {
    let entry = world.runs.get(run).and_then(|run| run.processes.get(process));
    let main = entry.ok_or("its main process has ended")?;
    let status = fs::read_to_string(format!("/proc/{}/status", main.pid))
        .map_err(|error| format!("/proc/{}/status cannot be read: {error}", main.pid))?;
    if !handles(&status, signal) {
        return Err(format!("its main process {} does not handle {signal}, which would end it", main.pid));
    }
    let number = signal.number();
    main.pidfd.send_signal(number).map_err(|error| format!("{signal} cannot be sent: {error}"))?;
    // A stopped process acts on a signal only once it goes on.
    main.pidfd.send_signal(Signal::CONT.number()).map_err(|error| error.to_string()).map(|_| ())
}

/// Whether a process has a handler for a signal or waits for it with the signal blocked, proc_pid_status(5).
fn handles(status: &str, signal: Signal) -> bool {
    let bit = 1_u64 << (signal.number() - 1);
    let has = |key| {
        let mask = status.lines().find_map(|line| line.strip_prefix(key));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & bit != 0)
    };
    has("SigCgt:") || has("SigBlk:")
}

/// SIGKILL for the whole tree of the run, and for the processes that we made for it, wherever they have gone.
pub fn all(world: &mut World, run: InvocationId) {
    let Some(entry) = world.runs.get_mut(run) else { return };
    // After most exits nobody is left; the question whether that is so follows anyway.
    if entry.cgroup.is_some() && entry.is_empty(run) {
        return;
    }
    let result = match &entry.cgroup {
        Some(leaf) => leaf.kill().map_err(|error| chain(&error)),
        None => with_tree(run, entry, |tree| tree.signal(Signal::KILL.number())).map(|_| ()),
    };
    if let Err(error) = result {
        tracing::error!(unit = %entry.unit.name, "the processes cannot be killed: {error}");
    }
    for process in entry.processes.values() {
        through(&process.pidfd, process.pid, Signal::KILL.number());
    }
}

/// Has all processes of the run stand still, or go on. Only asked for where there are cgroups.
pub fn freeze(world: &World, run: InvocationId, frozen: bool) {
    let Some(entry) = world.runs.get(run) else { return };
    let Some(leaf) = &entry.cgroup else { return };
    if let Err(error) = if frozen { leaf.freeze() } else { leaf.thaw() } {
        let what = if frozen { "frozen" } else { "thawed" };
        tracing::error!(unit = %entry.unit.name, "the processes cannot be {what}: {}", chain(&error));
    }
}

/// How many processes are named that SIGKILL did not end.
const SURVIVORS: usize = 10;

/// Says what SIGKILL did not end in time: each process by its number and name, the state it is in, and what it waits for
/// in the kernel.
pub fn name_survivors(world: &mut World, run: InvocationId) {
    let Some(entry) = world.runs.get(run) else { return };
    let pids = match &entry.cgroup {
        Some(leaf) => leaf.processes().map_err(|error| chain(&error)),
        None => members(run, entry),
    };
    let pids = match pids {
        Ok(pids) => pids,
        Err(error) => return tracing::error!(unit = %entry.unit.name, "what is left cannot be told: {error}"),
    };
    let mut named: Vec<String> = pids.iter().filter_map(|pid| survivor(*pid)).take(SURVIVORS).collect();
    if pids.len() > SURVIVORS {
        named.push(format!("and {} more", pids.len() - SURVIVORS));
    }
    let unit = &entry.unit.name;
    for name in &named {
        tracing::error!(unit = %unit, "{unit}: SIGKILL has not ended {name}");
    }
    if let Some(entry) = world.runs.get_mut(run) {
        entry.survivors = named;
    }
}

/// `77 (cat), state D, waits in nfs_wait_bit`; none for one that is gone. proc_pid_stat(5), proc_pid_wchan(5).
fn survivor(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(')')?;
    let (_, comm) = start.split_once('(')?;
    let state = rest.split_whitespace().next()?;
    let waits = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let waits = match waits.trim() {
        "" | "0" => String::new(),
        place => format!(", waits in {place}"),
    };
    Some(format!("{pid} ({}), state {state}{waits}", comm.escape_default()))
}

/// The living processes of a run where there are no cgroups.
///
/// # Errors
/// /proc cannot be read.
pub fn members(run: InvocationId, entry: &Run) -> Result<Vec<u32>, String> {
    with_tree(run, entry, |tree| tree.processes())
}

/// Finds the run's processes by descent from those that we spawned, and by the run that their environment names.
fn with_tree<T>(
    run: InvocationId,
    entry: &Run,
    act: impl FnOnce(&Tree<'_>) -> std::io::Result<T>,
) -> Result<T, String> {
    let roots: Vec<u32> = entry.processes.values().map(|process| process.pid).collect();
    let mark = format!("INVOCATION_ID={run}");
    act(&Tree { roots: &roots, mark: &mark }).map_err(|error| error.to_string())
}

/// The run that a process's environment names, as it was at its exec.
#[must_use]
pub fn run_in_environment(pid: u32) -> Option<InvocationId> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"INVOCATION_ID="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::handles;
    use agentd_unit::Signal;

    #[test]
    fn a_signal_is_handled_where_a_handler_or_a_signalfd_waits_for_it() {
        for (status, handled) in [
            ("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000001\n", true),
            ("SigBlk:\t0000000000000001\nSigCgt:\t0000000000000000\n", true),
            ("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n", false),
            ("", false),
        ] {
            assert_eq!(handles(status, Signal::HUP), handled, "{status}");
        }
    }
}
