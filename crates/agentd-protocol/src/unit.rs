//! What goes into the methods of `io.agentd.Unit`, and what comes back.
//!
//! Times are microseconds since 1970-01-01T00:00:00Z; 0 means never. Numbers that are not known are `null`.

use serde::{Deserialize, Serialize};

use crate::manager::{JobBrief, or_default};
use crate::words::{ActiveState, LoadState, LogSource, LogStream, TrustState, UnitFileState};

/// `Get`, `GetProcesses`, `GetUnitFileState`: about one unit, by its id or one of its other names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRequest {
    /// The unit's full name.
    pub unit: String,
}

/// The answer to `Get`. A unit that is not there has `LoadState` `not-found`; that is no error.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GetReply {
    /// All that is known of it.
    pub properties: Box<UnitProperties>,
}

/// All properties of a unit by systemd's names, org.freedesktop.systemd1(5).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct UnitProperties {
    /// The unit's name.
    pub id: String,
    /// All its names, the id first.
    pub names: Vec<String>,
    /// For people; the id where the unit has none.
    pub description: String,
    /// Where to read more.
    pub documentation: Vec<String>,

    /// What came of loading it.
    pub load_state: LoadState,
    /// Why it did not load, with file, line and column; empty: it did.
    pub load_error: String,
    /// The main file; empty: none.
    pub fragment_path: String,
    /// Drop-in files in the order they were applied.
    pub drop_in_paths: Vec<String>,
    /// Whether it is part of what boots.
    pub unit_file_state: UnitFileState,
    /// Its files are others than those that were loaded.
    pub need_daemon_reload: bool,
    /// A newer definition is loaded and applies at the next start.
    pub need_restart: bool,
    /// Whether its conditions held when it was last to be started.
    pub condition_result: bool,
    /// Whether its asserts held when it was last to be started.
    pub assert_result: bool,
    /// The condition or assert that did not hold then, as it stands in the file.
    pub unmet_condition: String,
    /// Warnings of loading.
    pub warnings: Vec<String>,
    /// What is known of its signature.
    pub trust: TrustState,
    /// The ids of the known keys that signed it.
    pub key_ids: Vec<String>,

    /// What it is for others.
    pub active_state: ActiveState,
    /// What it is for itself: `running`, `auto-restart`, `stop-sigterm` …
    pub sub_state: String,
    /// `running`, or `frozen` while its processes stand still.
    pub freezer_state: String,
    /// Why it last ended: `success`, `exit-code`, `signal`, `oom-kill`, `watchdog` …
    pub result: String,
    /// Why the last start was not possible; empty: it was.
    pub failure: String,
    /// When the present `SubState` began.
    pub state_change_timestamp: u64,
    /// When it last became active.
    pub active_enter_timestamp: u64,
    /// When it last left active.
    pub active_exit_timestamp: u64,
    /// When it last became inactive or failed.
    pub inactive_enter_timestamp: u64,
    /// When it last left inactive or failed.
    pub inactive_exit_timestamp: u64,
    /// Its job.
    pub job: Option<JobBrief>,
    /// Its run, 32 hex digits; empty: it never ran.
    #[serde(rename = "InvocationID")]
    pub invocation_id: String,

    /// `[Service] Type`; empty for other units.
    #[serde(rename = "Type")]
    pub service_type: String,
    /// `[Service] Restart`; empty for other units.
    pub restart: String,
    /// `[Service] RestartSec` in microseconds.
    #[serde(rename = "RestartUSec")]
    pub restart_usec: Option<u64>,
    /// Automatic restarts since the last start by a person.
    #[serde(rename = "NRestarts")]
    pub n_restarts: u32,
    /// When the next automatic restart is due.
    #[serde(rename = "NextRestartTimestamp")]
    pub next_restart_timestamp: u64,
    /// The main process; 0: none.
    #[serde(rename = "MainPID")]
    pub main_pid: u32,
    /// The control process; 0: none.
    #[serde(rename = "ControlPID")]
    pub control_pid: u32,
    /// The main process, now or last; 0: none.
    #[serde(rename = "ExecMainPID")]
    pub exec_main_pid: u32,
    /// When it was started.
    pub exec_main_start_timestamp: u64,
    /// When it ended.
    pub exec_main_exit_timestamp: u64,
    /// How it ended: 1 exited, 2 killed, 3 dumped (`si_code` of waitid(2)); 0: it did not, or there was none.
    pub exec_main_code: i32,
    /// The exit code for 1, the signal's number for 2 and 3.
    pub exec_main_status: i32,
    /// The command line of the main process.
    pub exec_start: Vec<Vec<String>>,
    /// `STATUS=` of the service.
    pub status_text: String,
    /// `ERRNO=` of the service.
    pub status_errno: i32,
    /// `BUSERROR=` of the service.
    pub status_bus_error: String,
    /// `[Service] FileDescriptorStoreMax`.
    pub file_descriptor_store_max: u64,
    /// How many descriptors it has left with the manager.
    #[serde(rename = "NFileDescriptorStore")]
    pub n_file_descriptor_store: u64,
    /// `[Service] WatchdogSec` in microseconds; null: no watchdog.
    #[serde(rename = "WatchdogUSec")]
    pub watchdog_usec: Option<u64>,
    /// `[Service] User`; empty: root or the manager's own.
    pub user: String,
    /// Every key of the unit's sections by the name of its property, with the value that counts: what `[Agent] Sandbox`
    /// sets among them. Those that have a field of their own here stand in both.
    pub settings: std::collections::BTreeMap<String, String>,
    /// `[Agent] Kind`: `exec`, `go` or `python`; empty: no agent.
    pub agent_kind: String,

    /// Below the cgroup root; empty: none.
    pub control_group: String,
    /// The slice that it lives in.
    pub slice: String,
    /// Bytes in use.
    pub memory_current: Option<u64>,
    /// The most bytes that were in use.
    pub memory_peak: Option<u64>,
    /// The bound in bytes; null: none.
    pub memory_max: Option<u64>,
    /// Bytes in swap.
    pub memory_swap_current: Option<u64>,
    /// Bytes read from block devices.
    #[serde(rename = "IOReadBytes")]
    pub io_read_bytes: Option<u64>,
    /// Bytes written to block devices.
    #[serde(rename = "IOWriteBytes")]
    pub io_write_bytes: Option<u64>,
    /// For what share of the last ten seconds one of its tasks waited for memory, in hundredths of a percent
    /// (`memory.pressure`, the kernel's PSI); null: the kernel does not say.
    pub memory_pressure: Option<u64>,
    /// The same for the processors (`cpu.pressure`).
    #[serde(rename = "CPUPressure")]
    pub cpu_pressure: Option<u64>,
    /// The same for disks (`io.pressure`).
    #[serde(rename = "IOPressure")]
    pub io_pressure: Option<u64>,
    /// Processes that SIGKILL did not end in time, each with its pid, name and state; empty while there are none.
    pub survivors: Vec<String>,
    /// CPU time used.
    #[serde(rename = "CPUUsageNSec")]
    pub cpu_usage_nsec: Option<u64>,
    /// CPU time allowed in each second; null: no bound.
    #[serde(rename = "CPUQuotaPerSecUSec")]
    pub cpu_quota_per_sec_usec: Option<u64>,
    /// Tasks that are there.
    pub tasks_current: Option<u64>,
    /// The bound on tasks; null: none.
    pub tasks_max: Option<u64>,
    /// Limits of the unit that the kernel does not enforce here, with the reason: one sentence each.
    pub limits_not_enforced: Vec<String>,

    /// When a timer fires next by the calendar.
    #[serde(rename = "NextElapseUSecRealtime")]
    pub next_elapse_usec_realtime: u64,
    /// When a timer fires next by a span, in microseconds since boot (CLOCK_BOOTTIME); 0: never.
    #[serde(rename = "NextElapseUSecMonotonic")]
    pub next_elapse_usec_monotonic: u64,
    /// When a timer last fired.
    #[serde(rename = "LastTriggerUSec")]
    pub last_trigger_usec: u64,
    /// What a socket listens on and how, in order: `/run/a.sock (Stream)`.
    pub listen: Vec<String>,
    /// What a path unit waits for: `/run/a (PathExists)`.
    pub paths: Vec<String>,
    /// How many connections a socket with `Accept` took.
    #[serde(rename = "NAccepted")]
    pub n_accepted: u64,
    /// How many of them are there now.
    #[serde(rename = "NConnections")]
    pub n_connections: u64,
    /// How many it refused.
    #[serde(rename = "NRefused")]
    pub n_refused: u64,
    /// What a timer, socket or path unit starts.
    pub triggers: Vec<String>,
    /// The timers, sockets and path units that start it.
    pub triggered_by: Vec<String>,

    /// Every edge to other units.
    #[serde(flatten)]
    pub dependencies: Dependencies,
}

