//! systemd's own tools as oracles. Where they are not installed these tests say so and pass, but not under `CI`.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

mod support;

use std::process::Command;

use agentd_unit::calendar::CalendarSpec;
use agentd_unit::values::span;
use agentd_unit::{LocalZone, Realtime, escape};
use support::Random;

/// The tool's output, or `None` where it is not installed.
fn run(program: &str, zone: &str, arguments: &[String]) -> Option<String> {
    let output = Command::new(program).args(arguments).env("TZ", zone).env("LC_ALL", "C.UTF-8").output();
    match output {
        Ok(output) => Some(String::from_utf8(output.stdout).expect("UTF-8 from the tool")),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{program} must be installed here: {error}");
            eprintln!("{program} is not installed, nothing is compared: {error}");
            None
        }
    }
}

/// What systemd says of one expression: its normal form and its next times in UTC.
#[derive(Debug, Default)]
struct Told {
    normal: String,
    times: Vec<String>,
}

/// Asks for many expressions at once.
fn calendar(zone: &str, base: &str, expressions: &[String]) -> Option<Vec<Told>> {
    let mut arguments =
        vec!["calendar".to_owned(), "--iterations=5".to_owned(), format!("--base-time={base}")];
    arguments.extend(expressions.iter().cloned());
    let text = run("systemd-analyze", zone, &arguments)?;
    let mut told: Vec<Told> = Vec::new();
    for line in text.lines() {
        let Some((label, value)) = line.trim().split_once(": ") else { continue };
        match label {
            "Normalized form" => told.push(Told { normal: value.to_owned(), times: Vec::new() }),
            // In UTC there is no second line; elsewhere the second line is the one in UTC.
            "Next elapse" | "(in UTC)" => push_time(&mut told, value),
            label if label.starts_with("Iter") || label.starts_with("Iteration") => {
                push_time(&mut told, value)
            }
            _ => {}
        }
    }
    Some(told)
}

fn push_time(told: &mut [Told], value: &str) {
    if value.ends_with(" UTC") {
        let last = told.last_mut().expect("a normal form before its times");
        let day = value.split_once(' ').map_or(value, |(_weekday, time)| time);
        last.times.push(day.trim_end_matches(" UTC").to_owned());
    }
}

fn utc(instant: Realtime) -> String {
    let seconds = instant.as_micros().div_euclid(1_000_000);
    let timestamp = jiff::Timestamp::from_second(seconds).expect("an instant in range");
    timestamp.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn ours(expression: &str, zone: &LocalZone, base: Realtime) -> Told {
    let spec = CalendarSpec::parse(expression, zone).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let mut times = Vec::new();
    let mut now = base;
    while times.len() < 5 {
        let Some(next) = spec.next_after(now) else { break };
        assert!(next > now, "{expression}");
        times.push(utc(next));
        now = next;
    }
    Told { normal: spec.to_string(), times }
}

/// A random field of an expression: values, ranges and steps that systemd takes.
fn field(random: &mut Random, from: u64, to: u64) -> String {
    let value = |random: &mut Random| from + random.below(to - from + 1);
    let part = |random: &mut Random| match random.below(4) {
        0 | 1 => value(random).to_string(),
        2 => {
            let (a, b) = (value(random), value(random));
            format!("{}..{}", a.min(b), a.max(b))
        }
        _ => {
            let start = from + random.below((to - from) / 2 + 1);
            format!("{start}/{}", 1 + random.below(to - start))
        }
    };
    match random.below(3) {
        0 => "*".to_owned(),
        1 => part(random),
        _ => format!("{},{}", part(random), part(random)),
    }
}

fn expression(random: &mut Random) -> String {
    let weekdays = random.pick(&["", "", "Mon ", "Sat,Sun ", "Mon..Fri ", "Tue..Thu,Sun "]);
    let date = match random.below(5) {
        0 => String::new(),
        1 => format!("{}-{} ", field(random, 1, 12), field(random, 1, 31)),
        2 => format!("*-{}~{} ", field(random, 1, 12), random.pick(&["1", "1..3", "7/1", "02,05", "10/3"])),
        3 => format!("{}-{}-{} ", 2026 + random.below(6), field(random, 1, 12), field(random, 1, 31)),
        _ => format!("*-*-{} ", field(random, 1, 31)),
    };
    let (hour, minute) = (field(random, 0, 23), field(random, 0, 59));
    let second = random.pick(&["", ":00", ":30", ":0/20", ":5,10..12", ":*"]);
    format!("{weekdays}{date}{hour}:{minute}{second}")
}

#[test]
fn calendars_agree_with_systemd_over_hundreds_of_expressions() {
    let mut random = Random(1);
    let expressions: Vec<String> = (0..400).map(|_| expression(&mut random)).collect();
    let base = "2027-01-01T00:00:00Z".parse::<jiff::Timestamp>().expect("an instant").as_microsecond();
    let mut compared = 0;
    for chunk in expressions.chunks(50) {
        let Some(told) = calendar("UTC", "2027-01-01 00:00:00 UTC", chunk) else { return };
        assert_eq!(told.len(), chunk.len(), "systemd takes every one of {chunk:?}");
        for (expression, told) in chunk.iter().zip(told) {
            let ours = ours(expression, &LocalZone::utc(), Realtime(base));
            assert_eq!(ours.normal, told.normal, "{expression}");
            assert_eq!(ours.times, told.times, "{expression}");
            compared += told.times.len();
        }
    }
    assert!(compared > 1000, "only {compared} times were compared");
}

#[test]
fn calendars_agree_with_systemd_through_a_year_of_zones_with_summer_time() {
    // No time of day between 00:30 and 04:00, where the policies for changes of the clock differ on purpose.
    let expressions: Vec<String> =
        ["daily", "weekly", "monthly", "*-*-* 12:00", "Sun 05:30", "*-*~1 23:59:59"]
            .map(str::to_owned)
            .into();
    for zone in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"] {
        let local = LocalZone::named(zone).expect("a zone");
        for month in 1..=12 {
            let base = format!("2027-{month:02}-01 00:00:00 UTC");
            let Some(told) = calendar(zone, &base, &expressions) else { return };
            let instant = base.replace(" UTC", "Z").parse::<jiff::Timestamp>().expect("an instant");
            for (expression, told) in expressions.iter().zip(told) {
                let ours = ours(expression, &local, Realtime(instant.as_microsecond()));
                assert_eq!(told.times.len(), 5, "{expression} {zone} from {base}");
                assert_eq!(ours.times, told.times, "{expression} {zone} from {base}");
            }
        }
    }
}

