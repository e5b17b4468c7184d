//! What the world must do. The shell's `perform/` is the only place where these are carried out, in order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentd_unit::{ExecKind, Realtime, Signal, Unit, UnitName};

use crate::clock::Monotonic;
use crate::event::{ClaimedMain, ExitStatus, ShutdownKind};
use crate::ids::{AttachmentId, EffectId, InvocationId, JobId, RequestId};
use crate::memo::Memo;
use crate::state::ServiceResult;

/// Something that the shell must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Execute one command of a unit. Closed by [`Event::Spawned`](crate::Event::Spawned); if that says Ok, one
    /// [`Event::Exited`](crate::Event::Exited) follows.
    Spawn(Box<Spawn>),
    /// Send a signal; a target that is gone is no error. After any signal but SIGKILL and SIGCONT, stopped
    /// processes get SIGCONT so that they can act on it where `cont` says so.
    Kill {
        /// The run whose processes are meant.
        run: InvocationId,
        /// Which of them.
        target: KillTarget,
        /// The signal.
        signal: Signal,
        /// Send SIGCONT afterwards.
        cont: bool,
    },
    /// Freeze the whole tree of the run, or let it go on (cgroup.freeze).
    Freeze {
        /// The run.
        run: InvocationId,
        /// Whether it stands still from now on.
        frozen: bool,
    },
    /// SIGKILL the whole tree of the run at once (cgroup.kill).
    KillAll {
        /// The run.
        run: InvocationId,
    },
    /// Say which processes SIGKILL did not end in time, and in what state they are.
    NameSurvivors {
        /// The run.
        run: InvocationId,
    },
    /// Tell when no process of the run is left: at once if that is so already. Closed by
    /// [`Event::Emptied`](crate::Event::Emptied).
    AwaitEmpty {
        /// The name of the effect.
        id: EffectId,
        /// The run.
        run: InvocationId,
    },
    /// Look which process of the run is the main one; it must live in the run, unless root says otherwise. One that is found is held from then on
    /// under the name that the answer gives, and one [`Event::Exited`](crate::Event::Exited) follows. Closed by
    /// [`Event::MainFound`](crate::Event::MainFound). Where a PID file does not say it yet,
    /// [`Event::PidFileChanged`](crate::Event::PidFileChanged) tells when it may.
    FindMain {
        /// The name of the effect.
        id: EffectId,
        /// The run.
        run: InvocationId,
        /// Who says which it is.
        by: MainSource,
    },
    /// Send the main process the signal that has it reload, if it handles that signal: unhandled, it would be its end.
    /// Closed by [`Event::ReloadAsked`](crate::Event::ReloadAsked).
    AskReload {
        /// The name of the effect.
        id: EffectId,
        /// The run.
        run: InvocationId,
        /// The main process.
        process: EffectId,
        /// The signal.
        signal: Signal,
    },
    /// Look whether the unit's conditions and asserts hold. Closed by [`Event::Checked`](crate::Event::Checked).
    Check {
        /// The name of the effect.
        id: EffectId,
        /// The definition that the start goes by.
        unit: Arc<Unit>,
    },
    /// The run is over: remove its cgroup, close what was held for it. Nothing of it is spoken of any more.
    Release {
        /// The run.
        run: InvocationId,
    },
    /// Do what a notification asked for that something came along with: its sender may say so.
    TakeAttachment {
        /// What came along.
        id: AttachmentId,
        /// The unit whose store it is for.
        unit: UnitName,
    },
    /// Let go what came along with a notification: its sender may not say anything, or its run is over.
    DropAttachment {
        /// What came along.
        id: AttachmentId,
    },
    /// A request became a job (for callers that do not wait). The final answer still follows.
    Accepted {
        /// The request.
        request: RequestId,
        /// Its job.
        job: JobId,
    },
    /// The final answer to a request that became a job.
    Finished {
        /// The request.
        request: RequestId,
        /// The unit of the job.
        unit: UnitName,
        /// What came of it.
        result: JobResult,
    },
    /// The final answer to a request that is done at once.
    Done {
        /// The request.
        request: RequestId,
    },
    /// The final answer to a request that cannot be carried out.
    Refused {
        /// The request.
        request: RequestId,
        /// Why.
        error: RequestError,
    },
    /// Keep when a persistent timer last fired, over reboots.
    SaveStamp {
        /// The timer.
        timer: UnitName,
        /// When it fired.
        at: Realtime,
    },
    /// Keep this of a unit for a manager that comes after this one in the same boot; nothing, if there is none.
    Keep {
        /// Which unit.
        unit: UnitName,
        /// What to keep.
        memo: Option<Box<Memo>>,
    },
    /// Hold on to what another manager of this boot began: the run's cgroup, its output, its main process. If that one
    /// has ended, one [`Event::Exited`](crate::Event::Exited) says so, now or when it does.
    TakeOver {
        /// The name of the main process from now on.
        id: EffectId,
        /// The run.
        run: InvocationId,
        /// The definition that the run lives by from now on.
        unit: Arc<Unit>,
        /// The pid of the main process, if there is one.
        main: Option<u32>,
    },
    /// Make the sockets of a unit and listen on them; they are kept until [`Effect::Unlisten`]. Closed by
    /// [`Event::Listened`](crate::Event::Listened).
    Listen {
        /// The name of the effect.
        id: EffectId,
        /// The socket unit.
        unit: Arc<Unit>,
    },
    /// Go on with the sockets that another manager of this boot made for a unit; those that are not there any more are
    /// made. Closed by [`Event::Listened`](crate::Event::Listened).
    Relisten {
        /// The name of the effect.
        id: EffectId,
        /// The socket unit.
        unit: Arc<Unit>,
    },
    /// Go on with the connection that another manager of this boot took for an instance.
    Reconnect {
        /// The name of the connection from now on.
        connection: EffectId,
        /// The instance.
        unit: UnitName,
    },
    /// Close the sockets of a unit, and take its files away where it says so. Nothing more is told of it.
    Unlisten {
        /// The socket unit.
        unit: UnitName,
    },
    /// Tell, once, when something comes in: at once if it is there already. See
    /// [`Event::Traffic`](crate::Event::Traffic).
    Arm {
        /// The socket unit.
        unit: UnitName,
    },
    /// Do not tell any more.
    Disarm {
        /// The socket unit.
        unit: UnitName,
    },
    /// Throw away what waits at the sockets, `FlushPending`.
    Flush {
        /// The socket unit.
        unit: UnitName,
    },
    /// Take one connection from a socket and load the instance for it. Closed by
    /// [`Event::Accepted`](crate::Event::Accepted).
    Accept {
        /// The name of the effect, and of the connection.
        id: EffectId,
        /// The socket unit.
        unit: Arc<Unit>,
        /// How many it took before.
        number: u64,
    },
    /// Close a connection.
    Hangup {
        /// The effect that accepted it.
        connection: EffectId,
    },
    /// Wait, from now on and once, for what a path unit names: at once if it is there already. Closed by
    /// [`Event::Listened`](crate::Event::Listened); see [`Event::Traffic`](crate::Event::Traffic).
    Watch {
        /// The name of the effect.
        id: EffectId,
        /// The path unit.
        unit: Arc<Unit>,
        /// It is its first wait since its start: folders are made.
        first: bool,
    },
    /// Do not wait any more.
    Unwatch {
        /// The path unit.
        unit: UnitName,
    },
    /// Say something, once, where it happened.
    Log(Record),
    /// Everything is stopped: end the machine or the manager.
    Shutdown {
        /// How.
        kind: ShutdownKind,
        /// What a reboot hands to reboot(2), `RebootArgument`.
        argument: Option<String>,
    },
}

