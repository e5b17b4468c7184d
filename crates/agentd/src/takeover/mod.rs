//! Agents that outlive their manager: what is kept for the next one, and how it goes on with that.
//!
//! - [`record`] is what is kept of one unit, as bytes; `past` is the part of it that its lives before have left.
//! - [`table`] is where: a file of fixed places in the runtime folder, one write for each unit that comes up or goes down.
//! - [`crate::perform::takeover`] finds what the kernel still has of a run: its cgroup, its process, its pipe.
//! - [`crate::watch::mains`] watches main processes that are no children of ours, whose end nothing else tells us.
//! - [`reexec`] is a manager that becomes its successor, with its sockets; [`handover`] is what it holds for units,
//!   [`definition`] what they live by, and [`lines`] what they have begun to say.
//!
//! # Invariants
//! - A process counts as a unit's only if it is older than the record and lives in the unit's cgroup or names its run.
//! - What is not taken over is ended before anything of its name is started.

pub mod definition;
pub mod handover;
pub mod lines;
mod past;
pub mod record;
pub mod reexec;
pub mod table;

use std::collections::BTreeMap;
use std::path::Path;

use agentd_engine::{Boottime, InvocationId, Life, Memo};
use agentd_unit::UnitName;

use crate::perform::runs::Runs;
use record::Record;
use table::Table;

/// What is kept for the next manager, and what the one before has kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// None where it cannot be written: then the next manager finds nothing.
    table: Option<Table>,
    /// The runs that are not over and hold more than a cgroup, in whatever state their units are.
    begun: Option<Table>,
    /// Those of the manager before.
    begun_before: Vec<Record>,
    /// Of the manager before, what nobody has asked for yet.
    before: BTreeMap<UnitName, Record>,
    born: Option<Boottime>,
}

impl Kept {
    /// Reads what a manager before has kept in the runtime folder, and goes on keeping there. To be called with the
    /// folder's lock held. `handed` is what a manager has handed to its successor, which holds over what the table says.
    #[must_use]
    pub fn open(runtime: &Path, now: Boottime, handed: Vec<Record>) -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let open = |name| Table::open(&runtime.join(name), boot.trim(), now);
        match open("units.table").and_then(|units| Ok((units, open("runs.table")?))) {
            Ok(((table, found), (begun, runs))) => {
                let all = found.records.into_iter().chain(handed);
                let before = all.map(|record| (record.memo.unit.clone(), record)).collect();
                let begun_before = runs.records;
                Self { table: Some(table), begun: Some(begun), begun_before, before, born: found.born }
            }
            Err(error) => {
                let path = runtime.display();
                tracing::warn!(%error, "what runs cannot be kept in {path}: should this manager be killed, its agents end");
                Self::default()
            }
        }
    }

    /// Whether the manager before had a process of this unit running, or had let one live on.
    #[must_use]
    pub fn has_process(&self, unit: &str) -> bool {
        let record = UnitName::parse(unit).ok().and_then(|unit| self.before.get(&unit));
        record.is_some_and(|record| record.memo.run().is_some())
    }

    /// What the engine is to go on with, and when the first manager of this boot began.
    #[must_use]
    pub fn memos(&self) -> (Vec<Memo>, Option<Boottime>) {
        let processes =
            self.before.values().filter(|record| matches!(record.memo.life, Life::Up { .. })).count();
        if processes > 0 {
            tracing::info!("going on with {processes} services of the manager before");
        }
        (self.before.values().map(|record| record.memo.clone()).collect(), self.born)
    }

    /// The services whose next start was due.
    #[must_use]
    pub fn waiting(&self) -> Vec<UnitName> {
        let waits = |record: &&Record| matches!(record.memo.life, Life::Waiting { .. });
        self.before.values().filter(waits).map(|record| record.memo.unit.clone()).collect()
    }

    /// Takes out what was kept of a unit.
    pub fn claim(&mut self, unit: &UnitName) -> Option<Record> {
        self.before.remove(unit)
    }

    /// Takes out what nobody has asked for, so that it can be ended.
    pub fn unclaimed(&mut self) -> Vec<Record> {
        let left = std::mem::take(&mut self.before);
        for unit in left.keys() {
            self.forget(unit);
        }
        left.into_values().filter(|record| record.memo.run().is_some()).collect()
    }

    /// The services, instances of templates too, of which the manager before had something running.
    #[must_use]
    pub fn instances(&self) -> Vec<UnitName> {
        self.before.keys().filter(|unit| unit.template().is_some()).cloned().collect()
    }

    /// Keeps what the engine says of a unit, or forgets it.
    pub fn keep(&mut self, unit: &UnitName, memo: Option<Box<Memo>>, runs: &Runs, now: Boottime) {
        let Some(memo) = memo else { return self.forget(unit) };
        self.before.remove(unit); // The engine goes on with it.
        let record = Record::of(*memo, runs, now);
        if let Some(Err(error)) = self.table.as_mut().map(|table| table.put(&record)) {
            self.give_up(&error);
        }
    }

    /// A run was begun of which more than a cgroup is there: should the manager be killed before its unit is up, the next
    /// one has to know of it.
    pub fn begin(&mut self, unit: &UnitName, run: InvocationId, slice: Option<String>, now: Boottime) {
        let record = Record { slice, ..Record::of(Memo::of_run(unit.clone(), run), &Runs::default(), now) };
        if let Some(Err(error)) = self.begun.as_mut().map(|begun| begun.put(&record)) {
            self.give_up(&error);
        }
    }

    /// The run of a unit is over.
    pub fn end(&mut self, unit: &UnitName) {
        if let Some(Err(error)) = self.begun.as_mut().map(|begun| begun.clear(unit)) {
            self.give_up(&error);
        }
    }

    /// Takes out the runs that the manager before had begun.
    pub fn begun_before(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.begun_before)
    }

    fn forget(&mut self, unit: &UnitName) {
        if let Some(Err(error)) = self.table.as_mut().map(|table| table.clear(unit)) {
            self.give_up(&error);
        }
    }

    fn give_up(&mut self, error: &std::io::Error) {
        tracing::error!(%error, "what runs cannot be kept any more: should this manager be killed, its agents end");
        (self.table, self.begun) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::record::tests::sample;
    use super::*;

    #[test]
    fn what_a_manager_goes_on_with_is_kept_for_the_one_after_it_too() {
        let folder = std::env::temp_dir().join(format!("agentd-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = || Kept::open(&folder, Boottime::default(), Vec::new());
        let keep = |kept: &mut Kept, unit: &str| {
            let memo = Memo { life: Life::Active, leftover: None, ..sample(unit).memo };
            kept.keep(&memo.unit.clone(), Some(Box::new(memo)), &Runs::default(), Boottime::default());
        };
        let mut first = open();
        keep(&mut first, "a.target");
        keep(&mut first, "gone.target");
        drop(first);
        let mut second = open();
        keep(&mut second, "a.target");
        assert!(second.unclaimed().is_empty());
        drop(second);
        let names: Vec<UnitName> = open().memos().0.into_iter().map(|memo| memo.unit).collect();
        assert_eq!(names, [UnitName::parse("a.target").unwrap()]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
