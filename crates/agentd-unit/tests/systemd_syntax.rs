//! Units in systemd's own syntax, systemd.syntax(7): what stands in a file, and what a person reads who wrote it wrongly.

use std::sync::Arc;

use agentd_unit::sections::{Credential, CredentialSource};
use agentd_unit::{
    Body, LoadState, LocalZone, ParseContext, Parsed, ServiceSection, SourceFile, SpecifierContext, UnitName,
    parse_unit,
};

fn parse_as(name: &str, files: &[(&str, &[u8])]) -> Parsed {
    let name = UnitName::parse(name).unwrap_or_else(|error| panic!("{error}"));
    let specifiers = SpecifierContext::system();
    let zone = LocalZone::utc();
    let files: Vec<_> =
        files.iter().map(|(path, bytes)| Arc::new(SourceFile::from_bytes(*path, bytes))).collect();
    parse_unit(&name, &files, &ParseContext { specifiers: &specifiers, zone: &zone })
}

fn parse(text: &str) -> Parsed {
    parse_as("a.service", &[("a.service", text.as_bytes())])
}

fn service(text: &str) -> ServiceSection {
    let parsed = parse(text);
    assert_eq!(parsed.unit.load, LoadState::Loaded, "{text}");
    match parsed.unit.body {
        Body::Service(body) => body.service,
        _ => panic!("a service"),
    }
}

/// The findings as `line:column: message (help)`; warnings begin with `w`.
fn findings(bytes: &[u8]) -> Vec<String> {
    let parsed = parse_as("a.service", &[("a.service", bytes)]);
    let tell = |d: &agentd_unit::Diagnostic| {
        let text = d.to_string();
        let text = text.trim_start_matches("a.service:");
        if d.is_error() { text.to_owned() } else { format!("w {text}") }
    };
    parsed.diagnostics.iter().map(tell).collect()
}

fn argv(text: &str) -> Vec<Vec<String>> {
    service(text).exec_start.into_iter().map(|command| command.argv).collect()
}

const RUN: &str = "[Service]\nExecStart=/bin/true\n";

#[test]
fn a_unit_as_debian_writes_it_is_what_it_says() {
    let parsed = parse(
        "# SPDX\n[Unit]\nDescription=A \"daemon\" of 100 %%\nDocumentation=man:a(8) https://a\nAfter=network.target\n\
         After=b.service   c.service\nWants=x\\x2dy.service\n\n[Service]\nType=notify\n\
         Environment=A=1 \"B=two words\" C=\nExecStart=-/usr/bin/a --name 'one two' \"$OPTS\" \\x41\n\
         ExecStop = /bin/b ; /bin/c \\; d\nRestart=on-failure\nRestartSec=1min 30s\nUser=www-data\nMemoryMax=1.5G\n\
         [Install]\nWantedBy=multi-user.target\n",
    );
    assert_eq!(parsed.diagnostics, []);
    let unit = parsed.unit;
    assert_eq!(unit.description(), "A \"daemon\" of 100 %");
    assert_eq!(unit.unit.documentation, ["man:a(8)", "https://a"]);
    let names = |set: &agentd_unit::UnitNames| set.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&unit.unit.after), ["b.service", "c.service", "network.target"]);
    assert_eq!(names(&unit.unit.wants), ["x\\x2dy.service"], "names keep their escapes");
    assert_eq!(names(&unit.install.wanted_by), ["multi-user.target"]);
    assert!(!unit.implicit_order, "systemd's rule: an edge does not order");
    assert!(!unit.enabled, "systemd's rule: links enable");
    let Body::Service(body) = unit.body else { panic!("a service") };
    let service = body.service;
    let variables: Vec<_> = service.environment.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(variables, ["A=1", "B=two words", "C="]);
    assert_eq!(service.exec_start[0].argv, ["/usr/bin/a", "--name", "one two", "$OPTS", "A"]);
    assert!(service.exec_start[0].ignore_failure);
    assert_eq!(service.exec_stop.len(), 2);
    assert_eq!(service.exec_stop[1].argv, ["/bin/c", ";", "d"]);
    assert_eq!(service.restart_sec.as_secs(), 90);
    assert_eq!(service.user.as_deref(), Some("www-data"));
}

