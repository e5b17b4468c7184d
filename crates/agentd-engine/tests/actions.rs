//! What an end does to the whole system (FailureAction and its kin), jobs that take too long, and who may be isolated.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{Effect, JobKind, JobMode, JobResult, Request, RequestError, ShutdownKind};
use agentd_unit::sections::Action;
use agentd_unit::{NotifyAccess, Restart, ServiceType, Unit};
use desk::*;

fn ends(desk: &Desk) -> Vec<ShutdownKind> {
    let end = |effect: &Effect| if let Effect::Shutdown { kind, .. } = effect { Some(*kind) } else { None };
    desk.effects.iter().filter_map(end).collect()
}

fn failing(change: impl FnOnce(&mut Unit)) -> Unit {
    unit("a.service", |u| {
        u.unit.system.failure_action = Action::Reboot;
        change(u);
    })
}

fn notify(u: &mut Unit) {
    section(u).service_type = ServiceType::Notify;
    section(u).notify_access = NotifyAccess::Main;
}

/// `a` is up beside `b`, and ends like this.
fn end_of(a: Unit, status: agentd_engine::ExitStatus) -> Desk {
    let mut desk = Desk::new([a, unit("b.service", |_| {})]);
    desk.run("b.service");
    desk.run("a.service");
    desk.die("a.service", status);
    desk
}

#[test]
fn each_action_has_its_kind_and_its_haste() {
    use ShutdownKind as K;
    for (action, kind, waits, kills) in [
        (Action::None, None, false, false),
        (Action::Reboot, Some(K::Reboot), true, false),
        (Action::RebootForce, Some(K::Reboot), true, true),
        (Action::RebootImmediate, Some(K::Reboot), false, false),
        (Action::Poweroff, Some(K::Poweroff), true, false),
        (Action::PoweroffForce, Some(K::Poweroff), true, true),
        (Action::PoweroffImmediate, Some(K::Poweroff), false, false),
        (Action::Exit, Some(K::Exit(1)), true, false),
        (Action::ExitForce, Some(K::Exit(1)), true, true),
    ] {
        let mut desk = end_of(failing(|u| u.unit.system.failure_action = action), DIRTY);
        let b = desk.last_spawn("b.service").run;
        let killed = desk.effects.iter().any(|e| matches!(e, Effect::KillAll { run } if *run == b));
        assert_eq!((ends(&desk).is_empty(), killed), (waits || kind.is_none(), kills), "{action:?}");
        assert_eq!(desk.manager.is_shutting_down(), kind.is_some(), "{action:?}");
        if waits {
            desk.die("b.service", KILLED);
        }
        assert_eq!(ends(&desk).first().copied(), kind, "{action:?}");
    }
}

