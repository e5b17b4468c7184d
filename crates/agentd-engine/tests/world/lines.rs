//! What happens, in lines that a person can follow: a definition shows only what it says.

use std::fmt::Write as _;

use agentd_engine::{Effect, Event, JobView};
use agentd_unit::sections::{Action, CollectMode, ExitType, RestartMode, TimeoutMode};
use agentd_unit::{Body, LoadState, Unit};

pub(super) fn event(event: &Event) -> String {
    let Event::UnitsLoaded(set) = event else { return format!("{event:?}") };
    let mut text = "UnitsLoaded".to_owned();
    for unit in set.iter() {
        write!(text, "\n        {}", definition(unit)).unwrap();
    }
    text
}

pub(super) fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Spawn(spawn) => {
            format!("Spawn {} {} {} {:?} {:?}", spawn.unit.name, spawn.kind, spawn.index, spawn.id, spawn.run)
        }
        Effect::Listen { id, unit } => format!("Listen {id:?} {}", unit.name),
        Effect::Watch { id, unit, .. } => format!("Watch {id:?} {}", unit.name),
        Effect::Accept { id, unit, number } => format!("Accept {id:?} {} {number}", unit.name),
        Effect::Check { id, unit } => format!("Check {id:?} {}", unit.name),
        Effect::Log(record) => format!("Log {}", record.text),
        other => format!("{other:?}"),
    }
}

pub(super) fn jobs(jobs: &[JobView]) -> String {
    let mut text = String::new();
    for job in jobs {
        let state = if job.running { "runs" } else { "waits" };
        write!(text, "{} {} {} {state} ", job.id.0, job.kind.as_str(), job.unit).unwrap();
        for other in &job.waits_for {
            write!(text, "for {other} ").unwrap();
        }
    }
    text
}

fn definition(unit: &Unit) -> String {
    let (section, install) = (&unit.unit, &unit.install);
    let mut text = unit.name.to_string();
    if unit.load != LoadState::Loaded {
        write!(text, " ({})", unit.load).unwrap();
    }
    for (key, names) in [
        ("Requires", &section.requires),
        ("Requisite", &section.requisite),
        ("Wants", &section.wants),
        ("BindsTo", &section.binds_to),
        ("PartOf", &section.part_of),
        ("Upholds", &section.upholds),
        ("Conflicts", &section.conflicts),
        ("Before", &section.before),
        ("After", &section.after),
        ("OnFailure", &section.on_failure),
        ("OnSuccess", &section.on_success),
        ("PropagatesReloadTo", &section.propagates_reload_to),
        ("ReloadPropagatedFrom", &section.reload_propagated_from),
        ("PropagatesStopTo", &section.propagates_stop_to),
        ("StopPropagatedFrom", &section.stop_propagated_from),
        ("WantedBy", &install.wanted_by),
        ("RequiredBy", &install.required_by),
        ("UpheldBy", &install.upheld_by),
    ] {
        for name in names {
            write!(text, " {key}={name}").unwrap();
        }
    }
    for (key, holds) in [
        ("StopWhenUnneeded", section.stop_when_unneeded),
        ("DefaultDependencies", section.default_dependencies),
        ("implied-order", unit.implicit_order),
        ("AllowIsolate", section.system.allow_isolate),
        ("IgnoreOnIsolate", section.system.ignore_on_isolate == Some(true)),
    ] {
        if holds {
            write!(text, " {key}").unwrap();
        }
    }
    for condition in &section.conditions {
        write!(text, " {condition}").unwrap();
    }
    if let Some(timeout) = section.job_timeout {
        write!(text, " JobTimeoutSec={timeout:?}").unwrap();
    }
    let system = &section.system;
    if system.collect_mode == CollectMode::InactiveOrFailed {
        text.push_str(" CollectMode=inactive-or-failed");
    }
    if let Some(timeout) = system.job_running_timeout {
        write!(text, " JobRunningTimeoutSec={timeout:?}").unwrap();
    }
    for (key, action) in [
        ("FailureAction", system.failure_action),
        ("SuccessAction", system.success_action),
        ("StartLimitAction", system.start_limit_action),
        ("JobTimeoutAction", system.job_timeout_action),
    ] {
        if action != Action::None {
            write!(text, " {key}={action:?}").unwrap();
        }
    }
    match &unit.body {
        Body::Service(body) => {
            text.push_str(&service(&body.service));
            if let Some(agent) = &body.agent {
                let life = &agent.life;
                write!(
                    text,
                    " RestartFactor={:?} RestartRandomizedDelaySec={:?} MaxRestarts={:?} RestartResetSec={:?} MinReadySec={:?}",
                    life.restart_factor,
                    life.restart_randomized_delay,
                    life.max_restarts,
                    life.restart_reset,
                    life.min_ready
                )
                .unwrap();
            }
        }
        Body::Socket(socket) => write!(
            text,
            " Accept={} Service={:?} TriggerLimitBurst={:?} PollLimitBurst={:?}",
            socket.accept, socket.service, socket.trigger_limit_burst, socket.poll_limit_burst
        )
        .unwrap(),
        Body::Path(path) => {
            write!(text, " Unit={:?} TriggerLimitBurst={}", path.unit, path.trigger_limit_burst).unwrap()
        }
        Body::Timer(timer) => write!(text, " {:?} Unit={:?}", timer.triggers, timer.unit).unwrap(),
        _ => {}
    }
    text
}

fn service(service: &agentd_unit::ServiceSection) -> String {
    let mut text = format!(
        " Slice={} Type={:?} Restart={:?} RestartSec={:?} TimeoutStartSec={:?} TimeoutStopSec={:?} KillMode={:?}",
        service.slice.as_ref().map_or("", |slice| slice.as_str()),
        service.service_type,
        service.restart,
        service.restart_sec,
        service.timeout_start,
        service.timeout_stop,
        service.kill_mode
    );
    for (key, span) in [("RuntimeMaxSec", service.runtime_max), ("WatchdogSec", service.watchdog)] {
        if let Some(span) = span {
            write!(text, " {key}={span:?}").unwrap();
        }
    }
    if service.life.restart_mode == RestartMode::Direct {
        text.push_str(" RestartMode=direct");
    }
    if service.remain_after_exit {
        text.push_str(" RemainAfterExit");
    }
    if service.life.exit_type == ExitType::Cgroup {
        text.push_str(" ExitType=cgroup");
    }
    for (key, mode) in [
        ("TimeoutStartFailureMode", service.life.timeout_start_mode),
        ("TimeoutStopFailureMode", service.life.timeout_stop_mode),
    ] {
        if mode != TimeoutMode::Terminate {
            write!(text, " {key}={mode:?}").unwrap();
        }
    }
    for (key, list) in [
        ("ExecCondition", &service.life.exec_condition),
        ("ExecStartPre", &service.exec_start_pre),
        ("ExecStartPost", &service.exec_start_post),
        ("ExecReload", &service.exec_reload),
        ("ExecStop", &service.exec_stop),
        ("ExecStopPost", &service.exec_stop_post),
    ] {
        for command in list {
            write!(text, " {key}={}", if command.ignore_failure { "-" } else { "" }).unwrap();
        }
    }
    text
}
