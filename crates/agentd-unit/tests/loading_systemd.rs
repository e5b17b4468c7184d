//! Units in systemd's own syntax in the search path, beside those in TOML.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

mod tiers;

use std::path::Path;

use agentd_unit::{LoadState, UnitName};
use tiers::{GOOD, Tiers, name, reason, unit};

const RUN: &str = "[Service]\nExecStart=/bin/true\n";

#[test]
fn both_syntaxes_are_found_in_every_tier_and_the_higher_tier_wins() {
    let tiers = Tiers::new();
    tiers.write("usr/a.service.toml", GOOD).write("etc/a.service", RUN);
    tiers.write("usr/b.service", RUN).write("etc/b.service.toml", GOOD);
    tiers.write("usr/c.timer", "[Timer]\nOnBootSec=1\nUnit=a.service\n").write("usr/d.target", "[Unit]\n");
    tiers.write("usr/e.slice", "[Unit]\nDescription=E\n");
    let report = tiers.load();
    for (unit_name, file) in
        [("a.service", "etc/a.service"), ("b.service", "etc/b.service.toml"), ("c.timer", "usr/c.timer")]
    {
        let unit = unit(&report, unit_name);
        assert_eq!(unit.load, LoadState::Loaded, "{unit_name}");
        assert_eq!(unit.fragment, Some(tiers.path(file).into()), "{unit_name}");
        assert_eq!(unit.implicit_order, file.ends_with(".toml"), "{unit_name}");
    }
    assert_eq!(unit(&report, "d.target").load, LoadState::Loaded);
    assert_eq!(unit(&report, "e.slice").description(), "E");
    assert_eq!(report.problems, []);
}

#[test]
fn two_syntaxes_of_one_name_in_one_tier_are_an_error_also_for_templates() {
    let tiers = Tiers::new();
    tiers.write("etc/a.service.toml", GOOD).write("etc/a.service", RUN);
    tiers.write("etc/t@.service.toml", GOOD).write("etc/t@.service", RUN);
    tiers.write("etc/w.service.toml", "[Unit]\nWants = \"t@1.service\"\n[Service]\nExecStart = [\"/a\"]\n");
    let report = tiers.load();
    for name in ["a.service", "t@1.service"] {
        assert!(reason(&report, name).contains("several files of this name in one folder"), "{name}");
    }
}

#[test]
fn drop_ins_of_both_syntaxes_apply_by_name_and_a_mask_takes_either_away() {
    let tiers = Tiers::new();
    tiers.write("usr/a.service", RUN);
    tiers.write("usr/a.service.d/10.conf", "[Service]\nEnvironment=A=1\nRestartSec=1\n");
    tiers.write("usr/a.service.d/20.toml", "[Service]\nRestartSec = 2\n");
    tiers.write("usr/service.d/30.conf", "[Service]\nRestartSec=3\n");
    tiers
        .write("usr/a.service.d/40.conf", "[Service]\nRestartSec=4\n")
        .link("etc/a.service.d/40.conf", "/dev/null");
    let report = tiers.load();
    let a = unit(&report, "a.service");
    assert_eq!(a.load, LoadState::Loaded);
    let service = &a.as_service().expect("a service").service;
    assert_eq!(service.restart_sec.as_secs(), 3);
    assert_eq!(service.environment.len(), 1);
    assert_eq!(a.drop_ins.len(), 3);
}

#[test]
fn links_enable_a_unit_in_systemds_syntax_and_markers_decide_before_them() {
    let tiers = Tiers::new();
    let install = format!("{RUN}[Install]\nWantedBy=multi-user.target\n");
    for unit in ["linked", "unlinked", "marked", "struck"] {
        tiers.write(&format!("usr/{unit}.service"), &install);
    }
    tiers.write("usr/t@.service", &install);
    tiers.link("etc/multi-user.target.wants/linked.service", "/usr/linked.service");
    tiers.link("etc/multi-user.target.wants/struck.service", "/usr/struck.service");
    tiers.link("etc/multi-user.target.wants/t@1.service", "/usr/t@.service");
    tiers.write("control/marked.service.enabled", "").write("control/struck.service.disabled", "");
    let report = tiers.load();
    for (unit_name, enabled) in [
        ("linked.service", true),
        ("unlinked.service", false),
        ("marked.service", true),
        ("struck.service", false),
        ("t@1.service", true),
    ] {
        assert_eq!(unit(&report, unit_name).enabled, enabled, "{unit_name}");
    }
    let target = unit(&report, "multi-user.target");
    assert!(target.unit.wants.contains(&name("linked.service")));
}

