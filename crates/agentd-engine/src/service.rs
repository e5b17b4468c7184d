//! The life of one service: where it stands, and where each event takes it.
//!
//! [`ServiceState::next`] is total: each state answers each event. It touches only the facts of its own unit; what
//! the world must do is pushed to `out`, in order. Which event is for this unit and this run was decided before.
//!
//! # Invariants
//! - A state other than `Dead`, `Failed` and `AutoRestart` has a run.
//! - The run ends, and the state with it, only when its processes are gone and its cgroup is empty (but for
//!   `KillMode=process` and `none` and `SendSIGKILL=no`, whose leftovers are killed before the next run begins).
//! - Every state that waits has a deadline, or waits for what the unit file lets run without end.

mod abort;
mod end;
mod facts;
mod fall;
mod main_process;
mod notify;
mod reload;
mod rise;

pub(crate) use facts::{Facts, Leftover, Process, Run};

use crate::clock::Monotonic;
use crate::out::Out;
use crate::state::{ActiveState, ServiceResult};

/// Which process of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// ExecStart's.
    Main,
    /// Any other command's.
    Control,
}

/// Where a service stands, systemd's `SubState`. `until` is when patience ends; `None` is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ServiceState {
    /// Nothing runs and nothing is due.
    #[default]
    Dead,
    /// What an earlier run left behind is being killed, before the first command.
    Clearing { until: Option<Monotonic> },
    /// ExecCondition runs.
    Condition { index: usize, until: Option<Monotonic> },
    /// ExecStartPre runs.
    StartPre { index: usize, until: Option<Monotonic> },
    /// ExecStart runs and does not count as started yet.
    Start { index: usize, until: Option<Monotonic> },
    /// It counts as started; ExecStartPost runs.
    StartPost { index: usize, until: Option<Monotonic> },
    /// The main process is up; `until` is RuntimeMaxSec.
    Running { until: Option<Monotonic> },
    /// RemainAfterExit: no process, yet up.
    Exited,
    /// It was sent ReloadSignal and is to say that it reloads.
    ReloadSignal { until: Option<Monotonic> },
    /// ExecReload runs, or the service itself said that it reloads (no index).
    Reload { index: Option<usize>, until: Option<Monotonic> },
    /// ExecStop runs.
    Stop { index: usize, until: Option<Monotonic> },
    /// It hung and was told to abort.
    StopWatchdog { until: Option<Monotonic> },
    /// It was asked to end.
    StopSigterm { until: Option<Monotonic> },
    /// It was killed; when that takes too long, it is killed and asked after again.
    StopSigkill { until: Option<Monotonic> },
    /// All is gone; ExecStopPost runs.
    StopPost { index: usize, until: Option<Monotonic> },
    /// ExecStopPost took too long and was told to abort.
    FinalWatchdog { until: Option<Monotonic> },
    /// What ExecStopPost left was asked to end.
    FinalSigterm { until: Option<Monotonic> },
    /// What ExecStopPost left was killed.
    FinalSigkill { until: Option<Monotonic> },
    /// Nothing runs, after an end that was a failure.
    Failed,
    /// The next life begins at `at`; `due` once that has come and its job waits for its turn.
    AutoRestart { at: Monotonic, due: bool },
}

/// What can happen to a service.
#[derive(Debug)]
pub(crate) enum ServiceEvent {
    /// Begin this life.
    Start(Box<Run>),
    /// End it, and bring it back only when asked.
    Stop,
    /// End it at once, by SIGKILL.
    Force,
    /// Have it read its configuration again.
    Reload,
    /// A command was executed.
    Up(Who),
    /// A command has ended, or could not be executed.
    Gone { who: Who, outcome: ServiceResult },
    /// Which process is the main one cannot be told (yet).
    NoMain,
    /// The PID file may say something else now.
    PidFile,
    /// No job of another service runs.
    Quiet,
    /// No process is left.
    Emptied,
    /// Nothing is left of the earlier run.
    Cleared,
    /// The kernel's OOM killer was here.
    Oom,
    /// `READY=1`.
    Ready,
    /// `RELOADING=1`, with the time at which that began if it says so.
    Reloading(Option<Monotonic>),
    /// ReloadSignal could not be sent.
    ReloadRefused,
    /// `STOPPING=1`.
    Stopping,
    /// `WATCHDOG=trigger`.
    Hung,
    /// Time went on.
    Tick,
}

