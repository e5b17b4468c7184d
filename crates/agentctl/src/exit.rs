//! Exit codes as systemctl has them, and what a verb hands back.
//!
//! The table for people is docs/exit-codes.md; a test holds the two together.

use std::io;

use agentd_protocol::{CallError, JobResult};

use crate::client::ClientError;

/// What the shell sees in `$?`. Ordered so that of several units the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done; for `status` and `is-active`: active.
    Done = 0,
    /// A job failed, or something went wrong that has no code of its own.
    Failed = 1,
    /// The command line is not right.
    Usage = 2,
    /// The unit is not active, or cannot do that.
    NotActive = 3,
    /// There is no such unit, or it is not permitted.
    NoSuchUnit = 4,
    /// What is to be started is not installed.
    NotInstalled = 5,
    /// The unit's files could not be loaded.
    NotLoaded = 6,
    /// The manager cannot be reached.
    Unreachable = 7,
    /// It took too long.
    TimedOut = 124,
}

impl Exit {
    /// Every code with its name in the documentation.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 9] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotActive,
        Self::NoSuchUnit,
        Self::NotInstalled,
        Self::NotLoaded,
        Self::Unreachable,
        Self::TimedOut,
    ];

    /// What a job that ended so means for the caller.
    ///
    /// A job that had nothing to do is no failure, as with systemctl; one that the unit cannot do is not applicable.
    pub(crate) const fn of_job(result: JobResult) -> Self {
        match result {
            JobResult::Done | JobResult::Skipped => Self::Done,
            JobResult::Failed | JobResult::Canceled | JobResult::Dependency | JobResult::Assert => {
                Self::Failed
            }
            JobResult::Invalid => Self::NotActive,
            JobResult::Timeout => Self::TimedOut,
        }
    }

    /// What a refused job means for the caller: systemctl tells a unit that is to be acted on and is not there from
    /// one that is only looked at.
    pub(crate) const fn of_refused_job(error: &CallError) -> Self {
        match error {
            CallError::NoSuchUnit { .. } => Self::NotInstalled,
            other => Self::of_call(other),
        }
    }

    /// What a refused call means for the caller.
    pub(crate) const fn of_call(error: &CallError) -> Self {
        match error {
            CallError::LoadFailed { .. } => Self::NotLoaded,
            CallError::NoSuchUnit { .. }
            | CallError::NotPermitted { .. }
            | CallError::OnlyByDependency { .. }
            | CallError::NoIsolation { .. }
            | CallError::UnitMasked { .. } => Self::NoSuchUnit,
            CallError::NotApplicable { .. } | CallError::NoSuchProcess { .. } => Self::NotActive,
            CallError::InterfaceNotFound { .. }
            | CallError::MethodNotFound { .. }
            | CallError::InvalidParameter { .. }
            | CallError::ExpectedMore {}
            | CallError::TransactionFailed { .. }
            | CallError::NoSuchJob { .. }
            | CallError::ShuttingDown { .. }
            | CallError::Busy { .. }
            | CallError::Failed { .. }
            | CallError::Malformed { .. }
            | CallError::Other { .. } => Self::Failed,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a verb could not go on. What concerns one unit of several is printed by the verb and becomes an [`Exit`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The manager: not there, not permitted, not of one mind with us.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Standard output.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    /// The command line.
    #[error("{0}")]
    Usage(String),
    /// Anything else, told whole.
    #[error("{message}")]
    Other {
        /// The code that it ends with.
        exit: Exit,
        /// What was tried, on what, why it failed and what to do.
        message: String,
    },
}

impl Failure {
    /// The exit code that it ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => error.exit(),
            Self::Output(_) => Exit::Failed,
            Self::Usage(_) => Exit::Usage,
            Self::Other { exit, .. } => *exit,
        }
    }

    /// Whether whoever read our output has left, as `head` does: no reason to complain.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What a verb hands back.
pub(crate) type Outcome = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_a_job_has_its_code() {
        for (result, exit) in [
            (JobResult::Done, 0),
            (JobResult::Skipped, 0),
            (JobResult::Failed, 1),
            (JobResult::Canceled, 1),
            (JobResult::Dependency, 1),
            (JobResult::Assert, 1),
            (JobResult::Invalid, 3),
            (JobResult::Timeout, 124),
        ] {
            assert_eq!(Exit::of_job(result) as u8, exit, "{result}");
        }
    }

    #[test]
    fn each_refusal_has_its_code() {
        let (unit, message) = (String::from("a.service"), String::from("no"));
        for (error, exit) in [
            (CallError::NoSuchUnit { unit: unit.clone(), message: message.clone() }, 4),
            (CallError::LoadFailed { unit: unit.clone(), message: message.clone() }, 6),
            (CallError::UnitMasked { unit: unit.clone(), message: message.clone() }, 4),
            (CallError::NotPermitted { message: message.clone() }, 4),
            (CallError::OnlyByDependency { unit: unit.clone(), message: message.clone() }, 4),
            (CallError::NoIsolation { unit: unit.clone(), message: message.clone() }, 4),
            (CallError::NotApplicable { unit: unit.clone(), message: message.clone() }, 3),
            (CallError::NoSuchProcess { unit: unit.clone(), message: message.clone() }, 3),
            (CallError::TransactionFailed { unit, message: message.clone() }, 1),
            (CallError::NoSuchJob { job: 1, message }, 1),
        ] {
            assert_eq!(Exit::of_call(&error) as u8, exit, "{error:?}");
        }
    }

    #[test]
    fn a_job_for_a_unit_that_is_not_there_is_not_installed() {
        let error = CallError::NoSuchUnit { unit: "a.service".into(), message: "no".into() };
        assert_eq!(Exit::of_refused_job(&error) as u8, 5);
    }

    #[test]
    fn the_documented_table_lists_every_code() {
        let table = include_str!("../../../docs/exit-codes.md");
        let listed: Vec<u8> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
            .collect();
        assert_eq!(listed, Exit::ALL.map(|exit| exit as u8));
    }
}
