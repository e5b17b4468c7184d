//! Who starts and stops before whom, and what goes with what.

mod desk;

use agentd_engine::{ActiveState, JobKind, JobMode, JobResult, RequestError};
use agentd_unit::{LoadState, Restart, Unit};
use desk::*;

fn after(unit: &mut Unit, other: &str) {
    unit.unit.after.insert(name(other));
}

fn requires(unit: &mut Unit, other: &str) {
    unit.unit.requires.insert(name(other));
}

fn wants(unit: &mut Unit, other: &str) {
    unit.unit.wants.insert(name(other));
}

fn target(text: &str, wanted: &[&str]) -> Unit {
    unit(text, |unit| wanted.iter().for_each(|other| wants(unit, other)))
}

#[test]
fn units_without_order_start_together_and_the_rest_in_order_and_stop_in_reverse() {
    let mut desk = Desk::new([
        target("all.target", &["app.service", "db.service", "web.service"]),
        unit("app.service", |u| requires(u, "db.service")),
        unit("db.service", |_| {}),
        unit("web.service", |u| requires(u, "app.service")),
        unit("log.service", |u| {
            u.install.wanted_by.insert(name("all.target"));
            u.enabled = true;
        }),
    ]);
    let start = desk.start("all.target");
    assert_eq!(desk.spawned_since(), ["db ExecStart 0", "log ExecStart 0"]);
    desk.up("log.service");
    desk.up("db.service");
    assert_eq!(desk.spawned_since(), ["app ExecStart 0"]);
    desk.up("app.service");
    assert_eq!(desk.spawned_since(), ["web ExecStart 0"]);
    assert_eq!(desk.result(start), None);
    desk.up("web.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));

    let stop = desk.stop("db.service");
    assert_eq!((desk.sub("web.service"), desk.sub("app.service")), ("stop-sigterm", "running"));
    desk.die("web.service", TERMINATED);
    assert_eq!((desk.sub("app.service"), desk.sub("db.service")), ("stop-sigterm", "running"));
    desk.die("app.service", TERMINATED);
    desk.die("db.service", TERMINATED);
    assert_eq!(desk.result(stop), Some(JobResult::Done));
    assert_eq!(desk.sub("log.service"), "running");
}

#[test]
fn b067_a_missing_requirement_is_refused_with_the_same_reason_at_boot_and_by_hand() {
    let mut desk = Desk::new([
        target("default.target", &["u.service", "v.service"]),
        unit("u.service", |u| requires(u, "ghost.service")),
        unit("v.service", |u| wants(u, "ghost.service")),
    ]);
    desk.start("default.target");
    assert_eq!(desk.spawned_since(), ["v ExecStart 0"]);
    let reason = "Unit ghost.service not found, but u.service requires it.";
    assert_eq!(desk.failure("u.service"), reason);
    let by_hand = desk.start("u.service");
    assert_eq!(desk.refusal(by_hand).map(|error| error.to_string()).as_deref(), Some(reason));
    assert!(desk.spawned_since().is_empty());
}

#[test]
fn b061_a_cycle_fails_its_members_alone_and_names_the_path() {
    for round in 0..20 {
        let mut desk = Desk::new([
            target("all.target", &["a.service", "b.service", "c.service", "d.service", "e.service"]),
            unit("a.service", |u| after(u, "b.service")),
            unit("b.service", |u| after(u, "c.service")),
            unit("c.service", |u| after(u, "a.service")),
            unit("d.service", |_| {}),
            unit("e.service", |_| {}),
        ]);
        let boot = desk.start("all.target");
        assert_eq!(desk.spawned_since(), ["d ExecStart 0", "e ExecStart 0"], "round {round}");
        desk.up("d.service");
        desk.up("e.service");
        assert_eq!(desk.result(boot), Some(JobResult::Done));
        for member in ["a.service", "b.service", "c.service"] {
            assert_eq!(desk.sub(member), "failed");
            assert!(desk.failure(member).contains("a.service -> b.service -> c.service -> a.service"));
        }
        let by_hand = desk.start("a.service");
        assert_eq!((desk.refusal(by_hand), desk.sub("a.service")), (None, "start"), "alone it can start");
    }
}

#[test]
fn a_soft_cycle_boots_with_one_warning_that_names_it() {
    let mut desk = Desk::new([
        target("all.target", &["a.service"]),
        unit("a.service", |u| wants(u, "b.service")),
        unit("b.service", |u| wants(u, "a.service")),
    ]);
    desk.start("all.target");
    assert_eq!(desk.spawned_since(), ["a ExecStart 0"], "the first by name gives its order up");
    desk.up("a.service");
    desk.up("b.service");
    assert_eq!(desk.logs("Ordering cycle a.service -> b.service -> a.service"), 1);
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("running", "running"));
}

