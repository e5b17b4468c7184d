//! The loader over real folders.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

mod tiers;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentd_unit::{Admission, Gate, LoadState, Loader, OpenGate, Trusted, UnitFiles, UnitName};
use tiers::{GOOD, Tiers, name, reason, unit};

#[test]
fn the_highest_tier_wins_a_name() {
    let tiers = Tiers::new();
    tiers.write("usr/a.service.toml", "[Service]\nExecStart = [\"/usr\"]\n");
    tiers.write("etc/a.service.toml", "[Service]\nExecStart = [\"/etc\"]\n");
    let report = tiers.load();
    assert_eq!(unit(&report, "a.service").load, LoadState::Loaded);
    assert_eq!(
        unit(&report, "a.service").as_service().expect("a service").service.exec_start[0].program,
        "/etc"
    );
}

#[test]
fn every_bad_shape_fails_its_own_unit_alone() {
    let tiers = Tiers::new();
    let outside = tiers.path("outside.service.toml");
    fs::write(&outside, GOOD).expect("a file outside of the path");
    tiers.write("etc/good.service.toml", GOOD).write("etc/t@.service.toml", GOOD);
    tiers.write("etc/g.service.toml/file", "");
    tiers.write("etc/big.service.toml", vec![b'#'; 1024 * 1024 + 1]);
    tiers.write("etc/latin.service.toml", b"[Unit]\nDescription = \"\xe9\"\n");
    tiers
        .link("etc/plain.service.toml", "t@.service.toml")
        .link("etc/loop.service.toml", "loop.service.toml");
    tiers.link("etc/c.service.toml", "d.service.toml").link("etc/d.service.toml", "c.service.toml");
    tiers.link("etc/zero.service.toml", "/dev/zero").link("etc/missing.service.toml", "nothing.service.toml");
    tiers.link("etc/out.service.toml", &outside).link("etc/other.timer.toml", "good.service.toml");
    let fifo = std::process::Command::new("mkfifo").arg(tiers.path("etc/fifo.service.toml")).status();
    assert!(fifo.expect("mkfifo runs").success());

    let begin = std::time::Instant::now();
    let report = tiers.load();
    assert!(begin.elapsed().as_secs() < 5, "nothing blocks");
    assert_eq!(unit(&report, "good.service").load, LoadState::Loaded);
    for (name, why) in [
        ("plain.service", "a template; link an instance"),
        ("loop.service", "links to itself"),
        ("c.service", "leads in a circle: c.service -> d.service -> c.service"),
        ("d.service", "leads in a circle: d.service -> c.service -> d.service"),
        ("zero.service", "links to /dev/zero, outside of the search path"),
        ("missing.service", "links to nothing.service, which no search path has"),
        ("out.service", "outside of the search path"),
        ("other.timer", "links to good.service, a unit of another type"),
        ("fifo.service", "is a FIFO, not a file"),
        ("g.service", "is a folder, not a file"),
        ("big.service", "is larger than 1 MiB"),
        ("latin.service", "latin.service.toml:2:16: the line is no UTF-8 text"),
    ] {
        let reason = reason(&report, name);
        assert!(reason.contains(why), "{name}: {reason}");
        assert!(
            reason.contains(tiers.root.to_str().expect("a UTF-8 path")),
            "{name} names its file: {reason}"
        );
    }
}

#[test]
fn two_files_of_one_name_in_one_tier_are_an_error_that_names_both() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("etc/a.service", "[Service]\n");
    let reason = reason(&tiers.load(), "a.service");
    assert!(reason.contains("etc/a.service and ") && reason.contains("etc/a.service.toml"), "{reason}");
}

#[test]
fn a_file_that_others_can_write_is_refused_and_its_neighbour_is_not() {
    let tiers = Tiers::new();
    tiers
        .write("etc/a.service.toml", GOOD)
        .write("etc/b.service.toml", GOOD)
        .write("etc/c.service.toml", GOOD);
    let mode = |file: &str, mode| fs::set_permissions(tiers.path(file), fs::Permissions::from_mode(mode));
    mode("etc/a.service.toml", 0o646).expect("a changed mode");
    mode("etc/b.service.toml", 0o664).expect("a changed mode");
    let report = tiers.load();
    assert!(reason(&report, "a.service").contains("can be written by everybody; run chmod o-w on it"));
    assert!(reason(&report, "b.service").contains("can be written by group"));
    assert_eq!(unit(&report, "c.service").load, LoadState::Loaded);
}

