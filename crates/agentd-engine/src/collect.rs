//! What is forgotten of a unit that has failed: because a person says so, or by `CollectMode`, systemd.unit(5).
//!
//! A definition stays as long as its file does. What is forgotten is the failure: the unit is inactive again, with the
//! result and the counts of one that never was begun.

use std::collections::BTreeSet;

use agentd_unit::LoadState;
use agentd_unit::sections::CollectMode;

use crate::effect::Level;
use crate::graph::{Relation, UnitId};
use crate::manager::Manager;
use crate::out::Out;
use crate::path::PathState;
use crate::service::ServiceState;
use crate::socket::SocketState;
use crate::state::{ActiveState, ServiceResult};
use crate::timer::TimerState;
use crate::unit::{Core, PlainState};

impl Manager {
    /// Forgets that a unit has failed, and all that was counted of it.
    pub(crate) fn clear_failure(&mut self, unit: UnitId, out: &mut Out<'_>) {
        if let Some(entry) = self.entry_mut(unit) {
            entry.failure = None;
            entry.restarts().forget();
            if let Some(service) = entry.service_mut() {
                service.facts.failure = None;
            }
        }
        self.returns_no_more(unit);
        self.set(
            unit,
            |entry, _| match &mut entry.core {
                Core::Service(service) if service.state == ServiceState::Failed => {
                    service.state = ServiceState::Dead;
                    service.facts.result = ServiceResult::Success;
                }
                Core::Timer(timer) if timer.state == TimerState::Failed => timer.stop(ServiceResult::Success),
                Core::Socket(socket) if socket.state == SocketState::Failed => {
                    socket.state = SocketState::Dead;
                    socket.facts.result = ServiceResult::Success;
                }
                Core::Path(path) if path.state == PathState::Failed => {
                    path.state = PathState::Dead;
                    path.facts.result = ServiceResult::Success;
                }
                Core::Plain(plain @ PlainState::Failed(_)) => *plain = PlainState::Dead,
                Core::Service(_) | Core::Timer(_) | Core::Socket(_) | Core::Path(_) | Core::Plain(_) => {}
            },
            out,
        );
    }

    /// This unit, if it has failed, is to be forgotten when nothing speaks of it any more.
    pub(crate) fn note_failed(&mut self, unit: UnitId) {
        if self.entry(unit).is_some_and(is_collected) {
            self.failed.insert(unit);
            self.failed_to_see = true;
        }
    }

    /// Forgets the failed units that are to be forgotten, once all that follows from their end is under way; true if
    /// there were any.
    pub(crate) fn forget_the_failed(&mut self, out: &mut Out<'_>) -> bool {
        if !std::mem::take(&mut self.failed_to_see) {
            return false;
        }
        let failed = std::mem::take(&mut self.failed);
        let (held, free): (BTreeSet<_>, BTreeSet<_>) = failed
            .into_iter()
            .filter(|id| self.entry(*id).is_some_and(is_collected))
            .partition(|id| self.is_held(*id));
        self.failed = held;
        for unit in &free {
            let name = self.name(*unit);
            out.log(Level::Debug, &name, None, None, format!("{name}: Its failure is forgotten."));
            let result = self.entry(*unit).map(|entry| entry.result());
            self.clear_failure(*unit, out);
            if let Some(entry) = self.entry_mut(*unit) {
                entry.forgotten = result;
            }
        }
        let is_fileless =
            |id: &UnitId| self.entry(*id).is_some_and(|entry| entry.unit.load == LoadState::NotFound);
        if free.iter().any(is_fileless) {
            self.forget_the_gone();
        }
        !free.is_empty()
    }

    /// Whether it has a job, or a unit that is up or on its way speaks of it: what has become of it is still of interest.
    fn is_held(&self, unit: UnitId) -> bool {
        if self.entry(unit).is_some_and(|entry| entry.job.is_some()) {
            return true;
        }
        let mut holders = self.graph.related(unit, Relation::IN_USE_BY | Relation::TRIGGERED_BY);
        holders.any(|other| self.entry(other).is_some_and(|entry| !entry.is_at_rest() || entry.job.is_some()))
    }
}

fn is_collected(entry: &crate::unit::Entry) -> bool {
    entry.active() == ActiveState::Failed
        && entry.unit.unit.system.collect_mode == CollectMode::InactiveOrFailed
}
