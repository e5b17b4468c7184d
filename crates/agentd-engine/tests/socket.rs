//! Sockets: when they listen, what they start, and what becomes of them when that does not go well.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod desk;

use std::sync::Arc;

use agentd_engine::{ActiveState, Connection, Effect, Event, JobResult, ServiceResult, SpawnFailureKind};
use agentd_unit::sections::SocketSection;
use agentd_unit::{Body, Restart, Unit};
use desk::*;

fn socket(text: &str, change: impl FnOnce(&mut SocketSection)) -> Unit {
    unit(text, |unit| {
        let mut section = SocketSection::default();
        change(&mut section);
        unit.body = Body::Socket(Box::new(section));
    })
}

fn desk_with(change: impl FnOnce(&mut SocketSection), service: Unit) -> Desk {
    let mut desk = Desk::new([socket("web.socket", change), service]);
    let start = desk.start("web.socket");
    assert_eq!((desk.sub("web.socket"), desk.result(start)), ("start-chown", None));
    listened(&mut desk, Ok(()));
    assert_eq!((desk.sub("web.socket"), desk.result(start)), ("listening", Some(JobResult::Done)));
    desk
}

fn desk() -> Desk {
    desk_with(|_| {}, service("web.service", |_| {}))
}

fn listened(desk: &mut Desk, result: Result<(), String>) {
    let id = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::Listen { id, .. } => Some(*id),
        _ => None,
    });
    desk.event(Event::Listened { id: id.unwrap(), unit: name("web.socket"), result });
}

fn traffic(desk: &mut Desk) {
    desk.event(Event::Traffic { unit: name("web.socket"), path: None });
}

/// Whether the socket would tell of traffic now, by what was asked of the shell last.
fn is_armed(desk: &Desk) -> bool {
    let said = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::Arm { .. } => Some(true),
        Effect::Disarm { .. } | Effect::Unlisten { .. } | Effect::Listen { .. } => Some(false),
        _ => None,
    });
    said.unwrap_or(false)
}

/// One life of the service, ended well.
fn serve(desk: &mut Desk) {
    desk.up("web.service");
    desk.die("web.service", CLEAN);
}

#[test]
fn traffic_starts_the_service_with_its_socket_and_the_end_arms_it_again() {
    let mut desk = desk();
    assert!(is_armed(&desk));
    traffic(&mut desk);
    desk.up("web.service");
    assert_eq!((desk.sub("web.socket"), desk.sub("web.service")), ("running", "running"));
    let spawn = desk.last_spawn("web.service");
    assert_eq!(spawn.sockets, [name("web.socket")]);
    assert_eq!(
        spawn.environment.trigger.as_ref().map(|trigger| trigger.unit.clone()),
        Some(name("web.socket"))
    );
    desk.news();
    desk.die("web.service", CLEAN);
    assert_eq!(desk.sub("web.socket"), "listening");
    assert!(is_armed(&desk));
}

#[test]
fn a_service_that_is_started_by_hand_takes_the_socket_over() {
    let mut desk = desk();
    desk.run("web.service");
    assert_eq!(desk.sub("web.socket"), "running");
    assert!(!is_armed(&desk));
    desk.stop("web.service");
    desk.die("web.service", TERMINATED);
    assert_eq!(desk.sub("web.socket"), "listening", "who waits starts it again");
    assert!(is_armed(&desk));
}

#[test]
fn a_service_that_restarts_keeps_its_socket_and_nothing_else_starts_it() {
    let mut desk = desk_with(
        |_| {},
        service("web.service", |s| {
            s.restart = Restart::OnFailure;
            s.restart_sec = secs(1);
        }),
    );
    traffic(&mut desk);
    desk.up("web.service");
    desk.die("web.service", DIRTY);
    assert_eq!((desk.sub("web.service"), desk.sub("web.socket")), ("auto-restart", "running"));
    let arms = desk.effects.iter().filter(|effect| matches!(effect, Effect::Arm { .. })).count();
    assert_eq!(arms, 1, "nothing else starts it");
    desk.advance(secs(1));
    desk.up("web.service");
    assert_eq!(desk.last_spawn("web.service").sockets, [name("web.socket")]);
    assert_eq!(desk.effects.iter().filter(|e| matches!(e, Effect::Listen { .. })).count(), 1);
}

