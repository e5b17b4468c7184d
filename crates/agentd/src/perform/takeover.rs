//! What the kernel still has of a run that another manager began.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use agentd_engine::{Effect, EffectId, InvocationId, Life};
use agentd_linux::cgroup::Leaf;
use agentd_linux::pidfd::PidFd;
use agentd_linux::tree::{self, Tree};
use agentd_unit::sections::Preserve;
use agentd_unit::{Signal, Unit, UnitName};

use super::namespaces::Common;
use super::plan::chain;
use super::runs::{Process, Processes, Run};
use super::{credentials, dynamic_user, folders, identity, kill, start, temporary};
use crate::takeover::record::Record;
use crate::world::World;

/// How long starttime of proc_pid_stat(5) may lie after the time of a record that was taken in the same tick.
const TICK: std::time::Duration = std::time::Duration::from_millis(20);

/// Holds on to a run that another manager began.
pub fn take_over(world: &mut World, id: EffectId, run: InvocationId, unit: Arc<Unit>, main: Option<u32>) {
    let Some(record) = world.kept.claim(&unit.name) else { return };
    let cgroup = leaf(world, &record);
    let process = main.and_then(|pid| hold(pid, run, cgroup.as_ref(), &record));
    let entry = entry(world, &unit, run, record, cgroup);
    if let (Some(leaf), true) =
        (&entry.cgroup, unit.as_service().is_some_and(|body| body.service.memory_max.is_some()))
    {
        world.watches.add(run, leaf);
    }
    world.runs.begin(run, entry);
    match (main, process) {
        (Some(_), Some(process)) => enter(world, id, run, process),
        (Some(pid), None) => {
            tracing::info!(unit = %unit.name, pid, "the main process ended while no manager was there");
            world.mains.note_gone(run, id);
        }
        (None, _) => {}
    }
}

/// What is kept of all units, whole, for a successor.
#[must_use]
pub fn records(world: &World, kept: &[Effect]) -> Vec<Record> {
    let record = |effect: &Effect| match effect {
        Effect::Keep { memo: Some(memo), .. } => {
            Some(Record::of((**memo).clone(), &world.runs, world.now.boottime))
        }
        _ => None,
    };
    kept.iter().filter_map(record).collect()
}

/// What the run holds besides its main process.
fn entry(world: &mut World, unit: &Arc<Unit>, id: InvocationId, record: Record, cgroup: Option<Leaf>) -> Run {
    let main = match record.memo.life {
        Life::Up { main, .. } => main,
        _ => None,
    };
    let pipe = if record.piped { pipe(&record, cgroup.as_ref()) } else { None };
    let output = match pipe {
        Some((read, write)) => {
            if let Some(log) = &world.log {
                log.attach(&unit.name, id, read, start::line_rules(unit));
            }
            start::Output { fd: Some(write), logged: true, journal_stream: None }
        }
        None => start::output(world, unit, id).unwrap_or_else(|failure| {
            tracing::warn!(unit = %unit.name, "its next commands have no output: {}", failure.message);
            start::Output { fd: None, logged: false, journal_stream: None }
        }),
    };
    let service = unit.as_service().map(|body| &body.service);
    let dynamic_uid = record.dynamic_uid.or_else(|| dynamic_uid_of_old(world, unit, main));
    let secrets = credentials::folder(&world.config.folders.runtime, &unit.name);
    Run {
        unit: Arc::clone(unit),
        slice: record.slice,
        oom_kills: cgroup
            .as_ref()
            .and_then(|leaf| leaf.memory_events().ok().flatten())
            .map_or(0, |seen| seen.oom_kill),
        cgroup,
        processes: Processes::default(),
        awaiting: Vec::new(),
        token: record.token,
        emptied: false,
        removed: false,
        logged: output.logged,
        journal_stream: output.journal_stream,
        output: output.fd,
        complaints: 0,
        survivors: Vec::new(),
        owner: service.and_then(|service| {
            let user = identity::account(world, &unit.name, service, dynamic_uid).ok()?;
            let owner = identity::identity(world, service, user.as_ref()).ok()??;
            Some([owner.uid, owner.gid])
        }),
        dynamic_uid,
        credentials: secrets.is_dir().then_some(secrets),
        common: Common::inherit(&mut world.held, &unit.name),
        private_tmp: service.filter(|service| service.sandbox.private_tmp).and_then(|_| temporary::find(id)),
    }
}

