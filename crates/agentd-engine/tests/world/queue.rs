//! The laws of jobs: what a person may not push aside, how long a job may take, who is isolated, what sees no end of a
//! service that restarts directly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agentd_engine::{Event, JobId, JobKind, JobMode, JobView, Monotonic, Request, RequestId, UnitView};
use agentd_unit::sections::{Action, RestartMode};
use agentd_unit::{LoadState, Restart, Unit, UnitName};

use super::World;
use super::invariants::{Verdict, is_up, law};

/// The states of all kinds of units in which they are up.
const UP: [&str; 9] = [
    "active",
    "running",
    "exited",
    "reload",
    "reload-signal",
    "reload-notify",
    "listening",
    "waiting",
    "elapsed",
];

/// How late a manager may be here, and a second more.
const LATE: Duration = Duration::from_secs(4);

type Views = BTreeMap<UnitName, UnitView>;

/// What was known of the jobs before the present step, and what it is about.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What a person asks for in this step.
    asked: Option<(RequestId, JobKind, UnitName, JobMode)>,
    refused: bool,
    /// Other definitions come.
    pub(super) loads: bool,
    /// Everything was ending already, or is asked to in this step.
    pub(super) ending: bool,
    /// Somebody asks for something, or other definitions come.
    from_outside: bool,
    jobs: BTreeMap<UnitName, JobView>,
    up: BTreeSet<UnitName>,
    /// Units of which a job was given up, or that were started too often, in this step.
    given_up: Vec<(UnitName, Patience)>,
    since: BTreeMap<JobId, Since>,
    /// Units whose failure was forgotten in this step.
    pub(super) forgotten: BTreeSet<UnitName>,
    /// Units of which a command of the start took too long in this step.
    pub(super) timed_out: BTreeSet<UnitName>,
    /// Units whose job was called off in this step.
    pub(super) called_off: BTreeSet<UnitName>,
    /// Units that are up, as far as this step was told of: one may come up and go down again within it.
    pub(super) live: BTreeSet<UnitName>,
}

/// Whose patience was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Job,
    StartLimit,
}

/// Since when a job is there and runs, and how long it may.
#[derive(Debug, Default)]
struct Since {
    there: Monotonic,
    timeout: Option<Duration>,
    running: Option<(Monotonic, Option<Duration>)>,
}

impl World {
    pub(super) fn watch_begin(&mut self, event: &Event) {
        let asked = matches!(event, Event::Request { request: Request::Shutdown { .. }, .. });
        self.watch.ending = asked || self.manager.is_shutting_down();
        let watch = &mut self.watch;
        watch.jobs = self.jobs_before.iter().map(|job| (job.unit.clone(), job.clone())).collect();
        watch.asked = match event {
            Event::Request { id, request: Request::Job { kind, unit, mode } } => {
                Some((*id, *kind, unit.clone(), *mode))
            }
            _ => None,
        };
        watch.from_outside =
            matches!(event, Event::Request { .. } | Event::UnitsLoaded(_) | Event::UnitsFound(_));
        watch.loads = matches!(event, Event::UnitsLoaded(_) | Event::UnitsFound(_));
        watch.refused = false;
        watch.given_up.clear();
        watch.called_off.clear();
        watch.live.clone_from(&watch.up);
        watch.timed_out.clear();
        watch.forgotten.clear();
    }

    pub(super) fn watch_refusal(&mut self, request: RequestId) {
        self.watch.refused |= self.watch.asked.as_ref().is_some_and(|(id, ..)| *id == request);
    }

    pub(super) fn watch_log(&mut self, unit: &UnitName, text: &str) {
        if let Some((_, sub)) =
            text.split_once(": Changed ").and_then(|(_, states)| states.split_once(" -> "))
        {
            if UP.contains(&sub) {
                self.watch.live.insert(unit.clone());
            } else {
                self.watch.live.remove(unit);
            }
            if matches!(sub, "dead" | "failed") {
                self.since.remove(unit); // What begins anew in the same step is on another way.
            }
        }
        if text.ends_with("and is given up.") {
            self.watch.given_up.push((unit.clone(), Patience::Job));
        } else if text.ends_with("job was called off.") {
            self.watch.called_off.insert(unit.clone());
        } else if text.ends_with("failure is forgotten.") {
            self.watch.forgotten.insert(unit.clone());
        } else if text.contains(" operation timed out. ") {
            self.watch.timed_out.insert(unit.clone());
        } else if text.contains("Start request repeated too quickly") {
            self.watch.given_up.push((unit.clone(), Patience::StartLimit));
        }
    }

