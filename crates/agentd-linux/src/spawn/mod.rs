//! Making a process: one prepared plan, one birth, one walk to the exec.
//!
//! A [`SpawnPlan`] says everything about a process that is to be. [`Spawner::spawn`] turns it into arrays that the
//! kernel takes, gives birth with a pidfd and into the cgroup, and comes back when the program runs or a step has
//! failed.
//!
//! # Two ways to be born
//!
//! A process that keeps the manager's user and group shares its memory until the exec (CLONE_VM | CLONE_VFORK),
//! which saves copying the page tables. One that changes them gets a copy: on shared memory the change would make
//! the *manager* undumpable, and a process of that user could stop the child with SIGSTOP and the manager with it.
//! So does one that changes what the kernel keeps with the memory, or that waits for us to do something for it.
//! Of such a birth the outcome comes over a close-on-exec pipe, within [`EXEC_TIMEOUT`].
//!
//! Who shares the memory shares the table of descriptors as well, until its first step: a manager of a thousand
//! services has thousands of them, and a copy for each birth, which the exec would close one by one, would cost more
//! than all the rest. See [`Slots`].
//!
//! # Invariants
//!
//! - An error leaves no process: the failed child is reaped here, through its pidfd, and the reaper never sees it.
//!   (This is the only wait besides the reaper's. Spawn from the thread that reaps, or have it wait, as [`Births`]
//!   has it, or it may be faster.)
//! - The child starts with default dispositions, an empty signal mask and exactly the descriptors of the plan.
//! - Nothing that was asked for is left out silently.

mod births;
mod child;
mod clone;
mod error;
mod features;
mod hear;
mod mounts;
mod namespace;
mod plan;
mod raw;
mod slots;
mod step;
mod users;

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::sys::signal::Signal;

pub use births::Births;
pub use error::SpawnError;
pub use features::{Features, release};
pub use mounts::{Mount, MountEntry, MountFlags, Namespaces, Propagation};
pub use namespace::{ipc_of_its_own, network_of_its_own};
pub use plan::{
    Identity, Joined, Keyring, MemoryPolicy, NumaMode, Policy, Program, Scheduling, SpawnPlan, Stdio,
    Terminal, WorkingDirectory,
};
pub use step::{Step, exit_status_word};
pub use users::UserMap;

use crate::pidfd::PidFd;
use child::{Dispositions, Report, Shut, Target, Walk, Who};
use clone::{Birth, Stack};
use hear::Ear;
use slots::Slots;
use users::Answers;

/// How long a process of another user may take from birth to exec before it is killed: far more than a loaded
/// machine needs, and the most that a user can delay the manager by stopping a child.
pub const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

/// capabilities(7).
const CAP_SYS_ADMIN: u32 = 21;

/// capabilities(7).
const CAP_SYS_RESOURCE: u32 = 24;

/// A process that runs its program.
#[derive(Debug)]
pub struct Child {
    /// Its number, for displays and for the reaper's look-up.
    pub pid: u32,
    /// What signals go through; readable when it has ended.
    pub pidfd: PidFd,
}

/// Makes processes. One for the whole manager: it keeps the stack and what is known of the manager itself.
#[derive(Debug)]
pub struct Spawner {
    stack: Stack,
    features: Features,
    /// Signals that the manager ignores, which an exec would hand down. Number N at bit N-1.
    ignored: u64,
    /// The manager's bounding set.
    bounding_set: u64,
    /// All capabilities that the kernel knows: the bounding set of who has users of its own.
    capabilities: u64,
    /// The manager has inheritable capabilities, which an exec would hand down.
    inheritable: bool,
    /// The manager has CAP_SYS_ADMIN.
    administrates: bool,
    /// The manager has CAP_SYS_RESOURCE.
    raises: bool,
    uid: u32,
    gid: u32,
    null: OwnedFd,
    slots: Slots,
    exec_timeout: Duration,
}

