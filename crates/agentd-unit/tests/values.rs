//! The kinds of values, each a table.

use std::sync::Arc;
use std::time::Duration;

use agentd_unit::sections::{MemoryLimit, TasksLimit};
use agentd_unit::values::{boolean, capability, command, limit, path, principal, span, words};
use agentd_unit::{
    Body, ExecCommand, LoadState, LocalZone, ParseContext, ServiceSection, SourceFile, SpecifierContext,
    Unit, UnitName, escape, parse_unit,
};

fn parse(name: &str, texts: &[&str]) -> Unit {
    let name = UnitName::parse(name).unwrap_or_else(|error| panic!("{error}"));
    let mut specifiers = SpecifierContext::system();
    specifiers.host_name = "host.example.org".to_owned();
    let zone = LocalZone::utc();
    let files: Vec<_> = texts.iter().map(|text| Arc::new(SourceFile::new("x.toml", *text))).collect();
    parse_unit(&name, &files, &ParseContext { specifiers: &specifiers, zone: &zone }).unit
}

/// The service of these settings below `[Service]`, one text a file.
fn service(texts: &[&str]) -> ServiceSection {
    let texts: Vec<String> = texts.iter().map(|text| format!("[Service]\n{text}\n")).collect();
    let mut all = vec!["[Service]\nExecStart = [\"/bin/true\"]\n"];
    all.extend(texts.iter().map(String::as_str));
    let unit = parse("a.service", &all);
    assert_eq!(unit.load, LoadState::Loaded, "{texts:?}");
    match unit.body {
        Body::Service(body) => body.service,
        body => panic!("{body:?} is no service"),
    }
}

