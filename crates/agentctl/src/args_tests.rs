//! What may be typed, and what may not.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(format!("agentctl {line}").split_whitespace())
}

#[test]
fn the_definition_of_the_command_line_is_sound() {
    Cli::command().debug_assert();
}

/// What scripts rely on.
const FORMS: &[&str] = &[
    "start web",
    "--user --no-block start web.service db.service",
    "start --wait web db.service",
    "restart web --wait",
    "start web --runtime-dir /run/x -o json",
    "stop web -q",
    "restart web --job-mode=ignore-dependencies",
    "try-restart web",
    "reload web",
    "reload-or-restart web",
    "kill web",
    "kill -s HUP --kill-whom=main web",
    "kill --signal=64 web",
    "status",
    "status web -n 0",
    "list",
    "list-units --all --type service,timer --state=failed",
    "list web*",
    "list-timers -o json",
    "list-jobs",
    "cancel",
    "cancel 1 2",
    "enable web db --now",
    "enable --runtime web",
    "disable --now web",
    "mask --runtime --now web",
    "unmask web",
    "is-enabled web db",
    "list-unit-files",
    "list-unit-files web* --type service,timer --state=enabled -o json",
    "isolate rescue",
    "isolate web.service --no-block",
    "default",
    "rescue",
    "emergency",
    "is-system-running",
    "diff web db",
    "edit web",
    "edit --full --stdin web",
    "edit --drop-in 10-limits --runtime web",
    "revert web",
    "apply --dry-run -o json",
    "new web --kind go --timer --units /a --agents /b --kit /c",
    "import a.service b.timer --out /units",
    "list-dependencies",
    "list-dependencies web --reverse --all -o tree",
    "list-dependencies web --after -o dot",
    "analyze verify a.service.toml",
    "analyze verify --all -o json",
    "analyze calendar daily --iterations=5 --base-time=now",
    "analyze timespan 5min 3s",
    "analyze security",
    "analyze security web ./a.service --threshold=50 -o json",
    "analyze unit-paths",
    "analyze condition ConditionPathExists=/x AssertUser=root",
    "analyze condition --unit web -o json",
    "analyze dot web --order",
    "schema timer",
    "show",
    "show web -p MainPID,Result -p Id --value",
    "cat web",
    "logs web -f -n 5 -o json",
    "daemon-reload",
    "daemon-reexec",
    "is-active web",
    "is-failed web",
    "freeze web db",
    "thaw web",
    "reset-failed",
    "reset-failed web",
    "poweroff",
    "reboot",
    "halt",
    "exit",
    "exit 5",
    "version",
    "key generate me --out /tmp",
    "key list --keys /a --keys /b",
    "sign --key me.key --root /img a.service.toml b.service.toml",
    "verify --keys /a a.service.toml",
];

#[test]
fn every_form_that_scripts_rely_on_is_taken() {
    for line in FORMS {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
}

/// The same by the short way alone.
fn parse_quickly(line: &str) -> Option<Cli> {
    quick::parse(&format!("agentctl {line}").split_whitespace().map(Into::into).collect::<Vec<_>>())
}

#[test]
fn the_short_way_reads_what_the_whole_command_line_reads() {
    let more = ["list status", "--runtime-dir list -o json status web", "show start", "-q is-active a -- b"];
    let mut quick = 0;
    for line in FORMS.iter().chain(&more) {
        if let Some(cli) = parse_quickly(line) {
            quick += 1;
            assert_eq!(format!("{cli:?}"), format!("{:?}", parse(line).unwrap()), "{line}");
        }
    }
    assert!(quick >= 20, "only {quick}");
    for line in ["status", "--user status web -n 0", "list -a", "start web --no-block", "is-failed a b"] {
        assert!(parse_quickly(line).is_some(), "{line}");
    }
}

#[test]
fn what_is_wrong_or_asks_for_help_is_not_for_the_short_way() {
    for line in [
        "",
        "fly status",
        "start",
        "start a/b",
        "list -o xml",
        "status --help",
        "--version status",
        "--runtime-dir status cat web",
        "kill -s 0 web",
    ] {
        assert!(parse_quickly(line).is_none(), "{line}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_the_reason() {
    for (line, reason) in [
        ("", "Usage:"),
        ("fly", "unrecognized subcommand 'fly'"),
        ("start", "<UNIT>"),
        ("start a/b", "character '/'"),
        ("start web --job-mode=hard", "it is one of replace, fail"),
        ("kill -s 0 web", "'0' is no signal"),
        ("kill -s 65 web", "'65' is no signal"),
        ("kill -s TERM9 web", "'TERM9' is no signal"),
        ("kill --kill-whom=child web", "it is one of all, main, control"),
        ("logs web -n many", "'many' is no number of lines"),
        ("status web -n -1", "unexpected argument"),
        ("cancel x", "invalid digit"),
        ("exit 256", "256 is not in 0..=255"),
        ("list --type lamp", "'lamp' is no type of units"),
        ("list-unit-files --type lamp", "'lamp' is no type of units"),
        ("list -o xml", "possible values: text, json"),
        ("key generate me", "--out <DIR>"),
        ("sign a.service.toml", "--key <FILE>"),
        ("verify", "<UNIT-FILE>"),
        ("edit --full --drop-in x web", "cannot be used with"),
        ("isolate", "<UNIT>"),
        ("isolate a.target b.target", "unexpected argument"),
        ("edit a b", "unexpected argument"),
        ("new", "<NAME>"),
        ("new web --kind perl", "possible values: python, go, exec"),
        ("import", "<FILE>"),
        ("analyze verify", "<FILE>"),
        ("analyze verify --all a.service", "cannot be used with"),
        ("list-dependencies --after --before", "cannot be used with"),
        ("schema lamp", "it is one of service"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.to_string().contains(reason), "{line}: {error}");
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn a_mistyped_verb_is_answered_with_the_right_one() {
    let error = parse("statsu web").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidSubcommand);
    assert!(error.to_string().contains("status"), "{error}");
}

#[test]
fn a_name_without_a_type_is_a_service() {
    let Verb::Start(start) = parse("start web db.target").unwrap().verb else { panic!("not a start") };
    assert_eq!(
        start.jobs.units.iter().map(UnitName::as_str).collect::<Vec<_>>(),
        ["web.service", "db.target"]
    );
}
