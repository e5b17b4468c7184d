//! Slices: up with the first unit that lies in them, down with all of their units, and there without a file.

mod desk;

use agentd_engine::{
    ActiveState, Effect, Event, JobKind, JobMode, JobResult, Request, RequestError, ShutdownKind,
};
use agentd_unit::{LoadState, Unit, UnitSet};
use desk::*;

fn lies_in(service_name: &str, slice: &str) -> Unit {
    service(service_name, |s| s.slice = Some(name(slice)))
}

fn is_up(desk: &Desk, unit: &str) -> bool {
    desk.view(unit).active == ActiveState::Active
}

/// The order of these lines among all that was said.
fn told(desk: &Desk, lines: &[&str]) -> Vec<String> {
    desk.texts().into_iter().filter(|text| lines.iter().any(|line| text.starts_with(line))).collect()
}

#[test]
fn a_start_begins_with_the_slices_that_the_unit_lies_in() {
    let mut desk = Desk::new([lies_in("a.service", "x-y.slice"), lies_in("b.service", "x.slice")]);
    assert_eq!((desk.sub("x.slice"), desk.sub("-.slice")), ("dead", "active"));
    desk.run("a.service");
    assert_eq!((desk.sub("x.slice"), desk.sub("x-y.slice")), ("active", "active"));
    assert_eq!(
        told(&desk, &["Created", "Started"]),
        ["Created slice x.slice - Slice /x.", "Created slice x-y.slice - Slice /x/y.", "Started a.service."]
    );
    desk.run("b.service");
    assert_eq!(desk.logs("Created slice"), 2, "they are up already");
}

#[test]
fn a_slice_stays_when_what_lies_in_it_ends() {
    let mut desk = Desk::new([lies_in("a.service", "x.slice")]);
    desk.run("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!((desk.sub("a.service"), desk.sub("x.slice")), ("failed", "active"));
}

#[test]
fn a_stop_of_a_slice_stops_what_lies_in_it_first() {
    let mut desk = Desk::new([
        lies_in("a.service", "x.slice"),
        lies_in("b.service", "x-y.slice"),
        lies_in("c.service", "z.slice"),
    ]);
    for unit in ["a.service", "b.service", "c.service"] {
        desk.run(unit);
    }
    let stop = desk.stop("x.slice");
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("stop-sigterm", "stop-sigterm"));
    assert!(is_up(&desk, "x.slice") && is_up(&desk, "x-y.slice"), "they wait");
    desk.die("b.service", TERMINATED);
    assert_eq!((desk.sub("x.slice"), desk.sub("x-y.slice")), ("active", "dead"));
    assert_eq!(desk.result(stop), None);
    desk.die("a.service", TERMINATED);
    assert_eq!((desk.sub("x.slice"), desk.result(stop)), ("dead", Some(JobResult::Done)));
    assert_eq!(
        told(&desk, &["Removed"]),
        ["Removed slice x-y.slice - Slice /x/y.", "Removed slice x.slice - Slice /x."]
    );
    assert_eq!(desk.sub("c.service"), "running", "it lies elsewhere");
}

#[test]
fn a_restart_of_a_slice_restarts_what_lies_in_it() {
    let mut desk = Desk::new([lies_in("a.service", "x.slice")]);
    desk.run("a.service");
    let old = desk.view("a.service").run;
    let restart = desk.restart("x.slice");
    desk.die("a.service", TERMINATED);
    desk.up("a.service");
    assert_eq!(desk.result(restart), Some(JobResult::Done));
    assert!(is_up(&desk, "x.slice") && desk.view("a.service").run != old);
}

#[test]
fn the_root_and_the_system_slice_are_always_there() {
    let mut desk = Desk::new([
        lies_in("a.service", "system.slice"),
        unit("x.target", |u| u.unit.system.allow_isolate = true),
        unit("shutdown.target", |_| {}),
    ]);
    desk.run("a.service");
    for slice in ["-.slice", "system.slice"] {
        let view = desk.view(slice);
        assert_eq!((view.active, view.sub), (ActiveState::Active, "active"), "{slice}");
        assert!(view.active_enter.is_some() && view.state_change.is_some(), "{slice}");
        for kind in [JobKind::Stop, JobKind::Restart, JobKind::TryRestart, JobKind::ReloadOrRestart] {
            let refused = desk.job(kind, slice, JobMode::Replace);
            assert!(
                matches!(desk.refusal(refused), Some(RequestError::NotApplicable(..))),
                "{slice} {kind:?}"
            );
        }
        let start = desk.start(slice);
        assert_eq!(desk.result(start), Some(JobResult::Done), "{slice}");
    }
    desk.job(JobKind::Start, "x.target", JobMode::Isolate);
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.die("a.service", TERMINATED);
    desk.request(Request::Shutdown { kind: ShutdownKind::Poweroff });
    assert!(desk.effects.contains(&Effect::Shutdown { kind: ShutdownKind::Poweroff, argument: None }));
    assert!(is_up(&desk, "-.slice"));
    assert!(desk.kept().is_empty(), "nothing is kept of what every manager has");
}

