//! What the end of a unit, or of its job, starts: OnFailure and OnSuccess, once for each; and whether everything ends with it.

use agentd_unit::sections::HookMode;

use crate::actions::Ending;
use crate::effect::Monitor;
use crate::event::JobMode;
use crate::graph::{Relation, UnitId};
use crate::manager::Manager;
use crate::out::Out;
use crate::state::{ActiveState, ServiceResult};

/// The units to start, and what they are told of the one that has ended.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    units: Vec<UnitId>,
    mode: JobMode,
    monitor: Option<Box<Monitor>>,
    ending: Option<Ending>,
}

impl Manager {
    /// What the step of a unit from one state to another starts, by the definition that it has lived by.
    pub(crate) fn hooks_of_end(&self, unit: UnitId, old: ActiveState, new: ActiveState) -> Hooks {
        let was_at_rest = matches!(old, ActiveState::Inactive | ActiveState::Failed);
        let Some(entry) = self.entry(unit) else { return Hooks::default() };
        let section = &entry.unit.unit;
        let (relation, mode) = match new {
            // Also where it never began: started too often, or part of a cycle.
            ActiveState::Failed if old != new => (Relation::ON_FAILURE, section.on_failure_job_mode),
            ActiveState::Inactive if !was_at_rest && entry.result() == ServiceResult::Success => {
                (Relation::ON_SUCCESS, section.on_success_job_mode)
            }
            _ => return Hooks::default(),
        };
        let ending = self.ending_of(unit, old, new);
        let monitor = entry.service().and_then(|service| {
            let facts = &service.facts;
            Some(Box::new(Monitor {
                unit: entry.unit.name.clone(),
                run: facts.last_run?,
                result: facts.result,
                exit_status: facts.last_status,
                restarts: facts.restarts.count,
            }))
        });
        Hooks { units: self.graph.related(unit, relation).collect(), mode: job_mode(mode), monitor, ending }
    }

    /// What a job that has failed for others, or took too long, starts: `OnFailure`, though the unit has had no end.
    pub(crate) fn start_hooks_of_job(&mut self, of: UnitId, out: &mut Out<'_>) {
        let Some(mode) = self.entry(of).map(|entry| job_mode(entry.unit.unit.on_failure_job_mode)) else {
            return;
        };
        for unit in self.graph.related(of, Relation::ON_FAILURE).collect::<Vec<_>>() {
            self.start_by_manager_in(mode, unit, true, out);
        }
    }

    pub(crate) fn start_hooks(&mut self, of: UnitId, hooks: Hooks, out: &mut Out<'_>) {
        for unit in hooks.units {
            if let Some(entry) = self.entry_mut(unit) {
                entry.monitor.clone_from(&hooks.monitor);
            }
            self.start_by_manager_in(hooks.mode, unit, false, out);
        }
        if let Some(ending) = hooks.ending {
            self.end_system(of, ending, out);
        }
    }
}

const fn job_mode(mode: HookMode) -> JobMode {
    match mode {
        HookMode::Replace => JobMode::Replace,
        HookMode::Fail => JobMode::Fail,
        HookMode::ReplaceIrreversibly => JobMode::ReplaceIrreversibly,
        HookMode::Isolate => JobMode::Isolate,
        HookMode::IgnoreDependencies => JobMode::IgnoreDependencies,
        HookMode::IgnoreRequirements => JobMode::IgnoreRequirements,
    }
}
