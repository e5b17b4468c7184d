//! The typed sections of unit files. One struct a section; each field is one key, named as systemd names it.
//!
//! Spans of time are `Option<Duration>`, where `None` is `infinity` (no bound), unless a field says otherwise.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::calendar::CalendarSpec;
use crate::cron::CronSpec;
use crate::exec::{ExecCommand, ExecKind};
use crate::name::UnitName;
use crate::names::UnitNames;
use crate::rare::{Rare, unset};
use crate::signal::Signal;

mod actions;
mod agents;
mod conditions;
mod credential;
mod execution;
mod filters;
mod life;
mod resources;
mod sandbox;
mod slice;
mod socket;

pub use actions::{Action, CollectMode, SystemWide};
pub(crate) use agents::RESTART_RESET;
pub use agents::{AgentLife, ReplaceOrder, RolloutSection, SnapshotSection};
pub use conditions::{Condition, HookMode, Test};
pub use credential::{Credential, CredentialSource, Secret};
pub use execution::{
    CpuPolicy, EnvironmentFile, Execution, FOLDER_MODE, Folders, Input, IoClass, KeyringMode,
    LimitedResource, NumaPolicy, Output, Personality, Preserve, ResourceLimit, Seize,
};
pub use filters::{AddressRange, DevicePolicy, DeviceRule, DeviceWall, Filters};
pub use life::{ExitStatusSet, ExitType, FileAccess, Life, OpenFile, RestartMode, TimeoutMode};
pub use resources::{IoBound, IoDevice, OomPolicy, Resources};
pub use sandbox::{
    AddressFamilies, Bind, PrivateUsers, Propagation, ProtectHome, ProtectProc, ProtectSystem, Sandbox,
    SandboxPath, SystemCalls, TemporaryFileSystem,
};
pub use slice::SliceSection;
pub use socket::{
    BindIpv6Only, Listen, ListenAddress, ListenKind, PathSection, PathWatch, SocketOptions, SocketSection,
};

unset!(Execution, Life, Filters, Sandbox, Resources, SystemWide);

/// `[Unit]`, systemd.unit(5).
#[derive(Debug, Clone, PartialEq)]
pub struct UnitSection {
    /// `Description`: a name for people.
    pub description: Option<String>,
    /// `Documentation`: URIs.
    pub documentation: Vec<String>,
    /// `Requires`: started too; if one fails to start, so does this; stopped with them.
    pub requires: UnitNames,
    /// `Requisite`: must be active already.
    pub requisite: UnitNames,
    /// `Wants`: started too, whatever comes of it.
    pub wants: UnitNames,
    /// `BindsTo`: as `Requires`, and stops when they leave active for any reason.
    pub binds_to: UnitNames,
    /// `PartOf`: stopped and restarted with them.
    pub part_of: UnitNames,
    /// `Upholds`: kept running while this one is active.
    pub upholds: UnitNames,
    /// `Conflicts`: never at the same time.
    pub conflicts: UnitNames,
    /// `Before`: order only.
    pub before: UnitNames,
    /// `After`: order only.
    pub after: UnitNames,
    /// `OnFailure`: started once when this one fails for good.
    pub on_failure: UnitNames,
    /// `OnSuccess`: started when this one becomes inactive after success.
    pub on_success: UnitNames,
    /// `PropagatesReloadTo`: reloaded with this one.
    pub propagates_reload_to: UnitNames,
    /// `ReloadPropagatedFrom`: the same edge from the other end.
    pub reload_propagated_from: UnitNames,
    /// `PropagatesStopTo`: stopped when this one is.
    pub propagates_stop_to: UnitNames,
    /// `StopPropagatedFrom`: the same edge from the other end.
    pub stop_propagated_from: UnitNames,
    /// `DefaultDependencies`: order after `basic.target`, stop at `shutdown.target`; default yes.
    pub default_dependencies: bool,
    /// `StopWhenUnneeded`: stop when no active unit needs it; default no.
    pub stop_when_unneeded: bool,
    /// `RefuseManualStart`: only as a dependency; default no.
    pub refuse_manual_start: bool,
    /// `RefuseManualStop`: only as a dependency; default no.
    pub refuse_manual_stop: bool,
    /// `StartLimitIntervalSec`: default 10 s; zero switches the limit off.
    pub start_limit_interval: Duration,
    /// `StartLimitBurst`: default 5; zero switches the limit off.
    pub start_limit_burst: u32,
    /// `OnFailureJobMode`.
    pub on_failure_job_mode: HookMode,
    /// `OnSuccessJobMode`.
    pub on_success_job_mode: HookMode,
    /// `JobTimeoutSec`: how long a job of this unit may wait and run; `None`: without end.
    pub job_timeout: Option<Duration>,
    /// `Condition…` and `Assert…`, in the order of the files.
    pub conditions: Vec<Condition>,
    /// What concerns more than the unit itself.
    pub system: Rare<SystemWide>,
}