#[test]
fn a_folder_that_others_can_write_is_refused_whole_and_said() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("usr/b.service.toml", GOOD);
    fs::set_permissions(tiers.path("etc"), fs::Permissions::from_mode(0o777)).expect("a changed mode");
    let report = tiers.load();
    assert!(report.set.get(&name("a.service")).is_none());
    assert_eq!(unit(&report, "b.service").load, LoadState::Loaded);
    let said =
        report.problems.iter().any(|problem| problem.to_string().contains("etc can be written by everybody"));
    assert!(said, "{:?}", report.problems);
}

#[test]
fn an_untrusted_owner_is_refused() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD);
    let mut config = tiers.loader().config().clone();
    config.trusted = Trusted(vec![4_000_000_000]);
    let report = Loader::new(config).load(&OpenGate);
    assert!(report.set.get(&name("a.service")).is_none());
    assert!(
        report.problems[0].message.contains("who is not trusted with units here"),
        "{:?}",
        report.problems
    );
}

#[test]
fn an_alias_is_resolved_by_name_over_all_tiers() {
    let tiers = Tiers::new();
    tiers.write("usr/real.service.toml", "[Service]\nExecStart = [\"/usr\"]\n");
    tiers.link("usr/alias.service.toml", "real.service.toml");
    tiers.write("etc/real.service.toml", "[Service]\nExecStart = [\"/etc\"]\n");
    let report = tiers.load();
    let real = unit(&report, "real.service");
    assert_eq!(unit(&report, "alias.service").name, real.name);
    assert_eq!(real.aliases, [name("alias.service")]);
    assert_eq!(real.as_service().expect("a service").service.exec_start[0].program, "/etc");
}

#[test]
fn a_link_to_a_template_gives_each_of_its_instances_another_name() {
    let tiers = Tiers::new();
    tiers.write("usr/real@.service.toml", "[Service]\nExecStart = [\"/bin/%i\"]\n");
    tiers
        .link("usr/other@.service.toml", "real@.service.toml")
        .link("usr/third@.service.toml", "other@.service.toml");
    tiers.link("etc/third@own.service.toml", "third@.service.toml");
    tiers.write("etc/other@file.service.toml", "[Service]\nExecStart = [\"/bin/file\"]\n");
    tiers.write(
        "usr/user.service.toml",
        "[Unit]\nWants = \"other@needed.service\"\n[Service]\nExecStart = [\"/bin/a\"]\n",
    );
    let report = tiers.load();
    for (id, names) in [
        ("real@needed.service", ["other@needed.service", "third@needed.service"]),
        ("real@own.service", ["third@own.service", "other@own.service"]),
    ] {
        for other in names {
            assert_eq!(unit(&report, other).name, name(id), "{other}");
        }
        let mut aliases = unit(&report, id).aliases.clone();
        aliases.sort();
        let mut names = names.map(name).to_vec();
        names.sort();
        assert_eq!(aliases, names, "{id}");
    }
    let found = tiers.loader().find(&name("third@later.service"), &|_| false, &OpenGate);
    let found = found.get(&name("third@later.service")).expect("it is found");
    assert_eq!(found.name, name("real@later.service"));
    assert_eq!(found.as_service().expect("a service").service.exec_start[0].program, "/bin/later");
    let known = tiers.loader().find(&name("third@later.service"), &|known| *known == found.name, &OpenGate);
    assert_eq!(known.get(&name("third@later.service")).expect("another name of it").name, found.name);
    // A file of its own is another unit.
    assert_eq!(unit(&report, "other@file.service").name, name("other@file.service"));
}

#[test]
fn a_link_of_the_same_name_into_a_lower_tier_is_that_file() {
    let tiers = Tiers::new();
    tiers.write("usr/a.service.toml", GOOD).link("etc/a.service.toml", "../usr/a.service.toml");
    assert_eq!(unit(&tiers.load(), "a.service").fragment, Some(tiers.path("usr/a.service.toml").into()));
}

#[test]
fn a_mask_is_a_link_to_nothing_or_an_empty_file() {
    let tiers = Tiers::new();
    for file in ["usr/a.service.toml", "usr/b.service.toml", "usr/c.service.toml"] {
        tiers.write(file, GOOD);
    }
    tiers.link("control/a.service", "/dev/null").link("etc/b.service.toml", "/dev/null");
    tiers.write("etc/c.service.toml", "");
    let report = tiers.load();
    for masked in ["a.service", "b.service", "c.service"] {
        assert_eq!(unit(&report, masked).load, LoadState::Masked, "{masked}");
    }
}