#[test]
fn what_comes_too_fast_waits_and_the_socket_stays() {
    let mut desk = desk();
    for _ in 0..15 {
        traffic(&mut desk);
        serve(&mut desk);
    }
    traffic(&mut desk);
    assert_eq!((desk.sub("web.socket"), desk.spawns("web.service").len()), ("listening", 15));
    assert_eq!(desk.logs("what comes waits"), 1);
    desk.news();
    desk.advance(secs(2));
    assert!(desk.news().iter().any(|effect| matches!(effect, Effect::Arm { .. })), "it is armed again");
    traffic(&mut desk);
    serve(&mut desk);
    assert_eq!(desk.spawns("web.service").len(), 16);
}

#[test]
fn a_trigger_limit_of_its_own_fails_the_socket() {
    let mut desk = desk_with(|s| s.trigger_limit_burst = Some(3), service("web.service", |_| {}));
    for _ in 0..3 {
        traffic(&mut desk);
        serve(&mut desk);
    }
    traffic(&mut desk);
    let view = desk.view("web.socket");
    assert_eq!((view.active, view.result), (ActiveState::Failed, ServiceResult::TriggerLimitHit));
    assert!(!is_armed(&desk));
    // A person brings it back, and it counts anew.
    desk.start("web.socket");
    listened(&mut desk, Ok(()));
    traffic(&mut desk);
    assert_eq!(desk.sub("web.socket"), "running");
}

#[test]
fn a_service_that_dies_with_each_client_goes_on_at_a_bounded_pace() {
    let mut desk = desk();
    for _ in 0..1000 {
        if desk.sub("web.socket") == "listening" && is_armed(&desk) {
            traffic(&mut desk);
            if desk.sub("web.service") == "start" || desk.sub("web.service") == "running" {
                desk.up("web.service");
                desk.die("web.service", DIRTY);
            }
        }
        desk.advance(millis(10));
    }
    assert_eq!(desk.sub("web.socket"), "listening", "{:?}", desk.view("web.socket").result);
    let lives = desk.spawns("web.service").len();
    assert!((60..=90).contains(&lives), "15 in each two of ten seconds: {lives}");
}

#[test]
fn what_cannot_be_listened_on_fails_with_the_reason() {
    let mut desk = Desk::new([socket("web.socket", |_| {}), service("web.service", |_| {})]);
    for _ in 0..2 {
        let start = desk.start("web.socket");
        listened(&mut desk, Err("ListenStream=80: bind".to_owned()));
        assert_eq!(desk.result(start), Some(JobResult::Failed));
        assert_eq!(desk.view("web.socket").result, ServiceResult::Resources);
        assert_eq!(desk.failure("web.socket"), "ListenStream=80: bind");
    }
    // An answer that never comes.
    let start = desk.start("web.socket");
    desk.advance(secs(90));
    assert_eq!(desk.result(start), Some(JobResult::Failed));
    assert_eq!(desk.view("web.socket").result, ServiceResult::Timeout);
}

#[test]
fn a_socket_without_its_service_or_beside_a_running_one_is_refused() {
    let mut desk = Desk::new([socket("web.socket", |_| {})]);
    for _ in 0..2 {
        let start = desk.start("web.socket");
        assert_eq!(desk.result(start), Some(JobResult::Failed));
        assert!(desk.failure("web.socket").contains("web.service, which does not exist"));
    }
    desk.load([socket("web.socket", |_| {}), service("web.service", |_| {})]);
    desk.run("web.service");
    let start = desk.start("web.socket");
    assert_eq!(desk.result(start), Some(JobResult::Failed));
    assert!(desk.failure("web.socket").contains("runs already"), "{}", desk.failure("web.socket"));
}

