//! Services of Type forking, idle and notify-reload.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test helper fails the test")]

mod desk;

use std::path::PathBuf;

use agentd_engine::{
    ActiveState, Effect, EffectId, Event, ExitStatus, JobKind, JobMode, JobResult, KillTarget, MainProcess,
    MainSource, Monotonic, Notification, ServiceResult,
};
use agentd_unit::{KillMode, NotifyAccess, Restart, ServiceSection, ServiceType, Signal, Unit};
use desk::*;

const PID_FILE: &str = "/run/a.pid";

fn forking(change: impl FnOnce(&mut ServiceSection)) -> Unit {
    service("a.service", |s| {
        s.service_type = ServiceType::Forking;
        s.timeout_start = Some(secs(90));
        change(s);
    })
}

fn with_file(change: impl FnOnce(&mut ServiceSection)) -> Unit {
    forking(|s| {
        s.life.pid_file = Some(PathBuf::from(PID_FILE));
        change(s);
    })
}

/// The last question for the main process.
fn question(desk: &Desk) -> Option<(EffectId, MainSource)> {
    desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::FindMain { id, by, .. } => Some((*id, *by)),
        _ => None,
    })
}

fn questions(desk: &Desk) -> usize {
    desk.effects.iter().filter(|effect| matches!(effect, Effect::FindMain { .. })).count()
}

/// The last question is answered: this pid, under the name of the question.
fn found(desk: &mut Desk, pid: u32) -> EffectId {
    let (id, _) = question(desk).unwrap();
    let run = desk.last_spawn("a.service").run;
    desk.event(Event::MainFound { id, run, result: Ok(MainProcess { process: id, pid }) });
    id
}

fn not_found(desk: &mut Desk, why: &str) {
    let (id, _) = question(desk).unwrap();
    let run = desk.last_spawn("a.service").run;
    desk.event(Event::MainFound { id, run, result: Err(why.to_owned()) });
}

fn exited(desk: &mut Desk, id: EffectId, status: ExitStatus) {
    let run = desk.last_spawn("a.service").run;
    desk.event(Event::Exited { id, run, status });
}

/// Its command was executed and has ended well.
fn forked(unit: Unit) -> Desk {
    let mut desk = Desk::new([unit]);
    desk.start("a.service");
    desk.up("a.service");
    assert_eq!((desk.sub("a.service"), question(&desk)), ("start", None));
    desk.exit("a.service", CLEAN);
    desk
}

#[test]
fn a_forking_service_is_up_once_its_main_process_is_known() {
    let mut desk = forked(with_file(|_| {}));
    assert_eq!(desk.sub("a.service"), "start");
    assert_eq!(question(&desk).map(|(_, by)| by), Some(MainSource::PidFile));
    let main = found(&mut desk, 4711);
    assert_eq!((desk.sub("a.service"), desk.view("a.service").main), ("running", Some((main, 4711))));
    exited(&mut desk, main, KILLED);
    not_found(&mut desk, "there is no process 4711");
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("failed", ServiceResult::Signal));
}

#[test]
fn b010_a_late_pid_file_is_waited_for_and_an_empty_one_is_read_again() {
    let mut desk = forked(with_file(|_| {}));
    let run = desk.last_spawn("a.service").run;
    for why in ["no such file", "it is empty so far"] {
        not_found(&mut desk, why);
        assert_eq!(desk.sub("a.service"), "start", "{why}");
        let before = questions(&desk);
        desk.event(Event::PidFileChanged { run });
        assert_eq!(questions(&desk), before + 1, "{why}");
    }
    found(&mut desk, 42);
    assert_eq!((desk.sub("a.service"), desk.failure("a.service")), ("running", String::new()));
}

#[test]
fn b010_a_daemon_that_dies_without_its_pid_file_fails_at_once() {
    let mut desk = forked(with_file(|_| {}));
    not_found(&mut desk, "no such file");
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("failed", ServiceResult::Protocol));
    assert_eq!(desk.logs("Daemon never wrote its PID file"), 1);
}

#[test]
fn an_end_that_is_told_before_the_answer_who_it_was_is_taken_for_that_end() {
    for (found_first, result) in [(true, "signal"), (false, "protocol")] {
        let mut desk = forked(with_file(|_| {}));
        not_found(&mut desk, "nobody says it");
        desk.event(Event::PidFileChanged { run: desk.last_spawn("a.service").run });
        desk.empty("a.service");
        assert_eq!(desk.sub("a.service"), "start", "it is being looked for");
        if found_first {
            let main = found(&mut desk, 7);
            exited(&mut desk, main, KILLED);
            not_found(&mut desk, "it has ended");
            desk.empty("a.service");
        } else {
            not_found(&mut desk, "it has ended");
        }
        assert_eq!(desk.view("a.service").result.as_str(), result);
    }
}

