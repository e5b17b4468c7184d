//! What happened. The shell's `watch/` is where these are born.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentd_unit::{NotifyAccess, Signal, Unit, UnitName, UnitSet};

use crate::clock::{Boottime, Monotonic};
use crate::ids::{AttachmentId, EffectId, InvocationId, JobId, RequestId};
use crate::memo::Memo;

/// Something that happened outside the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Time went on; due deadlines are taken up.
    Tick,
    /// CLOCK_REALTIME was set or the time zone changed: first what is due fires, then calendars are computed anew.
    ClockChanged,
    /// A whole new set of definitions, to be swapped in.
    UnitsLoaded(UnitSet),
    /// Units that were read because somebody named them: those that are not known yet are added, nothing is changed.
    UnitsFound(UnitSet),
    /// Somebody asks for something.
    Request {
        /// The name under which it is answered.
        id: RequestId,
        /// What is asked for.
        request: Request,
    },
    /// Closes [`Effect::Spawn`](crate::Effect::Spawn): the program was executed, with its pid, or it was not.
    Spawned {
        /// The effect that this answers; from now on the name of the process.
        id: EffectId,
        /// Its run.
        run: InvocationId,
        /// The pid for displays and `MAINPID`, or why there is none.
        result: Result<u32, SpawnFailure>,
    },
    /// What another manager of this boot kept of its units, to go on with: after the first [`Event::UnitsLoaded`] and
    /// before anything else.
    TakenOver {
        /// What it kept.
        memos: Vec<Memo>,
        /// When the first manager of this boot began.
        born: Option<Boottime>,
    },
    /// A process that was spawned has ended.
    Exited {
        /// The effect that spawned it.
        id: EffectId,
        /// Its run.
        run: InvocationId,
        /// How it ended.
        status: ExitStatus,
    },
    /// Closes [`Effect::AwaitEmpty`](crate::Effect::AwaitEmpty): no process of the run is left.
    Emptied {
        /// The effect that this answers.
        id: EffectId,
        /// Its run.
        run: InvocationId,
    },
    /// Closes [`Effect::FindMain`](crate::Effect::FindMain).
    MainFound {
        /// The effect that this answers.
        id: EffectId,
        /// Its run.
        run: InvocationId,
        /// The main process, or why there is none, for people.
        result: Result<MainProcess, String>,
    },
    /// The PID file of the run may say something else than when it was last looked at.
    PidFileChanged {
        /// The run.
        run: InvocationId,
    },
    /// Closes [`Effect::AskReload`](crate::Effect::AskReload): the signal was sent, or why it was not.
    ReloadAsked {
        /// The effect that this answers.
        id: EffectId,
        /// Its run.
        run: InvocationId,
        /// Why the signal was not sent, for people.
        result: Result<(), String>,
    },
    /// Closes [`Effect::Check`](crate::Effect::Check).
    Checked {
        /// The effect that this answers.
        id: EffectId,
        /// What holds.
        checked: Checked,
    },
    /// Closes [`Effect::Listen`](crate::Effect::Listen), [`Effect::Relisten`](crate::Effect::Relisten) and
    /// [`Effect::Watch`](crate::Effect::Watch).
    Listened {
        /// The effect that this answers.
        id: EffectId,
        /// The unit that listens.
        unit: UnitName,
        /// Done, or one sentence for people: what was tried, on what, and the errno.
        result: Result<(), String>,
    },
    /// Something came in at a socket that was armed, or what a path unit waits for has happened. Told once: the unit is
    /// not armed any more.
    Traffic {
        /// The socket or path unit.
        unit: UnitName,
        /// The path that it happened at, of a path unit.
        path: Option<String>,
    },
    /// Closes [`Effect::Accept`](crate::Effect::Accept).
    Accepted {
        /// The effect that this answers; from now on the name of the connection.
        id: EffectId,
        /// The socket.
        socket: UnitName,
        /// The connection, nothing where nobody was there any more, or one sentence: why there is none.
        result: Result<Option<Box<Connection>>, String>,
    },
    /// The kernel's OOM killer took processes of the run (`oom_kill` of memory.events grew).
    OomKilled {
        /// The run.
        run: InvocationId,
    },
    /// The run sent an sd_notify(3) datagram; access was not checked yet.
    Notified {
        /// The run whose process it was.
        run: InvocationId,
        /// Which of its processes sent it.
        sender: Sender,
        /// What it says.
        notification: Notification,
    },
}

