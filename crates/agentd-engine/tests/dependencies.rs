//! Each kind of dependency, from both ends; default dependencies; job modes.

mod desk;

use agentd_engine::{
    ActiveState, Effect, JobKind, JobMode, JobResult, KillTarget, KillWhom, Request, RequestError,
};
use agentd_unit::{Restart, ServiceType, Signal, Unit, UnitNames, UnitSection};
use desk::*;

type List = fn(&mut UnitSection) -> &mut UnitNames;

fn with(own: &str, list: List, other: &str) -> Unit {
    unit(own, |u| {
        list(&mut u.unit).insert(name(other));
    })
}

fn plain(own: &str) -> Unit {
    unit(own, |_| {})
}

/// Both are up, started by hand.
fn both_up(b: Unit) -> Desk {
    let mut desk = Desk::new([plain("a.service"), b]);
    desk.run("a.service");
    if desk.sub("b.service") != "running" {
        desk.run("b.service");
    }
    desk
}

#[test]
fn an_explicit_stop_of_a_takes_b_down_by_the_kind_of_its_dependency() {
    for (case, list, down) in [
        ("Requires", (|s| &mut s.requires) as List, true),
        ("BindsTo", |s| &mut s.binds_to, true),
        ("PartOf", |s| &mut s.part_of, true),
        ("StopPropagatedFrom", |s| &mut s.stop_propagated_from, true),
        ("Wants", |s| &mut s.wants, false),
        ("Requisite", |s| &mut s.requisite, true),
        ("After", |s| &mut s.after, false),
    ] {
        let mut desk = both_up(with("b.service", list, "a.service"));
        desk.stop("a.service");
        assert_eq!(desk.view("b.service").active != ActiveState::Active, down, "{case}");
    }
}

#[test]
fn an_end_of_a_that_nobody_asked_for_takes_down_only_what_is_bound() {
    for (case, list, down) in [
        ("Requires", (|s| &mut s.requires) as List, false),
        ("BindsTo", |s| &mut s.binds_to, true),
        ("PartOf", |s| &mut s.part_of, false),
        ("Wants", |s| &mut s.wants, false),
    ] {
        let mut desk = both_up(with("b.service", list, "a.service"));
        desk.die("a.service", DIRTY);
        assert_eq!(desk.view("b.service").active != ActiveState::Active, down, "{case}");
    }
}

#[test]
fn an_explicit_restart_of_a_restarts_b_by_the_kind_of_its_dependency() {
    for (case, list, restarted) in [
        ("Requires", (|s| &mut s.requires) as List, true),
        ("BindsTo", |s| &mut s.binds_to, true),
        ("PartOf", |s| &mut s.part_of, true),
        ("Requisite", |s| &mut s.requisite, true),
        ("Wants", |s| &mut s.wants, false),
    ] {
        let mut desk = both_up(with("b.service", list, "a.service"));
        let old = desk.view("b.service").run;
        desk.restart("a.service");
        for unit in ["b.service", "a.service"] {
            if desk.view(unit).active == ActiveState::Deactivating {
                desk.die(unit, TERMINATED);
            }
        }
        for unit in ["a.service", "b.service"] {
            if desk.sub(unit) == "start" {
                desk.up(unit);
            }
        }
        assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("running", "running"), "{case}");
        assert_eq!(desk.view("b.service").run != old, restarted, "{case}");
    }
}

#[test]
fn a_start_of_b_pulls_a_in_by_the_kind_of_its_dependency() {
    for (case, list, pulled) in [
        ("Requires", (|s| &mut s.requires) as List, true),
        ("BindsTo", |s| &mut s.binds_to, true),
        ("Wants", |s| &mut s.wants, true),
        ("Upholds", |s| &mut s.upholds, true),
        ("PartOf", |s| &mut s.part_of, false),
        ("After", |s| &mut s.after, false),
    ] {
        let mut desk = Desk::new([plain("a.service"), with("b.service", list, "a.service")]);
        desk.start("b.service");
        assert_eq!(desk.sub("a.service") == "start", pulled, "{case}");
    }
}

