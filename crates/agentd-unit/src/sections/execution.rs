//! What `[Service]` says about the processes themselves, systemd.exec(5): one field a key.

use std::path::PathBuf;
use std::time::Duration;

use super::Principal;
use crate::words::Words;

/// The execution environment of a service's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// `UMask`: file mode bits that are taken away at creation; default 0022.
    pub umask: u32,
    /// `LimitCPU`, `LimitNOFILE` …: one entry a resource.
    pub limits: Vec<ResourceLimit>,
    /// `Nice`: -20 to 19.
    pub nice: Option<i32>,
    /// `OOMScoreAdjust`: -1000 to 1000.
    pub oom_score_adjust: Option<i32>,
    /// `CPUSchedulingPolicy`.
    pub cpu_policy: Option<CpuPolicy>,
    /// `CPUSchedulingPriority`: 1 to 99, for `fifo` and `rr`.
    pub cpu_priority: Option<u32>,
    /// `CPUSchedulingResetOnFork`: children begin with the default policy.
    pub cpu_reset_on_fork: bool,
    /// `CPUAffinity`: the processors that it may run on, sorted; empty: as the manager.
    pub cpu_affinity: Vec<u32>,
    /// `IOSchedulingClass`.
    pub io_class: Option<IoClass>,
    /// `IOSchedulingPriority`: 0, the highest, to 7.
    pub io_priority: Option<u32>,
    /// `CoredumpFilter`: the kinds of memory that a core dump has, core(5), as bits.
    pub coredump_filter: Option<u32>,
    /// `TimerSlackNSec`: how much later than asked its timers may fire, in nanoseconds.
    pub timer_slack: Option<u64>,
    /// `Personality`.
    pub personality: Option<Personality>,
    /// `NUMAPolicy`.
    pub numa_policy: Option<NumaPolicy>,
    /// `NUMAMask`: the memory nodes of the policy, sorted.
    pub numa_nodes: Vec<u32>,
    /// `ExecSearchPath`: where programs without a path are looked for, in place of `PATH`.
    pub search_path: Vec<PathBuf>,
    /// `DynamicUser`: a user of its own, which exists as long as the unit runs.
    pub dynamic_user: bool,
    /// `SupplementaryGroups`: besides those of the user.
    pub supplementary_groups: Vec<Principal>,
    /// `EnvironmentFile`: read at each start, after `Environment`, in this order.
    pub environment_files: Vec<EnvironmentFile>,
    /// `PassEnvironment`: variables of the manager's own that are handed on.
    pub pass_environment: Vec<String>,
    /// `UnsetEnvironment`: `NAME`, or `NAME=value` where only that value is taken out.
    pub unset_environment: Vec<String>,
    /// `WorkingDirectory=~`: the home of the user.
    pub in_home: bool,
    /// `RootDirectory`: what its processes see as `/`.
    pub root_directory: Option<PathBuf>,
    /// `IgnoreSIGPIPE`: default yes.
    pub ignore_sigpipe: bool,
    /// `SecureBits`, capabilities(7), as the kernel numbers them.
    pub secure_bits: u32,
    /// `StandardInput`.
    pub input: Input,
    /// `StandardInputText` and `StandardInputData`, in the order of the file.
    pub input_data: Vec<u8>,
    /// `KeyringMode`: default private, and inherit in a user manager.
    pub keyring: Option<KeyringMode>,
    /// `StandardOutput` as it was written; default inherit. [`Execution::output`] is what counts.
    pub output: Output,
    /// `StandardError`: default as standard output.
    pub error: Output,
    /// `TTYPath`: default `/dev/console`.
    pub tty: PathBuf,
    /// `SyslogIdentifier`: default the unit's prefix.
    pub syslog_identifier: Option<String>,
    /// `LogLevelMax`: output that is less important than this is dropped, 0 to 7.
    pub log_level_max: Option<u8>,
    /// `SyslogLevel`: the level of lines that name none, 0 to 7; default info.
    pub log_level: u8,
    /// `SyslogFacility`, syslog(3) as a number; default daemon.
    pub log_facility: u8,
    /// `SyslogLevelPrefix`: `<N>` in front of a line is its level.
    pub log_prefixes: bool,
    /// `LogRateLimitIntervalSec`; zero: no limit.
    pub log_rate_interval: Option<Duration>,
    /// `LogRateLimitBurst`; zero: no limit.
    pub log_rate_burst: Option<u32>,
    /// `RuntimeDirectory`: below `/run`, gone when the unit stops.
    pub runtime_directory: Folders,
    /// `RuntimeDirectoryPreserve`.
    pub runtime_preserve: Preserve,
    /// `StateDirectoryMode`; the folders are [`ServiceSection::state_directory`](super::ServiceSection).
    pub state_directory_mode: u32,
    /// `CacheDirectory`: below `/var/cache`.
    pub cache_directory: Folders,
    /// `LogsDirectory`: below `/var/log`.
    pub logs_directory: Folders,
    /// `ConfigurationDirectory`: below `/etc`; made, and left to its owner.
    pub configuration_directory: Folders,
}