#[test]
fn a_line_goes_on_behind_a_backslash_and_over_comments() {
    for (case, text, expected) in [
        ("two lines", "[Service]\nExecStart=/bin/a b \\\n  c\n", vec!["/bin/a", "b", "c"]),
        ("comments between", "[Service]\nExecStart=/bin/a \\\n# no\n ; no\nb\n", vec!["/bin/a", "b"]),
        ("an empty line ends it", "[Service]\nExecStart=/bin/a b \\\n\nUser=svc\n", vec!["/bin/a", "b"]),
        ("the file's end ends it", "[Service]\nExecStart=/bin/a b \\", vec!["/bin/a", "b"]),
        ("and its last line too", "[Service]\nExecStart=/bin/a \\\nb \\\n", vec!["/bin/a", "b"]),
        ("two backslashes are one", "[Service]\nExecStart=/bin/a \\\\\nUser=svc\n", vec!["/bin/a", "\\"]),
        ("in quotes too", "[Service]\nExecStart=/bin/a \"b \\\nc\"\n", vec!["/bin/a", "b  c"]),
        ("CRLF", "[Service]\r\nExecStart=/bin/a \\\r\nb\r\n", vec!["/bin/a", "b"]),
        ("a comment is no continuation", "[Service]\n# x \\\nExecStart=/bin/a\n", vec!["/bin/a"]),
        ("a BOM", "\u{feff}[Service]\nExecStart=/bin/a\n", vec!["/bin/a"]),
        ("white space", " \t[Service] \n\tExecStart \t=\t /bin/a \t\n", vec!["/bin/a"]),
        ("a key on two lines", "[Service]\nExec\\\nStart=/bin/a\n", vec![]),
    ] {
        if expected.is_empty() {
            assert!(!findings(text.as_bytes()).is_empty(), "{case}");
        } else {
            assert_eq!(argv(text), [expected], "{case}");
        }
    }
    assert_eq!(service("[Service]\nExecStart=/bin/a b \\\n\nUser=svc\n").user.as_deref(), Some("svc"));
}

#[test]
fn an_empty_value_resets() {
    let text = format!(
        "[Unit]\nDescription=x\nDescription=\nWants=a.service\nWants=\nWants=b.service\n{RUN}ExecStart=\n\
         ExecStart=/bin/other\nEnvironment=A=1\nEnvironment=\nUser=svc\nUser=\nTimeoutStartSec=5\nTimeoutStartSec=\n\
         MemoryMax=1M\nMemoryMax=\nWorkingDirectory=/x\nWorkingDirectory=\nRestartSec=9\nRestartSec=\n"
    );
    let parsed = parse(&text);
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.unit.unit.description, None);
    assert_eq!(parsed.unit.unit.wants.iter().map(ToString::to_string).collect::<Vec<_>>(), ["b.service"]);
    let service = service(&text);
    assert_eq!(service.exec_start[0].program, "/bin/other");
    let plain = ServiceSection { exec_start: service.exec_start.clone(), ..ServiceSection::default() };
    assert_eq!(service, plain);
}

/// Keys whose kind has no empty value of its own, each with a value that is not its default.
const SCALARS: &str = "Type=forking PIDFile=/run/x Restart=always NotifyAccess=all KillMode=process RestartMode=direct \
    TimeoutStartFailureMode=abort ExitType=cgroup FileDescriptorStorePreserve=yes RestartKillSignal=SIGHUP \
    FinalKillSignal=SIGINT WatchdogSignal=SIGINT DevicePolicy=closed UMask=0077 Nice=5 OOMScoreAdjust=100 \
    CPUSchedulingPolicy=idle IOSchedulingClass=idle IOSchedulingPriority=3 KeyringMode=shared TimerSlackNSec=5 \
    Personality=x86 NUMAPolicy=local StandardInput=tty StandardOutput=null TTYPath=/dev/tty1 LogLevelMax=err \
    SyslogLevel=err RuntimeDirectoryMode=0700 PrivateUsers=yes MountFlags=slave ProtectSystem=full ProtectHome=yes \
    ProtectProc=invisible ProcSubset=pid MemoryMin=1M CPUWeight=5 IOWeight=5 OOMPolicy=kill LimitNOFILE=7";

