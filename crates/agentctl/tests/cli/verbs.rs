//! agentctl as a process against a manager that follows a script.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier, Mutex};

use crate::manager::{Answer, Folder, agentctl, command, outcome, serve};
use agentd_protocol::manager::{
    AwaitEndsReply, Empty, JobReply, ListUnitsReply, ManagerStatus, UnitEnd, UnitSummary,
};
use agentd_protocol::unit::{GetLogsReply, GetProcessesReply, GetReply, LogEntry};
use agentd_protocol::words::LogSource;
use agentd_protocol::{ActiveState, CallError, JobResult, LoadState, Request, ShutdownKind, UnitProperties};

fn job(result: JobResult) -> JobReply {
    JobReply { job: Some(1), result: Some(result) }
}

fn unit(id: &str, load_state: LoadState, active_state: ActiveState) -> GetReply {
    let properties = UnitProperties { id: id.into(), load_state, active_state, ..UnitProperties::default() };
    GetReply { properties: Box::new(properties) }
}

fn refusal(unit: &str) -> Option<CallError> {
    let (unit, message) = (unit.to_owned(), "because".to_owned());
    match unit.as_str() {
        "absent.service" => Some(CallError::NoSuchUnit { unit, message }),
        "bad.service" => Some(CallError::LoadFailed { unit, message }),
        "masked.service" => Some(CallError::UnitMasked { unit, message }),
        "denied.service" => Some(CallError::NotPermitted { message }),
        "unable.service" => Some(CallError::NotApplicable { unit, message }),
        _ => None,
    }
}