#[test]
fn a_requisite_must_be_up_already() {
    let mut desk = Desk::new([plain("a.service"), with("b.service", |s| &mut s.requisite, "a.service")]);
    let early = desk.start("b.service");
    assert_eq!((desk.result(early), desk.sub("a.service")), (Some(JobResult::Dependency), "dead"));
    assert_eq!(desk.failure("b.service"), "a.service is not active");
    desk.run("a.service");
    let late = desk.start("b.service");
    desk.up("b.service");
    assert_eq!(desk.result(late), Some(JobResult::Done));
}

#[test]
fn the_other_end_of_an_edge_counts_fully() {
    for (case, fill) in [
        ("WantedBy", (|u: &mut Unit| &mut u.install.wanted_by) as fn(&mut Unit) -> &mut UnitNames),
        ("RequiredBy", |u| &mut u.install.required_by),
        ("UpheldBy", |u| &mut u.install.upheld_by),
    ] {
        for enabled in [true, false] {
            let mut desk = Desk::new([
                plain("b.service"),
                unit("a.service", |u| {
                    fill(u).insert(name("b.service"));
                    u.enabled = enabled;
                }),
            ]);
            desk.start("b.service");
            let expected: &[&str] = if enabled { &["a ExecStart 0"] } else { &["b ExecStart 0"] };
            assert_eq!(desk.spawned_since(), expected, "{case}, enabled: {enabled}");
        }
    }
}

#[test]
fn edges_order_in_toml_units_unless_an_order_is_written_and_never_in_systemd_syntax() {
    let both: &[&str] = &["a ExecStart 0", "b ExecStart 0"];
    for (case, implicit, before, expected) in [
        ("implied", true, false, &["a ExecStart 0"] as &[&str]),
        ("the other way is written", true, true, &["b ExecStart 0"]),
        ("systemd's syntax", false, false, both),
    ] {
        let mut desk = Desk::new([
            plain("a.service"),
            unit("b.service", |u| {
                u.implicit_order = implicit;
                u.unit.wants.insert(name("a.service"));
                if before {
                    u.unit.before.insert(name("a.service"));
                }
            }),
        ]);
        desk.start("b.service");
        assert_eq!(desk.spawned_since(), expected, "{case}");
    }
}

#[test]
fn what_conflicts_is_gone_before_the_other_begins_from_either_end() {
    for end in ["a.service", "b.service"] {
        let other = if end == "a.service" { "b.service" } else { "a.service" };
        let mut desk = Desk::new([with(end, |s| &mut s.conflicts, other), plain(other)]);
        desk.run("a.service");
        desk.news();
        desk.start("b.service");
        assert_eq!(
            (desk.sub("a.service"), desk.sub("b.service")),
            ("stop-sigterm", "dead"),
            "written in {end}"
        );
        desk.die("a.service", TERMINATED);
        assert_eq!(desk.sub("b.service"), "start");
    }
}

#[test]
fn a_contradiction_is_refused_where_both_matter_and_solved_where_one_is_only_wanted() {
    let units = |list: List| {
        [
            with("b.service", list, "a.service"),
            unit("a.service", |u| {
                u.unit.conflicts.insert(name("b.service"));
            }),
        ]
    };
    let mut desk = Desk::new(units(|s| &mut s.requires));
    let start = desk.start("b.service");
    assert_eq!(desk.refusal(start), Some(RequestError::Contradiction(name("b.service"))));
    let mut desk = Desk::new(units(|s| &mut s.wants));
    desk.start("b.service");
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("dead", "start"));
}