#[test]
fn an_empty_value_makes_every_scalar_what_it_is_by_default() {
    let plain = service(RUN);
    for key in SCALARS.split_ascii_whitespace() {
        let name = key.split('=').next().unwrap();
        let set = format!("{RUN}{key}\n");
        let base = parse(&set).unit.body;
        assert_ne!(base, parse(RUN).unit.body, "{key} is no default");
        assert_eq!(service(&format!("{set}{name}=\n")), plain, "{name}");
        let dropped = format!("[Service]\n{name}=\n{key}\n{name}=\nUser=svc\n");
        let files = [("a.service", set.as_bytes()), ("a.service.d/b.conf", dropped.as_bytes())];
        let parsed = parse_as("a.service", &files);
        assert_eq!((parsed.unit.load, parsed.diagnostics), (LoadState::Loaded, vec![]), "{name}");
        let Body::Service(body) = parsed.unit.body else { panic!("a service") };
        assert_eq!(body.service, ServiceSection { user: Some("svc".to_owned()), ..plain.clone() }, "{name}");
    }
    // Behind the empty value a new one counts.
    assert_eq!(service(&format!("{RUN}Nice=5\nNice=\nNice=7\n")), service(&format!("{RUN}Nice=7\n")));
}

#[test]
fn escapes_in_texts_are_resolved_where_systemd_resolves_them() {
    let is = |keys: &str| service(&format!("{RUN}{keys}"));
    let secret = |keys: &str| match &is(keys).credentials[..] {
        [Credential { source: CredentialSource::Text(secret), .. }] => Some(secret.0.clone()),
        _ => None,
    };
    assert_eq!(secret("SetCredential=x:a\\x20b\\nsecond: %n\n").unwrap(), b"a b\nsecond: %n");
    assert_eq!(secret("SetCredential=x:\\xff\n").unwrap(), [0xff]);
    // A secret is bytes of any kind, so NUL is kept, however it is written; a text has none.
    assert_eq!(secret("SetCredential=x:a\\x00b\\000c\\u0000d\\U00000000\n").unwrap(), b"a\0b\0c\0d\0");
    assert_eq!(is("StandardInputText=a\\x00b\n").execution.input_data, b"");
    assert_eq!(secret("SetCredential=x:a\\q\n"), None);
    assert_eq!(
        is("StandardInputText=a\\x20b\\nsecond %p \\x25p\n").execution.input_data,
        b"a b\nsecond a a\n"
    );
    assert_eq!(is("StandardInputText=one\nStandardInputText=\\n\n").execution.input_data, b"one\n\n\n");
    let found = findings(format!("{RUN}SetCredential=x:hush\\q\nStandardInputText=a\\q\n").as_bytes());
    assert!(found.iter().all(|told| told.starts_with("w ") && !told.contains("hush")), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn every_mistake_has_its_place_its_message_and_its_advice() {
    for (line, expected) in [
        (
            "Restart",
            "3:1: there is no '=' in 'Restart' (write KEY=VALUE; a comment begins with #, a line that goes on ends with \\\\)",
        ),
        ("Restart: always", "3:1: there is no '=' in 'Restart: always' (write Restart=always)"),
        ("=x", "3:1: there is no key before the '=' (write KEY=VALUE)"),
        ("[Unit", "3:1: the section's name is not closed (write it as [Section], on a line of its own)"),
        (
            "[Unit] # x",
            "3:1: there is text behind the section's name (write it as [Section], on a line of its own)",
        ),
        ("[]", "3:1: '' is no name of a section (write it as [Section], on a line of its own)"),
        ("[Serivce]", "w 3:2: there is no section [Serivce] (did you mean [Service]?)"),
        (
            "[Mount]",
            "w 3:2: [Mount]: not supported: agentd has no units of that type (leave it to the machine's own set-up)",
        ),
        ("Restrat=no", "w 3:1: [Service] has no setting 'Restrat' (did you mean Restart?)"),
        ("BusName=org.a", "w 3:1: [Service] BusName: not supported: agentd speaks no D-Bus"),
        ("After=a.service", "w 3:1: [Service] After: belongs to [Unit] (move it below [Unit])"),
        (
            "  User= svc!",
            "3:9: [Service] User: 'svc!' is no valid name of a user or group (write a name such as \"www-data\" or a number such as 33)",
        ),
        (
            "NoNewPrivileges=ja",
            "3:17: [Service] NoNewPrivileges: 'ja' is neither yes nor no (write true or false)",
        ),
        (
            "ExecStop=/bin/a 'b",
            "3:10: [Service] ExecStop: '/bin/a 'b' has a ' that is never closed (close it, or write \\\\' for the character itself)",
        ),
        (
            "ExecStop=/bin/a \\d",
            "w 3:10: [Service] ExecStop: the escape '\\\\d' means nothing and is left as it is (write \\\\\\\\ for a backslash)",
        ),
        (
            "ExecStop=/bin/a %Z",
            "w 3:10: [Service] ExecStop: the specifier %Z means nothing and is left as it is (write %% for a percent sign)",
        ),
        (
            "Environment=A=1 \\\n  2B=3",
            "4:3: [Service] Environment: '2B' is no name of an environment variable (names are made of letters, digits and _, and start with no digit)",
        ),
        ("User=a\0b", "3:7: the line has a NUL character (no setting can hold one)"),
        (
            "User=a\rGroup=b",
            "3:7: the line has a carriage return in its middle (end lines with a newline alone, or with both)",
        ),
    ] {
        let expected = expected.replace("\\\\", "\\");
        let text = format!("{RUN}{line}\n");
        assert_eq!(findings(text.as_bytes()), [expected], "{line:?}");
    }
    assert_eq!(
        findings(b"User=x\n[Service]\nExecStart=/bin/a\n"),
        ["1:1: 'User' stands outside of any section (it belongs to [Service])"]
    );
    assert_eq!(findings(b"# \xff is fine here\n[Service]\nExecStart=/bin/a\n"), [] as [&str; 0]);
    assert_eq!(
        findings(b"[Service]\nExecStart=/bin/a \xff\n"),
        ["2:18: the line is no UTF-8 text (write the file as UTF-8 text)"]
    );
    let between = b"[Service]\nExecStart=/bin/a \\\n# \xff\nb\n";
    assert_eq!(findings(between), [] as [&str; 0]);
}

#[test]
fn one_pass_finds_every_mistake() {
    let found = findings(
        b"[Service]\nExecStart=/bin/a\nRestart=alwyas\nfoo\nUser=0x\n[Unit\nx=y\n[Install]\nWantedBy=a b\n",
    );
    let lines: Vec<&str> = found.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(lines, ["3", "4", "5", "6", "9", "9"], "{found:#?}");
    let report = parse("[Service]\nExecStart=/bin/a\nUser=0x\n").diagnostics[0].render(false);
    assert!(report.contains("User=0x") && report.contains("a.service:3:6"), "{report}");
}

#[test]
fn old_names_are_read_as_their_new_ones() {
    let parsed = parse(&format!("{RUN}StartLimitInterval=60\nStartLimitBurst=3\n[Unit]\nBindTo=b.service\n"));
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.unit.unit.start_limit_interval.as_secs(), 60);
    assert_eq!(parsed.unit.unit.start_limit_burst, 3);
    assert_eq!(parsed.unit.unit.binds_to.len(), 1);
}

#[test]
fn edges_to_units_that_agentd_does_not_have_are_left_out_with_a_warning() {
    let parsed = parse(&format!("[Unit]\nAfter=-.mount b.service dev-sda.device\n{RUN}"));
    assert_eq!(parsed.unit.load, LoadState::Loaded);
    assert_eq!(parsed.unit.unit.after.len(), 1);
    let texts: Vec<&str> = parsed.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        texts,
        [
            "[Unit] After: '-.mount' is left out: not supported: agentd has no mount units",
            "[Unit] After: 'dev-sda.device' is left out: not supported: agentd has no device units"
        ]
    );
}