/// One command to execute, with all that the shell needs to know and nothing to decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    /// The name of the effect and of the process.
    pub id: EffectId,
    /// The run it belongs to. The first spawn of a run makes its cgroup and folders.
    pub run: InvocationId,
    /// The definition that this run lives by.
    pub unit: Arc<Unit>,
    /// Which list of commands.
    pub kind: ExecKind,
    /// Which command of the list. A Python agent has one ExecStart, made by the shell.
    pub index: usize,
    /// What the environment says besides the unit's own.
    pub environment: SpawnEnvironment,
    /// The socket units whose descriptors its main process gets, in order.
    pub sockets: Vec<UnitName>,
    /// The connection that it was started for.
    pub connection: Option<EffectId>,
}

/// Facts for the environment of a process, systemd.exec(5) "ENVIRONMENT VARIABLES IN SPAWNED PROCESSES".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpawnEnvironment {
    /// `NOTIFY_SOCKET` is set: the service may notify.
    pub notify: bool,
    /// `WATCHDOG_USEC`, `WATCHDOG_PID`: main process only.
    pub watchdog: Option<Duration>,
    /// `MAINPID`: for every command but the main one, while there is a main process.
    pub main_pid: Option<u32>,
    /// `SERVICE_RESULT`: for ExecStop and ExecStopPost.
    pub service_result: Option<ServiceResult>,
    /// `EXIT_CODE`, `EXIT_STATUS`: how the main process ended, for ExecStop and ExecStopPost.
    pub exit_status: Option<ExitStatus>,
    /// `MONITOR_UNIT`, `MONITOR_SERVICE_RESULT`, `MONITOR_INVOCATION_ID` …: the unit whose end triggered this one
    /// by OnFailure or OnSuccess.
    pub monitor: Option<Box<Monitor>>,
    /// `AGENTD_GENERATION`: how often this unit was started, counted from 1, as this manager knows.
    pub generation: u64,
    /// `TRIGGER_UNIT` and what is known of it: the timer, socket or path unit that started it.
    pub trigger: Option<Box<Trigger>>,
}

