//! What `show` prints of a key is read as the value that was printed: spans, sizes, shares, modes, signals, exit statuses,
//! sets of processors and capabilities, environment, command lines and lists, over thousands of units that a seed makes.

#![forbid(unsafe_code)]

mod support;

use std::sync::Arc;

use agentd_unit::schema::{self, Property, Section};
use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, Unit, UnitName, parse_unit};
use support::Random;

/// A unit with these lines in systemd's syntax.
fn unit(lines: &str) -> Unit {
    let name = UnitName::parse("a.service").unwrap_or_else(|error| panic!("{error}"));
    let source = Arc::new(SourceFile::new("a.service", format!("[Service]\nExecStart=/bin/a\n{lines}")));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let parsed = parse_unit(&name, &[source], &ParseContext { specifiers: &specifiers, zone: &zone });
    let found: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{lines}\n{found:?}");
    parsed.unit
}

/// A word in double quotes, with every character that is not a letter or a digit as an escape.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() => out.push(c),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out + "\""
}

fn text(random: &mut Random) -> String {
    let pieces = [
        "a",
        "B7",
        " ",
        "  ",
        "\t",
        "\n",
        "\r",
        "\"",
        "'",
        "\\",
        ";",
        "$X",
        "${Y}",
        "#",
        "-",
        "=",
        "\u{1b}",
        "\u{7f}",
        "\u{85}",
        "\u{e9}",
        "\u{301}",
        "\u{feff}",
        "\u{1f980}",
    ];
    (0..random.below(6)).map(|_| random.pick(&pieces)).collect()
}

fn several(random: &mut Random, gap: &str, one: impl Fn(&mut Random) -> String) -> String {
    (0..1 + random.below(5)).map(|_| one(random)).collect::<Vec<_>>().join(gap)
}

fn span(random: &mut Random) -> String {
    let units = ["us", "ms", "s", "min", "h", "d", "w"];
    several(random, " ", |random| format!("{}{}", 1 + random.below(90), random.pick(&units)))
}

fn share(random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("{}%", 1 + random.below(100)),
        1 => format!("{}.{}%", random.below(100), 1 + random.below(9)),
        _ => format!("{}.{:02}%", random.below(100), 1 + random.below(99)),
    }
}

fn size(random: &mut Random) -> String {
    let suffixes = ["", "K", "M", "G", "T"];
    let suffix = random.pick(&suffixes);
    match random.below(3) {
        0 if !suffix.is_empty() => format!("{}.{}{suffix}", 1 + random.below(99), random.below(1000)),
        1 => share(random),
        _ => format!("{}{suffix}", 1 + random.below(2000)),
    }
}

fn signal(random: &mut Random) -> String {
    match random.below(3) {
        0 => (1 + random.below(31)).to_string(),
        1 => format!("SIGRTMIN+{}", random.below(30)),
        _ => random.pick(&["SIGTERM", "INT", "SIGUSR1", "HUP", "SIGPOLL"]).to_owned(),
    }
}

fn capabilities(random: &mut Random) -> String {
    let names = ["CAP_KILL", "cap_chown", "CAP_NET_RAW", "CAP_BPF", "CAP_SYS_ADMIN", "CAP_SETUID"];
    let inverted = if random.below(3) == 0 { "~" } else { "" };
    format!("{inverted}{}", several(random, " ", |random| random.pick(&names).to_owned()))
}

fn processors(random: &mut Random) -> String {
    several(random, " ", |random| {
        let first = random.below(60);
        if random.below(2) == 0 { first.to_string() } else { format!("{first}-{}", first + random.below(9)) }
    })
}

type Make = fn(&mut Random) -> String;

