//! The lives of single services.

mod desk;

use agentd_engine::{
    ActiveState, Effect, Event, ExitStatus, JobKind, JobMode, JobResult, KillTarget, Notification,
    RequestError, Sender, ServiceResult, SpawnFailureKind,
};
use agentd_unit::{KillMode, NotifyAccess, Restart, ServiceSection, ServiceType, Signal};
use desk::*;

#[test]
fn a_simple_service_is_up_when_its_process_is_there_and_down_when_nothing_is_left() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    let start = desk.start("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(start)), ("start", None));
    desk.up("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(start)), ("running", Some(JobResult::Done)));

    let stop = desk.stop("a.service");
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.exit_main("a.service", TERMINATED);
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("stop-sigterm", None));
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("dead", Some(JobResult::Done)));
    assert!(matches!(desk.effects.iter().filter(|e| matches!(e, Effect::Release { .. })).count(), 1));
}

#[test]
fn b012_main_exit_and_empty_cgroup_end_a_stop_in_either_order() {
    for empty_first in [false, true] {
        let mut desk = Desk::new([unit("a.service", |_| {})]);
        desk.run("a.service");
        desk.stop("a.service");
        if empty_first {
            desk.empty("a.service");
            desk.exit_main("a.service", CLEAN);
        } else {
            desk.exit_main("a.service", CLEAN);
            desk.empty("a.service");
        }
        assert_eq!(desk.sub("a.service"), "dead", "empty first: {empty_first}");
        let exec = desk.view("a.service").exec_main.unwrap();
        assert_eq!(exec.status, Some(CLEAN), "empty first: {empty_first}");
    }
}

fn typed(service_type: ServiceType) -> impl FnOnce(&mut ServiceSection) {
    move |s| {
        s.service_type = service_type;
        s.notify_access = NotifyAccess::Main;
    }
}

#[test]
fn when_a_service_counts_as_started_depends_on_its_type() {
    for (service_type, at_exec, at_ready) in [
        (ServiceType::Simple, "running", "running"),
        (ServiceType::Exec, "running", "running"),
        (ServiceType::Notify, "start", "running"),
        (ServiceType::Oneshot, "start", "start"),
    ] {
        let mut desk = Desk::new([service("a.service", typed(service_type))]);
        desk.start("a.service");
        assert_eq!(desk.sub("a.service"), "start", "{service_type:?}");
        desk.up("a.service");
        assert_eq!(desk.sub("a.service"), at_exec, "{service_type:?}");
        desk.ready("a.service");
        assert_eq!(desk.sub("a.service"), at_ready, "{service_type:?}");
    }
}

#[test]
fn the_commands_of_a_life_run_one_after_the_other() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.exec_start_pre = vec![command("/bin/pre1"), command("/bin/pre2")];
        s.exec_start_post = vec![command("/bin/post")];
        s.exec_stop = vec![command("/bin/stop")];
        s.exec_stop_post = vec![command("/bin/after")];
    })]);
    let start = desk.start("a.service");
    let mut seen = desk.spawned_since();
    for sub in ["start-pre", "start-pre"] {
        assert_eq!(desk.sub("a.service"), sub);
        desk.up("a.service");
        desk.exit("a.service", CLEAN);
        seen.extend(desk.spawned_since());
    }
    desk.up("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(start)), ("start-post", None));
    seen.extend(desk.spawned_since());
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!((desk.sub("a.service"), desk.result(start)), ("running", Some(JobResult::Done)));
    desk.stop("a.service");
    assert_eq!(desk.sub("a.service"), "stop");
    seen.extend(desk.spawned_since());
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.sub("a.service"), "stop-post");
    seen.extend(desk.spawned_since());
    let environment = desk.last_spawn("a.service").environment;
    assert_eq!(environment.exit_status, Some(TERMINATED));
    assert_eq!(environment.service_result, Some(ServiceResult::Success));
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "dead");
    assert_eq!(
        seen,
        [
            "a ExecStartPre 0",
            "a ExecStartPre 1",
            "a ExecStart 0",
            "a ExecStartPost 0",
            "a ExecStop 0",
            "a ExecStopPost 0"
        ]
    );
}

