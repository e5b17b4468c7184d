//! Why a spawn failed, in a sentence.

use std::io;

use super::plan::SpawnPlan;
use super::step::Step;

/// A spawn failed and left no process behind.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {action}")]
pub struct SpawnError {
    /// The step that failed. Its exit status is what a process that failed there would have had.
    pub step: Step,
    /// The program that was to be executed.
    pub program: String,
    /// What could not be done, with its thing.
    action: String,
    /// What the kernel said.
    #[source]
    pub source: io::Error,
}

impl SpawnError {
    /// The failure of a step of this plan.
    pub(super) fn new(plan: &SpawnPlan<'_>, step: Step, source: io::Error) -> Self {
        Self::of_item(plan, step, 0, source)
    }

    /// The same with the number of the thing that it failed at.
    pub(super) fn of_item(plan: &SpawnPlan<'_>, step: Step, item: u32, source: io::Error) -> Self {
        let action = action(plan, step, item as usize, &source);
        Self { step, program: plan.program_name(), action, source }
    }

    /// The same with a number of the kernel's.
    pub(super) fn from_errno(plan: &SpawnPlan<'_>, step: Step, errno: i32) -> Self {
        Self::new(plan, step, io::Error::from_raw_os_error(errno))
    }
}

/// What the step was about to do.
fn action(plan: &SpawnPlan<'_>, step: Step, item: usize, source: &io::Error) -> String {
    match step {
        Step::Fork => "cannot make a process".into(),
        Step::Cgroup => "cannot enter the cgroup of the unit".into(),
        Step::Setsid => "cannot begin a session".into(),
        Step::SignalMask => "cannot reset the signals".into(),
        Step::OomAdjust => format!("cannot set the OOM score to {}", number(plan.oom_score_adjust)),
        Step::CoredumpFilter => "cannot set CoredumpFilter".into(),
        Step::NumaPolicy => "cannot set NUMAPolicy and NUMAMask".into(),
        Step::TimerSlack => "cannot set TimerSlackNSec".into(),
        Step::Personality => "cannot set Personality".into(),
        Step::PrivateUsers => "cannot have users of its own (PrivateUsers)".into(),
        Step::Nice => format!("cannot set the nice value to {}", number(plan.nice)),
        Step::Network if plan.joined.network.is_some() => {
            "cannot enter the network of NetworkNamespacePath or JoinsNamespaceOf".into()
        }
        Step::Network => "cannot make a network of its own (PrivateNetwork)".into(),
        Step::Namespace => match item.checked_sub(1).and_then(|index| plan.namespaces.mounts.get(index)) {
            Some(entry) => format!("{}: cannot mount {}", entry.key, entry.target.to_string_lossy()),
            None if plan.joined.ipc.is_some() => {
                "cannot enter the IPC of IPCNamespacePath or JoinsNamespaceOf, or make further namespaces"
                    .into()
            }
            None => {
                let hint = match source.raw_os_error() {
                    Some(libc::EPERM) if plan.namespaces.users.is_none() => {
                        "; without privileges that needs PrivateUsers=true"
                    }
                    _ => "",
                };
                format!("cannot make namespaces of its own ({}){hint}", plan.namespaces.keys().join(", "))
            }
        },
        Step::Landlock => match plan.landlock.as_ref().and_then(|r| r.paths.get(item.checked_sub(1)?)) {
            Some((path, _)) => format!("Landlock: cannot have a rule for {}", path.to_string_lossy()),
            None => "cannot be held by Landlock".into(),
        },
        Step::Seccomp => match plan.filters.get(item) {
            Some((key, _)) => format!("cannot filter its system calls ({key})"),
            None => "cannot filter its system calls".into(),
        },
        Step::Stdin => "cannot connect standard input".into(),
        Step::Stdout => "cannot connect standard output".into(),
        Step::Stderr => "cannot connect standard error".into(),
        Step::Fds => "cannot hand over the descriptors".into(),
        Step::Limits => match plan.rlimits.get(item) {
            Some(limit) => format!("cannot set {limit}"),
            None => "cannot set the resource limits".into(),
        },
        Step::SetScheduler => "cannot set CPUSchedulingPolicy".into(),
        Step::CpuAffinity => format!("cannot run on the processors of CPUAffinity {:?}", plan.affinity),
        Step::IoPriority => "cannot set IOSchedulingClass and IOSchedulingPriority".into(),
        Step::Chroot => match &plan.root_directory {
            Some(root) => format!("cannot take RootDirectory {} as /", root.to_string_lossy()),
            None => "cannot change the root".into(),
        },
        Step::Keyring => "cannot hang the keys of its user on its own ring".into(),
        Step::SecureBits => "cannot set SecureBits".into(),
        Step::Capabilities if plan.ambient_set & !plan.bounding_set.unwrap_or(u64::MAX) != 0 => {
            "cannot set the capabilities: the ambient set has some that the bounding set lacks".into()
        }
        Step::Capabilities => "cannot set the capabilities".into(),
        Step::Group => match &plan.identity {
            Some(who) => format!("cannot change to group {}", who.gid),
            None => "cannot change the group".into(),
        },
        Step::User => match &plan.identity {
            Some(who) => format!("cannot change to user {}", who.uid),
            None => "cannot change the user".into(),
        },
        Step::Chdir => match &plan.working_directory {
            Some(folder) => format!("cannot enter the folder {}", folder.path.to_string_lossy()),
            None => "cannot enter the folder /".into(),
        },
        Step::NoNewPrivileges => "cannot give up new privileges".into(),
        Step::Exec if source.kind() == io::ErrorKind::NotFound => {
            "cannot be executed: it, or the interpreter that it names, is not there".into()
        }
        Step::Exec => "cannot be executed".into(),
    }
}

/// The number asked for.
fn number(value: Option<i32>) -> String {
    value.map_or_else(|| "its default".into(), |value| value.to_string())
}
