//! What agents have and services have not: the further keys of `[Agent]`, `[Snapshot]` and `[Rollout]`.

use super::apply::set;
use super::execution::scalar;
use super::fields::command_list;
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::sections::ReplaceOrder;
use crate::values::{Refused, limit};

const HEALTH: &str = "health checks come with a later version";
const SNAPSHOTS: &str = "snapshots come with a later version";
const REPLICAS: &str = "replicas and rollouts come with a later version";

const fn snapshot(key: &'static str, slot: Slot, doc: &'static str) -> Setting {
    Setting::typed(key, slot, doc, SNAPSHOTS)
}

const fn rollout(key: &'static str, slot: Slot, doc: &'static str) -> Setting {
    Setting::typed(key, slot, doc, REPLICAS)
}

/// The further keys of `[Agent]`.
pub(super) const AGENT_SETTINGS: &[Setting] = &[
    Setting::new(
        "RestartFactor",
        Slot::Own("number such as 1.5", |value, d, cx| {
            let factor = cx.parse(value, "a number such as 1.5", hundredths);
            set(&mut d.agent.life.restart_factor, factor.map(Some));
        }),
        "What each wait for a restart is multiplied by for the next, up to RestartMaxDelaySec, else a day.",
    ),
    Setting::new(
        "RestartRandomizedDelaySec",
        Slot::Span(|d| &mut d.agent.life.restart_randomized_delay),
        "At most so much is added to each wait, by chance; default 0.",
    ),
    Setting::new(
        "MaxRestarts",
        Slot::Own("whole number", |value, d, cx| {
            let count = scalar(value, cx, "a whole number", count);
            set(&mut d.agent.life.max_restarts, count.map(Some));
        }),
        "How many restarts in a row; after them it stays failed until somebody starts it; default any number.",
    ),
    Setting::new(
        "RestartResetSec",
        Slot::Timeout(|d| &mut d.agent.life.restart_reset),
        "The uptime that ends a row of restarts; default MinReadySec where that is set, else 10 min or RestartMaxDelaySec if that is longer.",
    ),
    Setting::new(
        "MinReadySec",
        Slot::Span(|d| &mut d.agent.life.min_ready),
        "The uptime that makes a start count: a shorter life never ends a row of restarts; default 0.",
    ),
    Setting::typed(
        "FailureThreshold",
        Slot::Count(|d| &mut d.agent.life.failure_threshold),
        "How many misses in a row are a failure; default 1.",
        HEALTH,
    ),
    Setting::typed(
        "ExecHealthCheck",
        Slot::Own("command", |value, d, cx| command_list(&mut d.agent.life.exec_health_check, value, cx)),
        "The probe: exit code 0 is healthy.",
        HEALTH,
    ),
    Setting::typed(
        "HealthCheckIntervalSec",
        Slot::Span(|d| &mut d.agent.life.health_check_interval),
        "How often it is probed; default 30 s.",
        HEALTH,
    ),
    Setting::typed(
        "HealthCheckTimeoutSec",
        Slot::Span(|d| &mut d.agent.life.health_check_timeout),
        "How long a probe may take; default 10 s.",
        HEALTH,
    ),
    Setting::typed(
        "ProgressTimeoutSec",
        Slot::Timeout(|d| &mut d.agent.life.progress_timeout),
        "The longest time in which X_AGENTD_PROGRESS need not grow; default infinity.",
        HEALTH,
    ),
    Setting::typed(
        "ReplaceOrder",
        Slot::Choice(names::<ReplaceOrder>, |d, word| put(&mut d.agent.life.replace_order, word)),
        "Whether the old generation is gone before the new one is born; default stop-first.",
        REPLICAS,
    ),
    Setting::new(
        "RequireLimits",
        Slot::Bool(|d| &mut d.agent.life.require_limits),
        "No start where a limit cannot be enforced; default no.",
    ),
    Setting::typed(
        "Replicas",
        Slot::Count(|d| &mut d.agent.life.replicas),
        "How many instances of a template run; default 1.",
        REPLICAS,
    ),
    Setting::typed(
        "MinReplicas",
        Slot::Own("whole number", |value, d, cx| {
            let count = scalar(value, cx, "a whole number", count);
            set(&mut d.agent.life.min_replicas, count.map(Some));
        }),
        "How few while there is nothing to do; default Replicas.",
        REPLICAS,
    ),
    Setting::typed(
        "IdleTimeoutSec",
        Slot::Timeout(|d| &mut d.agent.life.idle_timeout),
        "After so long without work replicas above the least stop; default infinity.",
        REPLICAS,
    ),
    Setting::typed(
        "DrainTimeoutSec",
        Slot::Timeout(|d| &mut d.agent.life.drain_timeout),
        "How long a replica that goes may finish its work; default TimeoutStopSec.",
        REPLICAS,
    ),
];

