//! What the loader makes of what its door to the kernel says.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

mod tiers;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use agentd_unit::loader::{Door, Kind, OpenFolder, StandardDoor};
use agentd_unit::{LoadState, OpenGate, UnitName};
use tiers::{GOOD, Tiers, reason, unit};

/// `EACCES` of errno(3).
const DENIED: i32 = 13;

/// Opens all but one file and one folder.
#[derive(Debug)]
struct Closed;

impl Door for Closed {
    fn open(&self, folder: OpenFolder<'_>, name: &Path) -> io::Result<File> {
        if ["file.service.toml", "folder.service.d"].map(Path::new).contains(&name) {
            return Err(io::Error::from_raw_os_error(DENIED));
        }
        StandardDoor.open(folder, name)
    }

    fn list(&self, folder: OpenFolder<'_>, each: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()> {
        StandardDoor.list(folder, each)
    }
}

/// Reads no folder of this name, below or as a tier.
#[derive(Debug)]
struct Unlisted(&'static str);

impl Door for Unlisted {
    fn open(&self, folder: OpenFolder<'_>, name: &Path) -> io::Result<File> {
        StandardDoor.open(folder, name)
    }

    fn list(&self, folder: OpenFolder<'_>, each: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()> {
        match folder.path.ends_with(self.0) {
            true => Err(io::Error::from_raw_os_error(DENIED)),
            false => StandardDoor.list(folder, each),
        }
    }
}

#[test]
fn what_may_lie_in_a_tier_that_cannot_be_read_is_not_called_not_found() {
    let tiers = Tiers::new();
    tiers.write("usr/good.service.toml", GOOD);
    tiers.write("etc/web@.service.toml", GOOD);
    let loader = tiers.loader().through(&Unlisted("etc"));
    let name = |name: &str| UnitName::parse(name).expect("a name");
    let found = loader.find(&name("web@1.service"), &|_| false, &OpenGate);
    let alone = loader.load_unit(&name("web@1.service"), &OpenGate);
    let found = found.get(&name("web@1.service")).expect("a unit that says why");
    for unit in [found, &alone] {
        let LoadState::Error(why) = &unit.load else { panic!("{:?}", unit.load) };
        assert!(why.starts_with("nothing of this name was found, but /"), "{why}");
        assert!(why.ends_with("etc: cannot be read: Permission denied (os error 13)"), "{why}");
    }
    assert_eq!(loader.load_unit(&name("good.service"), &OpenGate).load, LoadState::Loaded);
    let all = tiers.loader();
    assert_eq!(all.load_unit(&name("no.service"), &OpenGate).load, LoadState::NotFound);
    assert!(all.find(&name("no.service"), &|_| false, &OpenGate).is_empty());
}

#[test]
fn a_folder_of_drop_ins_that_cannot_be_read_to_its_end_fails_its_unit() {
    let tiers = Tiers::new();
    tiers.write("usr/web.service.toml", GOOD);
    tiers.write("etc/web.service.d/10.toml", "[Service]\nMemoryMax = \"1G\"\n");
    let report = tiers.loader().through(&Unlisted("web.service.d")).load(&OpenGate);
    let why = reason(&report, "web.service");
    assert!(why.contains("the drop-ins in") && why.contains("web.service.d cannot be used"), "{why}");
}

#[test]
fn a_file_or_a_folder_of_drop_ins_that_cannot_be_opened_fails_its_unit_alone() {
    let tiers = Tiers::new();
    for unit in ["file", "folder", "good"] {
        tiers.write(&format!("usr/{unit}.service.toml"), GOOD);
        tiers.write(&format!("etc/{unit}.service.d/10.toml"), "[Service]\nMemoryMax = \"1G\"\n");
    }
    let report = tiers.loader().through(&Closed).load(&OpenGate);
    let good = unit(&report, "good.service");
    assert_eq!((&good.load, good.drop_ins.len()), (&LoadState::Loaded, 1));
    let why = reason(&report, "file.service");
    assert!(why.contains("usr/file.service.toml cannot be read: Permission denied"), "{why}");
    // What bounds it may be what cannot be read.
    let why = reason(&report, "folder.service");
    assert!(why.contains("the drop-ins in") && why.contains("etc/folder.service.d cannot be used"), "{why}");
    let told = report.problems.iter().find(|problem| problem.path.ends_with("etc/folder.service.d"));
    let told = told.map(ToString::to_string).unwrap_or_default();
    assert!(told.contains("cannot be read: Permission denied"), "{:?}", report.problems);
}
