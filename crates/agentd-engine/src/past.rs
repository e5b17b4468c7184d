//! What the lives of a unit before have left: for people, and for the commands that end a service.

use agentd_unit::Realtime;

use crate::checks::Checks;
use crate::event::ExitStatus;
use crate::state::ServiceResult;
use crate::unit::{Core, Entry};
use crate::view::ExecStatusView;

/// What the lives of a unit before have left. Nothing of it decides whether the unit can be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// Why its last life ended, or what has gone wrong in this one.
    pub result: ServiceResult,
    /// The main process, now or last.
    pub exec_main: Option<ExecStatusView>,
    /// How the last main process of this run ended, and what that means for it.
    pub main_end: Option<(ExitStatus, ServiceResult)>,
    /// `ERRNO=` of the service.
    pub errno: Option<i32>,
    /// `BUSERROR=` of the service.
    pub bus_error: Option<String>,
    /// Why the last start was not possible.
    pub failure: Option<String>,
    /// Its conditions held when it was last to be started.
    pub condition: bool,
    /// Its asserts held then.
    pub assertion: bool,
    /// What did not hold.
    pub unmet: Option<String>,
    /// Its last life got as far as being up.
    pub came_up: bool,
    /// When it last left active.
    pub active_exit: Option<Realtime>,
    /// When it last became inactive or failed.
    pub inactive_enter: Option<Realtime>,
    /// When the present state began.
    pub state_change: Option<Realtime>,
}

impl Past {
    pub(crate) fn of(entry: &Entry) -> Self {
        let facts = entry.service().map(|service| &service.facts);
        let run = facts.and_then(|facts| facts.run.as_ref());
        Self {
            result: entry.result(),
            exec_main: facts.and_then(|facts| facts.exec_main),
            main_end: run.and_then(|run| Some((run.main_status?, run.main_outcome))),
            errno: facts.and_then(|facts| facts.status_errno),
            bus_error: facts.and_then(|facts| facts.status_bus_error.clone()),
            failure: entry.failure.clone(),
            condition: entry.checks.condition,
            assertion: entry.checks.assertion,
            unmet: entry.checks.unmet.clone(),
            came_up: entry.came_up,
            active_exit: entry.times.active_exit,
            inactive_enter: entry.times.inactive_enter,
            state_change: entry.times.state_change,
        }
    }

    /// Gives it to a unit that stands where another manager left it.
    pub(crate) fn restore(&self, entry: &mut Entry) {
        entry.failure.clone_from(&self.failure);
        let (condition, assertion) = (self.condition, self.assertion);
        entry.checks = Checks { condition, assertion, unmet: self.unmet.clone() };
        entry.came_up = self.came_up;
        entry.times.active_exit = self.active_exit;
        entry.times.inactive_enter = self.inactive_enter;
        entry.times.state_change = self.state_change;
        let Core::Service(service) = &mut entry.core else { return };
        let facts = &mut service.facts;
        if facts.result == ServiceResult::Success {
            facts.result = self.result; // Else it is what the unit's state says.
        }
        facts.exec_main = self.exec_main.or(facts.exec_main);
        facts.status_errno = self.errno;
        facts.status_bus_error.clone_from(&self.bus_error);
        if let (Some(run), Some((status, outcome))) = (&mut facts.run, self.main_end) {
            (run.main_status, run.main_outcome) = (Some(status), outcome);
        }
    }
}