#[test]
fn drop_ins_apply_by_file_name_and_the_most_special_of_a_name_counts() {
    let tiers = Tiers::new();
    let set = |value: &str| format!("[Service]\nEnvironment = {{ ORDER = \"{value}\", {value} = \"1\" }}\n");
    tiers.write("usr/a-b@.service.toml", GOOD).link("usr/a-b@1.service.toml", "a-b@.service.toml");
    tiers.write("usr/service.d/50-x.toml", set("TYPE"));
    tiers.write("usr/a-.service.d/50-x.toml", set("PREFIX"));
    tiers.write("usr/a-b@.service.d/50-x.toml", set("TEMPLATE"));
    tiers.write("usr/a-b@1.service.d/50-x.toml", set("INSTANCE"));
    tiers.write("etc/a-b@.service.d/10-early.toml", set("EARLY"));
    tiers.write("usr/a-b@.service.d/10-early.toml", set("HIDDEN"));
    tiers.write("usr/a-.service.d/90-late.toml", set("LATE"));
    tiers.write("usr/service.d/95-gone.toml", set("GONE")).link("etc/service.d/95-gone.toml", "/dev/null");
    let report = tiers.load();
    let unit = unit(&report, "a-b@1.service");
    let environment = &unit.as_service().expect("a service").service.environment;
    let names: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(environment[0], ("ORDER".to_owned(), "LATE".to_owned()));
    assert_eq!(names, ["ORDER", "EARLY", "INSTANCE", "LATE"]);
    let files: Vec<_> =
        unit.drop_ins.iter().map(|path| path.strip_prefix(&tiers.root).expect("below")).collect();
    assert_eq!(
        files,
        [
            "etc/a-b@.service.d/10-early.toml",
            "usr/a-b@1.service.d/50-x.toml",
            "usr/a-.service.d/90-late.toml"
        ]
        .map(Path::new)
    );
}

#[test]
fn a_drop_in_that_cannot_be_used_fails_its_unit() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("etc/b.service.toml", GOOD);
    tiers.write("etc/a.service.d/limits.conf", "[Service]\nMemoryMax=12Q\n");
    let report = tiers.load();
    assert!(reason(&report, "a.service").contains("limits.conf:2:11: [Service] MemoryMax: '12Q'"));
    assert_eq!(unit(&report, "b.service").load, LoadState::Loaded);
}

#[test]
fn control_files_set_limits_last_and_nothing_else() {
    let tiers = Tiers::new();
    for file in ["etc/a.service.toml", "etc/b.service.toml"] {
        tiers.write(file, GOOD);
    }
    tiers.write("etc/a.service.d/99-z.toml", "[Service]\nTasksMax = 5\n");
    tiers.write("control/a.service.d/50-limits.toml", "[Service]\nTasksMax = 7\n");
    tiers.write("control/b.service.d/50-limits.toml", "[Service]\nUser = \"root\"\n");
    tiers.write("control/new.service.toml", GOOD);
    let report = tiers.load();
    let tasks = unit(&report, "a.service").as_service().expect("a service").service.tasks_max;
    assert_eq!(tasks, Some(agentd_unit::sections::TasksLimit::Count(7)));
    assert!(
        reason(&report, "b.service")
            .contains("[Service] User: a file below control/ may set resource limits alone")
    );
    assert!(reason(&report, "new.service").contains("a control folder holds masks, markers and drop-ins"));
}

#[test]
fn a_slice_without_a_file_may_have_drop_ins() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD.to_owned() + "Slice = \"a-b.slice\"\n");
    tiers.write("etc/b.service.toml", GOOD);
    tiers.write("etc/system.slice.d/10-more.toml", "[Slice]\nMemoryMax = \"1M\"\nTasksMax = 5\n");
    tiers.write("control/system.slice.d/50-MemoryMax.toml", "[Slice]\nMemoryMax = \"2M\"\n");
    tiers.write("etc/a.slice.d/10-bad.toml", "[Slice]\nMemoryMix = 1\n");
    let report = tiers.load();
    let found = unit(&report, "system.slice");
    let agentd_unit::Body::Slice(slice) = &found.body else { panic!("a slice") };
    assert_eq!(slice.memory_max, Some(agentd_unit::sections::MemoryLimit::Bytes(2 << 20)));
    assert_eq!(slice.tasks_max, Some(agentd_unit::sections::TasksLimit::Count(5)));
    assert_eq!((found.fragment.is_none(), found.drop_ins.len()), (true, 2));
    assert_eq!(found.description(), "System Slice");
    assert!(reason(&report, "a.slice").contains("MemoryMix"));
    tiers.write("etc/a-.slice.d/10-all.toml", "[Slice]\nTasksMax = 9\n");
    let report = tiers.load();
    let agentd_unit::Body::Slice(slice) = &unit(&report, "a-b.slice").body else { panic!("a slice") };
    assert_eq!(slice.tasks_max, Some(agentd_unit::sections::TasksLimit::Count(9)));
}

