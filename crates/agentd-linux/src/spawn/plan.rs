//! What a process is to be, resolved by the parent in full: no name is looked up after the birth.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use super::mounts::Namespaces;
use crate::landlock;
use crate::rlimit::Rlimit;
use crate::seccomp;

/// What is executed.
#[derive(Debug, Clone)]
pub enum Program<'a> {
    /// By its path. A script's interpreter is found by the kernel.
    Path(CString),
    /// What the descriptor is open on, whatever its name now is: the very file that was verified.
    Descriptor {
        /// Open for reading or with O_PATH.
        fd: BorrowedFd<'a>,
        /// How it is called in errors.
        name: CString,
        /// A script needs it: the interpreter opens `/dev/fd/N`, so `N` (the first number after the descriptors
        /// handed over) must survive the exec. A binary does not, and gets no such descriptor.
        keep_open: bool,
    },
}

/// One of descriptors 0, 1 and 2.
#[derive(Debug, Clone, Copy)]
pub enum Stdio<'a> {
    /// `/dev/null`.
    Null,
    /// A copy of this one.
    Fd(BorrowedFd<'a>),
    /// The manager's own.
    Inherit,
}

/// Where the process starts.
#[derive(Debug, Clone)]
pub struct WorkingDirectory {
    /// An absolute path.
    pub path: CString,
    /// `-` in front of it: if it cannot be entered, the process starts in `/`.
    pub optional: bool,
}

/// Who the process is. With one, all three user and group ids and the supplementary groups are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `User`.
    pub uid: u32,
    /// `Group`.
    pub gid: u32,
    /// All supplementary groups: the list replaces the manager's.
    pub groups: Vec<u32>,
}

/// How the kernel gives a process the processor, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduling {
    /// `SCHED_OTHER` and the like.
    pub policy: Policy,
    /// 1 to 99 for the real-time policies, 0 for the others.
    pub priority: i32,
    /// Children begin with the default policy.
    pub reset_on_fork: bool,
}

/// The policies of sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Policy {
    /// The default.
    Other = libc::SCHED_OTHER,
    /// For work that nobody waits for.
    Batch = libc::SCHED_BATCH,
    /// Only when nothing else runs.
    Idle = libc::SCHED_IDLE,
    /// Real time, until it gives way by itself.
    Fifo = libc::SCHED_FIFO,
    /// Real time, in turns.
    RoundRobin = libc::SCHED_RR,
}

/// Which memory nodes a process has its memory from, set_mempolicy(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// `MPOL_BIND` and the like.
    pub mode: NumaMode,
    /// The nodes that the mode is about.
    pub nodes: Vec<u32>,
}

/// The modes of set_mempolicy(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum NumaMode {
    /// As the kernel does by itself.
    Default = libc::MPOL_DEFAULT,
    /// One node first.
    Preferred = libc::MPOL_PREFERRED,
    /// These nodes alone.
    Bind = libc::MPOL_BIND,
    /// These nodes in turn.
    Interleave = libc::MPOL_INTERLEAVE,
    /// The node that it runs on.
    Local = libc::MPOL_LOCAL,
}

/// A session keyring of the process's own, session-keyring(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyring {
    /// An empty one.
    Empty,
    /// One in which the keys of its user are found too.
    Linked,
}

/// What becomes of a terminal that is another session's already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The spawn fails.
    Ask,
    /// It is taken away.
    Force,
}

/// Namespaces that others have too, setns(2).
#[derive(Debug, Clone, Copy, Default)]
pub struct Joined<'a> {
    /// A network.
    pub network: Option<BorrowedFd<'a>>,
    /// System V IPC and message queues.
    pub ipc: Option<BorrowedFd<'a>>,
}