/// The edges of a unit by systemd's names, systemd.unit(5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[expect(missing_docs, reason = "each is the key of the same name in [Unit] or its reverse")]
pub struct Dependencies {
    pub requires: Vec<String>,
    pub requisite: Vec<String>,
    pub wants: Vec<String>,
    pub binds_to: Vec<String>,
    pub part_of: Vec<String>,
    pub upholds: Vec<String>,
    pub required_by: Vec<String>,
    pub requisite_of: Vec<String>,
    pub wanted_by: Vec<String>,
    pub bound_by: Vec<String>,
    pub upheld_by: Vec<String>,
    pub consists_of: Vec<String>,
    pub conflicts: Vec<String>,
    pub conflicted_by: Vec<String>,
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub on_failure: Vec<String>,
    pub on_success: Vec<String>,
    pub propagates_reload_to: Vec<String>,
    pub reload_propagated_from: Vec<String>,
    pub propagates_stop_to: Vec<String>,
    pub stop_propagated_from: Vec<String>,
}

/// The answer to `GetProcesses`: what lives in the unit's cgroup and below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GetProcessesReply {
    /// The unit's own cgroup first, then those below it in the order of their paths.
    pub groups: Vec<ProcessGroup>,
    /// Processes that did not fit; 0 in all but monstrous units.
    #[serde(default)]
    pub omitted: u64,
    /// Processes that have ended and whose parent, a process of the unit, has not fetched their status. They are in no
    /// cgroup any more, and not among the groups.
    #[serde(default)]
    pub zombies: u64,
}