impl Default for UnitSection {
    fn default() -> Self {
        let none = UnitNames::new;
        Self {
            description: None,
            documentation: Vec::new(),
            requires: none(),
            requisite: none(),
            wants: none(),
            binds_to: none(),
            part_of: none(),
            upholds: none(),
            conflicts: none(),
            before: none(),
            after: none(),
            on_failure: none(),
            on_success: none(),
            propagates_reload_to: none(),
            reload_propagated_from: none(),
            propagates_stop_to: none(),
            stop_propagated_from: none(),
            default_dependencies: true,
            stop_when_unneeded: false,
            refuse_manual_start: false,
            refuse_manual_stop: false,
            start_limit_interval: Duration::from_secs(10),
            start_limit_burst: 5,
            on_failure_job_mode: HookMode::default(),
            on_success_job_mode: HookMode::default(),
            job_timeout: None,
            conditions: Vec::new(),
            system: Rare::default(),
        }
    }
}

/// `[Install]`, systemd.unit(5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstallSection {
    /// Whether the file has the section at all: then the unit counts as enabled unless told otherwise.
    pub present: bool,
    /// `WantedBy`: these want this unit.
    pub wanted_by: UnitNames,
    /// `RequiredBy`: these require this unit.
    pub required_by: UnitNames,
    /// `UpheldBy`: these uphold this unit.
    pub upheld_by: UnitNames,
    /// `Alias`: other names.
    pub alias: UnitNames,
    /// `Also`: enabled and disabled with it.
    pub also: UnitNames,
    /// `DefaultInstance`: of a template, what `enable` makes when it names none.
    pub default_instance: Option<String>,
    /// `Enabled`: `false` says no to what `[Install]` means.
    pub enabled: Option<bool>,
}

/// `Type`, systemd.service(5): when the service counts as started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceType {
    /// As soon as the process is there.
    #[default]
    Simple,
    /// Once the program is executed.
    Exec,
    /// When it says `READY=1`.
    Notify,
    /// When it says `READY=1`; it reloads at a signal and says when that is done.
    NotifyReload,
    /// When it has ended, and has left a daemon in the background.
    Forking,
    /// When it has ended.
    Oneshot,
    /// As simple, once no job of another unit runs.
    Idle,
}

/// `Restart`, systemd.service(5): which ends are followed by a new start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// Every end that was not asked for.
    Always,
    /// A clean end.
    OnSuccess,
    /// Unclean exit code, unclean signal, timeout, watchdog.
    OnFailure,
    /// Unclean signal, timeout, watchdog.
    OnAbnormal,
    /// An unclean signal.
    OnAbort,
    /// A missed watchdog.
    OnWatchdog,
}

/// `KillMode`, systemd.kill(5): who gets the signals of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KillMode {
    /// Every process of the unit.
    #[default]
    ControlGroup,
    /// SIGTERM to the main process, SIGKILL to all that is left.
    Mixed,
    /// Only the main process.
    Process,
    /// Nobody.
    None,
}

/// `NotifyAccess`, systemd.service(5): whose notifications count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotifyAccess {
    /// Nobody's.
    #[default]
    None,
    /// The main process's.
    Main,
    /// The main and the control process's.
    Exec,
    /// Every process of the unit's.
    All,
}

/// A user or group as written: a name, or a number.
pub type Principal = String;

/// The capability numbers (capabilities(7)), bit n for number n.
pub type CapabilityMask = u64;

