//! How lives end: timeouts that abort or kill, chance in RuntimeMaxSec, services that live by their cgroup, failures that
//! are forgotten.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod desk;

use agentd_engine::{ActiveState, Config, Effect, JobResult, KillTarget, ServiceResult};
use agentd_unit::sections::{CollectMode, ExitType, TimeoutMode};
use agentd_unit::{KillMode, Restart, ServiceSection, ServiceType, Signal, Unit};
use desk::*;

/// The signals that were sent since the last look; SIGKILL for a kill of all at once.
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

fn slow(change: impl FnOnce(&mut ServiceSection)) -> Unit {
    service("a.service", |s| {
        s.service_type = ServiceType::Notify;
        s.timeout_start = Some(secs(2));
        s.timeout_stop = Some(secs(3));
        s.life.timeout_abort = Some(Some(secs(5)));
        change(s);
    })
}

#[test]
fn a_start_that_takes_too_long_is_ended_as_its_failure_mode_says() {
    use TimeoutMode as M;
    for (mode, signal, sub, patience) in [
        (M::Terminate, Signal::TERM, "stop-sigterm", 3),
        (M::Abort, Signal::ABRT, "stop-watchdog", 5),
        (M::Kill, Signal::KILL, "stop-sigkill", 3),
    ] {
        let mut desk = Desk::new([slow(|s| s.life.timeout_start_mode = mode)]);
        desk.start("a.service");
        desk.up("a.service");
        desk.news();
        desk.advance(secs(2));
        assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, signal)], sub), "{mode:?}");
        desk.advance(secs(patience) - millis(1));
        assert_eq!(desk.sub("a.service"), sub, "{mode:?}: it has its time");
        desk.advance(millis(1));
        assert_eq!(desk.sub("a.service"), "stop-sigkill", "{mode:?}");
        desk.die("a.service", KILLED);
        assert_eq!(
            (desk.sub("a.service"), desk.view("a.service").result),
            ("failed", ServiceResult::Timeout)
        );
    }
}

#[test]
fn what_ignores_the_stop_is_aborted_once_and_then_killed() {
    let mut desk = Desk::new([slow(|s| {
        s.service_type = ServiceType::Simple;
        s.life.timeout_stop_mode = TimeoutMode::Abort;
        s.life.watchdog_signal = Some(quit());
    })]);
    desk.run("a.service");
    desk.stop("a.service");
    assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, Signal::TERM)], "stop-sigterm"));
    desk.advance(secs(3));
    assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, quit())], "stop-watchdog"));
    desk.exit_main("a.service", TERMINATED);
    assert_eq!(
        (sent(&mut desk), desk.sub("a.service")),
        (vec![(true, Signal::TERM)], "stop-sigterm"),
        "the rest"
    );
    desk.advance(secs(3));
    assert_eq!((sent(&mut desk), desk.sub("a.service")), (vec![(true, Signal::KILL)], "stop-sigkill"));
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("failed", ServiceResult::Timeout));
}

#[test]
fn a_stop_command_that_takes_too_long_is_ended_as_its_failure_mode_says() {
    use TimeoutMode as M;
    for (post, mode, sub) in [
        (false, M::Terminate, "stop-sigterm"),
        (false, M::Abort, "stop-watchdog"),
        (false, M::Kill, "stop-sigkill"),
        (true, M::Terminate, "final-sigterm"),
        (true, M::Abort, "final-watchdog"),
        (true, M::Kill, "final-sigkill"),
    ] {
        let mut desk = Desk::new([slow(|s| {
            s.service_type = ServiceType::Simple;
            s.life.timeout_stop_mode = mode;
            *(if post { &mut s.exec_stop_post } else { &mut s.exec_stop }) = vec![command("/bin/slow")];
        })]);
        desk.run("a.service");
        desk.stop("a.service");
        if post {
            desk.die("a.service", TERMINATED);
        }
        desk.up("a.service");
        desk.advance(secs(3));
        assert_eq!(desk.sub("a.service"), sub, "{mode:?}");
    }
}

