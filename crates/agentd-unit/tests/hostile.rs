//! Bytes that nobody would write on purpose: no parser panics, hangs or cuts a value in two. Seeded, so that every
//! run is the same run.

mod support;
#[path = "support/worked.rs"]
mod worked;

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_unit::calendar::CalendarSpec;
use agentd_unit::cron::CronSpec;
use agentd_unit::values::{capability, command, limit, principal, span, words};
use agentd_unit::{
    LoadState, LocalZone, ParseContext, Parsed, Realtime, SourceFile, SpecifierContext, UnitName, escape,
    parse_unit,
};
use support::Random;
use worked::worked;

/// Processor time far above what a linear parser takes, far below what a quadratic one takes, unoptimised.
const LINEAR: Duration = Duration::from_secs(20);

fn parse(text: &str) -> Parsed {
    let name = UnitName::parse("a@b.service").unwrap_or_else(|error| panic!("{error}"));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let file = Arc::new(SourceFile::new("a@.service.toml", text));
    parse_unit(&name, &[file], &ParseContext { specifiers: &specifiers, zone: &zone })
}

const SEED: &str = r#"[Unit]
Description = "A %i — unit"
Wants = ["a.service", "b@%i.target"]
[Service]
Type = "notify"
ExecStart = ["/bin/sh", "-c", "echo \"$X\" '%%'"]
ExecStop = "-@/bin/kill kill \\x20 \"a b\" ; /bin/true"
Environment = { A = "1", B = 2.5, C = false }
MemoryMax = "1.5G"
CPUQuota = "150.25%"
RestartSec = "1min 30.5s"
CapabilityBoundingSet = "~CAP_SYS_ADMIN CAP_KILL"
User = "www-data"
[Agent]
Kind = "go"
[Timer]
OnCalendar = ["Mon..Fri *-*~01..3 10..12/2:00/15:00.5", "daily UTC"]
Cron = "*/5 0-12 * jan-mar sun"
[Install]
WantedBy = "multi-user.target"
"#;