#[test]
fn install_enables_and_markers_have_the_last_word() {
    let install = |enabled: &str| format!("{GOOD}[Install]\nWantedBy = \"multi-user.target\"\n{enabled}");
    let tiers = Tiers::new();
    tiers.write("etc/plain.service.toml", GOOD).write("etc/on.service.toml", install(""));
    tiers.write("etc/off.service.toml", install("Enabled = false\n"));
    tiers.write("etc/marked-off.service.toml", install("")).write("control/marked-off.service.disabled", "");
    tiers.write("etc/marked-on.service.toml", install("Enabled = false\n"));
    tiers.write("control/marked-on.service.enabled", "");
    let report = tiers.load();
    let enabled: Vec<(&str, bool)> = ["plain", "on", "off", "marked-off", "marked-on"]
        .map(|n| (n, unit(&report, &format!("{n}.service")).enabled))
        .into();
    assert_eq!(
        enabled,
        [("plain", false), ("on", true), ("off", false), ("marked-off", false), ("marked-on", true)]
    );
}

#[test]
fn instances_are_made_for_those_who_name_them_and_are_not_enabled_by_that() {
    let tiers = Tiers::new();
    let template = "[Unit]\nDescription = \"worker %i\"\n[Service]\nExecStart = [\"/bin/w\", \"%i\"]\n[Install]\nWantedBy = \"multi-user.target\"\n";
    tiers.write("etc/w@.service.toml", template);
    tiers.write("etc/a.service.toml", format!("[Unit]\nWants = [\"w@one.service\"]\n{GOOD}"));
    tiers.link("etc/w@two.service.toml", "w@.service.toml");
    let report = tiers.load();
    let one = unit(&report, "w@one.service");
    assert_eq!(one.description(), "worker one");
    assert_eq!(one.as_service().expect("a service").service.exec_start[0].argv, ["/bin/w", "one"]);
    assert!(!one.enabled);
    assert!(unit(&report, "w@two.service").enabled);
    assert!(report.set.get(&name("w@.service")).is_none());
    assert_eq!(report.templates, [name("w@.service")]);
    let three = tiers.loader().instantiate(&name("w@three.service"), &OpenGate).expect("an instance");
    assert_eq!(three.description(), "worker three");
    assert!(tiers.loader().instantiate(&name("v@1.service"), &OpenGate).is_none());
}

#[test]
fn templates_that_name_each_other_without_end_come_to_an_end() {
    let tiers = Tiers::new();
    tiers.write(
        "etc/w@.service.toml",
        format!("[Unit]\nWants = [\"w@%ia.service\", \"w@%ib.service\"]\n{GOOD}"),
    );
    tiers.write("etc/a.service.toml", format!("[Unit]\nWants = \"w@x.service\"\n{GOOD}"));
    let report = tiers.load();
    assert!(report.set.len() < 5000);
    assert!(
        report.problems.iter().any(|p| p.message.contains("more than 4096 instances")),
        "{:?}",
        report.problems
    );
}

#[test]
fn folders_of_links_add_edges_to_their_owner() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("usr/b.target.toml", "[Unit]\nDescription = \"b\"\n");
    tiers.link("etc/b.target.wants/a.service.toml", "../a.service.toml");
    tiers.link("etc/b.target.requires/c.service", "/nowhere/c.service");
    tiers
        .link("usr/b.target.wants/d.service", "../d.service.toml")
        .link("etc/b.target.wants/d.service", "/dev/null");
    tiers.link("etc/multi-user.target.wants/a.service.toml", "../a.service.toml");
    tiers.link("etc/nobody.target.wants/a.service.toml", "../a.service.toml");
    let report = tiers.load();
    let b = &unit(&report, "b.target").unit;
    assert_eq!(b.wants.iter().collect::<Vec<_>>(), [&name("a.service")]);
    assert_eq!(b.requires.iter().collect::<Vec<_>>(), [&name("c.service")]);
    assert!(unit(&report, "multi-user.target").unit.wants.contains("a.service"));
    assert!(report.problems.iter().any(|p| p.to_string().contains("there is no unit nobody.target")));
}