#[test]
fn spans() {
    let (second, day) = (1_000_000, 86_400_000_000);
    for (text, micros) in [
        ("0", 0),
        ("90", 90 * second),
        ("1min 30s", 90 * second),
        ("5 min 2s", 302 * second),
        ("1.5s", 1_500_000),
        (".5s", 500_000),
        ("1h2m3s", 3_723 * second),
        ("2days", 2 * day),
        ("1w", 7 * day),
        ("1M", 2_629_800 * second),
        ("1y", 31_557_600 * second),
        ("7us 3ms", 3_007),
        ("1µs", 1),
        ("0.0000019s", 1),
        ("584542y", 584_542 * 31_557_600 * second),
    ] {
        assert_eq!(span::parse(text), Ok(Some(Duration::from_micros(micros))), "{text}");
    }
    assert_eq!(span::parse("infinity"), Ok(None));
    for text in [
        "",
        " ",
        "-1",
        "1s -1s",
        "nan",
        "inf",
        "1x",
        "s",
        "1 2x",
        "1..5",
        "12.34.56",
        "18446744073709551615us",
        "600000y",
        "1e3",
        "٣s",
    ] {
        assert!(span::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn sizes_and_shares() {
    for (text, limit) in [
        ("512M", MemoryLimit::Bytes(512 << 20)),
        ("1.5G", MemoryLimit::Bytes(3 << 29)),
        ("4096", MemoryLimit::Bytes(4096)),
        ("1 K", MemoryLimit::Bytes(1024)),
        ("7B", MemoryLimit::Bytes(7)),
        ("1E", MemoryLimit::Bytes(1 << 60)),
        ("50%", MemoryLimit::Permyriad(5000)),
        ("12.5%", MemoryLimit::Permyriad(1250)),
        ("0.01%", MemoryLimit::Permyriad(1)),
        ("infinity", MemoryLimit::Infinity),
    ] {
        assert_eq!(limit::memory(text), Ok(limit), "{text}");
    }
    for text in [
        "",
        "M",
        "1.M",
        "1.2.3M",
        "-1",
        "+1",
        "1e3",
        "0x10",
        "0",
        "16E",
        "18446744073709551615",
        "0%",
        "100.01%",
        "%",
        "NaN",
        "Inf",
    ] {
        assert!(limit::memory(text).is_err(), "{text:?}");
    }
    assert_eq!(limit::cpu_quota("150%"), Ok(15_000));
    assert_eq!(limit::tasks("10%"), Ok(TasksLimit::Permyriad(1000)));
    assert_eq!(limit::tasks("7"), Ok(TasksLimit::Count(7)));
    assert_eq!(limit::tasks("infinity"), Ok(TasksLimit::Infinity));
}

#[test]
fn booleans_are_systemds() {
    for (text, value) in [
        ("yes", true),
        ("ON", true),
        ("1", true),
        ("t", true),
        ("False", false),
        ("off", false),
        ("n", false),
    ] {
        assert_eq!(boolean::parse(text), Ok(value), "{text}");
    }
    for text in ["", "ja", "2", "yess", " yes"] {
        assert!(boolean::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn users_that_cannot_be_are_refused() {
    for text in ["www-data", "_x", "0", "1000", "a.b", "A1"] {
        assert!(principal::parse(text).is_ok(), "{text}");
    }
    for text in [
        "0day",
        " svc",
        "svc ",
        "",
        "-x",
        "a b",
        "a/b",
        "ü",
        "65535",
        "4294967295",
        "4294967296",
        "a:b",
        ".x",
        "#1",
        "+1",
    ] {
        assert!(principal::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn paths_are_made_simple_and_do_not_go_up() {
    assert_eq!(path::absolute("//a/./b//").map(|p| p.display().to_string()), Ok("/a/b".to_owned()));
    assert_eq!(path::absolute("/").map(|p| p.display().to_string()), Ok("/".to_owned()));
    assert_eq!(path::below("a//b/").map(|p| p.display().to_string()), Ok("a/b".to_owned()));
    let long = format!("/{}", "a".repeat(4095));
    for text in ["", "a", "~", "/a/../b", "/..", long.as_str()] {
        assert!(path::absolute(text).is_err(), "{text:?}");
    }
    for text in ["", ".", "/a", "a/..", ".."] {
        assert!(path::below(text).is_err(), "{text:?}");
    }
}

#[test]
fn capabilities_merge_as_in_systemd() {
    let bit = |number: u32| 1_u64 << number;
    let (chown, kill, raw) = (bit(0), bit(5), bit(13));
    for (case, texts, expected) in [
        ("the first list replaces all", vec![r#"["CAP_CHOWN", "CAP_KILL"]"#], chown | kill),
        ("a string has words", vec![r#""CAP_CHOWN cap_kill""#], chown | kill),
        ("a second one adds", vec![r#"["CAP_CHOWN"]"#, r#"["CAP_KILL"]"#], chown | kill),
        ("a first ~ takes from all", vec![r#""~CAP_CHOWN CAP_KILL""#], capability::ALL & !chown & !kill),
        ("a later ~ takes from what is there", vec![r#"["CAP_CHOWN", "CAP_KILL"]"#, r#""~CAP_KILL""#], chown),
        ("an empty list is none", vec!["[]"], 0),
        ("none, then one", vec![r#"["CAP_CHOWN"]"#, "[]", r#"["CAP_NET_RAW"]"#], raw),
        ("a lone ~ is all", vec!["[]", r#""~""#], capability::ALL),
    ] {
        let texts: Vec<String> = texts.iter().map(|text| format!("CapabilityBoundingSet = {text}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(service(&texts).capability_bounding_set, Some(expected), "{case}");
    }
    assert_eq!(service(&[]).capability_bounding_set, None);
    assert_eq!(service(&[r#"AmbientCapabilities = "CAP_KILL""#]).ambient_capabilities, kill);
    assert_eq!(capability::names(chown | raw), ["CAP_CHOWN", "CAP_NET_RAW"]);
    assert!(capability::parse(["CAP_CHOWN", "~CAP_KILL"]).is_err());
}

#[test]
fn words_have_systemds_quotes_and_escapes() {
    for (text, expected) in [
        (r#"sh -c "printf \"%s\" \\x41; echo 'a b'""#, vec!["sh", "-c", r#"printf "%s" \x41; echo 'a b'"#]),
        (r#"a "" ''"#, vec!["a", "", ""]),
        (r#"a\x20b \u00e9 \U0001F600 \101 \s \t"#, vec!["a b", "é", "😀", "A", " ", "\t"]),
        (r#"pre"mid dle"post"#, vec!["premid dlepost"]),
        (r#"'it"s' "it's""#, vec![r#"it"s"#, "it's"]),
        (r#"$VAR ${VAR} $$ %%"#, vec!["$VAR", "${VAR}", "$$", "%%"]),
        (r"\xc3\xa9", vec!["é"]),
        ("  a\t\n b  ", vec!["a", "b"]),
        ("", vec![]),
    ] {
        let found = words::split(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found.iter().map(|word| &*word.text).collect::<Vec<_>>(), expected, "{text}");
    }
    for text in [
        r#""a"#,
        "'",
        r"a\",
        r#""a\"#,
        r"\q",
        r"\x4",
        r"\x00",
        r"\400",
        r"\ud800",
        r"\U99999999",
        r"\xff",
        r"\u12",
    ] {
        assert!(words::split(text).is_err(), "{text:?}");
    }
}

fn command(line: &str) -> Vec<ExecCommand> {
    let expand = |text: &str| Ok(text.to_owned());
    command::parse_line(line, words::Escapes::Resolve, &expand)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn command_lines_have_prefixes_and_separators() {
    let one = command("-:/bin/a $X");
    assert_eq!(one[0].argv, ["/bin/a", "$X"]);
    assert!(one[0].ignore_failure && !one[0].expand_environment && !one[0].full_privileges);
    let named = &command("@/bin/a name b")[0];
    assert_eq!(
        (named.program.as_str(), named.argv.as_slice()),
        ("/bin/a", &["name".to_owned(), "b".to_owned()][..])
    );
    assert!(command("+/bin/a")[0].full_privileges && command("!/bin/a")[0].no_setuid);
    let several = command(r#"/bin/a x ; /bin/b \; ";" y; z"#);
    assert_eq!(several.len(), 2);
    assert_eq!(several[1].argv, ["/bin/b", ";", ";", "y;", "z"]);
    assert_eq!(command("//bin/./a")[0].program, "/bin/a");
    assert_eq!(command("true")[0].program, "true");
    let expand = |text: &str| Ok(text.to_owned());
    for line in
        ["", ";", "-", "@/bin/a", "bin/a", "/bin/", "/.", "/bin/.", ".", "+!/bin/a", "/bin/../a", "--/bin/a"]
    {
        assert!(command::parse_line(line, words::Escapes::Resolve, &expand).is_err(), "{line:?}");
    }
}

#[test]
fn a_list_is_one_command_without_quoting_and_a_list_of_lists_several() {
    let argv = |texts: &[&str]| -> Vec<Vec<String>> {
        service(texts).exec_start_pre.into_iter().map(|command| command.argv).collect()
    };
    assert_eq!(argv(&[r#"ExecStartPre = ["/a", "b c", "\"", ";"]"#]), [["/a", "b c", "\"", ";"]]);
    assert_eq!(
        argv(&[r#"ExecStartPre = [["/a"], ["/b"]]"#, r#"ExecStartPre = "/c""#]),
        [["/a"], ["/b"], ["/c"]]
    );
    assert_eq!(
        argv(&[r#"ExecStartPre = ["/a"]"#, "ExecStartPre = []", r#"ExecStartPre = ["/b"]"#]),
        [["/b"]]
    );
    assert!(service(&[r#"ExecStartPre = ["-/a"]"#]).exec_start_pre[0].ignore_failure);
}

#[test]
fn environment_merges_and_the_last_of_a_name_counts() {
    let found = service(&[
        "Environment = { A = \"1\", B = 2, C = true, D = \"%%\" }",
        "Environment = \"A=3 'E=x y'\"",
        "Environment = [\"F=a b\", \"B=\"]",
    ]);
    let found: Vec<String> =
        found.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(found, ["A=3", "B=", "C=true", "D=%", "E=x y", "F=a b"]);
    assert_eq!(service(&["Environment = { A = \"1\" }", "Environment = {}"]).environment, []);
}

#[test]
fn lists_append_and_reset_and_scalars_replace() {
    let unit = parse(
        "a.target",
        &[
            "[Unit]\nAfter = [\"a.service\"]\nWants = \"b.service c.service\"\nDescription = \"one\"\n",
            "[Unit]\nAfter = []\nDescription = \"two\"\nWants = [\"d.service\"]\n",
            "[Unit]\nAfter = \"e.service\"\n",
        ],
    );
    assert_eq!(unit.load, LoadState::Loaded);
    assert_eq!(unit.description(), "two");
    assert_eq!(unit.unit.after.iter().map(UnitName::as_str).collect::<Vec<_>>(), ["e.service"]);
    assert_eq!(
        unit.unit.wants.iter().map(UnitName::as_str).collect::<Vec<_>>(),
        ["b.service", "c.service", "d.service"]
    );
}

#[test]
fn defaults_hang_on_other_settings() {
    use agentd_unit::{NotifyAccess, ServiceType};
    let defaults = service(&[]);
    assert_eq!(defaults.timeout_start, Some(Duration::from_secs(90)));
    assert_eq!(service(&["Type = \"oneshot\""]).timeout_start, None);
    assert_eq!(
        service(&["Type = \"oneshot\"\nTimeoutStartSec = 5"]).timeout_start,
        Some(Duration::from_secs(5))
    );
    assert_eq!(service(&["TimeoutSec = 0"]).timeout_stop, None);
    assert_eq!(service(&["Type = \"notify\""]).notify_access, NotifyAccess::Main);
    assert_eq!(service(&["WatchdogSec = 5"]).notify_access, NotifyAccess::Main);
    assert_eq!(service(&["WatchdogSec = 0"]).watchdog, None);
    assert_eq!(defaults.notify_access, NotifyAccess::None);
    let python = parse("a.service", &["[Agent]\nKind = \"python\"\nModule = \"/x/a.py\"\n"]);
    let body = python.as_service().map(|body| (body.service.service_type, body.service.notify_access));
    assert_eq!(
        (python.load.clone(), body),
        (LoadState::Loaded, Some((ServiceType::Notify, NotifyAccess::Main)))
    );
}

#[test]
fn specifiers_take_the_place_of_their_values() {
    let said = [("ID", "debian"), ("VERSION_ID", "11"), ("VERSION_ID", "12"), ("IMAGE_ID", "agents")];
    let said = said.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let context = SpecifierContext {
        host_name: "host.example.org".to_owned(),
        pretty_host_name: "Our host".to_owned(),
        release: Some(agentd_unit::Release::of(&said)),
        ..SpecifierContext::system()
    };
    let expand = |text: &str, name: &str| {
        context.expand(text, &UnitName::parse(name).unwrap_or_else(|error| panic!("{error}")))
    };
    let name = r"a-b\x2dc@d-e\x2fx.service";
    for (text, expected) in [
        ("%n", name),
        ("%N", r"a-b\x2dc@d-e\x2fx"),
        ("%p|%P", r"a-b\x2dc|a/b-c"),
        ("%i|%I", r"d-e\x2fx|d/e/x"),
        ("%j|%J", r"b\x2dc|b-c"),
        ("%f", "/d/e/x"),
        ("%t%S%C%L%E", "/run/var/lib/var/cache/var/log/etc"),
        ("%h %u %U %g %G", "/root root 0 root 0"),
        ("%H %l", "host.example.org host"),
        ("%o-%w [%A%B%M%W]", "debian-12 [agents]"),
        ("%q %s", "Our host /bin/sh"),
        ("100%%%%", "100%%"),
        ("é%%é", "é%é"),
    ] {
        assert_eq!(expand(text, name).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(expand("%f", "srv-www.service").as_deref(), Ok("/srv/www"));
    assert_eq!(expand("[%i]", "a.service").as_deref(), Ok("[]"));
    for text in ["%", "a%", "%Q", "%é", "%m", "%v"] {
        assert!(expand(text, name).is_err(), "{text}");
    }
    let unnamed = SpecifierContext::system();
    let unit = UnitName::parse(name).unwrap_or_else(|error| panic!("{error}"));
    for text in ["%o", "%q", "%A"] {
        assert!(unnamed.expand(text, &unit).is_err(), "{text}: nobody says so");
    }
}

#[test]
fn specifiers_reach_names_paths_and_variables() {
    let text = "[Unit]\nRequires = \"db@%i.service\"\n[Service]\nExecStart = [\"/opt/%p\", \"%i%%\"]\n\
                WorkingDirectory = \"-/srv/%i\"\nUser = \"u%i\"\nEnvironment = { X = \"%n\" }\nStateDirectory = \"%p/%i\"\n";
    let unit = parse("w@7.service", &[text]);
    assert_eq!(unit.load, LoadState::Loaded);
    assert!(unit.unit.requires.contains("db@7.service"));
    let service = unit.as_service().map(|body| body.service.clone()).unwrap_or_default();
    assert_eq!(service.exec_start[0].argv, ["/opt/w", "7%"]);
    assert_eq!(service.working_directory.as_deref(), Some(std::path::Path::new("/srv/7")));
    assert!(service.working_directory_optional);
    assert_eq!(service.user.as_deref(), Some("u7"));
    assert_eq!(service.environment, [("X".to_owned(), "w@7.service".to_owned())]);
    assert_eq!(service.state_directory, [std::path::PathBuf::from("w/7")]);
}

#[test]
fn signed_files_are_all_that_runs() {
    let files = |text: &str| -> Vec<String> {
        parse("a.service", &[text]).signed_files().iter().map(|path| path.display().to_string()).collect()
    };
    let text = "[Service]\nExecStart = [\"/b\"]\nExecStartPre = [\"/a\"]\nExecStop = [\"sleep\", \"1\"]\nExecReload = \"/b x\"\n[Agent]\nPin = [\"/p\"]\n";
    assert_eq!(files(text), ["/a", "/b", "/p", "sleep"]);
    let text = "[Service]\nExecStart = [\"/b\"]\nEnvironmentFile = [\"/e\", \"-/if-there\"]\n";
    assert_eq!(files(text), ["/b", "/e"]);
    assert_eq!(parse("a.service", &[text]).optional_signed_files(), [std::path::PathBuf::from("/if-there")]);
    let python = |module: &str, more: &str| {
        files(&format!("[Agent]\nKind = \"python\"\nModule = \"{module}\"\n[Service]\n{more}"))
    };
    assert_eq!(python("/x/a.py", ""), ["/x/a.py"]);
    assert_eq!(python("pkg.mod", "Environment = { PYTHONPATH = \"/lib:/more\" }"), ["/lib/pkg"]);
    assert_eq!(python("mod", "WorkingDirectory = \"/srv\""), ["/srv/mod.py"]);
}

#[test]
fn escaping_goes_both_ways() {
    for text in ["", "a", "a/b", "a-b", ".x", "é ü", "\\", "x@y:z_1.2"] {
        assert_eq!(escape::unescape(&escape::escape(text)).as_deref(), Ok(text), "{text:?}");
    }
    for name in [r"\", r"\x", r"\x1", r"\xgg", r"\y20", r"\xff", r"\x+1"] {
        assert!(escape::unescape(name).is_err(), "{name:?}");
    }
    assert_eq!(escape::escape_path("/a//b/").as_deref(), Ok("a-b"));
    assert!(escape::escape_path("/a/../b").is_err());
}
