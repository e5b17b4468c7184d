//! All that the shell holds besides the engine: what effects act on and what watching needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use agentd_engine::{
    ActiveState, AttachmentId, Boottime, Effect, InvocationId, Monotonic, Now, Record, RequestId, Sender,
    ShutdownKind, UnitView,
};
use agentd_linux::cgroup::CgroupRoot;
use agentd_linux::pidfd::PidFd;
use agentd_linux::rlimit::Rlimit;
use agentd_linux::timer::Clocks;
use agentd_linux::user::Accounts;
use agentd_protocol::manager::Problem;
use agentd_protocol::words::UnitFileState;
use agentd_state::StateDir;
use agentd_trust::Verdict;
use agentd_unit::edges::Edges;
use agentd_unit::sections::ControlAccess;
use agentd_unit::{NamedFile, Realtime, Unit, UnitName, UnitSet};

use crate::config::Config;
use crate::control::access::Owner;
use crate::control::ends::Ends;
use crate::control::replies::Replies;
use crate::control::view::Extras;
use crate::control::{Answer, Follower, Inbound, unit_files};
use crate::journal::{self, Journal};
use crate::log::{Carried, FollowId, LogConfig, LogStore};
use crate::perform::Births;
use crate::perform::births::Begun;
use crate::perform::bounds::Bounds;
use crate::perform::paths::Paths;
use crate::perform::plan::chain;
use crate::perform::runs::{Run, Runs};
use crate::perform::sockets::Sockets;
use crate::perform::stamps::Stamps;
use crate::perform::start::{self, JOURNAL_UNIT, line_rules};
use crate::perform::store::{self, Stores};
use crate::perform::sweeper::Sweeper;
use crate::perform::trust::Trust;
use crate::perform::usage;
use crate::perform::{credentials, folders, slices, temporary};
use crate::takeover::Kept;
use crate::takeover::handover::Handover;
use crate::units::{Errand, Loaded, Loading};

/// How many lines one run gets about what is wrong with its notifications.
const COMPLAINTS: u32 = 10;

/// How long what was said may take to be written before the manager is executed again.
const WRITE_OUT: std::time::Duration = std::time::Duration::from_secs(3);

/// systemd's message id of "Started …".
const STARTED: &str = "39f53479d3a045ac8e11786248231fbf";

/// systemd's message id of "Stopped …".
pub const STOPPED: &str = "9d1aaa27d60140bd96365438aad20286";

