//! What a child reads on its way: the plan in the form that the kernel takes.

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::child::{Dispositions, Report, Shut, Target, Walk, Who};
use super::{Keyring, Program, Scheduling, SpawnPlan, Spawner, Terminal};

impl Spawner {
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
    pub(super) fn walk<'w>(&self, plan: &'w SpawnPlan<'_>, arrays: &'w mut Arrays) -> io::Result<Walk<'w>> {
        let clone3 = self.features.into_cgroup;
        let shut = if self.features.close_range { Shut::Range } else { Shut::EachTo(highest_descriptor()?) };
        let had = if plan.namespaces.users.is_some() { self.capabilities } else { self.bounding_set };
        let drop = had & !plan.bounding_set.unwrap_or(u64::MAX);
        let folder = plan.working_directory.as_ref();
        Ok(Walk {
            own_below: None,
            ask: None,
            cgroup: plan.cgroup.filter(|_| !clone3 || plan.moves).map(|fd| fd.as_raw_fd()),
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
pub(super) struct Arrays {
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
    pub(super) fn of(plan: &SpawnPlan<'_>, null: RawFd) -> Self {
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

/// The highest descriptor that is open now, for kernels without close_range.
fn highest_descriptor() -> io::Result<RawFd> {
    let names =
        std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).max().unwrap_or(0))
}
