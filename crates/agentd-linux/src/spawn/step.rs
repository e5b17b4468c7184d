//! The steps between birth and exec, and what a failure of each is called.

use std::fmt;

/// One step of a spawn. A child that fails at one ends with the step's exit status: systemd.exec(5), "Process
/// Exit Codes".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Step {
    /// The birth itself: clone3(2). It has no exit status, as there was no process.
    Fork = 1,
    /// Entering the unit's cgroup.
    Cgroup,
    /// Leaving the manager's session: setsid(2).
    Setsid,
    /// Default dispositions and an empty mask.
    SignalMask,
    /// Writing `oom_score_adj`.
    OomAdjust,
    /// Writing `coredump_filter`.
    CoredumpFilter,
    /// setpriority(2).
    Nice,
    /// sched_setscheduler(2).
    SetScheduler,
    /// sched_setaffinity(2).
    CpuAffinity,
    /// set_mempolicy(2).
    NumaPolicy,
    /// ioprio_set(2).
    IoPriority,
    /// prctl(2) PR_SET_TIMERSLACK.
    TimerSlack,
    /// personality(2).
    Personality,
    /// unshare(2) of the network, and its loopback device.
    Network,
    /// unshare(2) of the rest, and every mount.
    Namespace,
    /// unshare(2) of users, and the maps of their ids.
    PrivateUsers,
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The descriptors that are handed over, and shutting all others.
    Fds,
    /// prlimit(2).
    Limits,
    /// chroot(2).
    Chroot,
    /// The bounding, inheritable and ambient capability sets.
    Capabilities,
    /// prctl(2) PR_SET_SECUREBITS.
    SecureBits,
    /// setgroups(2), setresgid(2).
    Group,
    /// setresuid(2).
    User,
    /// keyctl(2) KEYCTL_LINK of the user's ring.
    Keyring,
    /// chdir(2).
    Chdir,
    /// prctl(2) PR_SET_NO_NEW_PRIVS.
    NoNewPrivileges,
    /// landlock_create_ruleset(2), landlock_add_rule(2), landlock_restrict_self(2).
    Landlock,
    /// prctl(2) PR_SET_SECCOMP.
    Seccomp,
    /// execve(2), execveat(2).
    Exec,
}

impl Step {
    /// All steps, in the order in which they are taken.
    pub const ALL: [Self; 32] = [
        Self::Fork,
        Self::Cgroup,
        Self::Setsid,
        Self::SignalMask,
        Self::OomAdjust,
        Self::CoredumpFilter,
        Self::Nice,
        Self::SetScheduler,
        Self::CpuAffinity,
        Self::NumaPolicy,
        Self::IoPriority,
        Self::TimerSlack,
        Self::Personality,
        Self::Network,
        Self::Namespace,
        Self::PrivateUsers,
        Self::Stdin,
        Self::Stdout,
        Self::Stderr,
        Self::Fds,
        Self::Limits,
        Self::Chroot,
        Self::Capabilities,
        Self::SecureBits,
        Self::Group,
        Self::User,
        Self::Keyring,
        Self::Chdir,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Exec,
    ];

    /// The exit status of a process that failed here. None for [`Step::Fork`].
    #[must_use]
    pub const fn exit_status(self) -> Option<u8> {
        Some(match self {
            Self::Fork => return None,
            Self::Chdir => 200,
            Self::Nice => 201,
            Self::Fds => 202,
            Self::Exec => 203,
            Self::CoredumpFilter | Self::Limits => 205,
            Self::OomAdjust => 206,
            Self::SignalMask => 207,
            Self::Stdin => 208,
            Self::Stdout => 209,
            Self::Chroot => 210,
            Self::IoPriority => 211,
            Self::TimerSlack => 212,
            Self::SecureBits => 213,
            Self::SetScheduler => 214,
            Self::CpuAffinity => 215,
            Self::Group => 216,
            Self::PrivateUsers | Self::User => 217,
            Self::Capabilities => 218,
            Self::Cgroup => 219,
            Self::Setsid => 220,
            Self::Stderr => 222,
            Self::Network => 225,
            Self::Namespace => 226,
            Self::Keyring => 237,
            Self::NoNewPrivileges => 227,
            // systemd has none for it; its nearest is that of the other filter.
            Self::Landlock | Self::Seccomp => 228,
            Self::Personality => 230,
            Self::NumaPolicy => 242,
        })
    }

