//! Random units: all kinds of edges, all kinds of services.
//!
//! In most worlds orders lead from later units to earlier ones, so that the order of starts and stops can be judged;
//! in a tangled world edges lead anywhere, and cycles are many.

use std::time::Duration;

use agentd_unit::sections::{
    Action, AgentLife, CollectMode, Condition, ExitType, HookMode, PathSection, RestartMode, SocketSection,
    SystemWide, Test, TimeoutMode,
};
use agentd_unit::{
    AgentSection, Body, ExecCommand, KillMode, LoadState, NotifyAccess, Restart, ServiceSection, ServiceType,
    TimerSection, TimerTrigger, Unit, UnitName, UnitType,
};

use super::dice::{Dice, UNIT};

/// Who is there, and who was left out.
pub(super) struct Cast<'a> {
    pub(super) seed: u64,
    pub(super) names: &'a [UnitName],
    pub(super) absent: &'a dyn Fn(usize) -> bool,
    pub(super) tangled: bool,
    /// Edges are many.
    pub(super) dense: bool,
    /// No KillMode lets a process live on: where answers are lost, only the empty cgroup tells of an end.
    pub(super) whole: bool,
}

pub(super) fn names(count: u64) -> Vec<UnitName> {
    let ending = |i: u64| match i % 9 {
        3 => "socket",
        8 => "path",
        5 => "target",
        6 => "timer",
        _ => "service",
    };
    (0..count).map(|i| UnitName::parse(&format!("u{i:03}.{}", ending(i))).unwrap()).collect()
}

