//! What goes into the methods of `io.agentd.Manager`, and what comes back.
//!
//! Times are microseconds since 1970-01-01T00:00:00Z; 0 means never. Numbers that are not known are `null`.

use serde::{Deserialize, Serialize};

use crate::words::{
    ActiveState, JobMode, JobResult, JobState, KillWhom, LoadState, PlannedAction, ShutdownKind, SystemState,
    UnitFileState,
};

/// No parameters, or no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// `StartUnit`, `StopUnit`, `RestartUnit`, `TryRestartUnit`, `ReloadUnit`, `ReloadOrRestartUnit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The unit's full name.
    pub unit: String,
    /// What happens to jobs that are in the way.
    #[serde(default, deserialize_with = "or_default")]
    pub mode: JobMode,
    /// Answer when the job has ended; else as soon as it is accepted.
    #[serde(default = "yes", deserialize_with = "or_yes")]
    pub wait: bool,
}

const fn yes() -> bool {
    true
}

fn or_yes<'de, D: serde::Deserializer<'de>>(source: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or(true))
}

/// In varlink an optional parameter may be left out or be `null`; both mean its default.
pub(crate) fn or_default<'de, T, D>(source: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

/// The answer to a [`JobRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobReply {
    /// The job's number, if the request became one.
    #[serde(default)]
    pub job: Option<u32>,
    /// What came of it, if the call waited.
    #[serde(default)]
    pub result: Option<JobResult>,
}

/// `AwaitEnds`: waits until each of the units has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwaitEndsRequest {
    /// The units' full names, at most [`AwaitEndsRequest::MOST`].
    pub units: Vec<String>,
}

impl AwaitEndsRequest {
    /// How many units one call may wait for: the manager looks at each of them in each of its turns.
    pub const MOST: usize = 256;
}

/// The answer to an [`AwaitEndsRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AwaitEndsReply {
    /// How each has ended, in the order they were asked for.
    pub ends: Vec<UnitEnd>,
}

/// How a unit has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct UnitEnd {
    /// The name that was asked for.
    pub id: String,
    /// Inactive or failed.
    pub active_state: ActiveState,
    /// systemd's `Result`: `success`, `exit-code` …
    pub result: String,
}

/// `KillUnit`: sends a signal to processes of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillRequest {
    /// The unit's full name.
    pub unit: String,
    /// Which of its processes.
    #[serde(default, deserialize_with = "or_default")]
    pub whom: KillWhom,
    /// The signal's number, 1 to 64.
    pub signal: i32,
}

/// `FreezeUnit` and `ThawUnit`: what the processes of a unit do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeRequest {
    /// The unit's full name.
    pub unit: String,
}

/// `ResetFailed`: forgets failures, start limits and restart counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetFailedRequest {
    /// Of this unit; of all where none is named.
    #[serde(default)]
    pub unit: Option<String>,
}

/// `ListUnits`. Every filter that is not empty must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListUnitsRequest {
    /// Unit types: `service`, `timer` …
    #[serde(default, deserialize_with = "or_default")]
    pub types: Vec<String>,
    /// Load states, active states or sub states, as `--state` of systemctl(1).
    #[serde(default, deserialize_with = "or_default")]
    pub states: Vec<String>,
    /// Names with the wildcards `*`, `?` and `[…]`, glob(7).
    #[serde(default, deserialize_with = "or_default")]
    pub patterns: Vec<String>,
    /// Also units that are inactive and have no job; a filter by state implies it.
    #[serde(default, deserialize_with = "or_default")]
    pub all: bool,
    /// The properties that the caller wants, of [`UnitSummary::PROPERTIES`]; none named: all. What the kernel has to be
    /// asked for is empty if it is not among them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
}

impl ListUnitsRequest {
    /// Whether a property is wanted.
    #[must_use]
    pub fn wants(&self, property: &str) -> bool {
        self.properties.is_empty() || self.properties.iter().any(|wanted| wanted == property)
    }
}