/// The timer, socket or path unit that a start is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The unit itself.
    pub unit: UnitName,
    /// `TRIGGER_PATH`: where what a path unit waits for has happened.
    pub path: Option<String>,
    /// `TRIGGER_TIMER_REALTIME_USEC`, `TRIGGER_TIMER_MONOTONIC_USEC`: when a timer was due.
    pub at: Option<(Realtime, Monotonic)>,
}

impl Trigger {
    pub(crate) fn new(unit: UnitName) -> Self {
        Self { unit, path: None, at: None }
    }
}

/// Who triggered an OnFailure or OnSuccess unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// The unit that ended.
    pub unit: UnitName,
    /// Its run.
    pub run: InvocationId,
    /// What came of it.
    pub result: ServiceResult,
    /// How its main process ended.
    pub exit_status: Option<ExitStatus>,
    /// How many automatic restarts it had.
    pub restarts: u32,
}

/// Who says which process is the main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MainSource {
    /// The file that `PIDFile` names.
    PidFile,
    /// Nobody: it is the only one whose parent is the manager.
    Guess,
    /// The service itself, with `MAINPID=`.
    Said(ClaimedMain),
}

/// Who gets a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KillTarget {
    /// One process that was spawned, through its pidfd.
    Process(EffectId),
    /// Every process of the run.
    All,
}

/// What came of a job, in systemd's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobResult {
    /// Done.
    Done,
    /// Another job or a person called it off.
    Canceled,
    /// It took too long.
    Timeout,
    /// The unit failed.
    Failed,
    /// Something that it requires failed.
    Dependency,
    /// Nothing to do: a condition did not hold, or the unit is not active.
    Skipped,
    /// The unit cannot do that (reload).
    Invalid,
    /// An assert of the unit does not hold.
    Assert,
}

impl JobResult {
    /// systemd's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Canceled => "canceled",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::Dependency => "dependency",
            Self::Skipped => "skipped",
            Self::Invalid => "invalid",
            Self::Assert => "assert",
        }
    }
}

