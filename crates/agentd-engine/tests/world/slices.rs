//! The law of slices: what runs lies in slices that are up.

use std::collections::BTreeMap;

use agentd_engine::{ActiveState, JobKind, JobView, UnitView};
use agentd_unit::UnitName;

use super::World;
use super::invariants::{Verdict, is_at_rest, is_up, law};

impl World {
    /// A service is on its way up, or is up, only while the slices that it lies in are: they come up first, and to stop
    /// one stops what lies in it.
    pub(super) fn check_slices(&mut self, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
        self.note_adrift(views);
        for view in views.values() {
            // Between two lives it may have got another slice, which its next one asks for.
            let waits = view.restart_at.is_some();
            let down = is_at_rest(view) || view.active == ActiveState::Deactivating || waits;
            let Some(slice) = view.unit.slice().filter(|_| !down) else { continue };
            let is_excused = self.adrift.contains(&view.unit.name) || self.sunk.contains(&slice);
            law(is_excused || views.get(&slice).is_some_and(is_up), || {
                format!("{} is {} while {slice} is down", view.unit.name, view.sub)
            })?;
        }
        Ok(())
    }

    /// Whom no slice has to hold: who was started, or stays up, by a job that ignores requirements, and whose stop was
    /// called off or given up while its slice goes down; and who lies in a slice that was stopped by such a job.
    fn note_adrift(&mut self, views: &BTreeMap<UnitName, UnitView>) {
        for (name, view) in views {
            let goes_down = |jobs: &[JobView]| {
                let stops = |job: &JobView| matches!(job.kind, JobKind::Stop | JobKind::Restart);
                jobs.iter().any(|job| job.unit == *name && stops(job))
            };
            let spared = goes_down(&self.jobs_of_step) && !goes_down(&self.jobs_before);
            let ignores = self.alone.contains(name) || self.loose.contains(name);
            match is_at_rest(view) {
                true => self.adrift.remove(name),
                false if ignores || spared => self.adrift.insert(name.clone()),
                false => false,
            };
            match is_up(view) {
                true => self.sunk.remove(name),
                false if ignores => self.sunk.insert(name.clone()),
                false => false,
            };
        }
    }
}
