//! What the scheduler and the disks are told of the process.

use super::super::raw;
use super::super::step::Step;
use super::{At, Failure, Walk};

impl Walk<'_> {
    /// OOM score, core dump, nice value, policy, processors, memory nodes, rank at the disks, timers, personality.
    pub(super) fn set_attributes(&self) -> Result<(), Failure> {
        if let Some(text) = self.oom_score_adjust {
            raw::write_file(libc::AT_FDCWD, c"/proc/self/oom_score_adj", text).at(Step::OomAdjust)?;
        }
        if let Some(text) = self.coredump_filter {
            raw::write_file(libc::AT_FDCWD, c"/proc/self/coredump_filter", text).at(Step::CoredumpFilter)?;
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
        if let Some(mode) = self.memory_policy {
            raw::set_memory_policy(mode, self.memory_nodes).at(Step::NumaPolicy)?;
        }
        if let Some(priority) = self.io_priority {
            raw::set_io_priority(priority).at(Step::IoPriority)?;
        }
        if let Some(nanoseconds) = self.timer_slack {
            raw::prctl(libc::PR_SET_TIMERSLACK, nanoseconds as usize, 0).at(Step::TimerSlack)?;
        }
        if let Some(personality) = self.personality {
            raw::set_personality(personality).at(Step::Personality)?;
        }
        Ok(())
    }
}
