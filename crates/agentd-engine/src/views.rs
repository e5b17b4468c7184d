//! Copies of the state for readers.

use std::sync::Arc;

use crate::graph::{Relation, UnitId};
use crate::job::{Check, Job};
use crate::manager::Manager;
use crate::service::ServiceState;
use crate::unit::{Core, Entry};
use crate::view::{JobView, SocketView, TimerView, UnitView};

impl Manager {
    pub(crate) fn view(&self, id: UnitId) -> Option<UnitView> {
        let entry = self.entry(id)?;
        let facts = entry.service().map(|service| &service.facts);
        let run = facts.and_then(|facts| facts.run.as_ref());
        let restart_at = match entry.service().map(|service| service.state) {
            Some(ServiceState::AutoRestart { at, .. }) => Some(at),
            _ => None,
        };
        let triggered_by = self.graph.related(id, Relation::TRIGGERED_BY).map(|timer| self.name(timer));
        Some(UnitView {
            unit: Arc::clone(&entry.unit),
            changed_on_disk: entry.newer.is_some(),
            active: entry.active(),
            sub: entry.sub(),
            frozen: self.is_frozen(id),
            result: entry.result(),
            forgotten: entry.forgotten,
            run: facts.and_then(|facts| facts.last_run),
            main: run.and_then(|run| run.main).and_then(|main| Some((main.id, main.pid?))),
            control: run.and_then(|run| run.control).and_then(|c| Some((c.id, c.pid?, c.kind))),
            exec_main: facts.and_then(|facts| facts.exec_main),
            n_restarts: facts.map_or(0, |facts| facts.restarts.count),
            status_text: facts.and_then(|facts| facts.status_text.clone()),
            status_errno: facts.and_then(|facts| facts.status_errno),
            status_bus_error: facts.and_then(|facts| facts.status_bus_error.clone()),
            job: entry.job,
            active_enter: entry.times.active_enter,
            active_exit: entry.times.active_exit,
            inactive_exit: entry.times.inactive_exit,
            inactive_enter: entry.times.inactive_enter,
            state_change: entry.times.state_change,
            deadline: self.alarms.of(id),
            restart_at,
            restart_delay: facts.and_then(|facts| facts.restart_delay).filter(|_| restart_at.is_some()),
            timer: view_timer(entry),
            socket: view_socket(entry),
            triggers: entry.unit.triggered(),
            triggered_by: triggered_by.collect(),
            condition_result: entry.checks.condition,
            assert_result: entry.checks.assertion,
            unmet: entry.checks.unmet.clone(),
            failure: entry.failure.clone(),
        })
    }

    pub(crate) fn view_job(&self, job: &Job) -> JobView {
        JobView {
            id: job.id,
            unit: self.name(job.unit),
            kind: job.shown,
            running: job.running,
            waits_for: if job.running { Vec::new() } else { self.waits_for(job) },
            checking: matches!(job.check, Check::Asked(..)),
            ignores_order: job.alone,
            ignores_requirements: job.alone || job.bare,
            irreversible: job.irreversible,
        }
    }
}

fn view_timer(entry: &Entry) -> Option<TimerView> {
    let Core::Timer(timer) = &entry.core else { return None };
    Some(TimerView {
        unit: entry.unit.triggered()?,
        next_realtime: timer.next_realtime,
        next_boottime: timer.next_boottime,
        last_trigger: timer.last_trigger,
        skipped: timer.skipped,
    })
}

fn view_socket(entry: &Entry) -> Option<SocketView> {
    let Core::Socket(socket) = &entry.core else { return None };
    let facts = &socket.facts;
    Some(SocketView {
        accepted: facts.accepted,
        connections: facts.connections.len() as u64,
        refused: facts.refused,
    })
}