/// `[Service]`, systemd.service(5), systemd.exec(5), systemd.kill(5), systemd.resource-control(5).
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceSection {
    /// `Type`; default simple (notify for a Python agent).
    pub service_type: ServiceType,
    /// `ExecStartPre`.
    pub exec_start_pre: Vec<ExecCommand>,
    /// `ExecStart`. For a Python agent the loader leaves it empty and the manager runs the kit's runner.
    pub exec_start: Vec<ExecCommand>,
    /// `ExecStartPost`.
    pub exec_start_post: Vec<ExecCommand>,
    /// `ExecReload`.
    pub exec_reload: Vec<ExecCommand>,
    /// `ExecStop`.
    pub exec_stop: Vec<ExecCommand>,
    /// `ExecStopPost`.
    pub exec_stop_post: Vec<ExecCommand>,
    /// `RemainAfterExit`: active after its processes are gone.
    pub remain_after_exit: bool,
    /// `Restart`.
    pub restart: Restart,
    /// `RestartSec`: default 100 ms.
    pub restart_sec: Duration,
    /// `RestartSteps`: number of steps from `RestartSec` to `RestartMaxDelaySec`; 0: no growth.
    pub restart_steps: u32,
    /// `RestartMaxDelaySec`: where growth ends; infinity: no growth.
    pub restart_max_delay: Option<Duration>,
    /// `TimeoutStartSec`: default 90 s, infinity for oneshot.
    pub timeout_start: Option<Duration>,
    /// `TimeoutStopSec`: default 90 s.
    pub timeout_stop: Option<Duration>,
    /// `RuntimeMaxSec`: how long it may run; default infinity (30 s for an agent with an inline `[Timer]`).
    pub runtime_max: Option<Duration>,
    /// `WatchdogSec`: the longest silence; zero or unset: no watchdog.
    pub watchdog: Option<Duration>,
    /// `NotifyAccess`: default none, or main where Type or WatchdogSec needs it.
    pub notify_access: NotifyAccess,
    /// `KillSignal`: default SIGTERM.
    pub kill_signal: Signal,
    /// `KillMode`: default control-group.
    pub kill_mode: KillMode,
    /// `Environment`: in the order given; the last one of a name counts.
    pub environment: Vec<(String, String)>,
    /// `WorkingDirectory`: default `/`; a leading `-` (missing is fine) is kept in `working_directory_optional`.
    pub working_directory: Option<PathBuf>,
    /// Whether a missing `WorkingDirectory` is not an error.
    pub working_directory_optional: bool,
    /// `User`.
    pub user: Option<Principal>,
    /// `Group`.
    pub group: Option<Principal>,
    /// `StateDirectory`: folders below `/var/lib` (user manager: `$XDG_STATE_HOME`), made before the start.
    pub state_directory: Vec<PathBuf>,
    /// `MemoryMax`: bytes, or a share of the machine's memory.
    pub memory_max: Option<MemoryLimit>,
    /// `CPUQuota`: in hundredths of a percent of one CPU (150 % is 15 000).
    pub cpu_quota: Option<u64>,
    /// `TasksMax`: number of tasks, or a share of the machine's limit.
    pub tasks_max: Option<TasksLimit>,
    /// `Slice`: by default system.slice (app.slice in a user's manager), below it one for the instances of each template.
    /// The loader fills the default in.
    pub slice: Option<UnitName>,
    /// `CapabilityBoundingSet`; `None`: all.
    pub capability_bounding_set: Option<CapabilityMask>,
    /// `AmbientCapabilities`: default none.
    pub ambient_capabilities: CapabilityMask,
    /// `NoNewPrivileges`: default no.
    pub no_new_privileges: bool,
    /// How its processes are executed.
    pub execution: Rare<Execution>,
    /// The finer rules of starts, ends and restarts.
    pub life: Rare<Life>,
    /// What it may reach.
    pub filters: Rare<Filters>,
    /// What keeps them from the rest of the machine.
    pub sandbox: Rare<Sandbox>,
    /// `LoadCredential`, `SetCredential`: its secrets, in the order of the file.
    pub credentials: Vec<Credential>,
    /// What its cgroup is given besides the bounds above.
    pub resources: Rare<Resources>,
}

/// A bound on memory as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// This many bytes.
    Bytes(u64),
    /// Hundredths of a percent of the physical memory, 0 to 10 000.
    Permyriad(u32),
    /// No bound.
    Infinity,
}

/// A bound on the number of tasks as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksLimit {
    /// This many.
    Count(u64),
    /// Hundredths of a percent of the machine's limit, 0 to 10 000.
    Permyriad(u32),
    /// No bound.
    Infinity,
}