#[test]
fn a_service_with_a_timer_of_its_own_is_started_by_the_clock() {
    let tiers = Tiers::new();
    let text = format!(
        "{GOOD}[Timer]\nOnUnitActiveSec = \"5min\"\nOnBootSec = 10\n[Install]\nWantedBy = \"timers.target\"\n"
    );
    tiers.write("etc/a.service.toml", &text).write("etc/b.service.toml", &text);
    tiers.write("etc/b.timer.toml", "[Timer]\nOnBootSec = 1\n");
    let report = tiers.load();
    let (service, timer) = (unit(&report, "a.service"), unit(&report, "a.timer"));
    assert!(!service.enabled && !service.install.present);
    assert!(timer.enabled && timer.install.wanted_by.contains("timers.target"));
    let runtime_max = service.as_service().expect("a service").service.runtime_max;
    assert_eq!(runtime_max, Some(std::time::Duration::from_secs(30)));
    assert!(reason(&report, "b.timer").contains("there are two definitions of b.timer"));
    assert_eq!(unit(&report, "b.service").load, LoadState::Loaded);
}

#[test]
fn a_built_in_default_target_wants_the_targets_of_enabled_units() {
    let install = |target: &str| format!("{GOOD}[Install]\nWantedBy = \"{target}\"\n");
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", install("multi-user.target"));
    tiers.write("etc/b.service.toml", install("extra.target"));
    tiers.write("etc/c.service.toml", install("rescue.target"));
    let report = tiers.load();
    let wants: Vec<&str> = unit(&report, "default.target").unit.wants.iter().map(UnitName::as_str).collect();
    assert_eq!(wants, ["extra.target", "multi-user.target"]);
    for target in ["basic.target", "sysinit.target", "shutdown.target", "timers.target", "sockets.target"] {
        assert_eq!(unit(&report, target).load, LoadState::Loaded, "{target}");
    }
    tiers.write("etc/default.target.toml", "[Unit]\nWants = \"mine.target\"\n");
    assert!(unit(&tiers.load(), "default.target").unit.wants.contains("mine.target"));
}

/// A gate that lets `good` texts in and notes what it was shown.
struct Notes(std::sync::Mutex<Vec<String>>);

impl Gate for Notes {
    fn admit(&self, files: &UnitFiles<'_>) -> Admission {
        for file in files.files {
            let shown = format!("{} {} {}", files.unit, file.name, file.bytes.len());
            self.0.lock().map(|mut notes| notes.push(shown)).unwrap_or_default();
        }
        match files.signature {
            None => Admission::Refused("not signed".to_owned()),
            Some(bytes) if bytes.starts_with(b"old") => Admission::Warned("an old key".to_owned()),
            Some(_) => Admission::Admitted,
        }
    }
}

#[test]
fn the_gate_sees_every_byte_before_it_is_parsed() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("etc/a.service.toml.sig", "new");
    tiers.write("usr/a.service.d/10.toml", "[Service]\nUser = \"www\"\n");
    tiers.write("control/a.service.d/50.toml", "[Service]\nTasksMax = 7\n");
    tiers.write("etc/b.service.toml", "this is not even TOML");
    tiers.write("etc/c.service.toml", GOOD).write("etc/c.service.toml.sig", "old");
    let gate = Notes(std::sync::Mutex::default());
    let report = tiers.loader().load(&gate);
    assert_eq!(unit(&report, "a.service").load, LoadState::Loaded);
    assert_eq!(unit(&report, "a.service").signature.as_deref(), Some(&b"new"[..]));
    assert_eq!(unit(&report, "b.service").load, LoadState::Error("not signed".to_owned()));
    assert_eq!(unit(&report, "c.service").warnings, ["an old key"]);
    assert_eq!(
        *gate.0.lock().unwrap(),
        [
            "a.service a.service.toml 36",
            "a.service a.service.d/10.toml 23",
            "b.service b.service.toml 21",
            "c.service c.service.toml 36",
        ]
    );
}

