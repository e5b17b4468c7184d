//! `[Service]`, systemd.service(5), systemd.exec(5), systemd.kill(5), systemd.resource-control(5).

use super::slot::{names, put};
use super::{Setting, Slot};
use crate::exec::ExecKind;
use crate::sections::{KillMode, NotifyAccess, Restart, ServiceType};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "Type",
        Slot::Choice(names::<ServiceType>, |d, word| put(&mut d.service.service_type, word)),
        "When the service counts as started; default simple, notify for a Python agent.",
    ),
    Setting::new(
        "ExecStartPre",
        Slot::Commands(ExecKind::StartPre),
        "Run before ExecStart, in order; each must succeed.",
    ),
    Setting::new(
        "ExecStart",
        Slot::Commands(ExecKind::Start),
        "The main process; several only for Type=oneshot.",
    ),
    Setting::new(
        "ExecStartPost",
        Slot::Commands(ExecKind::StartPost),
        "Run once the service counts as started.",
    ),
    Setting::new(
        "ExecReload",
        Slot::Commands(ExecKind::Reload),
        "Asks the service to read its configuration again.",
    ),
    Setting::new("ExecStop", Slot::Commands(ExecKind::Stop), "Asks the service to end."),
    Setting::new("ExecStopPost", Slot::Commands(ExecKind::StopPost), "Run when the last process is gone."),
    Setting::new(
        "RemainAfterExit",
        Slot::Bool(|d| &mut d.service.remain_after_exit),
        "Active after its processes are gone; default no.",
    ),
    Setting::new(
        "Restart",
        Slot::Choice(names::<Restart>, |d, word| put(&mut d.service.restart, word)),
        "Which ends are followed by a new start; default no.",
    ),
    Setting::new(
        "RestartSec",
        Slot::Span(|d| &mut d.service.restart_sec),
        "How long a restart waits; default 100 ms.",
    ),
    Setting::new(
        "RestartSteps",
        Slot::Count(|d| &mut d.service.restart_steps),
        "In how many steps the wait grows to RestartMaxDelaySec; default 0, no growth.",
    ),
    Setting::new(
        "RestartMaxDelaySec",
        Slot::Timeout(|d| &mut d.service.restart_max_delay),
        "Where the growth of the wait ends; default infinity, no growth.",
    ),
    Setting::new(
        "TimeoutStartSec",
        Slot::Timeout(|d| &mut d.service.timeout_start),
        "How long a start may take; default 90 s, infinity for oneshot.",
    ),
    Setting::new(
        "TimeoutStopSec",
        Slot::Timeout(|d| &mut d.service.timeout_stop),
        "How long a stop may take before SIGKILL; default 90 s.",
    ),
    Setting::new("TimeoutSec", Slot::BothTimeouts, "TimeoutStartSec and TimeoutStopSec in one."),
    Setting::new(
        "RuntimeMaxSec",
        Slot::Timeout(|d| &mut d.service.runtime_max),
        "How long it may run; default infinity, 30 s for a service with its own [Timer].",
    ),
    Setting::new(
        "WatchdogSec",
        Slot::Timeout(|d| &mut d.service.watchdog),
        "The longest silence before the service counts as hung; default 0, no watchdog.",
    ),
    Setting::new(
        "NotifyAccess",
        Slot::Choice(names::<NotifyAccess>, |d, word| put(&mut d.service.notify_access, word)),
        "Whose notifications count; default none, main where Type, WatchdogSec or FileDescriptorStoreMax needs it.",
    ),
    Setting::new(
        "KillSignal",
        Slot::Signal(|d| &mut d.service.kill_signal),
        "What a stop sends; default SIGTERM.",
    ),
    Setting::new(
        "KillMode",
        Slot::Choice(names::<KillMode>, |d, word| put(&mut d.service.kill_mode, word)),
        "Which processes a stop reaches; default control-group, all of them.",
    ),
    Setting::new("Environment", Slot::Environment, "Variables for its processes, as a table."),
    Setting::new(
        "WorkingDirectory",
        Slot::WorkingDirectory,
        "Where its processes start; default /; with - in front it may be missing.",
    ),
    Setting::new(
        "User",
        Slot::Principal(|d| &mut d.service.user),
        "Who its processes run as; default: the manager.",
    ),
    Setting::new("Group", Slot::Principal(|d| &mut d.service.group), "Their group; default: the user's own."),
    Setting::new(
        "StateDirectory",
        Slot::LinkedPathsBelow(|d| &mut d.service.state_directory),
        "Folders below /var/lib, made before the start and owned by the user.",
    ),
    Setting::limit(
        "MemoryMax",
        Slot::Memory(|d| &mut d.service.memory_max),
        "How much memory all its processes may use together.",
    ),
    Setting::limit(
        "CPUQuota",
        Slot::CpuQuota(|d| &mut d.service.cpu_quota),
        "How much processor time they may use; 100% is one CPU.",
    ),
    Setting::limit(
        "TasksMax",
        Slot::Tasks(|d| &mut d.service.tasks_max),
        "How many tasks there may be at once.",
    ),
    Setting::new(
        "Slice",
        Slot::Slice(|d| &mut d.service.slice),
        "Its slice, which it requires and comes after; default system.slice.",
    ),
    Setting::new(
        "CapabilityBoundingSet",
        Slot::Capabilities(|d| &mut d.service.capability_bounding_set),
        "The only capabilities that its processes can ever have; default all; [] is none.",
    ),
    Setting::new(
        "AmbientCapabilities",
        Slot::Capabilities(|d| &mut d.ambient),
        "Capabilities that a process keeps when it is not root; default none.",
    ),
    Setting::new(
        "NoNewPrivileges",
        Slot::Bool(|d| &mut d.service.no_new_privileges),
        "No program it runs gains privileges; default no.",
    ),
];