impl Cast<'_> {
    /// One version of a unit; `None`: it has no file in this version.
    pub(super) fn unit(&self, i: usize, version: u64) -> Option<Unit> {
        let mut dice = Dice::of(self.seed, &[UNIT, i as u64, version]);
        if dice.once_in(25) {
            return None;
        }
        let name = &self.names[i];
        let mut unit = Unit::not_found(name.clone());
        unit.load = if dice.once_in(40) { LoadState::Masked } else { LoadState::Loaded };
        unit.enabled = true;
        unit.implicit_order = !dice.once_in(4);
        unit.unit.default_dependencies = dice.once_in(2);
        self.edges(&mut dice, &mut unit, i);
        match name.unit_type() {
            UnitType::Service => service(&mut dice, &mut unit, self.whole),
            UnitType::Timer => self.timer(&mut dice, &mut unit),
            UnitType::Socket => self.socket(&mut dice, &mut unit),
            UnitType::Path => self.path(&mut dice, &mut unit),
            _ => {}
        }
        // From a stream of its own: a world with slices is else the same as one without.
        let mut dice = Dice::of(self.seed, &[UNIT, i as u64, version, 1]);
        if let Body::Service(body) = &mut unit.body {
            let slice = *dice.pick(&["system.slice", "s.slice", "s-t.slice", "s-t-u.slice", "v.slice"]);
            body.service.slice = UnitName::parse(slice).ok();
        }
        // Half of the versions have the same bytes as another: what differs came from outside of the files.
        unit.digest = [(version % 2) as u8; 32];
        Some(unit)
    }

    fn pick(&self, dice: &mut Dice, from: std::ops::Range<usize>) -> Option<UnitName> {
        if from.is_empty() {
            return None;
        }
        let i = from.start + dice.below(from.len() as u64) as usize;
        (!(self.absent)(i)).then(|| self.names[i].clone())
    }

    fn edges(&self, dice: &mut Dice, unit: &mut Unit, i: usize) {
        let all = 0..self.names.len();
        let earlier = if self.tangled { all.clone() } else { 0..i };
        let later = if self.tangled { all.clone() } else { i + 1..self.names.len() };
        let (section, install) = (&mut unit.unit, &mut unit.install);
        for _ in 0..dice.below(if self.dense { 9 } else { 4 }) {
            let list = match dice.below(11) {
                0..2 => &mut section.requires,
                2..4 => &mut section.wants,
                4 => &mut section.binds_to,
                5 => &mut section.part_of,
                6 => &mut section.upholds,
                7 => &mut section.requisite,
                8 => &mut section.after,
                9 => &mut section.stop_propagated_from,
                _ => &mut section.propagates_stop_to,
            };
            list.extend(self.pick(dice, earlier.clone()));
        }
        if dice.once_in(3) {
            let list = match dice.below(5) {
                0..2 => &mut section.before,
                2 => &mut install.required_by,
                3 => &mut install.wanted_by,
                _ => &mut install.upheld_by,
            };
            list.extend(self.pick(dice, later));
        }
        for (chance, list) in [
            (12, &mut section.conflicts),
            (10, &mut section.on_failure),
            (15, &mut section.on_success),
            (15, &mut section.propagates_reload_to),
            (20, &mut section.reload_propagated_from),
        ] {
            if dice.once_in(chance) {
                list.extend(self.pick(dice, all.clone()));
            }
        }
        let modes = [HookMode::Fail, HookMode::Isolate, HookMode::IgnoreDependencies, HookMode::Replace];
        section.on_failure_job_mode = *dice.pick(&modes);
        if dice.once_in(8) {
            let assert = dice.once_in(3);
            let (test, parameter) = (Test::PathExists, "/some".to_owned());
            section.conditions.push(Condition { test, parameter, negate: false, trigger: false, assert });
        }
        section.job_timeout = Some(Duration::from_secs(2 + dice.below(20))).filter(|_| dice.once_in(12));
        section.system.job_running_timeout =
            Some(Duration::from_secs(2 + dice.below(10))).filter(|_| dice.once_in(12));
        section.system.allow_isolate = dice.once_in(2);
        section.system.ignore_on_isolate = Some(dice.once_in(2)).filter(|_| dice.once_in(6));
        endings(dice, &mut section.system);
        section.stop_when_unneeded = dice.once_in(12);
        if dice.once_in(8) {
            section.system.collect_mode = CollectMode::InactiveOrFailed;
        }
        section.start_limit_burst = 1 + dice.below(6) as u32;
        section.start_limit_interval = Duration::from_secs(10 + dice.below(3) * 10);
    }

    fn a_service(&self, dice: &mut Dice) -> Option<UnitName> {
        let found = (0..4).find_map(|_| {
            self.pick(dice, 0..self.names.len()).filter(|name| name.unit_type() == UnitType::Service)
        });
        found.filter(|_| !dice.once_in(20))
    }

    fn socket(&self, dice: &mut Dice, unit: &mut Unit) {
        let limit = |dice: &mut Dice| Some(dice.below(6) as u32).filter(|_| !dice.once_in(3));
        unit.body = Body::Socket(Box::new(SocketSection {
            accept: dice.once_in(4),
            service: self.a_service(dice),
            max_connections: 1 + dice.below(3) as u32,
            max_connections_per_source: dice.below(3) as u32,
            trigger_limit_burst: limit(dice),
            poll_limit_burst: limit(dice),
            timeout: Some(Duration::from_secs(1 + dice.below(5))),
            ..SocketSection::default()
        }));
    }

    fn path(&self, dice: &mut Dice, unit: &mut Unit) {
        unit.body = Body::Path(Box::new(PathSection {
            unit: self.a_service(dice),
            trigger_limit_burst: 1 + dice.below(6) as u32,
            ..PathSection::default()
        }));
    }

    fn timer(&self, dice: &mut Dice, unit: &mut Unit) {
        let span = Duration::from_secs(2 + dice.below(20));
        let trigger = match dice.below(5) {
            0 => TimerTrigger::Active(span),
            1 => TimerTrigger::Boot(span),
            2 => TimerTrigger::Startup(span),
            3 => TimerTrigger::UnitActive(span),
            _ => TimerTrigger::UnitInactive(span),
        };
        let target = self.pick(dice, 0..self.names.len()).filter(|target| *target != unit.name);
        unit.body = Body::Timer(Box::new(TimerSection {
            triggers: vec![trigger],
            unit: target,
            ..TimerSection::default()
        }));
    }
}

/// In few worlds a unit ends everything.
fn endings(dice: &mut Dice, system: &mut SystemWide) {
    if !dice.once_in(60) {
        return;
    }
    let key = match dice.below(4) {
        0 => &mut system.failure_action,
        1 => &mut system.success_action,
        2 => &mut system.start_limit_action,
        _ => &mut system.job_timeout_action,
    };
    *key = *dice.pick(&[Action::Reboot, Action::Poweroff, Action::Exit, Action::ExitForce]);
}

pub(super) fn command(dice: &mut Dice) -> ExecCommand {
    ExecCommand {
        program: "/bin/agent".to_owned(),
        argv: vec!["agent".to_owned()],
        ignore_failure: dice.once_in(5),
        full_privileges: false,
        no_setuid: false,
        expand_environment: true,
    }
}

