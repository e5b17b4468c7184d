//! A manager that goes on with what another one of the same boot has kept.

mod desk;

use agentd_engine::{Effect, Event, ExitStatus, JobResult, Life, Notification, Sender, ServiceResult};
use agentd_unit::{ExecKind, NotifyAccess, Restart, TimerTrigger, Unit};
use desk::*;

fn resilient() -> Unit {
    unit("a.service", |u| {
        section(u).restart = Restart::OnFailure;
        section(u).restart_sec = secs(5);
        u.unit.start_limit_burst = 3;
        u.unit.start_limit_interval = secs(600);
    })
}

#[test]
fn a_running_service_goes_on_with_its_process_its_run_and_its_counts() {
    let mut first = Desk::new([resilient()]);
    first.start("a.service");
    first.up("a.service");
    first.die("a.service", DIRTY);
    first.advance(secs(5));
    first.up("a.service");
    let (before, run) = (first.view("a.service"), first.last_spawn("a.service").run);
    let mut second = first.heir([resilient()]);
    let after = second.view("a.service");
    assert_eq!(
        (after.sub, after.n_restarts, after.main.map(|main| main.1)),
        ("running", 1, before.main.map(|main| main.1))
    );
    assert_eq!((after.run, after.active_enter), (before.run, before.active_enter));
    assert_eq!(second.spawns("a.service").len(), 0, "nothing is started");
    let (id, taken) = second.taken_over("a.service");
    assert_eq!(taken, run);
    // It dies as any other, and the counts of its earlier life count.
    for restarts in 2..=3 {
        if restarts == 2 {
            second.event(Event::Exited { id, run, status: KILLED });
            let id = second.effects.iter().rev().find_map(|effect| match effect {
                Effect::AwaitEmpty { id, run: r } if *r == run => Some(*id),
                _ => None,
            });
            second.event(Event::Emptied { id: id.unwrap(), run });
        } else {
            second.up("a.service");
            second.die("a.service", DIRTY);
        }
        assert_eq!(second.sub("a.service"), "auto-restart");
        second.advance(secs(5));
        assert_eq!(second.view("a.service").n_restarts, restarts);
    }
    second.up("a.service");
    second.die("a.service", DIRTY);
    assert_eq!(second.view("a.service").result, ServiceResult::StartLimitHit, "the first restart counts too");
    let generations = |desk: &Desk| desk.last_spawn("a.service").environment.generation;
    assert!(generations(&second) > generations(&first), "generations go on");
}

#[test]
fn what_died_unseen_comes_back_by_its_own_rules() {
    let mut first = Desk::new([resilient(), service("b.service", |_| {})]);
    for unit in ["a.service", "b.service"] {
        first.run(unit);
    }
    let mut second = first.heir([resilient(), service("b.service", |_| {})]);
    for unit in ["a.service", "b.service"] {
        let (id, run) = second.taken_over(unit);
        second.event(Event::Exited { id, run, status: ExitStatus::Unknown });
        let asked = second.effects.iter().rev().find_map(|effect| match effect {
            Effect::AwaitEmpty { id, run: r } if *r == run => Some(*id),
            _ => None,
        });
        second.event(Event::Emptied { id: asked.unwrap(), run });
    }
    assert_eq!((second.sub("a.service"), second.sub("b.service")), ("auto-restart", "failed"));
    assert_eq!(second.view("b.service").result, ServiceResult::ExitCode, "an unknown end is not a good one");
}