#[test]
fn b008_a_pid_file_that_names_a_strangers_process_says_so_when_the_start_is_over() {
    let mut desk = forked(with_file(|_| {}));
    not_found(&mut desk, "PIDFile /run/a.pid: 1 is not a process of the service");
    desk.advance(secs(90));
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("failed", ServiceResult::Timeout));
    assert!(
        desk.failure("a.service").contains("is not a process of the service"),
        "{}",
        desk.failure("a.service")
    );
}

#[test]
fn a_command_that_fails_leaves_no_daemon() {
    let mut desk = Desk::new([with_file(|_| {})]);
    desk.start("a.service");
    desk.up("a.service");
    desk.exit("a.service", DIRTY);
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("failed", ServiceResult::ExitCode));
    assert_eq!(questions(&desk), 0);
}

#[test]
fn an_exec_start_post_may_be_what_writes_the_pid_file() {
    let mut desk = forked(with_file(|s| s.exec_start_post = vec![command("/bin/write")]));
    not_found(&mut desk, "no such file");
    assert_eq!(desk.sub("a.service"), "start-post");
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!((desk.sub("a.service"), questions(&desk)), ("start-post", 2));
    not_found(&mut desk, "no such file");
    let run = desk.last_spawn("a.service").run;
    desk.event(Event::PidFileChanged { run });
    found(&mut desk, 42);
    assert_eq!(desk.sub("a.service"), "running");
}

#[test]
fn without_a_pid_file_the_main_process_is_guessed_and_the_service_lives_as_long_as_anything_of_it() {
    let mut desk = forked(forking(|_| {}));
    assert_eq!(question(&desk).map(|(_, by)| by), Some(MainSource::Guess));
    not_found(&mut desk, "two processes of it have gone into the background");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").main), ("running", None));
    desk.empty("a.service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").result), ("dead", ServiceResult::Success));

    let mut desk = forked(forking(|s| s.life.guess_main_pid = Some(false)));
    assert_eq!((desk.sub("a.service"), questions(&desk)), ("running", 0));
    desk.empty("a.service");
    assert_eq!(desk.sub("a.service"), "dead");
}

#[test]
fn a_daemon_that_replaces_itself_stays_up_and_one_that_dies_does_not() {
    for replaced in [true, false] {
        let mut desk = forked(with_file(|s| s.restart = Restart::OnFailure));
        let first = found(&mut desk, 42);
        exited(&mut desk, first, CLEAN);
        assert_eq!(desk.sub("a.service"), "running", "{replaced}");
        if replaced {
            let second = found(&mut desk, 43);
            assert_eq!((desk.sub("a.service"), desk.view("a.service").main), ("running", Some((second, 43))));
        } else {
            not_found(&mut desk, "there is no process 42");
            desk.empty("a.service");
            assert_eq!(
                (desk.sub("a.service"), desk.view("a.service").result),
                ("dead", ServiceResult::Success)
            );
        }
    }
}

#[test]
fn b011_an_end_that_nobody_told_us_is_a_failure_unless_it_was_asked_for() {
    for asked in [false, true] {
        let mut desk = forked(with_file(|_| {}));
        let main = found(&mut desk, 42);
        if asked {
            desk.stop("a.service");
        }
        exited(&mut desk, main, ExitStatus::Unknown);
        if !asked {
            not_found(&mut desk, "gone");
        }
        desk.empty("a.service");
        let expected =
            if asked { ("dead", ServiceResult::Success) } else { ("failed", ServiceResult::ExitCode) };
        assert_eq!((desk.sub("a.service"), desk.view("a.service").result), expected);
    }
}

#[test]
fn a_main_process_that_is_found_during_the_stop_gets_the_signal_too() {
    let mut desk = forked(with_file(|s| s.kill_mode = KillMode::Process));
    not_found(&mut desk, "no such file");
    let run = desk.last_spawn("a.service").run;
    desk.event(Event::PidFileChanged { run });
    desk.exit("a.service", CLEAN); // Said twice: it means nothing.
    let (id, _) = question(&desk).unwrap();
    desk.stop("a.service");
    desk.event(Event::MainFound { id, run, result: Ok(MainProcess { process: id, pid: 42 }) });
    let killed = desk.effects.iter().any(|effect| {
        matches!(effect, Effect::Kill { target: KillTarget::Process(process), .. } if *process == id)
    });
    assert!(killed || desk.sub("a.service") == "dead", "{}", desk.sub("a.service"));
}

