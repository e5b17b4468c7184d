//! Main processes that the manager did not execute as such: which one it is, when that may be known, and their end.
//!
//! What a PID file or the service names counts only if it is a living process of the unit, and neither the manager nor
//! another unit's. It is held by pidfd from then on. Of one that is our child the reaper tells; of any other its pidfd
//! does, also of those that a manager before this one began, and how they ended is told by nobody.
//!
//! # Invariants
//! - A process that is no child of ours is watched in one place, here, and its end does all that the reaping of a child
//!   does.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use agentd_engine::{ClaimedMain, EffectId, Event, ExitStatus, InvocationId, MainProcess, MainSource};
use agentd_linux::epoll::Epoll;
use agentd_linux::pid_file::{self, Named, PidFileWatch};
use agentd_linux::pidfd::PidFd;
use agentd_linux::tree;
use agentd_unit::Unit;

use super::groups;
use crate::perform::identity::account;
use crate::perform::kill::{members, run_in_environment};
use crate::perform::runs::{Process, Run};
use crate::world::World;

/// The name of the PID files among the pidfds.
const FILES: u64 = 0;

/// What is waited for.
#[derive(Debug)]
pub struct Mains {
    ready: Epoll,
    files: PidFileWatch,
    /// Under which name whose file is waited for.
    waits: HashMap<u64, InvocationId>,
    /// Processes whose parent is not us.
    foreign: HashMap<u64, (InvocationId, EffectId, u32)>,
    /// The main process of a run that is none of its unit's processes, as root has said.
    guests: HashMap<InvocationId, u32>,
    /// Whose the PID file of a run was.
    writers: HashMap<InvocationId, u32>,
    /// Main processes that had ended before they could be taken over.
    gone: Vec<(InvocationId, EffectId)>,
    next: u64,
}

impl Mains {
    /// Waits for nothing yet.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn new() -> io::Result<Self> {
        let (ready, files) = (Epoll::new()?, PidFileWatch::new()?);
        ready.add(&files, FILES)?;
        let (waits, foreign) = (HashMap::new(), HashMap::new());
        let (guests, writers) = (HashMap::new(), HashMap::new());
        Ok(Self { ready, files, waits, foreign, guests, writers, gone: Vec::new(), next: FILES })
    }

    /// The descriptor that becomes readable when one of them has something to say.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.ready.descriptor()
    }

    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Waits for the PID file of a run from now on; once is enough.
    fn await_file(&mut self, run: InvocationId, path: &Path) -> io::Result<()> {
        if self.waits.values().any(|waiting| *waiting == run) {
            return Ok(());
        }
        let key = self.key();
        self.files.add(key, path)?;
        self.waits.insert(key, run);
        Ok(())
    }

    fn forget_file(&mut self, run: InvocationId) {
        let keys: Vec<u64> = self.waits.iter().filter(|(_, of)| **of == run).map(|(key, _)| *key).collect();
        for key in keys {
            self.waits.remove(&key);
            self.files.remove(key);
        }
    }

    /// Tells of the end of a process that is not our child.
    ///
    /// # Errors
    /// The kernel's epoll(7) has no room.
    pub fn watch(&mut self, run: InvocationId, id: EffectId, pid: u32, process: &PidFd) -> io::Result<()> {
        let key = self.key();
        self.ready.add(process, key)?;
        self.foreign.insert(key, (run, id, pid));
        Ok(())
    }

    /// Notes one of a manager before that is not there any more.
    pub fn note_gone(&mut self, run: InvocationId, id: EffectId) {
        self.gone.push((run, id));
    }
}