#[test]
fn a_pending_restart_a_failure_a_target_and_a_finished_oneshot_are_kept() {
    let once = || {
        service("once.service", |s| {
            s.service_type = agentd_unit::ServiceType::Oneshot;
            s.remain_after_exit = true;
        })
    };
    let units = || [resilient(), service("b.service", |_| {}), unit("t.target", |_| {}), once()];
    let mut first = Desk::new(units());
    first.run("a.service");
    first.die("a.service", DIRTY);
    first.run("b.service");
    first.die("b.service", DIRTY);
    first.start("t.target");
    let request = first.start("once.service");
    first.up("once.service");
    first.exit("once.service", CLEAN);
    assert_eq!(first.result(request), Some(JobResult::Done));
    first.advance(secs(3));
    let mut second = first.heir(units());
    let subs = second.subs();
    assert_eq!(
        ["a.service", "b.service", "t.target", "once.service"].map(|unit| subs[unit]),
        ["auto-restart", "failed", "active", "exited"]
    );
    second.advance(secs(1));
    assert_eq!(second.spawns("a.service").len(), 0);
    second.advance(secs(1));
    assert_eq!(second.spawns("a.service").len(), 1, "five seconds after the end, whoever counts them");
    assert_eq!(second.spawns("once.service").len(), 0, "what is done is not done again");
}

#[test]
fn what_somebody_stops_is_not_kept_and_what_comes_up_is_only_once_it_is_up() {
    let mut desk = Desk::new([resilient()]);
    desk.start("a.service");
    assert!(desk.kept().is_empty(), "there is no process yet");
    desk.up("a.service");
    assert!(matches!(desk.kept()[&name("a.service")].life, Life::Up { main: Some(_), .. }));
    assert_eq!(desk.manager.unsettled().count(), 0);
    desk.stop("a.service");
    assert!(desk.kept().is_empty(), "a manager that comes now does not bring it back");
    assert_eq!(desk.manager.unsettled().count(), 1);
    desk.die("a.service", TERMINATED);
    assert!(desk.kept().is_empty());
}

#[test]
fn a_timer_goes_on_and_does_not_fire_twice() {
    let units = || {
        let triggers = vec![TimerTrigger::Active(secs(10)), TimerTrigger::UnitActive(secs(100))];
        [
            timer("a.timer", triggers, false),
            service("a.service", |s| s.service_type = agentd_unit::ServiceType::Oneshot),
        ]
    };
    let mut first = Desk::new(units());
    first.start("a.timer");
    first.advance(secs(10));
    assert_eq!(first.spawns("a.service").len(), 1);
    first.up("a.service");
    first.die("a.service", CLEAN);
    first.advance(secs(50));
    let mut second = first.heir(units());
    assert_eq!(second.sub("a.timer"), "waiting");
    second.advance(secs(49));
    assert_eq!(second.spawns("a.service").len(), 0, "OnActiveSec has fired, and OnUnitActiveSec is not due");
    second.advance(secs(2));
    assert_eq!(second.spawns("a.service").len(), 1);
}

#[test]
fn units_that_are_gone_or_are_another_kind_now_are_left_alone() {
    let mut first = Desk::new([resilient()]);
    first.run("a.service");
    let second = first.heir([]);
    assert!(second.effects.iter().all(|effect| !matches!(effect, Effect::TakeOver { .. })));
    let mut unloadable = resilient();
    unloadable.load = agentd_unit::LoadState::Masked;
    let second = first.heir([unloadable]);
    assert_eq!(second.sub("a.service"), "dead");
}

#[test]
fn signs_of_life_are_expected_from_the_takeover_on() {
    let unit = || {
        service("a.service", |s| {
            s.watchdog = Some(secs(10));
            s.notify_access = agentd_unit::NotifyAccess::Main;
            s.service_type = agentd_unit::ServiceType::Notify;
        })
    };
    let mut first = Desk::new([unit()]);
    first.start("a.service");
    first.up("a.service");
    first.ready("a.service");
    first.skip(secs(60));
    let mut second = first.heir([unit()]);
    second.advance(secs(9));
    assert_eq!(second.sub("a.service"), "running", "nobody listened meanwhile");
    second.advance(secs(2));
    assert_eq!(second.sub("a.service"), "stop-watchdog", "but now somebody does");
}

