//! The live runs: each with its cgroup, its processes by pidfd, and who waits for its end.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::fchown;
use std::path::PathBuf;
use std::sync::Arc;

use agentd_engine::{EffectId, InvocationId};
use agentd_linux::cgroup::{Leaf, Removal};
use agentd_linux::pidfd::PidFd;
use agentd_unit::sections::ServiceType;
use agentd_unit::{ExecKind, Unit, UnitName};

/// A process that we spawned and have not reaped.
#[derive(Debug)]
pub struct Process {
    /// Its number, for displays and for the reaper's look-up.
    pub pid: u32,
    /// What signals go through.
    pub pidfd: PidFd,
}

/// The processes of one run: hardly ever more than two.
#[derive(Debug, Default)]
pub struct Processes(Vec<(EffectId, Process)>);

impl Processes {
    /// The process of an effect.
    #[must_use]
    pub fn get(&self, effect: EffectId) -> Option<&Process> {
        self.0.iter().find(|(id, _)| *id == effect).map(|(_, process)| process)
    }

    /// All of them.
    pub fn values(&self) -> impl Iterator<Item = &Process> {
        self.0.iter().map(|(_, process)| process)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn insert(&mut self, effect: EffectId, process: Process) {
        self.remove(effect);
        self.0.reserve_exact(1);
        self.0.push((effect, process));
    }

    fn remove(&mut self, effect: EffectId) {
        self.0.retain(|(id, _)| *id != effect);
    }
}

/// One life of one unit, as the kernel sees it.
#[derive(Debug)]
pub struct Run {
    /// The definition it lives by.
    pub unit: Arc<Unit>,
    /// The slice that its cgroup lies in, where there are cgroups.
    pub slice: Option<String>,
    /// Its cgroup, where there are cgroups.
    pub cgroup: Option<Leaf>,
    /// Its processes that we spawned.
    pub processes: Processes,
    /// Its cgroup was found empty, and we have put no process into it since: nobody is left there to fork one.
    pub emptied: bool,
    /// Its cgroup was removed when it was found empty. Never before the last command of the run.
    pub removed: bool,
    /// Effects that wait for the last process to go.
    pub awaiting: Vec<EffectId>,
    /// The number of this run, durable and strictly increasing.
    pub token: u64,
    /// How many of its processes the OOM killer had taken when we last looked.
    pub oom_kills: u64,
    /// What its processes write to; kept so that every command of the run has the same.
    pub output: Option<OwnedFd>,
    /// Whether that is a pipe into the embedded log.
    pub logged: bool,
    /// `JOURNAL_STREAM`, if it is the journal's stream.
    pub journal_stream: Option<String>,
    /// How often its notifications were complained about.
    pub complaints: u32,
    /// What SIGKILL did not end in time, in words.
    pub survivors: Vec<String>,
    /// Where its secrets are, once they are.
    pub credentials: Option<PathBuf>,
    /// The user and the group that its commands run as, where it names them.
    pub owner: Option<[u32; 2]>,
    /// The user that is its own under `DynamicUser`.
    pub dynamic_uid: Option<u32>,
    /// Namespaces that all its commands enter.
    pub common: super::namespaces::Common,
    /// Its `/tmp` and `/var/tmp`, which it may share with others.
    pub private_tmp: Option<[PathBuf; 2]>,
}

impl Run {
    /// Notes whose its processes are. Their output is theirs too, so that they can open it by the name of /dev/stderr.
    ///
    /// # Errors
    /// Those of fchown(2).
    pub fn belong_to(&mut self, owner: Option<[u32; 2]>) -> io::Result<()> {
        let is_other = self.owner != owner;
        self.owner = owner;
        match (owner, &self.output) {
            (Some([uid, gid]), Some(output)) if is_other && self.logged => {
                fchown(output, Some(uid), Some(gid))
            }
            _ => Ok(()),
        }
    }

    /// Whether no process of the run is left: by its cgroup, else by those that we know and those that name it.
    ///
    /// A process of ours that is not reaped counts, wherever it has gone.
    #[must_use]
    pub fn is_empty(&mut self, id: InvocationId) -> bool {
        if !self.processes.is_empty() {
            return false;
        }
        if self.cgroup.is_none() {
            return super::kill::members(id, self).is_ok_and(|pids| pids.is_empty());
        }
        // What can be removed is empty: one call answers the question, and does what would be done next.
        if !self.emptied && !self.went_with_its_last() {
            self.emptied = !self.cgroup.as_ref().is_some_and(|leaf| {
                leaf.is_populated().unwrap_or_else(|error| {
                    tracing::error!(unit = %self.unit.name, %error, "whether processes are left cannot be told");
                    true
                })
            });
        }
        self.emptied
    }

    /// Whether nobody of ours is left, nor anybody else, and nothing more is to come: then its cgroup is gone now. One call.
    #[must_use]
    pub fn went_with_its_last(&mut self) -> bool {
        if self.removed || !self.processes.is_empty() || self.emptied || !has_one_command(&self.unit) {
            return self.removed;
        }
        self.removed =
            self.cgroup.as_ref().is_some_and(|leaf| matches!(leaf.remove_empty(), Ok(Removal::Removed)));
        self.emptied = self.removed;
        self.removed
    }