/// The processes of one cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ProcessGroup {
    /// Below the cgroup root.
    pub path: String,
    /// In the order of their pids.
    pub processes: Vec<ProcessInfo>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ProcessInfo {
    /// Its pid.
    #[serde(rename = "PID")]
    pub pid: u32,
    /// Its name, `/proc/PID/comm`.
    pub comm: String,
    /// Its arguments joined by spaces, or its name in brackets where it has none; cut to
    /// [`COMMAND_MAX`](crate::text::COMMAND_MAX) bytes.
    pub command: String,
    /// It has ended, and its parent has not fetched its status.
    pub zombie: bool,
}

/// `GetFiles`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetFilesRequest {
    /// The unit's full name.
    pub unit: String,
    /// As they were when the definition that the unit lives by was loaded; else as they are now.
    #[serde(default, deserialize_with = "or_default")]
    pub running: bool,
}

/// One page of the answer to `GetFiles`; further pages follow while the reply `continues`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GetFilesReply {
    /// The main file, then the drop-ins in the order they were applied. A file longer than a page goes on in the next
    /// one under the same path.
    pub files: Vec<FileContent>,
}

/// A piece of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileContent {
    /// Where it lies.
    pub path: String,
    /// What it says.
    pub content: String,
}

/// `GetLogs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetLogsRequest {
    /// The unit's full name.
    pub unit: String,
    /// The last so many entries; null: all that are kept.
    #[serde(default)]
    pub lines: Option<u32>,
    /// Go on with what comes; the call must say `more`.
    #[serde(default, deserialize_with = "or_default")]
    pub follow: bool,
}

/// One page of the answer to `GetLogs`; further pages follow while the reply `continues`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GetLogsReply {
    /// Where the lines are; with `journal` the entries are empty.
    pub source: LogSource,
    /// The oldest first.
    pub entries: Vec<LogEntry>,
}

/// One line of a unit's log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LogEntry {
    /// When it was written.
    pub timestamp: u64,
    /// 0 (emergency) to 7 (debug), syslog(3).
    pub priority: u8,
    /// The run, 32 hex digits; empty: none.
    #[serde(rename = "InvocationID")]
    pub invocation_id: String,
    /// Who says it: the program's name, or `agentd`.
    pub identifier: String,
    /// The process, where it is known.
    #[serde(rename = "PID")]
    pub pid: Option<u32>,
    /// From the unit, or about it.
    pub stream: LogStream,
    /// The line without its end; bytes that are no UTF-8 are replaced.
    pub message: String,
}