#[test]
fn nobody_is_aborted_where_kill_mode_asks_nobody_and_without_sigkill_nobody_is_killed() {
    for (kill_mode, send, sub) in [
        (KillMode::None, None, "stop-watchdog"),
        (KillMode::Process, None, "stop-watchdog"),
        (KillMode::ControlGroup, Some(false), "failed"),
    ] {
        let mut desk = Desk::new([slow(|s| {
            s.kill_mode = kill_mode;
            s.life.send_sigkill = send;
            s.life.timeout_start_mode = if send.is_some() { TimeoutMode::Kill } else { TimeoutMode::Abort };
        })]);
        desk.start("a.service");
        desk.up("a.service");
        desk.news();
        desk.advance(secs(2));
        let expected = if kill_mode == KillMode::Process { vec![(false, Signal::ABRT)] } else { vec![] };
        assert_eq!(sent(&mut desk), expected, "{kill_mode:?}");
        let left = if kill_mode == KillMode::None { "failed" } else { sub };
        assert_eq!(desk.sub("a.service"), left, "{kill_mode:?}");
    }
}

#[test]
fn chance_adds_to_runtime_max_sec_no_more_than_its_bound_and_not_always_the_same() {
    let mut ends = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let config = Config { seed: [seed; 16], ..Config::default() };
        let unit = service("a.service", |s| {
            s.runtime_max = Some(secs(10));
            s.life.runtime_extra = secs(5);
        });
        let mut desk = Desk::with(config, [unit]);
        desk.run("a.service");
        let until = desk.view("a.service").deadline.unwrap() - desk.now.monotonic;
        assert!(until >= secs(10) && until <= secs(15), "{until:?}");
        desk.advance(until - millis(1));
        assert_eq!(desk.sub("a.service"), "running");
        desk.advance(millis(1));
        assert_eq!(desk.sub("a.service"), "stop-sigterm");
        ends.insert(until);
    }
    assert!(ends.len() > 15, "{ends:?}");
}

#[test]
fn a_reload_does_not_draw_the_time_that_is_left_anew() {
    let mut desk = Desk::new([service("a.service", |s| {
        s.runtime_max = Some(secs(10));
        s.life.runtime_extra = secs(100);
        s.exec_reload = vec![command("/bin/reload")];
    })]);
    desk.run("a.service");
    let until = desk.view("a.service").deadline;
    desk.job(agentd_engine::JobKind::Reload, "a.service", agentd_engine::JobMode::Replace);
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!((desk.sub("a.service"), desk.view("a.service").deadline), ("running", until));
}

fn by_group(change: impl FnOnce(&mut ServiceSection)) -> Unit {
    service("a.service", |s| {
        s.life.exit_type = ExitType::Cgroup;
        change(s);
    })
}

#[test]
fn a_service_that_lives_by_its_cgroup_ends_with_its_last_process_and_as_the_main_one_did() {
    for (status, sub, result) in
        [(CLEAN, "dead", ServiceResult::Success), (DIRTY, "failed", ServiceResult::ExitCode)]
    {
        let mut desk = Desk::new([by_group(|_| {})]);
        desk.run("a.service");
        desk.exit_main("a.service", status);
        let view = desk.view("a.service");
        assert_eq!((view.sub, view.active, view.main), ("running", ActiveState::Active, None));
        desk.advance(secs(1000));
        assert_eq!(desk.sub("a.service"), "running");
        desk.empty("a.service");
        assert_eq!((desk.sub("a.service"), desk.view("a.service").result), (sub, result));
    }
}

