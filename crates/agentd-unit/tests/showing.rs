//! `show` knows every key of the tables.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentd_unit::schema::{self, Property, Section};
use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, UnitName, parse_unit};

/// The properties of a unit of this text.
fn shown(file: &str, text: &str) -> BTreeMap<String, String> {
    let name = UnitName::of_file(file.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let source = Arc::new(SourceFile::new(file, text));
    let parsed = parse_unit(&name, &[source], &ParseContext { specifiers: &specifiers, zone: &zone });
    let wrong: Vec<_> = parsed.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(wrong.is_empty(), "{file}: {wrong:?}");
    schema::properties(&parsed.unit)
}

/// For each section a unit that has it.
const UNITS: [(&[Section], &str, &str); 5] = [
    (
        &[Section::Unit, Section::Service, Section::Agent, Section::Snapshot, Section::Rollout],
        "a.service.toml",
        "[Service]\nExecStart = \"/bin/a\"\n[Agent]\n[Snapshot]\n[Rollout]\n",
    ),
    (&[Section::Unit, Section::Timer], "a.timer.toml", "[Timer]\nOnBootSec = 1\n"),
    (&[Section::Unit, Section::Socket], "a.socket.toml", "[Socket]\nListenStream = 80\n"),
    (&[Section::Unit, Section::Path], "a.path.toml", "[Path]\nPathExists = \"/a\"\n"),
    (&[Section::Unit, Section::Slice], "a.slice.toml", "[Slice]\n"),
];

#[test]
fn every_key_has_a_property_or_a_reason_why_not() {
    let mut seen = BTreeSet::from([Section::Install]);
    for (sections, file, text) in UNITS {
        let properties = shown(file, text);
        for section in sections {
            seen.insert(*section);
            for setting in section.settings() {
                let name = match schema::property(*section, setting.key) {
                    Property::Shown(name) => name,
                    Property::Gathered(name) => name.to_owned(),
                    Property::Hidden(why) => {
                        assert!(why.split(' ').count() > 2, "{}: {why}", setting.key);
                        continue;
                    }
                };
                assert!(properties.contains_key(&name), "{file} shows no {name} for {}", setting.key);
            }
        }
    }
    assert_eq!(seen.len(), Section::ALL.len(), "a section that no unit here has");
}

const COMMANDS: &str = "{ path=/bin/c ; argv[]=/bin/c ; ignore_errors=yes } \
                        { path=/bin/d ; argv[]=/bin/d $X ; ignore_errors=no ; flags=privileged no-env-expand }";

/// Keys with a value that is not the default, the property, and what it says.
const CASES: [(&str, &str, &str, &str); 58] = [
    ("[Unit]", "Description=two words", "Description", "two words"),
    ("[Unit]", "Documentation=man:a(1) man:b(1)", "Documentation", "man:a(1) man:b(1)"),
    ("[Unit]", "Wants=c.service b.service", "Wants", "b.service c.service"),
    ("[Unit]", "StopWhenUnneeded=on", "StopWhenUnneeded", "yes"),
    ("[Unit]", "StartLimitIntervalSec=1min 5", "StartLimitIntervalUSec", "1min 5s"),
    ("[Unit]", "StartLimitBurst=9", "StartLimitBurst", "9"),
    ("[Unit]", "JobTimeoutSec=7", "JobTimeoutUSec", "7s"),
    ("[Unit]", "OnFailureJobMode=fail", "OnFailureJobMode", "fail"),
    ("[Unit]", "ConditionPathExists=!/a", "Conditions", "ConditionPathExists=!/a"),
    ("[Service]", "Type=notify", "Type", "notify"),
    ("[Service]", "Restart=on-watchdog", "Restart", "on-watchdog"),
    ("[Service]", "RestartSec=500ms", "RestartUSec", "500ms"),
    ("[Service]", "TimeoutSec=5", "TimeoutStopUSec", "5s"),
    ("[Service]", "TimeoutStartSec=0", "TimeoutStartUSec", "infinity"),
    (
        "[Service]",
        "ExecStartPre=/bin/c \"a b\"",
        "ExecStartPre",
        "{ path=/bin/c ; argv[]=/bin/c \"a b\" ; ignore_errors=no }",
    ),
    ("[Service]", "KillMode=mixed", "KillMode", "mixed"),
    ("[Service]", "KillSignal=INT", "KillSignal", "2"),
    ("[Service]", "SendSIGKILL=no", "SendSIGKILL", "no"),
    ("[Service]", "WatchdogSignal=SIGUSR1", "WatchdogSignal", "10"),
    ("[Service]", "Environment=A=1 \"B=two words\"", "Environment", "A=1 \"B=two words\""),
    ("[Service]", "EnvironmentFile=-/e", "EnvironmentFiles", "/e (ignore_errors=yes)"),
    ("[Service]", "WorkingDirectory=-/w", "WorkingDirectory", "!/w"),
    ("[Service]", "StateDirectory=a b/c", "StateDirectory", "a b/c"),
    ("[Service]", "MemoryMax=50%", "MemoryMax", "50%"),
    ("[Service]", "TasksMax=7", "TasksMax", "7"),
    ("[Service]", "CPUQuota=20%", "CPUQuotaPerSecUSec", "200ms"),
    ("[Service]", "LimitNOFILE=64:128", "LimitNOFILE", "128"),
    ("[Service]", "UMask=077", "UMask", "0077"),
    ("[Service]", "Nice=5", "Nice", "5"),
    ("[Service]", "CapabilityBoundingSet=CAP_KILL", "CapabilityBoundingSet", "cap_kill"),
    ("[Service]", "BindPaths=/a:/b\nBindPaths=\nBindPaths=/c", "BindPaths", "/c:/c:rbind"),
    ("[Service]", "SuccessExitStatus=1\nSuccessExitStatus=SIGKILL", "SuccessExitStatus", "1 SIGKILL"),
    ("[Service]", "IOSchedulingClass=idle", "IOSchedulingClass", "3"),
    ("[Service]", "OOMPolicy=kill", "OOMPolicy", "kill"),
    ("[Service]", "TimeoutAbortSec=7", "TimeoutAbortUSec", "7s"),
    ("[Service]", "LimitNOFILE=64:128", "LimitNOFILESoft", "64"),
    ("[Service]", "ExecStop=-/bin/c\nExecStop=+:/bin/d $X", "ExecStop", COMMANDS),
    ("[Service]", "ExecReload=@/bin/c c", "ExecReload", "{ path=/bin/c ; argv[]=c ; ignore_errors=no }"),
    ("[Service]", "TimeoutAbortSec=infinity", "TimeoutAbortUSec", "infinity"),
    ("[Service]", "StandardInput=socket", "StandardOutput", "inherit"),
    ("[Service]", "StandardOutput=append:/var/log/%N", "StandardOutput", "append:/var/log/a"),
    ("[Service]", "StandardError=tty", "TTYPath", "/dev/console"),
    ("[Service]", "SyslogIdentifier=%N", "SyslogIdentifier", "a"),
    ("[Service]", "StandardInputText=ab", "StandardInputData", "YWIK"),
    ("[Service]", "CPUAffinity=5 0-2", "CPUAffinity", "0-2 5"),
    ("[Service]", "CPUWeight=20", "CPUWeight", "20"),
    ("[Service]", "MemoryMin=1K", "MemoryMin", "1024"),
    ("[Service]", "Delegate=pids", "OOMPolicy", "continue"),
    ("[Service]", "ProtectClock=yes\nPrivateDevices=yes", "DeviceAllow", "char-rtc r"),
    ("[Service]", "PrivateDevices=yes", "DevicePolicy", "closed"),
    ("[Service]", "DeviceAllow=/dev/null rw", "DeviceAllow", "/dev/null rw"),
    ("[Service]", "IPAddressDeny=localhost", "IPAddressDeny", "127.0.0.0/8 ::1/128"),
    ("[Service]", "TemporaryFileSystem=/t:ro,size=1M", "TemporaryFileSystem", "/t:ro,size=1M"),
    ("[Service]", "LoadCredential=a:/b c", "LoadCredential", "a:/b c"),
    ("[Service]", "OpenFile=/a:b:read-only,graceful", "OpenFile", "/a:b:read-only,graceful"),
    ("[Agent]", "ReplaceOrder=start-first", "AgentReplaceOrder", "start-first"),
    ("[Agent]", "Replicas=3", "AgentReplicas", "3"),
    ("[Agent]", "Sandbox=strict", "ProtectSystem", "strict"),
];

#[test]
fn what_counts_is_shown_by_systemds_names() {
    for (section, lines, name, expected) in CASES {
        let start = "[Service]\nExecStart=/bin/a\n";
        let with = shown("a.service", &format!("{start}{section}\n{lines}\n"));
        assert_eq!(with[name], expected, "{section} {lines}");
        assert_ne!(shown("a.service", start).get(name), with.get(name), "{name} is another one by default");
    }
}

#[test]
fn defaults_are_shown_and_triggers_gathered_and_secrets_are_not_told() {
    let timer = shown("a.timer", "[Timer]\nOnCalendar=daily\nOnCalendar=Mon 10:00\nOnBootSec=5\n");
    assert_eq!(timer["TimersCalendar"], "{ OnCalendar=*-*-* 00:00:00 } { OnCalendar=Mon *-*-* 10:00:00 }");
    assert_eq!(timer["TimersMonotonic"], "{ OnBootUSec=5s }");
    let service = shown("a.service", "[Service]\nExecStart=/bin/a\nTimeoutStopSec=3\n[Agent]\n");
    for (name, default) in
        [("TimeoutAbortUSec", "3s"), ("AgentReplaceOrder", "stop-first"), ("AgentSandbox", "none")]
    {
        assert_eq!(service[name], default, "{name}");
    }
    let reset = shown("a.timer", "[Timer]\nOnCalendar=daily\nOnBootSec=\nOnActiveSec=7\n");
    assert_eq!(reset["TimersMonotonic"], "{ OnActiveUSec=7s }");
    let socket =
        shown("a.socket.toml", "[Socket]\nListenStream = [\"/run/a\", \"80\"]\nListenDatagram = 81\n");
    assert_eq!(socket["Listen"], "/run/a (Stream) [::]:80 (Stream) [::]:81 (Datagram)");
    let service =
        shown("a.service.toml", "[Service]\nExecStart = \"/bin/a\"\nSetCredential = { a = \"hush\" }\n");
    assert!(!service.values().any(|value| value.contains("hush")), "{service:?}");
}