impl Event {
    /// The run that the event is about, if it is about one.
    #[must_use]
    pub const fn run(&self) -> Option<InvocationId> {
        match self {
            Self::Spawned { run, .. }
            | Self::Exited { run, .. }
            | Self::Emptied { run, .. }
            | Self::OomKilled { run }
            | Self::MainFound { run, .. }
            | Self::PidFileChanged { run }
            | Self::ReloadAsked { run, .. }
            | Self::Notified { run, .. } => Some(*run),
            Self::Tick
            | Self::ClockChanged
            | Self::UnitsLoaded(_)
            | Self::UnitsFound(_)
            | Self::TakenOver { .. }
            | Self::Checked { .. }
            | Self::Listened { .. }
            | Self::Traffic { .. }
            | Self::Accepted { .. }
            | Self::Request { .. } => None,
        }
    }
}

/// One connection of a socket with `Accept`, held by the shell under the name of its effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// The instance of the service that is made for it, as it was loaded.
    pub unit: Arc<Unit>,
    /// Where it comes from, for `MaxConnectionsPerSource`: an address without its port, or a user's number.
    pub source: Option<String>,
}

/// Whether a unit's conditions and asserts hold, systemd.unit(5): the errors are what does not, as it stands in the
/// file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// `Condition…`.
    pub condition: Result<(), String>,
    /// `Assert…`.
    pub assertion: Result<(), String>,
}

/// The main process of a daemon that went into the background, or that said of itself which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MainProcess {
    /// The effect that it was spawned or found by: the name of the process.
    pub process: EffectId,
    /// Its pid, for displays and `MAINPID`.
    pub pid: u32,
}

/// `MAINPID=`: which process the sender says is the main one from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimedMain {
    /// Its pid.
    pub pid: u32,
    /// The sender is root's: it may name a process that is not one of the unit.
    pub privileged: bool,
}

/// How a process ended: two different things that are never folded into one number in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// It called exit(3) with this code, 0 to 255.
    Exited(u8),
    /// This signal ended it.
    Killed(Signal),
    /// This signal ended it and left a core dump.
    Dumped(Signal),
    /// Nobody can tell any more: it was no child of ours, and whoever was its parent has the status.
    Unknown,
}

impl ExitStatus {
    /// Exit code 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// One byte as shells have it: the code, or 128 and the signal's number; 255 where nobody can tell.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) | Self::Dumped(signal) => 128 + signal.number() as u8,
            Self::Unknown => u8::MAX,
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "code=exited, status={code}"),
            Self::Killed(signal) => write!(f, "code=killed, signal={signal}"),
            Self::Dumped(signal) => write!(f, "code=dumped, signal={signal}"),
            Self::Unknown => f.write_str("code=unknown"),
        }
    }
}

/// Why a program was not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnFailure {
    /// What a caller would act on.
    pub kind: SpawnFailureKind,
    /// One sentence for people: what was tried, on what, and the errno.
    pub message: String,
}

/// The kinds of failure before exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnFailureKind {
    /// A step in the child failed; systemd's exit status for it, 200 to 243 (systemd.exec(5)).
    Step {
        /// The status that the service counts as having exited with.
        exit_status: u8,
    },
    /// The file is not what was signed, or is not signed, and the policy is enforce.
    Trust,
    /// The manager could not get what the process needs (a cgroup, a limit, a descriptor).
    Resources,
}

/// Which process of a run sent a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    /// A process that the manager spawned itself, by its effect.
    Process(EffectId),
    /// Any other process in the run's cgroup.
    Other {
        /// Its pid, for the log.
        pid: u32,
    },
}

