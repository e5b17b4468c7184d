//! Freezing a unit's processes where they stand, and letting them go on: systemctl(1) `freeze` and `thaw`.
//!
//! A frozen service is up, gives no signs of life and is not expected to. Whatever takes it down lets it go on first, so
//! that it can act on what it is asked. A slice is what its services are: frozen is one of which each service that is up is.

use agentd_unit::UnitName;

use crate::effect::{Effect, Level, RequestError};
use crate::graph::UnitId;
use crate::manager::Manager;
use crate::out::Out;
use crate::state::ActiveState;
use crate::unit::Entry;

/// Whether a service is so already, or could not become so.
fn applicable(entry: &Entry, frozen: bool) -> Result<bool, &'static str> {
    let is_up = entry.active() == ActiveState::Active;
    let Some(service) = entry.service() else { return Err("it has no processes") };
    let facts = &service.facts;
    if facts.is_frozen() == frozen {
        return if frozen || is_up { Ok(false) } else { Err("it is not active") };
    }
    if frozen && !(is_up && facts.run.as_ref().is_some_and(|run| run.spawned)) {
        return Err("it is not active");
    }
    if frozen && entry.job.is_some() {
        return Err("it has a job that has not ended");
    }
    Ok(true)
}

impl Manager {
    /// Freezes a service, or all of a slice, or lets it go on; one that is so already stays so. A slice is frozen whole or
    /// not at all.
    pub(crate) fn freeze(
        &mut self,
        name: &UnitName,
        frozen: bool,
        out: &mut Out<'_>,
    ) -> Result<(), RequestError> {
        let unit = self.id(name).ok_or_else(|| RequestError::NotFound(name.clone()))?;
        let Some(entry) = self.entry(unit) else { return Err(RequestError::NotFound(name.clone())) };
        let units = if matches!(entry.unit.body, agentd_unit::Body::Slice(_)) {
            self.services_up_in(unit)
        } else {
            vec![unit]
        };
        let inapplicable = |name: &UnitName, why| RequestError::NotApplicable(name.clone(), why);
        if name.as_str() == "-.slice" {
            return Err(inapplicable(name, "it holds the manager"));
        }
        if units.is_empty() {
            return Err(inapplicable(name, "no service of it is active"));
        }
        let mut changes = Vec::new();
        for id in units {
            let Some(entry) = self.entry(id) else { continue };
            if applicable(entry, frozen).map_err(|why| inapplicable(&entry.unit.name, why))? {
                changes.push(id);
            }
        }
        for id in changes {
            self.freeze_one(id, frozen, out);
        }
        Ok(())
    }

    fn freeze_one(&mut self, unit: UnitId, frozen: bool, out: &mut Out<'_>) {
        let Some(service) = self.entry_mut(unit).and_then(|entry| entry.service_mut()) else { return };
        if !frozen {
            service.facts.thaw(out);
        } else if let Some(run) = service.facts.run.as_mut() {
            run.frozen = true;
            let (run, name) = (run.id, run.unit.name.clone());
            out.push(Effect::Freeze { run, frozen });
            out.log(Level::Info, &name, Some(run), None, format!("{name}: Frozen."));
        }
        self.set_alarm(unit);
        self.touch(unit);
    }

    /// The services that are up in a slice or in one below it.
    fn services_up_in(&self, slice: UnitId) -> Vec<UnitId> {
        let is_up = |entry: &Entry| entry.service().is_some() && !entry.is_at_rest();
        let lies_in = |id: &UnitId| {
            let above = |unit: UnitId| self.entry(unit)?.unit.slice().and_then(|name| self.id(&name));
            std::iter::successors(above(*id), |slice| above(*slice)).any(|above| above == slice)
        };
        self.ids().filter(|id| self.entry(*id).is_some_and(is_up) && lies_in(id)).collect()
    }

    /// Whether a unit stands still: a service that is frozen, a slice of which every service that is up is.
    pub(crate) fn is_frozen(&self, unit: UnitId) -> bool {
        let frozen = |id: UnitId| {
            self.entry(id).and_then(|entry| entry.service()).is_some_and(|service| service.facts.is_frozen())
        };
        let is_slice =
            self.entry(unit).is_some_and(|entry| matches!(entry.unit.body, agentd_unit::Body::Slice(_)));
        if !is_slice {
            return frozen(unit);
        }
        // Nearly always nothing is: then nobody has to be looked for.
        if !self.ids().any(frozen) {
            return false;
        }
        let units = self.services_up_in(unit);
        !units.is_empty() && units.into_iter().all(frozen)
    }
}