impl ServiceState {
    /// Where this event takes it.
    #[must_use]
    pub(crate) fn next(self, event: ServiceEvent, facts: &mut Facts, out: &mut Out<'_>) -> Self {
        use ServiceState as S;
        if facts.is_frozen() && self.goes_on(&event, facts, out) {
            facts.thaw(out);
        }
        match self {
            S::Dead | S::Failed => rise::at_rest(self, event, facts, out),
            S::AutoRestart { at, due } => rise::auto_restart(at, due, event, facts, out),
            S::Clearing { until } => rise::clearing(until, event, facts, out),
            S::Condition { index, until } => rise::condition(index, until, event, facts, out),
            S::StartPre { index, until } => rise::start_pre(index, until, event, facts, out),
            S::Start { index, until } => rise::start(index, until, event, facts, out),
            S::StartPost { index, until } => rise::start_post(index, until, event, facts, out),
            S::Running { .. } | S::Exited => rise::up(self, event, facts, out),
            S::ReloadSignal { until } => reload::signalled(until, event, facts, out),
            S::Reload { index, until } => reload::reload(index, until, event, facts, out),
            S::Stop { index, until } => fall::stop(index, until, event, facts, out),
            S::StopWatchdog { until } => abort::aborted(fall::Phase::Stop, until, event, facts, out),
            S::StopSigterm { until } => fall::sigterm(fall::Phase::Stop, until, event, facts, out),
            S::StopSigkill { until } => fall::sigkill(fall::Phase::Stop, until, event, facts, out),
            S::StopPost { index, until } => fall::stop_post(index, until, event, facts, out),
            S::FinalWatchdog { until } => abort::aborted(fall::Phase::Final, until, event, facts, out),
            S::FinalSigterm { until } => fall::sigterm(fall::Phase::Final, until, event, facts, out),
            S::FinalSigkill { until } => fall::sigkill(fall::Phase::Final, until, event, facts, out),
        }
    }

    /// Whether what is frozen must go on to act on this event. What says nothing new about its state does not thaw it.
    fn goes_on(self, event: &ServiceEvent, facts: &Facts, out: &Out<'_>) -> bool {
        use ServiceEvent as E;
        match event {
            E::Tick => expired(self.deadline(facts), out),
            E::Start(_)
            | E::Stop
            | E::Force
            | E::Reload
            | E::Gone { .. }
            | E::Oom
            | E::Stopping
            | E::Hung => true,
            E::Emptied => facts.is_headless(),
            E::NoMain => facts.run.as_ref().is_none_or(|run| run.main.is_none()),
            E::Up(_) | E::PidFile | E::Quiet | E::Cleared | E::Ready | E::Reloading(_) | E::ReloadRefused => {
                false
            }
        }
    }

    /// Whether it waits until no job of another service runs (`Type=idle`).
    pub(crate) fn waits_for_quiet(self, facts: &Facts) -> bool {
        matches!(self, Self::Start { .. }) && facts.run.as_ref().is_some_and(|run| run.idle_until.is_some())
    }

    /// When it must hear a [`ServiceEvent::Tick`].
    pub(crate) fn deadline(self, facts: &Facts) -> Option<Monotonic> {
        use ServiceState as S;
        let run = facts.run.as_ref().filter(|run| !run.frozen);
        let watchdog = run.and_then(|run| run.watchdog).map(|watchdog| watchdog.due);
        match self {
            S::Dead | S::Failed | S::Exited | S::AutoRestart { due: true, .. } => None,
            S::AutoRestart { at, due: false } => Some(at),
            S::Running { until }
            | S::StartPost { until, .. }
            | S::ReloadSignal { until }
            | S::Reload { until, .. } => until.into_iter().chain(watchdog).min(),
            S::Start { until, .. } => until.into_iter().chain(run.and_then(|run| run.idle_until)).min(),
            S::Clearing { until }
            | S::Condition { until, .. }
            | S::StartPre { until, .. }
            | S::Stop { until, .. }
            | S::StopWatchdog { until }
            | S::StopSigterm { until }
            | S::StopSigkill { until }
            | S::StopPost { until, .. }
            | S::FinalWatchdog { until }
            | S::FinalSigterm { until }
            | S::FinalSigkill { until } => until,
        }
    }

