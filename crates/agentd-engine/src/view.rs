//! What readers see: plain copies of the engine's state, made on demand.

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::{ExecKind, Realtime, Unit, UnitName};

use crate::clock::{Boottime, Monotonic};
use crate::event::{ExitStatus, JobKind};
use crate::ids::{EffectId, InvocationId, JobId};
use crate::state::{ActiveState, ServiceResult};

/// One unit as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitView {
    /// The definition that it lives by now: the running one, or the newest.
    pub unit: Arc<Unit>,
    /// A newer definition is loaded and applies at the next start.
    pub changed_on_disk: bool,
    /// What it is for others.
    pub active: ActiveState,
    /// systemd's `SubState`: `running`, `auto-restart`, `stop-sigterm` …
    pub sub: &'static str,
    /// Whether its processes were frozen.
    pub frozen: bool,
    /// Why it last ended.
    pub result: ServiceResult,
    /// Why its last life failed, if that was forgotten since: `CollectMode=inactive-or-failed`.
    pub forgotten: Option<ServiceResult>,
    /// The present or last run.
    pub run: Option<InvocationId>,
    /// The main process: its effect and its pid.
    pub main: Option<(EffectId, u32)>,
    /// The control process: its effect, its pid and what it is for.
    pub control: Option<(EffectId, u32, ExecKind)>,
    /// The main process, now or last.
    pub exec_main: Option<ExecStatusView>,
    /// How often it was restarted automatically since it was last started by hand.
    pub n_restarts: u32,
    /// `STATUS=` of the service.
    pub status_text: Option<String>,
    /// `ERRNO=` of the service.
    pub status_errno: Option<i32>,
    /// `BUSERROR=` of the service.
    pub status_bus_error: Option<String>,
    /// The job that is queued or running for it.
    pub job: Option<JobId>,
    /// When it last became active.
    pub active_enter: Option<Realtime>,
    /// When it last left active.
    pub active_exit: Option<Realtime>,
    /// When it last left inactive or failed.
    pub inactive_exit: Option<Realtime>,
    /// When it last became inactive or failed.
    pub inactive_enter: Option<Realtime>,
    /// When the present state began.
    pub state_change: Option<Realtime>,
    /// When the manager acts on it of itself if nothing happens until then: a timeout, a delay, a time to uphold it.
    pub deadline: Option<Monotonic>,
    /// When the next automatic restart is due.
    pub restart_at: Option<Monotonic>,
    /// The delay before that restart.
    pub restart_delay: Option<Duration>,
    /// What only a timer has.
    pub timer: Option<TimerView>,
    /// What only a socket has.
    pub socket: Option<SocketView>,
    /// What a timer, socket or path unit starts; a socket with `Accept` has none.
    pub triggers: Option<UnitName>,
    /// The timers, sockets and path units that start it.
    pub triggered_by: Vec<UnitName>,
    /// Its conditions held when it was last to be started.
    pub condition_result: bool,
    /// Its asserts held when it was last to be started.
    pub assert_result: bool,
    /// The condition or assert that did not hold then, as it stands in the file.
    pub unmet: Option<String>,
    /// Why the last start was not possible (requirement missing, trust, load), for people.
    pub failure: Option<String>,
}

/// One run of a main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecStatusView {
    /// Its pid.
    pub pid: u32,
    /// When it was started.
    pub start: Realtime,
    /// When it ended.
    pub exit: Option<Realtime>,
    /// How it ended.
    pub status: Option<ExitStatus>,
}

/// A timer as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerView {
    /// What it starts.
    pub unit: UnitName,
    /// When it fires next by the calendar.
    pub next_realtime: Option<Realtime>,
    /// When it fires next by a span.
    pub next_boottime: Option<Boottime>,
    /// When it last fired.
    pub last_trigger: Option<Realtime>,
    /// How often it was due while its unit was still running.
    pub skipped: u64,
}

/// A socket as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketView {
    /// How many connections it took, with `Accept`.
    pub accepted: u64,
    /// How many of them are there now.
    pub connections: u64,
    /// How many it refused.
    pub refused: u64,
}

/// One job as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// Its unit.
    pub unit: UnitName,
    /// What it does.
    pub kind: JobKind,
    /// Whether it has begun; else it waits for what stands before it.
    pub running: bool,
    /// The units it waits for.
    pub waits_for: Vec<UnitName>,
    /// Whether the conditions of its unit are being looked at.
    pub checking: bool,
    /// Whether it waits for no other job.
    pub ignores_order: bool,
    /// Whether what its unit requires makes no difference to it.
    pub ignores_requirements: bool,
    /// Whether no other transaction takes its place.
    pub irreversible: bool,
}
