//! What this kernel, behind this seccomp filter, can do for a spawn and for the tree it starts.

use std::fmt;

use nix::sys::utsname::uname;

use super::{clone, raw};

/// Kernel facilities that agentd does without where it must. Probed once; none of them changes while we run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// clone3(2) with CLONE_INTO_CGROUP (Linux 5.7) may be called: a process is born in its cgroup. Else it moves
    /// there before its exec.
    pub into_cgroup: bool,
    /// pidfd_open(2), Linux 5.3. agentd needs it.
    pub pidfd: bool,
    /// `cgroup.kill`, Linux 5.14. Else the processes of a cgroup are killed one by one until none is left.
    pub cgroup_kill: bool,
    /// close_range(2) with CLOSE_RANGE_CLOEXEC, Linux 5.11.
    pub close_range: bool,
    /// A program executed by descriptor gets its file's name as process name, Linux 6.14. Else the descriptor's
    /// number.
    pub execveat_names: bool,
}

impl Features {
    /// Asks the kernel.
    #[must_use]
    pub fn probe() -> Self {
        let release = release();
        Self {
            into_cgroup: release >= (5, 7) && clone::clone3_answers(),
            pidfd: release >= (5, 3),
            cgroup_kill: release >= (5, 14),
            // No descriptor has this number: the call changes nothing and says whether it is there.
            close_range: raw::cloexec_from(u32::MAX).is_ok(),
            execveat_names: release >= (6, 14),
        }
    }
}

impl fmt::Display for Features {
    /// What is missing, for `doctor` and the log: `all` if nothing is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<&str> = [
            (self.into_cgroup, "birth into a cgroup"),
            (self.pidfd, "pidfd"),
            (self.cgroup_kill, "cgroup.kill"),
            (self.close_range, "close_range"),
            (self.execveat_names, "names of programs executed by descriptor"),
        ]
        .into_iter()
        .filter_map(|(there, name)| (!there).then_some(name))
        .collect();
        if missing.is_empty() { f.write_str("all") } else { write!(f, "all but {}", missing.join(", ")) }
    }
}

/// The first two numbers of the kernel's release. uname(2); (0, 0) if they cannot be read.
#[must_use]
pub fn release() -> (u32, u32) {
    uname().ok().and_then(|names| parse_release(&names.release().to_string_lossy())).unwrap_or((0, 0))
}

/// `6.1.0-13-cloud-amd64` is (6, 1).
fn parse_release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_makers_are_read() {
        for (text, release) in [
            ("6.1.0-13-cloud-amd64", Some((6, 1))),
            ("5.15.153.1-microsoft-standard-WSL2", Some((5, 15))),
            ("6.18-rc1", Some((6, 18))),
            ("linux", None),
            ("", None),
        ] {
            assert_eq!(parse_release(text), release, "{text}");
        }
    }

    #[test]
    fn this_kernel_has_pidfds() {
        assert!(Features::probe().pidfd);
    }
}