    /// The same wait with a deadline no sooner than `least` (`EXTEND_TIMEOUT_USEC=`); without end stays without end.
    #[must_use]
    pub(crate) fn extended(mut self, least: Monotonic) -> Self {
        use ServiceState as S;
        match &mut self {
            S::Condition { until, .. }
            | S::StartPre { until, .. }
            | S::Start { until, .. }
            | S::StartPost { until, .. }
            | S::Running { until }
            | S::ReloadSignal { until }
            | S::Reload { until, .. }
            | S::Stop { until, .. }
            | S::StopWatchdog { until }
            | S::StopSigterm { until }
            | S::StopPost { until, .. }
            | S::FinalWatchdog { until }
            | S::FinalSigterm { until } => *until = until.map(|until| until.max(least)),
            S::Dead
            | S::Clearing { .. }
            | S::Exited
            | S::StopSigkill { .. }
            | S::FinalSigkill { .. }
            | S::Failed
            | S::AutoRestart { .. } => {}
        }
        self
    }

    /// What the service is for others.
    pub(crate) const fn active(self) -> ActiveState {
        use ServiceState as S;
        match self {
            S::Dead => ActiveState::Inactive,
            S::Clearing { .. }
            | S::Condition { .. }
            | S::StartPre { .. }
            | S::Start { .. }
            | S::StartPost { .. }
            | S::AutoRestart { .. } => ActiveState::Activating,
            S::Running { .. } | S::Exited => ActiveState::Active,
            S::ReloadSignal { .. } | S::Reload { .. } => ActiveState::Reloading,
            S::Stop { .. }
            | S::StopWatchdog { .. }
            | S::StopSigterm { .. }
            | S::StopSigkill { .. }
            | S::StopPost { .. }
            | S::FinalWatchdog { .. }
            | S::FinalSigterm { .. }
            | S::FinalSigkill { .. } => ActiveState::Deactivating,
            S::Failed => ActiveState::Failed,
        }
    }

    /// Which ExecStartPost is being run.
    pub(crate) const fn post(self) -> Option<usize> {
        match self {
            Self::StartPost { index, .. } => Some(index),
            _ => None,
        }
    }

    /// Goes on behind the ExecStartPost that a manager before has begun: nobody knows how that one ends.
    pub(crate) fn behind_post(index: usize, facts: &mut Facts, out: &mut Out<'_>) -> Self {
        let until = facts.until(facts.section().and_then(|service| service.timeout_start), out);
        rise::enter_start_post(index + 1, until, facts, out)
    }

    /// systemd's word.
    pub(crate) const fn as_str(self) -> &'static str {
        use ServiceState as S;
        match self {
            S::Dead => "dead",
            S::Condition { .. } => "condition",
            S::Clearing { .. } | S::StartPre { .. } => "start-pre",
            S::Start { .. } => "start",
            S::StartPost { .. } => "start-post",
            S::Running { .. } => "running",
            S::Exited => "exited",
            S::ReloadSignal { .. } => "reload-signal",
            S::Reload { index: Some(_), .. } => "reload",
            S::Reload { index: None, .. } => "reload-notify",
            S::Stop { .. } => "stop",
            S::StopWatchdog { .. } => "stop-watchdog",
            S::StopSigterm { .. } => "stop-sigterm",
            S::StopSigkill { .. } => "stop-sigkill",
            S::StopPost { .. } => "stop-post",
            S::FinalWatchdog { .. } => "final-watchdog",
            S::FinalSigterm { .. } => "final-sigterm",
            S::FinalSigkill { .. } => "final-sigkill",
            S::Failed => "failed",
            S::AutoRestart { .. } => "auto-restart",
        }
    }
}

fn expired(until: Option<Monotonic>, out: &Out<'_>) -> bool {
    until.is_some_and(|until| out.now.monotonic >= until)
}
