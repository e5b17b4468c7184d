//! The lives of single services.

mod desk;

use agentd_engine::{Effect, JobResult};
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