    /// Where its cgroup is, if removing it is all that there is to be done once it is empty.
    #[must_use]
    pub fn one_call(&self) -> Option<PathBuf> {
        let leaf = self.cgroup.as_ref().filter(|_| !self.emptied && has_one_command(&self.unit));
        leaf.map(|leaf| leaf.path().to_owned())
    }
}

/// Whether a run of the unit is over once it is empty: it has a main process from the beginning, and no command that could
/// be put into its cgroup after it.
#[must_use]
pub fn has_one_command(unit: &Unit) -> bool {
    let Some(service) = unit.as_service().map(|body| &body.service) else { return false };
    let mut others = ExecKind::ALL.into_iter().filter(|kind| *kind != ExecKind::Start);
    !service.remain_after_exit
        && !matches!(service.service_type, ServiceType::Oneshot | ServiceType::Forking)
        && others.all(|kind| service.commands(kind).is_empty())
}

/// All live runs.
#[derive(Debug, Default)]
pub struct Runs {
    /// Boxed: half of a table's places are empty.
    runs: HashMap<InvocationId, Box<Run>>,
    /// Asked for each orphan of a flood, most often with a few entries: no time goes into hashing.
    by_pid: BTreeMap<u32, (InvocationId, EffectId)>,
    by_unit: HashMap<UnitName, InvocationId>,
}

impl Runs {
    /// The run of this id.
    #[must_use]
    pub fn get(&self, run: InvocationId) -> Option<&Run> {
        self.runs.get(&run).map(Box::as_ref)
    }

    /// The run of this id, to change.
    pub fn get_mut(&mut self, run: InvocationId) -> Option<&mut Run> {
        self.runs.get_mut(&run).map(Box::as_mut)
    }

    /// The live run of a unit.
    #[must_use]
    pub fn of_unit(&self, unit: &UnitName) -> Option<(InvocationId, &Run)> {
        let run = *self.by_unit.get(unit)?;
        Some((run, self.get(run)?))
    }

    /// The live run whose cgroup has this number, [`Leaf::id`].
    #[must_use]
    pub fn of_cgroup(&self, id: u64) -> Option<InvocationId> {
        let is_it = |leaf: &Leaf| leaf.id() == Some(id);
        // A run may have made others below its own.
        self.of_leaf(is_it).or_else(|| self.of_leaf(|leaf| leaf.has_below(id)))
    }

    fn of_leaf(&self, is_it: impl Fn(&Leaf) -> bool) -> Option<InvocationId> {
        self.iter().find_map(|(id, run)| run.cgroup.as_ref().is_some_and(&is_it).then_some(id))
    }

    /// All live runs.
    pub fn iter(&self) -> impl Iterator<Item = (InvocationId, &Run)> {
        self.runs.iter().map(|(id, run)| (*id, run.as_ref()))
    }

    /// Begins a run.
    pub fn begin(&mut self, id: InvocationId, run: Run) {
        self.by_unit.insert(run.unit.name.clone(), id);
        self.runs.insert(id, Box::new(run));
    }

    /// Notes that an effect waits for the last process of a run; true if there is none already.
    pub fn await_empty(&mut self, effect: EffectId, id: InvocationId) -> bool {
        let Some(run) = self.runs.get_mut(&id) else { return true };
        let empty = run.is_empty(id);
        if !empty {
            run.awaiting.push(effect);
        }
        empty
    }

    /// Takes an effect out that waits for the last process of a run.
    pub fn answer_awaiting(&mut self, id: InvocationId, effect: EffectId) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.awaiting.retain(|waiting| *waiting != effect);
        }
    }

    /// Enters a process that was just spawned for the effect.
    pub fn enter(&mut self, run: InvocationId, effect: EffectId, process: Process) {
        self.by_pid.insert(process.pid, (run, effect));
        if let Some(entry) = self.runs.get_mut(&run) {
            entry.emptied = false;
            entry.processes.insert(effect, process);
        }
    }

    /// The run and effect of a process of ours.
    #[must_use]
    pub fn find(&self, pid: u32) -> Option<(InvocationId, EffectId)> {
        self.by_pid.get(&pid).copied()
    }

    /// Takes a process out that was reaped: from now on its number may be another's.
    pub fn leave(&mut self, pid: u32) -> Option<(InvocationId, EffectId)> {
        let (run, effect) = self.by_pid.remove(&pid)?;
        if let Some(entry) = self.runs.get_mut(&run) {
            entry.processes.remove(effect);
        }
        Some((run, effect))
    }

    /// Ends a run and hands out what it held.
    pub fn end(&mut self, id: InvocationId) -> Option<Box<Run>> {
        let run = self.runs.remove(&id)?;
        if self.by_unit.get(&run.unit.name) == Some(&id) {
            self.by_unit.remove(&run.unit.name);
        }
        for process in run.processes.values() {
            self.by_pid.remove(&process.pid);
        }
        Some(run)
    }
}
