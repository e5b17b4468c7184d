//! Keys that are read and checked before the part that applies them is there.

use std::sync::Arc;

use agentd_unit::schema::{self, Section, Support};
use agentd_unit::sections::{
    Action, CollectMode, ListenAddress as Address, ListenKind as Kind, PathWatch, ReplaceOrder, RestartMode,
    TimeoutMode,
};
use agentd_unit::{
    Body, LoadState, LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, UnitName, parse_unit,
};

fn parse(path: &str, text: &str) -> Parsed {
    let name = UnitName::of_file(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let file = Arc::new(SourceFile::new(path, text));
    parse_unit(&name, &[file], &ParseContext { specifiers: &specifiers, zone: &zone })
}

fn messages(parsed: &Parsed) -> Vec<String> {
    let text =
        |d: &agentd_unit::Diagnostic| format!("{}: {}", if d.is_error() { "e" } else { "w" }, d.message);
    parsed.diagnostics.iter().map(text).collect()
}

#[test]
fn a_file_system_in_memory_over_everything_is_refused() {
    for value in ["/", "/:ro", "//:size=1M"] {
        let ini = format!("[Service]\nExecStart=/bin/true\nTemporaryFileSystem={value}\n");
        let toml = format!("[Service]\nExecStart = \"/bin/true\"\nTemporaryFileSystem = \"{value}\"\n");
        for (path, text) in [("a.service", ini), ("a.service.toml", toml)] {
            let parsed = parse(path, &text);
            assert_ne!(parsed.unit.load, LoadState::Loaded, "{path} {value}");
            let found = messages(&parsed);
            assert!(
                found.iter().any(|line| line.starts_with("e: ") && line.contains("no mount can hide")),
                "{found:?}"
            );
        }
    }
}

#[test]
fn a_socket_unit_is_read_whole() {
    let ini = "[Socket]\nListenStream=/run/a.sock\nListenStream=8080\nListenStream=[::1]:80\nListenDatagram=@a\n\
               ListenFIFO=/run/f\nListenStream=vsock:2:99\nListenNetlink=kobject-uevent 1\nSocketMode=0600\n\
               ReceiveBuffer=8M\nIPTTL=9\nSocketUser=www-data\nTriggerLimitBurst=7\n";
    let toml = r#"[Socket]
ListenStream = ["/run/a.sock", "8080", "[::1]:80", "vsock:2:99"]
ListenDatagram = "@a"
ListenFIFO = "/run/f"
ListenNetlink = "kobject-uevent 1"
SocketMode = "0600"
ReceiveBuffer = "8M"
IPTTL = 9
SocketUser = "www-data"
TriggerLimitBurst = 7
"#;
    for (path, text) in [("a.socket", ini), ("a.socket.toml", toml)] {
        let parsed = parse(path, text);
        assert_eq!(messages(&parsed), [] as [&str; 0], "{path}");
        assert_eq!(parsed.unit.load, LoadState::Loaded);
        let Body::Socket(socket) = parsed.unit.body else { panic!("a socket") };
        let of = |kind: Kind| -> Vec<Address> {
            socket.listen.iter().filter(|l| l.kind == kind).map(|l| l.address.clone()).collect()
        };
        let stream = of(Kind::Stream);
        assert_eq!(stream[..2], [Address::Path("/run/a.sock".into()), Address::Port(8080)]);
        assert_eq!(
            stream[2..],
            [
                Address::Inet("[::1]:80".parse().unwrap_or_else(|e| panic!("{e}"))),
                Address::Vsock(Some(2), 99),
            ]
        );
        assert_eq!(of(Kind::Datagram), [Address::Abstract("a".to_owned())]);
        assert_eq!(of(Kind::Fifo), [Address::Path("/run/f".into())]);
        assert_eq!(of(Kind::Netlink), [Address::Netlink("kobject-uevent".to_owned(), 1)]);
        assert_eq!((socket.mode, socket.accept, socket.trigger_limit_burst), (0o600, false, Some(7)));
        assert_eq!((socket.options.receive_buffer, socket.options.ip_ttl), (Some(8 << 20), Some(9)));
    }
}

#[test]
fn a_path_unit_is_read_whole_and_an_empty_value_takes_its_watches_back() {
    let text =
        "[Path]\nPathExists=/old\nPathChanged=\nPathChanged=/a\nDirectoryNotEmpty=/b\nUnit=c.service\n";
    let parsed = parse("a.path", text);
    assert_eq!(messages(&parsed), [] as [&str; 0]);
    let Body::Path(path) = parsed.unit.body else { panic!("a path") };
    assert_eq!(
        path.watches,
        [(PathWatch::Changed, "/a".into()), (PathWatch::DirectoryNotEmpty, "/b".into())]
    );
    assert_eq!(path.unit.as_ref().map(UnitName::as_str), Some("c.service"));
}

#[test]
fn a_key_without_effect_yet_is_kept_and_says_so() {
    let parsed = parse(
        "a.service",
        "[Unit]\nFailureAction=reboot\nCollectMode=inactive-or-failed\n[Service]\nExecStart=/bin/a\nSuccessExitStatus=1 TEMPFAIL SIGKILL\n\
         SuccessExitStatus=7\nRestartMode=direct\nTimeoutStopFailureMode=abort\nExecCondition=/bin/c\n\
         [Agent]\nReplaceOrder=start-first\nRestartFactor=1.5\n[Snapshot]\nKeep=9\n[Rollout]\nMaxSurge=2\n",
    );
    assert_eq!(parsed.unit.load, LoadState::Loaded);
    assert_eq!(
        messages(&parsed)[..2],
        [
            "w: [Agent] ReplaceOrder: is checked but has no effect yet: replicas and rollouts come with a later version",
            "w: [Snapshot] Keep: is checked but has no effect yet: snapshots come with a later version"
        ]
    );
    let system = &parsed.unit.unit.system;
    assert_eq!((system.failure_action, system.collect_mode), (Action::Reboot, CollectMode::InactiveOrFailed));
    assert_eq!(parsed.unit.signed_files(), ["/bin/a", "/bin/c"].map(std::path::PathBuf::from));
    let body = parsed.unit.as_service().cloned().unwrap_or_default();
    let life = body.service.life;
    assert_eq!(life.success.codes.iter().copied().collect::<Vec<_>>(), [1, 7, 75]);
    assert_eq!(life.success.signals.iter().copied().collect::<Vec<_>>(), [9]);
    assert_eq!((life.restart_mode, life.timeout_stop_mode), (RestartMode::Direct, TimeoutMode::Abort));
    let agent = body.agent.unwrap_or_default();
    assert_eq!((agent.life.replace_order, agent.life.restart_factor), (ReplaceOrder::StartFirst, Some(150)));
    assert_eq!(body.snapshot.map(|snapshot| snapshot.keep), Some(9));
    assert_eq!(body.rollout.map(|rollout| rollout.max_surge), Some(2));
}

#[test]
fn typed_keys_are_checked_like_any_other() {
    for (path, text, expected) in [
        (
            "a.service",
            "SuccessExitStatus=TEMPFIAL",
            "[Service] SuccessExitStatus: 'TEMPFIAL' is neither an exit code nor a signal",
        ),
        ("a.service", "SuccessExitStatus=256", "[Service] SuccessExitStatus: '256' is no exit code"),
        ("a.service", "RestartMode=soon", "[Service] RestartMode: 'soon' is not known here"),
        (
            "a.service",
            "DeviceAllow=fuse rw",
            "[Service] DeviceAllow: 'fuse rw' is no device with letters of rwm",
        ),
        (
            "a.service",
            "IPAddressDeny=1.2.3.4/40",
            "[Service] IPAddressDeny: '1.2.3.4/40' has no such number of bits",
        ),
        ("a.service", "PIDFile=../x", "[Service] PIDFile: '../x' goes up with '..'"),
        (
            "a.service",
            "FinalKillSignal=SIGNO",
            "[Service] FinalKillSignal: 'SIGNO' is no signal; write a name such as SIGTERM or a number from 1 to 64",
        ),
        ("a.socket", "ListenStream=0", "[Socket] ListenStream: '0' is no port"),
        ("a.socket", "ListenStream=host:80", "[Socket] ListenStream: 'host:80' is no address to listen on"),
        (
            "a.socket",
            "ListenMessageQueue=/a/b",
            "[Socket] ListenMessageQueue: '/a/b' is no name of a message queue",
        ),
        ("a.socket", "ListenFIFO=run/x", "[Socket] ListenFIFO: 'run/x' is no absolute path"),
        (
            "a.socket",
            "ListenStream=80\nMaxConnections=-1",
            "[Socket] MaxConnections: '-1' is no whole number from 0 to 4294967295",
        ),
        ("a.path", "PathExists=x", "[Path] PathExists: 'x' is no absolute path"),
        ("a.path", "DirectoryMode=9", "[Path] DirectoryMode: '9' is no file mode"),
    ] {
        let section = if path.ends_with("service") {
            "Service]\nExecStart=/bin/a"
        } else if path.ends_with("socket") {
            "Socket]"
        } else {
            "Path]"
        };
        let found = messages(&parse(path, &format!("[{section}\n{text}\n")));
        assert!(found.contains(&format!("e: {expected}")), "{text}: {found:?}");
    }
    let rollout = "[Service]\nExecStart=/bin/a\n[Rollout]\nMaxSurge=0\n";
    assert!(messages(&parse("a.service", rollout)).iter().any(|text| text.contains("no replica could ever")));
}

#[test]
fn words_that_only_systemd_has_are_taken_as_the_nearest_with_a_warning() {
    let parsed =
        parse("a.service", "[Service]\nExecStart=/bin/a\nType=dbus\nStandardOutput=journal+console\n");
    assert_eq!(parsed.unit.load, LoadState::Loaded);
    assert_eq!(
        messages(&parsed),
        [
            "w: [Service] Type: 'dbus' is not supported and taken as exec: agentd speaks no D-Bus",
            "w: [Service] StandardOutput: 'journal+console' is not supported and taken as journal: agentd copies no output to the console"
        ]
    );
    let toml = parse("a.service.toml", "[Service]\nExecStart = \"/bin/a\"\nType = \"dbus\"\n");
    assert!(matches!(toml.unit.load, LoadState::BadSetting(_)), "in TOML nobody means systemd's D-Bus");
}

#[test]
fn every_key_says_whether_it_is_supported() {
    for (section, key, expected) in [
        ("Service", "ExecStart", Support::Applied),
        ("Service", "StartLimitInterval", Support::Applied),
        ("Socket", "ListenMessageQueue", Support::Applied),
        ("Service", "CPUShares", Support::NotSupported("it belongs to cgroup v1, and agentd uses v2 alone")),
        ("Mount", "What", Support::NotSupported("agentd has no units of that type")),
        ("Service", "Frobnicate", Support::Unknown),
    ] {
        assert_eq!(schema::support(section, key), expected, "[{section}] {key}");
    }
    for section in Section::ALL {
        let mut keys: Vec<&str> = section.settings().iter().map(|setting| setting.key).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "[{}] has each key once", section.as_str());
    }
}