impl fmt::Display for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a request cannot be carried out. `Display` is the sentence that the person reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// No file, and nothing names it.
    NotFound(UnitName),
    /// It, or something that it requires, did not load; with the reason.
    LoadFailed(UnitName, String),
    /// It, or something that it requires, is masked.
    Masked(UnitName),
    /// It requires a unit that does not exist.
    RequirementMissing {
        /// Which one requires.
        unit: UnitName,
        /// What is missing.
        missing: UnitName,
    },
    /// A cycle of hard order edges; the path, first member repeated at the end.
    Cycle(Vec<UnitName>),
    /// The transaction wants two things of one unit that cannot both be.
    Contradiction(UnitName),
    /// A job in the way, and the mode is fail.
    Conflict(UnitName, JobKindName),
    /// RefuseManualStart or RefuseManualStop.
    ManualRefused(UnitName),
    /// To isolate a unit stops nearly everything else, and this one has no AllowIsolate.
    NoIsolation(UnitName),
    /// The unit cannot do that: reload without ExecReload, start of a template …
    NotApplicable(UnitName, &'static str),
    /// Kill, but no process is there.
    NoProcess(UnitName),
    /// Cancel, but there is no such job.
    NoJob(JobId),
    /// The manager is shutting down.
    ShuttingDown,
}

/// The word of a job's kind.
pub type JobKindName = &'static str;

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(unit) if unit.is_template() => {
                let (prefix, kind) = (unit.prefix(), unit.unit_type());
                write!(f, "Unit {unit} is a template; name an instance of it, as in {prefix}@1.{kind}.")
            }
            Self::NotFound(unit) => write!(f, "Unit {unit} not found."),
            Self::LoadFailed(unit, reason) => write!(f, "Unit {unit} could not be loaded: {reason}"),
            Self::Masked(unit) => write!(f, "Unit {unit} is masked."),
            Self::RequirementMissing { unit, missing } => {
                write!(f, "Unit {missing} not found, but {unit} requires it.")
            }
            Self::Cycle(path) => {
                f.write_str("Units require each other in a cycle: ")?;
                for (i, unit) in path.iter().enumerate() {
                    write!(f, "{}{unit}", if i == 0 { "" } else { " -> " })?;
                }
                f.write_str("; take one After or Before between them out.")
            }
            Self::Contradiction(unit) => {
                write!(f, "Unit {unit} would have to be started and stopped at once.")
            }
            Self::Conflict(unit, kind) => {
                write!(f, "Transaction is destructive: unit {unit} has a {kind} job that is in the way.")
            }
            Self::ManualRefused(unit) => {
                write!(f, "Operation refused, unit {unit} may be requested by dependency only.")
            }
            Self::NoIsolation(unit) => write!(
                f,
                "Operation refused, unit {unit} may not be isolated; AllowIsolate = true in [Unit] of its file would allow \
                 it."
            ),
            Self::NotApplicable(unit, why) => write!(f, "Job type not applicable for unit {unit}: {why}."),
            Self::NoProcess(unit) => write!(f, "Unit {unit} has no such process."),
            Self::NoJob(job) => write!(f, "Job {job} does not exist."),
            Self::ShuttingDown => f.write_str("The manager is shutting down."),
        }
    }
}

/// How loud a record is, syslog(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// 3.
    Error,
    /// 4.
    Warning,
    /// 5.
    Notice,
    /// 6.
    Info,
    /// 7.
    #[default]
    Debug,
}

/// One log record of the manager about a unit or about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// How loud.
    pub level: Level,
    /// The unit it is about.
    pub unit: Option<UnitName>,
    /// Its run.
    pub run: Option<InvocationId>,
    /// `MESSAGE_ID` where systemd or we have one for this kind of message: 32 hex digits.
    pub message_id: Option<&'static str>,
    /// The sentence.
    pub text: String,
}