#[test]
fn the_end_for_good_ends_the_system_and_not_one_that_a_restart_follows() {
    let mut desk = Desk::new([failing(|u| {
        u.unit.start_limit_burst = 1;
        section(u).restart = Restart::Always;
        section(u).restart_sec = secs(1);
    })]);
    desk.run("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!((desk.sub("a.service"), ends(&desk)), ("auto-restart", vec![]));
    desk.advance(secs(1));
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!((desk.sub("a.service"), ends(&desk)), ("failed", vec![ShutdownKind::Reboot]));
    assert_eq!(desk.logs("as FailureAction of this unit says"), 1);
}

#[test]
fn a_manager_that_exits_for_a_unit_says_what_that_said_unless_a_code_is_named() {
    for (case, status, named, code) in [
        ("its own", agentd_engine::ExitStatus::Exited(7), None, 7),
        ("a signal", KILLED, None, 128 + 9),
        ("nobody can tell", agentd_engine::ExitStatus::Unknown, None, 255),
        ("named", KILLED, Some(3), 3),
    ] {
        let a = failing(|u| {
            u.unit.system.failure_action = Action::ExitForce;
            u.unit.system.failure_exit_status = named;
        });
        let mut desk = end_of(a, status);
        desk.die("b.service", KILLED);
        assert_eq!(ends(&desk), [ShutdownKind::Exit(code)], "{case}");
    }
}

#[test]
fn success_action_is_for_a_clean_end_and_takes_its_own_code() {
    for (status, ended) in [(CLEAN, true), (DIRTY, false)] {
        let a = unit("a.service", |u| {
            u.unit.system.success_action = Action::Exit;
            u.unit.system.success_exit_status = Some(9);
        });
        let mut desk = Desk::new([a]);
        desk.run("a.service");
        desk.die("a.service", status);
        assert_eq!(ends(&desk) == [ShutdownKind::Exit(9)], ended, "{status}");
    }
}

#[test]
fn start_limit_action_ends_the_system_whoever_started_it_too_often() {
    let limited = |change: fn(&mut Unit)| {
        unit("a.service", |u| {
            u.unit.start_limit_burst = 1;
            u.unit.start_limit_interval = secs(100);
            u.unit.system.start_limit_action = Action::Poweroff;
            change(u);
        })
    };
    let restarted = limited(|u| section(u).restart = Restart::Always);
    let upheld = limited(|u| {
        u.install.upheld_by.extend([name("t.target")]);
        u.enabled = true;
    });
    for (case, a, ask) in [("restarted", restarted, "a.service"), ("upheld", upheld, "t.target")] {
        let mut desk = Desk::new([a, unit("t.target", |_| {})]);
        desk.start(ask);
        for _ in 0..2 {
            assert!(!desk.manager.is_shutting_down(), "{case}");
            desk.up("a.service");
            desk.die("a.service", DIRTY);
            desk.advance(secs(2));
        }
        assert_eq!(desk.view("a.service").result.as_str(), "start-limit-hit", "{case}");
        assert_eq!(ends(&desk), [ShutdownKind::Poweroff], "{case}");
    }
}

#[test]
fn on_failure_units_are_asked_for_before_everything_ends_and_a_shutdown_is_not_forced_by_it() {
    let mut desk = end_of(failing(|u| u.unit.on_failure.extend([name("c.target")])), DIRTY);
    assert_eq!((desk.sub("b.service"), desk.sub("c.target")), ("stop-sigterm", "dead"));
    let mut again = Desk::new([failing(|_| {}), unit("b.service", |_| {})]);
    again.run("a.service");
    again.run("b.service");
    again.request(Request::Shutdown { kind: ShutdownKind::Poweroff });
    again.die("a.service", DIRTY);
    assert_eq!(again.sub("b.service"), "stop-sigterm", "not killed");
    again.die("b.service", TERMINATED);
    desk.die("b.service", TERMINATED);
    assert_eq!((ends(&again), ends(&desk)), (vec![ShutdownKind::Poweroff], vec![ShutdownKind::Reboot]));
}

#[test]
fn job_running_timeout_sec_counts_from_when_the_turn_of_the_job_has_come() {
    let slow = unit("a.service", notify);
    let b = unit("b.service", |u| {
        u.unit.after.extend([name("a.service")]);
        u.unit.system.job_running_timeout = Some(secs(3));
        notify(u);
    });
    let mut desk = Desk::new([slow, b]);
    desk.start("a.service");
    let start = desk.start("b.service");
    desk.advance(secs(5));
    assert_eq!(desk.result(start), None, "it waits");
    desk.up("a.service");
    desk.ready("a.service");
    desk.up("b.service");
    desk.advance(secs(2));
    assert_eq!(desk.result(start), None);
    desk.advance(secs(1));
    assert_eq!((desk.result(start), desk.sub("b.service")), (Some(JobResult::Timeout), "start"));
    assert_eq!(desk.logs("took longer than JobRunningTimeoutSec"), 1);
}

#[test]
fn a_job_that_takes_too_long_ends_the_system_where_job_timeout_action_says_so() {
    for (action, ended) in [(Action::None, false), (Action::Reboot, true)] {
        let mut desk = Desk::new([unit("a.service", |u| {
            u.unit.job_timeout = Some(secs(2));
            u.unit.system.job_timeout_action = action;
            notify(u);
        })]);
        let start = desk.start("a.service");
        desk.up("a.service");
        desk.advance(secs(2));
        assert_eq!(desk.result(start), Some(JobResult::Timeout));
        assert_eq!(desk.manager.is_shutting_down(), ended, "{action:?}");
    }
}

#[test]
fn only_what_is_made_for_it_can_be_isolated_and_only_by_a_start() {
    let mut desk = Desk::new([
        unit("a.target", |_| {}),
        unit("rescue.target", |u| u.unit.system.allow_isolate = true),
        unit("b.service", |_| {}),
        unit("stays.service", |u| u.unit.system.ignore_on_isolate = Some(true)),
    ]);
    desk.run("b.service");
    desk.run("stays.service");
    let refused = desk.job(JobKind::Start, "a.target", JobMode::Isolate);
    let refusal = desk.refusal(refused).unwrap();
    assert_eq!(refusal, RequestError::NoIsolation(name("a.target")));
    assert!(refusal.to_string().contains("AllowIsolate = true"), "{refusal}");
    for kind in [JobKind::Restart, JobKind::Stop, JobKind::VerifyActive] {
        let refused = desk.job(kind, "rescue.target", JobMode::Isolate);
        assert!(desk.refusal(refused).is_some(), "{kind:?}");
    }
    assert_eq!(desk.sub("b.service"), "running");
    desk.job(JobKind::Start, "rescue.target", JobMode::Isolate);
    let subs = ["b.service", "stays.service", "rescue.target"].map(|unit| desk.sub(unit));
    assert_eq!(subs, ["stop-sigterm", "running", "active"]);
}

/// What the reboot that it has asked for hands on, once nothing is left.
fn handed_on(desk: &Desk) -> Option<String> {
    let argument = |effect: &Effect| match effect {
        Effect::Shutdown { argument, .. } => Some(argument.clone()),
        _ => None,
    };
    desk.effects.iter().find_map(argument).unwrap()
}

#[test]
fn a_reboot_hands_on_the_argument_of_its_unit_and_no_other_end_does() {
    use Action as A;
    for (action, argument) in [
        (A::Reboot, Some("recovery")),
        (A::RebootForce, Some("recovery")),
        (A::RebootImmediate, Some("recovery")),
        (A::Poweroff, None),
        (A::ExitForce, None),
    ] {
        let unit = failing(|u| {
            u.unit.system.failure_action = action;
            u.unit.system.reboot_argument = Some("recovery".to_owned());
            u.unit.system.job_timeout_reboot_argument = Some("other".to_owned());
        });
        let mut desk = end_of(unit, DIRTY);
        if ends(&desk).is_empty() {
            desk.die("b.service", KILLED);
        }
        assert_eq!(handed_on(&desk).as_deref(), argument, "{action:?}");
    }
}

#[test]
fn each_reboot_has_its_own_argument_and_one_that_a_person_asks_for_has_none() {
    let unit = || {
        unit("a.service", |u| {
            u.unit.job_timeout = Some(secs(2));
            u.unit.start_limit_burst = 1;
            u.unit.system.job_timeout_action = Action::RebootImmediate;
            u.unit.system.start_limit_action = Action::RebootImmediate;
            u.unit.system.reboot_argument = Some("limit".to_owned());
            u.unit.system.job_timeout_reboot_argument = Some("job".to_owned());
            section(u).restart = agentd_unit::Restart::Always;
            section(u).restart_sec = millis(0);
            notify(u);
        })
    };
    let mut desk = Desk::new([unit()]);
    desk.start("a.service");
    desk.up("a.service");
    desk.advance(secs(2));
    assert_eq!(handed_on(&desk).as_deref(), Some("job"));
    let mut desk = Desk::new([unit()]);
    desk.start("a.service");
    for _ in 0..2 {
        desk.up("a.service");
        desk.die("a.service", DIRTY);
    }
    assert_eq!(handed_on(&desk).as_deref(), Some("limit"));
    let unit = failing(|u| u.unit.system.reboot_argument = Some("unit".to_owned()));
    let mut desk = end_of(unit, DIRTY);
    desk.request(Request::Shutdown { kind: ShutdownKind::Reboot });
    desk.die("b.service", KILLED);
    assert_eq!(handed_on(&desk), None);
}
