//! What the simulation has found, each fault by the least that shows it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{Event, JobKind, JobMode, JobResult, Request, ServiceResult};
use agentd_unit::{Body, LoadState, Restart, TimerTrigger, Unit};
use desk::*;

fn plain(own: &str) -> Unit {
    unit(own, |_| {})
}

#[test]
fn others_wait_for_a_job_that_itself_waits_for_nobody() {
    let after = unit("b.service", |u| u.unit.after.extend([name("a.service")]));
    let mut desk = Desk::new([plain("a.service"), after, plain("c.service")]);
    desk.job(JobKind::Start, "a.service", JobMode::IgnoreDependencies);
    let start = desk.start("b.service");
    assert_eq!(desk.spawned_since(), ["a ExecStart 0"]);
    desk.up("a.service");
    desk.up("b.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));
}

#[test]
fn a_start_that_waits_goes_by_the_definition_that_comes_meanwhile() {
    let old = [plain("a.service"), plain("b.service")];
    let mut desk = Desk::new(old);
    desk.run("a.service");
    desk.run("b.service");
    desk.stop("a.service");
    let start = desk.start("a.service");
    desk.load([unit("a.service", |u| u.unit.conflicts.extend([name("b.service")])), plain("b.service")]);
    desk.news();
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.spawned_since(), Vec::<String>::new(), "b is stopped first");
    desk.die("b.service", TERMINATED);
    desk.up("a.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));
}

#[test]
fn a_load_that_makes_an_active_unit_uphold_another_starts_that() {
    let mut desk = Desk::new([plain("a.target"), plain("b.service")]);
    desk.start("a.target");
    desk.load([unit("a.target", |u| u.unit.upholds.extend([name("b.service")])), plain("b.service")]);
    desk.advance(secs(1));
    assert_eq!(desk.spawns("b.service").len(), 1);
}

#[test]
fn looks_and_reloads_wait_in_no_circle() {
    let tangled = unit("a.service", |u| u.unit.wants.extend([name("b.service")]));
    let other = unit("b.service", |u| u.unit.after.extend([name("a.service")]));
    let mut desk = Desk::new([tangled, other, plain("c.service")]);
    desk.job(JobKind::Start, "b.service", JobMode::Replace);
    let look = desk.job(JobKind::VerifyActive, "a.service", JobMode::Replace);
    desk.up("b.service");
    assert_eq!(desk.result(look), Some(JobResult::Failed));
    assert_eq!(desk.manager.jobs().count(), 0);
}

#[test]
fn an_alarm_of_a_target_is_taken_back_with_its_reason() {
    let upholder = unit("a.service", |u| u.unit.upholds.extend([name("b.target")]));
    let mut desk = Desk::new([upholder, unit("b.target", |u| u.unit.part_of.extend([name("a.service")]))]);
    desk.run("a.service");
    desk.stop("b.target");
    desk.start("b.target");
    desk.stop("a.service");
    desk.skip(secs(1));
    desk.event(Event::Tick);
    let due = desk.manager.deadlines().monotonic.is_some_and(|at| at <= desk.now.monotonic);
    assert!(!due, "it would ring for ever");
}

#[test]
fn what_never_began_for_its_start_limit_runs_its_on_failure() {
    let a = unit("a.target", |u| u.unit.upholds.extend([name("c.service")]));
    let c = unit("c.service", |u| {
        u.unit.start_limit_burst = 1;
        u.unit.on_failure.extend([name("b.service")]);
    });
    let mut desk = Desk::new([a, c, plain("b.service")]);
    desk.start("a.target");
    for _ in 0..2 {
        desk.up("c.service");
        desk.die("c.service", CLEAN);
        desk.advance(secs(1));
    }
    assert_eq!(desk.sub("c.service"), "failed");
    assert_eq!(desk.spawns("b.service").len(), 1);
}

#[test]
fn a_restart_that_is_canceled_takes_the_restart_that_is_due_with_it() {
    let a = unit("a.service", |u| section(u).restart = Restart::Always);
    let b = unit("b.service", |u| u.unit.after.extend([name("a.service")]));
    let mut desk = Desk::new([a, b]);
    desk.run("a.service");
    desk.run("b.service");
    desk.stop("b.service");
    desk.restart("a.service");
    desk.die("a.service", DIRTY);
    desk.advance(secs(1));
    assert_eq!(desk.sub("a.service"), "auto-restart", "it waits for the stop of b");
    let job = desk.view("a.service").job.unwrap();
    desk.request(Request::Cancel { job });
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn a_unit_that_is_up_without_its_bond_goes_down_when_its_job_ends() {
    let masked = unit("b.service", |u| u.load = LoadState::Masked);
    let a = unit("a.service", |u| u.unit.binds_to.extend([name("b.service")]));
    let mut desk = Desk::new([a, masked]);
    desk.job(JobKind::Start, "a.service", JobMode::IgnoreDependencies);
    desk.up("a.service");
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn on_failure_of_a_restart_goes_by_the_definition_that_failed() {
    let old = unit("a.service", |u| {
        u.unit.on_failure.extend([name("b.service")]);
        section(u).timeout_stop = Some(secs(1));
    });
    let mut desk = Desk::new([old, plain("b.service")]);
    desk.run("a.service");
    desk.load([plain("a.service"), plain("b.service")]);
    desk.restart("a.service");
    desk.advance(secs(1));
    desk.die("a.service", KILLED);
    assert_eq!(desk.spawns("b.service").len(), 1);
}

#[test]
fn on_failure_is_not_pushed_aside_by_the_newer_definition_of_what_failed() {
    let hook = || {
        unit("hook.service", |u| {
            u.unit.upholds.extend([name("a.service")]);
        })
    };
    let old = unit("a.service", |u| u.unit.on_failure.extend([name("hook.service")]));
    let new = unit("a.service", |u| u.unit.conflicts.extend([name("hook.service")]));
    let mut desk = Desk::new([old, hook()]);
    desk.run("a.service");
    desk.load([new, hook()]);
    desk.die("a.service", DIRTY);
    assert_eq!((desk.sub("a.service"), desk.sub("hook.service")), ("failed", "start"));
}

#[test]
fn restarts_that_follow_from_one_wait_in_no_circle() {
    let a = plain("a.service");
    let b = unit("b.service", |u| {
        u.unit.part_of.extend([name("a.service")]);
        u.unit.wants.extend([name("c.service")]);
    });
    let c = unit("c.service", |u| {
        u.unit.part_of.extend([name("a.service")]);
        u.unit.wants.extend([name("b.service")]);
    });
    let mut desk = Desk::new([a, b, c]);
    desk.run("a.service");
    desk.start("b.service");
    desk.up("b.service");
    desk.up("c.service");
    desk.restart("a.service");
    for unit in ["b.service", "c.service", "a.service"] {
        if desk.sub(unit) != "dead" {
            desk.die(unit, TERMINATED);
        }
    }
    for _ in 0..3 {
        for unit in ["a.service", "b.service", "c.service"] {
            if desk.sub(unit) == "start" {
                desk.up(unit);
            }
        }
    }
    assert_eq!(desk.manager.jobs().count(), 0);
}

#[test]
fn an_upheld_unit_that_cannot_start_is_not_tried_ten_times_a_second() {
    let a = unit("a.target", |u| u.unit.upholds.extend([name("b.service")]));
    let b = unit("b.service", |u| u.unit.requisite.extend([name("c.service")]));
    let mut desk = Desk::new([a, b, plain("c.service")]);
    desk.start("a.target");
    desk.advance(secs(25));
    assert!(desk.logs("Dependency failed for b.service") <= 4, "{}", desk.logs("Dependency failed"));
}

#[test]
fn job_timeout_sec_leaves_no_unit_of_a_shutdown_behind() {
    let a = unit("a.service", |u| u.unit.job_timeout = Some(secs(1)));
    let b = unit("b.service", |u| u.unit.after.extend([name("a.service")]));
    let mut desk = Desk::new([a, b]);
    desk.run("a.service");
    desk.run("b.service");
    desk.request(Request::Shutdown { kind: agentd_engine::ShutdownKind::Poweroff });
    desk.advance(secs(5));
    desk.die("b.service", TERMINATED);
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
}

/// A timer's start counts for its own limits, not for the start limit; the starts that follow from it do. And where
/// there is no limit, a circle that turns without any process must still end: it would turn within one event.
#[test]
fn units_that_fail_and_start_each_other_at_once_come_to_an_end() {
    for (case, burst, most) in [("a limit", 5, 100), ("no limit", 0, 10_000)] {
        let socket = unit("a.socket", |u| {
            u.body = Body::Socket(Box::default()); // Its service does not exist.
            u.unit.on_failure.insert(name("b.target"));
            u.unit.start_limit_burst = burst;
        });
        let mut clock = timer("t.timer", vec![TimerTrigger::Active(secs(1))], false);
        if let Body::Timer(section) = &mut clock.body {
            section.unit = Some(name("a.socket"));
        }
        let b = unit("b.target", |u| u.unit.requires.extend([name("a.socket")]));
        let mut desk = Desk::new([socket, clock, b]);
        desk.start("t.timer");
        desk.advance(secs(2));
        let view = desk.view("a.socket");
        assert_eq!((view.sub, view.result), ("failed", ServiceResult::StartLimitHit), "{case}");
        assert!(desk.effects.len() < most, "{case}: {} effects", desk.effects.len());
    }
}
