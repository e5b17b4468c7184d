//! The laws of ends: rows of restarts, timeouts that abort or kill, services that outlive their main process, failures
//! that are forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use agentd_engine::{ActiveState, Event, InvocationId, Monotonic, UnitView};
use agentd_unit::sections::{CollectMode, ExitType, TimeoutMode};
use agentd_unit::{Unit, UnitName};

use super::invariants::{Verdict, is_up, law};
use super::{Happening, World};

/// What a definition says of restarts and of the end of a life.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    base: Duration,
    /// By how many hundredths the delay grows, and how long it is at most.
    factor: Option<(u32, Duration)>,
    most: Option<u32>,
    reset: Option<Duration>,
    /// It ends with its last process.
    by_group: bool,
}

impl Rules {
    pub(super) fn of(unit: &Unit) -> Self {
        let Some(body) = unit.as_service() else { return Self::default() };
        let (service, life) = (&body.service, body.agent.as_ref().map(|agent| &agent.life));
        let longest = service.restart_max_delay.unwrap_or(Duration::MAX);
        Self {
            base: service.restart_sec,
            factor: life.and_then(|life| life.restart_factor).map(|factor| (factor, longest)),
            most: life.and_then(|life| life.max_restarts),
            reset: life
                .and_then(|life| life.restart_reset)
                .map(|reset| reset.max(life.map_or(reset, |l| l.min_ready))),
            by_group: service.life.exit_type == ExitType::Cgroup,
        }
    }

    /// The least delay after so many restarts in a row.
    fn delay(self, before: u32) -> Duration {
        let Some((factor, longest)) = self.factor else { return self.base };
        let grown = (0..before).fold(self.base, |delay, _| (delay * factor / 100).min(longest));
        grown.max(self.base)
    }
}

/// The restarts of a unit since it was last up for long.
#[derive(Debug, Default)]
pub(super) struct Row {
    count: u32,
    /// The run that is or was up, and since when.
    up: Option<(InvocationId, Monotonic)>,
}

impl World {
    pub(super) fn note_up(&mut self, views: &BTreeMap<UnitName, UnitView>) {
        let now = self.now.monotonic;
        // A person's start that waited for its turn begins a new row.
        let begun_anew = |unit: &UnitName| views.get(unit).is_some_and(|view| view.n_restarts == 0);
        for (_, row) in self.rows.iter_mut().filter(|(unit, _)| begun_anew(unit)) {
            row.count = 0;
        }
        for view in views.values().filter(|view| is_up(view)) {
            let Some(run) = view.run else { continue };
            let row = self.rows.entry(view.unit.name.clone()).or_default();
            if row.up.is_none_or(|(known, _)| known != run) {
                row.up = Some((run, now));
            }
        }
    }

    /// Restarts keep their distance, which grows with each of a row, and a row is no longer than MaxRestarts.
    pub(super) fn check_row(&mut self, unit: &UnitName, run: Option<InvocationId>) -> Verdict {
        let now = self.now.monotonic;
        let Some((run, rules)) = run.and_then(|run| Some((run, self.runs.get(&run)?.rules))) else {
            return Ok(());
        };
        let row = self.rows.entry(unit.clone()).or_default();
        // Perhaps it was up for less: what it took to come to rest counts here, but not there.
        let lasted = row.up.filter(|(up, _)| *up == run).map(|(_, since)| now - since);
        if lasted.zip(rules.reset).is_some_and(|(lasted, reset)| lasted >= reset) {
            row.count = 0;
        }
        let end = self.ends.get(unit);
        let delay = rules.delay(row.count);
        law(end.is_none_or(|end| now >= *end + delay), || {
            format!("{unit} is restarted before its delay is over")
        })?;
        row.count += 1;
        law(rules.most.is_none_or(|most| row.count <= most), || {
            format!("{unit} was restarted {} times in a row", row.count)
        })
    }

    /// The main process of a service has died that ends with its last process. The others may, in their time.
    pub(super) fn outlive(&mut self, run: InvocationId) {
        let Some(info) = self.runs.get_mut(&run).filter(|info| info.rules.by_group && info.helpers > 0)
        else {
            return;
        };
        let delay = Duration::from_millis(info.dice.below(3000));
        if !info.dice.once_in(3) {
            self.after(delay, Happening::HelperDeath(run));
        }
    }

    /// Whom this event tells of the end of a main process that is not the end of the service.
    pub(super) fn outlived(&self, event: &Event) -> Option<UnitName> {
        let Event::Exited { id, run, .. } = event else { return None };
        let unit = self.manager.unit_of_run(*run)?;
        let view = self.manager.unit(unit)?;
        let is_main = view.main.is_some_and(|(main, _)| main == *id) && view.run == Some(*run);
        let lives = view.sub == "running" && !self.is_empty(*run) && self.runs.get(run)?.rules.by_group;
        (is_main && lives).then(|| unit.clone())
    }

    pub(super) fn check_outlived(&mut self, unit: Option<UnitName>) {
        let Some(view) = unit.and_then(|unit| self.manager.unit(&unit)) else { return };
        if view.sub != "running" {
            self.fail(format!("{} lives by its cgroup and goes down with its main process", view.unit.name));
        }
    }

    /// A start that took too long is ended as TimeoutStartFailureMode says.
    pub(super) fn check_timed_out(&self, view: &UnitView) -> Verdict {
        let name = &view.unit.name;
        let body = view.unit.as_service().filter(|_| self.watch.timed_out.contains(name));
        let Some(mode) = body.map(|body| body.service.life.timeout_start_mode) else { return Ok(()) };
        let holds = match mode {
            TimeoutMode::Terminate => view.sub != "stop-watchdog",
            TimeoutMode::Abort => view.sub != "stop-sigterm",
            TimeoutMode::Kill => !matches!(view.sub, "stop-sigterm" | "stop-watchdog"),
        };
        law(holds, || format!("{name} took too long to start and is {}, not {mode:?}", view.sub))
    }
}

/// No failure is kept that is to be forgotten, unless another unit speaks of it.
pub(super) fn check_forgotten(view: &UnitView, views: &BTreeMap<UnitName, UnitView>) -> Verdict {
    let (name, unit) = (&view.unit.name, &view.unit);
    let forgets = unit.unit.system.collect_mode == CollectMode::InactiveOrFailed;
    if view.active != ActiveState::Failed || !forgets || view.job.is_some() {
        return Ok(());
    }
    let install = &unit.install;
    let installed = [&install.wanted_by, &install.required_by, &install.upheld_by];
    let installed = installed.into_iter().any(|list| !list.is_empty());
    let speaks = |other: &UnitView| {
        let section = &other.unit.unit;
        let lists =
            [&section.requires, &section.requisite, &section.wants, &section.binds_to, &section.upholds];
        lists.into_iter().any(|list| list.contains(name)) || other.unit.triggered().as_ref() == Some(name)
    };
    law(installed || views.values().any(speaks), || format!("{name} is failed and nobody forgets it"))
}
