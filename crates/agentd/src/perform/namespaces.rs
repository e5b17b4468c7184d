//! Namespaces and temporary folders that several commands or several units have: `NetworkNamespacePath`,
//! `IPCNamespacePath`, `JoinsNamespaceOf`.
//!
//! # Invariants
//!
//! - What the commands of one run have in common is there before the first of them, and as long as the run.
//! - Who joins another has a descriptor of its own: the other may go first.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use agentd_engine::{InvocationId, SpawnFailure};
use agentd_linux::spawn::{Joined, ipc_of_its_own, network_of_its_own};
use agentd_unit::sections::ServiceSection;
use agentd_unit::{Unit, UnitName};

use super::plan::step;
use super::runs::{Run, has_one_command};
use super::temporary;
use crate::takeover::handover::{Handover, Item, Kind};
use crate::world::World;

const EXIT_NETWORK: u8 = 225;
const EXIT_NAMESPACE: u8 = 226;

/// What all commands of a run enter.
#[derive(Debug, Default)]
pub struct Common {
    network: Option<OwnedFd>,
    ipc: Option<OwnedFd>,
}

impl Common {
    /// As a plan has it.
    #[must_use]
    pub fn joined(&self) -> Joined<'_> {
        Joined { network: self.network.as_ref().map(AsFd::as_fd), ipc: self.ipc.as_ref().map(AsFd::as_fd) }
    }

    /// What a successor goes on with.
    pub fn hand_on<'c>(&'c self, unit: &UnitName) -> impl Iterator<Item = (Item, Option<BorrowedFd<'c>>)> {
        let all = [(Kind::Network, &self.network), (Kind::Ipc, &self.ipc)];
        let unit = unit.clone();
        all.into_iter().filter_map(move |(kind, fd)| {
            Some((Item::Namespace { unit: unit.clone(), kind }, Some(fd.as_ref()?.as_fd())))
        })
    }

    /// What the manager before has handed on for a unit.
    pub fn inherit(held: &mut Handover<OwnedFd>, name: &UnitName) -> Self {
        let mut common = Self::default();
        let taken = held.take(|item, fd| match (item, fd) {
            (Item::Namespace { unit, kind }, Some(fd)) if unit == *name => Ok((kind, fd)),
            other => Err(other),
        });
        for (kind, fd) in taken {
            match kind {
                Kind::Network => common.network = Some(fd),
                Kind::Ipc => common.ipc = Some(fd),
            }
        }
        common
    }
}

/// Live runs whose namespaces a unit is to have: those that it names, in this order, and those that name it.
fn peers<'w>(world: &'w World, unit: &'w Unit) -> impl Iterator<Item = &'w Run> {
    let own = &unit.unit.system.joins_namespace_of;
    let named = own.iter().filter_map(|name| Some(world.runs.of_unit(name)?.1));
    let naming = world.runs.iter().map(|(_, run)| run);
    let names_it = |run: &&Run| run.unit.unit.system.joins_namespace_of.iter().any(|name| *name == unit.name);
    named.chain(naming.filter(names_it)).filter(|run| run.unit.name != unit.name)
}

/// Whether another unit has to do with its namespaces, now or later.
fn is_joined(world: &World, unit: &Unit) -> bool {
    let own = &unit.unit.system.joins_namespace_of;
    let names_it = |other: &Unit| other.unit.system.joins_namespace_of.iter().any(|name| *name == unit.name);
    own.iter().next().is_some() || world.loaded.iter().any(|other| names_it(other))
}