/// The text with a few bytes taken out, put in, doubled or swapped for telling ones.
fn mutated(random: &mut Random, text: &str) -> String {
    const TELLING: [&str; 24] = [
        "\"",
        "'",
        "\\",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "\r\n",
        "%",
        "~",
        "..",
        "/",
        "-",
        "é",
        "\u{0}",
        "\u{feff}",
        "999999999999999999999",
        "*",
        ",",
        "@",
        " ",
        "\u{1b}",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(6) {
        let at = usize::try_from(random.below(chars.len() as u64 + 1)).unwrap_or(0);
        let telling = random.pick(&TELLING);
        match random.below(4) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 => {
                let end = (at + usize::try_from(random.below(20)).unwrap_or(0)).min(chars.len());
                chars.drain(at..end);
            }
            2 => {
                let end = (at + usize::try_from(random.below(30)).unwrap_or(0)).min(chars.len());
                let piece: Vec<char> = chars[at..end].to_vec();
                let to = usize::try_from(random.below(chars.len() as u64 + 1)).unwrap_or(0);
                chars.splice(to..to, piece);
            }
            _ => drop(chars.splice(at..at, telling.chars())),
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_mutation_of_a_unit_makes_a_parser_panic() {
    assert_eq!(parse(SEED).unit.load, LoadState::Loaded);
    let mut random = Random(7);
    for round in 0..3000 {
        let text = mutated(&mut random, SEED);
        let parsed = parse(&text);
        for diagnostic in &parsed.diagnostics {
            assert!(!diagnostic.render(false).is_empty(), "round {round}");
            assert!(!diagnostic.to_string().contains(['\n', '\u{1b}']), "round {round}: {diagnostic}");
        }
        let bad = parsed.diagnostics.iter().any(agentd_unit::Diagnostic::is_error);
        assert_eq!(matches!(parsed.unit.load, LoadState::BadSetting(_)), bad, "round {round}");
    }
}

#[test]
fn no_mutation_of_a_value_makes_its_parser_panic() {
    let seeds = [
        "1min 30.5s",
        "1.5G",
        "12.34%",
        "~CAP_SYS_ADMIN CAP_KILL",
        "www-data",
        "-@:/bin/a b \"c\\x20\" ; /d",
        "Mon..Fri,Sun 2027..2030/2-*~01..3/2 10..12:00/15:0.5/1.5 UTC",
        "*/5 0-12/3,14 * jan-mar sun-6",
        "a-b\\x2dc",
    ];
    let zone = LocalZone::utc();
    let mut random = Random(8);
    for _ in 0..20_000 {
        let seed = random.pick(&seeds);
        let text = mutated(&mut random, seed);
        // What these make of it stands in their tables; here they must only come back.
        drop((principal::parse(&text), limit::cpu_quota(&text), capability::parse(text.split(' '))));
        drop(command::parse_line(&text, words::Escapes::Resolve, &|word| Ok(word.to_owned())));
        if let Ok(plain) = escape::unescape(&text) {
            assert_eq!(escape::unescape(&escape::escape(&plain)).as_deref(), Ok(plain.as_str()));
        }
        if let Ok(Some(parsed)) = span::parse(&text) {
            assert_eq!(span::parse(&span::display(parsed)), Ok(Some(parsed)), "{text}");
        }
        if let Ok(bytes) = limit::size(&text) {
            assert_eq!(limit::size(&bytes.to_string()), Ok(bytes), "{text}");
        }
        let now = Realtime(i64::try_from(random.below(1 << 52)).unwrap_or(0));
        if let Ok(spec) = CalendarSpec::parse(&text, &zone) {
            assert_eq!(CalendarSpec::parse(&spec.to_string(), &zone).as_ref(), Ok(&spec), "{text} -> {spec}");
            assert!(spec.next_after(now).is_none_or(|next| next > now), "{text}");
        }
        if let Ok(spec) = CronSpec::parse(&text, &zone) {
            assert!(spec.next_after(now).is_none_or(|next| next > now), "{text}");
        }
    }
}

#[test]
fn next_is_always_later_in_every_kind_of_zone() {
    let mut random = Random(9);
    let expressions = [
        "hourly",
        "*:0/7",
        "*-*-* 02:30",
        "01:15",
        "*-*-* 0/3:00",
        "Sun *-*~7/1 02..03:00",
        "*:*:*",
        "*-*-* 00:30",
    ];
    for zone in
        ["Europe/Dublin", "Africa/Casablanca", "Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu"]
    {
        let local = LocalZone::named(zone).unwrap_or_else(|error| panic!("{error}"));
        for expression in expressions {
            let spec = CalendarSpec::parse(expression, &local).unwrap_or_else(|error| panic!("{error}"));
            for _ in 0..200 {
                // From 1970 into 2041.
                let now = Realtime(i64::try_from(random.below(1 << 51)).unwrap_or(0));
                let next =
                    spec.next_after(now).unwrap_or_else(|| panic!("{expression} in {zone} ends at {now:?}"));
                assert!(next > now, "{expression} in {zone} after {now:?}");
                let between = Realtime(now.0 + (next.0 - now.0) / 2);
                let again = spec.next_after(Realtime(between.0.min(next.0 - 1)));
                assert_eq!(
                    again,
                    Some(next),
                    "{expression} in {zone}: nothing lies between {now:?} and its next"
                );
            }
        }
    }
}

#[test]
fn long_lines_are_whole_or_refused_and_never_two_settings() {
    for length in [2_047, 2_048, 2_049, 65_536, 1_000_000] {
        for evil in ["User=root", "ExecStart=/bin/evil", "User = \\\"root\\\""] {
            let text = format!(
                "[Service]\nExecStart = [\"/bin/true\"]\n[Unit]\nDescription = \"{}{evil}\"\n",
                "x".repeat(length)
            );
            let parsed = parse(&text);
            assert_eq!(parsed.unit.load, LoadState::Loaded, "{length}");
            let service = parsed.unit.as_service().map(|body| body.service.clone()).unwrap_or_default();
            assert_eq!((service.user, service.exec_start.len()), (None, 1), "{length} {evil}");
            assert!(parsed.unit.description().len() > length);
        }
    }
}

#[test]
fn a_megabyte_of_one_thing_takes_no_more_than_linear_time() {
    let start = Instant::now();
    let repeat = |piece: &str| piece.repeat(1024 * 1024 / piece.len());
    let service = |setting: String| format!("[Service]\nExecStart = [\"/bin/true\"]\n{setting}\n");
    for (case, text) in [
        ("one long string", service(format!("User = \"{}\"", repeat("a")))),
        ("escapes", service(format!("ExecStartPre = '/bin/a {}'", repeat("\\x20")))),
        ("open quotes", service(format!("ExecStartPre = '/bin/a {}'", repeat("\"")))),
        ("commands", service(format!("ExecStartPre = '/bin/a {}'", repeat("; /b ")))),
        ("percent signs", service(format!("ExecStartPre = '/bin/a {}'", repeat("%%")))),
        ("units", format!("[Unit]\nWants = \"{}\"\n{}", repeat("a.service "), service(String::new()))),
        ("bad units", format!("[Unit]\nWants = \"{}\"\n{}", repeat("a b "), service(String::new()))),
        ("words of time", service(format!("RestartSec = \"{}\"", repeat("1us ")))),
        ("capabilities", service(format!("CapabilityBoundingSet = \"{}\"", repeat("CAP_KILL ")))),
        ("opening brackets", service(format!("User = {}", repeat("[")))),
        ("equal signs", service(repeat("= "))),
        ("broken lines", service(repeat("x = = y\n"))),
        ("unknown keys", service((0..80_000).map(|n| format!("k{n} = 1\n")).collect())),
        ("sections", (0..80_000).map(|n| format!("[s{n}]\n")).collect()),
        (
            "variables",
            service(format!(
                "Environment = \"{}\"",
                (0..50_000).map(|n| format!("V{n}=1 ")).collect::<String>()
            )),
        ),
        ("backslashes", service(format!("User = \"{}\"", repeat("\\\\")))),
        ("comment", format!("#{}\n{}", repeat("#"), service(String::new()))),
        ("calendar", format!("[Timer]\nOnCalendar = \"{}1:00\"\n{}", repeat("1,"), service(String::new()))),
        ("cron", format!("[Timer]\nCron = \"{}1 * * * *\"\n{}", repeat("1,"), service(String::new()))),
        ("blank lines", format!("{}{}", repeat("\n"), service("User = \"0\"0".to_owned()))),
    ] {
        let begin = worked(start);
        let parsed = parse(&text);
        for diagnostic in parsed.diagnostics.iter().take(100) {
            assert!(diagnostic.render(false).len() < 10_000, "{case}: a report is bounded");
            assert!(diagnostic.to_string().len() < 2_000, "{case}: a line is bounded");
        }
        let took = worked(start) - begin;
        assert!(took < LINEAR, "{case} took {took:?}");
    }
    assert!(words::split(&repeat("a ")).is_ok_and(|words| words.len() > 500_000));
}