/// The keys of `[Snapshot]`.
pub(super) const SNAPSHOT_SETTINGS: &[Setting] = &[
    snapshot(
        "IntervalSec",
        Slot::Timeout(|d| &mut d.snapshot.interval),
        "How often the state is kept; default only at the stop.",
    ),
    snapshot("OnStop", Slot::Bool(|d| &mut d.snapshot.on_stop), "Also when it stops; default yes."),
    snapshot("Keep", Slot::Count(|d| &mut d.snapshot.keep), "How many are kept; default 3."),
    snapshot(
        "MaxBytes",
        Slot::Own("size", |value, d, cx| {
            let bytes = cx.parse(value, "a size", limit::size);
            set(&mut d.snapshot.max_bytes, bytes);
        }),
        "The largest snapshot; default 64M.",
    ),
    snapshot(
        "ExecSnapshot",
        Slot::Own("command", |value, d, cx| command_list(&mut d.snapshot.exec_snapshot, value, cx)),
        "Writes the state to its standard output.",
    ),
    snapshot(
        "ExecRestore",
        Slot::Own("command", |value, d, cx| command_list(&mut d.snapshot.exec_restore, value, cx)),
        "Reads the state from its standard input.",
    ),
];

/// The keys of `[Rollout]`.
pub(super) const ROLLOUT_SETTINGS: &[Setting] = &[
    rollout(
        "MaxSurge",
        Slot::Count(|d| &mut d.rollout.max_surge),
        "How many more than Replicas at once; default 1.",
    ),
    rollout(
        "MaxUnavailable",
        Slot::Count(|d| &mut d.rollout.max_unavailable),
        "How many fewer than Replicas; default 0.",
    ),
    rollout(
        "MinReadySec",
        Slot::Span(|d| &mut d.rollout.min_ready),
        "The uptime that makes a new replica count; default 0.",
    ),
    rollout(
        "ProgressDeadlineSec",
        Slot::Timeout(|d| &mut d.rollout.progress_deadline),
        "Without progress for so long the rollout has failed; default 10 min.",
    ),
    rollout(
        "AutoRollback",
        Slot::Bool(|d| &mut d.rollout.auto_rollback),
        "Goes back to the revision before after a failed rollout; default yes.",
    ),
    rollout(
        "RevisionHistoryLimit",
        Slot::Count(|d| &mut d.rollout.revision_history_limit),
        "How many old revisions are kept; default 10.",
    ),
];

fn count(text: &str) -> Result<u32, Refused> {
    let help = "write for example 5";
    text.parse().map_err(|_| Refused::of(text, "is no whole number from 0 to 4294967295", help))
}

/// A number from 1 with up to two decimals, in hundredths.
fn hundredths(text: &str) -> Result<u32, Refused> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = || {
        let decimals: u32 = format!("{decimals:0<2}").parse().ok()?;
        whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(decimals)
    };
    let number = if digits(whole) && digits(decimals) && decimals.len() <= 2 { number() } else { None };
    number
        .filter(|number| (100..=100_000).contains(number))
        .ok_or_else(|| Refused::of(text, "is no factor from 1 to 1000", "write for example 2 or 1.5"))
}
