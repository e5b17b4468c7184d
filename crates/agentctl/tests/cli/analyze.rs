//! `analyze` and `schema` as a process: no manager is near, and systemd-analyze is the oracle where it is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::manager::{Folder, outcome};

/// agentctl with these words, and only the folder's units on the search path.
fn run(folder: &Folder, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command.args(words).env("TZ", "Europe/Paris").env("LC_ALL", "C.UTF-8");
    command.env("AGENTD_UNIT_PATH", folder.path().join("units")).env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
    outcome(command.output().expect("agentctl runs"))
}

/// What systemd-analyze prints; `None` where it is not installed.
fn systemd(words: &[&str]) -> Option<String> {
    let mut command = Command::new("systemd-analyze");
    match command.args(words).env("TZ", "Europe/Paris").env("LC_ALL", "C.UTF-8").output() {
        Ok(output) => Some(String::from_utf8(output.stdout).expect("UTF-8 from the tool")),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "systemd-analyze must be installed here: {error}");
            None
        }
    }
}

fn unit(folder: &Folder, name: &str, text: &str) {
    let path = folder.path().join("units").join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, text).expect("a file");
    for path in [path.as_path(), path.parent().unwrap_or(Path::new("/")), folder.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
}

/// The lines but those that hang on the moment at which they are printed.
fn timeless(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("From now")).collect()
}

#[test]
fn calendars_are_printed_as_systemd_analyze_prints_them() {
    let folder = Folder::new();
    let base = "--base-time=2026-11-29 10:00:00";
    for words in [
        vec!["daily"],
        vec!["*-*-* 00:00:00"],
        vec!["Mon..Fri *-*-* 08:00", "hourly"],
        vec!["Mon 2020-01-01"],
        vec!["*-*~1 12:00 UTC", "--iterations=3"],
        vec!["*:0/15", "--iterations=2"],
        vec!["minutely"],
        vec!["*-4..6/4-27"],
        vec!["Mon..Tue, *-*~1..3/5"],
    ] {
        let words: Vec<&str> = ["calendar", base].into_iter().chain(words).collect();
        let Some(expected) = systemd(&words) else { return };
        let (code, out, err) = run(&folder, &[&["analyze"], words.as_slice()].concat());
        assert_eq!(timeless(&out), timeless(&expected), "{words:?}: {err}");
        assert_eq!(code, 0, "{words:?}");
    }
    // What hangs on the moment is the same where the moment is far away.
    let far = ["calendar", "--base-time=2090-01-01 00:00:00", "yearly"];
    if let Some(expected) = systemd(&far) {
        assert_eq!(run(&folder, &[&["analyze"], far.as_slice()].concat()).1, expected);
    }
}

#[test]
fn spans_are_printed_as_systemd_analyze_prints_them() {
    let folder = Folder::new();
    let words = [
        "timespan",
        "1min",
        "1.5h 3ms",
        "1d2w",
        "5000us",
        "infinity",
        "0",
        "1.5s",
        "61.25s",
        "1500us",
        "1us",
        "1y2month3w4d5h",
        "2h0.25s",
        "90",
    ];
    let Some(expected) = systemd(&words) else { return };
    let (code, out, _) = run(&folder, &[&["analyze"], words.as_slice()].concat());
    assert_eq!((code, out), (0, expected));
}

#[test]
fn what_is_no_calendar_and_no_span_is_told_with_a_way_to_write_it() {
    let folder = Folder::new();
    let (code, out, err) = run(&folder, &["analyze", "calendar", "daily", "someday", "-o", "json"]);
    assert!(code == 1 && out.contains("\"Normalized\": \"*-*-* 00:00:00\""), "{out}");
    assert!(
        err.contains("Failed to parse calendar specification 'someday'") && err.contains("write"),
        "{err}"
    );
    let (code, out, err) = run(&folder, &["analyze", "timespan", "1min", "soon", "-o", "json"]);
    assert!(code == 1 && out.contains("\"USec\": 60000000") && err.contains("'soon'"), "{out}{err}");
    assert_eq!(run(&folder, &["analyze", "calendar", "daily", "--base-time=later"]).0, 2);
}