#[test]
fn a_hard_cycle_takes_its_dependents_with_it_and_nobody_else() {
    let mut desk = Desk::new([
        target("all.target", &["a.service", "needs.service", "free.service"]),
        unit("a.service", |u| requires(u, "b.service")),
        unit("b.service", |u| requires(u, "a.service")),
        unit("needs.service", |u| requires(u, "a.service")),
        unit("free.service", |u| wants(u, "a.service")),
    ]);
    desk.start("all.target");
    assert_eq!(desk.spawned_since(), ["free ExecStart 0"]);
    assert_eq!(
        (desk.sub("a.service"), desk.sub("b.service"), desk.sub("needs.service")),
        ("failed", "failed", "dead")
    );
    let by_hand = desk.start("needs.service");
    assert!(matches!(desk.refusal(by_hand), Some(RequestError::Cycle(_))));
}

#[test]
fn what_cannot_be_loaded_or_is_masked_is_refused_with_its_reason() {
    let mut desk = Desk::new([
        unit("bad.service", |u| {
            u.load = LoadState::BadSetting("bad.service.toml:3:1: no such key".to_owned())
        }),
        unit("masked.service", |u| u.load = LoadState::Masked),
        unit("needs.service", |u| requires(u, "masked.service")),
    ]);
    for (unit, reason) in [
        ("bad.service", "Unit bad.service could not be loaded: bad.service.toml:3:1: no such key"),
        ("masked.service", "Unit masked.service is masked."),
        ("needs.service", "Unit masked.service is masked."),
        ("ghost.service", "Unit ghost.service not found."),
    ] {
        let request = desk.start(unit);
        assert_eq!(desk.refusal(request).map(|e| e.to_string()).as_deref(), Some(reason));
    }
}

#[test]
fn b063_a_dependent_that_failed_only_for_its_requirement_comes_back_with_it() {
    let mut desk = Desk::new([
        service("a.service", |s| {
            s.restart = Restart::OnFailure;
            s.service_type = agentd_unit::ServiceType::Notify;
            s.notify_access = agentd_unit::NotifyAccess::Main;
        }),
        unit("b.service", |u| requires(u, "a.service")),
    ]);
    let start = desk.start("b.service");
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!(desk.result(start), Some(JobResult::Dependency));
    desk.advance(millis(100));
    desk.up("a.service");
    desk.ready("a.service");
    assert_eq!(desk.sub("a.service"), "running");
    desk.up("b.service");
    assert_eq!(desk.sub("b.service"), "running");
}

#[test]
fn bound_units_stop_when_their_unit_dies_and_return_with_it() {
    let mut desk = Desk::new([
        service("x.service", |s| s.restart = Restart::Always),
        unit("y.service", |u| {
            u.unit.binds_to.insert(name("x.service"));
        }),
        unit("z.service", |u| requires(u, "x.service")),
    ]);
    desk.start("y.service");
    desk.up("x.service");
    desk.up("y.service");
    desk.run("z.service");
    desk.exit_main("x.service", KILLED);
    assert_eq!((desk.sub("y.service"), desk.sub("z.service")), ("stop-sigterm", "running"));
    desk.die("y.service", TERMINATED);
    desk.empty("x.service");
    desk.advance(millis(100));
    desk.up("x.service");
    desk.up("y.service");
    assert_eq!(
        (desk.sub("x.service"), desk.sub("y.service"), desk.sub("z.service")),
        ("running", "running", "running")
    );
}

#[test]
fn a_second_start_joins_the_first_and_a_start_of_what_is_up_is_done_at_once() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    let (first, second) = (desk.start("a.service"), desk.start("a.service"));
    assert_eq!(desk.spawns("a.service").len(), 1);
    desk.up("a.service");
    let third = desk.start("a.service");
    for request in [first, second, third] {
        assert_eq!(desk.result(request), Some(JobResult::Done));
    }
    assert_eq!(desk.spawns("a.service").len(), 1);
}

#[test]
fn a_job_in_the_way_is_replaced_or_makes_the_request_fail_by_mode() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    let start = desk.start("a.service");
    let refused = desk.job(JobKind::Stop, "a.service", JobMode::Fail);
    assert_eq!(desk.refusal(refused), Some(RequestError::Conflict(name("a.service"), "start")));
    let stop = desk.stop("a.service");
    assert_eq!((desk.result(start), desk.sub("a.service")), (Some(JobResult::Canceled), "stop-sigterm"));
    desk.up("a.service");
    desk.die("a.service", TERMINATED);
    assert_eq!(
        (desk.result(stop), desk.view("a.service").active),
        (Some(JobResult::Done), ActiveState::Inactive)
    );
}
