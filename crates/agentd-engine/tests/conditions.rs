//! Conditions, asserts, ExecCondition, lists of exit statuses, job modes and JobTimeoutSec.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{
    Checked, Effect, Event, ExitStatus, JobKind, JobMode, JobResult, RequestError, ServiceResult,
};
use agentd_unit::sections::{Condition, HookMode, Test};
use agentd_unit::{Restart, Signal, Unit};
use desk::*;

fn plain(own: &str) -> Unit {
    unit(own, |_| {})
}

fn conditioned(own: &str, change: impl FnOnce(&mut Unit)) -> Unit {
    unit(own, |u| {
        let (test, parameter) = (Test::PathExists, "/a".to_owned());
        u.unit.conditions.push(Condition { test, parameter, negate: false, trigger: false, assert: false });
        change(u);
    })
}

/// Answers the last question after conditions.
fn answer(desk: &mut Desk, condition: bool, assertion: bool) {
    let id = desk
        .effects
        .iter()
        .rev()
        .find_map(|effect| if let Effect::Check { id, .. } = effect { Some(*id) } else { None })
        .unwrap();
    let said = |holds: bool, text: &str| if holds { Ok(()) } else { Err(text.to_owned()) };
    let checked = Checked {
        condition: said(condition, "ConditionPathExists=/a"),
        assertion: said(assertion, "AssertPathExists=/b"),
    };
    desk.event(Event::Checked { id, checked });
}

#[test]
fn a_start_begins_only_when_its_conditions_are_known_to_hold() {
    for (case, condition, assertion, result, started) in [
        ("both hold", true, true, None, 1),
        ("the condition does not", false, true, Some(JobResult::Done), 0),
        ("the assert does not", true, false, Some(JobResult::Assert), 0),
        ("neither does", false, false, Some(JobResult::Done), 0),
    ] {
        let mut desk = Desk::new([conditioned("a.service", |_| {})]);
        let start = desk.start("a.service");
        assert_eq!(desk.spawns("a.service").len(), 0, "{case}: nothing runs before the answer");
        answer(&mut desk, condition, assertion);
        assert_eq!((desk.result(start), desk.spawns("a.service").len()), (result, started), "{case}");
        let view = desk.view("a.service");
        assert_eq!((view.condition_result, view.assert_result), (condition, assertion), "{case}");
        assert_eq!(view.unmet.is_none(), condition && assertion, "{case}");
    }
}

#[test]
fn who_needs_a_unit_whose_condition_does_not_hold_starts_and_whose_assert_does_not_fails() {
    for (case, assertion, result) in
        [("condition", true, JobResult::Done), ("assert", false, JobResult::Dependency)]
    {
        let b = unit("b.target", |u| u.unit.requires.extend([name("a.service")]));
        let mut desk = Desk::new([conditioned("a.service", |_| {}), b]);
        let start = desk.start("b.target");
        answer(&mut desk, !assertion, assertion);
        assert_eq!(desk.result(start), Some(result), "{case}");
    }
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again_and_an_old_one_counts_for_nothing() {
    let mut desk = Desk::new([conditioned("a.service", |_| {})]);
    desk.start("a.service");
    let old = desk.effects.clone();
    desk.advance(secs(11));
    let asked = |effects: &[Effect]| effects.iter().filter(|e| matches!(e, Effect::Check { .. })).count();
    assert_eq!((asked(&old), asked(&desk.effects)), (1, 2));
    let new = std::mem::replace(&mut desk.effects, old);
    answer(&mut desk, true, true);
    assert_eq!(desk.spawns("a.service").len(), 0);
    desk.effects = new;
    answer(&mut desk, true, true);
    assert_eq!(desk.spawns("a.service").len(), 1);
}

#[test]
fn an_upheld_unit_whose_condition_never_holds_keeps_nobody_busy() {
    let a = unit("a.target", |u| u.unit.upholds.extend([name("b.service")]));
    let mut desk = Desk::new([a, conditioned("b.service", |_| {})]);
    desk.start("a.target");
    for _ in 0..50 {
        if desk.manager.jobs().any(|job| job.checking) {
            answer(&mut desk, false, true);
        }
        desk.advance(millis(200));
    }
    let asked = desk.effects.iter().filter(|e| matches!(e, Effect::Check { .. })).count();
    assert!(asked <= 7, "the start limit counts them: {asked}");
}

#[test]
fn exec_condition_decides_whether_the_rest_is_run() {
    for (case, code, sub, result, then) in [
        ("0 goes on", 0, "start", ServiceResult::Success, "a ExecStart 0"),
        ("1 leaves it out", 1, "dead", ServiceResult::ExecCondition, ""),
        ("254 leaves it out", 254, "dead", ServiceResult::ExecCondition, ""),
        ("255 is a failure", 255, "failed", ServiceResult::ExitCode, ""),
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.life.exec_condition = vec![command("/bin/c")];
        })]);
        let start = desk.start("a.service");
        assert_eq!(desk.sub("a.service"), "condition");
        desk.up("a.service");
        desk.news();
        desk.exit("a.service", ExitStatus::Exited(code));
        if code != 0 {
            desk.empty("a.service");
            let expected = if code == 255 { JobResult::Failed } else { JobResult::Done };
            assert_eq!(desk.result(start), Some(expected), "{case}");
        }
        assert_eq!(desk.spawned_since().join(" "), then, "{case}");
        assert_eq!((desk.sub("a.service"), desk.view("a.service").result), (sub, result), "{case}");
    }
}