#[test]
fn a_file_that_is_right_passes_and_every_mistake_of_one_that_is_not_is_told() {
    let folder = Folder::new();
    let good = "[Unit]\nRequires = [\"db.service\"]\n[Service]\nExecStart = [\"/bin/true\"]\n";
    unit(&folder, "web.service.toml", good);
    unit(&folder, "db.service.toml", "[Service]\nExecStart = [\"/bin/true\"]\n");
    let path = |name: &str| folder.path().join("units").join(name).display().to_string();
    assert_eq!(
        run(&folder, &["analyze", "verify", &path("web.service.toml")]),
        (0, String::new(), String::new())
    );
    assert_eq!(run(&folder, &["analyze", "verify", "--all"]).0, 0);
    let (code, out, err) = run(&Folder::new(), &["analyze", "verify", "--all"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("There are no unit files; 'agentctl analyze unit-paths'"), "{err}");

    let bad = "[Unit]\nRequires = [\"ghost.service\"]\nOnFailure = [\"gone.service\"]\n[Service]\nExecStart = [\"/nope\"]\n";
    unit(&folder, "bad.service.toml", bad);
    unit(&folder, "worse.service.toml", "[Service]\nExecStrat = [\"/bin/true\"]\nMemoryMax = \"much\"\n");
    unit(&folder, "lone.timer.toml", "[Timer]\nOnCalendar = \"daily\"\n");
    for (file, findings) in [
        (
            "bad.service.toml",
            &[
                "error: bad.service: Requires ghost.service, which no search path has",
                "warning: bad.service: OnFailure gone.service, which no search path has",
                "error: bad.service: Command /nope is not executable: No such file",
            ][..],
        ),
        ("worse.service.toml", &["did you mean ExecStart?", "worse.service.toml:3:13", "MemoryMax"]),
        ("lone.timer.toml", &["lone.timer: starts lone.service, which no search path has"]),
        ("absent.service.toml", &["cannot be read"]),
        ("web.service.toml.sig", &["is no unit file"]),
    ] {
        let (code, out, _) = run(&folder, &["analyze", "verify", &path(file)]);
        assert_eq!(code, 1, "{file}");
        for finding in findings {
            assert!(out.contains(finding), "{file}: {finding}: {out}");
        }
    }
    let (code, out, _) = run(&folder, &["analyze", "verify", "--all", "-o", "json"]);
    let findings: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let of = |unit: &str| {
        findings.as_array().map_or(0, |all| all.iter().filter(|one| one["Unit"] == unit).count())
    };
    assert_eq!((code, of("bad.service"), of("worse.service"), of("web.service")), (1, 3, 2, 0), "{out}");
    let place = findings.as_array().and_then(|all| all.iter().find(|one| one["Unit"] == "worse.service"));
    assert_eq!(
        place.map(|one| (one["Line"].clone(), one["Severity"].clone())),
        Some((2.into(), "error".into()))
    );
}

#[test]
fn drop_ins_beside_a_file_are_read_with_it_and_a_file_may_lie_anywhere() {
    let folder = Folder::new();
    let elsewhere = folder.path().join("new");
    fs::create_dir_all(elsewhere.join("web.service.d")).expect("folders");
    let file = elsewhere.join("web.service.toml");
    fs::write(&file, "[Service]\nExecStart = [\"/bin/true\"]\n").expect("a file");
    fs::write(elsewhere.join("web.service.d/10-x.toml"), "[Service]\nNcie = 3\n").expect("a file");
    let (code, out, _) = run(&folder, &["analyze", "verify", &file.display().to_string()]);
    assert!(code == 1 && out.contains("10-x.toml:2:1"), "{out}");
}

#[test]
fn cycles_are_found_with_their_members_and_their_path() {
    let folder = Folder::new();
    let text = |other: &str| {
        format!("[Unit]\nRequires = [\"{other}.service\"]\n[Service]\nExecStart = [\"/bin/true\"]\n")
    };
    for (name, other) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")] {
        unit(&folder, &format!("{name}.service.toml"), &text(other));
    }
    let path = |name: &str| folder.path().join("units").join(name).display().to_string();
    let (code, out, _) = run(&folder, &["analyze", "verify", &path("b.service.toml")]);
    let cycle = "Ordering cycle a.service -> b.service -> c.service -> a.service: \
                 none of a.service, b.service, c.service can start";
    assert!(code == 1 && out.contains(cycle), "{out}");
    // d is in no cycle itself.
    assert_eq!(run(&folder, &["analyze", "verify", &path("d.service.toml")]).0, 0);
}