impl Spawner {
    /// Looks at the manager: its user, its capabilities, and the signals that it ignores. These must not change
    /// afterwards. Each child is born with the descriptors that have lower numbers than the few that are taken here, and
    /// pays for each of them: the earlier in a program this is called, the better.
    ///
    /// # Errors
    /// ENOMEM for the stack; EMFILE; `/dev/null` is missing.
    pub fn new() -> io::Result<Self> {
        let ignores = |number: &i32| raw::disposition(*number) == Ok(libc::SIG_IGN);
        let capabilities = raw::capabilities().map_err(io::Error::from_raw_os_error)?;
        let null: OwnedFd = std::fs::File::options().read(true).write(true).open("/dev/null")?.into();
        Ok(Self {
            stack: Stack::new()?,
            features: Features::probe(),
            ignored: (1..=64).filter(ignores).fold(0, |set, number| set | 1 << (number - 1)),
            bounding_set: bounding_set(|found| found == Ok(1)),
            capabilities: bounding_set(|found| found.is_ok()),
            inheritable: capabilities.inheritable != 0,
            raises: capabilities.effective & (1 << CAP_SYS_RESOURCE) != 0,
            administrates: capabilities.effective & (1 << CAP_SYS_ADMIN) != 0,
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            slots: Slots::take(null.as_fd())?,
            null,
            exec_timeout: EXEC_TIMEOUT,
        })
    }

    /// Uses no more than these features: what an older kernel has, for trying what agentd does there.
    #[must_use]
    pub fn limited_to(mut self, features: Features) -> Self {
        self.features.into_cgroup &= features.into_cgroup;
        self.features.close_range &= features.close_range;
        self
    }

    /// Kills a process of another user that has not reached its exec after this time, instead of [`EXEC_TIMEOUT`].
    #[must_use]
    pub fn with_exec_timeout(mut self, timeout: Duration) -> Self {
        self.exec_timeout = timeout;
        self
    }

    /// What the kernel can do.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// Whether its processes may have higher limits, and a lower OOM score, than the manager: CAP_SYS_RESOURCE.
    #[must_use]
    pub fn may_raise(&self) -> bool {
        self.raises
    }

    /// The user and the group of the manager.
    #[must_use]
    pub fn ids(&self) -> [u32; 2] {
        [self.uid, self.gid]
    }

    /// Makes the process and comes back when it runs its program.
    ///
    /// # Errors
    /// The step that failed, with its thing and errno. No process is left.
    pub fn spawn(&mut self, plan: &SpawnPlan<'_>) -> Result<Child, SpawnError> {
        let fail = |step, source| SpawnError::new(plan, step, source);
        let null = self.null.as_raw_fd();
        let mut arrays = Arrays::of(plan, null);
        let mut walk = self.walk(plan, &mut arrays).map_err(|e| fail(Step::Fds, e))?;
        if self.shares_memory(plan) {
            let placed = self.place(null, &mut walk).map_err(|e| fail(Step::Fds, e))?;
            let born = self.give_birth(plan, true, &mut walk);
            self.slots.clear(placed, null);
            let (pid, pidfd) = born?;
            // SAFETY: the report is a live local; the child, which has written it, is past its exec or gone.
            let report = unsafe { std::ptr::read_volatile(&raw const walk.report) };
            return settle(plan, report, pid, pidfd);
        }
        self.spawn_apart(plan, &mut walk)
    }

    /// The birth of a child with memory of its own, which is heard over a pipe.
    fn spawn_apart(&self, plan: &SpawnPlan<'_>, walk: &mut Walk<'_>) -> Result<Child, SpawnError> {
        let fail = |step, source| SpawnError::new(plan, step, source);
        let (reader, writer) = io::pipe().map_err(|e| fail(Step::Fork, e))?;
        walk.report_fd = Some(writer.as_raw_fd());
        let users = plan.namespaces.users.as_ref();
        // One that is born within has set none yet; all others have, and nobody may who gives himself a map.
        let keeps_groups = self.administrates || plan.identity.is_none();
        let mut answers =
            users.map(|_| Answers::new(keeps_groups)).transpose().map_err(|e| fail(Step::Fork, e))?;
        walk.ask = answers.as_ref().map(|answers| answers.ask(!self.administrates));
        let (pid, pidfd) = self.give_birth(plan, false, walk)?;
        drop(writer);
        match (Ear { reader, pid, users: users.zip(answers.as_mut()) }).hear(self.exec_timeout) {
            Ok(report) => settle(plan, report, pid, pidfd),
            Err(error) => {
                // It is left to the reaper, as one that hangs in the kernel would hang us in a wait.
                let killed = pidfd.send_signal(Signal::SIGKILL as i32);
                Err(fail(Step::Exec, killed.err().unwrap_or(error)))
            }
        }
    }

