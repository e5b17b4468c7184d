//! What a unit is for others, and why it ended.

use std::fmt;

/// What a unit is for others, systemd's `ActiveState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ActiveState {
    /// Down.
    #[default]
    Inactive,
    /// Coming up, or waiting to be restarted.
    Activating,
    /// Up.
    Active,
    /// Up, and reading its configuration again.
    Reloading,
    /// Going down.
    Deactivating,
    /// Down after a failure.
    Failed,
}

impl ActiveState {
    /// systemd's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Reloading => "reloading",
            Self::Deactivating => "deactivating",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ActiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a unit ended, systemd's `Result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ServiceResult {
    /// As it should.
    #[default]
    Success,
    /// The manager could not get what it needs.
    Resources,
    /// A timeout ran out.
    Timeout,
    /// An unclean exit code.
    ExitCode,
    /// An unclean signal.
    Signal,
    /// An unclean signal, with a core dump.
    CoreDump,
    /// A missed watchdog.
    Watchdog,
    /// The kernel's OOM killer took one of its processes.
    OomKill,
    /// Started too often in too short a time.
    StartLimitHit,
    /// A notify service ended before it was ready.
    Protocol,
    /// ExecCondition said that it is not to be started now; no failure.
    ExecCondition,
    /// What would run is not what was signed (ours; systemd has no such result).
    Trust,
    /// A socket or path unit triggered its unit more often than its trigger limit allows.
    TriggerLimitHit,
    /// The service of a socket was started too often.
    ServiceStartLimitHit,
    /// The unit of a path unit was started too often.
    UnitStartLimitHit,
}

impl ServiceResult {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Success,
        Self::Resources,
        Self::Timeout,
        Self::ExitCode,
        Self::Signal,
        Self::CoreDump,
        Self::Watchdog,
        Self::OomKill,
        Self::StartLimitHit,
        Self::Protocol,
        Self::ExecCondition,
        Self::Trust,
        Self::TriggerLimitHit,
        Self::ServiceStartLimitHit,
        Self::UnitStartLimitHit,
    ];

    /// systemd's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Resources => "resources",
            Self::Timeout => "timeout",
            Self::ExitCode => "exit-code",
            Self::Signal => "signal",
            Self::CoreDump => "core-dump",
            Self::Watchdog => "watchdog",
            Self::OomKill => "oom-kill",
            Self::StartLimitHit => "start-limit-hit",
            Self::Protocol => "protocol",
            Self::ExecCondition => "exec-condition",
            Self::Trust => "trust",
            Self::TriggerLimitHit => "trigger-limit-hit",
            Self::ServiceStartLimitHit => "service-start-limit-hit",
            Self::UnitStartLimitHit => "unit-start-limit-hit",
        }
    }
}

impl fmt::Display for ServiceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