#[test]
fn a_failing_command_fails_the_start_unless_its_failure_is_ignored() {
    for (ignored, sub) in [(false, "stop-sigterm"), (true, "start")] {
        let mut desk = Desk::new([service("a.service", |s| {
            let mut pre = command("/bin/pre");
            pre.ignore_failure = ignored;
            s.exec_start_pre = vec![pre];
        })]);
        desk.start("a.service");
        desk.up("a.service");
        desk.exit("a.service", DIRTY);
        assert_eq!(desk.sub("a.service"), sub, "ignored: {ignored}");
    }
}

#[test]
fn the_end_of_the_main_process_decides_the_result() {
    let pipe = Signal::from_number(13).unwrap();
    let segv = Signal::from_number(11).unwrap();
    for (status, result, sub) in [
        (CLEAN, ServiceResult::Success, "dead"),
        (DIRTY, ServiceResult::ExitCode, "failed"),
        (TERMINATED, ServiceResult::Success, "dead"),
        (ExitStatus::Killed(pipe), ServiceResult::Success, "dead"),
        (KILLED, ServiceResult::Signal, "failed"),
        (ExitStatus::Dumped(segv), ServiceResult::CoreDump, "failed"),
    ] {
        let mut desk = Desk::new([unit("a.service", |_| {})]);
        desk.run("a.service");
        desk.die("a.service", status);
        let view = desk.view("a.service");
        assert_eq!((view.result, view.sub), (result, sub), "{status}");
        assert_eq!(view.exec_main.unwrap().status, Some(status));
    }
}

#[test]
fn what_was_not_executed_is_told_by_kind() {
    for (kind, result, status, restarts) in [
        (
            SpawnFailureKind::Step { exit_status: 203 },
            ServiceResult::ExitCode,
            Some(ExitStatus::Exited(203)),
            true,
        ),
        (SpawnFailureKind::Trust, ServiceResult::Trust, None, false),
        (SpawnFailureKind::Resources, ServiceResult::Resources, None, true),
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.restart = Restart::Always;
            s.restart_sec = millis(0);
        })]);
        let start = desk.start("a.service");
        desk.fail_spawn("a.service", kind);
        desk.empty("a.service");
        assert_eq!(desk.result(start), Some(JobResult::Failed), "{kind:?}");
        let view = desk.view("a.service");
        assert_eq!(view.result, result, "{kind:?}");
        assert_eq!(view.exec_main.and_then(|exec| exec.status), status, "{kind:?}");
        assert_eq!(view.sub, if restarts { "auto-restart" } else { "failed" }, "{kind:?}");
        // B056: never faster than ten times a second.
        assert_eq!(view.restart_delay, restarts.then(|| millis(100)), "{kind:?}");
        assert_eq!(view.failure.as_deref(), Some("/bin/agent: no such file (ENOENT)"));
    }
}

#[test]
fn b030_a_service_that_ignores_the_stop_is_killed_after_its_timeout_and_down_only_when_empty() {
    let mut desk = Desk::new([service("a.service", |s| s.timeout_stop = Some(secs(2)))]);
    desk.run("a.service");
    let stop = desk.stop("a.service");
    desk.advance(millis(1999));
    assert_eq!(desk.view("a.service").active, ActiveState::Deactivating);
    desk.advance(millis(1));
    assert_eq!(desk.sub("a.service"), "stop-sigkill");
    assert!(desk.effects.iter().any(|effect| matches!(effect, Effect::KillAll { .. })));
    desk.exit_main("a.service", KILLED);
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("stop-sigkill", None));
    desk.empty("a.service");
    assert_eq!(desk.view("a.service").result, ServiceResult::Timeout);
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("failed", Some(JobResult::Done)));
}

#[test]
fn what_even_sigkill_does_not_end_holds_up_nobody_who_waits() {
    let mut desk = Desk::new([service("a.service", |s| s.timeout_stop = Some(secs(1)))]);
    desk.run("a.service");
    let stop = desk.stop("a.service");
    desk.advance(secs(2));
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("stop-sigkill", Some(JobResult::Timeout)));
    let asked = |desk: &Desk| desk.effects.iter().filter(|e| matches!(e, Effect::AwaitEmpty { .. })).count();
    let before = asked(&desk);
    desk.advance(secs(3));
    assert_eq!(asked(&desk), before + 3, "asked for again, once a patience");
    assert_eq!(desk.logs("still around after SIGKILL"), 1);
    desk.die("a.service", KILLED);
    assert_eq!(desk.sub("a.service"), "failed");
}

