//! Units made again without their files.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

mod tiers;

use std::fs;

use agentd_unit::{Admission, Gate, LoadState, OpenGate, Remembered, Unit, UnitFiles};
use tiers::{GOOD, Tiers, unit};

const ALL: [&str; 8] = [
    "plain.service",
    "web@1.service",
    "clock.service",
    "clock.timer",
    "old.service",
    "lone.socket",
    "app.slice",
    "hung.slice",
];

fn world() -> Tiers {
    let tiers = Tiers::new();
    tiers.write("etc/plain.service.toml", GOOD).write("etc/web@.service.toml", GOOD);
    tiers.write("etc/plain.service.d/10.toml", "[Service]\nEnvironment = [\"A=%n\"]\n");
    tiers.write("control/plain.service.d/50.toml", "[Service]\nMemoryMax = \"64M\"\n");
    tiers.link("etc/other.service.toml", "plain.service.toml");
    tiers.write("etc/wants.target.toml", "[Unit]\nWants = [\"web@1.service\"]\n");
    tiers.write(
        "usr/clock.service.toml",
        "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\n[Timer]\nOnActiveSec = \"1h\"\n[Install]\nWantedBy = [\"timers.target\"]\n",
    );
    tiers.write(
        "usr/old.service",
        "[Unit]\nDescription=Of the\\\n  old kind\n[Service]\nExecStart=/bin/sh -c \"a b\"\n",
    );
    tiers.write(
        "usr/old.service.d/x.conf",
        "[Service]\nExecStart=\nExecStart=/bin/true %i\nSlice=app.slice\n",
    );
    tiers.write("usr/lone.socket", "[Socket]\nListenStream=/run/lone\nService=plain.service\n");
    tiers.write("etc/app.slice.toml", "[Slice]\nTasksMax = 7\n");
    tiers.write("etc/hung.slice.d/1.toml", "[Slice]\nTasksMax = 9\n");
    tiers.write(
        "etc/wants-hung.service.toml",
        "[Service]\nExecStart = [\"/bin/true\"]\nSlice = \"hung.slice\"\n",
    );
    tiers
}

#[test]
fn a_unit_is_made_again_as_it_was_without_its_files() {
    let tiers = world();
    let (report, loader) = (tiers.load(), tiers.loader());
    let units: Vec<Unit> = ALL.iter().map(|name| unit(&report, name).clone()).collect();
    for folder in ["control", "etc", "usr"] {
        fs::remove_dir_all(tiers.path(folder)).expect("the folder goes");
    }
    assert!(
        unit(&report, "plain.service").sources.len() == 3
            && !unit(&report, "plain.service").aliases.is_empty()
    );
    for unit in units {
        assert_eq!(unit.load, LoadState::Loaded, "{}", unit.name);
        let of = Remembered::of(&unit).expect("it has files");
        assert_eq!(loader.remember(of, &OpenGate), unit);
    }
    for name in ["default.target", "system.slice"] {
        let unit = report.set.get(&tiers::name(name)).map(|unit| Remembered::of(unit));
        assert_eq!(unit.flatten(), None, "no file tells of {name}");
    }
}

/// Lets in what has a drop-in.
struct Picky;

impl Gate for Picky {
    fn admit(&self, files: &UnitFiles<'_>) -> Admission {
        match files.files {
            [main, drop_in]
                if (main.name, drop_in.name) == ("plain.service.toml", "plain.service.d/10.toml") =>
            {
                Admission::Admitted
            }
            _ => Admission::Refused("not that".into()),
        }
    }
}

#[test]
fn the_gate_sees_what_is_made_again() {
    let tiers = world();
    let (report, loader) = (tiers.load(), tiers.loader());
    let load = |name: &str| {
        let of = Remembered::of(unit(&report, name)).expect("it has files");
        loader.remember(of, &Picky).load
    };
    assert_eq!(load("plain.service"), LoadState::Loaded);
    assert_eq!(load("old.service"), LoadState::Error("not that".into()));
    assert_eq!(load("clock.timer"), LoadState::NotFound);
}