fn service(dice: &mut Dice, unit: &mut Unit, whole: bool) {
    let service_type = *dice.pick(&[
        ServiceType::Simple,
        ServiceType::Exec,
        ServiceType::Notify,
        ServiceType::NotifyReload,
        ServiceType::Forking,
        ServiceType::Forking,
        ServiceType::Idle,
        ServiceType::Oneshot,
    ]);
    let oneshot = service_type == ServiceType::Oneshot;
    let restart = *dice.pick(&[
        Restart::No,
        Restart::No,
        Restart::Always,
        Restart::OnFailure,
        Restart::OnFailure,
        Restart::OnAbnormal,
        Restart::OnWatchdog,
    ]);
    let mut service = ServiceSection {
        service_type,
        notify_access: NotifyAccess::Main,
        restart: if oneshot && restart == Restart::Always { Restart::OnFailure } else { restart },
        restart_sec: Duration::from_millis(*dice.pick(&[0, 100, 1000])),
        restart_steps: dice.below(3) as u32,
        restart_max_delay: Some(Duration::from_secs(2)).filter(|_| dice.once_in(2)),
        timeout_start: Some(Duration::from_secs(1 + dice.below(5))),
        timeout_stop: Some(Duration::from_secs(1 + dice.below(5))),
        runtime_max: Some(Duration::from_secs(20)).filter(|_| dice.once_in(8)),
        watchdog: Some(Duration::from_secs(1 + dice.below(3))).filter(|_| dice.once_in(4)),
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
    if service_type == ServiceType::Forking {
        service.watchdog = None; // Its daemon says nothing.
        let path = || std::path::PathBuf::from("/run/some.pid");
        service.life.pid_file = (!dice.once_in(3)).then(path);
        service.life.guess_main_pid = dice.once_in(4).then_some(false);
    }
    if dice.once_in(3) {
        service.life.restart_mode = RestartMode::Direct;
    }
    if whole && service.kill_mode != KillMode::Mixed {
        service.kill_mode = KillMode::ControlGroup;
    }
    service.exec_start = (0..if oneshot { 1 + dice.below(2) } else { 1 }).map(|_| command(dice)).collect();
    for list in [
        &mut service.life.exec_condition,
        &mut service.exec_start_pre,
        &mut service.exec_start_post,
        &mut service.exec_reload,
        &mut service.exec_stop,
        &mut service.exec_stop_post,
    ] {
        if dice.once_in(5) {
            *list = (0..1 + dice.below(2)).map(|_| command(dice)).collect();
        }
    }
    ends(dice, &mut service);
    if let Body::Service(body) = &mut unit.body {
        body.agent = dice.once_in(4).then(|| agent(dice, &mut service));
        body.service = service;
    }
}

/// How the ends of a life are told from others.
fn ends(dice: &mut Dice, service: &mut ServiceSection) {
    let modes = [TimeoutMode::Terminate, TimeoutMode::Terminate, TimeoutMode::Abort, TimeoutMode::Kill];
    service.life.timeout_start_mode = *dice.pick(&modes);
    service.life.timeout_stop_mode = *dice.pick(&modes);
    service.life.timeout_abort = dice.once_in(4).then(|| Some(Duration::from_secs(1 + dice.below(3))));
    service.life.runtime_extra = Duration::from_secs(dice.below(4));
    if service.service_type != ServiceType::Oneshot && dice.once_in(6) {
        service.life.exit_type = ExitType::Cgroup;
    }
}

/// An agent that minds its rows of restarts.
fn agent(dice: &mut Dice, service: &mut ServiceSection) -> Box<AgentSection> {
    let restart_factor = dice.once_in(2).then(|| *dice.pick(&[100, 150, 200, 300]));
    if restart_factor.is_some() {
        service.restart_max_delay = Some(Duration::from_secs(2)); // A world does not last for a day.
    }
    let life = AgentLife {
        restart_factor,
        restart_randomized_delay: Duration::from_millis(*dice.pick(&[0, 0, 500])),
        max_restarts: dice.once_in(2).then(|| dice.below(5) as u32),
        restart_reset: (!dice.once_in(4)).then(|| Duration::from_secs(1 + dice.below(10))),
        min_ready: Duration::from_secs(dice.below(4)),
        ..AgentLife::default()
    };
    Box::new(AgentSection { life, ..AgentSection::default() })
}
