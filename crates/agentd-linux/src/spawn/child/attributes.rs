//! What the scheduler and the disks are told of the process.

use super::super::raw;
use super::super::step::Step;
use super::{At, Failure, Walk};

impl Walk<'_> {
    /// OOM score, nice value, policy, processors, rank at the disks.
    pub(super) fn set_attributes(&self) -> Result<(), Failure> {
        if let Some(text) = self.oom_score_adjust {
            raw::write_file(libc::AT_FDCWD, c"/proc/self/oom_score_adj", text).at(Step::OomAdjust)?;
        }
        if let Some(nice) = self.nice {
            raw::set_nice(nice).at(Step::Nice)?;
        }
        if let Some((policy, priority)) = self.scheduling {
            raw::set_scheduler(policy, priority).at(Step::SetScheduler)?;
        }
        if !self.affinity.is_empty() {
            raw::set_affinity(self.affinity).at(Step::CpuAffinity)?;
        }
        if let Some(priority) = self.io_priority {
            raw::set_io_priority(priority).at(Step::IoPriority)?;
        }
        Ok(())
    }
}