#[test]
fn what_a_service_has_asked_for_holds_under_the_next_manager() {
    let unit = || {
        service("a.service", |s| {
            s.service_type = agentd_unit::ServiceType::Notify;
            s.notify_access = NotifyAccess::Main;
            s.watchdog = Some(secs(10));
            s.runtime_max = Some(secs(100));
        })
    };
    let mut first = Desk::new([unit()]);
    first.start("a.service");
    first.up("a.service");
    first.ready("a.service");
    let asked = Notification {
        watchdog: Some(secs(1000)),
        access: Some(NotifyAccess::All),
        extend_timeout: Some(secs(300)),
        ..Notification::default()
    };
    first.notify("a.service", asked);
    let mut second = first.heir([unit()]);
    let (_, run) = second.taken_over("a.service");
    let notification = Notification { status: Some("from a child".to_owned()), ..Notification::default() };
    second.event(Event::Notified { run, sender: Sender::Other { pid: 7 }, notification });
    assert_eq!(second.view("a.service").status_text.as_deref(), Some("from a child"), "NOTIFYACCESS=");
    second.advance(secs(299));
    assert_eq!(second.sub("a.service"), "running", "WATCHDOG_USEC= and EXTEND_TIMEOUT_USEC=");
    second.advance(secs(1));
    assert_eq!(second.sub("a.service"), "stop-sigterm");
}

/// Nothing is left of the run that was taken over.
fn emptied(desk: &mut Desk) {
    let asked = desk.effects.iter().rev().find_map(|effect| match effect {
        Effect::AwaitEmpty { id, run } => Some((*id, *run)),
        _ => None,
    });
    let (id, run) = asked.unwrap_or_else(|| panic!("nobody asks whether a run is empty"));
    desk.event(Event::Emptied { id, run });
}

#[test]
fn a_restart_that_no_manager_ends_is_made_up_for() {
    let unit = || service("a.service", |_| {});
    let mut first = Desk::new([unit()]);
    first.run("a.service");
    first.restart("a.service");
    let mut second = first.heir([unit()]);
    let (id, run) = second.taken_over("a.service");
    assert_eq!((second.sub("a.service"), second.spawns("a.service").len()), ("stop-sigterm", 0));
    second.event(Event::Exited { id, run, status: TERMINATED });
    emptied(&mut second);
    assert_eq!(second.spawns("a.service").len(), 1, "what was on its way down has ended first");
    first.die("a.service", TERMINATED);
    let mut second = first.heir([unit()]);
    emptied(&mut second);
    assert_eq!(second.spawns("a.service").len(), 1, "it was on its way up");
    first.up("a.service");
    first.restart("a.service");
    first.stop("a.service");
    assert!(first.kept().is_empty(), "what a person stops after all stays down");
}

#[test]
fn a_timer_counts_from_the_last_end_of_its_unit_under_the_next_manager_too() {
    let units = || {
        let triggers = vec![TimerTrigger::UnitInactive(secs(100))];
        [timer("a.timer", triggers, false), service("a.service", |_| {})]
    };
    let mut first = Desk::new(units());
    first.start("a.timer");
    first.advance(secs(70));
    first.run("a.service");
    first.stop("a.service");
    first.die("a.service", TERMINATED);
    let mut second = first.heir(units());
    second.advance(secs(99));
    assert_eq!(second.spawns("a.service").len(), 0, "it was up since the timer became active");
    second.advance(secs(1));
    assert_eq!(second.spawns("a.service").len(), 1);
}