/// The shell's own state. The main loop owns it.
pub struct World {
    /// How this manager runs.
    pub config: Config,
    /// The clocks, read before each event.
    pub now: Now,
    /// Reused for the effects of one event.
    pub scratch: Vec<Effect>,
    /// The live runs.
    pub runs: Runs,
    /// Who waits for which request.
    pub replies: Replies,
    /// Who waits until units have ended.
    pub ends: Ends,
    /// The policy and the keys.
    pub trust: Trust,
    /// Where the manager's own messages go.
    pub journal: Arc<Journal>,
    /// The embedded log.
    pub log: Option<LogStore>,
    /// Clients that follow a unit's log.
    pub followers: Vec<(FollowId, Follower)>,
    /// Connects the output of runs to journald.
    pub journal_streams: agentd_linux::journal::Connector,
    /// Durable state.
    pub state: Arc<StateDir>,
    /// Where stamps are written without the main loop waiting for a disk.
    pub stamps: Stamps,
    /// What socket units listen on.
    pub sockets: Sockets,
    /// What path units wait for.
    pub paths: Paths,
    /// What makes processes.
    pub births: Births<Begun>,
    /// There is other work than the effect that is carried out: a birth need not be waited for.
    pub busy: bool,
    /// Our part of the cgroup tree, where there is one.
    pub cgroups: Option<CgroupRoot>,
    /// Removes the cgroups of runs that end together.
    pub sweeper: Sweeper,
    /// Tells when a cgroup becomes empty or loses a process to the OOM killer.
    pub watches: crate::watch::groups::Watches,
    /// Which PID files are waited for, and main processes that are no children of ours.
    pub mains: crate::watch::mains::Mains,
    /// Users and groups.
    pub accounts: Accounts,
    /// What units may reach.
    pub reach: crate::perform::reach::Reach,
    /// Whose IPC is to go.
    pub leavers: crate::perform::ipc::Leavers,
    /// How many descriptors the manager may have, RLIMIT_NOFILE.
    pub descriptors: u64,
    /// Limits that processes of units get, as the manager found them.
    pub rlimits: Vec<Rlimit>,
    /// For whom the control socket is.
    pub owner: Owner,
    /// Reading and reading again of units.
    pub loading: Loading,
    /// The first loading, if it was begun while the rest was prepared.
    pub loaded_ahead: Option<JoinHandle<Loaded>>,
    /// What is to be done on the thread that loads, and is not begun yet.
    pub errands: Vec<Errand>,
    /// Requests whose unit was looked up on disk, to be answered once the engine has it.
    pub looked_up: Vec<Inbound>,
    /// Everything is being stopped, and nothing will be started again.
    pub is_ending: bool,
    /// The manager is on its way back to the cgroup that it was started in; whether it could go.
    pub way_back: Option<std::thread::JoinHandle<bool>>,
    /// How the manager ends, once everything is stopped.
    pub ending: Option<ShutdownKind>,
    /// What a reboot hands to reboot(2).
    pub reboot_argument: Option<String>,
    /// The request for the first unit.
    pub first_request: Option<RequestId>,
    /// Whether the first request was answered.
    pub booted: bool,
    /// Orphans that were adopted and reaped.
    pub orphans: u64,
    /// How often it was said that a notification is lost.
    pub lost_notifications: u32,
    /// Much work is done, so that memory can go back once the events of it are handled.
    pub tidy: bool,
    /// Children that were left for the next turn.
    pub children_left: bool,
    /// The control socket is to be made anew.
    pub reopen_control: bool,
    /// Something was taken out of the runtime folder.
    pub folder_changed: bool,
    /// The state of all units is to be logged.
    pub dump: bool,
    /// What the last loading found that is no unit's fault.
    pub problems: Vec<Problem>,
    /// What each name of the search path is for the boot, in the order of names.
    pub unit_files: Vec<NamedFile>,
    /// The definitions that were loaded last, also where a unit still lives by an older one.
    pub loaded: UnitSet,
    /// The slices that have their bounds, with the definitions that say them.
    pub bounded: BTreeMap<String, Option<Arc<Unit>>>,
    /// Slices that were stopped and whose cgroups are still there.
    pub stopped_slices: BTreeSet<UnitName>,
    /// What units are to each other by them.
    pub edges: Arc<Edges>,
    /// Units were found since these edges were reckoned.
    pub found_units: bool,
    /// What was loaded only to be looked at.
    pub plans: Vec<Loaded>,
    /// What this machine lacks, in sentences for `status`.
    pub missing: Vec<String>,
    /// When the manager was started.
    pub started: Realtime,
    /// The bytes of physical memory, for limits in percent.
    pub machine_memory: u64,
    /// The tasks that the machine can have, for limits in percent.
    pub machine_tasks: u64,
    /// The OOM score that processes of units get, where the manager has another.
    pub oom_score_adjust: Option<i32>,
    /// Tells a second manager of us, for as long as it is held.
    pub lock: std::fs::File,
    /// Whether the kit for Python agents was written to the runtime folder.
    pub kit_written: bool,
    /// What services have left with the manager.
    pub stores: Stores,
    /// What is kept for a manager after this one, and what the one before has kept.
    pub kept: Kept,
    /// What the manager before held for units, and nobody has taken up yet.
    pub held: Handover<OwnedFd>,
    /// Who asked for a re-execution, until all units have come to rest or are up.
    pub reexec: Vec<Answer>,
    /// Runtime folders that outlive their run until it is known that no restart follows.
    pub kept_folders: BTreeMap<UnitName, Vec<PathBuf>>,
}

impl World {
    /// The next fencing token. That the disk takes none is said once, and keeps nothing from being started.
    #[must_use]
    pub fn next_token(&self) -> u64 {
        let token = self.state.next_fencing_token();
        if let Some(error) = token.unsaved {
            tracing::warn!("{}; fencing tokens follow the clock until it can be written", chain(&error));
        }
        token.number
    }