impl Default for ServiceSection {
    fn default() -> Self {
        Self {
            service_type: ServiceType::Simple,
            exec_start_pre: Vec::new(),
            exec_start: Vec::new(),
            exec_start_post: Vec::new(),
            exec_reload: Vec::new(),
            exec_stop: Vec::new(),
            exec_stop_post: Vec::new(),
            remain_after_exit: false,
            restart: Restart::No,
            restart_sec: Duration::from_millis(100),
            restart_steps: 0,
            restart_max_delay: None,
            timeout_start: Some(Duration::from_secs(90)),
            timeout_stop: Some(Duration::from_secs(90)),
            runtime_max: None,
            watchdog: None,
            notify_access: NotifyAccess::None,
            kill_signal: Signal::TERM,
            kill_mode: KillMode::ControlGroup,
            environment: Vec::new(),
            working_directory: None,
            working_directory_optional: false,
            user: None,
            group: None,
            state_directory: Vec::new(),
            memory_max: None,
            cpu_quota: None,
            tasks_max: None,
            slice: None,
            capability_bounding_set: None,
            ambient_capabilities: 0,
            no_new_privileges: false,
            execution: Rare::default(),
            life: Rare::default(),
            filters: Rare::default(),
            sandbox: Rare::default(),
            credentials: Vec::new(),
            resources: Rare::default(),
        }
    }
}

impl ServiceSection {
    /// What commands of this kind have as their `/`; no kind: those of `[Agent]` and `[Snapshot]`.
    #[must_use]
    pub fn root_of(&self, kind: Option<ExecKind>) -> Option<&Path> {
        let start_only = self.life.root_start_only && kind.is_some_and(|kind| kind != ExecKind::Start);
        self.execution.root_directory.as_deref().filter(|_| !start_only)
    }

    /// The files that `LoadCredential` names by their paths: those that must be there, or those that `SetCredential`
    /// stands in for.
    pub fn credential_files(&self, replaceable: bool) -> impl Iterator<Item = PathBuf> + '_ {
        let is_set = |id: &str| {
            let text = |c: &Credential| c.id == id && matches!(c.source, CredentialSource::Text(_));
            self.credentials.iter().any(text)
        };
        let file = move |credential: &Credential| match &credential.source {
            CredentialSource::File(path) if is_set(&credential.id) == replaceable => Some(path.clone()),
            CredentialSource::File(_)
            | CredentialSource::Store(_)
            | CredentialSource::Import(_)
            | CredentialSource::Text(_) => None,
        };
        self.credentials.iter().filter_map(file)
    }

    /// The commands of one list.
    #[must_use]
    pub fn commands(&self, kind: ExecKind) -> &[ExecCommand] {
        match kind {
            ExecKind::Condition => &self.life.exec_condition,
            ExecKind::StartPre => &self.exec_start_pre,
            ExecKind::Start => &self.exec_start,
            ExecKind::StartPost => &self.exec_start_post,
            ExecKind::Reload => &self.exec_reload,
            ExecKind::Stop => &self.exec_stop,
            ExecKind::StopPost => &self.exec_stop_post,
        }
    }

    /// Gives back the room that a list of commands does not need, unless it is one of nothing.
    pub(crate) fn shrink_commands(&mut self, kind: ExecKind) {
        if !self.commands(kind).is_empty() {
            self.commands_mut(kind).shrink_to_fit();
        }
    }

    /// The commands of one list, to change them.
    pub fn commands_mut(&mut self, kind: ExecKind) -> &mut Vec<ExecCommand> {
        match kind {
            ExecKind::Condition => &mut self.life.exec_condition,
            ExecKind::StartPre => &mut self.exec_start_pre,
            ExecKind::Start => &mut self.exec_start,
            ExecKind::StartPost => &mut self.exec_start_post,
            ExecKind::Reload => &mut self.exec_reload,
            ExecKind::Stop => &mut self.exec_stop,
            ExecKind::StopPost => &mut self.exec_stop_post,
        }
    }
}

/// `[Agent] Kind`: what the agent is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentKind {
    /// Any program: `ExecStart`.
    #[default]
    Exec,
    /// A Go program: `ExecStart`.
    Go,
    /// A Python module, run by the kit's runner.
    Python,
}