#[test]
fn a_start_that_is_not_possible_now_is_tried_again() {
    let guard = unit("web.service", |unit| {
        unit.unit.conditions.push(agentd_unit::sections::Condition {
            test: agentd_unit::sections::Test::PathExists,
            parameter: "/x".into(),
            negate: false,
            trigger: false,
            assert: false,
        });
    });
    let mut desk = desk_with(|_| {}, guard);
    for _ in 0..2 {
        traffic(&mut desk);
        let id = desk.effects.iter().rev().find_map(|effect| match effect {
            Effect::Check { id, .. } => Some(*id),
            _ => None,
        });
        let checked =
            agentd_engine::Checked { condition: Err("ConditionPathExists=/x".into()), assertion: Ok(()) };
        desk.event(Event::Checked { id: id.unwrap(), checked });
        assert_eq!(desk.sub("web.socket"), "listening", "it waits for the next one");
        assert!(is_armed(&desk));
    }
}

#[test]
fn a_stop_closes_the_socket_and_leaves_the_service() {
    let mut desk = desk();
    traffic(&mut desk);
    desk.up("web.service");
    let stop = desk.stop("web.socket");
    assert_eq!((desk.result(stop), desk.sub("web.socket")), (Some(JobResult::Done), "dead"));
    assert!(desk.news().iter().any(|effect| matches!(effect, Effect::Unlisten { .. })));
    assert_eq!(desk.sub("web.service"), "running");
    traffic(&mut desk);
    desk.die("web.service", CLEAN);
    assert_eq!((desk.sub("web.socket"), is_armed(&desk)), ("dead", false), "old news changes nothing");
}

#[test]
fn a_reload_keeps_what_is_listened_on_until_the_socket_is_stopped() {
    let mut desk = desk();
    desk.load([socket("web.socket", |s| s.backlog = 7), service("web.service", |_| {})]);
    assert_eq!(desk.sub("web.socket"), "listening");
    assert!(desk.view("web.socket").changed_on_disk);
    traffic(&mut desk);
    desk.up("web.service");
    assert_eq!(desk.last_spawn("web.service").sockets, [name("web.socket")]);
    desk.die("web.service", CLEAN);
    desk.restart("web.socket");
    let listen = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::Listen { unit, .. } => Some(std::sync::Arc::clone(unit)),
        _ => None,
    });
    let Body::Socket(section) = &listen.unwrap().body else { panic!("no socket") };
    assert_eq!(section.backlog, 7);
}

#[test]
fn a_service_that_never_comes_up_is_given_up_and_its_socket_says_why() {
    let mut desk = desk();
    let mut spawned = 0;
    for _ in 0..100 {
        if desk.sub("web.socket") == "listening" {
            traffic(&mut desk);
            if desk.spawns("web.service").len() > spawned {
                spawned += 1;
                desk.fail_spawn("web.service", SpawnFailureKind::Step { exit_status: 203 });
                desk.empty("web.service");
            }
        }
        desk.advance(millis(10));
    }
    let view = desk.view("web.socket");
    assert_eq!((view.sub, view.result), ("failed", ServiceResult::ServiceStartLimitHit));
    assert_eq!(desk.spawns("web.service").len(), 6, "the first, and five in ten seconds");
}

fn heir(desk: &Desk, change: impl FnOnce(&mut SocketSection)) -> Desk {
    desk.heir([socket("web.socket", change), service("web.service", |_| {})])
}

#[test]
fn the_next_manager_goes_on_with_a_socket_and_what_it_counts() {
    let limited = |s: &mut SocketSection| {
        (s.trigger_limit_burst, s.trigger_limit_interval) = (Some(2), secs(60));
    };
    let mut first = desk_with(limited, service("web.service", |_| {}));
    for _ in 0..2 {
        traffic(&mut first);
        serve(&mut first);
    }
    let mut second = heir(&first, limited);
    assert_eq!((second.sub("web.socket"), is_armed(&second)), ("listening", true));
    assert!(second.effects.iter().any(|effect| matches!(effect, Effect::Relisten { .. })));
    traffic(&mut second);
    assert_eq!(second.view("web.socket").result, ServiceResult::TriggerLimitHit);
    let third = heir(&second, limited);
    assert_eq!(
        (third.sub("web.socket"), third.view("web.socket").result),
        ("failed", ServiceResult::TriggerLimitHit)
    );
}

