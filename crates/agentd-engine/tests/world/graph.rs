//! Random sets of units: all kinds of edges, acyclic in their orders so that the order of starts can be judged.

use std::collections::BTreeMap;
use std::time::Duration;

use agentd_unit::{
    Body, ExecCommand, KillMode, LoadState, NotifyAccess, Restart, ServiceSection, ServiceType, TimerSection,
    TimerTrigger, Unit, UnitName, UnitSet, UnitType,
};

use super::{Dice, Program};

pub(super) fn names(count: u64) -> Vec<UnitName> {
    let ending = |i: u64| match i % 7 {
        5 => "target",
        6 => "timer",
        _ => "service",
    };
    (0..count).map(|i| UnitName::parse(&format!("u{i:02}.{}", ending(i))).unwrap()).collect()
}

pub(super) fn random(
    dice: &mut Dice,
    names: &[UnitName],
    programs: &mut BTreeMap<UnitName, Program>,
) -> UnitSet {
    let mut set = UnitSet::new();
    for (i, name) in names.iter().enumerate() {
        if dice.once_in(25) {
            continue; // No file this time.
        }
        let mut unit = Unit::not_found(name.clone());
        unit.load = if dice.once_in(40) { LoadState::Masked } else { LoadState::Loaded };
        unit.enabled = true;
        unit.implicit_order = !dice.once_in(4);
        unit.unit.default_dependencies = dice.once_in(2);
        edges(dice, &mut unit, names, i);
        match name.unit_type() {
            UnitType::Service => {
                let program = programs.entry(name.clone()).or_insert_with(|| Program::random(dice));
                service(dice, &mut unit, program);
            }
            UnitType::Timer => timer(dice, &mut unit, names),
            _ => {}
        }
        let digest = dice.below(3) as u8; // Three versions: a reload brings the same one back at times.
        unit.digest = [digest; 32];
        set.insert(unit);
    }
    set
}

/// Edges lead from later units to earlier ones, but for those that say nothing about order.
fn edges(dice: &mut Dice, unit: &mut Unit, names: &[UnitName], i: usize) {
    let earlier = &names[..i];
    let section = &mut unit.unit;
    if !earlier.is_empty() {
        for _ in 0..dice.below(4) {
            let other = dice.pick(earlier).clone();
            match dice.below(10) {
                0..2 => section.requires.insert(other),
                2..4 => section.wants.insert(other),
                4 => section.binds_to.insert(other),
                5 => section.part_of.insert(other),
                6 => section.upholds.insert(other),
                7 => section.requisite.insert(other),
                8 => section.after.insert(other),
                _ => section.propagates_stop_to.insert(other),
            };
        }
    }
    for (chance, list) in [
        (12, &mut section.conflicts),
        (10, &mut section.on_failure),
        (15, &mut section.on_success),
        (15, &mut section.propagates_reload_to),
    ] {
        if dice.once_in(chance) {
            list.insert(dice.pick(names).clone());
        }
    }
    section.stop_when_unneeded = dice.once_in(12);
    section.start_limit_burst = 1 + dice.below(6) as u32;
    section.start_limit_interval = Duration::from_secs(10 + dice.below(3) * 10);
}

fn command(dice: &mut Dice) -> ExecCommand {
    ExecCommand {
        program: "/bin/agent".to_owned(),
        argv: vec!["agent".to_owned()],
        ignore_failure: dice.once_in(5),
        full_privileges: false,
        no_setuid: false,
        expand_environment: true,
    }
}

fn service(dice: &mut Dice, unit: &mut Unit, program: &mut Program) {
    let mut service = ServiceSection {
        service_type: *dice.pick(&[
            ServiceType::Simple,
            ServiceType::Exec,
            ServiceType::Notify,
            ServiceType::Notify,
            ServiceType::Oneshot,
        ]),
        notify_access: NotifyAccess::Main,
        restart: *dice.pick(&[
            Restart::No,
            Restart::No,
            Restart::Always,
            Restart::OnFailure,
            Restart::OnFailure,
            Restart::OnAbnormal,
        ]),
        restart_sec: Duration::from_millis(*dice.pick(&[0, 100, 1000])),
        restart_steps: dice.below(3) as u32,
        restart_max_delay: Some(Duration::from_secs(2)).filter(|_| dice.once_in(2)),
        timeout_start: Some(Duration::from_secs(1 + dice.below(5))),
        timeout_stop: Some(Duration::from_secs(1 + dice.below(5))),
        runtime_max: Some(Duration::from_secs(20)).filter(|_| dice.once_in(8)),
        remain_after_exit: dice.once_in(4),
        kill_mode: *dice.pick(&[
            KillMode::ControlGroup,
            KillMode::ControlGroup,
            KillMode::ControlGroup,
            KillMode::Mixed,
            KillMode::Process,
            KillMode::None,
        ]),
        ..ServiceSection::default()
    };
    let oneshot = service.service_type == ServiceType::Oneshot;
    if oneshot && matches!(service.restart, Restart::Always) {
        service.restart = Restart::OnFailure;
    }
    program.lasts = oneshot.then(|| dice.below(500));
    service.exec_start = (0..if oneshot { 1 + dice.below(2) } else { 1 }).map(|_| command(dice)).collect();
    for list in [
        &mut service.exec_start_pre,
        &mut service.exec_start_post,
        &mut service.exec_reload,
        &mut service.exec_stop,
        &mut service.exec_stop_post,
    ] {
        if dice.once_in(5) {
            *list = vec![command(dice)];
        }
    }
    if let Body::Service(body) = &mut unit.body {
        body.service = service;
    }
}

fn timer(dice: &mut Dice, unit: &mut Unit, names: &[UnitName]) {
    let span = Duration::from_secs(2 + dice.below(20));
    let trigger = match dice.below(5) {
        0 => TimerTrigger::Active(span),
        1 => TimerTrigger::Boot(span),
        2 => TimerTrigger::Startup(span),
        3 => TimerTrigger::UnitActive(span),
        _ => TimerTrigger::UnitInactive(span),
    };
    let target = dice.pick(names).clone();
    let target = if target == unit.name { None } else { Some(target) };
    unit.body = Body::Timer(Box::new(TimerSection {
        triggers: vec![trigger],
        unit: target,
        ..TimerSection::default()
    }));
}
