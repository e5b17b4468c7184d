//! The descriptors that a main process finds open from 3 on: sd_listen_fds(3).
//!
//! One list for all that is passed: first what sockets hand over, then what the service itself has stored. Whatever
//! else is passed (a module) comes behind these.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use agentd_engine::{Spawn, SpawnFailure};
use agentd_unit::ExecKind;
use agentd_unit::sections::ServiceSection;

use super::open_file;
use super::plan::resources;
use super::sockets::Named;
use crate::world::World;

/// The number of the first one, `SD_LISTEN_FDS_START`.
pub const FIRST: usize = 3;

/// Descriptors with their names, in the order in which they are passed.
#[derive(Debug, Default)]
pub struct Passed {
    names: Vec<String>,
    fds: Vec<OwnedFd>,
}

impl Passed {
    /// What a command gets: its sockets, and a main process what its unit has stored and what is opened for it.
    ///
    /// # Errors
    /// No descriptor left; a file cannot be opened.
    pub fn collect(
        world: &World,
        spawn: &Spawn,
        service: &ServiceSection,
        sockets: Vec<Named>,
    ) -> Result<Self, SpawnFailure> {
        let (names, fds) = sockets.into_iter().unzip();
        let mut passed = Self { names, fds };
        if spawn.kind == ExecKind::Start {
            for (name, fd) in world.stores.of(&spawn.unit.name) {
                passed.push(name, fd)?;
            }
            for (name, fd) in open_file::open_all(&service.life.open_files)? {
                passed.names.push(name);
                passed.fds.push(fd);
            }
        }
        Ok(passed)
    }

    /// Adds a copy of a descriptor under a name, which `LISTEN_FDNAMES` tells.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn push(&mut self, name: &str, fd: BorrowedFd<'_>) -> Result<(), SpawnFailure> {
        let copy = fd.try_clone_to_owned();
        self.fds.push(copy.map_err(|e| resources(format!("the descriptor '{name}' cannot be passed: {e}")))?);
        self.names.push(name.to_owned());
        Ok(())
    }

    /// The first one of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<BorrowedFd<'_>> {
        let place = self.names.iter().position(|known| known == name)?;
        self.fds.get(place).map(AsFd::as_fd)
    }

    /// Tells the process of them; whether there is something to tell, and `LISTEN_PID` with it.
    pub fn describe(&self, env: &mut BTreeMap<String, String>) -> bool {
        if self.fds.is_empty() {
            return false;
        }
        env.insert("LISTEN_FDS".into(), self.fds.len().to_string());
        env.insert("LISTEN_FDNAMES".into(), self.names.join(":"));
        true
    }

    /// The number that the next descriptor behind these gets.
    #[must_use]
    pub fn next(&self) -> usize {
        FIRST + self.fds.len()
    }

    /// Adds one that is not told of by `LISTEN_FDS`, behind all others.
    #[must_use]
    pub fn into_fds(mut self, behind: Option<OwnedFd>) -> Vec<OwnedFd> {
        self.fds.extend(behind);
        self.fds
    }
}
