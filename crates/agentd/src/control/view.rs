//! The engine's views as the wire has them: systemd's property names, plain words and numbers.

use std::sync::Arc;

use agentd_engine::{ActiveState, ExitStatus, JobView, UnitView};
use agentd_protocol::manager::{JobBrief, JobInfo, TimerInfo, UnitSummary};
use agentd_protocol::unit::Dependencies;
use agentd_protocol::words::{JobState, UnitFileState};
use agentd_protocol::{ActiveState as WireActive, LoadState as WireLoad, UnitProperties};
use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::sections::{AgentKind, MemoryLimit, Restart, ServiceSection, ServiceType, TasksLimit};
use agentd_unit::{Body, LoadState, Realtime, Unit, UnitName};

use super::triggers;
use crate::perform::usage::Usage;

/// `si_code` of an ordinary exit, waitid(2): what systemd shows as `ExecMainCode`.
const CLD_EXITED: i32 = 1;
/// Ended by a signal.
const CLD_KILLED: i32 = 2;
/// Ended by a signal, with a core dump.
const CLD_DUMPED: i32 = 3;

/// What the shell knows of a unit that the engine does not.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// The path of its cgroup below the cgroup root.
    pub control_group: String,
    /// What the kernel counts.
    pub usage: Usage,
    /// What its file is for the boot.
    pub file_state: UnitFileState,
    /// Its files are others than those that were loaded.
    pub need_daemon_reload: bool,
    /// A newer definition than its own is loaded.
    pub need_restart: bool,
    /// What units are to each other.
    pub edges: Arc<Edges>,
    /// The limits that this machine does not enforce.
    pub not_enforced: Vec<String>,
    /// What SIGKILL did not end in time.
    pub survivors: Vec<String>,
    /// How many descriptors it has stored.
    pub stored: usize,
    /// The verdict on its signature.
    pub trust: agentd_protocol::TrustState,
    /// The keys that signed it.
    pub key_ids: Vec<String>,
}

/// Every property of a unit.
#[must_use]
pub fn properties(view: &UnitView, job: Option<&JobView>, extras: Extras) -> UnitProperties {
    let unit = &view.unit;
    let mut p = UnitProperties {
        id: unit.name.to_string(),
        names: std::iter::once(&unit.name).chain(&unit.aliases).map(UnitName::to_string).collect(),
        description: unit.description().to_owned(),
        documentation: unit.unit.documentation.clone(),
        load_state: load(&unit.load),
        load_error: unit.load.reason().unwrap_or_default().to_owned(),
        fragment_path: unit.fragment.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        drop_in_paths: unit.drop_ins.iter().map(|path| path.display().to_string()).collect(),
        unit_file_state: extras.file_state,
        need_daemon_reload: extras.need_daemon_reload,
        need_restart: extras.need_restart,
        condition_result: view.condition_result,
        assert_result: view.assert_result,
        unmet_condition: view.unmet.clone().unwrap_or_default(),
        warnings: unit.warnings.clone(),
        trust: extras.trust,
        key_ids: extras.key_ids,
        active_state: active(view.active),
        sub_state: view.sub.to_owned(),
        freezer_state: if view.frozen { "frozen" } else { "running" }.to_owned(),
        result: view.result.as_str().to_owned(),
        failure: view.failure.clone().unwrap_or_default(),
        state_change_timestamp: micros(view.state_change),
        active_enter_timestamp: micros(view.active_enter),
        active_exit_timestamp: micros(view.active_exit),
        inactive_enter_timestamp: micros(view.inactive_enter),
        inactive_exit_timestamp: micros(view.inactive_exit),
        job: job.map(brief),
        invocation_id: view.run.map(|run| run.to_string()).unwrap_or_default(),
        n_restarts: view.n_restarts,
        main_pid: view.main.map_or(0, |(_, pid)| pid),
        control_pid: view.control.map_or(0, |(_, pid, _)| pid),
        status_text: view.status_text.clone().unwrap_or_default(),
        status_errno: view.status_errno.unwrap_or_default(),
        status_bus_error: view.status_bus_error.clone().unwrap_or_default(),
        n_file_descriptor_store: extras.stored as u64,
        slice: unit.slice().map(|slice| slice.to_string()).unwrap_or_default(),
        control_group: extras.control_group,
        memory_current: extras.usage.memory_current,
        memory_peak: extras.usage.memory_peak,
        memory_swap_current: extras.usage.swap,
        io_read_bytes: extras.usage.io_read,
        io_write_bytes: extras.usage.io_write,
        memory_pressure: extras.usage.pressure.memory,
        cpu_pressure: extras.usage.pressure.cpu,
        io_pressure: extras.usage.pressure.io,
        survivors: extras.survivors,
        cpu_usage_nsec: extras.usage.cpu_nsec,
        tasks_current: extras.usage.tasks,
        limits_not_enforced: extras.not_enforced,
        triggered_by: view.triggered_by.iter().map(UnitName::to_string).collect(),
        dependencies: dependencies(unit, &extras.edges),
        settings: agentd_unit::schema::properties(unit),
        ..UnitProperties::default()
    };
    exec_main(view, &mut p);
    if let Some(body) = unit.as_service() {
        service(&body.service, &mut p);
        p.agent_kind = body.agent.as_ref().map(|agent| kind_word(agent.kind).to_owned()).unwrap_or_default();
    }
    if let (Some(timer), Body::Timer(_)) = (&view.timer, &unit.body) {
        p.next_elapse_usec_realtime = micros(timer.next_realtime);
        p.next_elapse_usec_monotonic = timer.next_boottime.map_or(0, |at| clamp(at.0.as_micros()));
        p.last_trigger_usec = micros(timer.last_trigger);
    }
    triggers::describe(view, &mut p);
    p
}

