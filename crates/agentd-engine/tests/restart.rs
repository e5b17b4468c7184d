//! How services come back, and when they no longer do.

mod desk;

use agentd_engine::{Effect, JobKind, JobMode, JobResult, Request, ServiceResult};
use agentd_unit::sections::RestartMode;
use agentd_unit::{ExecKind, NotifyAccess, Restart, ServiceType, Unit};
use desk::*;

fn crashing(change: impl FnOnce(&mut Unit)) -> Unit {
    unit("a.service", |u| {
        section(u).restart = Restart::OnFailure;
        section(u).restart_sec = millis(200);
        u.unit.start_limit_burst = 3;
        u.unit.start_limit_interval = secs(60);
        change(u);
    })
}

fn crash(desk: &mut Desk) {
    desk.up("a.service");
    desk.die("a.service", DIRTY);
}

#[test]
fn b031_b066_a_stop_beats_a_restart_that_is_due() {
    let mut desk = Desk::new([crashing(|_| {})]);
    desk.start("a.service");
    crash(&mut desk);
    assert_eq!(desk.sub("a.service"), "auto-restart");
    let stop = desk.stop("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("dead", Some(JobResult::Done)));
    desk.advance(secs(10));
    assert_eq!((desk.sub("a.service"), desk.spawns("a.service").len()), ("dead", 1));
}

#[test]
fn b050_one_start_and_burst_restarts_then_it_stays_failed_and_on_failure_runs_once() {
    let mut desk = Desk::new([
        crashing(|u| {
            u.unit.on_failure.insert(name("note.service"));
        }),
        unit("note.service", |_| {}),
    ]);
    desk.start("a.service");
    for _ in 0..3 {
        crash(&mut desk);
        assert_eq!(desk.spawns("note.service").len(), 0, "B055: not for each try");
        desk.advance(millis(200));
    }
    crash(&mut desk);
    let view = desk.view("a.service");
    assert_eq!((view.sub, view.result, view.n_restarts), ("failed", ServiceResult::StartLimitHit, 3));
    desk.advance(secs(600));
    assert_eq!((desk.spawns("a.service").len(), desk.spawns("note.service").len()), (4, 1));
    let monitor = desk.last_spawn("note.service").environment.monitor.unwrap();
    assert_eq!(
        (monitor.unit, monitor.result, monitor.restarts),
        (name("a.service"), ServiceResult::StartLimitHit, 3)
    );
    assert_eq!(monitor.exit_status, Some(DIRTY));
}

#[test]
fn b053_a_start_by_a_person_clears_the_limit_and_does_not_spend_it() {
    let mut desk = Desk::new([crashing(|_| {})]);
    for _ in 0..2 {
        desk.start("a.service");
        assert_eq!(desk.view("a.service").n_restarts, 0);
        for _ in 0..3 {
            crash(&mut desk);
            desk.advance(millis(200));
        }
        crash(&mut desk);
        assert_eq!(desk.view("a.service").result, ServiceResult::StartLimitHit);
    }
}

#[test]
fn reset_failed_forgets_the_failure_and_its_counts() {
    let mut desk = Desk::new([crashing(|_| {})]);
    desk.start("a.service");
    for _ in 0..3 {
        crash(&mut desk);
        desk.advance(millis(200));
    }
    crash(&mut desk);
    let request = desk.request(Request::ResetFailed { unit: Some(name("a.service")) });
    assert!(desk.effects.contains(&Effect::Done { request }));
    let view = desk.view("a.service");
    assert_eq!((view.sub, view.result, view.n_restarts), ("dead", ServiceResult::Success, 0));
}

#[test]
fn the_delay_counts_from_the_exit_and_not_from_the_end_of_the_clean_up() {
    let mut desk = Desk::new([crashing(|u| section(u).restart_sec = secs(5))]);
    desk.start("a.service");
    desk.up("a.service");
    desk.exit_main("a.service", DIRTY);
    desk.advance(secs(2));
    desk.empty("a.service");
    desk.advance(millis(2999));
    assert_eq!(desk.spawns("a.service").len(), 1);
    desk.advance(millis(1));
    assert_eq!(desk.spawns("a.service").len(), 2);
}

#[test]
fn a_restart_without_delay_needs_no_tick() {
    let mut desk = Desk::new([crashing(|u| section(u).restart_sec = millis(0))]);
    desk.start("a.service");
    crash(&mut desk);
    assert_eq!((desk.sub("a.service"), desk.spawns("a.service").len()), ("start", 2));
}

#[test]
fn b052_a_long_life_starts_the_back_off_anew() {
    let mut desk = Desk::new([crashing(|u| {
        section(u).restart_steps = 4;
        section(u).restart_max_delay = Some(secs(5));
        u.unit.start_limit_interval = secs(0);
    })]);
    desk.start("a.service");
    let mut delays = Vec::new();
    for life in [0, 0, 0, 0, 0, 599, 600] {
        desk.up("a.service");
        desk.advance(secs(life));
        desk.die("a.service", DIRTY);
        delays.push(desk.view("a.service").restart_delay.unwrap());
        desk.advance(secs(5));
    }
    assert_eq!((delays[0], delays[4], delays[5], delays[6]), (millis(200), secs(5), secs(5), millis(200)));
}

#[test]
fn a_person_who_starts_a_unit_does_not_wait_for_its_delay_but_a_dependency_does() {
    let mut desk = Desk::new([
        crashing(|u| section(u).restart_sec = secs(50)),
        unit("b.service", |u| {
            u.unit.requires.insert(name("a.service"));
        }),
    ]);
    desk.start("a.service");
    crash(&mut desk);
    let b = desk.start("b.service");
    assert_eq!((desk.sub("a.service"), desk.result(b)), ("auto-restart", None));
    desk.start("a.service");
    assert_eq!(desk.sub("a.service"), "start");
    desk.up("a.service");
    desk.up("b.service");
    assert_eq!(desk.result(b), Some(JobResult::Done));
}

#[test]
fn a_restart_is_one_job_that_is_answered_when_the_new_run_is_up() {
    let mut desk = Desk::new([
        unit("a.service", |_| {}),
        unit("b.service", |u| {
            u.unit.requires.insert(name("a.service"));
        }),
    ]);
    desk.start("b.service");
    desk.up("a.service");
    desk.up("b.service");
    let first = desk.view("a.service").run;
    let restart = desk.restart("a.service");
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("running", "stop-sigterm"));
    desk.die("b.service", TERMINATED);
    desk.die("a.service", TERMINATED);
    assert_eq!((desk.sub("a.service"), desk.sub("b.service"), desk.result(restart)), ("start", "dead", None));
    desk.up("a.service");
    assert_eq!((desk.sub("b.service"), desk.result(restart)), ("start", Some(JobResult::Done)));
    assert_ne!(desk.view("a.service").run, first);
}