    /// The memory may be shared only with a child that stays who we are, needs nothing of us on its way, and leaves the
    /// memory as it is: what a core dump has is told of the memory, and would be ours too.
    fn shares_memory(&self, plan: &SpawnPlan<'_>) -> bool {
        let stays = plan.identity.as_ref().is_none_or(|who| who.uid == self.uid && who.gid == self.gid);
        stays && plan.namespaces.users.is_none() && plan.coredump_filter.is_none()
    }

    /// Has the child keep what it needs of a shared table and nothing else, where the kernel can do that.
    fn place(&self, null: RawFd, walk: &mut Walk<'_>) -> io::Result<usize> {
        if !self.features.close_range || !self.features.into_cgroup {
            return Ok(0);
        }
        let target = match &mut walk.target {
            Target::Fd(fd) => Some(fd),
            Target::Path(_) | Target::LastFd => None,
        };
        let joined = walk.joined.iter_mut().flatten();
        let placed = self.slots.place(walk.sources.iter_mut().chain(target).chain(joined), null)?;
        walk.own_below = placed.map(|_| self.slots.end());
        Ok(placed.unwrap_or(0))
    }

    /// Filters and Landlock are for those who have CAP_SYS_ADMIN, or give up new privileges, seccomp(2), landlock(7).
    fn needs_no_new_privileges(&self, plan: &SpawnPlan<'_>) -> bool {
        let stays_root = plan.identity.as_ref().map_or(self.uid, |who| who.uid) == 0;
        let asks = !plan.filters.is_empty() || plan.landlock.is_some();
        asks && !(stays_root && self.administrates)
    }

    /// The birth, with all signals blocked around it: a handler would run in the child on our memory.
    fn give_birth(
        &self,
        plan: &SpawnPlan<'_>,
        share_memory: bool,
        walk: &mut Walk<'_>,
    ) -> Result<(u32, PidFd), SpawnError> {
        let clone3 = self.features.into_cgroup;
        let share_descriptors = walk.own_below.is_some();
        let cgroup = plan.cgroup.filter(|_| clone3);
        let namespaces = self.birth_namespaces(plan);
        let birth = Birth { share_memory, share_descriptors, cgroup, namespaces, clone3 };
        let old = raw::set_signal_mask(u64::MAX)
            .map_err(|errno| SpawnError::from_errno(plan, Step::Fork, errno))?;
        let argument = std::ptr::from_mut(walk).cast();
        // SAFETY: the walk keeps to raw calls and to itself, all signals are blocked, and the stack is used by one
        // child at a time, as `&mut self` of `spawn` says.
        let born = unsafe { clone::clone(birth, &self.stack, child::run, argument) };
        let restored = raw::set_signal_mask(old);
        debug_assert!(restored.is_ok(), "the old mask is a valid one");
        match born {
            Ok((pid, pidfd)) => Ok((pid, PidFd::from(pidfd))),
            Err(errno) => Err(SpawnError::from_errno(plan, birth_step(errno, &birth), errno)),
        }
    }

    /// What no process can enter later: other numbers of processes are its children's alone. Who may not make them has to
    /// be born with users of its own, among whom it may.
    fn birth_namespaces(&self, plan: &SpawnPlan<'_>) -> i32 {
        let users = plan.namespaces.users.is_some() && !self.administrates;
        let flag = |wanted, flag| if wanted { flag } else { 0 };
        flag(users, libc::CLONE_NEWUSER) | flag(plan.namespaces.pids, libc::CLONE_NEWPID)
    }

    /// What the child has to change: a birth by clone3 leaves only what the manager ignores.
    fn dispositions(&self, plan: &SpawnPlan<'_>, clone3: bool) -> Dispositions {
        let reset = if clone3 { self.ignored } else { u64::MAX };
        let pipe = 1 << (libc::SIGPIPE - 1);
        let inherited = clone3 && plan.ignore_sigpipe && self.ignored & pipe != 0;
        Dispositions {
            reset: if inherited { reset & !pipe } else { reset },
            ignore_pipe: plan.ignore_sigpipe && !inherited,
        }
    }