/// What the commands of a new run of a unit have in common.
///
/// # Errors
/// A file that is none of a namespace or not there; no namespace can be made for those that join it.
pub fn common(world: &World, unit: &Unit, service: &ServiceSection) -> Result<Common, SpawnFailure> {
    let sandbox = &service.sandbox;
    let network = Wanted {
        key: "PrivateNetwork",
        path: sandbox.network_path.as_deref(),
        path_key: "NetworkNamespacePath",
        exit_status: EXIT_NETWORK,
        private: sandbox.private_network,
        of: |common| common.network.as_ref(),
        has: |s| s.sandbox.private_network || s.sandbox.network_path.is_some(),
        file: "net",
        make: network_of_its_own,
    };
    let ipc = Wanted {
        key: "PrivateIPC",
        path: sandbox.ipc_path.as_deref(),
        path_key: "IPCNamespacePath",
        exit_status: EXIT_NAMESPACE,
        private: sandbox.private_ipc,
        of: |common| common.ipc.as_ref(),
        has: |s| s.sandbox.private_ipc || s.sandbox.ipc_path.is_some(),
        file: "ipc",
        make: ipc_of_its_own,
    };
    Ok(Common { network: network.find(world, unit)?, ipc: ipc.find(world, unit)? })
}

/// One kind of namespace.
struct Wanted<'w> {
    key: &'static str,
    path: Option<&'w Path>,
    path_key: &'static str,
    exit_status: u8,
    private: bool,
    of: fn(&Common) -> Option<&OwnedFd>,
    has: fn(&ServiceSection) -> bool,
    /// Its name below `/proc/PID/ns`.
    file: &'static str,
    make: fn() -> io::Result<OwnedFd>,
}

impl Wanted<'_> {
    /// What another run has: by its descriptor, else by its process, as one has it that nobody was to join when it began.
    fn theirs(&self, run: &Run) -> Option<io::Result<OwnedFd>> {
        if let Some(fd) = (self.of)(&run.common) {
            return Some(fd.try_clone());
        }
        let service = &run.unit.as_service()?.service;
        let pid = run.processes.values().next().filter(|_| (self.has)(service))?.pid;
        let file = |process: &str| format!("/proc/{process}/ns/{}", self.file);
        // A command with full privileges stays where the manager is.
        let is_ours = fs::read_link(file(&pid.to_string())).ok()? == fs::read_link(file("self")).ok()?;
        (!is_ours).then(|| File::open(file(&pid.to_string())).map(OwnedFd::from))
    }

    /// That of another unit, else that of the file, else one that is made for all its commands, where there are several of
    /// these or another unit may join it. Else each process makes its own.
    fn find(&self, world: &World, unit: &Unit) -> Result<Option<OwnedFd>, SpawnFailure> {
        if self.path.is_none() && !self.private {
            return Ok(None);
        }
        let failed = |key: &str, error: io::Error| step(self.exit_status, format!("{key}: {error}"));
        if let Some(theirs) = peers(world, unit).find_map(|run| self.theirs(run)) {
            return theirs.map(Some).map_err(|error| failed("JoinsNamespaceOf", error));
        }
        if let Some(path) = self.path {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{} cannot be opened: {error}", path.display()))
            };
            return File::open(path)
                .map(|file| Some(file.into()))
                .map_err(|error| failed(self.path_key, named(error)));
        }
        let is_joined = is_joined(world, unit);
        if !is_joined && has_one_command(unit) {
            return Ok(None);
        }
        match (self.make)() {
            Ok(fd) => Ok(Some(fd)),
            // A manager without privileges has its processes make it, each among users of its own.
            Err(error) if !is_joined && error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(error) => Err(failed(self.key, error)),
        }
    }
}

/// The temporary folders of a new run: those of another unit, else its own.
///
/// # Errors
/// They cannot be made.
pub fn temporary_folders(
    world: &World,
    unit: &Unit,
    service: &ServiceSection,
    run: InvocationId,
) -> Result<Option<[PathBuf; 2]>, SpawnFailure> {
    if !service.sandbox.private_tmp {
        return Ok(None);
    }
    match peers(world, unit).find_map(|peer| peer.private_tmp.as_ref()) {
        Some(theirs) => temporary::join(run, theirs).map(Some),
        None => temporary::make(run).map(Some),
    }
}