    /// Reads the clocks for the next event.
    pub fn read_clocks(&mut self) {
        match Clocks::now() {
            Ok(clocks) => self.now = now(&clocks),
            Err(error) => tracing::error!(%error, "the clocks cannot be read"),
        }
    }

    /// The wall clock's time at which CLOCK_BOOTTIME was zero, by the present setting.
    #[must_use]
    pub fn boot_time(&self) -> Realtime {
        let since = i64::try_from(self.now.boottime.0.as_micros()).unwrap_or(i64::MAX);
        Realtime(self.now.realtime.as_micros().saturating_sub(since))
    }

    /// A point on the monotonic clock as microseconds on the wall clock, by the present setting; 0 for none.
    #[must_use]
    pub fn realtime_of(&self, at: Option<Monotonic>) -> u64 {
        at.map_or(0, |at| {
            let wall = self.now.realtime + (at - self.now.monotonic);
            u64::try_from(wall.as_micros()).unwrap_or(0)
        })
    }

    /// The run and the place in it of who sent a notification. One who is gone has left its number, which may be another's
    /// by now, and its cgroup, which the kernel tells from Linux 6.16.
    #[must_use]
    pub fn run_of_sender(&self, sender: &agentd_linux::notify::Sender) -> Option<(InvocationId, Sender)> {
        let Some(gone) = sender.pidfd.as_ref().filter(|pidfd| pidfd.is_gone()) else {
            return self.run_of_process(sender.pid);
        };
        let run = self.runs.of_cgroup(gone.cgroup_id()?)?;
        Some((run, Sender::Other { pid: sender.pid }))
    }

    /// The run and the place in it of a process that says something.
    #[must_use]
    pub fn run_of_process(&self, pid: u32) -> Option<(InvocationId, Sender)> {
        if let Some((run, effect)) = self.runs.find(pid) {
            return Some((run, Sender::Process(effect)));
        }
        let unit = self.unit_of_process(pid)?;
        let (run, _) = self.runs.of_unit(&unit)?;
        Some((run, Sender::Other { pid }))
    }

    /// The unit in which a process lives: by its cgroup, else by the invocation that its environment names.
    #[must_use]
    pub fn unit_of_process(&self, pid: u32) -> Option<UnitName> {
        if let Some(cgroups) = &self.cgroups {
            let path = agentd_linux::cgroup::of_process(pid).ok().flatten()?;
            return cgroups.unit_of(&path).and_then(|name| UnitName::parse(name).ok());
        }
        let run = crate::perform::kill::run_in_environment(pid)?;
        self.runs.get(run).map(|run| run.unit.name.clone())
    }

    /// The unit in which a process lives, and what its processes may do here.
    #[must_use]
    pub fn access_of(&self, pid: u32) -> Option<(UnitName, ControlAccess)> {
        let unit = self.unit_of_process(pid)?;
        let run = self.runs.of_unit(&unit).map(|(_, run)| run);
        let agent = run.and_then(|run| run.unit.as_service()).and_then(|body| body.agent.as_ref());
        Some((unit, agent.map(|agent| agent.control_access).unwrap_or_default()))
    }

    /// An orphan was adopted and reaped.
    pub fn adopted(&mut self, pid: u32, unit: Option<UnitName>) {
        self.orphans += 1;
        tracing::debug!(pid, unit = unit.as_ref().map(UnitName::as_str), "reaped an orphan");
    }

    /// Says that a notification could not be laid to a unit's charge: a few times where its sender may have been a unit's.
    pub fn notified_by_nobody(&mut self, sender: &agentd_linux::notify::Sender) {
        let (pid, uid) = (sender.pid, sender.uid);
        let is_gone = match &sender.pidfd {
            Some(pidfd) => pidfd.is_gone(),
            None => matches!(agentd_linux::tree::birth(pid), Ok(None)),
        };
        let is_told = self.cgroups.is_some() && sender.pidfd.as_ref().and_then(PidFd::cgroup_id).is_some();
        if !is_gone || is_told {
            tracing::debug!(pid, uid, "a notification came from no unit's process");
        } else if self.lost_notifications < COMPLAINTS {
            self.lost_notifications += 1;
            tracing::warn!(
                pid,
                uid,
                "a notification is lost: its sender was gone when it was read, and nothing tells where it lived, which takes cgroups and Linux 6.16; let it wait until it was heard, as `systemd-notify` and BARRIER=1 do"
            );
        }
    }