#[test]
fn a_timer_whose_triggers_are_others_now_goes_on_as_after_a_reload() {
    use TimerTrigger as T;
    let units = |triggers| {
        let job = service("a.service", |s| s.service_type = agentd_unit::ServiceType::Oneshot);
        [timer("a.timer", triggers, false), job]
    };
    let before = || vec![T::Active(secs(10)), T::UnitActive(secs(1000))];
    let mut first = Desk::new(units(before()));
    first.start("a.timer");
    first.advance(secs(10));
    first.up("a.service");
    first.die("a.service", CLEAN);
    first.advance(secs(50));
    let last = first.view("a.timer").timer.unwrap().last_trigger;
    for (case, triggers, fires) in [
        ("one more", vec![T::Active(secs(10)), T::UnitActive(secs(1000)), T::Active(secs(70))], 10),
        ("one less", vec![T::UnitActive(secs(20))], 20),
        ("another span", vec![T::Active(secs(10)), T::UnitActive(secs(30))], 30),
    ] {
        let mut second = first.heir(units(triggers));
        assert_eq!(second.sub("a.timer"), "waiting", "{case}");
        assert_eq!(second.view("a.timer").timer.unwrap().last_trigger, last, "{case}");
        second.advance(secs(fires - 1));
        assert_eq!(second.spawns("a.service").len(), 0, "{case}");
        second.advance(secs(1));
        assert_eq!(second.spawns("a.service").len(), 1, "{case}");
    }
}

#[test]
fn what_went_down_with_another_unit_returns_with_it_under_the_next_manager_too() {
    let bound = |text| {
        unit(text, |u| {
            u.unit.binds_to.insert(name("a.service"));
            u.unit.after.insert(name("a.service"));
        })
    };
    let units = || [resilient(), bound("b.service"), bound("c.target"), bound("d.service")];
    let mut first = Desk::new(units());
    for unit in ["a.service", "b.service", "d.service"] {
        first.run(unit);
    }
    first.start("c.target");
    first.die("a.service", DIRTY);
    first.stop("d.service");
    for unit in ["b.service", "d.service"] {
        first.die(unit, TERMINATED);
    }
    let mut second = first.heir(units());
    let subs = second.subs();
    assert_eq!(
        ["a.service", "b.service", "c.target"].map(|unit| subs[unit]),
        ["auto-restart", "dead", "dead"]
    );
    second.advance(secs(5));
    second.up("a.service");
    second.up("b.service");
    assert_eq!((second.sub("b.service"), second.sub("c.target")), ("running", "active"));
    assert_eq!(second.spawns("d.service").len(), 0, "a person has stopped it since");
    assert!(second.kept().values().all(|memo| memo.returns_with.is_empty()));
}

#[test]
fn a_service_that_has_exited_ends_with_the_status_of_its_process_under_the_next_manager_too() {
    let unit = || {
        service("a.service", |s| {
            s.service_type = agentd_unit::ServiceType::Oneshot;
            s.remain_after_exit = true;
            s.life.success.codes.insert(3);
            s.exec_stop = vec![command("/bin/stop")];
        })
    };
    let mut first = Desk::new([unit()]);
    first.start("a.service");
    first.up("a.service");
    first.exit("a.service", ExitStatus::Exited(3));
    let mut second = first.heir([unit()]);
    assert_eq!(second.view("a.service").exec_main, first.view("a.service").exec_main);
    second.stop("a.service");
    let environment = second.last_spawn("a.service").environment;
    assert_eq!(
        (environment.exit_status, environment.service_result),
        (Some(ExitStatus::Exited(3)), Some(ServiceResult::Success))
    );
}

#[test]
fn a_service_that_lives_on_without_its_main_process_ends_as_that_did_under_the_next_manager_too() {
    let unit = || service("a.service", |s| s.life.exit_type = agentd_unit::sections::ExitType::Cgroup);
    for (status, sub) in [(DIRTY, "failed"), (CLEAN, "dead")] {
        let mut first = Desk::new([unit()]);
        first.run("a.service");
        first.exit_main("a.service", status);
        let mut second = first.heir([unit()]);
        assert_eq!((second.sub("a.service"), second.view("a.service").main), ("running", None));
        let asked = second.effects.iter().rev().find_map(|effect| match effect {
            Effect::AwaitEmpty { id, run } => Some((*id, *run)),
            _ => None,
        });
        let (id, run) = asked.unwrap();
        second.event(Event::Emptied { id, run });
        assert_eq!(second.sub("a.service"), sub);
    }
}

