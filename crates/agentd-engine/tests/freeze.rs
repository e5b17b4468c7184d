//! Units that stand still.

mod desk;

use agentd_engine::{Effect, JobKind, JobMode, JobResult, Notification, Request, RequestError};
use desk::*;

fn freeze(desk: &mut Desk, frozen: bool) -> agentd_engine::RequestId {
    desk.request(Request::Freeze { unit: name("a.service"), frozen })
}

/// What was frozen and let go on, in order.
fn freezings(desk: &Desk) -> Vec<bool> {
    let frozen = |effect: &Effect| match effect {
        Effect::Freeze { frozen, .. } => Some(*frozen),
        _ => None,
    };
    desk.effects.iter().filter_map(frozen).collect()
}

#[test]
fn a_frozen_service_is_up_and_not_expected_to_show_signs_of_life() {
    let mut desk = Desk::new([service("a.service", |s| s.watchdog = Some(secs(1)))]);
    desk.run("a.service");
    let request = freeze(&mut desk, true);
    assert_eq!((desk.refusal(request), freezings(&desk)), (None, vec![true]));
    assert!(desk.view("a.service").frozen);
    desk.advance(secs(3600));
    assert_eq!(desk.sub("a.service"), "running");

    // Twice is once, and from the thaw on it has its whole span again.
    freeze(&mut desk, true);
    freeze(&mut desk, false);
    assert_eq!(freezings(&desk), [true, false]);
    desk.advance(millis(900));
    assert_eq!((desk.sub("a.service"), desk.view("a.service").frozen), ("running", false));
    desk.advance(millis(200));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
}

#[test]
fn whatever_takes_a_frozen_service_down_lets_it_go_on_first() {
    let down: [fn(&mut Desk); 4] = [
        |desk| {
            desk.stop("a.service");
        },
        |desk| {
            desk.restart("a.service");
        },
        |desk| desk.advance(secs(60)),
        |desk| desk.notify("a.service", Notification { stopping: true, ..Notification::default() }),
    ];
    for (number, go_down) in down.into_iter().enumerate() {
        let mut desk = Desk::new([service("a.service", |s| {
            s.runtime_max = Some(secs(60));
            s.notify_access = agentd_unit::NotifyAccess::Main;
        })]);
        desk.run("a.service");
        freeze(&mut desk, true);
        go_down(&mut desk);
        let thaw =
            desk.effects.iter().position(|effect| matches!(effect, Effect::Freeze { frozen: false, .. }));
        let kill = desk.effects.iter().position(|effect| matches!(effect, Effect::Kill { .. }));
        assert!(thaw.is_some() && kill.is_none_or(|kill| thaw < Some(kill)), "case {number}");
        assert!(!desk.view("a.service").frozen, "case {number}");
    }
}

#[test]
fn only_what_is_up_and_has_no_job_can_be_frozen_and_what_is_frozen_does_not_reload() {
    let mut desk = Desk::new([service("a.service", |s| s.exec_reload = vec![command("/reload")])]);
    let refused =
        |desk: &Desk, request| matches!(desk.refusal(request), Some(RequestError::NotApplicable(..)));
    for frozen in [true, false] {
        let request = freeze(&mut desk, frozen);
        assert!(refused(&desk, request), "at rest, frozen={frozen}");
    }
    desk.start("a.service");
    let request = freeze(&mut desk, true);
    assert!(refused(&desk, request), "while it starts");
    desk.up("a.service");
    freeze(&mut desk, true);
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    assert!(refused(&desk, reload), "a reload of a frozen unit would wait for ever");
    freeze(&mut desk, false);
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    assert_eq!((desk.refusal(reload), desk.result(reload)), (None, None::<JobResult>));
}

#[test]
fn what_is_frozen_stays_so_under_the_next_manager_and_can_be_let_go_there() {
    let units = || [service("a.service", |s| s.watchdog = Some(secs(10)))];
    let mut first = Desk::new(units());
    first.run("a.service");
    freeze(&mut first, true);
    let mut second = first.heir(units());
    assert!(second.view("a.service").frozen);
    second.advance(secs(1000));
    assert_eq!(second.sub("a.service"), "running", "no signs of life are expected");
    freeze(&mut second, false);
    assert_eq!((second.view("a.service").frozen, freezings(&second)), (false, vec![false]));
}

#[test]
fn a_slice_is_frozen_with_all_that_is_up_in_it_or_not_at_all() {
    let lies_in = |unit: &str, slice: &str| {
        service(unit, |s| {
            s.slice = Some(name(slice));
            s.watchdog = Some(secs(10));
        })
    };
    let units = || {
        [
            lies_in("a.service", "w.slice"),
            lies_in("b.service", "w-deep.slice"),
            lies_in("c.service", "w.slice"),
            lies_in("d.service", "x.slice"),
        ]
    };
    let freeze = |desk: &mut Desk, unit: &str, frozen: bool| {
        desk.request(Request::Freeze { unit: name(unit), frozen })
    };
    let mut desk = Desk::new(units());
    for unit in ["a.service", "b.service", "d.service"] {
        desk.run(unit);
    }
    desk.start("c.service");
    let refused = freeze(&mut desk, "w.slice", true);
    let why = desk.refusal(refused);
    assert!(
        matches!(&why, Some(RequestError::NotApplicable(unit, _)) if *unit == name("c.service")),
        "{why:?}"
    );
    assert_eq!(freezings(&desk), [], "whole or not at all");
    desk.stop("c.service");
    desk.up("c.service");
    desk.die("c.service", KILLED);
    let asked = freeze(&mut desk, "w.slice", true);
    assert_eq!((desk.refusal(asked), freezings(&desk)), (None, vec![true, true]));
    let frozen = |desk: &Desk| {
        ["a.service", "b.service", "d.service", "w.slice", "w-deep.slice", "x.slice"]
            .map(|unit| desk.view(unit).frozen)
    };
    assert_eq!(frozen(&desk), [true, true, false, true, true, false]);
    desk.stop("d.service");
    desk.advance(secs(100));
    assert_eq!(desk.sub("a.service"), "running");
    freeze(&mut desk, "b.service", false);
    assert_eq!(frozen(&desk), [true, false, false, false, false, false]);
    let asked = freeze(&mut desk, "w.slice", false);
    assert_eq!((desk.refusal(asked), frozen(&desk)), (None, [false; 6]));
    for (slice, why) in [("x.slice", "no service of it is active"), ("-.slice", "it holds the manager")] {
        let asked = freeze(&mut desk, slice, true);
        if slice == "x.slice" {
            desk.exit_main("d.service", CLEAN);
            desk.empty("d.service");
        }
        let again = freeze(&mut desk, slice, true);
        assert!(desk.refusal(asked).is_some());
        assert_eq!(desk.refusal(again), Some(RequestError::NotApplicable(name(slice), why)));
    }
}