#[test]
fn masks_aliases_and_instances_are_the_same_in_both_syntaxes() {
    let tiers = Tiers::new();
    tiers.write("usr/real.service", RUN).link("usr/alias.service", "real.service");
    tiers.write("etc/real.service.toml", "[Service]\nExecStart = [\"/bin/admin\"]\n");
    tiers.write("usr/masked.service", RUN).link("etc/masked.service", "/dev/null");
    tiers.write("usr/empty.service", "");
    tiers.write(
        "usr/t@.service",
        "[Unit]\nDescription=%i\n[Service]\nExecStart=/bin/t\n[Install]\nAlias=u@.service\n",
    );
    tiers.write("etc/t@x.service.toml", "[Service]\nExecStart = [\"/bin/x\"]\n");
    tiers.link("etc/multi-user.target.wants/t@y.service", "/usr/t@.service");
    let report = tiers.load();
    let program = |unit_name: &str| {
        let body = unit(&report, unit_name).as_service().cloned().unwrap_or_default();
        body.service.exec_start.first().map(|command| command.program.clone()).unwrap_or_default()
    };
    assert_eq!(program("real.service"), "/bin/admin");
    assert_eq!(unit(&report, "real.service").aliases, [name("alias.service")]);
    assert_eq!(unit(&report, "masked.service").load, LoadState::Masked);
    assert_eq!(unit(&report, "empty.service").load, LoadState::Masked);
    assert_eq!((program("t@x.service"), program("t@y.service")), ("/bin/x".into(), "/bin/t".into()));
    assert_eq!(unit(&report, "t@y.service").description(), "y");
    assert_eq!(unit(&report, "t@y.service").aliases, [name("u@y.service")], "an instance's own alias");
}

#[test]
fn a_file_of_a_type_that_agentd_has_not_is_told() {
    let tiers = Tiers::new();
    tiers.write("usr/data.mount", "[Mount]\nWhat=/dev/a\n").write("usr/README", "");
    let report = tiers.load();
    let told: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("data.mount: is not used: agentd has no mount units"), "{told:?}");
    let of_file = UnitName::of_file(Path::new("/x/web.service")).expect("a unit's file");
    assert_eq!(of_file, name("web.service"));
}

#[test]
fn what_is_no_file_or_too_large_is_an_error_of_that_unit_alone_in_bounded_time() {
    let tiers = Tiers::new();
    tiers.write("usr/good.service", RUN).write("usr/other.service", RUN);
    tiers.link("usr/loop.service", "loop.service");
    tiers.link("usr/c.service", "d.service").link("usr/d.service", "c.service");
    tiers.link("usr/zero.service", "/dev/zero").link("usr/missing.service", "nothing.service");
    std::fs::create_dir(tiers.path("usr/folder.service")).expect("a folder");
    let fifo = std::process::Command::new("mkfifo").arg(tiers.path("usr/fifo.service")).status();
    assert!(fifo.expect("mkfifo runs").success());
    // 100 MB without a block on the disk.
    for file in ["usr/big.service", "usr/other.service.d/big.conf"] {
        std::fs::create_dir_all(tiers.path("usr/other.service.d")).expect("a folder for the drop-in");
        let sparse = std::fs::File::create(tiers.path(file)).expect("a large file");
        sparse.set_len(100 << 20).expect("a sparse file");
    }
    let begin = std::time::Instant::now();
    let report = tiers.load();
    assert!(begin.elapsed().as_secs() < 5, "nothing blocks and nothing large is read");
    assert_eq!(unit(&report, "good.service").load, LoadState::Loaded);
    for (name, why) in [
        ("loop.service", "links to itself"),
        ("c.service", "leads in a circle"),
        ("zero.service", "links to /dev/zero, outside of the search path"),
        ("missing.service", "links to nothing.service, which no search path has"),
        ("folder.service", "is a folder, not a file"),
        ("fifo.service", "is a FIFO, not a file"),
        ("big.service", "is larger than 1 MiB"),
        ("other.service", "big.conf is larger than 1 MiB"),
    ] {
        let reason = reason(&report, name);
        assert!(reason.contains(why), "{name}: {reason}");
    }
}