    pub(super) fn check_queue(&mut self, views: &Views) -> Verdict {
        let verdict = if self.manager.is_shutting_down() { Ok(()) } else { self.check_jobs_of_step(views) };
        self.watch.up = views.values().filter(|v| is_up(v)).map(|v| v.unit.name.clone()).collect();
        verdict
    }

    fn check_jobs_of_step(&mut self, views: &Views) -> Verdict {
        self.check_irreversible(views)?;
        self.check_isolation(views)?;
        for view in views.values().filter(|view| is_direct(&view.unit)) {
            self.check_direct(view, views)?;
        }
        for (unit, patience) in &self.watch.given_up {
            let Some(view) = views.get(unit).filter(|view| self.lives_on(view)) else { continue };
            let system = &view.unit.unit.system;
            let action = match patience {
                Patience::Job => system.job_timeout_action,
                Patience::StartLimit => system.start_limit_action,
            };
            law(action == Action::None, || format!("{unit} is given up and nothing ends with it"))?;
        }
        self.check_times(views)
    }

    /// It goes by the same definition as before this step, as far as one can tell.
    fn lives_on(&self, view: &UnitView) -> bool {
        let before = self.busy.get(&view.unit.name);
        !view.changed_on_disk && before.is_none_or(|before| Arc::ptr_eq(before, &view.unit))
    }

    /// A person's transaction that an irreversible job is in the way of is refused, and the job stays. What follows
    /// from the end of what a unit is bound to may replace it.
    fn check_irreversible(&self, views: &Views) -> Verdict {
        let Some((_, kind, asked, _)) = &self.watch.asked else { return Ok(()) };
        let stops = |kind: JobKind| kind == JobKind::Stop;
        // Stops that follow from the end of what a unit is bound to, or from that nobody needs one, go on to others.
        let follows =
            |view: &UnitView| !view.unit.unit.binds_to.is_empty() || view.unit.unit.stop_when_unneeded;
        let bonds = views.values().any(follows);
        for (unit, old) in self.watch.jobs.iter().filter(|(_, old)| old.irreversible) {
            let now = self.jobs_before.iter().find(|job| job.unit == *unit);
            if unit == asked && stops(old.kind) != stops(*kind) {
                law(now.is_some_and(|job| job.id == old.id), || {
                    format!("a {} of {unit} pushed an irreversible job aside", kind.as_str())
                })?;
            }
            let opposed = now.is_some_and(|job| stops(job.kind) != stops(old.kind));
            law(!opposed || bonds, || {
                format!("a {} of {asked} pushed an irreversible job of {unit} aside", kind.as_str())
            })?;
        }
        Ok(())
    }

    /// Only what is made for it is isolated, and what has nothing to do with it and says so stays.
    fn check_isolation(&self, views: &Views) -> Verdict {
        let Some((_, kind, asked, JobMode::Isolate)) = &self.watch.asked else { return Ok(()) };
        let Some(view) = views.get(asked).filter(|_| !self.watch.refused) else { return Ok(()) };
        let may = view.unit.unit.system.allow_isolate || view.unit.load != LoadState::Loaded;
        law(*kind == JobKind::Start && (may || view.changed_on_disk), || {
            format!("{asked} was isolated, which it may not")
        })?;
        let ignores = |view: &&UnitView| view.unit.unit.system.ignore_on_isolate == Some(true);
        for view in views.values().filter(ignores).filter(|view| needs_nobody(&view.unit, &[], views)) {
            let name = &view.unit.name;
            let stays = !self.watch.up.contains(name)
                || self.watch.jobs.contains_key(name)
                || view.changed_on_disk
                || !self.has_stop(name);
            law(stays, || format!("{name} was stopped for {asked}, which is not its business"))?;
        }
        Ok(())
    }