/// One line of `list`.
#[must_use]
pub fn summary(
    view: &UnitView,
    job: Option<&JobView>,
    control_group: String,
    memory: Option<u64>,
    file_state: UnitFileState,
) -> UnitSummary {
    let (code, status) = exit_numbers(view);
    UnitSummary {
        id: view.unit.name.to_string(),
        description: view.unit.description().to_owned(),
        load_state: load(&view.unit.load),
        active_state: active(view.active),
        sub_state: view.sub.to_owned(),
        result: view.result.as_str().to_owned(),
        unit_file_state: file_state,
        main_pid: view.main.map_or(0, |(_, pid)| pid),
        n_restarts: view.n_restarts,
        invocation_id: view.run.map(|run| run.to_string()).unwrap_or_default(),
        exec_main_status: status,
        exec_main_code: code,
        control_group,
        memory_current: memory,
        status_text: view.status_text.clone().unwrap_or_default(),
        active_enter_timestamp: micros(view.active_enter),
        job: job.map(brief),
    }
}

/// One line of `list-timers`, if the unit is a timer. `boot` is the wall clock's time when the machine started.
#[must_use]
pub fn timer(view: &UnitView, boot: Realtime) -> Option<TimerInfo> {
    let timer = view.timer.as_ref()?;
    let by_span = timer.next_boottime.map(|at| boot + at.0);
    let next = match (timer.next_realtime, by_span) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Some(TimerInfo {
        id: view.unit.name.to_string(),
        unit: timer.unit.to_string(),
        active_state: active(view.active),
        next_elapse_usec: micros(next),
        last_trigger_usec: micros(timer.last_trigger),
        skipped: timer.skipped,
    })
}

/// One line of `list-jobs`.
#[must_use]
pub fn job(job: &JobView) -> JobInfo {
    JobInfo {
        id: job.id.0,
        unit: job.unit.to_string(),
        kind: job.kind.as_str().to_owned(),
        state: if job.running { JobState::Running } else { JobState::Waiting },
        waits_for: job.waits_for.iter().map(UnitName::to_string).collect(),
    }
}

fn brief(job: &JobView) -> JobBrief {
    JobBrief { id: job.id.0, kind: job.kind.as_str().to_owned() }
}

/// The wire's word for an active state.
#[must_use]
pub const fn active(state: ActiveState) -> WireActive {
    match state {
        ActiveState::Inactive => WireActive::Inactive,
        ActiveState::Activating => WireActive::Activating,
        ActiveState::Active => WireActive::Active,
        ActiveState::Reloading => WireActive::Reloading,
        ActiveState::Deactivating => WireActive::Deactivating,
        ActiveState::Failed => WireActive::Failed,
    }
}

const fn load(state: &LoadState) -> WireLoad {
    match state {
        LoadState::Loaded => WireLoad::Loaded,
        LoadState::NotFound => WireLoad::NotFound,
        LoadState::BadSetting(_) => WireLoad::BadSetting,
        LoadState::Error(_) => WireLoad::Error,
        LoadState::Masked => WireLoad::Masked,
    }
}

