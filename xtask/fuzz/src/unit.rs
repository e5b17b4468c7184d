//! The readers of the unit language: both syntaxes of files, and the values that have a grammar of their own.

use std::sync::Arc;

use agentd_unit::calendar::CalendarSpec;
use agentd_unit::cron::CronSpec;
use agentd_unit::values::{command, span, words};
use agentd_unit::{
    Body, Diagnostic, ExecCommand, LoadState, LocalZone, ParseContext, Parsed, Realtime, SourceFile,
    SpecifierContext, UnitName, import, parse_unit,
};

/// Every law by its name, which is that of its folder in `corpus/`.
pub const TARGETS: [(&str, crate::mutate::Law); 6] = [
    ("toml", toml),
    ("systemd", systemd),
    ("command_line", command_line),
    ("calendar", calendar),
    ("cron", cron),
    ("span", span_of_time),
];

fn parse(file: &str, bytes: &[u8]) -> Parsed {
    let Ok(name) = UnitName::parse("a@b.service") else { unreachable!("a name") };
    let source = Arc::new(SourceFile::from_bytes(file, bytes));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let parsed = parse_unit(&name, &[source], &ParseContext { specifiers: &specifiers, zone: &zone });
    for diagnostic in &parsed.diagnostics {
        assert!(!diagnostic.render(false).is_empty());
        assert!(
            !diagnostic.to_string().contains(['\n', '\u{1b}']),
            "one line, and nothing for terminals: {diagnostic}"
        );
    }
    let is_bad = parsed.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        matches!(parsed.unit.load, LoadState::BadSetting(_)),
        is_bad,
        "an error, and only one, keeps it down"
    );
    parsed
}

/// A file in TOML is read, whatever it is.
pub fn toml(data: &[u8]) {
    parse("a@.service.toml", data);
}

/// A file in systemd's syntax is read, whatever it is; and one that is right makes the same unit when it is imported.
pub fn systemd(data: &[u8]) {
    let theirs = parse("a@.service", data);
    let Ok(template) = UnitName::parse("a@.service") else { unreachable!("a name") };
    let source = Arc::new(SourceFile::from_bytes("a@.service", data));
    let imported = import::to_toml(&source, &template);
    let ours = parse("a@.service.toml", imported.text.as_bytes());
    if theirs.unit.load != LoadState::Loaded {
        return;
    }
    assert_eq!(said(&ours), said(&theirs), "\n{}\n{:?}", imported.text, ours.diagnostics);
}

/// What two readings of the same must agree in; what the syntax itself decides is left out.
fn said(parsed: &Parsed) -> impl PartialEq + std::fmt::Debug + use<> {
    let unit = &parsed.unit;
    let own = parsed.own.iter().map(|own| {
        let mut body = own.body.clone();
        if let Body::Timer(section) = &mut body {
            // The earliest trigger counts, in whatever order they stand.
            section.triggers.sort_by_key(ToString::to_string);
        }
        (body, own.install.clone())
    });
    let own: Vec<_> = own.collect();
    let load = matches!(unit.load, LoadState::Loaded);
    (load, unit.unit.clone(), unit.install.clone(), unit.body.clone(), own)
}

/// A command line has a program and a first argument, and its words make it again.
pub fn command_line(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for escapes in [words::Escapes::Resolve, words::Escapes::Relaxed, words::Escapes::Retain] {
        let Ok(commands) = command::parse_line(text, escapes, &|word| Ok(word.to_owned())) else { continue };
        assert!(!commands.is_empty());
        for one in commands {
            assert!(!one.program.is_empty() && !one.argv.is_empty(), "{one:?}");
            let again = command::parse_argv(&argv(&one), &|word| Ok(word.to_owned()));
            assert_eq!(again.ok().as_ref(), Some(&one));
        }
    }
}

/// A command as a list that makes it.
fn argv(command: &ExecCommand) -> Vec<String> {
    let flags = [
        (command.ignore_failure, '-'),
        (!command.expand_environment, ':'),
        (command.full_privileges, '+'),
        (command.no_setuid, '!'),
        (true, '@'),
    ];
    let prefixes: String =
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, prefix)| prefix).collect();
    [vec![format!("{prefixes}{}", command.program)], command.argv.clone()].concat()
}

/// Some instants: before and after zero, at a change of the year, and where time ends.
const INSTANTS: [Realtime; 5] = [
    Realtime(-86_400_000_000),
    Realtime(0),
    Realtime(1_798_761_599_999_999),
    Realtime(4_102_444_800_000_000),
    Realtime(i64::MAX),
];

/// A calendar prints as what it means, and its next time is later.
pub fn calendar(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(spec) = CalendarSpec::parse(text, &LocalZone::utc()) else { return };
    let printed = spec.to_string();
    let again = CalendarSpec::parse(&printed, &LocalZone::utc());
    let Ok(again) = again else { panic!("{text} is printed as {printed}: {again:?}") };
    assert_eq!(again.to_string(), printed, "{text}");
    for at in INSTANTS {
        let next = spec.next_after(at);
        assert!(next.is_none_or(|next| next > at), "{text} after {at:?}");
        assert_eq!(next, again.next_after(at), "{text} and {printed} after {at:?}");
    }
}

/// A cron expression prints as what it means, and its next time is later.
pub fn cron(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(spec) = CronSpec::parse(text, &LocalZone::utc()) else { return };
    let printed = spec.to_string();
    let again = CronSpec::parse(&printed, &LocalZone::utc());
    let Ok(again) = again else { panic!("{text} is printed as {printed}: {again:?}") };
    for at in INSTANTS {
        let next = spec.next_after(at);
        assert!(next.is_none_or(|next| next > at), "{text} after {at:?}");
        assert_eq!(next, again.next_after(at), "{text} and {printed} after {at:?}");
    }
}

/// A span prints as what it is, to the microsecond that spans are kept in.
pub fn span_of_time(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(Some(span)) = span::parse(text) else { return };
    let printed = span::display(span);
    assert_eq!(span::parse(&printed).ok().flatten(), Some(span), "{text} is printed as {printed}");
}