#[test]
fn a_shutdown_stops_slices_after_their_units() {
    let mut desk = Desk::new([lies_in("a.service", "x.slice"), unit("shutdown.target", |_| {})]);
    desk.run("a.service");
    desk.request(Request::Shutdown { kind: ShutdownKind::Poweroff });
    assert_eq!((desk.sub("a.service"), desk.sub("x.slice")), ("stop-sigterm", "active"));
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.sub("x.slice"), "dead");
    assert!(desk.effects.contains(&Effect::Shutdown { kind: ShutdownKind::Poweroff, argument: None }));
}

#[test]
fn nothing_starts_in_a_slice_that_is_masked() {
    let masked = unit("x.slice", |u| u.load = LoadState::Masked);
    let mut desk = Desk::new([masked, lies_in("a.service", "x-y.slice")]);
    let start = desk.start("a.service");
    assert_eq!(desk.refusal(start), Some(RequestError::Masked(name("x.slice"))));
}

#[test]
fn isolating_leaves_slices_alone() {
    let target = unit("x.target", |u| u.unit.system.allow_isolate = true);
    let mut desk = Desk::new([lies_in("a.service", "x.slice"), target]);
    desk.run("a.service");
    desk.job(JobKind::Start, "x.target", JobMode::Isolate);
    desk.die("a.service", TERMINATED);
    assert_eq!((desk.sub("a.service"), desk.sub("x.slice")), ("dead", "active"));
}

#[test]
fn a_slice_that_nobody_needs_goes_if_its_file_says_so() {
    let slice = unit("x.slice", |u| u.unit.stop_when_unneeded = true);
    let mut desk = Desk::new([slice, lies_in("a.service", "x.slice"), lies_in("b.service", "x.slice")]);
    for unit in ["a.service", "b.service"] {
        desk.run(unit);
    }
    desk.die("a.service", CLEAN);
    assert_eq!(desk.sub("x.slice"), "active");
    desk.die("b.service", CLEAN);
    assert_eq!(desk.sub("x.slice"), "dead");
}

#[test]
fn a_slice_is_known_as_long_as_it_is_named_or_up() {
    let mut desk = Desk::new([lies_in("a.service", "x-y.slice")]);
    desk.run("a.service");
    desk.load([]);
    assert_eq!(desk.view("x.slice").unit.load, LoadState::Loaded, "it needs no file");
    desk.die("a.service", CLEAN);
    assert!(is_up(&desk, "x-y.slice"));
    let stop = desk.stop("x.slice");
    assert_eq!(desk.result(stop), Some(JobResult::Done));
    desk.load([]);
    desk.load([]);
    let known: Vec<String> = desk.subs().into_keys().collect();
    assert_eq!(known, ["-.slice"]);
}

#[test]
fn a_slice_that_was_found_by_its_name_alone_can_be_started() {
    let mut desk = Desk::new([]);
    let early = desk.start("x-y.slice");
    assert_eq!(desk.refusal(early), Some(RequestError::NotFound(name("x-y.slice"))));
    let mut set = UnitSet::new();
    set.insert(Unit::without_file(name("x-y.slice")));
    desk.event(Event::UnitsFound(set));
    let start = desk.start("x-y.slice");
    assert_eq!(desk.result(start), Some(JobResult::Done));
    assert!(is_up(&desk, "x.slice"), "the one above is up with it");
}

#[test]
fn a_slice_goes_on_under_another_manager() {
    let units = || [lies_in("a.service", "x.slice")];
    let mut desk = Desk::new(units());
    desk.run("a.service");
    let mut heir = desk.heir(units());
    assert_eq!((heir.sub("a.service"), heir.sub("x.slice")), ("running", "active"));
    heir.stop("x.slice");
    assert_eq!(heir.sub("a.service"), "stop-sigterm");
}