#[test]
fn an_end_that_nobody_tells_is_known_from_the_empty_cgroup() {
    let mut desk = Desk::new([service("a.service", |s| s.timeout_stop = Some(secs(1)))]);
    desk.run("a.service");
    let stop = desk.stop("a.service");
    desk.empty("a.service");
    desk.advance(secs(1));
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("stop-sigkill", None));
    desk.advance(secs(1));
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("failed", Some(JobResult::Done)));
    assert_eq!(desk.logs("The end of its processes was never told."), 1);
}

#[test]
fn kill_mode_says_who_gets_the_signals() {
    let main = KillTarget::Process(agentd_engine::EffectId(1));
    for (mode, asked) in [
        (KillMode::ControlGroup, Some(KillTarget::All)),
        (KillMode::Mixed, Some(main)),
        (KillMode::Process, Some(main)),
        (KillMode::None, None),
    ] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.kill_mode = mode;
            s.kill_signal = Signal::INT;
        })]);
        desk.run("a.service");
        desk.news();
        desk.stop("a.service");
        let signals: Vec<_> = desk
            .news()
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Kill { target, signal, cont, .. } => Some((target, signal, cont)),
                _ => None,
            })
            .collect();
        assert_eq!(
            signals,
            asked.map(|target| (target, Signal::INT, true)).into_iter().collect::<Vec<_>>(),
            "{mode:?}"
        );
    }
}

#[test]
fn mixed_kills_the_rest_as_soon_as_the_main_process_is_gone() {
    let mut desk = Desk::new([service("a.service", |s| s.kill_mode = KillMode::Mixed)]);
    desk.run("a.service");
    desk.stop("a.service");
    desk.exit_main("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "stop-sigkill");
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("dead", ServiceResult::Success));
}

#[test]
fn b020_what_kill_mode_left_alive_is_gone_before_the_next_life_begins() {
    let mut desk = Desk::new([service("a.service", |s| s.kill_mode = KillMode::Process)]);
    desk.run("a.service");
    let old = desk.last_spawn("a.service").run;
    desk.stop("a.service");
    desk.exit_main("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "dead");
    assert_eq!(desk.manager.unit_of_run(old).map(|unit| unit.as_str()), Some("a.service"));
    desk.news();
    desk.start("a.service");
    let news = desk.news();
    assert!(news.iter().any(|effect| *effect == Effect::KillAll { run: old }));
    assert!(!news.iter().any(|effect| matches!(effect, Effect::Spawn(_))));
    desk.empty("a.service");
    assert_eq!(desk.spawned_since(), ["a ExecStart 0"]);
    assert_eq!(desk.manager.unit_of_run(old), None);
}

#[test]
fn news_of_an_earlier_run_changes_nothing() {
    let mut desk = Desk::new([service("a.service", |s| s.restart = Restart::Always)]);
    desk.run("a.service");
    let old = desk.last_spawn("a.service");
    desk.die("a.service", KILLED);
    desk.advance(millis(100));
    desk.up("a.service");
    desk.news();
    desk.event(Event::Exited { id: old.id, run: old.run, status: KILLED });
    desk.event(Event::OomKilled { run: old.run });
    assert_eq!((desk.news(), desk.sub("a.service")), (vec![], "running"));
}

#[test]
fn a_stop_while_the_command_is_being_executed_is_heard_by_it() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    desk.start("a.service");
    desk.stop("a.service");
    desk.news();
    desk.up("a.service");
    let spawn = desk.last_spawn("a.service");
    let told = Effect::Kill {
        run: spawn.run,
        target: KillTarget::Process(spawn.id),
        signal: Signal::TERM,
        cont: true,
    };
    assert_eq!(desk.news(), [told]);
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn emptiness_found_before_a_late_command_was_known_is_asked_for_again() {
    let mut desk = Desk::new([unit("a.service", |_| {})]);
    desk.start("a.service");
    desk.stop("a.service");
    desk.empty("a.service");
    desk.up("a.service");
    desk.exit_main("a.service", TERMINATED);
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn a_start_that_takes_too_long_is_a_timeout() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.service_type = ServiceType::Notify;
        s.notify_access = NotifyAccess::Main;
        s.timeout_start = Some(secs(3));
    })]);
    let start = desk.start("a.service");
    desk.up("a.service");
    desk.advance(secs(3));
    desk.die("a.service", TERMINATED);
    assert_eq!(
        (desk.result(start), desk.view("a.service").result),
        (Some(JobResult::Failed), ServiceResult::Timeout)
    );
}

