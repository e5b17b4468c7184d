//! What is kept of one unit, as lines of `key=value`: for a manager of another version too, which leaves out what it does
//! not know.

use std::fmt::Write as _;
use std::time::Duration;

use agentd_engine::{Boottime, InvocationId, Life, Memo, Monotonic, Past, ServiceResult, Trigger};
use agentd_unit::words::Words;
use agentd_unit::{NotifyAccess, Realtime, UnitName};

use super::past;
use crate::perform::runs::Runs;

/// What is kept of one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When this was so: a process that is younger is another.
    pub at: Boottime,
    /// The fencing token of the run, 0 where there is none.
    pub token: u64,
    /// Whether its output goes into a pipe of the embedded log.
    pub piped: bool,
    /// The slice that its cgroup lies in.
    pub slice: Option<String>,
    /// The user of its own that the run has, by `DynamicUser`.
    pub dynamic_uid: Option<u32>,
    /// What the engine wants to know.
    pub memo: Memo,
}

impl Record {
    /// What the engine says of a unit, with what the shell knows of its run.
    #[must_use]
    pub fn of(memo: Memo, runs: &Runs, now: Boottime) -> Self {
        let run = memo.run().and_then(|run| runs.get(run));
        Self {
            at: now,
            token: run.map_or(0, |run| run.token),
            piped: run.is_some_and(|run| run.logged),
            slice: run.and_then(|run| run.slice.clone()),
            dynamic_uid: run.and_then(|run| run.dynamic_uid),
            memo,
        }
    }
}

/// The longest text of a service about itself that is kept, in bytes.
const STATUS: usize = 200;

/// A record in at most `room` bytes. What does not fit of the past and the lists is left out.
#[must_use]
pub fn encode(record: &Record, room: usize) -> Vec<u8> {
    let mut record = record.clone();
    loop {
        let text = lines(&record);
        if text.len() <= room || !leave_out(&mut record.memo) {
            return text.into_bytes();
        }
    }
}

/// Leaves out the past, then what is known of the trigger beside its name, then the oldest of what a limit counts, then what it would return with; false if nothing is left.
fn leave_out(memo: &mut Memo) -> bool {
    if memo.past != Past::default() {
        memo.past = Past::default();
        return true;
    }
    if let Some(trigger) =
        memo.trigger.as_mut().filter(|trigger| trigger.path.is_some() || trigger.at.is_some())
    {
        (trigger.path, trigger.at) = (None, None);
        return true;
    }
    let (polls, triggers) = match &mut memo.life {
        Life::Socket { polls, triggers, .. } => (Some(polls), Some(triggers)),
        Life::Path { triggers, .. } => (None, Some(triggers)),
        _ => (None, None),
    };
    let mut counted = [polls, triggers, Some(&mut memo.recent_starts)].into_iter().flatten();
    let Some(counted) = counted.find(|counted| !counted.is_empty()) else {
        return memo.returns_with.pop().is_some();
    };
    counted.remove(0);
    true
}