    /// systemd's word for the exit status, such as `EXEC`. `FORK` for the birth, for which systemd has none.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.exit_status().and_then(exit_status_word).unwrap_or("FORK")
    }

    /// The step with this number, as the child reports it.
    pub(super) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u32 == number)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// systemd's word for an exit status that a process gets before it is the program: 200 to 245, with the gaps that
/// systemd.exec(5) leaves. A program may exit with one of these too; then the word misleads, as it does in systemd.
#[must_use]
pub const fn exit_status_word(status: u8) -> Option<&'static str> {
    Some(match status {
        200 => "CHDIR",
        201 => "NICE",
        202 => "FDS",
        203 => "EXEC",
        204 => "MEMORY",
        205 => "LIMITS",
        206 => "OOM_ADJUST",
        207 => "SIGNAL_MASK",
        208 => "STDIN",
        209 => "STDOUT",
        210 => "CHROOT",
        211 => "IOPRIO",
        212 => "TIMERSLACK",
        213 => "SECUREBITS",
        214 => "SETSCHEDULER",
        215 => "CPUAFFINITY",
        216 => "GROUP",
        217 => "USER",
        218 => "CAPABILITIES",
        219 => "CGROUP",
        220 => "SETSID",
        221 => "CONFIRM",
        222 => "STDERR",
        224 => "PAM",
        225 => "NETWORK",
        226 => "NAMESPACE",
        227 => "NO_NEW_PRIVILEGES",
        228 => "SECCOMP",
        229 => "SELINUX_CONTEXT",
        230 => "PERSONALITY",
        231 => "APPARMOR_PROFILE",
        232 => "ADDRESS_FAMILIES",
        233 => "RUNTIME_DIRECTORY",
        235 => "CHOWN",
        236 => "SMACK_PROCESS_LABEL",
        237 => "KEYRING",
        238 => "STATE_DIRECTORY",
        239 => "CACHE_DIRECTORY",
        240 => "LOGS_DIRECTORY",
        241 => "CONFIGURATION_DIRECTORY",
        242 => "NUMA_POLICY",
        243 => "CREDENTIALS",
        245 => "BPF",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_back_from_its_number() {
        for step in Step::ALL {
            assert_eq!(Step::from_number(step as u32), Some(step), "{step}");
        }
        assert_eq!(Step::from_number(0), None);
        assert_eq!(Step::from_number(Step::ALL.len() as u32 + 1), None);
    }

    #[test]
    fn every_step_of_the_child_has_systemds_word() {
        for step in Step::ALL.into_iter().filter(|s| *s != Step::Fork) {
            let status = step.exit_status().unwrap();
            assert!(exit_status_word(status).is_some(), "{step:?} is {status}");
        }
        for (step, status, word) in [
            (Step::Exec, 203, "EXEC"),
            (Step::Chdir, 200, "CHDIR"),
            (Step::Cgroup, 219, "CGROUP"),
            (Step::User, 217, "USER"),
            (Step::Group, 216, "GROUP"),
            (Step::Capabilities, 218, "CAPABILITIES"),
            (Step::NoNewPrivileges, 227, "NO_NEW_PRIVILEGES"),
        ] {
            assert_eq!(step.exit_status(), Some(status));
            assert_eq!(step.word(), word);
        }
    }

    #[test]
    fn the_gaps_of_the_table_have_no_word() {
        for status in [0, 1, 199, 223, 234, 244, 246, 255] {
            assert_eq!(exit_status_word(status), None, "{status}");
        }
    }
}
