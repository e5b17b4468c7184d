//! What a person reads who wrote a unit wrongly: exact messages, with their places.

use std::sync::Arc;

use agentd_unit::{
    Diagnostic, LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, UnitName, parse_unit,
};

fn parse(name: &str, text: &str) -> Parsed {
    let name = UnitName::parse(name).unwrap_or_else(|error| panic!("{error}"));
    let specifiers = SpecifierContext::system();
    let zone = LocalZone::utc();
    let file = Arc::new(SourceFile::new(format!("{name}.toml"), text));
    parse_unit(&name, &[file], &ParseContext { specifiers: &specifiers, zone: &zone })
}

/// The findings as `line:column: message (help)`.
fn findings(name: &str, text: &str) -> Vec<String> {
    let parsed = parse(name, text);
    let place = format!("{name}.toml:");
    parsed.diagnostics.iter().map(|d| d.to_string().trim_start_matches(&place).to_owned()).collect()
}

#[test]
fn every_bad_setting_has_its_place_its_message_and_its_advice() {
    for (setting, expected) in [
        (r#"Type = "notifi""#, "3:8: [Service] Type: 'notifi' is not known here (did you mean 'notify'?)"),
        (r#"Type = "forkinq""#, "3:8: [Service] Type: 'forkinq' is not known here (did you mean 'forking'?)"),
        (
            "Type = 5",
            "3:8: [Service] Type: wants a word (simple, exec, notify, notify-reload, forking, oneshot, idle), not a whole number",
        ),
        (r#"Tpye = "exec""#, "3:1: [Service] has no setting 'Tpye' (did you mean Type?)"),
        (r#"memorymax = "1G""#, "3:1: [Service] has no setting 'memorymax' (did you mean MemoryMax?)"),
        (
            r#"Decription = "x""#,
            "3:1: [Service] has no setting 'Decription' (did you mean Description of [Unit]?)",
        ),
        (r#"Wants = "a.service""#, "3:1: [Service] Wants: belongs to [Unit] (move it below [Unit])"),
        (r#"Frobnicate = "x""#, "3:1: [Service] has no setting 'Frobnicate'"),
        (
            r#"MemoryMax = "12Q""#,
            r#"3:13: [Service] MemoryMax: '12Q' has the unknown unit 'Q' (write a number of bytes, or one with K, M, G or T, as in "512M")"#,
        ),
        (
            r#"MemoryMax = "512m""#,
            "3:13: [Service] MemoryMax: '512m' has the unknown unit 'm' (did you mean 'M'?)",
        ),
        (
            r#"MemoryMax = "512MB""#,
            "3:13: [Service] MemoryMax: '512MB' has the unknown unit 'MB' (did you mean 'M'?)",
        ),
        (
            r#"MemoryMax = "lots""#,
            r#"3:13: [Service] MemoryMax: 'lots' is no size (write a number of bytes, or one with K, M, G or T, as in "512M")"#,
        ),
        (
            "MemoryMax = 0",
            r#"3:13: [Service] MemoryMax: '0' leaves no memory at all (write a number of bytes, or one with K, M, G or T, as in "512M")"#,
        ),
        (
            "MemoryMax = -1",
            r#"3:13: [Service] MemoryMax: '-1' is negative (write a number of bytes, or one with K, M, G or T, as in "512M")"#,
        ),
        (
            r#"MemoryMax = "101%""#,
            r#"3:13: [Service] MemoryMax: '101%' is more than all there is (write at most "100%")"#,
        ),
        (
            r#"MemoryMax = "99999999999G""#,
            r#"3:13: [Service] MemoryMax: '99999999999G' is too large (write "infinity" for no bound)"#,
        ),
        (
            "MemoryMax = nan",
            r#"3:13: [Service] MemoryMax: 'nan' is no size (write a number of bytes, or one with K, M, G or T, as in "512M")"#,
        ),
        ("MemoryMax = [1]", "3:13: [Service] MemoryMax: wants a size, not a list"),
        ("CPUQuota = 50", r#"3:12: [Service] CPUQuota: '50' is no percentage (did you mean "50%"?)"#),
        (
            r#"CPUQuota = "0%""#,
            "3:12: [Service] CPUQuota: '0%' leaves no processor time at all (write a quota above 0%)",
        ),
        (
            r#"CPUQuota = "1.234%""#,
            r#"3:12: [Service] CPUQuota: '1.234%' is no percentage (write for example "50%" or "12.5%")"#,
        ),
        (
            "TasksMax = 1.5",
            r#"3:12: [Service] TasksMax: '1.5' is no number of tasks (write for example 100, "10%" or "infinity")"#,
        ),
        (
            r#"TimeoutStartSec = "5 parsecs""#,
            "3:19: [Service] TimeoutStartSec: '5 parsecs' has the unknown unit 'parsecs' (units are us ms s min h d w M y)",
        ),
        (
            "TimeoutStartSec = -5",
            "3:19: [Service] TimeoutStartSec: '-5' is negative (a span of time counts forward)",
        ),
        (
            "TimeoutStartSec = nan",
            r#"3:19: [Service] TimeoutStartSec: 'nan' is no span of time (write for example 90, "1min 30s", "500ms" or "infinity")"#,
        ),
        (
            r#"TimeoutStartSec = """#,
            r#"3:19: [Service] TimeoutStartSec: a span of time is missing (write for example 90, "1min 30s", "500ms" or "infinity")"#,
        ),
        ("TimeoutStartSec = 2027-01-01", "3:19: [Service] TimeoutStartSec: wants a span of time, not a date"),
        (
            r#"RestartSec = "infinity""#,
            r#"3:14: [Service] RestartSec: 'infinity' never ends (write a span such as "10s")"#,
        ),
        (
            r#"RestartSec = "600000y""#,
            r#"3:14: [Service] RestartSec: '600000y' is longer than 584542 years (write "infinity" for no bound)"#,
        ),
        (
            "RestartSteps = -1",
            "3:16: [Service] RestartSteps: '-1' is no whole number from 0 to 4294967295 (write for example 5)",
        ),
        (
            r#"User = "0day""#,
            r#"3:8: [Service] User: '0day' is no valid name of a user or group (write a name such as "www-data" or a number such as 33)"#,
        ),
        (
            r#"User = " svc""#,
            r#"3:8: [Service] User: ' svc' is no valid name of a user or group (write a name such as "www-data" or a number such as 33)"#,
        ),
        (
            r#"User = """#,
            r#"3:8: [Service] User: the name is empty (write a name such as "www-data" or a number such as 33)"#,
        ),
        (
            r##"Group = "#1""##,
            r#"3:9: [Service] Group: '#1' is no valid name of a user or group (write a name such as "www-data" or a number such as 33)"#,
        ),
        (
            r#"NoNewPrivileges = "ja""#,
            "3:19: [Service] NoNewPrivileges: 'ja' is neither yes nor no (write true or false)",
        ),
        (
            r#"CapabilityBoundingSet = ["CAP_NOPE"]"#,
            "3:26: [Service] CapabilityBoundingSet: 'CAP_NOPE' is no capability (capabilities(7) lists them)",
        ),
        (
            r#"AmbientCapabilities = "NET_RAW""#,
            "3:23: [Service] AmbientCapabilities: 'NET_RAW' is no capability (did you mean CAP_NET_RAW?)",
        ),
        (
            r#"KillSignal = "SIGTREM""#,
            "3:14: [Service] KillSignal: 'SIGTREM' is no signal; write a name such as SIGTERM or a number from 1 to 64",
        ),
        (
            r#"Environment = { "A B" = "x" }"#,
            "3:17: [Service] Environment: 'A B' is no name of an environment variable (names are made of letters, digits and _, and start with no digit)",
        ),
        (
            r#"Environment = ["PATH"]"#,
            r#"3:16: [Service] Environment: 'PATH' has no '=' (write Environment = { NAME = "value" })"#,
        ),
        (
            r#"WorkingDirectory = "srv""#,
            "3:20: [Service] WorkingDirectory: 'srv' is no absolute path (write the whole path from /)",
        ),
        (
            r#"WorkingDirectory = "/srv/../etc""#,
            "3:20: [Service] WorkingDirectory: '/srv/../etc' goes up with '..' (write where it leads)",
        ),
        (
            r#"StateDirectory = ["/var/lib/x"]"#,
            "3:19: [Service] StateDirectory: '/var/lib/x' is absolute (write the path below the folder that the manager makes)",
        ),
        (
            r#"StateDirectory = "a ../b""#,
            "3:18: [Service] StateDirectory: '../b' goes up with '..' (write where it leads)",
        ),
        (
            r#"Slice = "web.service""#,
            "3:9: [Service] Slice: 'web.service' is no slice (a slice's name ends in .slice)",
        ),
        (
            r#"ExecStartPre = "/bin/sh -c 'x""#,
            r#"3:16: [Service] ExecStartPre: '/bin/sh -c 'x' has a ' that is never closed (close it, or write \' for the character itself)"#,
        ),
        (
            r#"ExecStartPre = "./run""#,
            "3:16: [Service] ExecStartPre: './run' is a relative path (write the whole path from /, or a bare name that is looked up along PATH)",
        ),
        (
            r#"ExecStartPre = ["/bin/a", 1]"#,
            r#"3:16: [Service] ExecStartPre: wants a list of strings (write ["/bin/a", "b"], or a list of such lists)"#,
        ),
        (
            r#"ExecStartPre = "--/bin/a""#,
            "3:16: [Service] ExecStartPre: '--/bin/a' has one prefix twice (each of - @ : + ! may stand once)",
        ),
        (
            r#"ExecStartPre = "/bin/a %Q""#,
            "3:16: [Service] ExecStartPre: '%Q' has the unknown specifier %Q (write %% for a percent sign)",
        ),
        (
            r#"ExecStartPre = "/bin/a 100%""#,
            "3:16: [Service] ExecStartPre: '100%' ends in a single % (write %% for the character itself)",
        ),
        (
            r#"ExecStartPre = "/bin/a %m""#,
            "3:16: [Service] ExecStartPre: '%m' has %m, whose value is not known on this machine (write the value itself)",
        ),
        (r#"User = "a\u0000b""#, "3:8: the string has a NUL character (no setting can hold one)"),
        (r#"Nonsense.x = 1"#, "3:1: [Service] has no setting 'Nonsense'"),
        (
            "User = www",
            "3:8: the value is not quoted (write it in double quotes; true, false and numbers stand alone)",
        ),
        ("User =", "3:7: there is no value behind the '=' (write one; [] is an empty list)"),
        (
            r#"User = "a"
User = "b""#,
            "4:1: 'User' is set twice in this file (keep one of them; to add to a list write one list)",
        ),
        (
            "[Service]",
            "3:2: the section [Service] stands twice in this file (write all of its settings below one of them)",
        ),
        ("[Servce]", "3:2: there is no section [Servce] (did you mean [Service]?)"),
        ("[Slice]", "3:2: [Slice] has no place in a service (a.service is a service by its name)"),
        ("[[Unit]]", "3:3: [[Unit]] is a list of tables (write the section once, as [Unit])"),
        (
            "[Unit]\nAfter = [\"db\"]",
            "4:10: [Unit] After: 'db' has no type; a unit's name ends in .service, .timer, .socket, .target, .slice or .path (did you mean 'db.service'?)",
        ),
        (
            "[Unit]\nAfter = [\"db.service.toml\"]",
            "4:10: [Unit] After: 'db.service.toml' is a file's name (the unit is called db.service)",
        ),
        (
            "[Unit]\nAfter = [\"w@.service\"]",
            "4:10: [Unit] After: 'w@.service' is a template, which never runs (name an instance such as w@1.service)",
        ),
        (
            "[Timer]\nOnCalendar = \"daly\"",
            "4:14: [Timer] OnCalendar: 'daly' has no weekday's name in 'daly' (did you mean 'daily'?)",
        ),
        (
            "[Timer]\nOnUnitActiveSec = 0",
            "4:19: [Timer] OnUnitActiveSec: '0' would fire without a pause (write a span above zero)",
        ),
        (
            "[Timer]\nCron = \"@reboot\"",
            "4:8: [Timer] Cron: '@reboot' has no time in it (write OnBootSec = 0 or OnStartupSec = 0)",
        ),
        (
            "[Agent]\nKind = \"perl\"",
            "4:8: [Agent] Kind: 'perl' is not known here (the words are exec, go, python)",
        ),
        (
            "[Agent]\nModule = \"agent.py\"",
            r#"4:10: [Agent] Module: 'agent.py' is a relative path (write "/path/agent.py" or a dotted name such as "package.module")"#,
        ),
        (
            "[Install]\nEnabled = \"maybe\"",
            "4:11: [Install] Enabled: 'maybe' is neither yes nor no (write true or false)",
        ),
    ] {
        let text = format!("[Service]\nExecStart = [\"/bin/true\"]\n{setting}\n");
        assert_eq!(findings("a.service", &text), [expected], "{setting}");
    }
}

#[test]
fn rules_between_settings_point_at_the_setting_that_breaks_them() {
    const PYTHON: &str = "[Agent]\nKind = \"python\"\n";
    for (name, text, expected) in [
        (
            "a.service",
            "[Unit]\n".to_owned(),
            r#"1:1: [Service] ExecStart: is missing, so a.service has nothing to run (write ExecStart = ["/usr/bin/program"] below [Service])"#,
        ),
        (
            "a.service",
            "[Service]\nExecStart = [[\"/a\"], [\"/b\"]]\n".to_owned(),
            "2:1: [Service] ExecStart: there are 2 commands, and only Type=oneshot may have several (keep one, write Type = \"oneshot\", or reset the list with [] before)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nType = \"oneshot\"\nRestart = \"always\"\n".to_owned(),
            "4:1: [Service] Restart: a oneshot that ended well would start again for ever (write on-failure, or let a timer repeat it)",
        ),
        (
            "a.service",
            PYTHON.to_owned(),
            "2:1: [Agent] Kind: a Python agent needs Module (write Module = \"/path/agent.py\" below [Agent])",
        ),
        (
            "a.service",
            format!("{PYTHON}Module = \"a\"\n[Service]\nExecStart = \"/a\"\n"),
            "5:1: [Service] ExecStart: a Python agent has none; its module is run by the kit (take it out, or take Kind = \"python\" out)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\n[Agent]\nModule = \"a\"\n".to_owned(),
            "4:1: [Agent] Module: is for Python agents alone (write Kind = \"python\" below [Agent])",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nRestartSteps = 3\n".to_owned(),
            "3:1: [Service] RestartSteps: does nothing without RestartMaxDelaySec (set both)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nRestartSec = 9\nRestartSteps = 3\nRestartMaxDelaySec = 5\n"
                .to_owned(),
            "5:1: [Service] RestartMaxDelaySec: is shorter than RestartSec (the wait grows from RestartSec to it)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nRuntimeRandomizedExtraSec = 3\n".to_owned(),
            "3:1: [Service] RuntimeRandomizedExtraSec: does nothing without RuntimeMaxSec (set both)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nType = \"oneshot\"\nExitType = \"cgroup\"\n".to_owned(),
            "4:1: [Service] ExitType: cgroup is not allowed for Type=oneshot (write main, or another Type)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\n[Agent]\nMaxRestarts = 3\n".to_owned(),
            "4:1: [Agent] MaxRestarts: does nothing without Restart of [Service] (write for example Restart = \"on-failure\" below [Service])",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nRestart = \"always\"\nRestartSteps = 3\nRestartMaxDelaySec = 9\n[Agent]\nRestartFactor = 2\n"
                .to_owned(),
            "4:1: [Service] RestartSteps: does nothing beside RestartFactor of [Agent] (take one of them out)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\n[Unit]\nRequires = \"a.service\"\n".to_owned(),
            "4:1: [Unit] Requires: names the unit itself and is ignored (take it out)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\n[Timer]\n".to_owned(),
            "3:2: [Timer] has no trigger, so it would never fire (write for example OnCalendar = \"daily\" or OnUnitActiveSec = \"5min\" below [Timer])",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nRemainAfterExit = true\n[Timer]\nOnUnitActiveSec = 5\n"
                .to_owned(),
            "3:1: [Service] RemainAfterExit: the timer fires once only, since the service then stays active (take it out)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/a\"\nNotifyAccess = \"none\"\nType = \"notify\"\n".to_owned(),
            "3:1: [Service] NotifyAccess: none is taken as main, since Type, WatchdogSec or FileDescriptorStoreMax needs it (write main)",
        ),
        (
            "a.timer",
            "[Timer]\nPersistent = true\nOnBootSec = 1\n".to_owned(),
            "2:1: [Timer] Persistent: does nothing without OnCalendar or Cron (take it out)",
        ),
        (
            "a.timer",
            "[Timer]\nUnit = \"a.timer\"\nOnBootSec = 1\n".to_owned(),
            "2:1: [Timer] Unit: names the timer itself (name the unit to start)",
        ),
        (
            "a.target",
            "[Service]\nExecStart = \"/a\"\n".to_owned(),
            "1:2: [Service] has no place in a target (a.target is a target by its name)",
        ),
        (
            "a.target",
            "[Install]\nAlias = \"b.service\"\n".to_owned(),
            "2:1: [Install] Alias: 'b.service' is of another type than the unit (an alias of a target ends in .target)",
        ),
        (
            "a.socket",
            "[Socket]\nAccept = true\n".to_owned(),
            "1:2: [Socket] listens on nothing (write for example ListenStream = 8080 below [Socket])",
        ),
        (
            "a.socket",
            "[Socket]\nListenStream = 80\nListenFIFO = \"/f\"\nAccept = true\n".to_owned(),
            "4:1: [Socket] Accept: would start instances for its connections and one service for the rest (write two socket units, one with Accept and one without)",
        ),
        (
            "a.service",
            "[Service]\nExecStart = \"/bin/a\"\n[Socket]\nListenStream = 80\nListenFIFO = \"/f\"\nAccept = true\n".to_owned(),
            "6:1: [Socket] Accept: would start instances for its connections and one service for the rest (write two socket units, one with Accept and one without)",
        ),
        (
            "a.socket",
            "[Socket]\nListenStream = [\"/s\", \"80\"]\nListenFIFO = \"/f\"\nSymlinks = [\"/l\"]\n".to_owned(),
            "4:1: [Socket] Symlinks: are links to one file, and it listens at 2 (leave one socket or FIFO with a path, or take Symlinks out)",
        ),
        (
            "a.socket",
            "[Socket]\nListenStream = 80\nFileDescriptorName = \"a:b\"\n".to_owned(),
            "3:1: [Socket] FileDescriptorName: 'a:b' cannot stand in LISTEN_FDNAMES (write at most 255 printable ASCII characters without ':')",
        ),
    ] {
        assert_eq!(findings(name, &text), [expected], "{text}");
    }
}

#[test]
fn all_errors_of_a_file_come_in_one_pass_and_in_order() {
    let text = "[Unit]\nDescripton = \"x\"\nMemoryMax = \"1G\"\n[Service]\nUser = 0.5\nType = bad\nExecStart = [\"./x\"]\nTasksMax = 0\n";
    let lines: Vec<String> = findings("a.service", text)
        .iter()
        .map(|f| f.split(':').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(lines, ["2", "3", "5", "6", "7", "8"]);
}

#[test]
fn the_load_state_is_the_first_error_on_one_line() {
    let parsed = parse("a.service", "[Service]\nMemoryMax = \"12Q\"\nUser = \"0day\"\nTasksMax = 0\n");
    let expected = "a.service.toml:2:13: [Service] MemoryMax: '12Q' has the unknown unit 'Q' (write a number of bytes, \
                    or one with K, M, G or T, as in \"512M\"); and 2 more errors";
    assert_eq!(parsed.unit.load, agentd_unit::LoadState::BadSetting(expected.to_owned()));
}

#[test]
fn a_report_shows_the_line_the_place_and_the_help() {
    let parsed = parse("a.service", "[Service]\nExecStart = [\"/bin/true\"]\nMemroyMax = \"1G\" # much\n");
    let expected = "\
error: [Service] has no setting 'MemroyMax'
 --> a.service.toml:3:1
  |
3 | MemroyMax = \"1G\" # much
  | ^^^^^^^^^
  |
  = help: did you mean MemoryMax?";
    assert_eq!(parsed.diagnostics[0].render(false), expected);
    assert!(parsed.diagnostics[0].render(true).contains('\u{1b}'));
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let text = "[Service]\nExecStart = [\"/bin/true\"]\nUser = \"\\u001b[2Jx\"\n\"\\u001bkey\" = 1\n";
    let parsed = parse("a.service", text);
    assert_eq!(parsed.diagnostics.len(), 2);
    for diagnostic in &parsed.diagnostics {
        assert!(!diagnostic.to_string().contains('\u{1b}'), "{diagnostic}");
        assert!(!diagnostic.render(false).contains('\u{1b}'), "{}", diagnostic.render(false));
    }
}

#[test]
fn names_with_x_are_for_others() {
    let text = "[X-Mine]\nanything = 1\n[Service]\nX-Note = [1, 2]\nExecStart = [\"/bin/true\"]\n";
    assert_eq!(findings("a.service", text), Vec::<String>::new());
}

#[test]
fn a_file_full_of_errors_tells_a_hundred() {
    let text: String = (0..50_000).map(|n| format!("key{n} = 1\n")).collect();
    let parsed = parse("a.service", &format!("[Service]\n{text}"));
    assert_eq!(parsed.diagnostics.iter().filter(|d| Diagnostic::is_error(d)).count(), 100);
    let broken = "x = = y\n".repeat(50_000);
    assert_eq!(parse("a.service", &broken).diagnostics.len(), 100);
}
