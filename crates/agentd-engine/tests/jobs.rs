//! Jobs as people give them: what a stop ends, what a reload falls back to, what a shutdown waits for, and that all
//! restarts go one way.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod desk;

use agentd_engine::{
    ActiveState, Effect, Event, JobKind, JobMode, JobResult, KillWhom, Request, ServiceResult, ShutdownKind,
};
use agentd_unit::{Restart, ServiceSection, ServiceType, Signal};
use desk::*;

/// Whatever is asked for from now on is carried out at once: commands that are asked to end do, and all is empty.
fn obey(desk: &mut Desk) {
    loop {
        let news = desk.news();
        if news.is_empty() {
            return;
        }
        for effect in news {
            match effect {
                Effect::Kill { .. } | Effect::KillAll { .. } => {
                    let spawn = desk.last_spawn("a.service");
                    desk.event(Event::Exited { id: spawn.id, run: spawn.run, status: TERMINATED });
                    if let Some(main) = desk.main_of(spawn.run) {
                        desk.event(Event::Exited { id: main, run: spawn.run, status: TERMINATED });
                    }
                }
                Effect::AwaitEmpty { id, run } => desk.event(Event::Emptied { id, run }),
                _ => {}
            }
        }
    }
}

/// A service with a command of each kind but ExecStop and ExecStopPost.
fn full(s: &mut ServiceSection) {
    s.life.exec_condition = vec![command("/bin/condition")];
    s.exec_start_pre = vec![command("/bin/pre")];
    s.exec_start_post = vec![command("/bin/post")];
    s.exec_reload = vec![command("/bin/reload")];
    s.restart = Restart::Always;
    s.restart_sec = secs(5);
}

/// Brings the service of [`full`] to a state of its life.
fn bring_to(desk: &mut Desk, sub: &str) {
    for (next, leaves) in [("condition", true), ("start-pre", true), ("start-post", true), ("running", false)]
    {
        if desk.sub("a.service") == sub {
            return;
        }
        desk.up("a.service");
        if leaves {
            let before = desk.sub("a.service");
            desk.exit("a.service", CLEAN);
            assert_ne!(desk.sub("a.service"), before, "{next}");
        }
        if next == "start-pre" {
            if sub == "start" {
                return;
            }
            desk.up("a.service");
        }
    }
    match sub {
        "reload" => {
            desk.job(JobKind::Reload, "a.service", JobMode::Replace);
            desk.up("a.service");
        }
        "auto-restart" => desk.die("a.service", DIRTY),
        "stop-watchdog" => desk.advance(secs(30)),
        _ => {}
    }
}

#[test]
fn a_stop_ends_a_service_from_every_state_and_nothing_follows() {
    for sub in [
        "condition",
        "start-pre",
        "start",
        "start-post",
        "running",
        "reload",
        "auto-restart",
        "stop-watchdog",
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            full(s);
            s.watchdog = (sub == "stop-watchdog").then(|| secs(30));
        })]);
        let start = desk.start("a.service");
        bring_to(&mut desk, sub);
        assert_eq!(desk.sub("a.service"), sub);
        let waits = desk.result(start).is_none();
        desk.news();
        let stop = desk.stop("a.service");
        if waits {
            assert_eq!(desk.result(start), Some(JobResult::Canceled), "{sub}");
        }
        if sub == "stop-watchdog" {
            desk.die("a.service", KILLED); // It was told to abort before.
        }
        obey(&mut desk);
        assert_eq!(desk.result(stop), Some(JobResult::Done), "{sub}");
        desk.advance(secs(60));
        let view = desk.view("a.service");
        assert!(matches!(view.active, ActiveState::Inactive | ActiveState::Failed), "{sub}: {}", view.sub);
        assert_eq!((view.job, desk.manager.deadlines().monotonic), (None, None), "{sub}");
    }
}

#[test]
fn reload_or_restart_reloads_what_can_and_restarts_or_starts_the_rest() {
    for (case, can, is_up, sub, kind) in [
        ("it can", true, true, "reload", "a ExecReload 0"),
        ("it cannot", false, true, "stop-sigterm", ""),
        ("it is down", true, false, "start", "a ExecStart 0"),
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.exec_reload = if can { vec![command("/bin/reload")] } else { Vec::new() };
        })]);
        if is_up {
            desk.run("a.service");
        }
        desk.news();
        let job = desk.job(JobKind::ReloadOrRestart, "a.service", JobMode::Replace);
        assert_eq!((desk.sub("a.service"), desk.spawned_since().join(" ").as_str()), (sub, kind), "{case}");
        if sub == "stop-sigterm" {
            desk.die("a.service", TERMINATED);
        }
        desk.up("a.service");
        if sub == "reload" {
            desk.exit("a.service", CLEAN);
        }
        assert_eq!((desk.result(job), desk.sub("a.service")), (Some(JobResult::Done), "running"), "{case}");
    }
}

