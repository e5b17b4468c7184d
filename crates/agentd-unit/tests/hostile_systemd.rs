//! systemd's syntax under bytes that nobody would write on purpose, and what holds for every file: seeded, so that every
//! run is the same run.

mod support;
#[path = "support/worked.rs"]
mod worked;

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_unit::{
    Body, LoadState, LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, UnitName, import,
    parse_unit,
};
use support::Random;
use worked::worked;

/// Processor time far above what a linear reader takes, far below what a quadratic one takes, unoptimised.
const LINEAR: Duration = Duration::from_secs(20);

fn name() -> UnitName {
    UnitName::parse("a@b.service").unwrap_or_else(|error| panic!("{error}"))
}

fn parse(files: &[(&str, &[u8])]) -> Parsed {
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let files: Vec<_> =
        files.iter().map(|(path, bytes)| Arc::new(SourceFile::from_bytes(*path, bytes))).collect();
    parse_unit(&name(), &files, &ParseContext { specifiers: &specifiers, zone: &zone })
}

/// What one key may be set to, in lists that a random unit is made of.
const LINES: &[(&str, &[&str])] = &[
    (
        "Unit",
        &[
            "Description=A \"%i\" \u{2014} 100% unit",
            "Description=",
            "Documentation=man:a(8) https://b",
            "Wants=a.service b@%i.target",
            "Wants=",
            "After=b.service \"c.service\"",
            "Before=x-y\\x2dz.service",
            "Conflicts=shutdown.target",
            "OnFailure=rescue@.service",
            "StartLimitBurst=7",
            "StartLimitIntervalSec=1min 30s",
            "DefaultDependencies=no",
            "X-Mine=1",
        ],
    ),
    (
        "Service",
        &[
            "Type=exec",
            "Type=oneshot",
            "ExecStartPre=-/bin/a 'b c' \"d\\x41\" %% $E ${F}",
            "ExecStartPre=/bin/b \\\n  c \\\n# why\n  d",
            "ExecStartPre=",
            "ExecStop=@/bin/c c0 ; :/bin/d \\; e",
            "Environment=A=1 \"B=x y\" C=",
            "Environment=A=2",
            "Environment=",
            "EnvironmentFile=-/etc/default/a",
            "UMask=0027",
            "Restart=on-failure",
            "Restart=no",
            "RestartSec=500ms",
            "TimeoutSec=9",
            "User=www-data",
            "User=",
            "NoNewPrivileges=yes",
            "MemoryMax=1.5G",
            "CPUQuota=20%",
            "CapabilityBoundingSet=CAP_KILL CAP_CHOWN",
            "CapabilityBoundingSet=~CAP_CHOWN",
            "SuccessExitStatus=2 SIGKILL",
            "WorkingDirectory=-/x",
            "KillSignal=SIGINT",
            "KillSignal=9",
        ],
    ),
    ("Agent", &["Kind=go", "MaxRestarts=5", "ReplaceOrder=start-first"]),
    ("Timer", &["OnCalendar=Mon *-*-* 10:00", "OnBootSec=5min", "OnCalendar=", "Persistent=true"]),
    ("Install", &["WantedBy=multi-user.target", "Alias=z@.service", "WantedBy="]),
];

/// Some lines of some sections, in a random order.
fn random_text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(6) {
        let place = usize::try_from(random.below(LINES.len() as u64)).unwrap_or(0);
        let (section, lines) = LINES[place];
        if section == "Timer" && random.below(3) > 0 {
            continue;
        }
        text.push_str(&format!("{}[{section}]\n", random.pick(&["", "# x\n", "\n\n; y\n"])));
        for _ in 0..random.below(8) {
            text.push_str(random.pick(lines));
            text.push_str(random.pick(&["\n", "\n", "\r\n", "\n# z\n", "\n\n"]));
        }
    }
    text
}

/// What two readings of the same must agree in; what the syntax itself decides is left out.
fn said(parsed: &Parsed) -> impl PartialEq + std::fmt::Debug {
    let unit = &parsed.unit;
    let load = matches!(unit.load, LoadState::Loaded);
    // The earliest trigger counts, in whatever order they stand.
    let timer = parsed.own.iter().find(|unit| matches!(unit.body, Body::Timer(_))).map(|timer| {
        let Body::Timer(section) = &timer.body else { panic!("a timer") };
        let mut triggers: Vec<String> = section.triggers.iter().map(ToString::to_string).collect();
        triggers.sort();
        (triggers, section.persistent, timer.install.clone())
    });
    (load, unit.unit.clone(), unit.install.clone(), unit.body.clone(), timer)
}

const MAIN: &str = "[Service]\nExecStart=/bin/true\n";

#[test]
fn what_is_imported_makes_the_same_unit() {
    let mut random = Random(11);
    for round in 0..2000 {
        let text = format!("{MAIN}{}", random_text(&mut random));
        let foreign = parse(&[("a@.service", text.as_bytes())]);
        let source = Arc::new(SourceFile::new("a@.service", text.as_str()));
        let template = UnitName::parse("a@.service").unwrap_or_else(|error| panic!("{error}"));
        let imported = import::to_toml(&source, &template);
        let ours = parse(&[("a@.service.toml", imported.text.as_bytes())]);
        assert_eq!(
            said(&ours),
            said(&foreign),
            "round {round}\n{text}\n->\n{}\n{:?}",
            imported.text,
            ours.diagnostics
        );
    }
}