#[test]
fn a_restart_of_what_is_down_starts_it_and_a_try_restart_leaves_it() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    let r#try = desk.job(JobKind::TryRestart, "a.service", JobMode::Replace);
    assert_eq!((desk.result(r#try), desk.sub("a.service")), (Some(JobResult::Skipped), "dead"));
    desk.restart("a.service");
    assert_eq!(desk.sub("a.service"), "start");
}

#[test]
fn an_upheld_unit_comes_back_after_its_delay_while_its_upholder_is_up() {
    let mut desk = Desk::new([
        unit("up.target", |u| {
            u.unit.upholds.insert(name("a.service"));
        }),
        unit("a.service", |u| section(u).restart_sec = secs(2)),
    ]);
    desk.start("up.target");
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!(desk.sub("a.service"), "failed");
    desk.advance(secs(2));
    assert_eq!(desk.sub("a.service"), "start");
    desk.up("a.service");
    desk.stop("up.target");
    desk.die("a.service", DIRTY);
    desk.advance(secs(10));
    assert_eq!(desk.sub("a.service"), "failed");
}

#[test]
fn units_that_start_each_other_come_to_an_end() {
    let chain = |own: &str, other: &str| {
        unit(own, |u| {
            u.unit.on_failure.insert(name(other));
        })
    };
    let mut desk = Desk::new([chain("a.service", "b.service"), chain("b.service", "a.service")]);
    desk.start("a.service");
    for _ in 0..30 {
        for unit in ["a.service", "b.service"] {
            if desk.sub(unit) == "start" {
                desk.up(unit);
                desk.die(unit, DIRTY);
            }
        }
    }
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("failed", "failed"));
    let starts =
        desk.effects.iter().filter(|e| matches!(e, Effect::Spawn(s) if s.kind == ExecKind::Start)).count();
    assert!(starts <= 12, "{starts} starts");
}

/// `a` restarts after a second; `b` is bound to it.
fn direct(mode: RestartMode) -> [Unit; 2] {
    let a = crashing(|u| {
        section(u).restart_sec = secs(1);
        section(u).life.restart_mode = mode;
        section(u).service_type = ServiceType::Notify;
        section(u).notify_access = NotifyAccess::Main;
    });
    [a, unit("b.service", |u| u.unit.binds_to.extend([name("a.service")]))]
}

fn up_and_ready(desk: &mut Desk) {
    desk.up("a.service");
    desk.ready("a.service");
}

#[test]
fn what_is_bound_sees_no_end_of_a_service_that_restarts_directly() {
    for (mode, stays) in [(RestartMode::Normal, false), (RestartMode::Direct, true)] {
        let mut desk = Desk::new(direct(mode));
        desk.start("b.service");
        up_and_ready(&mut desk);
        desk.up("b.service");
        desk.exit_main("a.service", DIRTY);
        assert_eq!(desk.sub("b.service") == "running", stays, "{mode:?}, while it goes down");
        desk.empty("a.service");
        if !stays {
            desk.die("b.service", TERMINATED);
        }
        let life = desk.view("b.service").run;
        desk.advance(secs(1));
        up_and_ready(&mut desk);
        assert_eq!(desk.sub("a.service"), "running");
        assert_eq!(desk.view("b.service").run == life, stays, "{mode:?}: it returns in a new life");
        let stop = desk.stop("a.service");
        assert_ne!(desk.sub("b.service"), "running", "a stop goes on to it in any case");
        assert_eq!(desk.result(stop), None);
    }
}

#[test]
fn what_is_bound_goes_down_when_no_restart_follows_any_more() {
    let [mut a, b] = direct(RestartMode::Direct);
    a.unit.start_limit_burst = 1;
    let mut desk = Desk::new([a, b]);
    desk.start("b.service");
    up_and_ready(&mut desk);
    desk.up("b.service");
    desk.die("a.service", DIRTY);
    desk.advance(secs(1));
    up_and_ready(&mut desk);
    assert_eq!(desk.sub("b.service"), "running");
    desk.die("a.service", DIRTY);
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("failed", "stop-sigterm"));
}

#[test]
fn a_start_of_a_service_that_restarts_directly_is_done_when_a_life_comes_up_or_none_follows() {
    for (burst, expected) in [(5, JobResult::Done), (1, JobResult::Failed)] {
        let [mut a, b] = direct(RestartMode::Direct);
        a.unit.start_limit_burst = burst;
        let mut desk = Desk::new([a, b]);
        let start = desk.start("b.service");
        let own = desk.start("a.service");
        desk.up("a.service");
        desk.die("a.service", DIRTY);
        desk.advance(millis(900));
        assert_eq!((desk.sub("a.service"), desk.result(own)), ("auto-restart", None), "its delay is kept");
        desk.advance(millis(100));
        desk.up("a.service");
        match expected {
            JobResult::Done => {
                desk.ready("a.service");
                desk.up("b.service");
                assert_eq!((desk.result(own), desk.result(start)), (Some(expected), Some(expected)));
            }
            _ => {
                desk.die("a.service", DIRTY);
                let results = (desk.result(own), desk.result(start));
                assert_eq!(results, (Some(expected), Some(JobResult::Dependency)));
            }
        }
        assert_eq!(desk.view("a.service").n_restarts, 1, "a start by a person clears the count once");
    }
}