    /// Says what is wrong with a notification of a run, a few times: a flood of them is not to become one of lines.
    pub fn complain(&mut self, id: InvocationId, what: fmt::Arguments<'_>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let unit = run.unit.name.clone();
        match run.complaints {
            0..COMPLAINTS => tracing::warn!(unit = %unit, "{unit}: A notification {what}"),
            COMPLAINTS => {
                tracing::warn!(unit = %unit, "{unit}: A notification is wrong once more; this run's further ones are not told of");
            }
            _ => return,
        }
        run.complaints += 1;
    }

    /// Does what a notification asked for that something came along with.
    pub fn take_attachment(&mut self, id: AttachmentId, unit: &UnitName) {
        let closed = self.stores.take(id, unit);
        if let Some((run, _)) = self.runs.of_unit(unit).filter(|_| closed > 0) {
            self.complain(run, format_args!("{}", store::TOO_MANY));
        }
    }

    /// Has the log read what a run has said so far.
    pub fn drain_log(&self, run: InvocationId) {
        if let (Some(log), true) = (&self.log, self.runs.get(run).is_some_and(|run| run.logged)) {
            log.drain(run);
        }
    }

    /// Says what the engine has to say: to the journal or the console, and into the unit's own log.
    pub fn log(&self, record: Record) {
        let level = journal::LogLevel::from(record.level);
        if level <= self.config.log_level
            && let (Some(log), Some(unit)) = (&self.log, &record.unit)
        {
            let unit = self.sockets.log_of(unit);
            match self.is_ending && record.message_id == Some(STOPPED) {
                true => log.last_record(unit, record.run, level.number(), &record.text),
                false => log.record(unit, record.run, level.number(), &record.text),
            }
        }
        let started = record.message_id == Some(STARTED);
        let journal_is_there =
            started && record.unit.as_ref().is_some_and(|unit| unit.as_str() == JOURNAL_UNIT);
        self.journal.say(record);
        if journal_is_there {
            self.journal.poke();
        }
    }

    /// Keeps when a timer fired, off the main loop.
    pub fn save_stamp(&self, timer: &UnitName, at: Realtime) {
        if !self.stamps.save(timer, at) {
            tracing::error!(unit = %timer, "the last time of the timer cannot be kept: its writer has ended");
        }
    }

    /// A run is over: its cgroup, its copies and its pipe go.
    pub fn release(&mut self, id: InvocationId) {
        let Some(mut run) = self.runs.end(id) else { return };
        self.kept.end(&run.unit.name);
        if let Some(body) = run.unit.as_service() {
            folders::release(self, &run.unit.name, &body.service);
        }
        if let Some(Err(error)) = run.credentials.as_deref().map(credentials::discard) {
            tracing::error!(unit = %run.unit.name, %error, "the secrets of the run cannot be removed");
        }
        crate::watch::mains::forget(self, id, &run);
        if let Some(folders) = &run.private_tmp {
            temporary::remove(self.own_temporary(id, folders));
        }
        crate::perform::ipc::release(self, &run);
        self.stores.release(&run.unit.name);
        self.watches.forget(id);
        self.trust.forget(&id.to_string());
        if let Some(leaf) = run.cgroup.take_if(|_| !run.removed) {
            self.watches.remove(&run.unit.name, leaf);
        }
        self.sweeper.discard(run);
    }

    /// Which of its temporary folders go with a run that is over.
    #[must_use]
    pub fn own_temporary(&self, id: InvocationId, folders: &[PathBuf; 2]) -> Vec<PathBuf> {
        let is_last = self.runs.iter().all(|(_, other)| other.private_tmp.as_ref() != Some(folders));
        temporary::leftovers(id, folders, is_last)
    }

    /// Removes folders that stay over an automatic restart, of units that `rests` says do not run again.
    pub fn remove_kept_folders(&mut self, rests: impl Fn(&UnitName) -> bool) {
        self.kept_folders.retain(|unit, paths| {
            let gone = rests(unit);
            if gone {
                folders::remove(unit, paths);
            }
            !gone
        });
    }

