//! The rows of restarts of `[Agent]`: how the delay grows, what chance adds, when it is enough.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{Config, Request, ServiceResult};
use agentd_unit::sections::AgentLife;
use agentd_unit::{AgentSection, Body, Restart, Unit};
use desk::*;

fn agent(change: impl FnOnce(&mut AgentLife)) -> Unit {
    unit("a.service", |u| {
        u.unit.start_limit_burst = 0;
        u.unit.on_failure.insert(name("note.service"));
        let Body::Service(body) = &mut u.body else { return };
        body.service.restart = Restart::OnFailure;
        body.service.restart_sec = millis(100);
        body.service.restart_max_delay = Some(millis(400));
        let mut life = AgentLife::default();
        change(&mut life);
        body.agent = Some(Box::new(AgentSection { life, ..AgentSection::default() }));
    })
}

fn desk(change: impl FnOnce(&mut AgentLife)) -> Desk {
    Desk::new([agent(change), unit("note.service", |_| {})])
}

/// It comes up, lives for so long, and fails.
fn life(desk: &mut Desk, span: std::time::Duration) {
    desk.up("a.service");
    desk.advance(span);
    desk.die("a.service", DIRTY);
}

/// How long until its next start; `None`: none is due.
fn delay(desk: &Desk) -> Option<std::time::Duration> {
    let view = desk.view("a.service");
    view.deadline.filter(|_| view.sub == "auto-restart").map(|at| at - desk.now.monotonic)
}

#[test]
fn ra3_the_gaps_grow_by_the_factor_to_the_longest_and_after_max_restarts_it_stays_failed() {
    let mut desk = desk(|life| {
        life.restart_factor = Some(200);
        life.max_restarts = Some(4);
    });
    desk.start("a.service");
    for gap in [100, 200, 400, 400] {
        life(&mut desk, millis(10));
        assert_eq!(delay(&desk), Some(millis(gap)));
        desk.advance(millis(gap));
    }
    life(&mut desk, millis(10));
    let view = desk.view("a.service");
    assert_eq!((view.sub, view.result, view.n_restarts), ("failed", ServiceResult::StartLimitHit, 4));
    assert_eq!(desk.logs("restarted MaxRestarts times in a row"), 1);
    desk.advance(secs(3600));
    assert_eq!((desk.spawns("a.service").len(), desk.spawns("note.service").len()), (5, 1));
}

#[test]
fn ra4_lives_that_end_before_min_ready_sec_spend_the_row_and_longer_ones_do_not() {
    for (span, ends) in [(millis(4999), true), (secs(5), false)] {
        let mut desk = desk(|life| {
            life.max_restarts = Some(2);
            (life.min_ready, life.restart_reset) = (secs(5), Some(secs(1)));
        });
        desk.start("a.service");
        for _ in 0..6 {
            if desk.sub("a.service") != "failed" {
                life(&mut desk, span);
                desk.advance(millis(100));
            }
        }
        assert_eq!(
            (desk.sub("a.service") == "failed", desk.spawns("a.service").len()),
            if ends { (true, 3) } else { (false, 7) }
        );
    }
}

#[test]
fn ra17_a_stable_life_ends_the_row_and_the_count_for_people_goes_on() {
    let mut desk = desk(|life| {
        life.restart_factor = Some(200);
        life.restart_reset = Some(secs(3));
    });
    desk.start("a.service");
    for _ in 0..3 {
        life(&mut desk, millis(10));
        desk.advance(delay(&desk).unwrap());
    }
    life(&mut desk, millis(2999));
    assert_eq!(delay(&desk), Some(millis(400)));
    desk.advance(millis(400));
    life(&mut desk, secs(3));
    assert_eq!((delay(&desk), desk.view("a.service").n_restarts), (Some(millis(100)), 4));
}

#[test]
fn the_time_that_its_clean_up_takes_is_no_uptime() {
    let mut desk = desk(|life| {
        (life.max_restarts, life.restart_reset) = (Some(1), Some(secs(3)));
    });
    desk.start("a.service");
    life(&mut desk, millis(10));
    desk.advance(millis(100));
    desk.up("a.service");
    desk.advance(secs(1));
    desk.exit_main("a.service", DIRTY);
    desk.advance(secs(2));
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "failed");
}

#[test]
fn a_start_by_a_person_and_reset_failed_begin_a_new_row() {
    let mut desk = desk(|life| life.max_restarts = Some(1));
    for by_person in [true, false, true] {
        if by_person {
            desk.start("a.service");
        } else {
            desk.request(Request::ResetFailed { unit: Some(name("a.service")) });
            assert_eq!(desk.sub("a.service"), "dead");
            desk.start("a.service");
        }
        life(&mut desk, millis(10));
        assert_eq!(delay(&desk), Some(millis(100)));
        desk.advance(millis(100));
        life(&mut desk, millis(10));
        assert_eq!(desk.sub("a.service"), "failed");
    }
}

#[test]
fn a_stop_beats_a_delay_that_has_grown_and_chance_adds_no_more_than_its_bound() {
    let mut gaps = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let unit = agent(|life| life.restart_randomized_delay = secs(1));
        let config = Config { seed: [seed; 16], ..Config::default() };
        let mut desk = Desk::with(config, [unit, unit_note()]);
        desk.start("a.service");
        life(&mut desk, millis(10));
        let gap = delay(&desk).unwrap();
        assert!(gap >= millis(100) && gap <= millis(1100), "{gap:?}");
        gaps.insert(gap);
        desk.stop("a.service");
        desk.advance(secs(5));
        assert_eq!((desk.sub("a.service"), desk.spawns("a.service").len()), ("dead", 1));
    }
    assert!(gaps.len() > 15, "{gaps:?}");
}

fn unit_note() -> Unit {
    unit("note.service", |_| {})
}

#[test]
fn another_manager_goes_on_with_the_row() {
    let units = || [agent(|life| life.max_restarts = Some(2)), unit_note()];
    let mut desk = Desk::new(units());
    desk.start("a.service");
    life(&mut desk, millis(10));
    desk.advance(millis(100));
    life(&mut desk, millis(10));
    let mut heir = desk.heir(units());
    heir.advance(millis(100));
    life(&mut heir, millis(10));
    assert_eq!(
        (heir.sub("a.service"), heir.view("a.service").result),
        ("failed", ServiceResult::StartLimitHit)
    );
}