#[test]
fn a_socket_of_the_manager_before_knows_its_service_and_what_came_of_it() {
    let mut first = desk();
    traffic(&mut first);
    first.up("web.service");
    let mut second = heir(&first, |_| {});
    assert_eq!(second.sub("web.socket"), "running");
    assert!(!is_armed(&second));
    let (id, run) = second.taken_over("web.service");
    second.event(Event::Exited { id, run, status: CLEAN });
    let empty = second.effects.iter().rev().find_map(|effect| match effect {
        Effect::AwaitEmpty { id, .. } => Some(*id),
        _ => None,
    });
    second.event(Event::Emptied { id: empty.unwrap(), run });
    assert_eq!((second.sub("web.socket"), is_armed(&second)), ("listening", true));
    // Of one that ended unseen nothing is kept: the socket stands as if it had heard of it.
    first.stop("web.service");
    first.die("web.service", TERMINATED);
    traffic(&mut first);
    let third = heir(&first, |_| {});
    assert_eq!((third.sub("web.socket"), third.sub("web.service")), ("listening", "dead"));
}

#[test]
fn a_socket_that_cannot_be_taken_up_fails_with_the_reason() {
    let mut second = heir(&desk(), |_| {});
    let id = second.effects.iter().rev().find_map(|effect| match effect {
        Effect::Relisten { id, .. } => Some(*id),
        _ => None,
    });
    let result = Err("bind: in use".to_owned());
    second.event(Event::Listened { id: id.unwrap(), unit: name("web.socket"), result });
    assert_eq!(
        (second.sub("web.socket"), second.view("web.socket").result),
        ("failed", ServiceResult::Resources)
    );
    assert!(second.failure("web.socket").contains("in use"));
}

#[test]
fn a_socket_that_is_not_made_in_time_fails_and_what_comes_late_is_nothing() {
    let unit = || socket("web.socket", |s| s.timeout = Some(secs(7)));
    let mut desk = Desk::new([unit(), service("web.service", |_| {})]);
    let start = desk.start("web.socket");
    desk.advance(secs(6));
    assert_eq!((desk.sub("web.socket"), desk.result(start)), ("start-chown", None));
    desk.advance(secs(2));
    assert_eq!((desk.sub("web.socket"), desk.view("web.socket").result), ("failed", ServiceResult::Timeout));
    assert_eq!(desk.result(start), Some(JobResult::Failed));
    listened(&mut desk, Ok(()));
    assert_eq!(desk.sub("web.socket"), "failed");
}

/// A client comes, and its connection is taken. Returns the number that it was taken as.
fn connect(desk: &mut Desk) -> u64 {
    traffic(desk);
    let asked = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::Accept { id, number, .. } => Some((*id, *number)),
        _ => None,
    });
    let (id, number) = asked.unwrap();
    let unit = Arc::new(service(&format!("web@{number}.service"), |_| {}));
    let connection = Box::new(Connection { unit, source: None });
    desk.event(Event::Accepted { id, socket: name("web.socket"), result: Ok(Some(connection)) });
    number
}

#[test]
fn the_next_manager_counts_connections_from_where_the_one_before_was() {
    let accepting = |s: &mut SocketSection| (s.accept, s.max_connections) = (true, 2);
    let template = || service("web@.service", |_| {});
    let mut first = Desk::new([socket("web.socket", accepting), template()]);
    first.start("web.socket");
    listened(&mut first, Ok(()));
    for number in 0..3 {
        assert_eq!(connect(&mut first), number.min(2));
    }
    let mut second = first.heir([socket("web.socket", accepting), template()]);
    let counts = second.view("web.socket").socket.unwrap();
    assert_eq!((counts.accepted, counts.refused), (2, 1));
    assert_eq!(connect(&mut second), 2, "no instance has the name of one that lives");
}