/// Keys, one or more of each kind of value, with what makes a value.
const KEYS: [(Section, &str, Make); 20] = [
    (Section::Unit, "Description", |random| format!("about {}", random.below(100))),
    (Section::Unit, "After", |random| several(random, " ", |random| format!("u{}.service", random.below(9)))),
    (Section::Unit, "StartLimitBurst", |random| random.below(u64::from(u32::MAX)).to_string()),
    (Section::Service, "RestartSec", span),
    (Section::Service, "TimeoutStopSec", |random| {
        if random.below(5) == 0 { "infinity".to_owned() } else { span(random) }
    }),
    (Section::Service, "Restart", |random| {
        random.pick(&["no", "always", "on-abort", "on-failure"]).to_owned()
    }),
    (Section::Service, "SendSIGKILL", |random| random.pick(&["yes", "off", "true", "0"]).to_owned()),
    (Section::Service, "MemoryMax", size),
    (Section::Service, "TasksMax", |random| {
        if random.below(2) == 0 { share(random) } else { (1 + random.below(9999)).to_string() }
    }),
    (Section::Service, "UMask", |random| format!("{:o}", random.below(0o1000))),
    (Section::Service, "StateDirectoryMode", |random| format!("{:04o}", random.below(0o1000))),
    (Section::Service, "KillSignal", signal),
    (Section::Service, "SuccessExitStatus", |random| {
        several(random, " ", |random| match random.below(2) {
            0 => random.below(256).to_string(),
            _ => random.pick(&["SIGKILL", "TEMPFAIL", "DATAERR"]).to_owned(),
        })
    }),
    (Section::Service, "CapabilityBoundingSet", capabilities),
    (Section::Service, "AmbientCapabilities", capabilities),
    (Section::Service, "CPUAffinity", processors),
    (Section::Service, "LimitNOFILE", |random| {
        let soft = random.below(4096);
        format!("{soft}:{}", soft + random.below(4096))
    }),
    (Section::Service, "StateDirectory", |random| {
        several(random, " ", |random| format!("s/{}", random.below(9)))
    }),
    (Section::Service, "Environment", |random| {
        several(random, " ", |random| quoted(&format!("N{}={}", random.below(5), text(random))))
    }),
    (Section::Service, "ExecStartPre", |random| {
        several(random, " ; ", |random| {
            format!("/bin/b {}", several(random, " ", |random| quoted(&text(random))))
        })
    }),
];

/// `{ path=/bin/b ; argv[]=/bin/b "x y" ; ignore_errors=no } { … }` as a unit file has it.
fn command_lines(shown: &str) -> String {
    let commands = shown.split("{ path=/bin/b ; argv[]=").skip(1);
    let lines = commands.map(|command| command.rsplit_once(" ; ignore_errors=no }").unwrap_or_default().0);
    lines.collect::<Vec<_>>().join(" ; ")
}

#[test]
fn what_is_printed_of_a_unit_makes_the_same_unit() {
    let mut random = Random(11);
    for case in 0..4_000 {
        let mut keys: Vec<_> = KEYS.iter().filter(|_| random.below(3) == 0).collect();
        keys.sort_by_key(|(section, ..)| *section != Section::Service);
        let lines = |value: &mut dyn FnMut(Section, &str, Make) -> String| {
            let mut lines = String::new();
            for (section, key, make) in &keys {
                let value = value(*section, key, *make);
                lines.push_str(&format!("[{}]\n{key}={value}\n", section.as_str()));
            }
            lines
        };
        let written = lines(&mut |_, _, make| make(&mut random));
        let first = unit(&written);
        let shown = schema::properties(&first);
        let printed = lines(&mut |section, key, _| match schema::property(section, key) {
            Property::Shown(name) if key == "LimitNOFILE" => {
                format!("{}:{}", shown["LimitNOFILESoft"], shown[&name])
            }
            Property::Shown(name) if key == "ExecStartPre" => command_lines(&shown[&name]),
            Property::Shown(name) => shown[&name].clone(),
            other => panic!("{key}: {other:?}"),
        });
        let second = unit(&printed);
        assert_eq!(second.unit, first.unit, "case {case}: {written}\n{printed}");
        assert_eq!(second.body, first.body, "case {case}: {written}\n{printed}");
    }
}
