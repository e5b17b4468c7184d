//! What `[Unit]` says about the whole system, systemd.unit(5).

use std::path::PathBuf;
use std::time::Duration;

use crate::names::UnitNames;
use crate::words::Words;

/// What an end of the unit does to the system, and what else concerns more than the unit itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemWide {
    /// `SourcePath`: the file that this one was generated from.
    pub source_path: Option<PathBuf>,
    /// `RequiresMountsFor`: paths that are to be mounted before it starts.
    pub requires_mounts_for: Vec<PathBuf>,
    /// `JoinsNamespaceOf`: whose network, IPC and temporary folders it has, where both have their own.
    pub joins_namespace_of: UnitNames,
    /// `AllowIsolate`: `agentctl isolate` may be asked for it.
    pub allow_isolate: bool,
    /// `IgnoreOnIsolate`: an isolate of another unit leaves it alone; `None`: as its type has it.
    pub ignore_on_isolate: Option<bool>,
    /// `JobRunningTimeoutSec`: how long a job of this unit may run; `None`: without end.
    pub job_running_timeout: Option<Duration>,
    /// `JobTimeoutAction`.
    pub job_timeout_action: Action,
    /// `SuccessAction`.
    pub success_action: Action,
    /// `FailureAction`.
    pub failure_action: Action,
    /// `StartLimitAction`.
    pub start_limit_action: Action,
    /// `SuccessActionExitStatus`: the manager's exit code after `exit`.
    pub success_exit_status: Option<u8>,
    /// `FailureActionExitStatus`: the manager's exit code after `exit`.
    pub failure_exit_status: Option<u8>,
    /// `RebootArgument`: handed to reboot(2).
    pub reboot_argument: Option<String>,
    /// `JobTimeoutRebootArgument`: handed to reboot(2) after `JobTimeoutAction`.
    pub job_timeout_reboot_argument: Option<String>,
    /// `CollectMode`: whether a failed unit is forgotten like an inactive one.
    pub collect_mode: CollectMode,
}

/// What happens to the system, systemd.unit(5) `FailureAction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Action {
    /// Nothing.
    #[default]
    None,
    /// A clean reboot.
    Reboot,
    /// A reboot that waits for nothing but a sync.
    RebootForce,
    /// A reboot that waits for nothing.
    RebootImmediate,
    /// A clean shutdown.
    Poweroff,
    /// A shutdown that waits for nothing but a sync.
    PoweroffForce,
    /// A shutdown that waits for nothing.
    PoweroffImmediate,
    /// The manager stops all and exits.
    Exit,
    /// The manager exits.
    ExitForce,
}

impl Words for Action {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("reboot", Self::Reboot),
        ("reboot-force", Self::RebootForce),
        ("reboot-immediate", Self::RebootImmediate),
        ("poweroff", Self::Poweroff),
        ("poweroff-force", Self::PoweroffForce),
        ("poweroff-immediate", Self::PoweroffImmediate),
        ("exit", Self::Exit),
        ("exit-force", Self::ExitForce),
    ];
}

/// `CollectMode`, systemd.unit(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CollectMode {
    /// Failed units stay until reset-failed.
    #[default]
    Inactive,
    /// They go.
    InactiveOrFailed,
}

impl Words for CollectMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("inactive", Self::Inactive), ("inactive-or-failed", Self::InactiveOrFailed)];
}