/// The process has ended by itself before the signal reaches it: nothing answers to the signal, and the stop goes on.
#[test]
fn b014_a_stop_of_what_has_just_died_goes_to_its_end_and_lets_the_run_go() {
    for (case, remains) in
        [("its end is heard after the stop", false), ("before it, and a helper lives", true)]
    {
        let mut desk = Desk::new([service("a.service", |s| s.exec_stop_post = vec![command("/bin/post")])]);
        desk.run("a.service");
        let run = desk.last_spawn("a.service").run;
        if remains {
            desk.exit_main("a.service", CLEAN);
        }
        let stop = desk.stop("a.service");
        if !remains {
            desk.exit_main("a.service", CLEAN);
        }
        desk.empty("a.service");
        desk.up("a.service");
        desk.exit("a.service", CLEAN);
        desk.empty("a.service");
        assert_eq!((desk.sub("a.service"), desk.result(stop)), ("dead", Some(JobResult::Done)), "{case}");
        let released = |effect: &&Effect| matches!(effect, Effect::Release { run: r } if *r == run);
        assert_eq!(desk.effects.iter().filter(released).count(), 1, "{case}");
        assert_eq!(desk.manager.deadlines().monotonic, None, "{case}");
    }
}

fn ends(desk: &Desk) -> usize {
    desk.effects.iter().filter(|effect| matches!(effect, Effect::Shutdown { .. })).count()
}

#[test]
fn b037_b040_everything_has_ended_when_the_last_process_has_and_no_grace_is_spent() {
    let patient = |own: &str| service(own, |s| s.timeout_stop = Some(secs(60)));
    let mut desk = Desk::new([patient("a.service"), patient("b.service")]);
    desk.run("a.service");
    desk.run("b.service");
    desk.request(Request::Shutdown { kind: ShutdownKind::Exit(0) });
    desk.die("a.service", TERMINATED);
    assert_eq!(ends(&desk), 0);
    desk.die("b.service", TERMINATED);
    assert_eq!((ends(&desk), desk.manager.deadlines().monotonic), (1, None));
}

#[test]
fn b039_who_ignores_the_signal_is_killed_after_its_own_timeout_and_everything_ends() {
    let mut desk = Desk::new([service("a.service", |s| s.timeout_stop = Some(secs(3)))]);
    desk.run("a.service");
    desk.request(Request::Shutdown { kind: ShutdownKind::Exit(0) });
    desk.advance(millis(2999));
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.advance(millis(1));
    assert_eq!((desk.sub("a.service"), ends(&desk)), ("stop-sigkill", 0));
    desk.die("a.service", KILLED);
    assert_eq!((desk.view("a.service").result, ends(&desk)), (ServiceResult::Timeout, 1));
}

/// Whether a watchdog, a signal by hand, the start's timeout or the program itself ends a life: the next one waits its
/// delay, is counted, and the start limit holds.
#[test]
fn b060_every_restart_keeps_its_delay_and_is_counted_whatever_it_comes_from() {
    for cause in ["watchdog", "a signal by hand", "the timeout of the start", "its own end"] {
        let mut desk = Desk::new([unit("a.service", |u| {
            u.unit.start_limit_burst = 2;
            u.unit.start_limit_interval = secs(600);
            let s = section(u);
            s.restart = Restart::OnFailure;
            s.restart_sec = secs(5);
            s.watchdog = (cause == "watchdog").then(|| secs(30));
            if cause == "the timeout of the start" {
                s.service_type = ServiceType::Notify;
                s.timeout_start = Some(secs(2));
            }
        })]);
        desk.start("a.service");
        for lives in 1..=3 {
            desk.up("a.service");
            match cause {
                "watchdog" => desk.advance(secs(30)),
                "the timeout of the start" => desk.advance(secs(2)),
                "a signal by hand" => {
                    let (unit, whom) = (name("a.service"), KillWhom::Main);
                    desk.request(Request::Kill { unit, whom, signal: Signal::KILL });
                }
                _ => {}
            }
            desk.die("a.service", KILLED);
            let view = desk.view("a.service");
            if lives == 3 {
                assert_eq!((view.sub, view.result), ("failed", ServiceResult::StartLimitHit), "{cause}");
                break;
            }
            assert_eq!((view.sub, view.n_restarts), ("auto-restart", lives - 1), "{cause}");
            desk.advance(millis(4999));
            assert_eq!(desk.spawns("a.service").len(), lives as usize, "{cause}: the delay is kept");
            desk.advance(millis(1));
            assert_eq!(desk.spawns("a.service").len(), lives as usize + 1, "{cause}");
        }
    }
}