#[test]
fn a_template_that_is_named_means_its_instance_of_the_same_name() {
    let text = format!("[Unit]\nAfter=b@.service\n{RUN}[Install]\nAlias=autovt@.service\n");
    for (name, other) in [("a@tty1.service", "b@tty1.service"), ("a.service", "b@a.service")] {
        let parsed = parse_as(name, &[("a@.service", text.as_bytes())]);
        assert_eq!(parsed.diagnostics, [], "{name}");
        assert!(parsed.unit.unit.after.contains(other), "{name}");
        assert!(parsed.unit.install.alias.contains("autovt@.service"));
    }
}

#[test]
fn both_syntaxes_make_one_unit_of_a_file_and_its_drop_ins() {
    let parsed = parse_as(
        "a.service",
        &[
            ("a.service", b"[Service]\nExecStart=/bin/a\nEnvironment=A=1 B=2\n"),
            (
                "a.service.d/1.toml",
                b"[Service]\nEnvironment = { B = \"3\" }\nExecStartPre = [\"/bin/pre\"]\n",
            ),
            ("a.service.d/2.conf", b"[Service]\nExecStart=\nExecStart=/bin/c\n[Agent]\nKind=go\n"),
        ],
    );
    assert_eq!(parsed.diagnostics, []);
    let body = parsed.unit.as_service().cloned().unwrap_or_default();
    assert_eq!(body.service.exec_start[0].program, "/bin/c");
    assert_eq!(body.service.environment[1], ("B".to_owned(), "3".to_owned()));
    assert!(body.agent.is_some());
}

