//! When each persistent timer last fired: one small file a timer, named as the timer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agentd_unit::{Realtime, UnitName};

use crate::atomic::{self, write_atomic};
use crate::dir::{self, Loaded, Problem, ProblemKind, StateError};
use crate::record;

const KIND: &str = "stamp";
const CONSEQUENCE: &str = "the timer counts as never fired";

#[derive(Debug)]
pub(crate) struct Stamps {
    folder: PathBuf,
    /// As on the disk.
    known: Mutex<BTreeMap<UnitName, Realtime>>,
}

impl Stamps {
    pub(crate) fn open(folder: &Path, problems: &mut Vec<Problem>) -> Result<Self, StateError> {
        dir::create(folder)?;
        atomic::remove_temporaries(folder).map_err(StateError::at("clean up", folder))?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(StateError::at("read", folder))? {
            let path = entry.map_err(StateError::at("read", folder))?.path();
            if let Some((timer, at)) = load(&path, problems)? {
                known.insert(timer, at);
            }
        }
        Ok(Self { folder: folder.to_owned(), known: Mutex::new(known) })
    }

    pub(crate) fn all(&self) -> BTreeMap<UnitName, Realtime> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn save(&self, timer: &UnitName, at: Realtime) -> Result<(), StateError> {
        // Held over the write, so that the file and the map never tell different orders of two saves.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(timer.as_str());
        let content = record::encode(KIND, timer.as_str(), &at.as_micros().to_string());
        write_atomic(&path, &content, 0o600).map_err(StateError::at("write", &path))?;
        known.insert(timer.clone(), at);
        Ok(())
    }
}

fn load(path: &Path, problems: &mut Vec<Problem>) -> Result<Option<(UnitName, Realtime)>, StateError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('#') {
        // Moved aside by an earlier open, which reported it.
        return Ok(None);
    }
    let Ok(timer) = UnitName::parse(&name) else {
        problems.push(Problem { path: path.to_owned(), kind: ProblemKind::Foreign });
        return Ok(None);
    };
    let Loaded::Value(value) = dir::load(path, KIND, &name, CONSEQUENCE, problems)? else {
        return Ok(None);
    };
    match value.parse() {
        Ok(micros) => Ok(Some((timer, Realtime(micros)))),
        Err(_) => {
            dir::set_aside(path, "its value is no number", CONSEQUENCE, problems)?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StateDir;
    use crate::testing::TempDir;

    fn timer(name: &str) -> UnitName {
        UnitName::parse(name).unwrap()
    }

    #[test]
    fn a_stamp_survives_the_manager() {
        let dir = TempDir::new();
        let (state, _) = StateDir::open(dir.path()).unwrap();
        state.save_stamp(&timer("a.timer"), Realtime(5)).unwrap();
        state.save_stamp(&timer("a.timer"), Realtime(-7)).unwrap();
        state.save_stamp(&timer("b@x.timer"), Realtime(9)).unwrap();
        let (again, problems) = StateDir::open(dir.path()).unwrap();
        let expected = BTreeMap::from([(timer("a.timer"), Realtime(-7)), (timer("b@x.timer"), Realtime(9))]);
        assert_eq!(again.stamps(), expected);
        assert_eq!(state.stamps(), expected);
        assert!(problems.is_empty());
    }

    #[test]
    fn the_longest_unit_name_has_a_stamp() {
        let dir = TempDir::new();
        let (state, _) = StateDir::open(dir.path()).unwrap();
        let longest = timer(&format!("{}.timer", "x".repeat(249)));
        state.save_stamp(&longest, Realtime(1)).unwrap();
        assert_eq!(StateDir::open(dir.path()).unwrap().0.stamps().get(&longest), Some(&Realtime(1)));
    }

    #[test]
    fn a_damaged_stamp_is_moved_aside_and_told_and_the_others_stay() {
        let dir = TempDir::new();
        let (state, _) = StateDir::open(dir.path()).unwrap();
        state.save_stamp(&timer("a.timer"), Realtime(5)).unwrap();
        state.save_stamp(&timer("b.timer"), Realtime(6)).unwrap();
        let file = dir.path().join("stamps/a.timer");
        fs::write(&file, b"").unwrap();

        let (state, problems) = StateDir::open(dir.path()).unwrap();
        assert_eq!(state.stamps(), BTreeMap::from([(timer("b.timer"), Realtime(6))]));
        let [Problem { path, kind: ProblemKind::Damaged { moved_to, .. } }] = &problems[..] else {
            panic!("{problems:?}");
        };
        assert_eq!((path, fs::read(moved_to).unwrap()), (&file, Vec::new()));

        let (_, problems) = StateDir::open(dir.path()).unwrap();
        assert!(problems.is_empty(), "told once: {problems:?}");
    }

    #[test]
    fn a_foreign_file_is_told_and_left_alone() {
        let dir = TempDir::new();
        StateDir::open(dir.path()).unwrap();
        fs::write(dir.path().join("stamps/notes.txt"), b"mine").unwrap();
        let (_, problems) = StateDir::open(dir.path()).unwrap();
        assert!(matches!(&problems[..], [Problem { kind: ProblemKind::Foreign, .. }]), "{problems:?}");
        assert!(dir.path().join("stamps/notes.txt").exists());
    }
}