    /// Writes out all that was said and done so far, and ends the threads that write. What the log goes on with comes back.
    pub fn write_out(&mut self) -> Carried {
        let carried = self.log.take().map(|log| log.hand_on(WRITE_OUT));
        if let Some(None) = carried {
            tracing::warn!("the log of the agents' output could not be written out in time");
        }
        self.stamps.finish();
        self.journal.flush(WRITE_OUT);
        carried.flatten().unwrap_or_default()
    }

    /// Begins anew what [`World::write_out`] has ended.
    pub fn write_again(&mut self, lines: Carried) {
        self.stamps = Stamps::start(Arc::clone(&self.state));
        match LogStore::start(LogConfig::new(&self.config.folders.log).with_descriptors(self.descriptors)) {
            Ok(log) => {
                log.carry_on(lines);
                for (id, run) in self.runs.iter().filter(|(_, run)| run.logged) {
                    // Its processes' end of the pipe leads to ours.
                    let opened = run.output.as_ref().map(open_again);
                    match opened.transpose() {
                        Ok(Some(pipe)) => log.attach(&run.unit.name, id, pipe, line_rules(&run.unit)),
                        Ok(None) => {}
                        Err(error) => tracing::error!(unit = %run.unit.name, %error, "its output is lost"),
                    }
                }
                log.settle();
                self.log = Some(log);
            }
            Err(error) => tracing::error!(%error, "the log of the agents' output cannot be started again"),
        }
    }

    /// Whether the journal, not the embedded log, has what a unit says.
    #[must_use]
    pub fn journal_has(&self, unit: &UnitName) -> bool {
        self.runs.of_unit(unit).is_some_and(|(_, run)| run.output.is_some() && !run.logged)
    }

    /// What the engine does not know of a unit.
    #[must_use]
    pub fn extras(&self, view: &UnitView) -> Extras {
        let unit = &view.unit;
        let leaf = self.runs.of_unit(&unit.name).and_then(|(_, run)| run.cgroup.as_ref());
        let verdict = self.trust.verdict(unit);
        Extras {
            control_group: leaf.map_or_else(|| self.group_of_slice(view), |leaf| leaf.cgroup().to_owned()),
            usage: leaf.map(usage::read).unwrap_or_default(),
            file_state: self.file_state(&unit.name),
            edges: Arc::clone(&self.edges),
            need_daemon_reload: self.is_stale(view),
            need_restart: self.needs_restart(view),
            not_enforced: self.not_enforced(view),
            stored: self.stores.count(&unit.name),
            survivors: self
                .runs
                .of_unit(&unit.name)
                .map(|(_, run)| run.survivors.clone())
                .unwrap_or_default(),
            trust: crate::control::status::trust_state(unit, &verdict),
            key_ids: match &verdict {
                Verdict::Trusted { keys } => keys.iter().map(ToString::to_string).collect(),
                Verdict::Unsigned | Verdict::Refused(_) => Vec::new(),
            },
        }
    }

    /// The cgroup of a slice that something has run in.
    fn group_of_slice(&self, view: &UnitView) -> String {
        let slice =
            Some(&view.unit.name).filter(|name| name.is_slice() && view.active == ActiveState::Active);
        let cgroup =
            self.cgroups.as_ref().zip(slice).and_then(|(root, slice)| root.cgroup_of(slice.as_str()));
        cgroup.unwrap_or_default()
    }

    /// Whether a newer definition is loaded than the one that the unit lives by. That it is enabled or not any more
    /// is no other definition.
    #[must_use]
    pub fn needs_restart(&self, view: &UnitView) -> bool {
        let old = &view.unit;
        let is_other = |new: &Arc<Unit>| new.digest != old.digest || new.load != old.load;
        view.changed_on_disk && self.loaded.get(&old.name).is_none_or(is_other)
    }

    /// Whether the files of a unit are others now than those that were loaded.
    #[must_use]
    pub fn is_stale(&self, view: &UnitView) -> bool {
        let newest = self.loaded.get(&view.unit.name).unwrap_or(&view.unit);
        crate::control::files::changed(newest, self.loading.search())
    }