#[test]
fn a_service_can_ask_for_more_time() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.service_type = ServiceType::Notify;
        s.notify_access = NotifyAccess::Main;
        s.timeout_start = Some(secs(3));
    })]);
    desk.start("a.service");
    desk.up("a.service");
    desk.advance(secs(2));
    desk.notify("a.service", Notification { extend_timeout: Some(secs(5)), ..Notification::default() });
    desk.advance(millis(4900));
    assert_eq!(desk.sub("a.service"), "start");
    desk.advance(millis(100));
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
}

#[test]
fn a_notify_service_that_ends_before_it_is_ready_broke_the_protocol() {
    let mut desk = Desk::new([service("a.service", typed(ServiceType::Notify))]);
    desk.start("a.service");
    desk.up("a.service");
    desk.die("a.service", CLEAN);
    assert_eq!(desk.view("a.service").result, ServiceResult::Protocol);
}

#[test]
fn notify_access_says_whose_word_counts() {
    let other = Sender::Other { pid: 4242 };
    for (access, from_main, from_other) in [
        (NotifyAccess::None, "start", "start"),
        (NotifyAccess::Main, "running", "start"),
        (NotifyAccess::Exec, "running", "start"),
        (NotifyAccess::All, "running", "running"),
    ] {
        for (sender, sub) in [(None, from_main), (Some(other), from_other)] {
            let mut desk = Desk::new([service("a.service", |s| {
                s.service_type = ServiceType::Notify;
                s.notify_access = access;
            })]);
            desk.start("a.service");
            desk.up("a.service");
            let spawn = desk.last_spawn("a.service");
            let notification = Notification { ready: true, ..Notification::default() };
            let sender = sender.unwrap_or(Sender::Process(spawn.id));
            desk.event(Event::Notified { run: spawn.run, sender, notification });
            assert_eq!(desk.sub("a.service"), sub, "{access:?} {sender:?}");
        }
    }
}

#[test]
fn a_oneshot_runs_its_commands_in_order_and_stays_up_if_told_so() {
    for (remain, sub) in [(true, "exited"), (false, "stop-sigterm")] {
        let mut desk = Desk::new([service("a.service", |s| {
            s.service_type = ServiceType::Oneshot;
            s.exec_start = vec![command("/bin/one"), command("/bin/two")];
            s.remain_after_exit = remain;
        })]);
        let start = desk.start("a.service");
        for _ in 0..2 {
            desk.up("a.service");
            desk.exit("a.service", CLEAN);
        }
        assert_eq!(desk.sub("a.service"), sub);
        assert_eq!(desk.spawned_since(), ["a ExecStart 0", "a ExecStart 1"]);
        if !remain {
            desk.empty("a.service");
        }
        assert_eq!(desk.result(start), Some(JobResult::Done));
    }
}

#[test]
fn a_oneshot_that_hangs_is_bounded_by_its_runtime_too() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.service_type = ServiceType::Oneshot;
        s.timeout_start = None;
        s.runtime_max = Some(secs(30));
    })]);
    desk.start("a.service");
    desk.up("a.service");
    desk.advance(secs(30));
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
}

#[test]
fn a_service_that_runs_too_long_is_stopped() {
    let mut desk = Desk::new([service("a.service", |s| s.runtime_max = Some(secs(5)))]);
    desk.run("a.service");
    desk.advance(secs(5));
    desk.die("a.service", TERMINATED);
    assert_eq!(desk.view("a.service").result, ServiceResult::Timeout);
}

