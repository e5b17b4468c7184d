//! The end: in reverse order, in parallel where it can be, within its bound.

mod desk;

use agentd_engine::{Config, Effect, JobResult, Request, RequestError, ShutdownKind};
use agentd_unit::{KillMode, NotifyAccess, Restart, ServiceType};
use desk::*;

fn ends(desk: &Desk) -> Vec<ShutdownKind> {
    let kind = |effect: &Effect| if let Effect::Shutdown { kind, .. } = effect { Some(*kind) } else { None };
    desk.effects.iter().filter_map(kind).collect()
}

fn shut_down(desk: &mut Desk, kind: ShutdownKind) {
    let request = desk.request(Request::Shutdown { kind });
    assert!(desk.effects.contains(&Effect::Done { request }));
}

#[test]
fn b035_b036_chains_stop_in_reverse_and_beside_each_other_and_the_end_comes_once() {
    let chained = |own: &str, other: &str| {
        unit(own, |u| {
            u.unit.requires.insert(name(other));
        })
    };
    let mut desk = Desk::new([
        unit("a1.service", |_| {}),
        chained("a2.service", "a1.service"),
        unit("b1.service", |_| {}),
        chained("b2.service", "b1.service"),
    ]);
    for unit in ["a1.service", "a2.service", "b1.service", "b2.service"] {
        desk.run(unit);
    }
    shut_down(&mut desk, ShutdownKind::Poweroff);
    let subs =
        |desk: &Desk| ["a1.service", "a2.service", "b1.service", "b2.service"].map(|unit| desk.sub(unit));
    assert_eq!(subs(&desk), ["running", "stop-sigterm", "running", "stop-sigterm"]);
    desk.die("b2.service", TERMINATED);
    assert_eq!(subs(&desk), ["running", "stop-sigterm", "stop-sigterm", "dead"]);
    for unit in ["b1.service", "a2.service", "a1.service"] {
        assert_eq!(ends(&desk), []);
        desk.die(unit, TERMINATED);
    }
    assert_eq!(ends(&desk), [ShutdownKind::Poweroff]);
    shut_down(&mut desk, ShutdownKind::Poweroff);
    assert_eq!(ends(&desk).len(), 1);
}

#[test]
fn with_nothing_up_the_end_comes_at_once() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    shut_down(&mut desk, ShutdownKind::Exit(7));
    assert_eq!(ends(&desk), [ShutdownKind::Exit(7)]);
}

#[test]
fn b033_what_is_still_starting_is_stopped_at_once_and_what_waits_never_starts() {
    let mut desk = Desk::new([
        service("a.service", |s| {
            s.service_type = ServiceType::Notify;
            s.notify_access = NotifyAccess::Main;
            s.timeout_start = None;
        }),
        unit("b.service", |u| {
            u.unit.wants.insert(name("a.service"));
        }),
        service("c.service", |s| s.restart = Restart::Always),
    ]);
    let b = desk.start("b.service");
    desk.up("a.service");
    desk.run("c.service");
    desk.die("c.service", DIRTY);
    assert_eq!(desk.sub("c.service"), "auto-restart");
    shut_down(&mut desk, ShutdownKind::Reboot);
    assert_eq!(desk.result(b), Some(JobResult::Canceled));
    assert_eq!(
        (desk.sub("a.service"), desk.sub("b.service"), desk.sub("c.service")),
        ("stop-sigterm", "dead", "dead")
    );
    let refused = desk.start("b.service");
    assert_eq!(desk.refusal(refused), Some(RequestError::ShuttingDown));
    desk.die("a.service", TERMINATED);
    assert_eq!(ends(&desk), [ShutdownKind::Reboot]);
}

#[test]
fn a_second_request_says_how_it_ends_and_kills_nothing() {
    let mut desk = Desk::new([service("a.service", |_| {})]);
    desk.run("a.service");
    shut_down(&mut desk, ShutdownKind::Poweroff);
    for _ in 0..20 {
        desk.advance(millis(400));
        shut_down(&mut desk, ShutdownKind::Reboot);
        assert_eq!(desk.sub("a.service"), "stop-sigterm");
    }
    desk.die("a.service", TERMINATED);
    assert_eq!(ends(&desk), [ShutdownKind::Reboot]);
}

#[test]
fn who_asks_more_than_seven_times_in_two_seconds_has_what_is_left_killed() {
    let mut desk = Desk::new([
        service("a.service", |s| s.exec_stop = vec![command("/bin/stop")]),
        service("b.service", |s| s.kill_mode = KillMode::None),
    ]);
    desk.run("a.service");
    desk.run("b.service");
    shut_down(&mut desk, ShutdownKind::Poweroff);
    for _ in 2..8 {
        desk.advance(millis(280));
        shut_down(&mut desk, ShutdownKind::Poweroff);
    }
    assert_eq!(desk.sub("a.service"), "stop");
    desk.news();
    shut_down(&mut desk, ShutdownKind::Poweroff);
    let killed = desk.news().iter().filter(|effect| matches!(effect, Effect::KillAll { .. })).count();
    assert!(killed >= 1);
    desk.exit("a.service", KILLED);
    desk.die("a.service", KILLED);
    desk.die("b.service", KILLED);
    assert_eq!(ends(&desk), [ShutdownKind::Poweroff]);
}

#[test]
fn the_bound_on_the_whole_forces_and_a_process_of_stone_does_not_keep_the_machine_up() {
    let config = Config { shutdown_timeout: Some(secs(20)), ..Config::default() };
    let mut desk = Desk::with(config, [service("a.service", |s| s.timeout_stop = None)]);
    desk.run("a.service");
    shut_down(&mut desk, ShutdownKind::Poweroff);
    desk.advance(secs(19));
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    assert_eq!(desk.logs("a.service: A stop job is running"), 2, "it is said what holds it up");
    desk.advance(secs(1));
    assert_eq!(desk.sub("a.service"), "final-sigkill");
    assert_eq!(ends(&desk), []);
    desk.advance(secs(10));
    assert_eq!(ends(&desk), [ShutdownKind::Poweroff]);
    assert_eq!(desk.manager.deadlines().monotonic, None);
}

#[test]
fn what_kill_mode_lets_live_on_dies_with_the_machine() {
    let mut desk = Desk::new([service("a.service", |s| s.kill_mode = KillMode::Process)]);
    desk.run("a.service");
    shut_down(&mut desk, ShutdownKind::Poweroff);
    desk.news();
    desk.exit_main("a.service", CLEAN);
    assert!(desk.news().iter().any(|effect| matches!(effect, Effect::KillAll { .. })));
    assert_eq!(ends(&desk), []);
    desk.empty("a.service");
    assert_eq!(ends(&desk), [ShutdownKind::Poweroff]);
}
