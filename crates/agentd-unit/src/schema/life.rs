//! The finer rules of a service's life, systemd.service(5).

use std::path::{Path, PathBuf};

use super::apply::{ApplyContext, resets, set};
use super::execution::{scalar, texts};
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::assignment::Value;
use crate::exec::ExecKind;
use crate::sections::{ExitStatusSet, ExitType, Preserve, RestartMode, TimeoutMode};
use crate::signal::Signal;
use crate::values::open_file::open_file;
use crate::values::span;
use crate::values::{Refused, exit_status, path};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "ExecCondition",
        Slot::Commands(ExecKind::Condition),
        "Run before everything else; an exit code from 1 to 254 skips the start.",
    ),
    Setting::new(
        "SuccessExitStatus",
        Slot::Own(STATUSES, |value, d, cx| statuses(&mut d.service.life.success, value, cx)),
        "Ends that count as clean, besides 0 and the signals of a stop.",
    ),
    Setting::new(
        "RestartPreventExitStatus",
        Slot::Own(STATUSES, |value, d, cx| statuses(&mut d.service.life.restart_prevent, value, cx)),
        "Ends that no restart follows.",
    ),
    Setting::new(
        "RestartForceExitStatus",
        Slot::Own(STATUSES, |value, d, cx| statuses(&mut d.service.life.restart_force, value, cx)),
        "Ends that a restart always follows.",
    ),
    Setting::new(
        "RestartMode",
        Slot::Choice(names::<RestartMode>, |d, word| put(&mut d.service.life.restart_mode, word)),
        "Whether what depends on it sees an end before a restart; default normal.",
    ),
    Setting::new(
        "TimeoutAbortSec",
        Slot::Own("span of time or \"infinity\"", |value, d, cx| {
            let bound = cx.parse(value, "a span of time", span::parse);
            set(
                &mut d.service.life.timeout_abort,
                bound.map(|bound| Some(bound.filter(|span| !span.is_zero()))),
            );
        }),
        "How long the end after a missed watchdog may take; default as TimeoutStopSec.",
    ),
    Setting::new(
        "TimeoutStartFailureMode",
        Slot::Choice(names::<TimeoutMode>, |d, word| put(&mut d.service.life.timeout_start_mode, word)),
        "What a start that takes too long brings: KillSignal, WatchdogSignal or FinalKillSignal; default terminate.",
    ),
    Setting::new(
        "TimeoutStopFailureMode",
        Slot::Choice(names::<TimeoutMode>, |d, word| put(&mut d.service.life.timeout_stop_mode, word)),
        "What a stop that takes too long brings: KillSignal, WatchdogSignal or FinalKillSignal; default terminate.",
    ),
    Setting::new(
        "RuntimeRandomizedExtraSec",
        Slot::Span(|d| &mut d.service.life.runtime_extra),
        "At most so much is added to RuntimeMaxSec, by chance; default 0.",
    ),
    Setting::new(
        "ExitType",
        Slot::Choice(names::<ExitType>, |d, word| put(&mut d.service.life.exit_type, word)),
        "Whether the end of the main process or of all is its end; default main.",
    ),
    Setting::new(
        "RootDirectoryStartOnly",
        Slot::Bool(|d| &mut d.service.life.root_start_only),
        "RootDirectory holds for ExecStart alone; default no.",
    ),
    Setting::new(
        "NonBlocking",
        Slot::Bool(|d| &mut d.service.life.non_blocking),
        "The descriptors that are handed over do not block; default no.",
    ),
    Setting::new(
        "PIDFile",
        Slot::Own("absolute path", |value, d, cx| {
            let path = cx.parse_text(value, "a path", pid_file);
            set(&mut d.service.life.pid_file, path.map(Some));
        }),
        "Where a daemon that goes into the background writes the number of its main process, for Type=forking.",
    ),
    Setting::new(
        "GuessMainPID",
        Slot::MaybeBool(|d| &mut d.service.life.guess_main_pid),
        "Without PIDFile, guess which of its processes is the main one, for Type=forking; default yes.",
    ),
    Setting::new(
        "FileDescriptorStoreMax",
        Slot::Count(|d| &mut d.service.life.descriptor_store_max),
        "How many descriptors are kept for it over restarts (FDSTORE=1 of sd_notify); default 0.",
    ),
    Setting::new(
        "FileDescriptorStorePreserve",
        Slot::Choice(names::<Preserve>, |d, word| put(&mut d.service.life.descriptor_store_preserve, word)),
        "Whether they outlive its run: no, restart, or yes, for as long as the unit is known; default restart.",
    ),
    Setting::new(
        "SendSIGHUP",
        Slot::Bool(|d| &mut d.service.life.send_sighup),
        "The stop sends SIGHUP too, behind its signal; default no.",
    ),
    Setting::new(
        "SendSIGKILL",
        Slot::MaybeBool(|d| &mut d.service.life.send_sigkill),
        "What is left after TimeoutStopSec is killed; default yes.",
    ),
    Setting::new(
        "ReloadSignal",
        Slot::Own("signal", |value, d, cx| {
            let signal = cx.parse(value, "a signal", signal);
            set(&mut d.service.life.reload_signal, signal.map(Some));
        }),
        "What has a service of Type=notify-reload reload; default SIGHUP.",
    ),
    Setting::new(
        "RestartKillSignal",
        Slot::Own("signal", |value, d, cx| {
            let signal = cx.parse(value, "a signal", signal);
            set(&mut d.service.life.restart_kill_signal, signal.map(Some));
        }),
        "What a restart sends; default as a stop.",
    ),
    Setting::new(
        "FinalKillSignal",
        Slot::Own("signal", |value, d, cx| {
            let signal = cx.parse(value, "a signal", signal);
            set(&mut d.service.life.final_kill_signal, signal.map(Some));
        }),
        "What ends what is left after TimeoutStopSec; default SIGKILL.",
    ),
    Setting::new(
        "WatchdogSignal",
        Slot::Own("signal", |value, d, cx| {
            let signal = cx.parse(value, "a signal", signal);
            set(&mut d.service.life.watchdog_signal, signal.map(Some));
        }),
        "What a missed watchdog sends; default SIGABRT.",
    ),
    Setting::new(
        "Sockets",
        Slot::Units(|d| &mut d.service.life.sockets),
        "The sockets whose descriptors it gets, besides the one of its name.",
    ),
    Setting::new(
        "OpenFile",
        Slot::Own("path:name:options, or a list of them", |value, d, cx| {
            texts(&mut d.service.life.open_files, value, cx, "path:name:options", open_file);
        }),
        "Files that the manager opens, and sockets that it connects to, for the main process, which finds them by \
         LISTEN_FDNAMES: for reading and writing, or read-only, append or truncate; with graceful they may be missing.",
    ),
];

const STATUSES: &str = "list of exit codes and signals";

fn statuses(field: &mut ExitStatusSet, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return *field = ExitStatusSet::default();
    }
    // A single number needs no quotes and no list.
    if let crate::assignment::Raw::Integer(_) = value.raw {
        let added =
            scalar(value, cx, "a list of exit codes and signals", |text| exit_status::add(field, text));
        return set(&mut (), added);
    }
    for (span, word) in cx.words(value, "a list of exit codes and signals").unwrap_or_default() {
        let added = exit_status::add(field, &word);
        set(&mut (), cx.take(&span, added));
    }
}

fn signal(text: &str) -> Result<Signal, Refused> {
    text.parse().map_err(|error: crate::signal::SignalError| Refused::new(error.to_string()))
}

/// An absolute path, or one below `/run`, as systemd has it.
fn pid_file(text: &str) -> Result<PathBuf, Refused> {
    if text.starts_with('/') { path::absolute(text) } else { Ok(Path::new("/run").join(path::below(text)?)) }
}
