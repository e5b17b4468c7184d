//! Folders with unit files for the loader.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use agentd_unit::search_path::{Tier, TierKind};
use agentd_unit::{
    LoadReport, LoadState, Loader, LoaderConfig, LocalZone, OpenGate, Scope, SearchPath, SpecifierContext,
    Trusted, Unit, UnitName,
};

/// Three tiers in a folder of their own, which goes with them.
pub(crate) struct Tiers {
    pub(crate) root: PathBuf,
}

pub(crate) const GOOD: &str = "[Service]\nExecStart = [\"/bin/true\"]\n";

impl Tiers {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("agentd-unit-{}-{number}", std::process::id()));
        for tier in ["control", "etc", "usr"] {
            fs::create_dir_all(root.join(tier)).expect("a folder for the test");
        }
        Self { root: root.canonicalize().expect("the folder that was just made") }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    pub(crate) fn write(&self, file: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a path in a tier")).expect("a folder for the file");
        fs::write(path, text).expect("a file for the test");
        self
    }

    pub(crate) fn link(&self, file: &str, target: impl AsRef<Path>) -> &Self {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a path in a tier")).expect("a folder for the link");
        symlink(target, path).expect("a link for the test");
        self
    }

    pub(crate) fn loader(&self) -> Loader {
        let tier = |name: &str, kind| Tier { path: self.path(name), kind };
        let tiers = vec![
            tier("control", TierKind::Control),
            tier("etc", TierKind::Units),
            tier("usr", TierKind::Units),
        ];
        // The tests may run as anybody: whoever owns the folder they made is trusted.
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&self.root).expect("the folder"));
        Loader::new(LoaderConfig {
            search: SearchPath { tiers },
            scope: Scope::System,
            trusted: Trusted(vec![0, owner]),
            specifiers: SpecifierContext::system(),
            zone: LocalZone::utc(),
        })
    }

    pub(crate) fn load(&self) -> LoadReport {
        self.loader().load(&OpenGate)
    }
}

impl Drop for Tiers {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.root).expect("the test's folder can be taken away");
    }
}

pub(crate) fn name(text: &str) -> UnitName {
    UnitName::parse(text).expect("a unit's name")
}

pub(crate) fn unit<'a>(report: &'a LoadReport, text: &str) -> &'a Unit {
    report.set.get(&name(text)).unwrap_or_else(|| panic!("{text} is not in the set: {:?}", report.problems))
}

pub(crate) fn reason(report: &LoadReport, text: &str) -> String {
    match &unit(report, text).load {
        LoadState::Error(reason) | LoadState::BadSetting(reason) => reason.clone(),
        state => panic!("{text} is {state}"),
    }
}
