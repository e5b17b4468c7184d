//! One command line of a unit, systemd.service(5) "COMMAND LINES".

use std::fmt;

/// Which list of a service a command stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecKind {
    /// `ExecCondition`: before all else; an exit code from 1 to 254 leaves the start out.
    Condition,
    /// `ExecStartPre`: before the main process, in order, each must succeed.
    StartPre,
    /// `ExecStart`: the main process (several only for `Type=oneshot`).
    Start,
    /// `ExecStartPost`: once the main process counts as started.
    StartPost,
    /// `ExecReload`: asks the running service to read its configuration again.
    Reload,
    /// `ExecStop`: asks the running service to end.
    Stop,
    /// `ExecStopPost`: after the last process is gone, also after a failed start.
    StopPost,
}

impl ExecKind {
    /// All lists, in the order of a service's life.
    pub const ALL: [Self; 7] = [
        Self::Condition,
        Self::StartPre,
        Self::Start,
        Self::StartPost,
        Self::Reload,
        Self::Stop,
        Self::StopPost,
    ];

    /// The key in the unit file.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Condition => "ExecCondition",
            Self::StartPre => "ExecStartPre",
            Self::Start => "ExecStart",
            Self::StartPost => "ExecStartPost",
            Self::Reload => "ExecReload",
            Self::Stop => "ExecStop",
            Self::StopPost => "ExecStopPost",
        }
    }
}

impl fmt::Display for ExecKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// One command: the program, its arguments and systemd's prefixes, specifiers already resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExecCommand {
    /// Absolute path of the program, or a bare name that is looked up along the service's PATH.
    pub program: String,
    /// All arguments, `argv[0]` first (it differs from `program` with the `@` prefix).
    pub argv: Vec<String>,
    /// `-`: a failing exit counts as success.
    pub ignore_failure: bool,
    /// `+`: full privileges, User and capability settings do not apply.
    pub full_privileges: bool,
    /// `!`: elevated: User, Group and capability settings do not apply to this command.
    pub no_setuid: bool,
    /// Unless `:`: `$VAR` and `${VAR}` in the arguments are replaced from the environment of the command.
    pub expand_environment: bool,
}