/// One page of the answer to `ListUnits`; further pages follow while the reply `continues`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ListUnitsReply {
    /// In the order of their names.
    pub units: Vec<UnitSummary>,
}

/// One line of a list of units, by systemd's property names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct UnitSummary {
    /// The unit's name.
    pub id: String,
    /// For people; cut to [`TEXT_MAX`](crate::text::TEXT_MAX) bytes.
    pub description: String,
    /// What came of loading it.
    pub load_state: LoadState,
    /// What it is for others.
    pub active_state: ActiveState,
    /// What it is for itself: `running`, `auto-restart` …
    pub sub_state: String,
    /// Why it last ended: `success`, `exit-code`, `oom-kill` …
    pub result: String,
    /// Whether it is part of what boots.
    pub unit_file_state: UnitFileState,
    /// The main process; 0: none.
    #[serde(rename = "MainPID")]
    pub main_pid: u32,
    /// Automatic restarts since the last start by a person.
    #[serde(rename = "NRestarts")]
    pub n_restarts: u32,
    /// 32 hex digits; empty: it never ran.
    #[serde(rename = "InvocationID")]
    pub invocation_id: String,
    /// Exit code or signal of the main process that ended last; see `ExecMainCode`.
    pub exec_main_status: i32,
    /// 1 exited, 2 killed, 3 dumped (`si_code` of waitid(2)), 0 none.
    pub exec_main_code: i32,
    /// Below the cgroup root; empty: none.
    pub control_group: String,
    /// Bytes, where the manager has them at hand.
    pub memory_current: Option<u64>,
    /// `STATUS=` of the service; cut to [`TEXT_MAX`](crate::text::TEXT_MAX) bytes.
    pub status_text: String,
    /// When it last became active.
    pub active_enter_timestamp: u64,
    /// Its job.
    pub job: Option<JobBrief>,
}

impl UnitSummary {
    /// The names of its properties, in their order.
    pub const PROPERTIES: [&str; 17] = [
        "Id",
        "Description",
        "LoadState",
        "ActiveState",
        "SubState",
        "Result",
        "UnitFileState",
        "MainPID",
        "NRestarts",
        "InvocationID",
        "ExecMainStatus",
        "ExecMainCode",
        "ControlGroup",
        "MemoryCurrent",
        "StatusText",
        "ActiveEnterTimestamp",
        "Job",
    ];
}

/// The job of a unit, in a word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct JobBrief {
    /// Its number.
    pub id: u32,
    /// `start`, `stop`, `restart`, `try-restart`, `reload`, `reload-or-restart`, `verify-active`.
    #[serde(rename = "Type")]
    pub kind: String,
}

/// The answer to `ListTimers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListTimersReply {
    /// The one that fires next comes first; those that never will come last.
    pub timers: Vec<TimerInfo>,
}

/// One timer as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TimerInfo {
    /// The timer's name.
    pub id: String,
    /// What it starts.
    pub unit: String,
    /// What it is for others.
    pub active_state: ActiveState,
    /// When it fires next on the wall clock, as things stand now; 0: never.
    #[serde(rename = "NextElapseUSec")]
    pub next_elapse_usec: u64,
    /// When it last fired.
    #[serde(rename = "LastTriggerUSec")]
    pub last_trigger_usec: u64,
    /// How often it was due while its unit was still running.
    pub skipped: u64,
}

/// The answer to `ListSockets`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListSocketsReply {
    /// By address.
    pub sockets: Vec<SocketInfo>,
}

/// One address of a socket unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SocketInfo {
    /// The socket's name.
    pub id: String,
    /// The address, as it stands in the file.
    pub listen: String,
    /// `Stream`, `Datagram`, `SequentialPacket`, `FIFO`, `Special`, `Netlink`.
    #[serde(rename = "Type")]
    pub kind: String,
    /// What it starts; of a socket with `Accept` the template.
    pub unit: String,
    /// What the socket is for others.
    pub active_state: ActiveState,
    /// What it is for itself: `listening`, `running` …
    pub sub_state: String,
}