#[test]
fn names_that_are_no_units_are_told_and_hide_nothing() {
    let tiers = Tiers::new();
    tiers.write("etc/good.service.toml", GOOD).write("etc/README.md", "hello").write("etc/x.mount.toml", "");
    tiers.write("etc/we ird.service.toml", GOOD).write("etc/good.service.toml.d/10.toml", "");
    let strange = tiers.path("etc").join(std::ffi::OsStr::from_bytes(b"\xff.service.toml"));
    fs::write(strange, GOOD).expect("a file of a strange name");
    let report = tiers.load();
    assert_eq!(unit(&report, "good.service").load, LoadState::Loaded);
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    for expected in
        ["'x.mount' has no type", "has the character ' '", "no UTF-8", "drop-ins of good.service lie in"]
    {
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
    }
    assert!(!problems.iter().any(|problem| problem.contains("README")));
}

#[test]
fn install_gives_an_enabled_unit_its_aliases_and_takes_none_from_others() {
    let install = |alias: &str, more: &str| format!("{GOOD}[Install]\nAlias = \"{alias}\"\n{more}");
    let tiers = Tiers::new();
    tiers
        .write("etc/a.service.toml", install("x.service", ""))
        .write("etc/b.service.toml", install("x.service", ""));
    tiers.write("etc/c.service.toml", install("a.service", ""));
    tiers.write("etc/d.service.toml", install("y.service", "Enabled = false\n"));
    let report = tiers.load();
    assert_eq!(unit(&report, "x.service").name, name("a.service"));
    assert_eq!(unit(&report, "a.service").name, name("a.service"));
    assert!(report.set.get(&name("y.service")).is_none(), "a disabled unit has no alias");
    for (loser, text) in
        [("b.service", "x.service is already a name of a.service"), ("c.service", "a.service is already")]
    {
        assert!(unit(&report, loser).warnings[0].contains(text), "{loser}");
    }
}

#[test]
fn drop_ins_of_a_timer_that_comes_from_a_service_are_told() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", format!("{GOOD}[Timer]\nOnBootSec = 1\n"));
    tiers.write("etc/a.timer.d/x.toml", "[Timer]\nOnBootSec = 2\n");
    let report = tiers.load();
    let told = report.problems.iter().any(|p| p.message.contains("write [Timer] into a.service.d"));
    assert!(told, "{:?}", report.problems);
}

#[test]
fn one_unit_is_loaded_by_any_of_its_names() {
    let tiers = Tiers::new();
    tiers.write("usr/real.service.toml", GOOD).link("etc/alias.service.toml", "../usr/real.service.toml");
    tiers.write("etc/clock.service.toml", format!("{GOOD}[Timer]\nOnBootSec = 1\n"));
    let loader = tiers.loader();
    for (asked, id) in
        [("real.service", "real.service"), ("alias.service", "real.service"), ("clock.timer", "clock.timer")]
    {
        let unit = loader.load_unit(&name(asked), &OpenGate);
        assert_eq!((unit.name, unit.load), (name(id), LoadState::Loaded), "{asked}");
    }
    assert_eq!(loader.load_unit(&name("nobody.service"), &OpenGate).load, LoadState::NotFound);
}

#[test]
fn a_timer_of_a_service_that_stays_active_is_warned_of() {
    let tiers = Tiers::new();
    tiers.write(
        "etc/a.service.toml",
        "[Service]\nType = \"oneshot\"\nRemainAfterExit = true\nExecStart = \"/bin/true\"\n",
    );
    tiers
        .write("etc/a.timer.toml", "[Timer]\nOnUnitActiveSec = 5\n")
        .write("etc/b.timer.toml", "[Timer]\nOnBootSec = 5\nUnit = \"a.service\"\n");
    let report = tiers.load();
    assert!(unit(&report, "a.timer").warnings[0].contains("starts it once only"));
    assert!(unit(&report, "b.timer").warnings.is_empty());
}

#[test]
fn instances_of_one_template_share_its_text() {
    let tiers = Tiers::new();
    tiers.write("etc/a@.service.toml", "[Service]\nExecStart = [\"/bin/a\", \"%i\"]\n");
    tiers.write("etc/b.target.toml", "[Unit]\nWants = [\"a@1.service\", \"a@2.service\"]\n");
    let report = tiers.load();
    let text = |name: &str| unit(&report, name).sources[0].text().as_ptr();
    assert_eq!(
        text("a@1.service"),
        text("a@2.service"),
        "a thousand instances do not hold a thousand copies"
    );
}