/// The fields of sd_notify(3) that decide unit state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notification {
    /// `READY=1`.
    pub ready: bool,
    /// `RELOADING=1`.
    pub reloading: bool,
    /// `MONOTONIC_USEC=`: when the reload began.
    pub monotonic: Option<Monotonic>,
    /// `STOPPING=1`.
    pub stopping: bool,
    /// `STATUS=`: one line for people.
    pub status: Option<String>,
    /// `ERRNO=`.
    pub errno: Option<i32>,
    /// `WATCHDOG=1`: a sign of life.
    pub alive: bool,
    /// `WATCHDOG=trigger`: the service says of itself that it hangs.
    pub trigger_watchdog: bool,
    /// `WATCHDOG_USEC=`: a new watchdog span.
    pub watchdog: Option<Duration>,
    /// `EXTEND_TIMEOUT_USEC=`: the running timeout ends no sooner than this from now.
    pub extend_timeout: Option<Duration>,
    /// `MAINPID=`.
    pub main: Option<ClaimedMain>,
    /// `BUSERROR=`.
    pub bus_error: Option<String>,
    /// `NOTIFYACCESS=`: whose notifications count from now on.
    pub access: Option<NotifyAccess>,
    /// `FDSTORE=1`, `FDSTOREREMOVE=1` or `BARRIER=1`: what came along waits under this name, and is closed by exactly one
    /// [`Effect::TakeAttachment`](crate::Effect::TakeAttachment) or
    /// [`Effect::DropAttachment`](crate::Effect::DropAttachment).
    pub attachment: Option<AttachmentId>,
}

impl Notification {
    /// It changes how the service is treated from now on, by the next manager too.
    pub(crate) const fn outlasts_the_manager(&self) -> bool {
        self.watchdog.is_some() || self.extend_timeout.is_some() || self.access.is_some()
    }
}

/// What can be asked of the manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A job for a unit, with all that follows from it. Answered when the job has ended.
    Job {
        /// What to do.
        kind: JobKind,
        /// With which unit.
        unit: UnitName,
        /// What happens to jobs that are in the way.
        mode: JobMode,
    },
    /// Sends a signal to processes of a unit. Answered at once.
    Kill {
        /// Whose.
        unit: UnitName,
        /// Which of them.
        whom: KillWhom,
        /// The signal.
        signal: Signal,
    },
    /// Freezes the processes of a unit that is up, or lets them go on. Answered at once.
    Freeze {
        /// Whose.
        unit: UnitName,
        /// Whether they stand still from now on.
        frozen: bool,
    },
    /// Forgets failures, start limits and restart counts; of all units where none is named. Answered at once.
    ResetFailed {
        /// Of this one.
        unit: Option<UnitName>,
    },
    /// Cancels a job that has not ended. Answered at once.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Stops everything in reverse order and then ends the machine or the manager. More than
    /// seven of them within two seconds force it.
    Shutdown {
        /// How it ends.
        kind: ShutdownKind,
    },
}

/// What a job does, systemctl(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Bring it up.
    Start,
    /// Take it down.
    Stop,
    /// Down and up again; up if it is down.
    Restart,
    /// Down and up again if it is up.
    TryRestart,
    /// Have it read its configuration again.
    Reload,
    /// Reload if it can, else restart.
    ReloadOrRestart,
    /// Succeeds only if it is active already.
    VerifyActive,
}

impl JobKind {
    /// systemd's word for the job, as `list-jobs` shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::TryRestart => "try-restart",
            Self::Reload => "reload",
            Self::ReloadOrRestart => "reload-or-restart",
            Self::VerifyActive => "verify-active",
        }
    }
}

/// `--job-mode`, systemctl(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JobMode {
    /// Jobs in the way are replaced.
    #[default]
    Replace,
    /// Jobs in the way make the request fail.
    Fail,
    /// All units that are not part of the transaction are stopped.
    Isolate,
    /// Jobs in the way are replaced, and what comes later does not replace these.
    ReplaceIrreversibly,
    /// Only this unit, whatever it depends on.
    IgnoreDependencies,
    /// Only this unit, but in its order with all others.
    IgnoreRequirements,
}

/// `--kill-whom`, systemctl(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KillWhom {
    /// Every process.
    #[default]
    All,
    /// The main process.
    Main,
    /// The control process (ExecStartPre, ExecReload, ExecStop …).
    Control,
}

/// How the manager ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShutdownKind {
    /// Switch the machine off.
    Poweroff,
    /// Start it again.
    Reboot,
    /// Stop it, power on.
    Halt,
    /// End the manager's process with this code (containers, user and subreaper managers).
    Exit(u8),
}

impl fmt::Display for ShutdownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poweroff => f.write_str("poweroff"),
            Self::Reboot => f.write_str("reboot"),
            Self::Halt => f.write_str("halt"),
            Self::Exit(code) => write!(f, "exit with code {code}"),
        }
    }
}
