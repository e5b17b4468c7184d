//! What is printed is read again as what it was: spans, calendars, cron expressions, command lines and exit statuses,
//! over thousands of cases each that a seed makes.

#![forbid(unsafe_code)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::calendar::CalendarSpec;
use agentd_unit::cron::CronSpec;
use agentd_unit::import::to_toml;
use agentd_unit::values::{command, span, words};
use agentd_unit::{
    ExecCommand, ExecKind, LocalZone, ParseContext, Realtime, SourceFile, SpecifierContext, Unit, UnitName,
    parse_unit,
};
use support::Random;

const CASES: u64 = 5_000;

#[test]
fn a_span_that_is_printed_is_read_as_it_was() {
    let mut random = Random(1);
    for case in 0..CASES * 4 {
        // Short spans and long ones are as likely.
        let bits = random.below(62) + 1;
        let micros = random.next() >> (64 - bits);
        let whole = [1, 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000];
        let unit = whole[usize::try_from(random.below(6)).unwrap_or(0)];
        let span = Duration::from_micros(if random.below(2) == 0 { micros } else { micros / unit * unit });
        let printed = span::display(span);
        assert_eq!(span::parse(&printed).ok().flatten(), Some(span), "case {case}: {printed}");
    }
}

fn part(random: &mut Random, from: u64, to: u64) -> String {
    let one = |random: &mut Random| match random.below(5) {
        0 => "*".to_owned(),
        1 => format!("{}/{}", from + random.below(to - from), 1 + random.below(to - from)),
        2 => {
            let low = from + random.below(to - from);
            format!("{low}..{}", low + random.below(to - low + 1))
        }
        _ => (from + random.below(to - from + 1)).to_string(),
    };
    let first = one(random);
    if first == "*" || random.below(3) > 0 {
        first
    } else {
        format!("{first},{}", from + random.below(to - from + 1))
    }
}

fn calendar(random: &mut Random) -> String {
    let day = ["", "", "Mon ", "Sat,Sun ", "Mon..Fri ", "Tue,Thu..Sat "];
    let zone = ["", "", "", " UTC", " Europe/Berlin", " Asia/Kathmandu"];
    let date = match random.below(4) {
        0 => String::new(),
        1 => format!("{}-{} ", part(random, 1, 12), part(random, 1, 28)),
        2 => format!("{}-{}~{} ", part(random, 2020, 2040), part(random, 1, 12), 1 + random.below(28)),
        _ => format!("{}-{}-{} ", part(random, 1990, 2060), part(random, 1, 12), part(random, 1, 31)),
    };
    let time = match random.below(3) {
        0 => format!("{}:{}", part(random, 0, 23), part(random, 0, 59)),
        1 => format!(
            "{}:{}:{}.{}",
            part(random, 0, 23),
            part(random, 0, 59),
            random.below(60),
            random.below(1_000_000)
        ),
        _ => format!("{}:{}:{}", part(random, 0, 23), part(random, 0, 59), part(random, 0, 59)),
    };
    format!("{}{date}{time}{}", random.pick(&day), random.pick(&zone))
}

/// An instant between 1970 and 2100.
fn instant(random: &mut Random) -> Realtime {
    Realtime(i64::try_from(random.below(4_102_444_800_000_000)).unwrap_or(0))
}

#[test]
fn a_calendar_that_is_printed_means_what_it_meant_and_its_next_time_is_later() {
    let mut random = Random(2);
    let local = LocalZone::named("Europe/Paris").unwrap_or_else(|_| LocalZone::utc());
    let mut read = 0;
    for case in 0..CASES {
        let text = calendar(&mut random);
        let Ok(spec) = CalendarSpec::parse(&text, &local) else { continue };
        read += 1;
        let printed = spec.to_string();
        let again = CalendarSpec::parse(&printed, &local);
        let again =
            again.unwrap_or_else(|error| panic!("case {case}: {text} is printed as {printed}: {error:?}"));
        assert_eq!(again.to_string(), printed, "case {case}: {text}");
        let mut at = instant(&mut random);
        for _ in 0..3 {
            let next = spec.next_after(at);
            assert_eq!(next, again.next_after(at), "case {case}: {text} and {printed}");
            let Some(next) = next else { break };
            assert!(next > at, "case {case}: {text} after {at:?}");
            at = next;
        }
    }
    assert!(read > CASES / 2, "only {read} expressions could be read");
}

