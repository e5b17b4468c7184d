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
