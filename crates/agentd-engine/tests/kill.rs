//! How processes are ended: what is sent, to whom, and what is left.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{Effect, KillTarget, ServiceResult};
use agentd_unit::Signal;
use desk::*;

/// The signals that were sent since the last look, in order; SIGKILL for a kill of all at once.
fn sent(desk: &mut Desk) -> Vec<(bool, Signal)> {
    let signal = |effect: Effect| match effect {
        Effect::Kill { target, signal, .. } => Some((target == KillTarget::All, signal)),
        Effect::KillAll { .. } => Some((true, Signal::KILL)),
        _ => None,
    };
    desk.news().into_iter().filter_map(signal).collect()
}

fn quit() -> Signal {
    "SIGQUIT".parse().unwrap()
}

#[test]
fn a_hang_up_follows_the_kill_signal_where_it_is_asked_for() {
    for (send, expected) in
        [(true, vec![(true, Signal::TERM), (true, Signal::HUP)]), (false, vec![(true, Signal::TERM)])]
    {
        let mut desk = Desk::new([service("a.service", |s| s.life.send_sighup = send)]);
        desk.run("a.service");
        desk.news();
        desk.stop("a.service");
        assert_eq!(sent(&mut desk), expected);
    }
}

#[test]
fn a_hung_service_gets_its_own_signal() {
    for signal in [quit(), Signal::ABRT] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.watchdog = Some(secs(1));
            s.life.watchdog_signal = Some(signal);
        })]);
        desk.run("a.service");
        desk.news();
        desk.advance(secs(1));
        assert_eq!(sent(&mut desk), [(false, signal)]);
    }
}

#[test]
fn the_last_signal_is_the_one_that_was_chosen() {
    for signal in [quit(), Signal::KILL] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.timeout_stop = Some(secs(1));
            s.life.final_kill_signal = Some(signal);
        })]);
        desk.run("a.service");
        desk.stop("a.service");
        desk.news();
        desk.advance(secs(1));
        assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, signal)], "stop-sigkill"));
    }
}

#[test]
fn without_sigkill_what_is_left_stays_until_the_next_start() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.timeout_stop = Some(secs(1));
        s.life.send_sigkill = Some(false);
    })]);
    desk.run("a.service");
    desk.stop("a.service");
    desk.news();
    desk.advance(secs(1));
    assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![], "failed"));
    assert_eq!(desk.view("a.service").result, ServiceResult::Timeout);
    desk.start("a.service");
    assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, Signal::KILL)], "start-pre"));
}
