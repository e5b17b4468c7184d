//! What the lives of a unit before have left, as lines of its record. What is as with a unit that never was up has no line.

use agentd_engine::{ExecStatusView, ExitStatus, Past, ServiceResult};
use agentd_unit::{Realtime, Signal};

use super::record::Lines;

pub(super) fn write(past: &Past, text: &mut Lines) {
    let line = |value: &Option<String>| value.as_ref().map(|value| value.replace(['\n', '\r'], " "));
    let flag = |set: bool| set.then_some(1);
    text.some("past-result", Some(past.result).filter(|result| *result != ServiceResult::Success));
    if let Some(exec) = past.exec_main {
        text.put("exec-pid", exec.pid);
        text.put("exec-start", exec.start.0);
        text.some("exec-exit", exec.exit.map(|at| at.0));
        text.some("exec-status", exec.status.map(status));
    }
    if let Some((end, outcome)) = past.main_end {
        text.put("main-status", status(end));
        text.put("main-outcome", outcome);
    }
    text.some("errno", past.errno);
    text.some("bus-error", line(&past.bus_error));
    text.some("failure", line(&past.failure));
    text.some("condition", flag(past.condition));
    text.some("assert", flag(past.assertion));
    text.some("unmet", line(&past.unmet));
    text.some("came-up", flag(past.came_up));
    text.some("active-exit", past.active_exit.map(|at| at.0));
    text.some("inactive-enter", past.inactive_enter.map(|at| at.0));
    text.some("state-change", past.state_change.map(|at| at.0));
}

pub(super) fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Past {
    let result = |key: &str| {
        let word = get(key);
        ServiceResult::ALL.into_iter().find(|result| Some(result.as_str()) == word)
    };
    let wall = |key: &str| get(key).and_then(|value| value.parse().ok()).map(Realtime);
    let text = |key: &str| get(key).map(str::to_owned);
    let flag = |key: &str| get(key) == Some("1");
    let end = |key: &str| get(key).and_then(status_of);
    let exec = || {
        let pid = get("exec-pid")?.parse().ok()?;
        let (start, exit) = (wall("exec-start")?, wall("exec-exit"));
        Some(ExecStatusView { pid, start, exit, status: end("exec-status") })
    };
    Past {
        result: result("past-result").unwrap_or_default(),
        exec_main: exec(),
        main_end: end("main-status").zip(result("main-outcome")),
        errno: get("errno").and_then(|value| value.parse().ok()),
        bus_error: text("bus-error"),
        failure: text("failure"),
        condition: flag("condition"),
        assertion: flag("assert"),
        unmet: text("unmet"),
        came_up: flag("came-up"),
        active_exit: wall("active-exit"),
        inactive_enter: wall("inactive-enter"),
        state_change: wall("state-change"),
    }
}

/// The end of a process: how, and its code or its signal's number.
fn status(status: ExitStatus) -> String {
    match status {
        ExitStatus::Exited(code) => format!("exited {code}"),
        ExitStatus::Killed(signal) => format!("killed {}", signal.number()),
        ExitStatus::Dumped(signal) => format!("dumped {}", signal.number()),
        ExitStatus::Unknown => "unknown 0".to_owned(),
    }
}

fn status_of(text: &str) -> Option<ExitStatus> {
    let (how, number) = text.split_once(' ')?;
    let signal = || Signal::from_number(number.parse().ok()?);
    match how {
        "exited" => number.parse().ok().map(ExitStatus::Exited),
        "killed" => signal().map(ExitStatus::Killed),
        "dumped" => signal().map(ExitStatus::Dumped),
        "unknown" => Some(ExitStatus::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_process_comes_back_as_it_was() {
        let signal = Signal::from_number(64).unwrap();
        for end in [
            ExitStatus::Exited(255),
            ExitStatus::Killed(signal),
            ExitStatus::Dumped(Signal::ABRT),
            ExitStatus::Unknown,
        ] {
            assert_eq!(status_of(&status(end)), Some(end));
        }
    }
}