/// The answer to `ListPaths`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListPathsReply {
    /// By path.
    pub paths: Vec<PathInfo>,
}

/// One path of a path unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct PathInfo {
    /// The path unit's name.
    pub id: String,
    /// The path.
    pub path: String,
    /// `PathExists` and the like.
    pub condition: String,
    /// What it starts.
    pub unit: String,
    /// What the path unit is for others.
    pub active_state: ActiveState,
    /// What it is for itself: `waiting`, `running` …
    pub sub_state: String,
}

/// The answer to `ListJobs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListJobsReply {
    /// In the order of their numbers.
    pub jobs: Vec<JobInfo>,
}

/// One job as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct JobInfo {
    /// Its number.
    pub id: u32,
    /// Its unit.
    pub unit: String,
    /// What it does, as in [`JobBrief`].
    #[serde(rename = "Type")]
    pub kind: String,
    /// Whether it has begun.
    pub state: JobState,
    /// The units it waits for.
    pub waits_for: Vec<String>,
}

/// `CancelJob`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelJobRequest {
    /// Its number.
    pub job: u32,
}

/// The answer to `Reload`: what could not be loaded. The rest is in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReloadReply {
    /// Each thing that is wrong; at most [`PROBLEMS_MAX`](crate::text::PROBLEMS_MAX).
    pub problems: Vec<Problem>,
}

/// The answer to `PlanReload`: what a reload, and then the jobs of `apply`, would change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanReply {
    /// In the order in which it is to be done.
    pub changes: Vec<PlannedChange>,
    /// What is wrong with the files; at most [`PROBLEMS_MAX`](crate::text::PROBLEMS_MAX).
    pub problems: Vec<Problem>,
}

/// What is to be done with one unit whose definition changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct PlannedChange {
    /// Which unit.
    pub unit: String,
    /// What.
    pub action: PlannedAction,
    /// Why, for people.
    pub reason: String,
}

/// Something that is wrong with what was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Problem {
    /// The unit, if it is about one.
    pub unit: Option<String>,
    /// The file or folder, if it is about one.
    pub path: Option<String>,
    /// What, for people.
    pub message: String,
}

/// `Shutdown`: stops everything in reverse order, then ends the machine or the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownRequest {
    /// How it ends.
    pub kind: ShutdownKind,
    /// The exit code of the manager's process for `exit`, 0 to 255.
    #[serde(default)]
    pub exit_code: Option<u8>,
}

/// The answer to `GetStatus`: the manager as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ManagerStatus {
    /// agentd's version.
    pub version: String,
    /// The manager's process.
    #[serde(rename = "PID")]
    pub pid: u32,
    /// `system`, `user` or `container`: what it is the manager of.
    pub scope: String,
    /// How the whole stands.
    pub system_state: SystemState,
    /// The name of the machine.
    pub hostname: String,
    /// When the manager started.
    pub startup_timestamp: u64,
    /// Units that are loaded.
    #[serde(rename = "NUnits")]
    pub n_units: u32,
    /// Units that have failed.
    #[serde(rename = "NFailedUnits")]
    pub n_failed_units: u32,
    /// Jobs that have not ended.
    #[serde(rename = "NJobs")]
    pub n_jobs: u32,
    /// Orphans that were adopted and reaped.
    #[serde(rename = "NReapedOrphans")]
    pub n_reaped_orphans: u64,
    /// `enforce`, `warn` or `off`.
    pub trust_policy: String,
    /// The ids of the keys in force.
    pub key_ids: Vec<String>,
    /// The cgroup that the manager's units live below; empty: there are none.
    pub control_group: String,
    /// The limits that the kernel enforces here: `MemoryMax`, `CPUQuota`, `TasksMax`.
    pub enforced_limits: Vec<String>,
    /// What is not there, with the reason: one sentence each.
    pub missing: Vec<String>,
    /// Where units are looked for, highest first.
    pub unit_path: Vec<String>,
    /// What was wrong when units were last loaded.
    pub problems: Vec<Problem>,
}