#[test]
fn conditions_are_read_with_their_prefixes_and_an_empty_one_takes_them_back() {
    let ini = "[Unit]\nConditionPathExists=/old\nConditionHost=\nConditionPathExists=|!/etc/%p\nAssertMemory=>= 1G\n\
               ConditionKernelVersion=>6\n[Service]\nExecStart=/bin/a\n";
    let toml = "[Unit]\nConditionPathExists = [\"\", \"|!/etc/%p\"]\nAssertMemory = \">= 1G\"\n\
                ConditionKernelVersion = \">6\"\n[Service]\nExecStart = [\"/bin/a\"]\n";
    let written = ["ConditionPathExists=|!/etc/a", "AssertMemory=>= 1G", "ConditionKernelVersion=>6"];
    for (path, text) in [("a.service", ini), ("a.service.toml", toml)] {
        let parsed = parse(path, text);
        assert_eq!(messages(&parsed), [] as [&str; 0], "{path}");
        let mut seen: Vec<String> = parsed.unit.unit.conditions.iter().map(ToString::to_string).collect();
        seen.sort_by_key(|text| written.iter().position(|written| written == text));
        assert_eq!(seen, written, "{path}");
    }
    let parsed = parse("a.service", "[Unit]\nConditionPathExists=etc/a\n[Service]\nExecStart=/bin/a\n");
    assert!(messages(&parsed)[0].contains("'etc/a' is no absolute path"), "{:?}", messages(&parsed));
}