#[test]
fn a_unit_that_nobody_needs_stops_when_it_says_so() {
    let mut desk = Desk::new([
        unit("a.service", |u| u.unit.stop_when_unneeded = true),
        with("b.service", |s| &mut s.wants, "a.service"),
        with("c.service", |s| &mut s.requires, "a.service"),
    ]);
    desk.start("b.service");
    desk.up("a.service");
    desk.up("b.service");
    desk.run("c.service");
    desk.die("b.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "running");
    desk.die("c.service", CLEAN);
    assert_eq!(desk.sub("a.service"), "stop-sigterm");
}

#[test]
fn on_success_runs_after_a_clean_end_and_on_failure_after_the_other() {
    for (status, ran, idle) in
        [(CLEAN, "good.service", "bad.service"), (DIRTY, "bad.service", "good.service")]
    {
        let mut desk = Desk::new([
            unit("a.service", |u| {
                u.unit.on_success.insert(name("good.service"));
                u.unit.on_failure.insert(name("bad.service"));
            }),
            plain("good.service"),
            plain("bad.service"),
        ]);
        desk.run("a.service");
        desk.die("a.service", status);
        assert_eq!((desk.sub(ran), desk.sub(idle)), ("start", "dead"), "{status}");
    }
}

#[test]
fn a_reload_goes_on_to_those_that_it_is_propagated_to() {
    let reloadable = |own: &str, list: List, other: &str| {
        unit(own, |u| {
            section(u).exec_reload = vec![command("/bin/reload")];
            list(&mut u.unit).insert(name(other));
        })
    };
    let mut desk = Desk::new([
        reloadable("a.service", |s| &mut s.propagates_reload_to, "b.service"),
        reloadable("b.service", |s| &mut s.propagates_reload_to, "ghost.service"),
        reloadable("c.service", |s| &mut s.reload_propagated_from, "a.service"),
    ]);
    for unit in ["a.service", "b.service", "c.service"] {
        desk.run(unit);
    }
    desk.news();
    desk.job(JobKind::Reload, "a.service", JobMode::Replace);
    assert_eq!(desk.spawned_since(), ["a ExecReload 0", "b ExecReload 0", "c ExecReload 0"]);
}

#[test]
fn isolate_stops_whatever_is_no_part_of_it() {
    let mut desk = Desk::new([
        unit("all.target", |u| u.unit.wants.extend([name("a.service"), name("b.service")])),
        unit("rescue.target", |u| {
            u.unit.system.allow_isolate = true;
            u.unit.wants.insert(name("a.service"));
        }),
        plain("a.service"),
        plain("b.service"),
    ]);
    desk.start("all.target");
    desk.up("a.service");
    desk.up("b.service");
    desk.job(JobKind::Start, "rescue.target", JobMode::Isolate);
    let subs = ["a.service", "b.service", "all.target", "rescue.target"].map(|unit| desk.sub(unit));
    assert_eq!(subs, ["running", "stop-sigterm", "dead", "active"]);
}

#[test]
fn ignoring_dependencies_starts_the_unit_alone_and_at_once() {
    let mut desk = Desk::new([plain("a.service"), with("b.service", |s| &mut s.requires, "a.service")]);
    desk.job(JobKind::Start, "b.service", JobMode::IgnoreDependencies);
    assert_eq!(desk.spawned_since(), ["b ExecStart 0"]);
}

#[test]
fn verify_active_waits_for_nobody_that_is_down() {
    let mut desk = Desk::new([plain("a.service")]);
    let down = desk.job(JobKind::VerifyActive, "a.service", JobMode::Replace);
    assert_eq!(desk.result(down), Some(JobResult::Failed));
    desk.run("a.service");
    let up = desk.job(JobKind::VerifyActive, "a.service", JobMode::Replace);
    assert_eq!(desk.result(up), Some(JobResult::Done));
}

#[test]
fn a_canceled_job_is_answered_and_fails_what_waits_for_it() {
    let mut desk = Desk::new([
        service("a.service", |s| s.service_type = ServiceType::Oneshot),
        with("b.service", |s| &mut s.requires, "a.service"),
    ]);
    let b = desk.start("b.service");
    let job = desk.view("a.service").job.unwrap();
    let waiting = desk.manager.jobs().find(|job| job.unit == name("b.service")).unwrap();
    assert_eq!((waiting.running, waiting.waits_for), (false, vec![name("a.service")]));
    let cancel = desk.request(Request::Cancel { job });
    assert!(desk.effects.contains(&Effect::Done { request: cancel }));
    assert_eq!(desk.result(b), Some(JobResult::Dependency));
    let again = desk.request(Request::Cancel { job });
    assert_eq!(desk.refusal(again), Some(RequestError::NoJob(job)));
}

#[test]
fn a_signal_goes_to_whom_it_is_meant_for_and_to_nobody_else() {
    let mut desk = Desk::new([plain("a.service")]);
    let kill = |desk: &mut Desk, whom| {
        desk.news();
        let request = desk.request(Request::Kill { unit: name("a.service"), whom, signal: Signal::USR1 });
        let targets: Vec<KillTarget> = desk
            .news()
            .iter()
            .filter_map(|effect| if let Effect::Kill { target, .. } = effect { Some(*target) } else { None })
            .collect();
        (targets, desk.refusal(request).is_none())
    };
    assert_eq!(kill(&mut desk, KillWhom::All), (vec![], false));
    desk.run("a.service");
    let main = KillTarget::Process(desk.last_spawn("a.service").id);
    assert_eq!(kill(&mut desk, KillWhom::All), (vec![KillTarget::All], true));
    assert_eq!(kill(&mut desk, KillWhom::Main), (vec![main], true));
    assert_eq!(kill(&mut desk, KillWhom::Control), (vec![], false));
}

#[test]
fn what_only_a_dependency_may_start_is_refused_to_people() {
    let mut desk = Desk::new([
        unit("a.service", |u| {
            u.unit.refuse_manual_start = true;
            u.unit.refuse_manual_stop = true;
        }),
        with("b.service", |s| &mut s.requires, "a.service"),
    ]);
    let start = desk.start("a.service");
    assert_eq!(desk.refusal(start), Some(RequestError::ManualRefused(name("a.service"))));
    desk.start("b.service");
    assert_eq!(desk.sub("a.service"), "start");
    let stop = desk.stop("a.service");
    assert_eq!(desk.refusal(stop), Some(RequestError::ManualRefused(name("a.service"))));
}

/// A small system as it is shipped: who is pulled in and ordered by default dependencies.
fn system() -> Vec<Unit> {
    let default = |own: &str, change: fn(&mut Unit)| {
        unit(own, |u| {
            u.unit.default_dependencies = true;
            change(u);
        })
    };
    vec![
        default("sysinit.target", |u| {
            u.unit.wants.insert(name("early.service"));
        }),
        default("basic.target", |u| {
            u.unit.requires.insert(name("sysinit.target"));
        }),
        default("multi-user.target", |u| {
            u.unit.requires.insert(name("basic.target"));
            u.unit.wants.extend([name("web.service"), name("late.service")]);
        }),
        default("shutdown.target", |_| {}),
        default("early.service", |_| {}),
        default("web.service", |_| {}),
        default("late.service", |u| {
            u.unit.after.insert(name("multi-user.target"));
        }),
    ]
}

#[test]
fn default_dependencies_order_a_boot_and_close_no_cycle() {
    let mut desk = Desk::new(system());
    let boot = desk.start("multi-user.target");
    assert_eq!(desk.spawned_since(), ["early ExecStart 0"]);
    assert_eq!(desk.sub("sysinit.target"), "dead");
    desk.up("early.service");
    assert_eq!(
        (desk.sub("basic.target"), desk.spawned_since()),
        ("active", vec!["web ExecStart 0".to_owned()])
    );
    desk.up("web.service");
    assert_eq!((desk.result(boot), desk.sub("multi-user.target")), (Some(JobResult::Done), "active"));
    assert_eq!(desk.spawned_since(), ["late ExecStart 0"], "its own After beats the target's");
    assert_eq!(desk.logs("cycle"), 0);
}

#[test]
fn every_change_of_state_is_said_once_with_its_unit_and_run() {
    let mut desk = Desk::new([unit("a.service", |u| u.unit.description = Some("An agent".to_owned()))]);
    desk.run("a.service");
    desk.stop("a.service");
    desk.die("a.service", TERMINATED);
    for text in [
        "Starting a.service - An agent...",
        "Started a.service - An agent.",
        "Stopping a.service - An agent...",
        "a.service: Main process exited, code=killed, signal=SIGTERM",
        "a.service: Deactivated successfully.",
        "Stopped a.service - An agent.",
        "a.service: Changed dead -> start",
        "a.service: Changed start -> running",
        "a.service: Changed running -> stop-sigterm",
        "a.service: Changed stop-sigterm -> dead",
    ] {
        assert_eq!(desk.texts().iter().filter(|seen| *seen == text).count(), 1, "{text}");
    }
    let run = desk.view("a.service").run;
    let records =
        desk.effects.iter().filter_map(|e| if let Effect::Log(record) = e { Some(record) } else { None });
    assert!(records.clone().all(|record| record.run == run && record.unit == Some(name("a.service"))));
    assert_eq!(records.count(), 10);
}

/// B, of which a start has failed because of A.
fn failed_for_a(list: List, mut a: Unit) -> Desk {
    section(&mut a).restart_sec = secs(10);
    let target = unit("other.target", |u| u.unit.system.allow_isolate = true);
    let mut desk = Desk::new([a, with("b.service", list, "a.service"), target]);
    let failed = desk.start("b.service");
    if desk.sub("a.service") == "start" {
        desk.die("a.service", DIRTY);
    }
    assert_eq!(desk.result(failed), Some(JobResult::Dependency));
    desk
}

#[test]
fn a_start_that_failed_for_another_unit_is_made_up_for_as_that_comes_up_by_itself_and_not_else() {
    let again = || service("a.service", |s| s.restart = Restart::Always);
    let comes_up = |mut desk: Desk| {
        desk.advance(secs(10));
        desk.up("a.service");
        desk.sub("b.service")
    };
    assert_eq!(comes_up(failed_for_a(|s| &mut s.requires, again())), "start");
    for (case, list, a) in [
        ("Requires", (|s| &mut s.requires) as List, plain("a.service")),
        ("BindsTo", |s| &mut s.binds_to, plain("a.service")),
        ("Requisite", |s| &mut s.requisite, plain("a.service")),
    ] {
        let mut desk = failed_for_a(list, a);
        desk.run("a.service");
        assert_eq!(desk.sub("b.service"), "dead", "{case}: a person has repaired the other one");
    }
    // A person hastens what comes by itself.
    let mut desk = failed_for_a(|s| &mut s.requires, again());
    desk.run("a.service");
    assert_eq!(desk.sub("b.service"), "start");
    // Nobody wants it any more.
    let mut desk = failed_for_a(|s| &mut s.requires, again());
    desk.stop("b.service");
    assert_eq!(comes_up(desk), "dead");
    let left_alone = |leave: bool| {
        let mut desk = failed_for_a(|s| &mut s.requires, {
            let mut a = again();
            a.unit.system.ignore_on_isolate = Some(true);
            a
        });
        if leave {
            desk.job(JobKind::Start, "other.target", JobMode::Isolate);
        }
        comes_up(desk)
    };
    assert_eq!((left_alone(false), left_alone(true)), ("start", "dead"));
}

#[test]
fn a_job_that_fails_for_another_unit_or_takes_too_long_starts_on_failure() {
    let alarmed = |own: &str, alarm: &'static str| {
        unit(own, move |u| {
            u.unit.requires.insert(name("a.service"));
            u.unit.after.insert(name("a.service"));
            u.unit.on_failure.insert(name(alarm));
        })
    };
    let mut desk =
        Desk::new([plain("a.service"), alarmed("b.service", "alarm.service"), plain("alarm.service")]);
    let failed = desk.start("b.service");
    desk.die("a.service", DIRTY);
    assert_eq!(desk.result(failed), Some(JobResult::Dependency));
    assert_eq!(desk.spawns("alarm.service").len(), 1);

    let mut late = alarmed("b.service", "alarm.service");
    late.unit.job_timeout = Some(secs(3));
    let mut desk = Desk::new([plain("a.service"), late, plain("alarm.service")]);
    let failed = desk.start("b.service");
    desk.advance(secs(3));
    assert_eq!(desk.result(failed), Some(JobResult::Timeout));
    assert_eq!(desk.spawns("alarm.service").len(), 1);

    // Two that are each other's, and fail each time at once, have an end.
    let needy = |own: &str, alarm: &'static str| {
        let mut unit = alarmed(own, alarm);
        unit.unit.requisite = std::mem::take(&mut unit.unit.requires);
        unit
    };
    let mut desk =
        Desk::new([plain("a.service"), needy("b.service", "c.service"), needy("c.service", "b.service")]);
    desk.start("b.service");
    let failed = |unit: &str| desk.logs(&format!("Dependency failed for {unit}"));
    assert_eq!((failed("b.service"), failed("c.service")), (1, 1));
}