#[test]
fn the_picture_has_systemds_colours_and_only_the_edges_that_were_asked_for() {
    let folder = Folder::new();
    unit(
        &folder,
        "a.service.toml",
        "[Unit]\nRequires = [\"b.service\"]\n[Service]\nExecStart = [\"/bin/true\"]\n",
    );
    unit(&folder, "b.service.toml", "[Service]\nExecStart = [\"/bin/true\"]\n");
    let (code, all, _) = run(&folder, &["analyze", "dot", "b", "-q"]);
    assert_eq!(code, 0);
    let requires = "\t\"a.service\" -> \"b.service\" [color=\"black\"];\n";
    let after = "\t\"a.service\" -> \"b.service\" [color=\"green\"];\n";
    assert!(all.starts_with("digraph agentd {\n") && all.ends_with("}\n"), "{all}");
    assert!(all.contains(requires) && all.contains(after), "{all}");
    let (_, order, _) = run(&folder, &["analyze", "dot", "--order", "b"]);
    assert!(!order.contains(requires) && order.contains(after), "{order}");
    let (_, require, _) = run(&folder, &["analyze", "dot", "--require", "b"]);
    assert!(require.contains(requires) && !require.contains(after), "{require}");
}

#[test]
fn the_search_path_is_listed_and_dot_is_for_pictures_alone() {
    let folder = Folder::new();
    let units = folder.path().join("units").display().to_string();
    assert_eq!(run(&folder, &["analyze", "unit-paths"]).1, format!("{units}\n"));
    let (code, out, _) = run(&folder, &["schema", "timer"]);
    let schema: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(code == 0 && schema["properties"]["Timer"]["properties"]["OnCalendar"].is_object(), "{out}");
    assert_eq!(run(&folder, &["list", "-o", "dot"]).0, 2);
}

#[test]
fn conditions_are_told_one_by_one_and_together() {
    let folder = Folder::new();
    let here = folder.path().display().to_string();
    let exists = |prefix: &str, path: &str| format!("ConditionPathExists={prefix}{path}");
    let (yes, no) = (exists("", &here), exists("", "/nowhere/at/all"));
    for (case, lines, code, said) in [
        (
            "one that holds",
            vec![yes.clone()],
            0,
            vec![format!("{yes} succeeded."), "Conditions succeeded.".into()],
        ),
        (
            "one that does not",
            vec![yes.clone(), no.clone()],
            1,
            vec![format!("{no} failed."), "Conditions failed.".into()],
        ),
        (
            "what the machine has",
            vec![
                "ConditionACPower=true".into(),
                "ConditionCapability=CAP_CHOWN".into(),
                "ConditionCPUFeature=fpu".into(),
            ],
            0,
            vec!["Conditions succeeded.".into()],
        ),
        ("turned round", vec![exists("!", "/nowhere/at/all")], 0, vec!["Conditions succeeded.".into()]),
        (
            "one of several is enough",
            vec![exists("|", "/nowhere/at/all"), exists("|", &here)],
            0,
            vec!["ConditionPathExists=|/nowhere/at/all failed.".into(), "Conditions succeeded.".into()],
        ),
        (
            "an assert is another matter",
            vec!["AssertPathIsDirectory=/nowhere/at/all".into()],
            1,
            vec!["Asserts failed.".into(), "Conditions succeeded.".into()],
        ),
    ] {
        let words: Vec<&str> =
            ["analyze", "condition"].into_iter().chain(lines.iter().map(String::as_str)).collect();
        let (found, out, err) = run(&folder, &words);
        assert_eq!(found, code, "{case}: {out}{err}");
        for line in said {
            assert!(out.lines().any(|found| found == line), "{case}: {line}\n{out}");
        }
        // systemd-analyze ends so too, for what it can know of.
        if let Ok(theirs) = Command::new("systemd-analyze").arg("condition").args(&lines).output() {
            assert_eq!(theirs.status.code(), Some(code), "{case}");
        }
    }
    for (case, line) in [
        ("no condition", "Wants=x.service"),
        ("unknown", "ConditionMoonIsFull=yes"),
        ("nothing to look for", "ConditionUser=|"),
        ("two lines", "ConditionUser=root\nWants=x"),
    ] {
        let (code, _, err) = run(&folder, &["analyze", "condition", line]);
        assert!(code == 2 && !err.is_empty(), "{case}: {code} {err}");
        assert!(case != "unknown" || err.contains("\n --> condition.target:2:1\n"), "{case}: {err}");
    }
}