#[test]
fn a_slice_keeps_what_its_units_may_use_together() {
    let parsed = parse(
        "a.slice",
        "[Slice]\nMemoryMax=2G\nDefaultMemoryMin=0\nDefaultMemoryLow=1M\nCPUWeight=50\nTasksMax=9\nIOReadBandwidthMax=/dev/vda 1M\n",
    );
    assert_eq!(parsed.unit.load, LoadState::Loaded);
    let Body::Slice(slice) = parsed.unit.body else { panic!("a slice") };
    assert_eq!(slice.memory_max, Some(agentd_unit::sections::MemoryLimit::Bytes(2 << 30)));
    assert_eq!(slice.resources.cpu_weight, Some(50));
    assert_eq!(slice.resources.io_devices[0].value, 1_000_000);
    assert_eq!(slice.resources.default_memory_min, Some(agentd_unit::sections::MemoryLimit::Bytes(0)));
    assert_eq!(slice.resources.default_memory_low, Some(agentd_unit::sections::MemoryLimit::Bytes(1 << 20)));
    let Body::Slice(idle) = parse("a.slice", "[Slice]\nCPUWeight=idle\n").unit.body else {
        panic!("a slice")
    };
    assert_eq!(idle.resources.cpu_weight, Some(0));
    assert!(messages(&parse("a.slice", "[Slice]\nCPUWeight=0\n"))[0].starts_with("e: [Slice] CPUWeight"));
}

#[test]
fn naming_controllers_delegates() {
    for (value, expected) in [("yes", true), ("no", false), ("pids memory", true), ("", false)] {
        let parsed = parse("a.service", &format!("[Service]\nExecStart=/bin/a\nDelegate={value}\n"));
        let body = parsed.unit.as_service().cloned().unwrap_or_default();
        assert_eq!(body.service.resources.delegate, expected, "{value}");
        assert_eq!(messages(&parsed), [] as [&str; 0]);
    }
    let parsed = parse("a.service", "[Service]\nExecStart=/bin/a\nDelegate=pids memroy\n");
    assert!(matches!(parsed.unit.load, LoadState::BadSetting(_)));
}