/// Looks which process of a run is the main one, and holds it under the name of the effect unless it has one already.
///
/// # Errors
/// There is none (yet), in a sentence.
pub fn find(
    world: &mut World,
    id: EffectId,
    run: InvocationId,
    by: MainSource,
) -> Result<MainProcess, String> {
    let entry = world.runs.get(run).ok_or("nothing of it runs")?;
    let (unit, dynamic) = (entry.unit.clone(), entry.dynamic_uid);
    match by {
        MainSource::Guess => {
            let pid = guess(world, run)?;
            adopt(world, id, run, pid, false)
        }
        MainSource::PidFile => {
            let service = unit.as_service().map(|body| &body.service);
            let path =
                service.and_then(|service| service.life.pid_file.as_deref()).ok_or("it has no PIDFile")?;
            // Watched first: what is written from here on is told.
            let watched = world.mains.await_file(run, path);
            watched.map_err(|error| format!("{} cannot be watched: {error}", path.display()))?;
            let owners = owners(world, &unit, dynamic);
            // Daemons of Debian's write it once they are the user that they stay.
            let may_say = |named: Named| owners.contains(&named.owner) || runs_as(named.pid, named.owner);
            let named = pid_file::read(path, may_say).map_err(|error| error.to_string());
            let main = named.and_then(|named| Ok((adopt(world, id, run, named.pid, false)?, named.owner)));
            let (main, owner) = main.map_err(|why| format!("PIDFile {}: {why}", path.display()))?;
            world.mains.writers.insert(run, owner);
            world.mains.forget_file(run);
            Ok(main)
        }
        MainSource::Said(ClaimedMain { pid, privileged }) => {
            let main = adopt(world, id, run, pid, privileged);
            if let Err(why) = &main {
                world.complain(run, format_args!("names a main process that it cannot have: {why}"));
            }
            main
        }
    }
}

/// Whether a process is one of this user, proc_pid_status(5): of the four numbers the second is what counts.
fn runs_as(pid: u32, uid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    of.and_then(|of| of.split_whitespace().nth(1)?.parse().ok()) == Some(uid)
}

/// Who may have written the PID file of a unit: root, the manager, the unit's user.
fn owners(world: &World, unit: &Unit, dynamic: Option<u32>) -> Vec<u32> {
    let mut owners = vec![0, world.owner.uid];
    if let Some(body) = unit.as_service()
        && let Ok(Some(user)) = account(world, &unit.name, &body.service, dynamic)
    {
        owners.push(user.uid);
    }
    owners
}

/// The only process of a run whose parent is the manager, as a daemon that has left its parents has it.
fn guess(world: &World, run: InvocationId) -> Result<u32, String> {
    let entry = world.runs.get(run).ok_or("nothing of it runs")?;
    let all = match &entry.cgroup {
        Some(leaf) => leaf.processes().map_err(|error| error.to_string())?,
        None => members(run, entry)?,
    };
    let own = std::process::id();
    let left =
        |pid: &u32| world.runs.find(*pid).is_none() && matches!(tree::parent(*pid), Ok(Some(p)) if p == own);
    let daemons: Vec<u32> = all.into_iter().filter(left).collect();
    match daemons[..] {
        [pid] => Ok(pid),
        [] => Err("no process of it has gone into the background".to_owned()),
        _ => Err(format!("{} processes of it have gone into the background", daemons.len())),
    }
}

/// Holds a process as the main one of a run. Only somebody privileged may name one that is none of the unit's.
fn adopt(
    world: &mut World,
    id: EffectId,
    run: InvocationId,
    pid: u32,
    privileged: bool,
) -> Result<MainProcess, String> {
    if pid == std::process::id() || pid == 1 {
        return Err(format!("{pid} is not a process of the service, but the one that manages it"));
    }
    match world.runs.find(pid) {
        Some((known, process)) if known == run => {
            dismiss(world, run, Some(pid));
            return Ok(MainProcess { process, pid });
        }
        Some(_) => return Err(format!("{pid} is a process of another unit")),
        None => {}
    }
    let process = PidFd::open(pid).map_err(|error| format!("{pid} cannot be held: {error}"))?;
    let process = process.ok_or_else(|| format!("there is no process {pid}"))?;
    // From here on the number is this process's own, as long as it lives.
    let parent = tree::parent(pid).map_err(|error| error.to_string())?;
    let parent = parent.ok_or_else(|| format!("process {pid} has ended"))?;
    let is_guest = !belongs(world, run, pid, parent);
    if is_guest && !privileged {
        return Err(format!("{pid} is not a process of the service"));
    }
    dismiss(world, run, None);
    if is_guest {
        world.mains.guests.insert(run, pid);
    }
    if parent != std::process::id() {
        let watched = world.mains.watch(run, id, pid, &process);
        watched.map_err(|error| format!("process {pid} cannot be watched: {error}"))?;
    }
    world.runs.enter(run, id, Process { pid, pidfd: process });
    Ok(MainProcess { process: id, pid })
}

