//! The beginning of a run: its cgroup with its limits, its fencing token, and where its output goes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use agentd_engine::{InvocationId, Spawn, SpawnFailure};
use agentd_linux::cgroup::{CgroupRoot, Controller, Leaf};
use agentd_linux::journal::{self, STREAM_SOCKET, Speaker};
use agentd_linux::pipe::output_pipe;
use agentd_unit::sections::{Execution, ServiceSection};
use agentd_unit::{Unit, UnitName};

use super::bounds::Bounds;
use super::plan::{chain, resources};
use super::runs::{Processes, Run};
use super::{identity, namespaces, reach, slices, streams};
use crate::log::{LineRules, LogStore, RateLimit};
use crate::world::World;

/// Where a service is that no loader has placed.
const DEFAULT_SLICE: &str = "system.slice";

/// The journal itself, which cannot write to itself.
pub const JOURNAL_UNIT: &str = "systemd-journald.service";

/// Makes the run of a spawn if this is its first.
///
/// # Errors
/// The cgroup, a limit or the output cannot be had.
pub fn ensure_run(world: &mut World, spawn: &Spawn) -> Result<(), SpawnFailure> {
    if let Some(run) = world.runs.get(spawn.run) {
        // A process of it may have frozen it, and what is born there would stand still too.
        return match run.cgroup.as_ref().map(Leaf::thaw) {
            Some(Err(error)) => Err(resources(chain(&error))),
            Some(Ok(())) | None => Ok(()),
        };
    }
    let unit = &spawn.unit;
    let service =
        &unit.as_service().ok_or_else(|| resources(format!("{} is no service", unit.name)))?.service;
    let token = world.next_token();
    let kept_back = kept_back(world);
    let cgroup = cgroup(world, unit, service)?;
    let dynamic_uid = identity::dynamic(world, unit)?;
    if let (Some(leaf), true) = (&cgroup, service.resources.delegate) {
        let user = identity::account(world, &unit.name, service, dynamic_uid)?;
        if let Some(owner) = identity::identity(world, service, user.as_ref())? {
            leaf.delegate(owner.uid, owner.gid).map_err(|e| resources(format!("Delegate: {}", chain(&e))))?;
        }
    }
    reach::wall(world, unit, service, cgroup.as_ref())?;
    if let (Some(leaf), true) = (&cgroup, service.memory_max.is_some()) {
        world.watches.add_memory(spawn.run, leaf);
    }
    let output = output(world, unit, spawn.run)?;
    let newest = [output.fd.as_ref().map(AsFd::as_fd), cgroup.as_ref().map(AsFd::as_fd)];
    leave_room(world, newest, kept_back)?;
    let common = namespaces::common(world, unit, service)?;
    let has_folders = !service.execution.runtime_directory.names.is_empty();
    if cgroup.is_none() || service.sandbox.private_tmp || has_folders {
        let slice = cgroup.is_some().then(|| slice(service).to_owned());
        world.kept.begin(&unit.name, spawn.run, slice, world.now.boottime);
    }
    let private_tmp = namespaces::temporary_folders(world, unit, service, spawn.run)?;
    world.runs.begin(
        spawn.run,
        Run {
            unit: unit.clone(),
            slice: cgroup.is_some().then(|| slice(service).to_owned()),
            cgroup,
            processes: Processes::default(),
            emptied: false,
            removed: false,
            awaiting: Vec::new(),
            token,
            oom_kills: 0,
            complaints: 0,
            survivors: Vec::new(),
            logged: output.logged,
            journal_stream: output.journal_stream,
            output: output.fd,
            common,
            private_tmp,
            owner: None,
            dynamic_uid,
            credentials: None,
        },
    );
    Ok(())
}

/// So many descriptors are kept back when units take all others, beside those of the log's files: clients, the journal,
/// a load of unit files with its dozen open folders.
const KEPT_BACK: u64 = 24;

/// What a run holds while it lives: its cgroup, its process, both ends of its output, one of them twice for a moment.
const HELD_BY_A_RUN: u64 = 5;

/// How many descriptors are kept back now, before a run takes any. Those that the log has open are in use already; and
/// what is held of a run that is over is had again at the end of the turn, so that its next one may take as much.
fn kept_back(world: &World) -> u64 {
    let may_open = world.log.as_ref().map_or(0, LogStore::may_open) as u64;
    let to_come = if world.sweeper.holds() { HELD_BY_A_RUN } else { 0 };
    KEPT_BACK + may_open - to_come
}