#[test]
fn a_service_that_lives_by_its_cgroup_is_restarted_after_its_last_process_and_stops_as_any() {
    let mut desk = Desk::new([by_group(|s| {
        s.restart = Restart::Always;
        s.restart_sec = secs(5);
    })]);
    desk.run("a.service");
    desk.exit_main("a.service", CLEAN);
    desk.advance(secs(60));
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "auto-restart");
    desk.advance(secs(5) - millis(1));
    assert_eq!(desk.spawns("a.service").len(), 1, "the delay counts from the end of the last one");
    desk.advance(millis(1));
    desk.up("a.service");
    desk.exit_main("a.service", CLEAN);
    let stop = desk.stop("a.service");
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("dead", Some(JobResult::Done)));
}

#[test]
fn a_service_that_lives_by_its_cgroup_is_up_when_its_program_has_ended_at_once_and_stays_so_over_a_reload() {
    let mut desk = Desk::new([by_group(|s| {
        s.exec_start_post = vec![command("/bin/post")];
        s.exec_reload = vec![command("/bin/reload")];
    })]);
    desk.start("a.service");
    desk.up("a.service");
    desk.exit_main("a.service", CLEAN);
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "running");
    desk.job(agentd_engine::JobKind::Reload, "a.service", agentd_engine::JobMode::Replace);
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "running");
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn another_manager_goes_on_with_a_service_that_has_outlived_its_main_process() {
    let mut desk = Desk::new([by_group(|_| {})]);
    desk.run("a.service");
    desk.exit_main("a.service", CLEAN);
    let mut effects = Vec::new();
    desk.manager.keep_all(&mut effects);
    desk.effects.extend(effects);
    let heir = desk.heir([by_group(|_| {})]);
    assert_eq!(heir.sub("a.service"), "running");
    assert!(heir.effects.iter().any(|effect| matches!(effect, Effect::AwaitEmpty { .. })));
}

fn collected(change: impl FnOnce(&mut Unit)) -> Unit {
    unit("a.service", |u| {
        u.unit.system.collect_mode = CollectMode::InactiveOrFailed;
        change(u);
    })
}

#[test]
fn a_failure_is_forgotten_after_all_that_follows_from_it() {
    let mut desk = Desk::new([
        collected(|u| {
            u.unit.on_failure.insert(name("note.service"));
            section(u).restart = Restart::Always;
            section(u).restart_sec = millis(0);
            u.unit.start_limit_burst = 1;
        }),
        unit("note.service", |_| {}),
    ]);
    desk.run("a.service");
    desk.die("a.service", DIRTY);
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    let view = desk.view("a.service");
    assert_eq!(
        (view.sub, view.result, view.n_restarts, view.failure),
        ("dead", ServiceResult::Success, 0, None)
    );
    let monitor = desk.last_spawn("note.service").environment.monitor.unwrap();
    assert_eq!((monitor.result, monitor.restarts), (ServiceResult::StartLimitHit, 1), "it was told");
    assert!(!desk.kept().contains_key(&name("a.service")), "and nothing is kept for another manager");
}

#[test]
fn who_asked_for_the_start_hears_that_it_failed() {
    let mut desk = Desk::new([collected(|u| section(u).service_type = ServiceType::Notify)]);
    let start = desk.start("a.service");
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    assert_eq!((desk.result(start), desk.sub("a.service")), (Some(JobResult::Failed), "dead"));
}

#[test]
fn a_failure_is_kept_by_default_and_while_a_unit_that_is_up_speaks_of_it() {
    for (mode, wanted) in [(CollectMode::Inactive, false), (CollectMode::InactiveOrFailed, true)] {
        let mut desk = Desk::new([
            collected(|u| u.unit.system.collect_mode = mode),
            unit("b.target", |u| {
                if wanted {
                    u.unit.wants.insert(name("a.service"));
                }
            }),
        ]);
        desk.start("b.target");
        if wanted {
            desk.up("a.service");
        } else {
            desk.run("a.service");
        }
        desk.die("a.service", DIRTY);
        assert_eq!(desk.sub("a.service"), "failed", "{mode:?}");
        desk.stop("b.target");
        assert_eq!(desk.sub("a.service"), if wanted { "dead" } else { "failed" }, "{mode:?}");
    }
}
