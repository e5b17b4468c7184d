//! Freezing a unit's processes where they stand, and letting them go on: systemctl(1) `freeze` and `thaw`.
//!
//! A frozen service is up, gives no signs of life and is not expected to. Whatever takes it down lets it go on first, so
//! that it can act on what it is asked.

use agentd_unit::UnitName;

use crate::effect::{Effect, Level, RequestError};
use crate::manager::Manager;
use crate::out::Out;
use crate::state::ActiveState;

impl Manager {
    /// Freezes a service or lets it go on; one that is so already stays so.
    pub(crate) fn freeze(
        &mut self,
        name: &UnitName,
        frozen: bool,
        out: &mut Out<'_>,
    ) -> Result<(), RequestError> {
        let unit = self.id(name).ok_or_else(|| RequestError::NotFound(name.clone()))?;
        let inapplicable = |why| RequestError::NotApplicable(name.clone(), why);
        let Some(entry) = self.entry_mut(unit) else { return Err(RequestError::NotFound(name.clone())) };
        let is_busy = entry.job.is_some();
        let is_up = entry.active() == ActiveState::Active;
        let Some(service) = entry.service_mut() else { return Err(inapplicable("it has no processes")) };
        let facts = &mut service.facts;
        if facts.is_frozen() == frozen {
            return if frozen || is_up { Ok(()) } else { Err(inapplicable("it is not active")) };
        }
        if frozen {
            let Some(run) = facts.run.as_mut().filter(|run| is_up && run.spawned) else {
                return Err(inapplicable("it is not active"));
            };
            if is_busy {
                return Err(inapplicable("it has a job that has not ended"));
            }
            run.frozen = true;
            let (run, name) = (run.id, run.unit.name.clone());
            out.push(Effect::Freeze { run, frozen });
            out.log(Level::Info, &name, Some(run), None, format!("{name}: Frozen."));
        } else {
            facts.thaw(out);
        }
        self.set_alarm(unit);
        self.touch(unit);
        Ok(())
    }
}