    /// What the child walks.
    fn walk<'w>(&self, plan: &'w SpawnPlan<'_>, arrays: &'w mut Arrays) -> io::Result<Walk<'w>> {
        let clone3 = self.features.into_cgroup;
        let shut = if self.features.close_range { Shut::Range } else { Shut::EachTo(highest_descriptor()?) };
        let had = if plan.namespaces.users.is_some() { self.capabilities } else { self.bounding_set };
        let drop = had & !plan.bounding_set.unwrap_or(u64::MAX);
        let folder = plan.working_directory.as_ref();
        Ok(Walk {
            own_below: None,
            ask: None,
            cgroup: plan.cgroup.filter(|_| !clone3).map(|fd| fd.as_raw_fd()),
            new_session: plan.new_session,
            dispositions: self.dispositions(plan, clone3),
            oom_score_adjust: arrays.oom_score_adjust.as_deref(),
            coredump_filter: arrays.coredump_filter.as_deref(),
            nice: plan.nice,
            scheduling: plan.scheduling.map(|s| (policy_number(s), s.priority)),
            affinity: &arrays.affinity,
            memory_policy: plan.memory_policy.as_ref().map(|policy| policy.mode as i32),
            memory_nodes: &arrays.memory_nodes,
            timer_slack: plan.timer_slack,
            personality: plan.personality,
            io_priority: plan.io_priority,
            namespaces: &plan.namespaces,
            joined: [plan.joined.network, plan.joined.ipc].map(|fd| fd.map(|fd| fd.as_raw_fd())),
            trees: &mut arrays.trees,
            filters: &plan.filters,
            landlock: plan.landlock.as_ref(),
            ruleset: None,
            terminal: plan.terminal.map(|terminal| terminal == Terminal::Force),
            sources: &mut arrays.sources,
            shut,
            rlimits: &arrays.rlimits,
            umask: plan.umask,
            root: plan.root_directory.as_ref().map_or(std::ptr::null(), |root| root.as_ptr()),
            secure_bits: plan.secure_bits,
            drop,
            who: plan.identity.as_ref().map(|who| Who { uid: who.uid, gid: who.gid, groups: &who.groups }),
            keyring: plan.keyring.map(|keyring| keyring == Keyring::Linked),
            working_directory: folder.map_or(c"/".as_ptr(), |folder| folder.path.as_ptr()),
            directory_optional: folder.is_some_and(|folder| folder.optional),
            ambient: (plan.ambient_set != 0 || self.inheritable).then_some(plan.ambient_set),
            no_new_privileges: plan.no_new_privileges || self.needs_no_new_privileges(plan),
            pid_slots: &arrays.pid_slots,
            target: match &plan.program {
                Program::Path(path) => Target::Path(path.as_ptr()),
                Program::Descriptor { keep_open: true, .. } => Target::LastFd,
                Program::Descriptor { fd, keep_open: false, .. } => Target::Fd(fd.as_raw_fd()),
            },
            argv: arrays.argv.as_ptr(),
            envp: arrays.envp.as_ptr(),
            report_fd: None,
            report: Report::default(),
        })
    }
}

/// What the walk points to, besides the plan.
struct Arrays {
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// Keeps the texts that `envp` and `pid_slots` point to.
    _pid_texts: Vec<Vec<u8>>,
    pid_slots: Vec<*mut u8>,
    sources: Vec<RawFd>,
    rlimits: Vec<(u32, libc::rlimit64)>,
    oom_score_adjust: Option<Vec<u8>>,
    coredump_filter: Option<Vec<u8>>,
    affinity: Vec<u8>,
    memory_nodes: Vec<u8>,
    trees: Vec<RawFd>,
}

/// Ten digits of the largest pid and NUL.
const PID_ROOM: usize = 11;

