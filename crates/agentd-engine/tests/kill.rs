//! How processes are ended: what is sent, to whom, and what is left.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{Effect, Event, KillTarget, ServiceResult};
use agentd_unit::sections::OomPolicy;
use agentd_unit::{Restart, Signal};
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

#[test]
fn b028_the_oom_killer_is_told_whether_it_is_seen_before_or_after_the_exit() {
    for exit_first in [false, true] {
        let mut desk = Desk::new([service("a.service", |s| s.restart = Restart::OnFailure)]);
        desk.run("a.service");
        let run = desk.last_spawn("a.service").run;
        if exit_first {
            desk.exit_main("a.service", KILLED);
            desk.event(Event::OomKilled { run });
        } else {
            desk.event(Event::OomKilled { run });
            desk.exit_main("a.service", KILLED);
        }
        desk.empty("a.service");
        let view = desk.view("a.service");
        assert_eq!(
            (view.sub, view.result),
            ("auto-restart", ServiceResult::OomKill),
            "exit first: {exit_first}"
        );
    }
}

#[test]
fn with_oom_policy_continue_the_loss_of_a_helper_stops_nothing() {
    let cases = [
        (Some(OomPolicy::Continue), false, "running"),
        (Some(OomPolicy::Stop), false, "stop-sigterm"),
        (Some(OomPolicy::Stop), true, "stop-sigterm"),
        (None, false, "stop-sigterm"),
        // What is killed below a delegated cgroup may be none of the service's own.
        (None, true, "running"),
    ];
    for (policy, delegate, sub) in cases {
        let mut desk = Desk::new([service("a.service", |s| {
            s.resources.oom_policy = policy;
            s.resources.delegate = delegate;
        })]);
        desk.run("a.service");
        let run = desk.last_spawn("a.service").run;
        desk.event(Event::OomKilled { run });
        assert_eq!(desk.sub("a.service"), sub, "{policy:?} {delegate}");
    }
}
