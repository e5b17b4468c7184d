//! When timers fire, on which clock, and what they do while their unit still runs.

mod desk;

use agentd_engine::{ActiveState, Config, Effect, Event, JobResult};
use agentd_unit::LocalZone;
use agentd_unit::calendar::CalendarSpec;
use agentd_unit::{Realtime, ServiceType, TimerTrigger, Unit};
use desk::*;

fn calendar(text: &str) -> TimerTrigger {
    match CalendarSpec::parse(text, &LocalZone::utc()) {
        Ok(spec) => TimerTrigger::Calendar(spec),
        Err(refused) => panic!("{text}: {refused:?}"),
    }
}

fn job() -> Unit {
    service("job.service", |s| s.service_type = ServiceType::Oneshot)
}

fn desk(triggers: Vec<TimerTrigger>) -> Desk {
    let mut desk = Desk::new([timer("job.timer", triggers, false), job()]);
    let start = desk.start("job.timer");
    assert_eq!(desk.result(start), Some(JobResult::Done));
    desk
}

/// Lets time go on; each run of the job takes no time at all. At which seconds did it start?
fn fires(desk: &mut Desk, seconds: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    for second in 1..=seconds {
        desk.advance(secs(1));
        if desk.view("job.service").main.is_none() && desk.sub("job.service") == "start" {
            desk.up("job.service");
            desk.die("job.service", CLEAN);
            seen.push(second);
        }
    }
    seen
}

#[test]
fn each_span_counts_from_its_own_point() {
    // The desk begins 1000 s after the boot, with the start of the manager.
    for (case, trigger, expected) in [
        ("after activation, once", TimerTrigger::Active(secs(3)), vec![3]),
        ("after boot, once", TimerTrigger::Boot(secs(1004)), vec![4]),
        ("after the manager's start, once", TimerTrigger::Startup(secs(2)), vec![2]),
        ("after the unit's last start", TimerTrigger::UnitActive(secs(4)), vec![4, 8, 12]),
        ("after the unit's last end", TimerTrigger::UnitInactive(secs(5)), vec![5, 10]),
    ] {
        assert_eq!(fires(&mut desk(vec![trigger]), 12), expected, "{case}");
    }
}

#[test]
fn a_boot_time_that_is_past_fires_once_now() {
    let mut desk = desk(vec![TimerTrigger::Boot(secs(10))]);
    desk.event(Event::Tick);
    assert_eq!(desk.sub("job.service"), "start");
    desk.up("job.service");
    desk.die("job.service", CLEAN);
    assert_eq!((desk.sub("job.timer"), fires(&mut desk, 5)), ("elapsed", vec![]));
}

#[test]
fn b094_a_restarted_interval_timer_goes_on() {
    let mut desk = desk(vec![TimerTrigger::UnitActive(secs(3))]);
    assert_eq!(fires(&mut desk, 7), [3, 6]);
    desk.stop("job.timer");
    desk.start("job.timer");
    assert_eq!(fires(&mut desk, 6), [2, 5]);
    assert!(desk.view("job.timer").timer.unwrap().next_boottime.is_some());
}

#[test]
fn a_fire_starts_its_unit_and_says_so() {
    let mut desk = desk(vec![TimerTrigger::Active(secs(1))]);
    desk.advance(secs(1));
    assert_eq!(
        desk.last_spawn("job.service").environment.trigger.map(|trigger| trigger.unit),
        Some(name("job.timer"))
    );
    assert_eq!(desk.sub("job.timer"), "running");
    let view = desk.view("job.timer").timer.unwrap();
    assert_eq!(view.last_trigger, Some(Realtime(DAY + 1_000_000)));
    assert_eq!(desk.view("job.service").triggered_by, [name("job.timer")]);
    desk.up("job.service");
    desk.die("job.service", CLEAN);
    assert_eq!(desk.sub("job.timer"), "elapsed");
}