impl Arrays {
    fn of(plan: &SpawnPlan<'_>, null: RawFd) -> Self {
        let mut pid_texts: Vec<Vec<u8>> =
            plan.pid_variables.iter().map(|name| [name.as_bytes(), b"=", &[0; PID_ROOM]].concat()).collect();
        let pid_slots: Vec<*mut u8> =
            pid_texts.iter_mut().map(|text| text.as_mut_ptr().wrapping_add(text.len() - PID_ROOM)).collect();
        let pid_entries = pid_texts.iter().map(|text| text.as_ptr().cast());
        let limit = |r: &crate::rlimit::Rlimit| {
            (r.resource as u32, libc::rlimit64 { rlim_cur: r.soft, rlim_max: r.hard })
        };
        Self {
            argv: pointers(&plan.argv).chain([std::ptr::null()]).collect(),
            envp: pointers(&plan.envp).chain(pid_entries).chain([std::ptr::null()]).collect(),
            pid_slots,
            sources: plan.sources(null),
            rlimits: plan.rlimits.iter().map(limit).collect(),
            oom_score_adjust: plan.oom_score_adjust.map(|score| score.to_string().into_bytes()),
            coredump_filter: plan.coredump_filter.map(|bits| format!("{bits:#x}").into_bytes()),
            affinity: bit_mask(&plan.affinity),
            memory_nodes: plan.memory_policy.as_ref().map(|p| bit_mask(&p.nodes)).unwrap_or_default(),
            trees: vec![-1; plan.namespaces.mounts.len()],
            _pid_texts: pid_texts,
        }
    }
}

/// The policy as sched_setscheduler(2) takes it.
fn policy_number(scheduling: Scheduling) -> i32 {
    scheduling.policy as i32 | if scheduling.reset_on_fork { libc::SCHED_RESET_ON_FORK } else { 0 }
}

/// The bits of sched_setaffinity(2) and set_mempolicy(2), in whole words of the kernel's; empty where no number is named.
fn bit_mask(numbers: &[u32]) -> Vec<u8> {
    let Some(highest) = numbers.iter().max() else { return Vec::new() };
    let mut mask = vec![0; (*highest as usize / 64 + 1) * 8];
    for number in numbers {
        // The kernel's words have the machine's byte order, which is little-endian on all that agentd knows.
        mask[*number as usize / 8] |= 1 << (number % 8);
    }
    mask
}

/// The strings as the kernel takes them.
fn pointers(strings: &[CString]) -> impl Iterator<Item = *const c_char> {
    strings.iter().map(|string| string.as_ptr())
}

/// The capabilities of which prctl(2) PR_CAPBSET_READ says this: 1 for what is in the bounding set, 0 for what is not, an
/// error for numbers that the kernel does not know.
fn bounding_set(wanted: impl Fn(raw::Raw) -> bool) -> u64 {
    (0..64)
        .filter(|number| wanted(raw::prctl(libc::PR_CAPBSET_READ, *number, 0)))
        .fold(0, |set, number| set | 1 << number)
}

/// The highest descriptor that is open now, for kernels without close_range.
fn highest_descriptor() -> io::Result<RawFd> {
    let names =
        std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).max().unwrap_or(0))
}

/// What clone3 says of the cgroup and of namespaces: clone(2), "ERRORS".
fn birth_step(errno: i32, birth: &Birth<'_>) -> Step {
    match errno {
        libc::EBUSY | libc::EOPNOTSUPP | libc::EACCES | libc::ENODEV | libc::EBADF
            if birth.cgroup.is_some() =>
        {
            Step::Cgroup
        }
        libc::EPERM | libc::EINVAL | libc::ENOSPC | libc::EUSERS if birth.namespaces != 0 => Step::Namespace,
        _ => Step::Fork,
    }
}

/// A child without a report runs its program; one with a report is gone, and reaped here.
fn settle(plan: &SpawnPlan<'_>, report: Report, pid: u32, pidfd: PidFd) -> Result<Child, SpawnError> {
    let Some(step) = Step::from_number(report.step) else { return Ok(Child { pid, pidfd }) };
    match pidfd.reap() {
        Ok(_) => {
            let source = io::Error::from_raw_os_error(report.errno);
            Err(SpawnError::of_item(plan, step, report.item, source))
        }
        Err(error) => Err(SpawnError::new(plan, step, error)),
    }
}