#[test]
fn long_lines_are_whole_and_never_two_settings() {
    for length in [2_047, 2_048, 2_049, 65_536, 1_000_000] {
        for evil in ["User=root", "ExecStart=/bin/evil"] {
            let parsed = parse(&format!("{RUN}[Unit]\nDescription={}{evil}\n", "x".repeat(length)));
            assert_eq!(parsed.unit.load, LoadState::Loaded, "{length}");
            let service = parsed.unit.as_service().map(|body| body.service.clone()).unwrap_or_default();
            assert_eq!((service.user, service.exec_start.len()), (None, 1), "{length} {evil}");
            assert!(parsed.unit.description().len() > length);
        }
    }
}

#[test]
fn ten_thousand_warnings_hide_no_error() {
    let unknown: String = (0..10_000).map(|n| format!("Key{n}=1\n")).collect();
    let parsed = parse(&format!("{RUN}{unknown}User=0x\n"));
    assert!(matches!(parsed.unit.load, LoadState::BadSetting(_)), "{:?}", parsed.unit.load);
    assert!(parsed.diagnostics.len() < 300);
}

#[test]
fn a_list_of_logged_calls_says_which_are_told_of_and_denies_nothing() {
    let list = |text: &str| service(&format!("{RUN}{text}")).sandbox.logged_calls.clone();
    let told = list("SystemCallLog=mount umount2\nSystemCallLog=~umount2\n").expect("a list");
    assert!(told.allow && told.calls.keys().copied().eq(["mount"]), "{told:?}");
    let others = list("SystemCallLog=~@clock\n").expect("a list");
    assert!(!others.allow && others.calls.contains_key("settimeofday"), "{others:?}");
    assert_eq!(list("SystemCallLog=mount\nSystemCallLog=\n"), None);
    let denying = parse(&format!("{RUN}SystemCallLog=mount:EPERM\n"));
    assert_eq!(denying.unit.load.as_str(), "bad-setting");
}

/// A list for newer kernels than agentd knows is used for what it does know, as systemd does.
#[test]
fn a_call_that_is_not_known_is_told_and_left_out() {
    let text = format!("{RUN}SystemCallFilter=~mount nosuchcall:EPERM statmount\n");
    let found = findings(text.as_bytes());
    assert!(found.len() == 1 && found[0].starts_with("w 3:25: "), "{found:?}");
    let calls = service(&text).sandbox.system_calls.clone().expect("a list");
    assert!(!calls.allow && calls.calls.keys().copied().eq(["mount", "statmount"]), "{calls:?}");
    // An error of a call that is no error is a mistake all the same.
    assert_eq!(parse(&format!("{RUN}SystemCallFilter=~mount:ENOTHING\n")).unit.load.as_str(), "bad-setting");
}