#[test]
fn b100_what_is_due_while_the_unit_runs_is_skipped_and_counted() {
    let mut desk = desk(vec![calendar("*:*:0/2")]);
    desk.advance(secs(2));
    desk.up("job.service");
    desk.advance(secs(5));
    assert_eq!(desk.spawns("job.service").len(), 1);
    assert_eq!(desk.view("job.timer").timer.unwrap().skipped, 2);
    desk.die("job.service", CLEAN);
    desk.advance(secs(1));
    assert_eq!(desk.spawns("job.service").len(), 2);
}

#[test]
fn b090_a_step_of_the_clock_makes_up_for_one_fire_at_most() {
    let mut desk = desk(vec![calendar("*:*:0/5")]);
    assert_eq!(fires(&mut desk, 11), [5, 10]);
    desk.now.realtime = desk.now.realtime + secs(3600);
    desk.event(Event::ClockChanged);
    assert_eq!(desk.sub("job.service"), "start", "what was due fires first");
    desk.up("job.service");
    desk.die("job.service", CLEAN);
    assert_eq!(fires(&mut desk, 10), [4, 9]);
    desk.now.realtime = Realtime(desk.now.realtime.0 - 1_800_000_000);
    desk.event(Event::ClockChanged);
    assert_eq!(fires(&mut desk, 10), [4, 9], "no wait for the old time to come again");
}

#[test]
fn b092_spans_do_not_hear_of_the_wall_clock() {
    let mut desk = desk(vec![TimerTrigger::UnitActive(secs(4))]);
    desk.now.realtime = desk.now.realtime + secs(86_400);
    desk.event(Event::ClockChanged);
    assert_eq!(fires(&mut desk, 8), [4, 8]);
}

#[test]
fn b093_a_set_clock_between_expiry_and_tick_loses_no_fire() {
    let mut desk = desk(vec![calendar("*:*:0/5")]);
    desk.skip(millis(5500));
    desk.event(Event::ClockChanged);
    assert_eq!(desk.sub("job.service"), "start");
}

#[test]
fn a_persistent_timer_makes_up_for_what_was_missed_once_and_keeps_its_stamp() {
    for (stamp, missed) in [(None, false), (Some(Realtime(DAY - 3_600_000_000 * 30)), true)] {
        let stamps = stamp.map(|at| (name("job.timer"), at)).into_iter().collect();
        let config = Config { stamps, ..Config::default() };
        let mut desk = Desk::with(config, [timer("job.timer", vec![calendar("daily")], true), job()]);
        desk.start("job.timer");
        desk.event(Event::Tick);
        assert_eq!(desk.sub("job.service") == "start", missed);
        let saved: Vec<_> = desk.effects.iter().filter(|e| matches!(e, Effect::SaveStamp { .. })).collect();
        assert_eq!(saved.len(), 1, "at the first activation, or at the fire");
        if missed {
            desk.up("job.service");
            desk.die("job.service", CLEAN);
            desk.event(Event::Tick);
            assert_eq!(desk.spawns("job.service").len(), 1);
        }
    }
}

#[test]
fn b096_a_changed_schedule_counts_from_the_change() {
    let mut desk = desk(vec![calendar("*:*:0/10")]);
    assert_eq!(fires(&mut desk, 35), [10, 20, 30]);
    // Second 33 of each minute lies between the last fire and now.
    desk.load([timer("job.timer", vec![calendar("*:*:33")], false), job()]);
    assert_eq!(fires(&mut desk, 60), [58]);
}

#[test]
fn a_timer_without_a_unit_to_start_fails() {
    let mut desk = Desk::new([timer("job.timer", vec![TimerTrigger::Active(secs(1))], false)]);
    let start = desk.start("job.timer");
    assert_eq!(
        (desk.result(start), desk.view("job.timer").active),
        (Some(JobResult::Failed), ActiveState::Failed)
    );
    assert_eq!(desk.failure("job.timer"), "it starts job.service, which does not exist");
}

#[test]
fn a_stopped_timer_is_silent() {
    let mut desk = desk(vec![TimerTrigger::UnitActive(secs(2)), calendar("*:*:0/3")]);
    desk.stop("job.timer");
    let deadlines = desk.manager.deadlines();
    assert_eq!((deadlines.boottime, deadlines.realtime), (None, None));
    assert_eq!(fires(&mut desk, 10), []);
}