#[test]
fn spans_agree_with_systemd() {
    let mut random = Random(2);
    let units =
        ["us", "ms", "s", "sec", "min", "h", "hr", "d", "day", "w", "weeks", "M", "month", "y", "years", "m"];
    let spans: Vec<String> = (0..300)
        .map(|_| {
            let part = |random: &mut Random| {
                let unit = units[usize::try_from(random.below(units.len() as u64)).unwrap_or(0)];
                let fraction = random.pick(&["", "", ".5", ".25", ".125"]);
                format!("{}{fraction}{}{unit}", random.below(1000), random.pick(&["", " "]))
            };
            (0..=random.below(3)).map(|_| part(&mut random)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    for chunk in spans.chunks(60) {
        let mut arguments = vec!["timespan".to_owned()];
        arguments.extend(chunk.iter().cloned());
        let Some(text) = run("systemd-analyze", "UTC", &arguments) else { return };
        let micros: Vec<u128> =
            text.lines().filter_map(|line| line.trim().strip_prefix("μs: ")?.parse().ok()).collect();
        assert_eq!(micros.len(), chunk.len(), "systemd takes every one: {text}");
        for (written, micros) in chunk.iter().zip(micros) {
            let ours = span::parse(written).expect(written).expect("a span that ends");
            assert_eq!(ours.as_micros(), micros, "{written}");
        }
    }
}

#[test]
fn escaping_agrees_with_systemd() {
    let texts = [
        "",
        "a",
        "/",
        "a/b",
        "/dev/sda",
        "a-b",
        ".hidden",
        "a.b",
        "hällo wörld",
        "x@y",
        "a\\b",
        "_:",
        "//a//b/",
    ];
    let ask = |flags: &[&str], text: &str| {
        let mut arguments: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        arguments.extend(["--".to_owned(), text.to_owned()]);
        run("systemd-escape", "UTC", &arguments).map(|text| text.trim_end_matches('\n').to_owned())
    };
    for text in texts {
        let Some(told) = ask(&[], text) else { return };
        assert_eq!(escape::escape(text), told, "{text:?}");
        if text.starts_with('/') {
            let told = ask(&["--path"], text).expect("the tool ran before");
            assert_eq!(escape::escape_path(text).expect(text), told, "{text:?}");
            assert_eq!(escape::unescape_path(&told).ok(), ask(&["--unescape", "--path"], &told), "{text:?}");
        }
        assert_eq!(escape::unescape(&told).expect(&told), text, "{text:?}");
    }
}