/// The user of a run whose record is of a version that did not keep it: that of its main process, or a new one.
fn dynamic_uid_of_old(world: &World, unit: &Unit, main: Option<u32>) -> Option<u32> {
    let new = identity::dynamic(world, unit).ok().flatten()?;
    let owner = main.and_then(|pid| fs::metadata(format!("/proc/{pid}")).ok()).map(|meta| meta.uid());
    owner.filter(|uid| dynamic_user::is_one(*uid)).or(Some(new))
}

/// The cgroup of the run, if it had one and this manager has cgroups.
fn leaf(world: &mut World, record: &Record) -> Option<Leaf> {
    let (slice, cgroups) = (record.slice.as_deref()?, world.cgroups.as_mut()?);
    let is_frozen = matches!(record.memo.life, Life::Up { frozen: true, .. });
    let unit = record.memo.unit.as_str();
    match if is_frozen { cgroups.leaf_as_left(slice, unit) } else { cgroups.leaf(slice, unit) } {
        Ok(leaf) => Some(leaf),
        Err(error) => {
            tracing::error!(unit = %record.memo.unit, "its cgroup cannot be taken over: {}", chain(&error));
            None
        }
    }
}

/// The process of this number, if it is the one that was meant: no younger than the record, and in the cgroup of the run or
/// born with its name.
fn hold(pid: u32, run: InvocationId, leaf: Option<&Leaf>, record: &Record) -> Option<Process> {
    let pidfd = PidFd::open(pid).ok().flatten()?;
    let birth = tree::birth(pid).ok().flatten()?;
    let lives_there = match leaf {
        Some(leaf) => {
            agentd_linux::cgroup::of_process(pid).ok().flatten().is_some_and(|path| leaf.contains(&path))
        }
        None => kill::run_in_environment(pid) == Some(run),
    };
    (birth.at <= record.at.0 + TICK && lives_there).then_some(Process { pid, pidfd })
}

fn enter(world: &mut World, id: EffectId, run: InvocationId, process: Process) {
    let pid = process.pid;
    let is_child = tree::birth(pid).ok().flatten().is_some_and(|birth| birth.parent == std::process::id());
    if !is_child && let Err(error) = world.mains.watch(run, id, pid, &process.pidfd) {
        tracing::error!(pid, %error, "the end of a process that was taken over will not be seen");
    }
    world.runs.enter(run, id, process);
}

/// The pipe that the processes of a run write to, by both of its ends: whoever was its reader is gone, and they hold it
/// open for reading too, so that their words are still in it.
fn pipe(record: &Record, leaf: Option<&Leaf>) -> Option<(OwnedFd, OwnedFd)> {
    let main = match record.memo.life {
        Life::Up { main, .. } => main,
        _ => None,
    };
    let others = leaf.and_then(|leaf| leaf.processes().ok()).unwrap_or_default();
    let places = main.into_iter().chain(others).flat_map(|pid| [1, 2].map(|fd| (pid, fd)));
    places.filter(|(pid, fd)| is_output(*pid, *fd)).find_map(|(pid, fd)| open_both(pid, fd).ok())
}

/// Whether a descriptor is a pipe that is open both ways, as no program opens one for itself.
fn is_output(pid: u32, fd: u32) -> bool {
    let is_pipe = fs::read_link(format!("/proc/{pid}/fd/{fd}"))
        .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"pipe:"));
    is_pipe && is_open_both_ways(&fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default())
}

/// `flags` of proc_pid_fdinfo(5) are octal; the lowest two bits are the access mode, and 2 is both.
fn is_open_both_ways(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).is_some_and(|flags| flags & 3 == 2)
}

