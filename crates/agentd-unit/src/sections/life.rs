//! What `[Service]` says about starts, ends and restarts beyond the first keys, systemd.service(5): one field a key.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::Preserve;
use crate::exec::ExecCommand;
use crate::names::UnitNames;
use crate::signal::Signal;
use crate::words::Words;

/// The finer rules of a service's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// `ExecCondition`: run before everything else; 1 to 254 skips the start.
    pub exec_condition: Vec<ExecCommand>,
    /// `SuccessExitStatus`: ends that count as clean, besides 0 and the signals of a stop.
    pub success: ExitStatusSet,
    /// `RestartPreventExitStatus`: ends that no restart follows.
    pub restart_prevent: ExitStatusSet,
    /// `RestartForceExitStatus`: ends that a restart always follows.
    pub restart_force: ExitStatusSet,
    /// `RestartMode`.
    pub restart_mode: RestartMode,
    /// `TimeoutAbortSec`: how long after a missed watchdog; `None`: as `TimeoutStopSec`.
    pub timeout_abort: Option<Option<Duration>>,
    /// `TimeoutStartFailureMode`: what a start that takes too long brings.
    pub timeout_start_mode: TimeoutMode,
    /// `TimeoutStopFailureMode`: what a stop that takes too long brings.
    pub timeout_stop_mode: TimeoutMode,
    /// `RuntimeRandomizedExtraSec`: at most so much is added to `RuntimeMaxSec`.
    pub runtime_extra: Duration,
    /// `ExitType`: whether the end of the main process or of all is the end.
    pub exit_type: ExitType,
    /// `RootDirectoryStartOnly`: `RootDirectory` holds for `ExecStart` alone.
    pub root_start_only: bool,
    /// `NonBlocking`: `O_NONBLOCK` on the descriptors that are handed over.
    pub non_blocking: bool,
    /// `PIDFile`: where a daemon that goes into the background writes the number of its main process.
    pub pid_file: Option<PathBuf>,
    /// `GuessMainPID`: without one, guess which of its processes is the main one.
    pub guess_main_pid: Option<bool>,
    /// `FileDescriptorStoreMax`: so many descriptors are kept for it over restarts.
    pub descriptor_store_max: u32,
    /// `FileDescriptorStorePreserve`: whether they outlive the run.
    pub descriptor_store_preserve: Preserve,
    /// `SendSIGHUP`: the stop sends SIGHUP too, behind its signal.
    pub send_sighup: bool,
    /// `SendSIGKILL`: `None`: what is left after `TimeoutStopSec` is killed.
    pub send_sigkill: Option<bool>,
    /// `ReloadSignal`: what has a service of `Type=notify-reload` reload; `None`: SIGHUP.
    pub reload_signal: Option<Signal>,
    /// `RestartKillSignal`: what a restart sends; `None`: as a stop.
    pub restart_kill_signal: Option<Signal>,
    /// `FinalKillSignal`: what ends what is left; `None`: SIGKILL.
    pub final_kill_signal: Option<Signal>,
    /// `WatchdogSignal`: what a missed watchdog sends; `None`: SIGABRT.
    pub watchdog_signal: Option<Signal>,
    /// `Sockets`: the sockets whose descriptors it gets, besides the one of its name.
    pub sockets: UnitNames,
    /// `OpenFile`: what is opened for its main process, behind the sockets and what it has stored.
    pub open_files: Vec<OpenFile>,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            exec_condition: Vec::new(),
            success: ExitStatusSet::default(),
            restart_prevent: ExitStatusSet::default(),
            restart_force: ExitStatusSet::default(),
            restart_mode: RestartMode::default(),
            timeout_abort: None,
            timeout_start_mode: TimeoutMode::default(),
            timeout_stop_mode: TimeoutMode::default(),
            runtime_extra: Duration::ZERO,
            exit_type: ExitType::default(),
            root_start_only: false,
            non_blocking: false,
            pid_file: None,
            guess_main_pid: None,
            descriptor_store_max: 0,
            descriptor_store_preserve: Preserve::Restart,
            send_sighup: false,
            send_sigkill: None,
            reload_signal: None,
            restart_kill_signal: None,
            final_kill_signal: None,
            watchdog_signal: None,
            sockets: UnitNames::new(),
            open_files: Vec::new(),
        }
    }
}

/// Ends of processes: exit codes and signals, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExitStatusSet {
    /// Exit codes.
    pub codes: BTreeSet<u8>,
    /// Numbers of signals.
    pub signals: BTreeSet<i32>,
}

/// `RestartMode`, systemd.service(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestartMode {
    /// Through `failed` or `inactive`.
    #[default]
    Normal,
    /// At once, so that what depends on it sees no end.
    Direct,
}

impl Words for RestartMode {
    const WORDS: &'static [(&'static str, Self)] = &[("normal", Self::Normal), ("direct", Self::Direct)];
}

/// `TimeoutStartFailureMode` and `TimeoutStopFailureMode`, systemd.service(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutMode {
    /// `KillSignal`.
    #[default]
    Terminate,
    /// `WatchdogSignal`.
    Abort,
    /// `FinalKillSignal` at once.
    Kill,
}

impl Words for TimeoutMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("terminate", Self::Terminate), ("abort", Self::Abort), ("kill", Self::Kill)];
}

/// `ExitType`, systemd.service(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitType {
    /// When the main process ends.
    #[default]
    Main,
    /// When the last process of the cgroup ends.
    Cgroup,
}

impl Words for ExitType {
    const WORDS: &'static [(&'static str, Self)] = &[("main", Self::Main), ("cgroup", Self::Cgroup)];
}

/// One file or socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is called in `LISTEN_FDNAMES`.
    pub name: String,
    /// How it is opened; a socket is connected to in any case.
    pub access: FileAccess,
    /// `graceful`: without it the service starts all the same.
    pub graceful: bool,
}

/// How a file is opened, open(2). None makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileAccess {
    /// For reading and writing.
    #[default]
    ReadWrite,
    /// `read-only`.
    ReadOnly,
    /// `append`: for reading, and writing at its end.
    Append,
    /// `truncate`: for reading and writing, emptied first.
    Truncate,
}

impl FileAccess {
    /// The word of the key; none for the usual one.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::ReadWrite => None,
            Self::ReadOnly => Some("read-only"),
            Self::Append => Some("append"),
            Self::Truncate => Some("truncate"),
        }
    }
}
