//! The laws of order: who begins before whom, who needs whom, who is never up beside whom.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentd_engine::{JobKind, Record, UnitView};
use agentd_unit::{LoadState, Unit, UnitName};

use super::World;
use super::invariants::{Verdict, is_at_rest, is_up, law};

const STARTING: &str = "7d4958e842da4a758f6c1cdc7b36dcc5";
const START_FAILED: &str = "be02cf6855d2428ba40df7e9d022f03d";
const STOPPING: &str = "de5b426a63be47a7b6ac3eaac82e2f6f";

impl World {
    pub(super) fn check_order(&mut self, unit: &UnitName, record: &Record) -> Verdict {
        let Some(view) = self.manager.unit(unit) else { return Ok(()) };
        match record.message_id {
            Some(STARTING) => self.check_start(&view),
            Some(STOPPING) => self.check_stop_order(unit),
            Some(START_FAILED) => {
                self.note_failure(&view, &record.text);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A life begins: what goes before it is done.
    fn check_start(&mut self, view: &UnitView) -> Verdict {
        let name = &view.unit.name;
        self.ends.remove(name);
        law(view.unit.load == LoadState::Loaded, || format!("{name} was started and is {}", view.unit.load))?;
        law(!self.watch.ending, || format!("{name} was started during the shutdown"))?;
        if self.alone.contains(name) {
            return Ok(());
        }
        law(!view.job.is_some_and(|job| self.doomed.contains(&job)), || {
            format!("{name} was started although something that it requires did not come up")
        })?;
        for other in self.manager.units().filter(|other| !self.alone.contains(&other.unit.name)) {
            let against = view.unit.unit.conflicts.contains(&other.unit.name)
                || other.unit.unit.conflicts.contains(name);
            let loose = self.loose.contains(&other.unit.name);
            let excused = is_at_rest(&other) || is_at_rest(view) || other.unit.name == *name || loose;
            law(!against || excused, || {
                format!("{name} was started while {} is {}", other.unit.name, other.sub)
            })?;
        }
        for other in self.before(&view.unit) {
            let Some(other) = self.manager.unit(&other) else { continue };
            let waits = other.job.is_some_and(|job| self.jobs_before.iter().any(|before| before.id == job));
            let excused = self.alone.contains(&other.unit.name) || !self.is_steady(&other.unit.name);
            law(!waits || excused, || {
                format!("{name} was started before the job of {} was done", other.unit.name)
            })?;
        }
        if view.unit.implicit_order && !self.tangled {
            for other in &view.unit.unit.binds_to {
                law(self.watch.live.contains(other), || {
                    format!("{name} was started without {other}, which it is bound to")
                })?;
            }
        }
        Ok(())
    }

    /// The units that this one comes after. In a tangled world orders give way, so nobody can say.
    fn before(&self, unit: &Unit) -> BTreeSet<UnitName> {
        if self.tangled {
            return BTreeSet::new();
        }
        let mut before: BTreeSet<UnitName> = unit.unit.after.iter().cloned().collect();
        if unit.implicit_order {
            let edges = [&unit.unit.requires, &unit.unit.binds_to, &unit.unit.wants, &unit.unit.requisite];
            before.extend(edges.into_iter().flatten().cloned());
        }
        for other in self.manager.units() {
            let install = &other.unit.install;
            let pulled = [&install.required_by, &install.wanted_by, &install.upheld_by];
            let implied = other.unit.implicit_order
                && other.unit.load == LoadState::Loaded
                && pulled.into_iter().any(|names| names.contains(&unit.name));
            if other.unit.unit.before.contains(&unit.name) || implied {
                before.insert(other.unit.name.clone());
            }
        }
        before
    }

    /// It goes by the same definition as when this step began.
    fn is_steady(&self, unit: &UnitName) -> bool {
        let now = self.manager.unit(unit);
        self.busy.get(unit).is_none_or(|before| now.is_some_and(|now| Arc::ptr_eq(before, &now.unit)))
    }

    /// What comes after a unit is down before that begins to stop, where both are to be stopped.
    fn check_stop_order(&self, unit: &UnitName) -> Verdict {
        if self.alone.contains(unit) || !self.is_steady(unit) {
            return Ok(());
        }
        for view in self.manager.units().filter(|view| !self.alone.contains(&view.unit.name)) {
            let goes = view.job.is_some_and(|job| {
                let same =
                    |before: &&agentd_engine::JobView| before.id == job && before.kind == JobKind::Stop;
                self.jobs_before.iter().any(|before| same(&before))
            });
            let still = self.manager.jobs().any(|job| Some(job.id) == view.job && job.kind == JobKind::Stop);
            law(!(goes && still && !is_at_rest(&view) && self.before(&view.unit).contains(unit)), || {
                format!("{unit} was stopped before {}", view.unit.name)
            })?;
        }
        Ok(())
    }

    /// A start did not come to its end: who waits for it and needs it must not be started by the job it has now; and
    /// a unit that failed only for another must return with it.
    fn note_failure(&mut self, view: &UnitView, text: &str) {
        let name = &view.unit.name;
        let required_by = &view.unit.install.required_by;
        for job in self.jobs_before.iter().filter(|job| job.kind == JobKind::Start && !job.running) {
            let Some(other) = self.manager.unit(&job.unit) else { continue };
            let section = &other.unit.unit;
            let needs = section.requires.contains(name)
                || section.binds_to.contains(name)
                || section.requisite.contains(name)
                || required_by.contains(&job.unit);
            if needs && self.before(&other.unit).contains(name) && !self.alone.contains(&job.unit) {
                self.doomed.insert(job.id);
            }
        }
        let because = view.failure.as_deref().and_then(|why| why.strip_suffix(" failed to start"));
        if let Some(cause) = because.and_then(|cause| UnitName::parse(cause).ok())
            && text.contains("Dependency failed")
            && is_at_rest(view)
            && !self.manager.unit(&cause).is_some_and(|cause| is_up(&cause))
        {
            self.returning.insert(name.clone(), cause);
        }
    }
}