#[test]
fn an_idle_service_runs_its_program_once_no_other_job_runs_and_after_five_seconds_anyway() {
    let idle = || service("a.service", |s| s.service_type = ServiceType::Idle);
    let slow = service("b.service", |s| {
        s.service_type = ServiceType::Oneshot;
        s.timeout_start = Some(secs(100));
    });
    for done_early in [true, false] {
        let mut desk = Desk::new([idle(), slow.clone()]);
        desk.start("b.service");
        desk.up("b.service");
        let start = desk.start("a.service");
        assert_eq!((desk.sub("a.service"), desk.spawns("a.service").len()), ("start", 0), "{done_early}");
        if done_early {
            desk.exit("b.service", CLEAN);
            desk.empty("b.service");
        } else {
            desk.advance(millis(4999));
            assert_eq!(desk.spawns("a.service").len(), 0);
            desk.advance(millis(1));
        }
        assert_eq!(desk.spawns("a.service").len(), 1, "{done_early}");
        desk.up("a.service");
        assert_eq!((desk.sub("a.service"), desk.result(start)), ("running", Some(JobResult::Done)));
    }
}

#[test]
fn an_idle_service_that_is_alone_does_not_wait_and_one_that_waits_can_be_stopped() {
    let idle = |name| service(name, |s| s.service_type = ServiceType::Idle);
    let mut desk = Desk::new([idle("a.service"), idle("b.service")]);
    desk.start("a.service");
    assert_eq!(desk.spawns("a.service").len(), 1);

    let mut desk =
        Desk::new([idle("a.service"), service("b.service", |s| s.service_type = ServiceType::Oneshot)]);
    desk.start("b.service");
    desk.start("a.service");
    let stop = desk.stop("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(stop)), ("dead", Some(JobResult::Done)));
    assert_eq!(desk.spawns("a.service").len(), 0);
}

fn reloads(change: impl FnOnce(&mut ServiceSection)) -> Desk {
    let mut desk = Desk::new([service("a.service", |s| {
        s.service_type = ServiceType::NotifyReload;
        s.notify_access = NotifyAccess::Main;
        s.timeout_start = Some(secs(90));
        change(s);
    })]);
    desk.start("a.service");
    desk.up("a.service");
    assert_eq!(desk.sub("a.service"), "start");
    desk.ready("a.service");
    assert_eq!(desk.sub("a.service"), "running");
    desk
}

fn asked(desk: &Desk) -> Option<(EffectId, Signal)> {
    desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::AskReload { id, signal, .. } => Some((*id, *signal)),
        _ => None,
    })
}

fn says_reloading(desk: &mut Desk, monotonic: Option<Monotonic>) {
    desk.notify("a.service", Notification { reloading: true, monotonic, ..Notification::default() });
}

