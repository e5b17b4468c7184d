//! Path units: when they wait, what they start, and what becomes of them when that does not go well.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod desk;

use agentd_engine::{ActiveState, Effect, Event, JobResult, ServiceResult};
use agentd_unit::sections::PathSection;
use agentd_unit::{Body, Restart, Unit};
use desk::*;

fn path(change: impl FnOnce(&mut PathSection)) -> Unit {
    unit("in.path", |unit| {
        let mut section = PathSection::default();
        change(&mut section);
        unit.body = Body::Path(Box::new(section));
    })
}

/// It waits.
fn desk_with(change: impl FnOnce(&mut PathSection), service: Unit) -> Desk {
    let mut desk = Desk::new([path(change), service]);
    let start = desk.start("in.path");
    assert_eq!((desk.sub("in.path"), desk.result(start)), ("waiting", Some(JobResult::Done)));
    watched(&mut desk, Ok(()));
    desk
}

fn desk() -> Desk {
    desk_with(|_| {}, unit("in.service", |_| {}))
}

fn watches(desk: &Desk) -> usize {
    desk.effects.iter().filter(|effect| matches!(effect, Effect::Watch { .. })).count()
}

/// The last question is answered.
fn watched(desk: &mut Desk, result: Result<(), &str>) {
    let id = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::Watch { id, .. } => Some(*id),
        _ => None,
    });
    let result = result.map_err(str::to_owned);
    desk.event(Event::Listened { id: id.unwrap(), unit: name("in.path"), result });
}

fn happens(desk: &mut Desk) {
    desk.event(Event::Traffic { unit: name("in.path"), path: Some("/in".to_owned()) });
}

#[test]
fn what_it_waits_for_starts_its_unit_and_the_end_of_that_makes_it_wait_again() {
    let mut desk = desk();
    assert_eq!(desk.sub("in.service"), "dead");
    happens(&mut desk);
    desk.up("in.service");
    assert_eq!((desk.sub("in.path"), desk.sub("in.service")), ("running", "running"));
    assert_eq!(
        desk.last_spawn("in.service").environment.trigger.map(|trigger| trigger.unit),
        Some(name("in.path"))
    );
    assert_eq!(watches(&desk), 1, "what the unit itself does there starts nothing");
    desk.die("in.service", CLEAN);
    assert_eq!((desk.sub("in.path"), watches(&desk)), ("waiting", 2), "what is still there is looked for");
}

#[test]
fn nothing_is_started_beside_a_unit_that_runs_already() {
    let mut desk = desk();
    desk.run("in.service");
    assert_eq!(desk.sub("in.path"), "waiting");
    happens(&mut desk);
    assert_eq!((desk.sub("in.path"), desk.spawns("in.service").len()), ("running", 1));
    desk.die("in.service", CLEAN);
    assert_eq!((desk.sub("in.path"), watches(&desk)), ("waiting", 2));
}

#[test]
fn a_stop_ends_the_wait_and_leaves_the_unit() {
    for runs in [false, true] {
        let mut desk = desk();
        if runs {
            happens(&mut desk);
            desk.up("in.service");
        }
        let stop = desk.stop("in.path");
        let expected = ("dead", Some(JobResult::Done), if runs { "running" } else { "dead" });
        assert_eq!((desk.sub("in.path"), desk.result(stop), desk.sub("in.service")), expected);
        assert!(desk.effects.iter().any(|effect| matches!(effect, Effect::Unwatch { .. })));
        happens(&mut desk);
        assert_eq!(desk.spawns("in.service").len(), usize::from(runs), "what comes late starts nothing");
    }
}

#[test]
fn what_cannot_be_waited_for_fails_with_the_reason_and_a_lost_answer_is_asked_for_again() {
    let mut desk = Desk::new([path(|_| {}), unit("in.service", |_| {})]);
    desk.start("in.path");
    desk.advance(secs(10));
    assert_eq!(watches(&desk), 2);
    watched(&mut desk, Err("/in: too many levels of symbolic links (ELOOP)"));
    let view = desk.view("in.path");
    assert_eq!((view.active, view.result), (ActiveState::Failed, ServiceResult::Resources));
    assert_eq!(desk.failure("in.path"), "/in: too many levels of symbolic links (ELOOP)");
}

#[test]
fn a_path_unit_without_its_unit_is_refused_with_the_reason() {
    let mut desk = Desk::new([path(|section| section.unit = Some(name("ghost.service")))]);
    let start = desk.start("in.path");
    assert_eq!(desk.result(start), Some(JobResult::Failed));
    assert_eq!(desk.failure("in.path"), "it starts ghost.service, which does not exist");
}

#[test]
fn more_starts_than_its_trigger_limit_fail_it() {
    let limited = |section: &mut PathSection| section.trigger_limit_burst = 3;
    let mut desk = desk_with(limited, unit("in.service", |u| u.unit.start_limit_burst = 0));
    for _ in 0..3 {
        happens(&mut desk);
        desk.up("in.service");
        desk.die("in.service", CLEAN);
        watched(&mut desk, Ok(()));
    }
    happens(&mut desk);
    assert_eq!(desk.view("in.path").result, ServiceResult::TriggerLimitHit);
    assert_eq!((desk.sub("in.path"), desk.spawns("in.service").len()), ("failed", 3));
}

#[test]
fn a_path_unit_fails_with_a_unit_that_was_given_up() {
    let mut desk = desk_with(
        |_| {},
        unit("in.service", |u| {
            u.unit.start_limit_burst = 2; // The path unit's own start is one of them.
            section(u).restart = Restart::OnFailure;
            section(u).restart_sec = secs(1);
        }),
    );
    happens(&mut desk);
    for _ in 0..2 {
        assert_eq!(desk.sub("in.path"), "running", "a restart keeps it");
        desk.up("in.service");
        desk.die("in.service", DIRTY);
        desk.advance(secs(1));
    }
    assert_eq!(desk.view("in.service").result, ServiceResult::StartLimitHit);
    let view = desk.view("in.path");
    assert_eq!((view.sub, view.result), ("failed", ServiceResult::UnitStartLimitHit));
}
