//! Lists as they are printed.

use std::path::PathBuf;

use agentd_protocol::manager::JobBrief;
use agentd_protocol::words::JobState;

use super::*;
use crate::args::Format;
use crate::print::time::Clock;

/// Sun 2026-11-29 16:47:00 UTC.
const NOW: u64 = 1_795_970_820_000_000;

fn context() -> Context {
    Context {
        socket: PathBuf::new(),
        user: false,
        format: Format::Text,
        wait: true,
        quiet: false,
        legend: true,
        style: Style::PLAIN,
        clock: Clock::fixed(NOW),
    }
}

fn unit(id: &str, load_state: LoadState, active_state: ActiveState, sub_state: &str) -> UnitSummary {
    let description = format!("About {id}");
    UnitSummary {
        id: id.into(),
        description,
        load_state,
        active_state,
        sub_state: sub_state.into(),
        ..UnitSummary::default()
    }
}

#[test]
fn units_are_listed_as_systemctl_lists_them() {
    let mut starting = unit("b.service", LoadState::Loaded, ActiveState::Activating, "start-pre");
    starting.job = Some(JobBrief { id: 7, kind: "start".into() });
    let units = [
        unit("a.service", LoadState::Loaded, ActiveState::Failed, "failed"),
        starting,
        unit("bad.service", LoadState::BadSetting, ActiveState::Inactive, "dead"),
        unit("long-name.target", LoadState::Loaded, ActiveState::Active, "active\x1b[2J"),
    ];
    let mut out = Vec::new();
    write_units(&context(), &units, false, &mut out).unwrap();
    let expected = "  \
  UNIT             LOAD        ACTIVE     SUB             JOB   DESCRIPTION
× a.service        loaded      failed     failed                About a.service
  b.service        loaded      activating start-pre       start About b.service
○ bad.service      bad-setting inactive   dead                  About bad.service
  long-name.target loaded      active     active\\u{1b}[2J       About long-name.target

4 units listed. Pass --all to see loaded but inactive units, too.
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_list_without_its_legend_has_nothing_but_rows() {
    let context = Context { legend: false, ..context() };
    let mut out = Vec::new();
    let units = [unit("a.service", LoadState::Loaded, ActiveState::Active, "running")];
    write_units(&context, &units, false, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "  a.service loaded active running  About a.service\n");
    let mut none = Vec::new();
    write_units(&context, &[], false, &mut none).unwrap();
    assert_eq!(none, b"");
}

#[test]
fn a_timer_that_never_fires_shows_dashes() {
    let timer = TimerInfo {
        id: "a.timer".into(),
        unit: "a.service".into(),
        next_elapse_usec: NOW + 90_000_000,
        ..TimerInfo::default()
    };
    let mut table = Table::new(["NEXT", "LEFT", "LAST", "PASSED", "SKIPPED", "UNIT", "ACTIVATES"]);
    table.row(timer_row(&context(), &timer));
    table.row(timer_row(&context(), &TimerInfo { id: "never.timer".into(), ..TimerInfo::default() }));
    let mut out = Vec::new();
    table.write(Style::PLAIN, &mut out).unwrap();
    let expected = "\
NEXT                        LEFT          LAST PASSED SKIPPED UNIT        ACTIVATES
Sun 2026-11-29 16:48:30 UTC 1min 30s left -    -      0       a.timer     a.service
-                           -             -    -      0       never.timer
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_job_shows_what_it_waits_for() {
    let job = JobInfo {
        id: 3,
        unit: "b.service".into(),
        kind: "start".into(),
        state: JobState::Waiting,
        waits_for: vec!["a.service".into(), "c.service".into()],
    };
    let mut table = Table::new(["JOB", "UNIT", "TYPE", "STATE", "WAITS FOR"]);
    table.row(job_row(&job));
    let mut out = Vec::new();
    table.write(Style::PLAIN, &mut out).unwrap();
    let expected = "\
JOB UNIT      TYPE  STATE   WAITS FOR
3   b.service start waiting a.service c.service
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