/// Everything about a process that is to be. The fields are public, so that a caller fills in what it has an
/// opinion about over [`SpawnPlan::new`].
#[derive(Debug, Clone)]
pub struct SpawnPlan<'a> {
    /// What is executed.
    pub program: Program<'a>,
    /// The arguments, the program's name first.
    pub argv: Vec<CString>,
    /// The environment, whole: `NAME=value`. Nothing of the manager's is added.
    pub envp: Vec<CString>,
    /// Names of variables that get the process's own pid, such as `LISTEN_PID` and `WATCHDOG_PID`.
    pub pid_variables: Vec<CString>,
    /// Descriptors 0, 1 and 2.
    pub stdio: [Stdio<'a>; 3],
    /// Descriptors 3 and up, in this order. No other stays open.
    pub fds: Vec<BorrowedFd<'a>>,
    /// Entered as the user that the process becomes. None: `/`.
    pub working_directory: Option<WorkingDirectory>,
    /// File mode bits that are taken away at creation.
    pub umask: u32,
    /// None: as the manager.
    pub identity: Option<Identity>,
    /// The capabilities that the process can ever have, number N at bit N. None: as the manager.
    pub bounding_set: Option<u64>,
    /// Capabilities that survive the exec of a process that is not root. Each must be in the bounding set.
    pub ambient_set: u64,
    /// No exec may grant what the process does not have.
    pub no_new_privileges: bool,
    /// Limits that differ from the manager's.
    pub rlimits: Vec<Rlimit>,
    /// -20 to 19. None: as the manager.
    pub nice: Option<i32>,
    /// -1000 to 1000. None: as the manager.
    pub oom_score_adjust: Option<i32>,
    /// None: as the manager.
    pub scheduling: Option<Scheduling>,
    /// The processors that it may run on; empty: as the manager.
    pub affinity: Vec<u32>,
    /// None: as the manager.
    pub memory_policy: Option<MemoryPolicy>,
    /// The kinds of memory that a core dump of it has, core(5). None: as the manager.
    pub coredump_filter: Option<u32>,
    /// How late its timers may be, in nanoseconds, prctl(2) PR_SET_TIMERSLACK. None: as the manager.
    pub timer_slack: Option<u64>,
    /// As personality(2) takes it. None: as the manager.
    pub personality: Option<u32>,
    /// Class and priority as ioprio_set(2) takes them: the class times 8192 plus the priority. None: as the manager.
    pub io_priority: Option<i32>,
    /// What becomes `/`, after everything else was opened.
    pub root_directory: Option<CString>,
    /// The secure bits of capabilities(7). None: as the manager.
    pub secure_bits: Option<u32>,
    /// A session keyring of its own; with `Linked` that of its user hangs on it. None: the manager's.
    pub keyring: Option<Keyring>,
    /// SIGPIPE is ignored; all else has its default disposition.
    pub ignore_sigpipe: bool,
    /// Descriptor 0 becomes the controlling terminal. It needs a session of its own.
    pub terminal: Option<Terminal>,
    /// A session of its own, without a terminal.
    pub new_session: bool,
    /// The namespaces that it gets of its own.
    pub namespaces: Namespaces,
    /// Namespaces that there are already, which it enters in place of ones of its own.
    pub joined: Joined<'a>,
    /// Filters of its system calls, in the order in which they are added, each with the key that it is for. A
    /// process that may not add them otherwise gives up new privileges first, seccomp(2).
    pub filters: Vec<(&'static str, seccomp::Program)>,
    /// What Landlock holds. A process that may not ask for it otherwise gives up new privileges first, landlock(7).
    pub landlock: Option<landlock::Rules>,
    /// The folder of the cgroup that it is born in. None: the manager's.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// It is born in the manager's cgroup and moves there before its exec: what is born in a cgroup that was killed before
    /// may be killed too, see [`Leaf::was_killed`](crate::cgroup::Leaf::was_killed).
    pub moves: bool,
}

impl<'a> SpawnPlan<'a> {
    /// A plan with a session of its own, all standard descriptors at `/dev/null`, an empty environment, umask 022, and all else
    /// as the manager has it.
    #[must_use]
    pub fn new(program: Program<'a>, argv: Vec<CString>) -> Self {
        Self {
            program,
            argv,
            envp: Vec::new(),
            pid_variables: Vec::new(),
            stdio: [Stdio::Null; 3],
            fds: Vec::new(),
            working_directory: None,
            umask: 0o022,
            identity: None,
            bounding_set: None,
            ambient_set: 0,
            no_new_privileges: false,
            rlimits: Vec::new(),
            nice: None,
            oom_score_adjust: None,
            scheduling: None,
            affinity: Vec::new(),
            memory_policy: None,
            coredump_filter: None,
            timer_slack: None,
            personality: None,
            io_priority: None,
            root_directory: None,
            secure_bits: None,
            keyring: None,
            ignore_sigpipe: false,
            terminal: None,
            new_session: true,
            namespaces: Namespaces::default(),
            joined: Joined::default(),
            filters: Vec::new(),
            landlock: None,
            cgroup: None,
            moves: false,
        }
    }

    /// How the program is called in errors.
    #[must_use]
    pub fn program_name(&self) -> String {
        match &self.program {
            Program::Path(path) => path.to_string_lossy().into_owned(),
            Program::Descriptor { name, .. } => name.to_string_lossy().into_owned(),
        }
    }

    /// The sources of descriptors 0 and up, in order. `null` stands for `/dev/null`.
    pub(super) fn sources(&self, null: RawFd) -> Vec<RawFd> {
        let stdio = self.stdio.iter().zip(0..).map(|(stdio, number)| match stdio {
            Stdio::Null => null,
            Stdio::Fd(fd) => fd.as_raw_fd(),
            Stdio::Inherit => number,
        });
        let script = match &self.program {
            Program::Descriptor { fd, keep_open: true, .. } => Some(fd.as_raw_fd()),
            Program::Descriptor { keep_open: false, .. } | Program::Path(_) => None,
        };
        stdio.chain(self.fds.iter().map(AsRawFd::as_raw_fd)).chain(script).collect()
    }
}

impl SpawnPlan<'_> {
    /// The same plan for as long as anybody likes.
    ///
    /// # Safety
    /// Its descriptors must not be used once what it borrows them from has ended.
    pub(super) unsafe fn outlive(self) -> SpawnPlan<'static> {
        // SAFETY: a lifetime changes nothing of how a value lies in memory, and the caller vouches for what it means.
        unsafe { std::mem::transmute::<SpawnPlan<'_>, SpawnPlan<'static>>(self) }
    }
}