/// Refuses a run that would take the last descriptors: as the kernel gives out the lowest number that is free, the newest
/// tell how many are in use.
fn leave_room(
    world: &World,
    newest: [Option<BorrowedFd<'_>>; 2],
    kept_back: u64,
) -> Result<(), SpawnFailure> {
    let highest =
        newest.into_iter().flatten().map(|fd| fd.as_raw_fd()).max().and_then(|fd| u64::try_from(fd).ok());
    if highest.is_none_or(|highest| highest.saturating_add(kept_back) < world.descriptors) {
        return Ok(());
    }
    Err(resources(format!(
        "{} of agentd's {} descriptors are in use, and the rest is kept for its clients and logs; stop units, or start \
         agentd with a higher limit (ulimit -n, LimitNOFILE)",
        highest.unwrap_or_default(),
        world.descriptors
    )))
}

/// Where a run's standard output and standard error go.
#[derive(Debug)]
pub struct Output {
    /// What its processes write to.
    pub fd: Option<OwnedFd>,
    /// Whether that is a pipe into the embedded log.
    pub logged: bool,
    /// `JOURNAL_STREAM`, if it is the journal's stream.
    pub journal_stream: Option<String>,
}

/// What is said of the lines of a service.
#[must_use]
pub fn line_rules(unit: &Unit) -> LineRules {
    let Some(how) = unit.as_service().map(|body| &body.service.execution) else {
        return LineRules::default();
    };
    let rate = (how.log_rate_interval.is_some() || how.log_rate_burst.is_some()).then(|| RateLimit {
        interval: how.log_rate_interval.unwrap_or(RATE_INTERVAL),
        burst: how.log_rate_burst.unwrap_or(RATE_BURST),
    });
    LineRules { level_max: how.log_level_max, level: how.log_level, prefixes: how.log_prefixes, rate }
}

/// What one of the two keys of a rate limit means without the other, as journald has it.
const RATE_INTERVAL: Duration = Duration::from_secs(30);
const RATE_BURST: u32 = 10_000;

/// A stream to the journal, and what the journal is to drop of it.
fn journal_stream(world: &mut World, definition: &Unit) -> Option<OwnedFd> {
    let unit = &definition.name;
    let usual = Execution::default();
    let how = definition.as_service().map_or(&usual, |body| &body.service.execution);
    let speaker = Speaker {
        identifier: how.syslog_identifier.as_deref().unwrap_or(unit.prefix()),
        unit: unit.as_str(),
        priority: how.log_facility << 3 | how.log_level,
        prefixes: how.log_prefixes,
    };
    let fd = world.journal_streams.connect(Path::new(STREAM_SOCKET), speaker).ok()?;
    let bounds = journal::Bounds {
        level_max: how.log_level_max,
        interval: how.log_rate_interval,
        burst: how.log_rate_burst,
    };
    if let Err(error) = bounds.tell(unit.as_str()) {
        tracing::warn!(unit = %unit, %error, "the journal cannot be told of LogLevelMax and LogRateLimitBurst");
    }
    Some(fd)
}

/// The journal's stream if journald is there, else a pipe into the embedded log.
///
/// # Errors
/// No descriptor left; the journal's stream cannot be named.
pub fn output(world: &mut World, definition: &Unit, run: InvocationId) -> Result<Output, SpawnFailure> {
    let unit = &definition.name;
    let how = definition.as_service().map(|body| &body.service.execution);
    let nowhere = Output { fd: None, logged: false, journal_stream: None };
    if !how.is_none_or(|how| streams::uses_log(how)) {
        return Ok(nowhere);
    }
    if world.config.journal_streams
        && unit.as_str() != JOURNAL_UNIT
        && let Some(fd) = journal_stream(world, definition)
    {
        let stream = stream_name(&fd).map_err(|e| resources(format!("the journal's stream: {e}")))?;
        return Ok(Output { fd: Some(fd), logged: false, journal_stream: Some(stream) });
    }
    let Some(log) = &world.log else {
        return Ok(nowhere);
    };
    let (reader, writer) = output_pipe().map_err(|e| resources(format!("a pipe for the output: {e}")))?;
    log.attach(world.sockets.log_of(unit), run, reader, line_rules(definition));
    Ok(Output { fd: Some(writer), logged: true, journal_stream: None })
}

/// `JOURNAL_STREAM`: device and inode, by which a program sees that its output is the journal.
fn stream_name(fd: &OwnedFd) -> io::Result<String> {
    let meta = std::fs::File::from(fd.try_clone()?).metadata()?;
    Ok(format!("{}:{}", meta.dev(), meta.ino()))
}

/// The slice that a service lies in.
fn slice(service: &ServiceSection) -> &str {
    service.slice.as_ref().map_or(DEFAULT_SLICE, UnitName::as_str)
}

/// The cgroup of the unit with its limits; none where there are no cgroups.
fn cgroup(
    world: &mut World,
    definition: &Unit,
    service: &ServiceSection,
) -> Result<Option<Leaf>, SpawnFailure> {
    let unit = &definition.name;
    let limits = Bounds::of(definition).map(|bounds| bounds.limits(world)).unwrap_or_default();
    let slice = slice(service).to_owned();
    let enforceable = world.cgroups.as_ref().map(CgroupRoot::enforceable).unwrap_or_default();
    tell_missing(definition, &limits.missing(enforceable))?;
    slices::bound(world, &slice).map_err(|e| resources(chain(&e)))?;
    let Some(cgroups) = &mut world.cgroups else { return Ok(None) };
    // One that is still being removed must not be removed under the new run.
    world.watches.keep(unit);
    let leaf = cgroups.leaf(&slice, unit.as_str()).map_err(|e| resources(chain(&e)))?;
    leaf.limit(&limits, cgroups.enforceable()).map_err(|e| resources(chain(&e)))?;
    Ok(Some(leaf))
}

/// Says which controllers its limits lack. A unit that requires its limits does not start.
fn tell_missing(unit: &Unit, missing: &[Controller]) -> Result<(), SpawnFailure> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|controller| controller.name()).collect();
    reach::tell(unit, "limits", "are", &format!("no controller {}", names.join(", ")))
}

/// Gives the cgroup of a live run the limits of a newer definition, and the kernel's defaults for what that does not set.
///
/// # Errors
/// The kernel refuses a value.
pub fn limit(world: &World, run: InvocationId, unit: &Unit) -> Result<(), SpawnFailure> {
    let leaf = world.runs.get(run).and_then(|run| run.cgroup.as_ref());
    let (Some(leaf), Some(cgroups), Some(bounds)) = (leaf, &world.cgroups, Bounds::of(unit)) else {
        return Ok(());
    };
    let limits = bounds.limits(world).or_defaults();
    leaf.limit(&limits, cgroups.enforceable()).map_err(|e| resources(chain(&e)))
}