#[test]
fn the_conditions_of_a_unit_are_those_of_its_files() {
    let folder = Folder::new();
    unit(&folder, "a.target.toml", "[Unit]\nConditionPathExists = [\"/\", \"/nowhere/at/all\"]\n");
    let (code, out, _) = run(&folder, &["analyze", "condition", "--unit", "a.target", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &report["ConditionResult"], &report["AssertResult"]), (1, &false.into(), &true.into()));
    let one = |place: usize| {
        (report["Conditions"][place]["Condition"].clone(), report["Conditions"][place]["Holds"].clone())
    };
    assert_eq!(one(0), ("ConditionPathExists=/".into(), true.into()));
    assert_eq!(one(1), ("ConditionPathExists=/nowhere/at/all".into(), false.into()));
    let (code, _, err) = run(&folder, &["analyze", "condition", "--unit", "ghost"]);
    assert!(code == 4 && err.contains("ghost.service could not be found"), "{err}");
}

#[test]
fn programs_are_looked_for_along_the_path_that_the_unit_gives_them_and_below_its_root() {
    let folder = Folder::new();
    let bin = folder.path().join("root/opt/bin");
    fs::create_dir_all(&bin).expect("folders");
    fs::copy("/bin/true", bin.join("agent")).expect("a program");
    fs::write(bin.join("notes"), "text").expect("a file");
    let root = folder.path().join("root").display().to_string();
    let service = |more: &str, program: &str| format!("[Service]\nExecStart = [\"{program}\"]\n{more}\n");
    let path = format!("Environment = {{ PATH = \"{}\" }}", bin.display());
    let below = format!("RootDirectory = \"{root}\"\nEnvironment = {{ PATH = \"/opt/bin\" }}");
    for (case, more, program, fault) in [
        ("a name on the path of every unit", "", "true", None),
        (
            "a name that is nowhere",
            "",
            "agent",
            Some("Command agent is not executable: it is not in /usr/local/sbin:"),
        ),
        ("a name on the unit's path", &path, "agent", None),
        ("no longer on the usual one", &path, "true", Some("it is not in")),
        ("a file that may not be executed", &path, "notes", Some("it is not in")),
        ("a name below the root", &below, "agent", None),
        ("a path below the root", &below, "/opt/bin/agent", None),
        ("a path that only the machine has", &below, "/bin/true", Some("is not executable: No such file")),
        ("a path that only the manager knows", "EnvironmentFile = \"-/nowhere\"", "agent", None),
    ] {
        unit(&folder, "a.service.toml", &service(more, program));
        let file = folder.path().join("units/a.service.toml").display().to_string();
        let (code, out, _) = run(&folder, &["analyze", "verify", &file]);
        assert_eq!(code, i32::from(fault.is_some()), "{case}: {out}");
        assert!(out.contains(fault.unwrap_or_default()), "{case}: {out}");
    }
}