#[test]
fn lists_of_exit_statuses_say_what_is_clean_and_what_a_restart_follows() {
    let seven = ExitStatus::Exited(7);
    let kill = ExitStatus::Killed(Signal::KILL);
    for (case, policy, list, status, sub) in [
        ("a code that is clean", Restart::OnFailure, "success", seven, "dead"),
        ("another code", Restart::OnFailure, "success", ExitStatus::Exited(8), "auto-restart"),
        ("a signal that is clean", Restart::OnFailure, "success", kill, "dead"),
        ("prevented", Restart::Always, "prevent", seven, "failed"),
        ("prevented by signal", Restart::Always, "prevent", kill, "failed"),
        ("not prevented", Restart::Always, "prevent", ExitStatus::Exited(8), "auto-restart"),
        ("forced", Restart::No, "force", seven, "auto-restart"),
        ("not forced", Restart::No, "force", ExitStatus::Exited(8), "failed"),
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.restart = policy;
            s.restart_sec = secs(1);
            let set = match list {
                "success" => &mut s.life.success,
                "prevent" => &mut s.life.restart_prevent,
                _ => &mut s.life.restart_force,
            };
            set.codes.insert(7);
            set.signals.insert(9);
        })]);
        desk.run("a.service");
        desk.die("a.service", status);
        assert_eq!(desk.sub("a.service"), sub, "{case}");
    }
}

#[test]
fn a_hung_service_has_timeout_abort_sec_to_end() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.watchdog = Some(secs(1));
        s.timeout_stop = Some(secs(1));
        s.life.timeout_abort = Some(Some(secs(5)));
    })]);
    desk.run("a.service");
    desk.advance(secs(1));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
    desk.advance(secs(4));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
    desk.advance(secs(1));
    assert_eq!(desk.sub("a.service"), "stop-sigkill");
}

#[test]
fn nothing_takes_the_place_of_an_irreversible_job_but_a_cancel() {
    let mut desk = Desk::new([plain("a.service")]);
    let start = desk.job(JobKind::Start, "a.service", JobMode::ReplaceIrreversibly);
    let stop = desk.stop("a.service");
    let refused = RequestError::Conflict(name("a.service"), "start");
    assert_eq!(desk.refusal(stop), Some(refused.clone()));
    assert!(refused.to_string().starts_with("Transaction is destructive"), "{refused}");
    desk.up("a.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));
    desk.stop("a.service");
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
}

#[test]
fn ignoring_requirements_keeps_the_order_and_pulls_nothing_in() {
    let b = unit("b.service", |u| {
        u.unit.requires.extend([name("a.service")]);
        u.unit.requisite.extend([name("c.service")]);
    });
    let mut desk = Desk::new([plain("a.service"), b, plain("c.service")]);
    desk.start("a.service");
    let start = desk.job(JobKind::Start, "b.service", JobMode::IgnoreRequirements);
    assert_eq!(desk.spawned_since(), ["a ExecStart 0"]);
    desk.fail_spawn("a.service", agentd_engine::SpawnFailureKind::Resources);
    desk.empty("a.service");
    desk.up("b.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));
}

#[test]
fn on_failure_job_mode_says_what_happens_to_jobs_in_the_way() {
    for (mode, isolated) in [(HookMode::Replace, false), (HookMode::Isolate, true)] {
        let a = unit("a.service", |u| {
            u.unit.on_failure.extend([name("rescue.target")]);
            u.unit.on_failure_job_mode = mode;
        });
        let rescue = unit("rescue.target", |u| u.unit.system.allow_isolate = true);
        let mut desk = Desk::new([a, rescue, plain("other.service")]);
        desk.run("other.service");
        desk.run("a.service");
        desk.die("a.service", DIRTY);
        assert_eq!(desk.sub("rescue.target"), "active");
        assert_eq!(desk.sub("other.service") == "stop-sigterm", isolated, "{mode:?}");
    }
}

#[test]
fn a_job_is_given_up_after_job_timeout_sec_and_what_needs_it_fails() {
    let a = unit("a.service", |u| u.unit.job_timeout = Some(secs(3)));
    let b = unit("b.service", |u| u.unit.requires.extend([name("a.service")]));
    let mut desk = Desk::new([a, b]);
    let start = desk.start("b.service");
    let own = desk.start("a.service");
    desk.advance(secs(2));
    assert_eq!(desk.result(own), None);
    desk.advance(secs(1));
    assert_eq!(
        (desk.result(own), desk.result(start)),
        (Some(JobResult::Timeout), Some(JobResult::Dependency))
    );
    assert_eq!(desk.sub("a.service"), "start", "the unit itself goes on");
}