fn open_both(pid: u32, fd: u32) -> io::Result<(OwnedFd, OwnedFd)> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let write = File::options().read(true).write(true).open(&path)?;
    Ok((File::open(&path)?.into(), write.into()))
}

/// Keeps the folders of a run that is over for the next one, as the manager before did (`RuntimeDirectoryPreserve=restart`).
pub fn keep_folders(world: &mut World, unit: &Unit) {
    if let Some(service) = unit.as_service().map(|body| &body.service)
        && service.execution.runtime_preserve == Preserve::Restart
    {
        folders::release(world, &unit.name, service);
    }
}

/// Ends what was not taken over, as its unit is not there any more or cannot be loaded, and removes what runs have left
/// that nobody goes on with.
pub fn end_the_rest(world: &mut World) {
    for record in world.kept.unclaimed() {
        let Some(run) = record.memo.run() else { continue };
        let unit = &record.memo.unit;
        tracing::warn!(unit = %unit, "it ran under the manager before and is no loaded unit now; it is ended");
        match leaf(world, &record) {
            Some(leaf) => {
                if let Err(error) = leaf.kill() {
                    tracing::error!(unit = %unit, "it cannot be ended: {}", chain(&error));
                }
                world.watches.remove(unit, leaf);
            }
            None => {
                let mark = format!("INVOCATION_ID={run}");
                if let Err(error) = (Tree { roots: &[], mark: &mark }).signal(Signal::KILL.number()) {
                    tracing::error!(unit = %unit, %error, "it cannot be ended");
                }
            }
        }
    }
    for record in world.kept.begun_before() {
        if let Some(run) = record.memo.run().filter(|run| world.runs.get(*run).is_none()) {
            end_begun(world, &record, run);
        }
    }
    remove_left_secrets(world);
}

/// Ends a run that the manager before was about to begin or to end. Its cgroup is gone already, where it had one.
fn end_begun(world: &mut World, record: &Record, run: InvocationId) {
    let unit = &record.memo.unit;
    if record.slice.is_none() {
        let mark = format!("INVOCATION_ID={run}");
        match (Tree { roots: &[], mark: &mark }).signal(Signal::KILL.number()) {
            Ok(0) => {}
            Ok(_) => {
                tracing::warn!(unit = %unit, "it was on its way up or down when its manager was killed; it is ended")
            }
            Err(error) => tracing::error!(unit = %unit, %error, "it cannot be ended"),
        }
    }
    if let Some(folders) = temporary::find(run) {
        temporary::remove(world.own_temporary(run, &folders));
    }
    let definition = world.loaded.get(unit).cloned();
    if let Some(body) = definition.as_ref().and_then(|unit| unit.as_service())
        && world.runs.of_unit(unit).is_none()
    {
        folders::release(world, unit, &body.service);
    }
    world.kept.end(unit);
}

/// Secrets of runs that are over.
fn remove_left_secrets(world: &World) {
    let Ok(entries) = fs::read_dir(world.config.folders.runtime.join("credentials")) else { return };
    for entry in entries.flatten() {
        let unit = entry.file_name().to_str().and_then(|name| UnitName::parse(name).ok());
        if unit.is_some_and(|unit| world.runs.of_unit(&unit).is_some()) {
            continue;
        }
        if let Err(error) = credentials::discard(&entry.path()) {
            tracing::error!(%error, "the secrets in {} cannot be removed", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pipe_that_is_open_both_ways_is_an_output_of_ours() {
        assert!(is_open_both_ways("pos:\t0\nflags:\t02000002\nmnt_id:\t15\n"));
        assert!(!is_open_both_ways("pos:\t0\nflags:\t01\nmnt_id:\t15\n"));
        assert!(!is_open_both_ways(""));
        let (read, write) = agentd_linux::pipe::output_pipe().unwrap();
        let (plain, _writer) = io::pipe().unwrap();
        use std::os::fd::AsRawFd;
        let here = |fd: &dyn AsRawFd| is_output(std::process::id(), fd.as_raw_fd() as u32);
        assert!(here(&write) && !here(&read) && !here(&plain));
    }
}
