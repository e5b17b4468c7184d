//! Jobs: what is to be done with a unit, when its turn comes, and who waits for it. One a unit at most.

use agentd_unit::UnitName;

use crate::clock::Monotonic;
use crate::event::JobKind;
use crate::graph::UnitId;
use crate::ids::{EffectId, JobId, RequestId};

/// What a job does; what else can be asked is made into one of these when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobType {
    Start,
    Stop,
    /// Stop now and become a start then.
    Restart,
    Reload,
    VerifyActive,
}

impl JobType {
    pub(crate) const fn kind(self) -> JobKind {
        match self {
            Self::Start => JobKind::Start,
            Self::Stop => JobKind::Stop,
            Self::Restart => JobKind::Restart,
            Self::Reload => JobKind::Reload,
            Self::VerifyActive => JobKind::VerifyActive,
        }
    }

    /// Whether it first takes the unit down, so that what comes before the unit waits for it.
    pub(crate) const fn takes_down(self) -> bool {
        matches!(self, Self::Stop | Self::Restart)
    }

    /// What becomes of a job that is there when another is asked for; `None`: they cannot both be.
    pub(crate) const fn merge(self, new: Self) -> Option<Self> {
        use JobType as T;
        match (self, new) {
            (T::Stop, T::Stop) => Some(T::Stop),
            (T::Stop, _) | (_, T::Stop) => None,
            (T::Restart, _) | (_, T::Restart) => Some(T::Restart),
            (T::Start, _) | (_, T::Start) => Some(T::Start),
            (T::Reload, _) | (_, T::Reload) => Some(T::Reload),
            (T::VerifyActive, T::VerifyActive) => Some(T::VerifyActive),
        }
    }
}

/// Why a transaction is made, which decides what it may override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A person asks: limits and counts are cleared.
    Person,
    /// The manager itself (a restart, a timer, a dependency): never against a stop that is under way.
    Manager,
}

/// Where a start stands with the conditions of its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Check {
    /// They were not looked at.
    #[default]
    Due,
    /// They are being looked at; asked anew at this time, should the answer be lost.
    Asked(EffectId, Monotonic),
    /// They hold.
    Passed,
}

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) unit: UnitId,
    pub(crate) kind: JobType,
    /// What people see: a restart stays one when its stop is done.
    pub(crate) shown: JobKind,
    /// Whether it has begun.
    pub(crate) running: bool,
    pub(crate) cause: Cause,
    /// The unit itself was asked for: a pending restart is taken up at once.
    pub(crate) hurry: bool,
    /// `ignore-dependencies`: waits for nothing.
    pub(crate) alone: bool,
    /// `ignore-requirements`: nothing that it requires makes it fail.
    pub(crate) bare: bool,
    /// `replace-irreversibly`: no other job takes its place.
    pub(crate) irreversible: bool,
    /// Started by the `OnFailure` of a job that failed: if it fails like that one, nothing more is started, as two units
    /// that are each other's would have no end.
    pub(crate) for_a_job: bool,
    pub(crate) check: Check,
    /// When it is given up, `JobTimeoutSec`.
    pub(crate) until: Option<Monotonic>,
    /// When it is given up if it still runs, `JobRunningTimeoutSec`.
    pub(crate) running_until: Option<Monotonic>,
    pub(crate) requests: Vec<(RequestId, UnitName)>,
    /// The jobs that look again when this one is done.
    pub(crate) waiters: Vec<JobId>,
    /// Where in the unit's list of neighbours the search for something to wait for goes on.
    pub(crate) cursor: usize,
}

impl Job {
    /// The setting by which it has taken too long.
    pub(crate) fn overdue(&self, now: Monotonic) -> Option<&'static str> {
        let is_over = |until: Option<Monotonic>| until.is_some_and(|until| until <= now);
        if is_over(self.until) {
            return Some("JobTimeoutSec");
        }
        is_over(self.running_until).then_some("JobRunningTimeoutSec")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_unit_merge_by_the_table() {
        use JobType as T;
        let all = [T::Start, T::Stop, T::Restart, T::Reload, T::VerifyActive];
        let table: Vec<String> = all
            .iter()
            .map(|old| {
                all.iter()
                    .map(|new| match old.merge(*new) {
                        None => '-',
                        Some(T::Start) => 's',
                        Some(T::Stop) => 'x',
                        Some(T::Restart) => 'r',
                        Some(T::Reload) => 'l',
                        Some(T::VerifyActive) => 'v',
                    })
                    .collect()
            })
            .collect();
        assert_eq!(table, ["s-rss", "-x---", "r-rrr", "s-rll", "s-rlv"]);
    }
}
