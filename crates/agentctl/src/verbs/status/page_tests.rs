//! Whole pages, to the letter.

use std::path::PathBuf;

use agentd_protocol::manager::JobBrief;
use agentd_protocol::unit::{GetProcessesReply, LogEntry, ProcessGroup, ProcessInfo};
use agentd_protocol::words::UnitFileState;

use super::*;
use crate::args::Format;
use crate::print::time::Clock;

/// Sun 2026-11-29 16:47:00 UTC.
const NOW: u64 = 1_795_970_820_000_000;

fn page(status: &UnitStatus) -> String {
    let context = Context {
        socket: PathBuf::new(),
        user: false,
        format: Format::Text,
        wait: true,
        quiet: false,
        legend: true,
        style: Style::PLAIN,
        clock: Clock::fixed(NOW),
    };
    let mut out = Vec::new();
    write(&context, status, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn only(properties: UnitProperties) -> UnitStatus {
    UnitStatus { properties, processes: GetProcessesReply::default(), log: Vec::new() }
}

fn running() -> UnitStatus {
    let properties = UnitProperties {
        id: "web.service".into(),
        description: "The web agent".into(),
        load_state: LoadState::Loaded,
        fragment_path: "/etc/agentd/units/web.service.toml".into(),
        drop_in_paths: vec!["/etc/agentd/units/web.service.d/10-x.toml".into()],
        unit_file_state: UnitFileState::Enabled,
        trust: TrustState::Trusted,
        key_ids: vec!["0123456789abcdef".into()],
        active_state: ActiveState::Active,
        sub_state: "running".into(),
        result: "success".into(),
        active_enter_timestamp: NOW - 90_000_000,
        invocation_id: "00000000000000000000000000000abc".into(),
        n_restarts: 2,
        main_pid: 77,
        status_text: "42 documents\x1b[2J".into(),
        control_group: "/system.slice/web.service".into(),
        tasks_current: Some(3),
        tasks_max: Some(64),
        memory_current: Some(5 << 20),
        memory_max: Some(64 << 20),
        memory_peak: Some(6 << 20),
        cpu_usage_nsec: Some(1_234_567_890),
        cpu_quota_per_sec_usec: Some(1_500_000),
        ..UnitProperties::default()
    };
    let process =
        |pid, command: &str| ProcessInfo { pid, comm: "web".into(), command: command.into(), zombie: false };
    let groups = vec![ProcessGroup {
        path: "/system.slice/web.service".into(),
        processes: vec![process(77, "/usr/bin/web --port 80"), process(78, "worker")],
    }];
    let log = vec![LogEntry {
        timestamp: NOW - 1_000_000,
        identifier: "web".into(),
        pid: Some(77),
        message: "ready".into(),
        ..LogEntry::default()
    }];
    UnitStatus { properties, processes: GetProcessesReply { groups, omitted: 0, zombies: 40 }, log }
}

#[test]
fn a_running_service_fills_the_page_in_systemctls_layout() {
    let expected = "\
● web.service - The web agent
     Loaded: loaded (/etc/agentd/units/web.service.toml; enabled)
    Drop-In: /etc/agentd/units/web.service.d/10-x.toml
      Trust: signed by 0123456789abcdef
     Active: active (running) since Sun 2026-11-29 16:45:30 UTC; 1min 30s ago
   Restarts: 2
 Invocation: 00000000000000000000000000000abc
   Main PID: 77 (web)
     Status: \"42 documents\\u{1b}[2J\"
      Tasks: 3 (limit: 64)
     Memory: 5.0M (max: 64.0M peak: 6.0M)
        CPU: 1.234s (quota: 150%)
    Zombies: 40 (ended; their parent does not wait for them)
     CGroup: /system.slice/web.service
             ├─77 /usr/bin/web --port 80
             └─78 worker

Nov 29 16:46:59 web[77]: ready
";
    assert_eq!(page(&running()), expected);
}

#[test]
fn a_service_that_waits_to_be_restarted_says_why_and_when() {
    let status = only(UnitProperties {
        id: "eater.service".into(),
        description: "eater.service".into(),
        load_state: LoadState::Loaded,
        active_state: ActiveState::Activating,
        sub_state: "auto-restart".into(),
        result: "oom-kill".into(),
        inactive_exit_timestamp: NOW - 2_000_000,
        n_restarts: 1,
        next_restart_timestamp: NOW + 3_000_000,
        job: Some(JobBrief { id: 4, kind: "start".into() }),
        exec_main_pid: 9,
        exec_main_code: 2,
        exec_main_status: 9,
        exec_main_start_timestamp: NOW - 3_500_000,
        exec_main_exit_timestamp: NOW - 2_000_000,
        need_daemon_reload: true,
        need_restart: true,
        limits_not_enforced: vec![
            "TasksMax is not enforced: units have no cgroups with the controller pids here".into(),
        ],
        ..UnitProperties::default()
    });
    let expected = "\
● eater.service
     Loaded: loaded (static)
     Active: activating (auto-restart) (Result: oom-kill) since Sun 2026-11-29 16:46:58 UTC; 2s ago
        Job: 4 (start)
   Restarts: 1; next in 3s
   Main PID: 9 (code=killed, signal=KILL), ran for 1.5s

Warning: eater.service changed on disk, restart to apply: 'agentctl restart eater.service'
Warning: the files of eater.service changed on disk: 'agentctl daemon-reload' loads them, 'agentctl apply' brings them into force
Warning: TasksMax is not enforced: units have no cgroups with the controller pids here
";
    assert_eq!(page(&status), expected);
}

#[test]
fn a_unit_that_did_not_load_shows_the_place_of_the_fault() {
    let status = only(UnitProperties {
        id: "bad.service".into(),
        load_state: LoadState::BadSetting,
        load_error: "/u/bad.service.toml:3:1: [Service] has no setting Exec".into(),
        fragment_path: "/u/bad.service.toml".into(),
        sub_state: "dead".into(),
        trust: TrustState::Refused,
        failure: "it did not load".into(),
        ..UnitProperties::default()
    });
    let expected = "\
○ bad.service
     Loaded: bad-setting (/u/bad.service.toml)
             /u/bad.service.toml:3:1: [Service] has no setting Exec
      Trust: refused
     Active: inactive (dead)
     Reason: it did not load
";
    assert_eq!(page(&status), expected);
}

#[test]
fn what_was_never_executed_has_no_number_and_no_time() {
    let status = only(UnitProperties {
        id: "a.service".into(),
        load_state: LoadState::Loaded,
        active_state: ActiveState::Failed,
        exec_main_code: 1,
        exec_main_status: 203,
        ..UnitProperties::default()
    });
    let page = page(&status);
    assert!(page.contains("   Main PID: none (code=exited, status=203/EXEC)\n"), "{page}");
}

#[test]
fn a_timer_shows_its_next_time_and_what_it_starts() {
    let status = only(UnitProperties {
        id: "a.timer".into(),
        load_state: LoadState::Loaded,
        active_state: ActiveState::Active,
        sub_state: "waiting".into(),
        active_enter_timestamp: NOW,
        next_elapse_usec_realtime: NOW + 60_000_000,
        triggers: vec!["a.service".into()],
        ..UnitProperties::default()
    });
    let expected = "\
● a.timer
     Loaded: loaded (static)
     Active: active (waiting) since Sun 2026-11-29 16:47:00 UTC; now
    Trigger: Sun 2026-11-29 16:48:00 UTC; 1min 0s left
   Triggers: a.service
";
    assert_eq!(page(&status), expected);

    // By a span, on the clock of a machine that has run for a second: whichever is sooner.
    let mut by_span = status;
    by_span.properties.next_elapse_usec_monotonic = 31_000_000;
    assert!(page(&by_span).contains("Trigger: Sun 2026-11-29 16:47:30 UTC; 30s left"), "{}", page(&by_span));
    by_span.properties.next_elapse_usec_realtime = 0;
    assert!(page(&by_span).contains("Trigger: Sun 2026-11-29 16:47:30 UTC; 30s left"), "{}", page(&by_span));
}

#[test]
fn texts_of_a_mebibyte_do_not_flood_the_page() {
    let mut status = running();
    status.properties.description = "x".repeat(1 << 20);
    status.properties.status_text = "\x1b".repeat(1 << 20);
    status.properties.warnings = vec!["w".repeat(1 << 20); 30];
    status.log[0].message = "m".repeat(1 << 20);
    assert!(page(&status).len() < 64 * 1024);
}
