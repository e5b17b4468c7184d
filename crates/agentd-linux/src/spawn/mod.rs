//! Making a process: one prepared plan, one birth, one walk to the exec.
//!
//! A [`SpawnPlan`] says everything about a process that is to be. [`Spawner::spawn`] turns it into arrays that the
//! kernel takes, gives birth with a pidfd and into the cgroup, and comes back when the program runs or a step has
//! failed.
//!
//! # Two ways to be born
//!
//! A process that keeps the manager's user and group shares its memory until the exec, which saves copying the page tables:
//! while the manager waits (CLONE_VM | CLONE_VFORK), or while it goes on and takes the answer later ([`Births`]). One that
//! changes them gets a copy: on shared memory the change would make the *manager* undumpable, and a process of that user
//! could stop the child with SIGSTOP and the manager with it. So does one that changes what the kernel keeps with the memory, or that waits for us to do something for it.
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

mod begun;
mod births;
mod child;
mod clone;
mod error;
mod features;
mod hear;
mod mounts;
mod namespace;
mod papers;
mod plan;
mod presence;
mod raw;
mod slots;
mod step;
mod users;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

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
use child::{Report, Target, Walk};
use clone::{Birth, Memory, Stack};
use hear::Ear;
use papers::Arrays;
use presence::{Departure, Presence};
use slots::{Placed, Slots};
use users::Answers;

/// How long a process may take from birth to exec before it is killed: far more than a loaded machine needs, and the most
/// that a user can delay the manager by stopping a child, or by freezing its cgroup.
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

/// A child between its birth and its exec.
#[derive(Debug)]
struct Born {
    pid: u32,
    pidfd: PidFd,
    way: Way,
}

/// How it is heard of, and what it holds meanwhile.
#[derive(Debug)]
enum Way {
    /// It shares our memory, and writes its report there.
    Here(Placed),
    /// It has a copy, and writes its report into a pipe.
    Apart { reader: io::PipeReader, answers: Option<Answers>, deadline: Instant },
}