/// Jobs of each unit end as its name says.
fn jobs_as_named(request: Request, answer: &mut Answer) {
    match request {
        Request::StartUnit(start) => match refusal(&start.unit) {
            Some(error) => answer.refuse(&error),
            None => {
                let word = start.unit.trim_end_matches(".service");
                answer.done(&job(word.parse().unwrap_or_default()));
            }
        },
        Request::Get(get) => answer.done(&unit(&get.unit, LoadState::Loaded, ActiveState::Failed)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_end_of_a_job_and_each_refusal_has_its_exit_code_and_a_sentence() {
    let folder = Folder::new();
    serve(&folder, jobs_as_named);
    for (unit, code, sentence) in [
        ("done", 0, ""),
        ("skipped", 0, ""),
        ("failed", 1, "Job for failed.service failed."),
        ("canceled", 1, "Job for canceled.service canceled."),
        ("dependency", 1, "A dependency job for dependency.service failed."),
        ("invalid", 3, "Job for invalid.service is not applicable"),
        ("timeout", 124, "Job for timeout.service timed out."),
        ("absent", 5, "Failed to start absent.service: because"),
        ("bad", 6, "agentctl daemon-reload"),
        ("masked", 4, "Failed to start masked.service: because"),
        ("denied", 4, "Failed to start denied.service: because"),
        ("unable", 3, "Failed to start unable.service: because"),
    ] {
        let (exit, out, err) = agentctl(&folder, &format!("start {unit}"));
        assert_eq!((exit, out.as_str()), (code, ""), "{unit}: {err}");
        assert!(err.contains(sentence) && err.is_empty() == sentence.is_empty(), "{unit}: {err}");
    }
}

#[test]
fn of_several_units_each_is_done_and_the_worst_code_counts() {
    let folder = Folder::new();
    serve(&folder, jobs_as_named);
    let (exit, out, err) = agentctl(&folder, "start failed absent done -o json");
    assert_eq!(exit, 5, "{err}");
    let reports: serde_json::Value = serde_json::from_str(&out).unwrap();
    let result = |at: usize| reports[at]["Result"].as_str().map(str::to_owned);
    assert_eq!([result(0), result(1), result(2)], [Some("failed".into()), None, Some("done".into())]);
    assert_eq!(reports[1]["Unit"], "absent.service");
}

/// Every unit starts, and each ends as its name says.
fn ends_as_named(request: Request, answer: &mut Answer) {
    match request {
        Request::StartUnit(start) if start.unit == "bad.service" => {
            answer.refuse(&refusal(&start.unit).expect("it is among them"))
        }
        Request::StartUnit(_) | Request::RestartUnit(_) => answer.done(&job(JobResult::Done)),
        Request::AwaitEnds(request) => {
            let end = |id: String| match id.as_str() {
                "good.service" => UnitEnd { result: "success".into(), id, ..UnitEnd::default() },
                _ => UnitEnd { active_state: ActiveState::Failed, result: "watchdog".into(), id },
            };
            answer.done(&AwaitEndsReply { ends: request.units.into_iter().map(end).collect() });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_for_the_ends_of_units_hears_of_each_that_failed() {
    let folder = Folder::new();
    serve(&folder, ends_as_named);
    let failed = "failed because the service failed to send watchdog ping.\n";
    for (line, code, sentence) in [
        ("start good", 0, ""),
        ("start --wait good", 0, ""),
        ("restart --wait good hangs", 1, failed),
        ("start --wait hangs bad good", 6, failed),
        ("start --wait --no-block good", 2, "--no-block"),
        ("--no-block start --wait good", 2, "--no-block"),
    ] {
        let (exit, out, err) = agentctl(&folder, line);
        assert_eq!((exit, out.as_str()), (code, ""), "{line}: {err}");
        assert!(err.contains(sentence) && err.is_empty() == sentence.is_empty(), "{line}: {err}");
        assert!(!err.contains("good.service"), "{line}: {err}");
    }
}

#[test]
fn several_units_start_at_once() {
    let folder = Folder::new();
    let both = Arc::new(Barrier::new(2));
    // Neither is answered before both are asked for.
    serve(&folder, move |request, answer| match request {
        Request::StartUnit(_) => {
            both.wait();
            answer.done(&job(JobResult::Done));
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(agentctl(&folder, "start a b").0, 0);
}

#[test]
fn no_block_asks_not_to_wait_and_other_flags_reach_the_manager() {
    let folder = Folder::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    serve(&folder, move |request, answer| {
        log.lock().unwrap().push(request.clone());
        match request {
            Request::StopUnit(_) => answer.done(&JobReply { job: Some(7), result: None }),
            _ => answer.done(&Empty {}),
        }
    });
    for line in [
        "--no-block stop web",
        "kill -s RTMIN+3 --kill-whom=main web",
        "reset-failed",
        "cancel 9",
        "exit 5",
        "reboot",
    ] {
        assert_eq!(agentctl(&folder, line), (0, String::new(), String::new()), "{line}");
    }
    let seen = seen.lock().unwrap();
    let [Request::StopUnit(stop), Request::KillUnit(kill), Request::ResetFailed(reset), rest @ ..] =
        &seen[..]
    else {
        panic!("{seen:?}")
    };
    assert!(!stop.wait);
    assert_eq!((kill.signal, kill.whom.as_str()), (37, "main"));
    assert_eq!(reset.unit, None);
    let [Request::CancelJob(cancel), Request::Shutdown(exit), Request::Shutdown(reboot)] = rest else {
        panic!("{rest:?}")
    };
    assert_eq!(cancel.job, 9);
    assert_eq!((exit.kind, exit.exit_code), (ShutdownKind::Exit, Some(5)));
    assert_eq!(reboot.kind, ShutdownKind::Reboot);
}

#[test]
fn a_manager_that_is_gone_before_it_answers_a_shutdown_has_done_it() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::Shutdown(_) => answer.leave(),
        other => panic!("{other:?}"),
    });
    assert_eq!(agentctl(&folder, "exit 5"), (0, String::new(), String::new()));
}

fn states(request: Request, answer: &mut Answer) {
    match request {
        Request::Get(get) => answer.done(&match get.unit.as_str() {
            "up.service" => unit(&get.unit, LoadState::Loaded, ActiveState::Active),
            "down.service" => unit(&get.unit, LoadState::Loaded, ActiveState::Inactive),
            "broken.service" => unit(&get.unit, LoadState::Loaded, ActiveState::Failed),
            _ => {
                let message = format!("Unit {} could not be found.", get.unit);
                return answer.refuse(&CallError::NoSuchUnit { unit: get.unit, message });
            }
        }),
        Request::GetProcesses(_) => answer.done(&GetProcessesReply::default()),
        Request::GetLogs(_) => answer.done(&GetLogsReply::default()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn states_are_told_by_word_and_by_exit_code() {
    let folder = Folder::new();
    serve(&folder, states);
    for (line, code, out) in [
        ("is-active up", 0, "active\n"),
        ("is-active down", 3, "inactive\n"),
        ("is-active absent", 4, "inactive\n"),
        ("is-active down up", 0, "inactive\nactive\n"),
        ("is-active absent up", 0, "inactive\nactive\n"),
        ("is-failed absent broken", 0, "inactive\nfailed\n"),
        ("show -P Id,LoadState absent up", 0, "absent.service\nnot-found\n\nup.service\nloaded\n"),
        ("--quiet is-active broken", 3, ""),
        ("is-failed broken", 0, "failed\n"),
        ("is-failed up", 1, "active\n"),
        ("show absent -p LoadState,ActiveState", 0, "ActiveState=inactive\nLoadState=not-found\n"),
        ("show up -p ActiveState --value", 0, "active\n"),
        ("show up -P ActiveState,LoadState", 0, "active\nloaded\n"),
        ("show up -p Id -o json", 0, "{\n  \"Id\": \"up.service\"\n}\n"),
    ] {
        let (exit, stdout, err) = agentctl(&folder, line);
        assert_eq!((exit, stdout.as_str()), (code, out), "{line}: {err}");
    }
    for (line, code) in [("status up", 0), ("status down", 3), ("status broken up", 3), ("status absent", 4)]
    {
        assert_eq!(agentctl(&folder, line).0, code, "{line}");
    }
    assert!(agentctl(&folder, "status absent").2.contains("Unit absent.service could not be found."));
}

#[test]
fn a_list_is_one_array_however_many_pages_it_came_in() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::ListUnits(list) => {
            assert!(list.wants("MemoryCurrent"), "JSON has every property");
            assert_eq!((list.all, list.types), (true, vec!["service".to_owned(), "timer".to_owned()]));
            let page = |id: &str| ListUnitsReply {
                units: vec![UnitSummary { id: id.into(), ..UnitSummary::default() }],
            };
            answer.more(&page("a.service"));
            answer.done(&page("b.timer"));
        }
        other => panic!("{other:?}"),
    });
    let (exit, out, err) = agentctl(&folder, "list --all --type service,timer -o json");
    assert_eq!(exit, 0, "{err}");
    let units: Vec<UnitSummary> = serde_json::from_str(&out).unwrap();
    assert_eq!(units.iter().map(|unit| unit.id.as_str()).collect::<Vec<_>>(), ["a.service", "b.timer"]);
}

#[test]
fn failed_units_may_be_asked_for_in_one_word() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::ListUnits(list) => {
            assert!(
                list.wants("SubState") && !list.wants("MemoryCurrent"),
                "what the table shows and no more"
            );
            let units = list.states.iter().map(|id| UnitSummary { id: id.clone(), ..UnitSummary::default() });
            answer.done(&ListUnitsReply { units: units.collect() });
        }
        other => panic!("{other:?}"),
    });
    for (line, states) in
        [("list --failed", &["failed"][..]), ("list --state running --failed", &["running", "failed"])]
    {
        let (_, out, err) = agentctl(&folder, &format!("{line} --no-legend"));
        let listed: Vec<&str> =
            out.lines().filter_map(|line| line.split_whitespace().find(|word| word.is_ascii())).collect();
        assert_eq!(listed, states, "{line}: {out}{err}");
    }
}

fn entry(message: &str) -> GetLogsReply {
    let entry =
        LogEntry { timestamp: 1, identifier: "web".into(), message: message.into(), ..LogEntry::default() };
    GetLogsReply { source: LogSource::Embedded, entries: vec![entry] }
}

#[test]
fn followed_lines_are_printed_as_they_come() {
    let folder = Folder::new();
    let (seen, wait) = sync_channel::<()>(0);
    let wait = Arc::new(Mutex::new(wait));
    serve(&folder, move |request, answer| match request {
        Request::GetLogs(logs) => {
            assert_eq!((logs.follow, logs.lines), (true, Some(10)));
            answer.more(&entry("first"));
            // The second line is not sent before the first was read at the other end.
            wait.lock().unwrap().recv().unwrap();
            answer.done(&entry("second"));
        }
        other => panic!("{other:?}"),
    });
    let mut child = command(&folder, "logs -f web").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "Jan 01 00:00:00 web: first");
    seen.send(()).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "Jan 01 00:00:00 web: second");
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_unit_without_a_log_does_not_keep_the_others_from_being_shown() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::GetLogs(logs) => match refusal(&logs.unit) {
            Some(error) => answer.refuse(&error),
            None => answer.done(&entry("still here")),
        },
        other => panic!("{other:?}"),
    });
    for line in ["logs absent web", "logs -f absent web"] {
        let (exit, out, err) = agentctl(&folder, line);
        assert_eq!((exit, out.as_str()), (4, "Jan 01 00:00:00 web: still here\n"), "{line}");
        assert_eq!(err, "Failed to read the log of absent.service: because\n", "{line}");
    }
}