#[test]
fn a_hung_service_is_aborted_then_killed_and_brought_back() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.watchdog = Some(secs(1));
        s.notify_access = NotifyAccess::Main;
        s.timeout_stop = Some(secs(2));
        s.restart = Restart::OnWatchdog;
    })]);
    desk.run("a.service");
    assert_eq!(desk.last_spawn("a.service").environment.watchdog, Some(secs(1)));
    desk.advance(millis(900));
    desk.notify("a.service", Notification { alive: true, ..Notification::default() });
    desk.advance(millis(999));
    assert_eq!(desk.sub("a.service"), "running");
    desk.advance(millis(1));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
    desk.advance(secs(2));
    assert_eq!(desk.sub("a.service"), "stop-sigkill");
    desk.die("a.service", KILLED);
    assert_eq!(
        (desk.sub("a.service"), desk.view("a.service").result),
        ("auto-restart", ServiceResult::Watchdog)
    );
}

#[test]
fn b075_a_manager_that_was_late_itself_waits_one_span_more_and_no_longer() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.watchdog = Some(secs(1));
        s.notify_access = NotifyAccess::Main;
    })]);
    desk.run("a.service");
    desk.skip(secs(5));
    desk.event(Event::Tick);
    assert_eq!(desk.sub("a.service"), "running");
    desk.advance(secs(1));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
}

#[test]
fn a_watchdog_span_of_the_service_s_own_counts_from_when_it_is_ready() {
    let mut desk = Desk::new([service("a.service", typed(ServiceType::Notify))]);
    desk.start("a.service");
    desk.up("a.service");
    desk.notify("a.service", Notification { watchdog: Some(secs(2)), ..Notification::default() });
    desk.advance(secs(5));
    desk.ready("a.service");
    desk.advance(millis(1999));
    assert_eq!(desk.sub("a.service"), "running");
    desk.advance(millis(1));
    assert_eq!(desk.sub("a.service"), "stop-watchdog");
}

#[test]
fn a_reload_runs_beside_the_main_process_and_never_takes_it_down() {
    for (status, result) in [(CLEAN, JobResult::Done), (DIRTY, JobResult::Failed)] {
        let mut desk = Desk::new([service("a.service", |s| s.exec_reload = vec![command("/bin/reload")])]);
        desk.run("a.service");
        let main_pid = desk.view("a.service").main.unwrap().1;
        let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
        assert_eq!(desk.sub("a.service"), "reload");
        assert_eq!(desk.last_spawn("a.service").environment.main_pid, Some(main_pid));
        desk.up("a.service");
        desk.exit("a.service", status);
        assert_eq!((desk.sub("a.service"), desk.result(reload)), ("running", Some(result)), "{status}");
    }
}

#[test]
fn a_reload_that_cannot_be_is_refused_with_the_reason() {
    let mut desk = Desk::new([
        unit("a.service", |_| {}),
        service("b.service", |s| s.exec_reload = vec![command("/bin/reload")]),
    ]);
    desk.run("a.service");
    for (unit, why) in [("a.service", "it has no ExecReload"), ("b.service", "it is not active")] {
        let reload = desk.job(JobKind::Reload, unit, JobMode::Replace);
        assert_eq!(desk.refusal(reload), Some(RequestError::NotApplicable(name(unit), why)));
    }
}

#[test]
fn a_reload_that_hangs_is_killed_and_the_service_stays_up() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.exec_reload = vec![command("/bin/reload")];
        s.timeout_start = Some(secs(1));
    })]);
    desk.run("a.service");
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    desk.up("a.service");
    desk.advance(secs(1));
    desk.exit("a.service", KILLED);
    assert_eq!((desk.sub("a.service"), desk.result(reload)), ("running", Some(JobResult::Failed)));
}

#[test]
fn a_service_may_say_itself_that_it_stops() {
    let mut desk = Desk::new([service("a.service", typed(ServiceType::Notify))]);
    desk.start("a.service");
    desk.up("a.service");
    desk.ready("a.service");
    desk.notify("a.service", Notification { stopping: true, ..Notification::default() });
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    assert!(!desk.effects.iter().any(|effect| matches!(effect, Effect::Kill { .. })));
    desk.die("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "dead");
}