/// What a child needs that is left to itself on our memory.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    stack: &'a Stack,
    presence: &'a Presence,
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
        let mut arrays = Arrays::of(plan, self.null());
        let mut walk =
            self.walk(plan, &mut arrays).map_err(|error| SpawnError::new(plan, Step::Fds, error))?;
        let walk = NonNull::from(&mut walk);
        // SAFETY: nothing but the child uses the walk, or what it points to, until it has left, which `settle` waits for;
        // the spawner's own stack is used by one child at a time, as `&mut self` says.
        let born = unsafe { self.bear(plan, walk, None) }?;
        // SAFETY: the walk is the one that it was born with.
        unsafe { self.settle(born, plan, walk) }
    }

    /// The birth alone. With a place of its own, a child that shares our memory is left to itself; without, it has left
    /// when this comes back.
    ///
    /// # Safety
    /// Nothing but the child may use the walk, what it points to, and the place, until [`Spawner::settle`] has come back or
    /// the child has left.
    unsafe fn bear(
        &mut self,
        plan: &SpawnPlan<'_>,
        mut walk: NonNull<Walk<'_>>,
        place: Option<Place<'_>>,
    ) -> Result<Born, SpawnError> {
        if !self.shares_memory(plan) {
            // SAFETY: the caller vouches for it; the child has a copy of all that it uses.
            return unsafe { self.bear_apart(plan, walk, place) };
        }
        // SAFETY: there is no child yet.
        let papers = unsafe { walk.as_mut() };
        let placed = self.place(papers).map_err(|error| SpawnError::new(plan, Step::Fds, error))?;
        let shares_table = papers.own_below.is_some();
        let (presence, deadline) = (Presence::default(), Instant::now() + self.exec_timeout);
        let memory = match place {
            Some(place) => Memory::Shared(place.presence),
            // The wait below has an end, which that of the call has not.
            None if self.features.into_cgroup => Memory::Shared(&presence),
            None => Memory::Lent,
        };
        // SAFETY: the caller vouches for it; the presence is dropped after the child has left.
        match unsafe { self.give_birth(plan, memory, shares_table, place, walk) } {
            Ok((pid, pidfd)) => {
                let departure = presence.wait_until(deadline, &pidfd, plan.cgroup);
                let born = Born { pid, pidfd, way: Way::Here(placed) };
                match departure {
                    Departure::ByItself => Ok(born),
                    forced => Err(self.left_by_force(plan, born, forced)),
                }
            }
            Err(error) => {
                self.slots.clear(placed, self.null());
                Err(error)
            }
        }
    }

    /// The birth of a child with memory of its own, which is heard over a pipe.
    ///
    /// # Safety
    /// As [`Spawner::bear`].
    unsafe fn bear_apart(
        &self,
        plan: &SpawnPlan<'_>,
        mut walk: NonNull<Walk<'_>>,
        place: Option<Place<'_>>,
    ) -> Result<Born, SpawnError> {
        let fail = |source| SpawnError::new(plan, Step::Fork, source);
        let (reader, writer) = io::pipe().map_err(fail)?;
        // One that is born within has set none yet; all others have, and nobody may who gives himself a map.
        let keeps_groups = self.administrates || plan.identity.is_none();
        let users = plan.namespaces.users.as_ref();
        let answers = users.map(|_| Answers::new(keeps_groups)).transpose().map_err(fail)?;
        // SAFETY: there is no child yet.
        let papers = unsafe { walk.as_mut() };
        papers.report_fd = Some(writer.as_raw_fd());
        papers.ask = answers.as_ref().map(|answers| answers.ask(!self.administrates));
        let deadline = Instant::now() + self.exec_timeout;
        // SAFETY: the caller vouches for it.
        let (pid, pidfd) = unsafe { self.give_birth(plan, Memory::Copied, false, place, walk) }?;
        Ok(Born { pid, pidfd, way: Way::Apart { reader, answers, deadline } })
    }

    /// The error of a child that shared our memory and was killed before its exec; it is left to the reaper.
    fn left_by_force(&mut self, plan: &SpawnPlan<'_>, born: Born, departure: Departure) -> SpawnError {
        if let Way::Here(placed) = born.way {
            self.slots.clear(placed, self.null());
        }
        let why = match departure {
            Departure::Frozen => hear::frozen(),
            Departure::ByItself | Departure::Late => hear::too_late(self.exec_timeout),
        };
        SpawnError::new(plan, Step::Exec, why)
    }

    /// Waits until a child runs its program or has failed.
    ///
    /// # Safety
    /// Plan and walk are those that it was born with. If it had a place of its own, it has left.
    unsafe fn settle(
        &mut self,
        born: Born,
        plan: &SpawnPlan<'_>,
        walk: NonNull<Walk<'_>>,
    ) -> Result<Child, SpawnError> {
        let Born { pid, pidfd, way } = born;
        let report = match way {
            Way::Here(placed) => {
                self.slots.clear(placed, self.null());
                // SAFETY: the child, which has written to it, is past its exec or gone.
                let walk = unsafe { walk.as_ref() };
                walk.report
            }
            Way::Apart { reader, mut answers, deadline } => {
                let users = plan.namespaces.users.as_ref().zip(answers.as_mut());
                match (Ear { reader, pid, users, cgroup: plan.cgroup }).hear(deadline, self.exec_timeout) {
                    Ok(report) => report,
                    Err(error) => {
                        // It is left to the reaper, as one that hangs in the kernel would hang us in a wait.
                        let killed = pidfd.send_signal(Signal::SIGKILL as i32);
                        return Err(SpawnError::new(plan, Step::Exec, killed.err().unwrap_or(error)));
                    }
                }
            }
        };
        outcome(plan, report, pid, pidfd)
    }

    /// The memory may be shared only with a child that stays who we are, needs nothing of us on its way, does not wait there
    /// for a cgroup, and leaves the memory as it is: what a core dump has is told of the memory, and so is the OOM score,
    /// which would be ours too.
    fn shares_memory(&self, plan: &SpawnPlan<'_>) -> bool {
        let stays = plan.identity.as_ref().is_none_or(|who| who.uid == self.uid && who.gid == self.gid);
        let leaves_it = plan.coredump_filter.is_none() && plan.oom_score_adjust.is_none();
        stays && leaves_it && plan.namespaces.users.is_none() && !plan.moves
    }

    /// Whether a child can have a table of descriptors of its own in time, by its first step.
    fn has_own_tables(&self) -> bool {
        self.features.close_range && self.features.into_cgroup
    }

    /// The descriptor of `/dev/null`.
    fn null(&self) -> RawFd {
        self.null.as_raw_fd()
    }

    /// Whether slots are free for all descriptors that the plan has.
    fn has_slots_for(&self, plan: &SpawnPlan<'_>) -> bool {
        let own = plan.stdio.iter().filter(|stdio| matches!(stdio, Stdio::Fd(_))).count();
        let joined = [plan.joined.network, plan.joined.ipc].iter().flatten().count();
        let program = usize::from(matches!(plan.program, Program::Descriptor { .. }));
        self.slots.have(own + plan.fds.len() + joined + program)
    }

    /// Whether the parent has to wait for this child: one that asks for maps is answered at once.
    fn must_wait(plan: &SpawnPlan<'_>) -> bool {
        plan.namespaces.users.is_some()
    }

    /// Has the child keep what it needs of a shared table and nothing else, where the kernel can do that.
    fn place(&mut self, walk: &mut Walk<'_>) -> io::Result<Placed> {
        if !self.has_own_tables() {
            return Ok(Placed::default());
        }
        let null = self.null();
        let target = match &mut walk.target {
            Target::Fd(fd) => Some(fd),
            Target::Path(_) | Target::LastFd => None,
        };
        let joined = walk.joined.iter_mut().flatten();
        let placed = self.slots.place(walk.sources.iter_mut().chain(target).chain(joined), null)?;
        walk.own_below = placed.is_some().then(|| self.slots.end());
        Ok(placed.unwrap_or_default())
    }

    /// Filters and Landlock are for those who have CAP_SYS_ADMIN, or give up new privileges, seccomp(2), landlock(7).
    fn needs_no_new_privileges(&self, plan: &SpawnPlan<'_>) -> bool {
        let stays_root = plan.identity.as_ref().map_or(self.uid, |who| who.uid) == 0;
        let asks = !plan.filters.is_empty() || plan.landlock.is_some();
        asks && !(stays_root && self.administrates)
    }

    /// The birth, with all signals blocked around it: a handler would run in the child on our memory.
    ///
    /// # Safety
    /// As [`clone::clone`], of the stack, the walk and the presence.
    unsafe fn give_birth(
        &self,
        plan: &SpawnPlan<'_>,
        memory: Memory<'_>,
        share_descriptors: bool,
        place: Option<Place<'_>>,
        walk: NonNull<Walk<'_>>,
    ) -> Result<(u32, PidFd), SpawnError> {
        let stack = place.map_or(&self.stack, |place| place.stack);
        let clone3 = self.features.into_cgroup;
        let cgroup = plan.cgroup.filter(|_| clone3 && !plan.moves);
        let namespaces = self.birth_namespaces(plan);
        let birth = Birth { memory, share_descriptors, cgroup, namespaces, clone3 };
        let old = raw::set_signal_mask(u64::MAX)
            .map_err(|errno| SpawnError::from_errno(plan, Step::Fork, errno))?;
        // SAFETY: the walk keeps to raw calls and to itself, and all signals are blocked; the caller vouches for the rest.
        let born = unsafe { clone::clone(birth, stack, child::run, walk.as_ptr().cast()) };
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
}

/// The capabilities of which prctl(2) PR_CAPBSET_READ says this: 1 for what is in the bounding set, 0 for what is not, an
/// error for numbers that the kernel does not know.
fn bounding_set(wanted: impl Fn(raw::Raw) -> bool) -> u64 {
    (0..64)
        .filter(|number| wanted(raw::prctl(libc::PR_CAPBSET_READ, *number, 0)))
        .fold(0, |set, number| set | 1 << number)
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
fn outcome(plan: &SpawnPlan<'_>, report: Report, pid: u32, pidfd: PidFd) -> Result<Child, SpawnError> {
    let Some(step) = Step::from_number(report.step) else { return Ok(Child { pid, pidfd }) };
    match pidfd.reap() {
        Ok(_) => {
            let source = io::Error::from_raw_os_error(report.errno);
            Err(SpawnError::of_item(plan, step, report.item, source))
        }
        Err(error) => Err(SpawnError::new(plan, step, error)),
    }
}
