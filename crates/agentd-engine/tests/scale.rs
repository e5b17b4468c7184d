//! Ten thousand units with fifty thousand edges are planned, started and stopped in time that grows with their number.

mod desk;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentd_engine::{Effect, Event, ExitStatus, JobResult, Request, ShutdownKind, SpawnFailureKind};
use agentd_unit::{Signal, Unit};
use desk::*;

/// A target that wants `count` services; each is ordered after five of the ones before it, the same every time.
fn dag(count: u64) -> Vec<Unit> {
    let service_name = |i: u64| name(&format!("s{i:05}.service"));
    let mut units: Vec<Unit> = (0..count)
        .map(|i| {
            unit(service_name(i).as_str(), |u| {
                section(u).slice = Some(name("system.slice"));
                for k in 1..=5_u64 {
                    let other = (i * 7919 + k * 104_729) % (i + 1);
                    if other != i {
                        let section = &mut u.unit;
                        let list = if k == 1 { &mut section.requires } else { &mut section.after };
                        list.insert(service_name(other));
                    }
                }
            })
        })
        .collect();
    units.push(unit("all.target", |u| u.unit.wants.extend((0..count).map(service_name))));
    units
}

/// Executes everything that is asked for at once, until nothing more is.
fn serve(desk: &mut Desk) {
    loop {
        let news = desk.news();
        if news.is_empty() {
            return;
        }
        for effect in news {
            match effect {
                Effect::Spawn(spawn) => {
                    desk.event(Event::Spawned { id: spawn.id, run: spawn.run, result: Ok(7) });
                }
                Effect::AwaitEmpty { id, run } => {
                    if let Some(id) = desk.main_of(run) {
                        let status = ExitStatus::Killed(Signal::TERM);
                        desk.event(Event::Exited { id, run, status });
                    }
                    desk.event(Event::Emptied { id, run });
                }
                _ => {}
            }
        }
    }
}

fn lives(count: u64) -> [Duration; 4] {
    let units = dag(count);
    let began = Instant::now();
    let mut desk = Desk::new(units);
    let loaded = began.elapsed();
    let start = desk.start("all.target");
    let planned = began.elapsed() - loaded;
    serve(&mut desk);
    let started = began.elapsed() - loaded;
    assert_eq!(desk.result(start), Some(JobResult::Done));
    desk.request(Request::Shutdown { kind: ShutdownKind::Poweroff });
    serve(&mut desk);
    let stopped = began.elapsed() - loaded - started;
    assert!(desk.effects.contains(&Effect::Shutdown { kind: ShutdownKind::Poweroff, argument: None }));
    [loaded, planned, started, stopped]
}

#[test]
fn ten_thousand_units_start_and_stop_within_the_time_of_a_linear_engine() {
    let _alone = alone();
    for count in [100, 1_000, 10_000] {
        let [load, plan, start, stop] = lives(count);
        println!("{count:>6} units: load {load:?}, plan {plan:?}, start {start:?}, stop {stop:?}");
        // A quadratic engine takes minutes for the last one; a busy machine does not make a linear one take so long.
        assert!(load + start + stop < Duration::from_secs(30), "{count} units");
    }
}

#[test]
fn a_chain_of_ten_thousand_fails_from_its_first_to_its_last_without_end_of_the_stack() {
    let _alone = alone();
    let link = |i: u64| name(&format!("s{i:05}.service"));
    let units = (0..10_000).map(|i| {
        unit(link(i).as_str(), |u| {
            if i > 0 {
                u.unit.requires.insert(link(i - 1));
            }
        })
    });
    let mut desk = Desk::new(units);
    let start = desk.start("s09999.service");
    desk.fail_spawn("s00000.service", SpawnFailureKind::Step { exit_status: 203 });
    desk.empty("s00000.service");
    assert_eq!(desk.result(start), Some(JobResult::Dependency));
    assert_eq!(desk.failure("s00001.service"), "s00000.service failed to start");
}

/// Held by each test: what one takes of memory is measured while no other takes any.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of this process that is in use, proc(5) "statm".
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default();
    pages * 4096
}

/// What the engine keeps of an idle unit with five edges, besides its definition.
#[test]
fn an_idle_unit_takes_less_than_two_kib() {
    let _alone = alone();
    let count = 10_000;
    let mut set = agentd_unit::UnitSet::new();
    dag(count).into_iter().for_each(|unit| set.insert(unit));
    let mut manager =
        agentd_engine::Manager::new(agentd_engine::Config::default(), agentd_engine::Now::default());
    let before = resident();
    manager.handle(Event::UnitsLoaded(set.clone()), agentd_engine::Now::default(), &mut Vec::new());
    let each = resident().saturating_sub(before) / count;
    println!("{each} bytes a unit, without its definition");
    assert!(each < 2048, "{each} bytes");
    drop(manager);
}