fn lines(record: &Record) -> String {
    let memo = &record.memo;
    let mut text = Lines(String::with_capacity(256));
    text.put("unit", &memo.unit);
    text.put("at", record.at.0.as_nanos());
    text.some("slice", record.slice.as_ref());
    text.some("dynamic-user", record.dynamic_uid);
    if record.token != 0 {
        text.put("token", record.token);
    }
    if record.piped {
        text.put("piped", 1);
    }
    text.some("last-run", memo.last_run);
    text.put("generation", memo.generation);
    text.put("restarts", memo.restarts);
    text.put("step", memo.restart_step);
    memo.recent_starts.iter().for_each(|start| text.put("recent", start.0.as_nanos()));
    text.some("activated", memo.activated.map(|at| at.0.as_nanos()));
    text.some("rested", memo.rested.map(|at| at.0.as_nanos()));
    text.some("inactive-exit", memo.inactive_exit.map(|at| at.0));
    text.some("active-enter", memo.active_enter.map(|at| at.0));
    if let Some(trigger) = &memo.trigger {
        text.put("trigger", &trigger.unit);
        text.some("trigger-path", trigger.path.as_ref().filter(|path| !path.contains('\n')));
        text.some("trigger-realtime", trigger.at.map(|(at, _)| at.0));
        text.some("trigger-monotonic", trigger.at.map(|(_, at)| at.0.as_nanos()));
    }
    if let Some((socket, source)) = &memo.connection {
        text.put("socket", socket);
        text.some("source", source.as_ref().map(|text| short(text)));
    }
    memo.returns_with.iter().for_each(|other| text.put("returns-with", other));
    text.some("left", memo.leftover);
    past::write(&memo.past, &mut text);
    match &memo.life {
        Life::Up {
            run,
            main,
            started,
            since,
            until,
            watchdog,
            access,
            status,
            exited,
            frozen,
            again,
            post,
        } => {
            text.put("life", "up");
            text.put("run", run);
            text.some("main", main.as_ref());
            text.some("started", started.map(|at| at.0));
            text.some("since", since.map(|at| at.0.as_nanos()));
            text.some("until", until.map(|at| at.0.as_nanos()));
            text.some("watchdog", watchdog.map(|span| span.as_nanos()));
            text.some("notify-access", access.map(NotifyAccess::as_word));
            text.some("status", status.as_ref().map(|text| short(text)));
            if *exited {
                text.put("exited", 1);
            }
            if *frozen {
                text.put("frozen", 1);
            }
            if *again {
                text.put("restart", 1);
            }
            text.some("post", post.as_ref());
        }
        Life::Waiting { at, result } => {
            text.put("life", "waiting");
            text.put("due", at.0.as_nanos());
            text.put("result", result);
        }
        Life::Failed { result } => {
            text.put("life", "failed");
            text.put("result", result);
        }
        Life::Timer { activated, base, elapsed, done, last_trigger, running, schedule } => {
            text.put("life", "timer");
            text.put("began", activated.0.as_nanos());
            text.put("base", base.0);
            text.some("elapsed", elapsed.map(|at| at.0.as_nanos()));
            text.put("done", done.iter().map(|done| if *done { '1' } else { '0' }).collect::<String>());
            text.some("last", last_trigger.map(|at| at.0));
            text.some("schedule", schedule.as_ref());
            if *running {
                text.put("running", 1);
            }
        }
        Life::Socket { running, again, accepted, refused, polls, triggers } => {
            text.put("life", "socket");
            text.put("running", u8::from(*running));
            text.some("again", again.map(|at| at.0.as_nanos()));
            text.put("accepted", accepted);
            text.put("refused", refused);
            polls.iter().for_each(|at| text.put("poll", at.0.as_nanos()));
            triggers.iter().for_each(|at| text.put("started-unit", at.0.as_nanos()));
        }
        Life::Path { running, triggers } => {
            text.put("life", "path");
            text.put("running", u8::from(*running));
            triggers.iter().for_each(|at| text.put("started-unit", at.0.as_nanos()));
        }
        Life::Active => text.put("life", "active"),
        Life::Down => text.put("life", "down"),
    }
    text.0
}

pub(super) struct Lines(String);

impl Lines {
    pub(super) fn put(&mut self, key: &str, value: impl std::fmt::Display) {
        // Writing to a text cannot fail.
        let _never = writeln!(self.0, "{key}={value}");
    }

