//! What agents have and services have not: `[Snapshot]`, `[Rollout]` and the further keys of `[Agent]`.

use std::time::Duration;

use crate::exec::ExecCommand;
use crate::words::Words;

/// A life of this length is no part of a row of restarts any more, unless the unit says otherwise.
pub(crate) const RESTART_RESET: Duration = Duration::from_secs(600);

/// Further keys of `[Agent]`: health, resurrection and replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLife {
    /// `RestartFactor`, in hundredths: what each wait is multiplied by for the next.
    pub restart_factor: Option<u32>,
    /// `RestartRandomizedDelaySec`: at most so much is added to each wait.
    pub restart_randomized_delay: Duration,
    /// `MaxRestarts`: so many in a row; `None`: no bound.
    pub max_restarts: Option<u32>,
    /// `RestartResetSec`: the uptime that ends a row of restarts, default 10 min; `None`: none does.
    pub restart_reset: Option<Duration>,
    /// `MinReadySec`: the uptime that makes a start count: a shorter life never ends a row.
    pub min_ready: Duration,
    /// `FailureThreshold`: so many misses in a row are a failure; default 1.
    pub failure_threshold: u32,
    /// `ExecHealthCheck`: the probe.
    pub exec_health_check: Vec<ExecCommand>,
    /// `HealthCheckIntervalSec`; default 30 s.
    pub health_check_interval: Duration,
    /// `HealthCheckTimeoutSec`; default 10 s.
    pub health_check_timeout: Duration,
    /// `ProgressTimeoutSec`: the longest time without progress.
    pub progress_timeout: Option<Duration>,
    /// `ReplaceOrder`.
    pub replace_order: ReplaceOrder,
    /// `RequireLimits`: no start where a limit cannot be enforced.
    pub require_limits: bool,
    /// `Replicas`; default 1.
    pub replicas: u32,
    /// `MinReplicas`: as few as this while there is nothing to do.
    pub min_replicas: Option<u32>,
    /// `IdleTimeoutSec`: then replicas above the least stop.
    pub idle_timeout: Option<Duration>,
    /// `DrainTimeoutSec`: how long a replica that goes may finish its work.
    pub drain_timeout: Option<Duration>,
}

impl Default for AgentLife {
    fn default() -> Self {
        Self {
            restart_factor: None,
            restart_randomized_delay: Duration::ZERO,
            max_restarts: None,
            restart_reset: Some(RESTART_RESET),
            min_ready: Duration::ZERO,
            failure_threshold: 1,
            exec_health_check: Vec::new(),
            health_check_interval: Duration::from_secs(30),
            health_check_timeout: Duration::from_secs(10),
            progress_timeout: None,
            replace_order: ReplaceOrder::StopFirst,
            require_limits: false,
            replicas: 1,
            min_replicas: None,
            idle_timeout: None,
            drain_timeout: None,
        }
    }
}

/// `[Agent] ReplaceOrder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplaceOrder {
    /// The old generation is gone before the new one is born.
    #[default]
    StopFirst,
    /// The new one is ready before the old one goes.
    StartFirst,
}

impl Words for ReplaceOrder {
    const WORDS: &'static [(&'static str, Self)] =
        &[("stop-first", Self::StopFirst), ("start-first", Self::StartFirst)];
}

/// `[Snapshot]`: the state of an agent, kept over its deaths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSection {
    /// `IntervalSec`: how often; `None`: only when it stops.
    pub interval: Option<Duration>,
    /// `OnStop`: also when it stops; default yes.
    pub on_stop: bool,
    /// `Keep`: so many are kept; default 3.
    pub keep: u32,
    /// `MaxBytes` of one; default 64 MiB.
    pub max_bytes: u64,
    /// `ExecSnapshot`: writes the state to its standard output.
    pub exec_snapshot: Vec<ExecCommand>,
    /// `ExecRestore`: reads the state from its standard input.
    pub exec_restore: Vec<ExecCommand>,
}

impl Default for SnapshotSection {
    fn default() -> Self {
        Self {
            interval: None,
            on_stop: true,
            keep: 3,
            max_bytes: 64 << 20,
            exec_snapshot: Vec::new(),
            exec_restore: Vec::new(),
        }
    }
}

/// `[Rollout]`: how replicas are exchanged for a new revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSection {
    /// `MaxSurge`: so many more than `Replicas` at once; default 1.
    pub max_surge: u32,
    /// `MaxUnavailable`: so many fewer; default 0.
    pub max_unavailable: u32,
    /// `MinReadySec`: the uptime that makes a new replica count.
    pub min_ready: Duration,
    /// `ProgressDeadlineSec`: without progress for so long the rollout has failed; default 10 min.
    pub progress_deadline: Option<Duration>,
    /// `AutoRollback`: go back after a failed rollout; default yes.
    pub auto_rollback: bool,
    /// `RevisionHistoryLimit`: so many old revisions are kept; default 10.
    pub revision_history_limit: u32,
}

impl Default for RolloutSection {
    fn default() -> Self {
        Self {
            max_surge: 1,
            max_unavailable: 0,
            min_ready: Duration::ZERO,
            progress_deadline: Some(Duration::from_secs(600)),
            auto_rollback: true,
            revision_history_limit: 10,
        }
    }
}