fn exec_main(view: &UnitView, p: &mut UnitProperties) {
    (p.exec_main_code, p.exec_main_status) = exit_numbers(view);
    if let Some(main) = view.exec_main {
        p.exec_main_pid = main.pid;
        p.exec_main_start_timestamp = micros(Some(main.start));
        p.exec_main_exit_timestamp = micros(main.exit);
    }
}

/// `ExecMainCode` and `ExecMainStatus`: waitid's `si_code` and the exit code or the signal's number.
fn exit_numbers(view: &UnitView) -> (i32, i32) {
    match view.exec_main.and_then(|main| main.status) {
        Some(ExitStatus::Exited(code)) => (CLD_EXITED, code.into()),
        Some(ExitStatus::Killed(signal)) => (CLD_KILLED, signal.number()),
        Some(ExitStatus::Dumped(signal)) => (CLD_DUMPED, signal.number()),
        Some(ExitStatus::Unknown) | None => (0, 0),
    }
}

fn service(service: &ServiceSection, p: &mut UnitProperties) {
    p.service_type = match service.service_type {
        ServiceType::Simple => "simple",
        ServiceType::Exec => "exec",
        ServiceType::Notify => "notify",
        ServiceType::NotifyReload => "notify-reload",
        ServiceType::Forking => "forking",
        ServiceType::Oneshot => "oneshot",
        ServiceType::Idle => "idle",
    }
    .to_owned();
    p.restart = match service.restart {
        Restart::No => "no",
        Restart::Always => "always",
        Restart::OnSuccess => "on-success",
        Restart::OnFailure => "on-failure",
        Restart::OnAbnormal => "on-abnormal",
        Restart::OnAbort => "on-abort",
        Restart::OnWatchdog => "on-watchdog",
    }
    .to_owned();
    p.restart_usec = Some(clamp(service.restart_sec.as_micros()));
    p.exec_start = service.exec_start.iter().map(|command| command.argv.clone()).collect();
    p.watchdog_usec = service.watchdog.map(|span| clamp(span.as_micros()));
    p.file_descriptor_store_max = service.life.descriptor_store_max.into();
    p.user = service.user.clone().unwrap_or_default();
    p.cpu_quota_per_sec_usec = service.cpu_quota.map(|quota| quota.saturating_mul(100));
    p.memory_max = match service.memory_max {
        Some(MemoryLimit::Bytes(bytes)) => Some(bytes),
        _ => p.memory_max,
    };
    p.tasks_max = match service.tasks_max {
        Some(TasksLimit::Count(count)) => Some(count),
        _ => p.tasks_max,
    };
}

const fn kind_word(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Exec => "exec",
        AgentKind::Go => "go",
        AgentKind::Python => "python",
    }
}

/// What the unit is to others and they to it, defaults and what follows among it, by the newest definitions.
fn dependencies(unit: &Unit, edges: &Edges) -> Dependencies {
    let from = |kind| edges.from(&unit.name, kind).map(UnitName::to_string).collect();
    let to = |kind| edges.to(&unit.name, kind).map(UnitName::to_string).collect();
    Dependencies {
        requires: from(EdgeKind::Requires),
        requisite: from(EdgeKind::Requisite),
        wants: from(EdgeKind::Wants),
        binds_to: from(EdgeKind::BindsTo),
        part_of: from(EdgeKind::PartOf),
        upholds: from(EdgeKind::Upholds),
        required_by: to(EdgeKind::Requires),
        requisite_of: to(EdgeKind::Requisite),
        wanted_by: to(EdgeKind::Wants),
        bound_by: to(EdgeKind::BindsTo),
        upheld_by: to(EdgeKind::Upholds),
        consists_of: to(EdgeKind::PartOf),
        conflicts: from(EdgeKind::Conflicts),
        conflicted_by: to(EdgeKind::Conflicts),
        before: to(EdgeKind::After),
        after: from(EdgeKind::After),
        on_failure: from(EdgeKind::OnFailure),
        on_success: from(EdgeKind::OnSuccess),
        propagates_reload_to: from(EdgeKind::PropagatesReloadTo),
        reload_propagated_from: to(EdgeKind::PropagatesReloadTo),
        propagates_stop_to: from(EdgeKind::PropagatesStopTo),
        stop_propagated_from: to(EdgeKind::PropagatesStopTo),
    }
}

/// Microseconds since the epoch; 0 for never.
fn micros(at: Option<Realtime>) -> u64 {
    at.map_or(0, |at| u64::try_from(at.as_micros()).unwrap_or(0))
}

fn clamp(micros: u128) -> u64 {
    u64::try_from(micros).unwrap_or(u64::MAX)
}