    fn has_stop(&self, unit: &UnitName) -> bool {
        self.jobs_before.iter().any(|job| job.unit == *unit && job.kind == JobKind::Stop)
    }

    /// The start of a service that restarts directly goes on over its lives, and what is bound to it stays.
    fn check_direct(&self, view: &UnitView, views: &Views) -> Verdict {
        let name = &view.unit.name;
        let given_up = self.watch.given_up.iter().any(|(unit, _)| unit == name);
        if self.watch.from_outside || given_up || !self.lives_on(view) {
            return Ok(());
        }
        let own = self.watch.jobs.get(name).filter(|job| job.kind == JobKind::Start && job.running);
        if let Some(own) = own.filter(|_| view.sub == "auto-restart") {
            law(view.job == Some(own.id), || {
                format!("the start of {name} is over, and another life follows")
            })?;
        }
        if !comes_again(view) || view.job.is_some() {
            return Ok(());
        }
        for other in views.values().filter(|other| other.unit.unit.binds_to.contains(name)) {
            let bound = &other.unit.name;
            let was_well = self.watch.up.contains(bound) && !self.watch.jobs.contains_key(bound);
            let alone = needs_nobody(&other.unit, &[name], views) && self.lives_on(other);
            law(!(was_well && alone && self.has_stop(bound)), || {
                format!("{bound} is stopped although {name} restarts directly")
            })?;
        }
        Ok(())
    }

    /// No job waits longer than JobTimeoutSec, or runs longer than JobRunningTimeoutSec.
    fn check_times(&mut self, views: &Views) -> Verdict {
        let now = self.now.monotonic;
        let mut since = std::mem::take(&mut self.watch.since);
        since.retain(|id, _| self.jobs_before.iter().any(|job| job.id == *id));
        for job in &self.jobs_before {
            let Some(view) = views.get(&job.unit) else { continue };
            let known = self.lives_on(view) && !self.watch.from_outside;
            let (unit, is_restart) = (&view.unit.unit, job.kind == JobKind::Restart);
            let entry = since.entry(job.id).or_insert_with(|| Since {
                there: now,
                timeout: unit.job_timeout.filter(|_| self.lives_on(view)),
                running: None,
            });
            // A restart begins to run twice.
            if !job.running || is_restart {
                entry.running = None;
            } else if entry.running.is_none() {
                entry.running = Some((now, unit.system.job_running_timeout.filter(|_| known)));
            }
            let over = |at: Monotonic, span: Option<Duration>| span.is_some_and(|s| now > at + s + LATE);
            let late =
                over(entry.there, entry.timeout) || entry.running.is_some_and(|(at, span)| over(at, span));
            law(!late, || format!("the {} job of {} takes too long", job.kind.as_str(), job.unit))?;
        }
        self.watch.since = since;
        Ok(())
    }
}

fn is_direct(unit: &Unit) -> bool {
    unit.as_service().is_some_and(|body| body.service.life.restart_mode == RestartMode::Direct)
}

/// It waits for its next life, or is on the way there.
fn comes_again(view: &UnitView) -> bool {
    let Some(body) = view.unit.as_service() else { return false };
    let restarts = matches!(body.service.restart, Restart::Always | Restart::OnFailure);
    let failed = view.result != agentd_engine::ServiceResult::Success;
    let goes_down =
        matches!(view.sub, "stop" | "stop-sigterm" | "stop-post" | "stop-watchdog" | "stop-sigkill");
    view.sub == "auto-restart" || (goes_down && failed && restarts)
}

/// Nothing but these takes it down with itself.
fn needs_nobody(unit: &Unit, but: &[&UnitName], views: &Views) -> bool {
    let section = &unit.unit;
    let own = [
        &section.requires,
        &section.requisite,
        &section.binds_to,
        &section.part_of,
        &section.conflicts,
        &section.stop_propagated_from,
    ];
    let free = own.into_iter().flatten().all(|other| but.contains(&other));
    let name = &unit.name;
    let others = |other: &UnitView| {
        let (section, install) = (&other.unit.unit, &other.unit.install);
        section.conflicts.contains(name)
            || section.propagates_stop_to.contains(name)
            || install.required_by.contains(name)
    };
    free && !section.stop_when_unneeded && !views.values().any(others)
}