impl Execution {
    /// Where descriptor 1 leads. `inherit`, and nothing said, is what descriptor 0 is where that can be written too: a
    /// socket, a terminal, a descriptor by its name. Elsewhere it is the log, as in systemd.
    #[must_use]
    pub const fn output(&self) -> &Output {
        match (&self.output, &self.input) {
            (Output::Inherit, Input::Null | Input::File(_) | Input::Data) => &Output::Log,
            (output, _) => output,
        }
    }

    /// `ExecSearchPath` as `PATH` has it; none where the unit does not say it.
    #[must_use]
    pub fn search_path(&self) -> Option<String> {
        let parts: Vec<String> = self.search_path.iter().map(|path| path.display().to_string()).collect();
        (!parts.is_empty()).then(|| parts.join(":"))
    }
}

/// The mode of a folder that no key names.
pub const FOLDER_MODE: u32 = 0o755;

impl Default for Execution {
    fn default() -> Self {
        Self {
            umask: 0o022,
            limits: Vec::new(),
            nice: None,
            oom_score_adjust: None,
            cpu_policy: None,
            cpu_priority: None,
            cpu_reset_on_fork: false,
            cpu_affinity: Vec::new(),
            io_class: None,
            io_priority: None,
            coredump_filter: None,
            timer_slack: None,
            personality: None,
            numa_policy: None,
            numa_nodes: Vec::new(),
            search_path: Vec::new(),
            dynamic_user: false,
            supplementary_groups: Vec::new(),
            environment_files: Vec::new(),
            pass_environment: Vec::new(),
            unset_environment: Vec::new(),
            in_home: false,
            root_directory: None,
            ignore_sigpipe: true,
            secure_bits: 0,
            input: Input::Null,
            input_data: Vec::new(),
            keyring: None,
            output: Output::Inherit,
            error: Output::Inherit,
            tty: "/dev/console".into(),
            syslog_identifier: None,
            log_level_max: None,
            log_level: 6,
            log_facility: 3,
            log_prefixes: true,
            log_rate_interval: None,
            log_rate_burst: None,
            runtime_directory: Folders::default(),
            runtime_preserve: Preserve::No,
            state_directory_mode: FOLDER_MODE,
            cache_directory: Folders::default(),
            logs_directory: Folders::default(),
            configuration_directory: Folders::default(),
        }
    }
}

/// The folders that one key makes, and their mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Paths below the key's own folder.
    pub names: Vec<PathBuf>,
    /// The mode; default 0755.
    pub mode: u32,
}

impl Default for Folders {
    fn default() -> Self {
        Self { names: Vec::new(), mode: FOLDER_MODE }
    }
}

/// A resource that setrlimit(2) limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named as its key: LimitCPU, LimitFSIZE …")]
pub enum LimitedResource {
    Cpu,
    Fsize,
    Data,
    Stack,
    Core,
    Rss,
    Nofile,
    As,
    Nproc,
    Memlock,
    Locks,
    Sigpending,
    Msgqueue,
    Nice,
    Rtprio,
    Rttime,
}

/// One `Limit…` key, in the unit of the resource; `u64::MAX` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimit {
    /// What is limited.
    pub resource: LimitedResource,
    /// What the kernel enforces.
    pub soft: u64,
    /// Up to where a process may raise its soft limit.
    pub hard: u64,
}