#[test]
fn what_is_shown_of_a_unit_that_is_down_is_the_same_after_a_re_execution() {
    let units = || {
        let needs = unit("c.service", |u| {
            u.unit.requires.insert(name("b.service"));
            u.unit.after.insert(name("b.service"));
        });
        let once = service("d.service", |s| s.service_type = agentd_unit::ServiceType::Oneshot);
        [service("a.service", |_| {}), service("b.service", |_| {}), needs, once, unit("e.target", |_| {})]
    };
    let mut first = Desk::new(units());
    first.run("a.service");
    first.die("a.service", KILLED);
    first.start("c.service");
    first.fail_spawn("b.service", agentd_engine::SpawnFailureKind::Step { exit_status: 203 });
    first.empty("b.service");
    first.start("d.service");
    first.up("d.service");
    first.die("d.service", CLEAN);
    first.start("e.target");
    first.stop("e.target");
    first.skip(secs(5));
    first.manager.keep_all(&mut first.effects);
    let second = first.heir(units());
    for unit in ["a.service", "b.service", "c.service", "d.service", "e.target"] {
        assert_eq!(second.view(unit), first.view(unit));
    }
}

#[test]
fn what_kill_mode_left_alive_is_still_known_and_gone_before_the_next_life_under_the_next_manager() {
    let units = || [service("a.service", |s| s.kill_mode = agentd_unit::KillMode::Process)];
    let mut first = Desk::new(units());
    first.run("a.service");
    let old = first.last_spawn("a.service").run;
    first.stop("a.service");
    first.exit_main("a.service", CLEAN);
    let heir = || {
        let desk = first.heir(units());
        assert_eq!((desk.sub("a.service"), desk.taken_over("a.service").1), ("dead", old));
        assert_eq!(desk.manager.unit_of_run(old).map(|unit| unit.as_str()), Some("a.service"));
        desk
    };
    let mut emptied_by_itself = heir();
    emptied(&mut emptied_by_itself);
    assert_eq!(emptied_by_itself.manager.unit_of_run(old), None);
    assert!(emptied_by_itself.kept().is_empty(), "nothing is left");
    let mut started = heir();
    started.start("a.service");
    assert!(started.effects.contains(&Effect::KillAll { run: old }));
    assert_eq!(started.spawns("a.service").len(), 0);
    emptied(&mut started);
    assert_eq!(started.spawns("a.service").len(), 1);
}

#[test]
fn the_further_commands_behind_a_start_are_run_by_the_next_manager() {
    let unit = || {
        service("a.service", |s| {
            s.exec_start_post = ["/bin/one", "/bin/two", "/bin/three"].map(command).to_vec();
        })
    };
    let posts = |desk: &Desk| {
        let spawns = desk.spawns("a.service").into_iter().filter(|spawn| spawn.kind == ExecKind::StartPost);
        spawns.map(|spawn| spawn.index).collect::<Vec<_>>()
    };
    for done in 0..3 {
        let mut first = Desk::new([unit()]);
        first.start("a.service");
        first.up("a.service");
        for _ in 0..done {
            first.up("a.service");
            first.exit("a.service", CLEAN);
        }
        assert_eq!(first.sub("a.service"), "start-post");
        let mut second = first.heir([unit()]);
        let mut expected: Vec<usize> = (done + 1..3).collect();
        assert_eq!(posts(&second), expected.drain(..).take(1).collect::<Vec<_>>(), "behind {done}");
        for _ in done + 1..3 {
            assert_eq!(second.sub("a.service"), "start-post");
            second.up("a.service");
            second.exit("a.service", CLEAN);
        }
        assert_eq!(second.sub("a.service"), "running", "behind {done}");
        assert_eq!(posts(&second), (done + 1..3).collect::<Vec<_>>());
    }
}
