//! How a service lives and ends, systemd.service(5), and what agents have besides.

use super::{commands, number_or, text, timeout, words, yes_no};
use crate::draft::Draft;
use crate::sections::ExitStatusSet;
use crate::signal::Signal;

pub(super) fn service(key: &str, draft: &Draft) -> Option<String> {
    let (service, life) = (&draft.service, &draft.service.life);
    let number = |signal: Signal| signal.number().to_string();
    Some(match key {
        "SuccessExitStatus" => statuses(&life.success),
        "RestartPreventExitStatus" => statuses(&life.restart_prevent),
        "RestartForceExitStatus" => statuses(&life.restart_force),
        "TimeoutAbortSec" => timeout(life.timeout_abort.unwrap_or(service.timeout_stop)),
        "SendSIGKILL" => yes_no(life.send_sigkill.unwrap_or(true)),
        "GuessMainPID" => yes_no(life.guess_main_pid.unwrap_or(true)),
        "PIDFile" => life.pid_file.as_deref().map(text).unwrap_or_default(),
        "ReloadSignal" => number(life.reload_signal.unwrap_or(Signal::HUP)),
        "RestartKillSignal" => number(life.restart_kill_signal.unwrap_or(service.kill_signal)),
        "FinalKillSignal" => number(life.final_kill_signal.unwrap_or(Signal::KILL)),
        "WatchdogSignal" => number(life.watchdog_signal.unwrap_or(Signal::ABRT)),
        "OpenFile" => words(&life.open_files, |file| {
            let options = file.access.word().into_iter().chain(file.graceful.then_some("graceful"));
            let options: Vec<&str> = options.collect();
            let gap = if options.is_empty() { "" } else { ":" };
            format!("{}:{}{gap}{}", text(&file.path), file.name, options.join(","))
        }),
        _ => return None,
    })
}

pub(super) fn agent(key: &str, draft: &Draft) -> Option<String> {
    let (life, snapshot) = (&draft.agent.life, &draft.snapshot);
    Some(match key {
        "RestartFactor" => life.restart_factor.map_or_else(String::new, |factor| match factor % 100 {
            0 => (factor / 100).to_string(),
            rest => format!("{}.{rest:02}", factor / 100).trim_end_matches('0').to_owned(),
        }),
        "MaxRestarts" => number_or(life.max_restarts, ""),
        "MinReplicas" => life.min_replicas.unwrap_or(life.replicas).to_string(),
        "ExecHealthCheck" => commands(&life.exec_health_check),
        "MaxBytes" => snapshot.max_bytes.to_string(),
        "ExecSnapshot" => commands(&snapshot.exec_snapshot),
        "ExecRestore" => commands(&snapshot.exec_restore),
        _ => return None,
    })
}

/// Codes by number, signals by name without `SIG`, as systemctl has them.
fn statuses(set: &ExitStatusSet) -> String {
    let codes = set.codes.iter().map(ToString::to_string);
    let signals = set.signals.iter().map(|number| signal(*number));
    codes.chain(signals).collect::<Vec<_>>().join(" ")
}

fn signal(number: i32) -> String {
    Signal::from_number(number).map_or_else(|| number.to_string(), |signal| signal.to_string())
}