fn in_the_journal(request: Request, answer: &mut Answer) {
    match request {
        Request::GetLogs(_) => {
            answer.done(&GetLogsReply { source: LogSource::Journal, entries: Vec::new() });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_in_the_journal_are_read_through_journalctl() {
    let folder = Folder::new();
    serve(&folder, in_the_journal);
    let program = folder.path().join("journalctl");
    let script = "#!/bin/sh\necho \"{\\\"__REALTIME_TIMESTAMP\\\":\\\"0\\\",\\\"MESSAGE\\\":\\\"$*\\\"}\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let (exit, out, err) = outcome(command(&folder, "logs -n 3 web").env("PATH", path).output().unwrap());
    assert_eq!(exit, 0, "{err}");
    assert_eq!(
        out,
        "Jan 01 00:00:00 : --unit web.service --output=json --all --no-pager --quiet --lines=3\n"
    );
}

#[test]
fn a_journal_without_journalctl_is_told_with_what_to_do() {
    let folder = Folder::new();
    serve(&folder, in_the_journal);
    let (exit, _, err) = outcome(command(&folder, "logs web").env("PATH", "/nonexistent").output().unwrap());
    assert_eq!(exit, 1);
    assert!(err.contains("the log of web.service is in the journal, and journalctl"), "{err}");
}

#[test]
fn a_manager_that_is_not_there_is_exit_code_7_for_every_verb_that_needs_it() {
    let folder = Folder::new();
    for line in ["start web", "status", "list", "is-active web", "logs web", "logs -f web", "poweroff"] {
        let (exit, out, err) = agentctl(&folder, line);
        assert_eq!((exit, out.as_str()), (7, ""), "{line}");
        assert!(err.contains(&format!("{}/control.sock", folder.path().display())), "{line}: {err}");
    }
    let (exit, out, _) = agentctl(&folder, "version");
    assert_eq!(exit, 0);
    assert!(out.contains("cannot reach the manager"), "{out}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::ListUnits(_) => {
            let unit = |n: u32| UnitSummary { id: format!("{n}.service"), ..UnitSummary::default() };
            answer.done(&ListUnitsReply { units: (0..2000).map(unit).collect() });
        }
        other => panic!("{other:?}"),
    });
    let mut child = command(&folder, "list").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn both_versions_are_shown() {
    let folder = Folder::new();
    serve(&folder, |request, answer| match request {
        Request::GetStatus(_) => {
            answer.done(&ManagerStatus { version: "9.9".into(), ..ManagerStatus::default() })
        }
        other => panic!("{other:?}"),
    });
    let (exit, out, _) = agentctl(&folder, "version");
    assert_eq!((exit, out), (0, format!("agentctl {}\nagentd 9.9\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn keys_are_made_and_listed_without_a_manager() {
    let folder = Folder::new();
    let keys = folder.path().display().to_string();
    let (exit, out, err) = agentctl(&folder, &format!("key generate me --out {keys}"));
    assert_eq!(exit, 0, "{err}");
    assert!(out.contains("me.key signs: keep it secret"), "{out}");
    assert_eq!(fs::metadata(folder.path().join("me.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let (exit, out, err) = agentctl(&folder, &format!("key list --keys {keys} -o json"));
    assert_eq!(exit, 0, "{err}");
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((listed[0]["Name"].as_str(), listed[0]["Revoked"].as_bool()), (Some("me"), Some(false)));
    let (exit, _, err) = agentctl(&folder, &format!("key generate me --out {keys}"));
    assert_eq!(exit, 1, "a key is never overwritten");
    assert!(err.contains("me."), "{err}");
}
