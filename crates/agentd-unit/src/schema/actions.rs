//! The keys of `[Unit]` that concern the whole system, systemd.unit(5).

use super::apply::set;
use super::execution::scalar;
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::sections::{Action, CollectMode};
use crate::values::numbers;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::typed(
        "SourcePath",
        Slot::Path(|d| &mut d.unit.system.source_path),
        "The file that this one was generated from.",
        "nothing shows it yet",
    ),
    Setting::typed(
        "RequiresMountsFor",
        Slot::Paths(|d| &mut d.unit.system.requires_mounts_for),
        "Paths that are to be mounted before it starts.",
        "agentd mounts nothing yet: the machine's own set-up does, before it",
    ),
    Setting::new(
        "JoinsNamespaceOf",
        Slot::Units(|d| &mut d.unit.system.joins_namespace_of),
        "It has the network, the IPC and the temporary folders of the first of these that runs, and they have its, where both \
         have such of their own: PrivateNetwork, PrivateIPC, PrivateTmp.",
    ),
    Setting::new(
        "AllowIsolate",
        Slot::Bool(|d| &mut d.unit.system.allow_isolate),
        "agentctl isolate may be asked for it; default no.",
    ),
    Setting::new(
        "IgnoreOnIsolate",
        Slot::MaybeBool(|d| &mut d.unit.system.ignore_on_isolate),
        "An isolate of another unit leaves it alone; default no for services and targets.",
    ),
    Setting::new(
        "JobRunningTimeoutSec",
        Slot::Timeout(|d| &mut d.unit.system.job_running_timeout),
        "How long a job of this unit may run, counted from when its turn came, before it is given up; default infinity.",
    ),
    Setting::new(
        "JobTimeoutAction",
        Slot::Choice(names::<Action>, |d, word| put(&mut d.unit.system.job_timeout_action, word)),
        "What happens to the system when a job of this unit is given up; default none.",
    ),
    Setting::new(
        "SuccessAction",
        Slot::Choice(names::<Action>, |d, word| put(&mut d.unit.system.success_action, word)),
        "What happens to the system when the unit ends in success; default none.",
    ),
    Setting::new(
        "FailureAction",
        Slot::Choice(names::<Action>, |d, word| put(&mut d.unit.system.failure_action, word)),
        "What happens to the system when the unit fails; default none.",
    ),
    Setting::new(
        "StartLimitAction",
        Slot::Choice(names::<Action>, |d, word| put(&mut d.unit.system.start_limit_action, word)),
        "What happens to the system when StartLimitBurst is used up; default none.",
    ),
    Setting::new(
        "SuccessActionExitStatus",
        Slot::Own("number from 0 to 255", |value, d, cx| {
            let code = scalar(value, cx, "an exit code", |text| numbers::between(text, 0, 255));
            set(&mut d.unit.system.success_exit_status, code.map(|code| u8::try_from(code).ok()));
        }),
        "The manager's exit code after SuccessAction=exit; by default the main process's.",
    ),
    Setting::new(
        "FailureActionExitStatus",
        Slot::Own("number from 0 to 255", |value, d, cx| {
            let code = scalar(value, cx, "an exit code", |text| numbers::between(text, 0, 255));
            set(&mut d.unit.system.failure_exit_status, code.map(|code| u8::try_from(code).ok()));
        }),
        "The manager's exit code after FailureAction=exit; by default the main process's, or 128 and the signal's number.",
    ),
    Setting::new(
        "RebootArgument",
        Slot::Text(|d| &mut d.unit.system.reboot_argument),
        "Handed to reboot(2) by FailureAction, SuccessAction or StartLimitAction where that reboots.",
    ),
    Setting::new(
        "JobTimeoutRebootArgument",
        Slot::Text(|d| &mut d.unit.system.job_timeout_reboot_argument),
        "Handed to reboot(2) by JobTimeoutAction where that reboots.",
    ),
    Setting::new(
        "CollectMode",
        Slot::Choice(names::<CollectMode>, |d, word| put(&mut d.unit.system.collect_mode, word)),
        "Whether a failed unit is forgotten like an inactive one, unless a unit that is up speaks of it; default inactive.",
    ),
];