#[test]
fn a_reload_by_signal_is_done_when_the_service_says_that_one_which_began_since_is() {
    let mut desk = reloads(|_| {});
    desk.skip(secs(1));
    let before = desk.now.monotonic;
    desk.skip(secs(1));
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    assert_eq!((desk.sub("a.service"), asked(&desk).unwrap().1), ("reload-signal", Signal::HUP));
    assert_eq!(desk.view("a.service").active, ActiveState::Reloading);
    for early in [None, Some(before)] {
        says_reloading(&mut desk, early);
        desk.ready("a.service");
        assert_eq!((desk.sub("a.service"), desk.result(reload)), ("reload-signal", None), "{early:?}");
    }
    let now = desk.now.monotonic;
    says_reloading(&mut desk, Some(now));
    assert_eq!(desk.sub("a.service"), "reload-notify");
    desk.ready("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(reload)), ("running", Some(JobResult::Done)));
}

#[test]
fn a_reload_by_signal_that_is_never_answered_fails_and_the_service_stays_up() {
    for says in [false, true] {
        let mut desk = reloads(|s| s.life.reload_signal = Some(Signal::INT));
        let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
        assert_eq!(asked(&desk).unwrap().1, Signal::INT);
        if says {
            let now = desk.now.monotonic;
            says_reloading(&mut desk, Some(now));
        }
        desk.advance(secs(90));
        assert_eq!(
            (desk.sub("a.service"), desk.result(reload)),
            ("running", Some(JobResult::Failed)),
            "{says}"
        );
    }
}

#[test]
fn b046_a_reload_signal_that_would_end_the_service_is_not_sent_and_the_reload_fails() {
    let mut desk = reloads(|_| {});
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    let (id, run) = (asked(&desk).unwrap().0, desk.last_spawn("a.service").run);
    desk.event(Event::ReloadAsked { id, run, result: Err("it does not handle SIGHUP".to_owned()) });
    assert_eq!((desk.sub("a.service"), desk.result(reload)), ("running", Some(JobResult::Failed)));
    assert_eq!(desk.logs("it does not handle SIGHUP"), 1);
}

#[test]
fn exec_reload_comes_before_the_signal_and_waits_for_what_the_service_says_meanwhile() {
    let mut desk = reloads(|s| s.exec_reload = vec![command("/bin/check")]);
    desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    assert_eq!((desk.sub("a.service"), asked(&desk)), ("reload", None));
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!((desk.sub("a.service"), asked(&desk).is_some()), ("reload-signal", true));

    let mut desk = reloads(|s| {
        s.service_type = ServiceType::Notify;
        s.notify_access = NotifyAccess::All;
        s.exec_reload = vec![command("/bin/reload")];
    });
    let reload = desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    desk.up("a.service");
    says_reloading(&mut desk, None);
    desk.exit("a.service", CLEAN);
    assert_eq!((desk.sub("a.service"), desk.result(reload)), ("reload-notify", None));
    desk.ready("a.service");
    assert_eq!((desk.sub("a.service"), desk.result(reload)), ("running", Some(JobResult::Done)));
}

/// A service that is up says which process is its main one.
fn claim(desk: &mut Desk, pid: u32) {
    let spawn = desk.last_spawn("a.service");
    let (run, sender) = (spawn.run, agentd_engine::Sender::Process(spawn.id));
    let main = Some(agentd_engine::ClaimedMain { pid, privileged: false });
    desk.event(Event::Notified {
        run,
        sender,
        notification: Notification { main, ..Notification::default() },
    });
}

fn notifying(change: impl FnOnce(&mut ServiceSection)) -> Desk {
    let unit = service("a.service", |s| {
        s.service_type = ServiceType::Notify;
        s.notify_access = NotifyAccess::All;
        change(s);
    });
    let mut desk = Desk::new([unit]);
    desk.start("a.service");
    desk.up("a.service");
    desk
}

#[test]
fn the_process_that_a_service_names_is_its_main_one_from_then_on() {
    let mut desk = notifying(|s| s.restart = Restart::OnFailure);
    let first = desk.last_spawn("a.service").id;
    claim(&mut desk, 77);
    assert!(matches!(question(&desk), Some((_, MainSource::Said(said))) if said.pid == 77));
    let second = found(&mut desk, 77);
    desk.notify("a.service", Notification { ready: true, ..Notification::default() });
    assert_eq!((desk.sub("a.service"), desk.view("a.service").main), ("running", Some((second, 77))));
    // Who was it before ends, and that means nothing.
    exited(&mut desk, first, CLEAN);
    assert_eq!(desk.sub("a.service"), "running");
    // It says so again: there is nothing to ask.
    let before = questions(&desk);
    claim(&mut desk, 77);
    assert_eq!(questions(&desk), before);
    // Its next manager is told of the new one.
    assert!(matches!(desk.kept()[&name("a.service")].life, agentd_engine::Life::Up { main: Some(77), .. }));
    exited(&mut desk, second, KILLED);
    desk.empty("a.service");
    assert_eq!(
        (desk.sub("a.service"), desk.view("a.service").result),
        ("auto-restart", ServiceResult::Signal)
    );
}

#[test]
fn a_main_process_that_is_refused_changes_nothing_and_who_may_not_speak_is_not_asked_about() {
    let mut desk = notifying(|_| {});
    let first = desk.view("a.service").main;
    claim(&mut desk, 77);
    not_found(&mut desk, "77 is not a process of the service");
    assert_eq!((desk.sub("a.service"), desk.view("a.service").main), ("start", first));
    let mut desk = notifying(|s| s.notify_access = NotifyAccess::None);
    claim(&mut desk, 77);
    assert_eq!(questions(&desk), 0);
}

#[test]
fn a_restart_sends_its_own_signal_and_a_stop_does_not() {
    let signal = |desk: &Desk| {
        desk.effects.iter().rev().find_map(|effect| match effect {
            Effect::Kill { signal, .. } => Some(*signal),
            _ => None,
        })
    };
    let unit = || {
        service("a.service", |s| {
            s.life.restart_kill_signal = Some(Signal::USR1);
        })
    };
    let mut desk = Desk::new([unit()]);
    desk.run("a.service");
    desk.job(JobKind::Restart, "a.service", JobMode::Replace);
    assert_eq!(signal(&desk), Some(Signal::USR1));
    let mut desk = Desk::new([unit()]);
    desk.run("a.service");
    desk.stop("a.service");
    assert_eq!(signal(&desk), Some(Signal::TERM));
}
