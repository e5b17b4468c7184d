//! `[Unit]`, systemd.unit(5).

use super::slot::{names, put};
use super::{Setting, Slot};
use crate::sections::HookMode;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new("Description", Slot::Text(|d| &mut d.unit.description), "A name for people."),
    Setting::new("Documentation", Slot::Texts(|d| &mut d.unit.documentation), "URIs of what to read."),
    Setting::new(
        "Requires",
        Slot::Units(|d| &mut d.unit.requires),
        "Started too, and first; if one fails to start, so does this unit; it stops with them.",
    ),
    Setting::new("Requisite", Slot::Units(|d| &mut d.unit.requisite), "Must be active already."),
    Setting::new(
        "Wants",
        Slot::Units(|d| &mut d.unit.wants),
        "Started too, and first, whatever comes of it.",
    ),
    Setting::new(
        "BindsTo",
        Slot::Units(|d| &mut d.unit.binds_to),
        "As Requires, and this unit stops when one of them leaves active for any reason.",
    ),
    Setting::new("PartOf", Slot::Units(|d| &mut d.unit.part_of), "Stopped and restarted with them."),
    Setting::new("Upholds", Slot::Units(|d| &mut d.unit.upholds), "Kept running while this unit is active."),
    Setting::new("Conflicts", Slot::Units(|d| &mut d.unit.conflicts), "Never active at the same time."),
    Setting::new(
        "Before",
        Slot::Units(|d| &mut d.unit.before),
        "They start after this unit and stop before it.",
    ),
    Setting::new(
        "After",
        Slot::Units(|d| &mut d.unit.after),
        "This unit starts after them and stops before them.",
    ),
    Setting::new(
        "OnFailure",
        Slot::Units(|d| &mut d.unit.on_failure),
        "Started once when this unit fails for good.",
    ),
    Setting::new(
        "OnSuccess",
        Slot::Units(|d| &mut d.unit.on_success),
        "Started when this unit ends in success.",
    ),
    Setting::new(
        "OnFailureJobMode",
        Slot::Choice(names::<HookMode>, |d, word| put(&mut d.unit.on_failure_job_mode, word)),
        "How OnFailure meets jobs that are there; default replace.",
    ),
    Setting::new(
        "OnSuccessJobMode",
        Slot::Choice(names::<HookMode>, |d, word| put(&mut d.unit.on_success_job_mode, word)),
        "How OnSuccess meets jobs that are there; default replace.",
    ),
    Setting::new(
        "JobTimeoutSec",
        Slot::Timeout(|d| &mut d.unit.job_timeout),
        "How long a job of this unit may wait and run before it is given up; default infinity.",
    ),
    Setting::new(
        "PropagatesReloadTo",
        Slot::Units(|d| &mut d.unit.propagates_reload_to),
        "Reloaded when this unit is.",
    ),
    Setting::new(
        "ReloadPropagatedFrom",
        Slot::Units(|d| &mut d.unit.reload_propagated_from),
        "This unit is reloaded when they are.",
    ),
    Setting::new(
        "PropagatesStopTo",
        Slot::Units(|d| &mut d.unit.propagates_stop_to),
        "Stopped when this unit is.",
    ),
    Setting::new(
        "StopPropagatedFrom",
        Slot::Units(|d| &mut d.unit.stop_propagated_from),
        "This unit is stopped when they are.",
    ),
    Setting::new(
        "DefaultDependencies",
        Slot::Bool(|d| &mut d.unit.default_dependencies),
        "Start after basic.target and stop at shutdown.target; default yes.",
    ),
    Setting::new(
        "StopWhenUnneeded",
        Slot::Bool(|d| &mut d.unit.stop_when_unneeded),
        "Stop when no active unit needs it any more; default no.",
    ),
    Setting::new(
        "RefuseManualStart",
        Slot::Bool(|d| &mut d.unit.refuse_manual_start),
        "Started as a dependency alone; default no.",
    ),
    Setting::new(
        "RefuseManualStop",
        Slot::Bool(|d| &mut d.unit.refuse_manual_stop),
        "Stopped as a dependency alone; default no.",
    ),
    Setting::new(
        "StartLimitIntervalSec",
        Slot::Span(|d| &mut d.unit.start_limit_interval),
        "The time in which starts are counted; default 10 s, 0 counts none.",
    ),
    Setting::new(
        "StartLimitBurst",
        Slot::Count(|d| &mut d.unit.start_limit_burst),
        "How many starts that time may have; default 5, 0 means any number.",
    ),
];
