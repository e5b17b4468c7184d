//! New definitions under running units.

mod desk;

use agentd_engine::{ActiveState, JobResult};
use agentd_unit::{Restart, ServiceType, Unit};
use desk::*;

fn described(text: &str) -> Unit {
    unit("a.service", |u| u.unit.description = Some(text.to_owned()))
}

#[test]
fn b111_a_running_service_keeps_its_definition_until_its_next_start() {
    let mut desk = Desk::new([described("old")]);
    desk.run("a.service");
    let pid = desk.view("a.service").main;
    desk.load([unit("a.service", |u| {
        u.unit.description = Some("new".to_owned());
        section(u).service_type = ServiceType::Oneshot;
        section(u).exec_start = vec![command("/bin/one"), command("/bin/two"), command("/bin/three")];
    })]);
    let view = desk.view("a.service");
    assert_eq!((view.unit.description(), view.changed_on_disk, view.main), ("old", true, pid));
    desk.die("a.service", CLEAN);
    let view = desk.view("a.service");
    assert_eq!((view.sub, view.unit.description(), view.changed_on_disk), ("dead", "new", false));
    desk.start("a.service");
    assert_eq!(desk.last_spawn("a.service").unit.description(), "new");
}

#[test]
fn a_restart_takes_the_new_definition_and_what_it_needs() {
    let mut desk = Desk::new([described("old"), unit("b.service", |_| {})]);
    desk.run("a.service");
    desk.load([
        unit("a.service", |u| {
            u.unit.requires.insert(name("b.service"));
        }),
        unit("b.service", |_| {}),
    ]);
    let restart = desk.restart("a.service");
    desk.die("a.service", TERMINATED);
    assert_eq!((desk.sub("a.service"), desk.sub("b.service")), ("dead", "start"));
    desk.up("b.service");
    desk.up("a.service");
    assert_eq!(desk.result(restart), Some(JobResult::Done));
}

#[test]
fn b132_a_load_changes_no_fact_of_a_life() {
    let make = || {
        service("a.service", |s| {
            s.service_type = ServiceType::Oneshot;
            s.restart = Restart::OnFailure;
            s.exec_start = vec![command("/bin/one"), command("/bin/two"), command("/bin/three")];
        })
    };
    let mut desk = Desk::new([make()]);
    desk.start("a.service");
    desk.up("a.service");
    desk.die("a.service", DIRTY);
    desk.advance(millis(100));
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    let before = desk.view("a.service");
    desk.news();
    for _ in 0..5 {
        desk.load([make()]);
    }
    assert_eq!(desk.view("a.service"), before);
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    desk.up("a.service");
    desk.exit("a.service", CLEAN);
    assert_eq!(desk.spawned_since(), ["a ExecStart 2"]);
    assert_eq!(desk.view("a.service").n_restarts, 1);
}

#[test]
fn a_unit_whose_file_is_gone_stays_visible_until_it_is_down() {
    let mut desk = Desk::new([described("old")]);
    desk.run("a.service");
    desk.load([]);
    assert_eq!((desk.sub("a.service"), desk.view("a.service").changed_on_disk), ("running", true));
    desk.stop("a.service");
    desk.die("a.service", TERMINATED);
    desk.load([]);
    assert!(desk.manager.unit(&name("a.service")).is_none());
    let request = desk.start("a.service");
    assert!(desk.refusal(request).is_some());
}

#[test]
fn a_new_file_is_wanted_by_a_target_that_is_up() {
    let all = || unit("all.target", |_| {});
    let mut desk = Desk::new([all()]);
    desk.start("all.target");
    desk.load([
        all(),
        unit("new.service", |u| {
            u.enabled = true;
            u.install.wanted_by.insert(name("all.target"));
        }),
    ]);
    assert_eq!(desk.sub("new.service"), "dead", "a load starts nothing");
    desk.start("all.target");
    assert_eq!(desk.sub("new.service"), "start");
}

#[test]
fn a_unit_answers_to_its_aliases() {
    let mut desk = Desk::new([unit("a.service", |u| u.aliases.push(name("alias.service")))]);
    let start = desk.start("alias.service");
    desk.up("a.service");
    assert_eq!(desk.result(start), Some(JobResult::Done));
    assert_eq!(desk.view("alias.service").unit.name, name("a.service"));
    assert_eq!(desk.manager.units().count(), 1);
}

#[test]
fn a_hard_cycle_that_a_load_brings_under_waiting_jobs_stops_nobody_for_ever() {
    let plain = |own: &str, after: &str| {
        unit(own, |u| {
            u.unit.after.insert(name(after));
        })
    };
    let first = || service("first.service", |s| s.service_type = ServiceType::Oneshot);
    let mut desk =
        Desk::new([first(), plain("a.service", "first.service"), plain("b.service", "first.service")]);
    desk.start("first.service");
    desk.start("a.service");
    desk.start("b.service");
    desk.load([
        first(),
        unit("a.service", |u| {
            u.unit.after.extend([name("first.service"), name("b.service")]);
        }),
        unit("b.service", |u| {
            u.unit.after.extend([name("first.service"), name("a.service")]);
        }),
    ]);
    desk.up("first.service");
    desk.die("first.service", CLEAN);
    for unit in ["a.service", "b.service"] {
        if desk.sub(unit) == "start" {
            desk.up(unit);
        }
    }
    for unit in ["b.service", "a.service"] {
        if desk.sub(unit) == "start" {
            desk.up(unit);
        }
    }
    assert_eq!(
        (desk.view("a.service").active, desk.view("b.service").active),
        (ActiveState::Active, ActiveState::Active)
    );
}