#[test]
fn a_cron_expression_that_is_printed_means_what_it_meant_and_its_next_time_is_later() {
    let mut random = Random(3);
    let local = LocalZone::utc();
    let field = |random: &mut Random, from: u64, to: u64| match random.below(5) {
        0 | 1 => "*".to_owned(),
        2 => format!("*/{}", 1 + random.below(to)),
        3 => {
            let low = from + random.below(to - from);
            format!("{low}-{}", low + random.below(to - low + 1))
        }
        _ => format!("{},{}", from + random.below(to - from + 1), from + random.below(to - from + 1)),
    };
    let mut read = 0;
    for case in 0..CASES {
        let fields =
            [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)].map(|(from, to)| field(&mut random, from, to));
        let text = fields.join(" ");
        let Ok(spec) = CronSpec::parse(&text, &local) else { continue };
        read += 1;
        let printed = spec.to_string();
        let again = CronSpec::parse(&printed, &local);
        let again =
            again.unwrap_or_else(|error| panic!("case {case}: {text} is printed as {printed}: {error:?}"));
        let at = instant(&mut random);
        let next = spec.next_after(at);
        assert_eq!(next, again.next_after(at), "case {case}: {text} and {printed}");
        assert!(next.is_none_or(|next| next > at), "case {case}: {text} after {at:?}");
    }
    assert!(read > CASES / 2, "only {read} expressions could be read");
}

/// A word in systemd's quoting, one of the ways in which it can be written.
fn quoted(random: &mut Random, word: &str) -> String {
    let quote = *random.pick(&[&'"', &'\'']);
    let mut out = String::from(quote);
    for c in word.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str(random.pick(&["\\t", "\\x09", "\t"])),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_ascii_graphic() && random.below(8) == 0 => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

fn argument(random: &mut Random) -> String {
    let pieces = [
        "a",
        "B",
        "7",
        " ",
        "  ",
        "\t",
        "\n",
        "\"",
        "'",
        "\\",
        ";",
        "$X",
        "${Y}",
        "#",
        "-",
        "=",
        "\u{e9}",
        "\u{1f980}",
    ];
    let length = random.below(6);
    (0..length).map(|_| random.pick(&pieces)).collect()
}

fn parse(name: &str, file: &str, text: &str) -> Unit {
    let name = UnitName::parse(name).unwrap_or_else(|error| panic!("{error}"));
    let source = Arc::new(SourceFile::new(file, text));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let parsed = parse_unit(&name, &[source], &ParseContext { specifiers: &specifiers, zone: &zone });
    let errors: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{text}\n{errors:?}");
    parsed.unit
}

fn imported(text: &str) -> String {
    let name = UnitName::parse("a.service").unwrap_or_else(|error| panic!("{error}"));
    let imported = to_toml(&Arc::new(SourceFile::new("a.service", text)), &name);
    assert!(imported.notes.is_empty(), "{text}: {:?}", imported.notes);
    imported.text
}

#[test]
fn a_command_line_is_its_words_in_both_syntaxes() {
    let mut random = Random(4);
    for case in 0..CASES {
        let count = random.below(5);
        let mut argv = vec!["/bin/a".to_owned()];
        argv.extend((0..count).map(|_| argument(&mut random)));
        let line = argv.iter().map(|word| quoted(&mut random, word)).collect::<Vec<_>>().join(" ");
        let as_it_is: command::Expand<'_> = &|word| Ok(word.to_owned());
        let read = command::parse_line(&line, words::Escapes::Resolve, as_it_is);
        let read = read.unwrap_or_else(|error| panic!("case {case}: {line}: {error:?}"));
        let wanted = command::parse_argv(&argv, as_it_is);
        let wanted = wanted.unwrap_or_else(|error| panic!("case {case}: {argv:?}: {error:?}"));
        assert!(read == std::slice::from_ref(&wanted), "case {case}: {line}");

        let text = format!("[Service]\nExecStart={line}\n");
        let commands = |unit: &Unit| -> Vec<ExecCommand> {
            let body = unit.as_service().unwrap_or_else(|| panic!("a service"));
            body.service.commands(ExecKind::Start).to_vec()
        };
        let toml = imported(&text);
        for (file, text) in [("a.service", &text), ("a.service.toml", &toml)] {
            let found = commands(&parse("a.service", file, text));
            assert!(found == std::slice::from_ref(&wanted), "case {case}: {file}: {text}");
        }
    }
}

#[test]
fn lists_of_exit_statuses_are_the_same_in_both_syntaxes_and_in_any_order() {
    let mut random = Random(5);
    let names = ["TEMPFAIL", "DATAERR", "CREDENTIALS", "SIGTERM", "SIGKILL", "SIGHUP", "SIGRTMIN+3"];
    for case in 0..CASES / 5 {
        let mut list: Vec<String> = (0..1 + random.below(8))
            .map(|_| match random.below(2) {
                0 => random.below(256).to_string(),
                _ => random.pick(&names).to_owned(),
            })
            .collect();
        let unit = |list: &[String], lines: bool| {
            let keys = if lines { list.join("\nSuccessExitStatus=") } else { list.join(" ") };
            format!("[Service]\nExecStart=/bin/a\nSuccessExitStatus={keys}\n")
        };
        let body = |file: &str, text: &str| format!("{:?}", parse("a.service", file, text).body);
        let one = unit(&list, false);
        let wanted = body("a.service", &one);
        list.reverse();
        let many = unit(&list, true);
        assert_eq!(body("a.service", &many), wanted, "case {case}: {many}");
        for text in [&one, &many] {
            assert_eq!(body("a.service.toml", &imported(text)), wanted, "case {case}: {text}");
        }
    }
}