/// `[Agent]`: what systemd lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSection {
    /// `Kind`.
    pub kind: AgentKind,
    /// `Module`: absolute path of a `.py` file, or a dotted name.
    pub module: Option<String>,
    /// `Python`: the interpreter, absolute; default `/usr/bin/python3`.
    pub python: Option<PathBuf>,
    /// `Pin`: further files that the signature covers.
    pub pin: Vec<PathBuf>,
    /// `ControlAccess`: what the agent's own processes may ask of the manager; default: act on their own unit.
    pub control_access: ControlAccess,
    /// `Sandbox`: a whole set of keys at once.
    pub sandbox: AgentSandbox,
    /// `Landlock`; default: where `Sandbox` is strict.
    pub landlock: Option<bool>,
    /// Health, resurrection and replicas.
    pub life: AgentLife,
}

/// `[Agent] Sandbox`: the keys of `[Service]` that are set where the unit does not set them itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentSandbox {
    /// None.
    #[default]
    None,
    /// Those of [`strict::KEYS`](crate::strict::KEYS).
    Strict,
}

/// `[Agent] ControlAccess`: what a process inside the unit's cgroup may do through the control socket, root or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ControlAccess {
    /// Read only.
    None,
    /// Act on its own unit.
    #[default]
    Own,
    /// Whatever its user may.
    All,
}

/// One rule of a timer. Spans count on CLOCK_BOOTTIME, calendars on CLOCK_REALTIME.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerTrigger {
    /// `OnActiveSec`: after the timer itself became active.
    Active(Duration),
    /// `OnBootSec`: after the kernel started.
    Boot(Duration),
    /// `OnStartupSec`: after the manager started.
    Startup(Duration),
    /// `OnUnitActiveSec`: after its unit was last activated.
    UnitActive(Duration),
    /// `OnUnitInactiveSec`: after its unit last ended.
    UnitInactive(Duration),
    /// `OnCalendar`: systemd.time(7) "CALENDAR EVENTS".
    Calendar(CalendarSpec),
    /// `Cron`: five fields or `@daily` and the like, crontab(5).
    Cron(CronSpec),
}

impl TimerTrigger {
    /// The key in the unit file.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Active(_) => "OnActiveSec",
            Self::Boot(_) => "OnBootSec",
            Self::Startup(_) => "OnStartupSec",
            Self::UnitActive(_) => "OnUnitActiveSec",
            Self::UnitInactive(_) => "OnUnitInactiveSec",
            Self::Calendar(_) => "OnCalendar",
            Self::Cron(_) => "Cron",
        }
    }
}

/// As systemd shows it: `OnBootSec=10s`, `OnCalendar=*-*-* 00:00:00`.
impl fmt::Display for TimerTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.key())?;
        match self {
            Self::Active(span)
            | Self::Boot(span)
            | Self::Startup(span)
            | Self::UnitActive(span)
            | Self::UnitInactive(span) => f.write_str(&crate::values::span::display(*span)),
            Self::Calendar(spec) => spec.fmt(f),
            Self::Cron(spec) => spec.fmt(f),
        }
    }
}

/// `[Timer]`, systemd.timer(5).
#[derive(Debug, Clone, PartialEq)]
pub struct TimerSection {
    /// All triggers; the earliest counts.
    pub triggers: Vec<TimerTrigger>,
    /// `Unit`: what it starts; default: the service of the same name.
    pub unit: Option<UnitName>,
    /// `Persistent`: a calendar time missed while the machine was off is made up for, once.
    pub persistent: bool,
    /// `AccuracySec`: how much later it may fire so that several fire together; default 1 min.
    pub accuracy: Duration,
    /// `RandomizedDelaySec`: at most so much is added to each time.
    pub randomized_delay: Duration,
    /// `FixedRandomDelay`: the same addition each time.
    pub fixed_random_delay: bool,
    /// `RemainAfterElapse`: it stays active after its last time; default yes.
    pub remain_after_elapse: bool,
    /// `OnClockChange`: it fires when the clock is set.
    pub on_clock_change: bool,
    /// `OnTimezoneChange`: it fires when the zone is set.
    pub on_timezone_change: bool,
    /// `WakeSystem`: it wakes a machine that is suspended.
    pub wake_system: bool,
}

impl Default for TimerSection {
    fn default() -> Self {
        Self {
            triggers: Vec::new(),
            unit: None,
            persistent: false,
            accuracy: Duration::from_secs(60),
            randomized_delay: Duration::ZERO,
            fixed_random_delay: false,
            remain_after_elapse: true,
            on_clock_change: false,
            on_timezone_change: false,
            wake_system: false,
        }
    }
}
