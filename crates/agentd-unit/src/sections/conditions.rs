//! What must hold before a unit is started, systemd.unit(5) "Conditions and Asserts", and what its end starts how.

use std::fmt;

use crate::words::Words;

/// One `Condition…` or `Assert…` of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What is looked at.
    pub test: Test,
    /// What stands behind the key, without its prefixes; paths are absolute.
    pub parameter: String,
    /// `!`: it must not hold.
    pub negate: bool,
    /// `|`: one of those that have this must hold, instead of each.
    pub trigger: bool,
    /// Written as `Assert…`: the start fails where it does not hold, and is not just left out.
    pub assert: bool,
}

impl fmt::Display for Condition {
    /// As it stands in a file: `ConditionPathExists=!/etc/a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.assert { "Assert" } else { "Condition" };
        let (trigger, negate) = (if self.trigger { "|" } else { "" }, if self.negate { "!" } else { "" });
        write!(f, "{kind}{}={trigger}{negate}{}", self.test.as_str(), self.parameter)
    }
}

macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a condition looks at: the key without `Condition` or `Assert` in front.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Test {
            $($(#[$doc])* $name,)*
        }

        impl Test {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The key without `Condition` or `Assert`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

tests! {
    /// A file or folder is there.
    PathExists,
    /// A file or folder that fits a glob(7) is there.
    PathExistsGlob,
    /// A folder is there.
    PathIsDirectory,
    /// A symbolic link is there.
    PathIsSymbolicLink,
    /// A file system is mounted there.
    PathIsMountPoint,
    /// It is on a file system that can be written.
    PathIsReadWrite,
    /// A folder is there and holds something.
    DirectoryNotEmpty,
    /// A regular file is there and holds something.
    FileNotEmpty,
    /// A regular file is there and may be executed.
    FileIsExecutable,
    /// The machine's host name or machine id; host names may be patterns.
    Host,
    /// The processor's architecture, by systemd's names (`x86-64`, `arm64` …).
    Architecture,
    /// `yes`, `no`, `vm`, `container`, or the name of what the machine runs in.
    Virtualization,
    /// A word, or a `name=value`, of the kernel command line.
    KernelCommandLine,
    /// The kernel's release: patterns, or comparisons of versions (`>= 6.1`).
    KernelVersion,
    /// A module is loaded or built in.
    KernelModuleLoaded,
    /// A variable of the manager's own environment, or a `NAME=value` of it.
    Environment,
    /// The manager's user: a name, a number or `@system`.
    User,
    /// A group of the manager: a name, a number or `@system`.
    Group,
    /// The machine's memory, compared with a size (`>= 1G`).
    Memory,
    /// The processors that the manager may use, compared with a number.
    CPUs,
    /// Fields of /etc/os-release, compared (`ID=debian`, `VERSION_ID>=12`).
    OSRelease,
    /// Controllers of the control groups, or `v2`.
    ControlGroupController,
    /// A capability that the manager may have or hand on, by its name.
    Capability,
    /// Yes: the machine is not known to run on a battery; no: it is.
    ACPower,
    /// What the processor can, by the word of /proc/cpuinfo.
    CPUFeature,
}

impl Test {
    /// Whether what stands behind the key is a path.
    #[must_use]
    pub const fn takes_path(self) -> bool {
        matches!(
            self,
            Self::PathExists
                | Self::PathExistsGlob
                | Self::PathIsDirectory
                | Self::PathIsSymbolicLink
                | Self::PathIsMountPoint
                | Self::PathIsReadWrite
                | Self::DirectoryNotEmpty
                | Self::FileNotEmpty
                | Self::FileIsExecutable
        )
    }
}

/// `OnFailureJobMode` and `OnSuccessJobMode`: how what the end of a unit starts meets what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookMode {
    /// Jobs in the way are replaced.
    #[default]
    Replace,
    /// Jobs in the way forbid it.
    Fail,
    /// Jobs in the way are replaced, and nothing replaces its own.
    ReplaceIrreversibly,
    /// All units that are not part of it are stopped.
    Isolate,
    /// Only the unit, whatever it depends on.
    IgnoreDependencies,
    /// Only the unit, in its order.
    IgnoreRequirements,
}

impl Words for HookMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("replace", Self::Replace),
        ("fail", Self::Fail),
        ("replace-irreversibly", Self::ReplaceIrreversibly),
        ("isolate", Self::Isolate),
        ("ignore-dependencies", Self::IgnoreDependencies),
        ("ignore-requirements", Self::IgnoreRequirements),
    ];
}