#[test]
fn merging_is_associative_over_the_files() {
    let mut random = Random(12);
    for round in 0..2000 {
        let [a, b, c] = [0, 1, 2].map(|_| random_text(&mut random));
        let a = format!("{MAIN}{a}");
        let (ab, bc) = (format!("{a}\n{b}"), format!("{b}\n{c}"));
        let apart =
            parse(&[("a@.service", a.as_bytes()), ("b.conf", b.as_bytes()), ("c.conf", c.as_bytes())]);
        let left = parse(&[("a@.service", ab.as_bytes()), ("c.conf", c.as_bytes())]);
        let right = parse(&[("a@.service", a.as_bytes()), ("bc.conf", bc.as_bytes())]);
        assert_eq!(said(&apart), said(&left), "round {round}:\n{a}\n--\n{b}\n--\n{c}");
        assert_eq!(said(&apart), said(&right), "round {round}:\n{a}\n--\n{b}\n--\n{c}");
    }
}

#[test]
fn no_mutation_of_a_file_makes_the_readers_panic() {
    const TELLING: &[u8] = b"\\\n\"'[]=%#;\r\0\xff {}@~-\xc3\xa9";
    let mut random = Random(13);
    for round in 0..3000 {
        let mut bytes = format!("{MAIN}{}", random_text(&mut random)).into_bytes();
        for _ in 0..=random.below(6) {
            let below =
                |random: &mut Random, bound: usize| usize::try_from(random.below(bound as u64)).unwrap_or(0);
            let at = below(&mut random, bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, TELLING[below(&mut random, TELLING.len())]),
                _ => {
                    let end = (at + below(&mut random, 30)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let parsed = parse(&[("a@.service", &bytes)]);
        for finding in &parsed.diagnostics {
            assert!(!finding.render(false).is_empty(), "round {round}");
            assert!(!finding.to_string().contains(['\n', '\u{1b}']), "round {round}: {finding}");
        }
        let bad = parsed.diagnostics.iter().any(agentd_unit::Diagnostic::is_error);
        assert_eq!(matches!(parsed.unit.load, LoadState::BadSetting(_)), bad, "round {round}");
        let imported = import::to_toml(&Arc::new(SourceFile::from_bytes("a@.service", &bytes)), &name());
        let again = parse(&[("a@.service.toml", imported.text.as_bytes())]);
        let toml = again.diagnostics.iter().all(|d| !d.message.starts_with("not TOML"));
        assert!(toml, "round {round}: {}\n{:?}", imported.text, again.diagnostics);
    }
}

#[test]
fn a_megabyte_of_one_thing_takes_no_more_than_linear_time() {
    let repeat = |piece: &str| piece.repeat(1024 * 1024 / piece.len());
    let service = |lines: String| format!("{MAIN}{lines}\n").into_bytes();
    let start = Instant::now();
    for (case, bytes) in [
        ("one long value", service(format!("User={}", repeat("a")))),
        ("continuations", service(format!("ExecStartPre=/bin/a {}", repeat("x \\\n")))),
        (
            "continuations with comments",
            service(format!("ExecStartPre=/bin/a \\\n{}", repeat("# c\nx \\\n"))),
        ),
        ("units on many lines", service(format!("[Unit]\nWants={}", repeat("b.service \\\n")))),
        ("bad units on many lines", service(format!("[Unit]\nWants={}", repeat("b \\\n")))),
        ("backslashes", service(format!("ExecStartPre=/bin/a {}", repeat("\\")))),
        ("unknown escapes", service(format!("ExecStartPre=/bin/a {}", repeat("\\z")))),
        ("unknown specifiers", service(format!("ExecStartPre=/bin/a {}", repeat("%Z")))),
        ("open quotes", service(format!("ExecStartPre=/bin/a {}", repeat("\"")))),
        ("resets", service(repeat("ExecStartPre=\n"))),
        ("repeated keys", service(repeat("Environment=A=1\n"))),
        ("variables", service((0..50_000).map(|n| format!("Environment=V{n}=1\n")).collect())),
        ("unknown keys", service((0..80_000).map(|n| format!("k{n}=1\n")).collect())),
        ("sections", service(repeat("[Unit]\n"))),
        ("unknown sections", service((0..80_000).map(|n| format!("[s{n}]\n")).collect())),
        ("sections of others", service((0..60_000).map(|n| format!("[X-{n}]\n")).collect())),
        ("keys of others", service((0..60_000).map(|n| format!("X-{n}=1\n")).collect())),
        ("open brackets", service(repeat("[\n"))),
        ("no equal signs", service(repeat("x\n"))),
        ("comments", service(repeat("#\n"))),
        ("empty lines", service(repeat("\n"))),
        ("bytes that are no UTF-8", [MAIN.as_bytes(), &[0xff; 1024 * 1024]].concat()),
        ("such comments", [MAIN.as_bytes(), b"User=a \\\n", &b"#\xff\n".repeat(300_000)].concat()),
        ("NULs", service(repeat("a\0\n"))),
    ] {
        let begin = worked(start);
        let parsed = parse(&[("a@.service", &bytes)]);
        for diagnostic in parsed.diagnostics.iter().take(100) {
            assert!(diagnostic.render(false).len() < 10_000, "{case}: a report is bounded");
            assert!(diagnostic.to_string().len() < 2_000, "{case}: a line is bounded");
        }
        let imported = import::to_toml(&Arc::new(SourceFile::from_bytes("a@.service", &bytes)), &name());
        assert!(imported.notes.len() <= 200, "{case}: notes are bounded");
        let took = worked(start) - begin;
        assert!(took < LINEAR, "{case} took {took:?}");
        assert!(matches!(parsed.unit.body, Body::Service(_)));
    }
}