/// A guest that is the main process no longer is none of the run's any more.
fn dismiss(world: &mut World, run: InvocationId, stays: Option<u32>) {
    let Some(guest) = world.mains.guests.get(&run).copied().filter(|guest| stays != Some(*guest)) else {
        return;
    };
    world.mains.guests.remove(&run);
    world.mains.foreign.retain(|_, (_, _, pid)| *pid != guest);
    // Its pidfd is closed here, and with that watched no longer.
    world.runs.leave(guest);
}

/// Whether a process is one of the run: by its cgroup; where there are none, by the run that it was born in, and a daemon
/// that has overwritten its environment by being our child and nobody else's.
fn belongs(world: &World, run: InvocationId, pid: u32, parent: u32) -> bool {
    let Some(entry) = world.runs.get(run) else { return false };
    if world.cgroups.is_some() {
        return world.unit_of_process(pid).as_ref() == Some(&entry.unit.name);
    }
    match run_in_environment(pid) {
        Some(born) => born == run,
        None => parent == std::process::id() || members(run, entry).is_ok_and(|pids| pids.contains(&pid)),
    }
}

/// A run is over: its PID file is waited for no longer, and goes if its daemon has left it.
pub fn forget(world: &mut World, id: InvocationId, run: &Run) {
    world.mains.forget_file(id);
    world.mains.guests.remove(&id);
    let writer = world.mains.writers.remove(&id);
    world.mains.foreign.retain(|_, (run, _, _)| *run != id);
    let unit = &run.unit;
    let Some(path) = unit.as_service().and_then(|body| body.service.life.pid_file.as_deref()) else { return };
    let mut owners = owners(world, unit, run.dynamic_uid);
    owners.extend(writer);
    if let Err(error) = pid_file::remove(path, &owners) {
        tracing::warn!(unit = %unit.name, %error, "PIDFile {} is left over", path.display());
    }
}

/// Tells of those that had ended before they could be taken over.
pub fn tell_gone(world: &mut World, events: &mut VecDeque<Event>) {
    let gone = std::mem::take(&mut world.mains.gone);
    events.extend(gone.into_iter().map(|(run, id)| Event::Exited { id, run, status: ExitStatus::Unknown }));
}

/// Reads what there is to say: files that may have been written, processes of others that have ended.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    let mut ready = Vec::new();
    let mut some_ended = false;
    loop {
        ready.clear();
        if let Err(error) = world.mains.ready.wait(&mut ready, Some(Duration::ZERO)) {
            tracing::error!(%error, "main processes cannot be watched");
        }
        if ready.is_empty() {
            break;
        }
        for key in &ready {
            if *key == FILES {
                drain_files(world, events);
            } else {
                some_ended |= ended(world, *key, events);
            }
        }
    }
    if some_ended {
        groups::check_empty_by_walk(world, events);
    }
}

fn drain_files(world: &mut World, events: &mut VecDeque<Event>) {
    match world.mains.files.drain() {
        Ok(keys) => {
            let runs = keys.iter().filter_map(|key| world.mains.waits.get(key));
            events.extend(runs.map(|run| Event::PidFileChanged { run: *run }));
        }
        Err(error) => tracing::error!(%error, "PID files cannot be watched"),
    }
}

/// A process that was not our child has ended. False: it is our child by now, or nobody's that we know.
fn ended(world: &mut World, key: u64, events: &mut VecDeque<Event>) -> bool {
    let Some((run, id, pid)) = world.mains.foreign.remove(&key) else { return false };
    let Some(process) = world.runs.get(run).and_then(|entry| entry.processes.get(id)) else { return false };
    if let Err(error) = world.mains.ready.remove(&process.pidfd) {
        tracing::error!(pid, %error, "a process that has ended is still watched");
    }
    // Its parent may have gone before it: then it became our child, and the reaper tells how it ended.
    if process.pidfd.is_child().unwrap_or(false) {
        return false;
    }
    world.runs.leave(pid);
    world.drain_log(run);
    groups::check_oom(run, world, events);
    events.push_back(Event::Exited { id, run, status: ExitStatus::Unknown });
    groups::reaped(run, world, events);
    true
}