    /// What a unit's file is for the boot, as it was last loaded; what has none is static.
    #[must_use]
    pub fn file_state(&self, unit: &UnitName) -> UnitFileState {
        let found = unit_files::find(&self.unit_files, unit);
        found.map(|(_, state)| unit_files::state(state)).unwrap_or_default()
    }

    /// The cgroup of a unit and, if it is wanted, its memory, for `list`: the kernel has to be asked for each unit's.
    #[must_use]
    pub fn group_and_memory(&self, view: &UnitView, wants_memory: bool) -> (String, Option<u64>) {
        match self.runs.of_unit(&view.unit.name).and_then(|(_, run)| run.cgroup.as_ref()) {
            Some(leaf) => {
                let asks = wants_memory && self.counts_memory();
                let memory = if asks { leaf.memory_current() } else { None };
                (leaf.cgroup().to_owned(), memory)
            }
            None => (String::new(), None),
        }
    }

    /// Whether the cgroups of units have the memory controller, and so the files of it.
    #[must_use]
    pub fn counts_memory(&self) -> bool {
        self.cgroups.as_ref().is_some_and(|cgroups| cgroups.enforceable().memory)
    }

    /// The limits of a unit that this machine does not enforce, with the reason: one sentence each.
    #[must_use]
    pub fn not_enforced(&self, view: &UnitView) -> Vec<String> {
        let limits = Bounds::of(&view.unit).into_iter();
        let limits = limits.flat_map(|bounds| bounds.not_enforced(self.cgroups.as_ref()));
        let Some(body) = view.unit.as_service() else { return limits.collect() };
        let service = &body.service;
        let programs = crate::perform::reach::refused(self).into_iter().flat_map(|why| {
            let keys = crate::perform::reach::keys(service).into_iter();
            keys.map(move |key| format!("{key} is not enforced: {why}"))
        });
        limits.chain(programs).chain(crate::perform::landlock::not_held(service)).collect()
    }

    /// Gives live runs the limits of newer definitions that differ in nothing else, and slices those of newer ones.
    pub fn take_up_limits(&mut self) {
        let inherits = slices::take_up(self);
        let newer = |(id, run): (InvocationId, &Run)| {
            let unit = self.loaded.get(&run.unit.name)?;
            let is_other = run.unit.digest != unit.digest;
            match is_other && run.unit.differs_in_limits_alone(unit) {
                true => Some((id, Arc::clone(unit))),
                false => inherits.then(|| (id, Arc::clone(&run.unit))),
            }
        };
        let all: Vec<(InvocationId, Arc<Unit>)> = self.runs.iter().filter_map(newer).collect();
        for (id, unit) in all {
            if let Err(failure) = start::limit(self, id, &unit) {
                tracing::error!(unit = %unit.name, "{}: its new limits are not in force: {}", unit.name, failure.message);
                continue;
            }
            if let Some(run) = self.runs.get_mut(id) {
                run.unit = unit;
            }
        }
    }

    /// Ends followers whose client is gone.
    pub fn prune_followers(&mut self) {
        let Some(log) = &self.log else { return };
        self.followers.retain(|(id, follower)| {
            let gone = follower.is_gone();
            if gone {
                log.unfollow(*id);
            }
            !gone
        });
    }

    /// The folders that are searched for units, highest first.
    #[must_use]
    pub fn unit_path(&self) -> Vec<PathBuf> {
        self.loading.search_path()
    }
}

/// The reading end of a pipe that we hold the other end of.
fn open_again(fd: &std::os::fd::OwnedFd) -> std::io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::AsRawFd;
    Ok(std::fs::File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?.into())
}

/// The kernel's clocks as the engine has them.
#[must_use]
pub fn now(clocks: &Clocks) -> Now {
    Now {
        monotonic: Monotonic(clocks.monotonic),
        boottime: Boottime(clocks.boottime),
        realtime: Realtime(i64::try_from(clocks.realtime.as_micros()).unwrap_or(i64::MAX)),
    }
}

/// The stamps as the engine wants them.
#[must_use]
pub fn stamps(state: &StateDir) -> BTreeMap<UnitName, Realtime> {
    state.stamps()
}