/// `CPUSchedulingPolicy`, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPolicy {
    /// The default of the kernel.
    Other,
    /// For work that nobody waits for.
    Batch,
    /// Only when nothing else runs.
    Idle,
    /// Real time, until it gives way by itself.
    Fifo,
    /// Real time, in turns with those of its priority.
    RoundRobin,
}

impl Words for CpuPolicy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("other", Self::Other),
        ("batch", Self::Batch),
        ("idle", Self::Idle),
        ("fifo", Self::Fifo),
        ("rr", Self::RoundRobin),
    ];
}

/// `Personality`: what uname(2) says the machine is, personality(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Personality {
    /// What it is.
    Native,
    /// Its elder with words of 32 bits.
    Elder,
}

impl Words for Personality {
    #[cfg(target_arch = "x86_64")]
    const WORDS: &'static [(&'static str, Self)] = &[("x86-64", Self::Native), ("x86", Self::Elder)];
    #[cfg(not(target_arch = "x86_64"))]
    const WORDS: &'static [(&'static str, Self)] = &[("arm64", Self::Native), ("arm", Self::Elder)];
}

/// `NUMAPolicy`: which nodes its memory comes from, set_mempolicy(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumaPolicy {
    /// As the kernel does by itself.
    Default,
    /// One node first.
    Preferred,
    /// These nodes alone.
    Bind,
    /// These nodes in turn.
    Interleave,
    /// The node that it runs on.
    Local,
}

impl Words for NumaPolicy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("default", Self::Default),
        ("preferred", Self::Preferred),
        ("bind", Self::Bind),
        ("interleave", Self::Interleave),
        ("local", Self::Local),
    ];
}

/// `IOSchedulingClass`, ioprio_set(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    /// By the nice value.
    None,
    /// Before all others.
    Realtime,
    /// The usual one.
    BestEffort,
    /// When nobody else wants the disk.
    Idle,
}

impl Words for IoClass {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("realtime", Self::Realtime),
        ("best-effort", Self::BestEffort),
        ("idle", Self::Idle),
    ];
}

/// One `EnvironmentFile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFile {
    /// The file.
    pub path: PathBuf,
    /// `-`: it may be missing.
    pub optional: bool,
}

/// `StandardInput`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// `/dev/null`.
    Null,
    /// `socket`: the connection, or the one socket, that it was started for.
    Socket,
    /// `tty`, `tty-force`, `tty-fail`: the terminal of `TTYPath`, as the controlling one.
    Terminal(Seize),
    /// `file:`: this file.
    File(PathBuf),
    /// `data`: what StandardInputText and StandardInputData say.
    Data,
    /// `fd:`: the descriptor of this name among those that the service is passed.
    Named(String),
}

/// `KeyringMode`: which ring the kernel's keys of a process hang on, session-keyring(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyringMode {
    /// The manager's.
    Inherit,
    /// One of its own.
    Private,
    /// One of its own, in which the keys of its user are found too.
    Shared,
}

impl Words for KeyringMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("inherit", Self::Inherit), ("private", Self::Private), ("shared", Self::Shared)];
}

/// What becomes of a terminal that is another session's already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seize {
    /// `tty-fail`, and `tty` too, as nothing here could wait: the start fails.
    Ask,
    /// `tty-force`: it is taken away.
    Force,
}

/// `StandardOutput` and `StandardError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// `inherit`: where standard output goes; for standard output itself, where standard input comes from.
    Inherit,
    /// `/dev/null`.
    Null,
    /// `socket`: the connection, or the one socket, that it was started for.
    Socket,
    /// `journal`: the journal where it is there, else the embedded log.
    Log,
    /// `kmsg`: the kernel's log.
    KernelLog,
    /// `tty`: the terminal of `TTYPath`.
    Terminal,
    /// `file:`: this file from its beginning, its old content left behind the new.
    File(PathBuf),
    /// `append:`: the end of this file.
    Append(PathBuf),
    /// `truncate:`: this file, emptied at each start.
    Truncate(PathBuf),
    /// `fd:`: the descriptor of this name among those that the service is passed.
    Named(String),
}

/// `RuntimeDirectoryPreserve`: whether the folders outlive the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preserve {
    /// They go when the run ends.
    #[default]
    No,
    /// They stay over an automatic restart.
    Restart,
    /// They stay.
    Yes,
}

impl Words for Preserve {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("restart", Self::Restart), ("yes", Self::Yes)];
}