    pub(super) fn some(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let mut end = text.len().min(STATUS);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(['\n', '\r'], " ")
}

/// Reads a record. None: it lacks something without which a unit cannot be taken over.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Record> {
    let fields: Vec<(&str, &str)> =
        std::str::from_utf8(bytes).ok()?.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |key: &str| fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let number = |key: &str| get(key).and_then(|value| value.parse::<u64>().ok());
    let small = |key: &str| get(key).and_then(|value| value.parse::<u32>().ok());
    let span = |key: &str| number(key).map(Duration::from_nanos);
    let wall = |key: &str| get(key).and_then(|value| value.parse::<i64>().ok()).map(Realtime);
    let run = |key: &str| get(key).and_then(|text| text.parse::<InvocationId>().ok());
    let result = || {
        let word = get("result");
        ServiceResult::ALL.into_iter().find(|result| Some(result.as_str()) == word)
    };
    let moments = |key: &str| {
        let values =
            fields.iter().filter(|(name, _)| *name == key).filter_map(|(_, value)| value.parse().ok());
        values.map(|nanos| Monotonic(Duration::from_nanos(nanos))).collect::<Vec<_>>()
    };
    let names = |key: &str| {
        let values = fields.iter().filter(|(name, _)| *name == key);
        values.filter_map(|(_, value)| UnitName::parse(value).ok()).collect::<Vec<_>>()
    };
    let name = |key: &str| get(key).and_then(|name| UnitName::parse(name).ok());
    let life = match get("life")? {
        "up" => Life::Up {
            run: run("run")?,
            main: small("main"),
            started: wall("started"),
            since: span("since").map(Monotonic),
            until: span("until").map(Monotonic),
            watchdog: span("watchdog"),
            access: get("notify-access").and_then(NotifyAccess::from_word),
            status: get("status").map(str::to_owned),
            exited: get("exited") == Some("1"),
            frozen: get("frozen") == Some("1"),
            again: get("restart") == Some("1"),
            post: small("post"),
        },
        "waiting" => Life::Waiting { at: Monotonic(span("due")?), result: result()? },
        "failed" => Life::Failed { result: result()? },
        "timer" => Life::Timer {
            activated: Boottime(span("began")?),
            base: wall("base")?,
            elapsed: span("elapsed").map(Boottime),
            done: get("done")?.chars().map(|digit| digit == '1').collect(),
            last_trigger: wall("last"),
            running: get("running") == Some("1"),
            schedule: number("schedule"),
        },
        "socket" => Life::Socket {
            running: get("running") == Some("1"),
            again: span("again").map(Monotonic),
            accepted: number("accepted").unwrap_or(0),
            refused: number("refused").unwrap_or(0),
            polls: moments("poll"),
            triggers: moments("started-unit"),
        },
        "path" => Life::Path { running: get("running") == Some("1"), triggers: moments("started-unit") },
        "active" => Life::Active,
        "down" => Life::Down,
        _ => return None,
    };
    let memo = Memo {
        unit: UnitName::parse(get("unit")?).ok()?,
        life,
        last_run: run("last-run"),
        generation: number("generation").unwrap_or(0),
        restarts: small("restarts").unwrap_or(0),
        restart_step: small("step").unwrap_or(0),
        recent_starts: moments("recent"),
        activated: span("activated").map(Boottime),
        rested: span("rested").map(Boottime),
        inactive_exit: wall("inactive-exit"),
        active_enter: wall("active-enter"),
        trigger: name("trigger").map(|unit| {
            let path = get("trigger-path").map(str::to_owned);
            let at = wall("trigger-realtime").zip(span("trigger-monotonic").map(Monotonic));
            Box::new(Trigger { unit, path, at })
        }),
        returns_with: names("returns-with"),
        leftover: run("left"),
        past: past::read(get),
        connection: name("socket").map(|socket| (socket, get("source").map(str::to_owned))),
    };
    Some(Record {
        at: Boottime(span("at")?),
        token: number("token").unwrap_or(0),
        piped: get("piped") == Some("1"),
        slice: get("slice").map(str::to_owned),
        dynamic_uid: small("dynamic-user"),
        memo,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use agentd_engine::{ExecStatusView, ExitStatus};
    use agentd_unit::Signal;

    use super::*;

    pub(in super::super) fn sample(unit: &str) -> Record {
        let seconds = Duration::from_secs;
        Record {
            at: Boottime(seconds(99)),
            token: 7,
            piped: true,
            slice: Some("system.slice".to_owned()),
            dynamic_uid: Some(61_184),
            memo: Memo {
                unit: UnitName::parse(unit).unwrap(),
                life: Life::Up {
                    run: InvocationId(0x1234_5678_9abc_def0_1234_5678_9abc_def0),
                    main: Some(4242),
                    started: Some(Realtime(1_800_000_000_000_000)),
                    since: Some(Monotonic(seconds(40))),
                    until: Some(Monotonic(seconds(50))),
                    watchdog: Some(seconds(30)),
                    access: Some(NotifyAccess::All),
                    status: Some("Working = on it".to_owned()),
                    exited: false,
                    frozen: true,
                    again: true,
                    post: Some(2),
                },
                last_run: Some(InvocationId(0x1234_5678_9abc_def0_1234_5678_9abc_def0)),
                generation: 3,
                restarts: 2,
                restart_step: 1,
                recent_starts: vec![Monotonic(seconds(10)), Monotonic(seconds(20))],
                activated: Some(Boottime(seconds(39))),
                rested: None,
                inactive_exit: Some(Realtime(5)),
                active_enter: Some(Realtime(6)),
                trigger: Some(Box::new(Trigger {
                    unit: UnitName::parse("a.path").unwrap(),
                    path: Some("/a b=c".to_owned()),
                    at: Some((Realtime(7), Monotonic(seconds(8)))),
                })),
                connection: Some((UnitName::parse("b.socket").unwrap(), Some("uid 7".to_owned()))),
                past: Past {
                    result: ServiceResult::ExecCondition,
                    exec_main: Some(ExecStatusView {
                        pid: 4242,
                        start: Realtime(7),
                        exit: Some(Realtime(8)),
                        status: Some(ExitStatus::Killed(Signal::KILL)),
                    }),
                    main_end: Some((ExitStatus::Exited(3), ServiceResult::Success)),
                    errno: Some(-5),
                    bus_error: Some("a.b".to_owned()),
                    failure: Some("b.service failed to start".to_owned()),
                    condition: true,
                    assertion: false,
                    unmet: Some("AssertPathExists=/x".to_owned()),
                    came_up: true,
                    active_exit: Some(Realtime(9)),
                    inactive_enter: None,
                    state_change: Some(Realtime(10)),
                },
                leftover: Some(InvocationId(7)),
                returns_with: ["c.service", "d.target"].map(|name| UnitName::parse(name).unwrap()).to_vec(),
            },
        }
    }

    #[test]
    fn every_life_comes_back_as_it_was() {
        let lives = [
            sample("a.service").memo.life,
            Life::Waiting { at: Monotonic(Duration::from_millis(1)), result: ServiceResult::OomKill },
            Life::Failed { result: ServiceResult::Trust },
            Life::Timer {
                activated: Boottime(Duration::from_secs(1)),
                base: Realtime(-1),
                elapsed: None,
                done: vec![true, false],
                last_trigger: Some(Realtime(9)),
                running: true,
                schedule: Some(u64::MAX),
            },
            Life::Socket {
                running: true,
                again: Some(Monotonic(Duration::from_millis(5))),
                accepted: 9,
                refused: 1,
                polls: vec![Monotonic(Duration::from_millis(3))],
                triggers: vec![Monotonic(Duration::from_millis(1)), Monotonic(Duration::from_millis(2))],
            },
            Life::Path { running: false, triggers: vec![Monotonic(Duration::from_millis(4))] },
            Life::Active,
            Life::Down,
        ];
        for life in lives {
            let mut record = sample("a.service");
            record.memo.life = life;
            assert_eq!(decode(&encode(&record, 1000)).as_ref(), Some(&record));
        }
        for result in ServiceResult::ALL {
            let mut record = sample("a.service");
            record.memo.life = Life::Failed { result };
            assert_eq!(decode(&encode(&record, 1000)).unwrap().memo.life, record.memo.life);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_rest_holds() {
        let mut record = sample(&format!("{}.service", "n".repeat(240)));
        record.memo.recent_starts = (0..500).map(|n| Monotonic(Duration::from_secs(n))).collect();
        if let Life::Up { status, .. } = &mut record.memo.life {
            *status = Some("ä\n".repeat(1000));
        }
        let bytes = encode(&record, 1000);
        assert!(bytes.len() <= 1000);
        let back = decode(&bytes).unwrap();
        assert_eq!(back.memo.recent_starts.last(), record.memo.recent_starts.last(), "the newest count");
        assert!(
            matches!(back.memo.life, Life::Up { main: Some(4242), status: Some(text), .. } if text.starts_with("ä "))
        );
    }

    #[test]
    fn what_is_no_record_is_none() {
        for text in
            ["", "unit=a.service", "unit=a.service\nat=1\nlife=up\nrun=zz\n", "unit=\nat=1\nlife=active\n"]
        {
            assert!(decode(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(decode(b"\xff").is_none());
    }
}
