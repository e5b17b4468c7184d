//! The end of everything: all units stopped in reverse order within a bound, then one last effect.

use std::time::Duration;

use crate::clock::Monotonic;
use crate::effect::{Effect, Level, Record};
use crate::event::ShutdownKind;
use crate::graph::UnitId;
use crate::job::JobType;
use crate::manager::Manager;
use crate::out::Out;
use crate::service::ServiceEvent;

/// How long the first look at what holds a shutdown up waits, and the next ones after it.
const REPORT_AFTER: Duration = Duration::from_secs(5);
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How long SIGKILL may take for all that is left; a process that the kernel does not let go must not keep the
/// machine up.
const FORCE_GRACE: Duration = Duration::from_secs(10);

/// Who asks more often than so many times within so long does not want to wait: systemd's measure for Ctrl-Alt-Del,
/// `CtrlAltDelBurstAction` in systemd-system.conf(5). Asked twice, by a person and a power button, agents still end in order.
const BURST: u32 = 7;
const BURST_TIME: Duration = Duration::from_secs(2);

/// A shutdown that is under way.
#[derive(Debug)]
pub(crate) struct Shutdown {
    kind: ShutdownKind,
    /// What a reboot hands to reboot(2).
    pub(crate) argument: Option<String>,
    began: Monotonic,
    /// How often it was asked for since then.
    asked: (u32, Monotonic),
    /// When what is left is killed.
    force_at: Option<Monotonic>,
    /// When it ends, whatever is left. Set once everything was told to die.
    end_at: Option<Monotonic>,
    report_at: Monotonic,
    /// What `KillMode` let live on was told to die.
    leftovers_told: bool,
    done: bool,
}

impl Shutdown {
    pub(crate) fn deadline(&self) -> Option<Monotonic> {
        if self.done {
            return None;
        }
        self.end_at.into_iter().chain(self.force_at).chain([self.report_at]).min()
    }
}

impl Manager {
    /// The first request stops everything in order; further ones say how it ends, and many in a short time force it.
    pub(crate) fn begin_shutdown(&mut self, kind: ShutdownKind, out: &mut Out<'_>) {
        if let Some(shutdown) = &mut self.shutdown {
            (shutdown.kind, shutdown.argument) = (kind, None);
            let (asked, since) = shutdown.asked;
            shutdown.asked = if out.now.monotonic >= since + BURST_TIME {
                (1, out.now.monotonic)
            } else {
                (asked + 1, since)
            };
            if shutdown.asked.0 > BURST {
                self.force(out);
            } else {
                say(Level::Notice, out, format!("Shutting down already; it ends with: {kind}."));
            }
            return;
        }
        let now = out.now.monotonic;
        self.shutdown = Some(Shutdown {
            kind,
            argument: None,
            began: now,
            asked: (1, now),
            force_at: self.shutdown_timeout.map(|span| now + span),
            end_at: None,
            report_at: now + REPORT_AFTER,
            leftovers_told: false,
            done: false,
        });
        say(Level::Notice, out, format!("Shutting down: {kind}."));
        self.renew_graph(out);
        self.put_off.clear();
        // Starts that wait are in the way of these stops, and so are canceled.
        let plan = self.plan_stop_all(UnitId(0));
        if !plan.jobs.is_empty() {
            self.install(plan, None, out);
        }
    }

    pub(crate) fn force(&mut self, out: &mut Out<'_>) {
        let Some(shutdown) = &mut self.shutdown else { return };
        if shutdown.done || shutdown.end_at.is_some() {
            return;
        }
        shutdown.force_at = None;
        shutdown.end_at = Some(out.now.monotonic + FORCE_GRACE);
        say(Level::Warning, out, "Shutdown is forced: killing what is left.".to_owned());
        for unit in self.ids().collect::<Vec<_>>() {
            if self.entry(unit).is_some_and(|entry| !entry.is_at_rest()) {
                self.take_down(unit, ServiceEvent::Force, out);
            }
        }
    }

    /// Looks whether patience is over, and says what holds it up.
    pub(crate) fn watch_shutdown(&mut self, out: &mut Out<'_>) {
        let now = out.now.monotonic;
        let Some(shutdown) = &mut self.shutdown else { return };
        if shutdown.done {
            return;
        }
        let is_over = |at: Option<Monotonic>| at.is_some_and(|at| now >= at);
        let (force, end) = (is_over(shutdown.force_at), is_over(shutdown.end_at));
        let report = (now >= shutdown.report_at).then_some(now - shutdown.began);
        if report.is_some() {
            shutdown.report_at = now + REPORT_EVERY;
        }
        if let Some(waited) = report {
            self.report(waited, out);
        }
        if force {
            self.force(out);
        }
        if end {
            self.end(out);
        }
    }

    fn report(&self, waited: Duration, out: &mut Out<'_>) {
        for job in self.jobs.values().filter(|job| job.kind == JobType::Stop && job.running) {
            let Some(entry) = self.entry(job.unit) else { continue };
            let name = &entry.unit.name;
            let run = entry.service().and_then(|service| service.facts.last_run);
            let text = format!("{name}: A stop job is running ({}, {} s).", entry.sub(), waited.as_secs());
            out.log(Level::Warning, name, run, None, text);
        }
    }

    /// Ends it when nothing is left.
    pub(crate) fn finish_shutdown(&mut self, out: &mut Out<'_>) {
        let Some(shutdown) = &self.shutdown else { return };
        if shutdown.done || !self.jobs.is_empty() || self.ids().any(|id| self.has_to_stop(id)) {
            return;
        }
        if self.clear_leftovers(out) {
            self.end(out);
        }
    }

    /// Kills what KillMode let live on; true if there is nothing of that.
    fn clear_leftovers(&mut self, out: &mut Out<'_>) -> bool {
        let left: Vec<_> = self
            .ids()
            .filter_map(|id| self.table[id.index()].service()?.facts.leftover)
            .map(|leftover| leftover.run)
            .collect();
        let Some(shutdown) = &mut self.shutdown else { return true };
        if left.is_empty() {
            return true;
        }
        if !shutdown.leftovers_told {
            shutdown.leftovers_told = true;
            shutdown.end_at.get_or_insert(out.now.monotonic + FORCE_GRACE);
            for run in left {
                out.push(Effect::KillAll { run });
            }
        }
        false
    }

    pub(crate) fn end(&mut self, out: &mut Out<'_>) {
        let Some(shutdown) = &mut self.shutdown else { return };
        if !std::mem::replace(&mut shutdown.done, true) {
            let (kind, argument) = (shutdown.kind, shutdown.argument.take());
            out.push(Effect::Shutdown { kind, argument });
        }
    }
}

fn say(level: Level, out: &mut Out<'_>, text: String) {
    out.push(Effect::Log(Record { level, unit: None, run: None, message_id: None, text }));
}
