//! The sockets of socket units: made once and kept, whatever becomes of their services, until the unit stops.
//!
//! One epoll(7) set tells of all of them, each once after it was armed. Connections of sockets with `Accept` are held
//! here too, each until its instance is over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use agentd_engine::{EffectId, Spawn};
use agentd_linux::epoll::Epoll;
use agentd_linux::listen::{self, Accepted, Listener, Node, Origin, Owner};
use agentd_unit::sections::{Listen, ListenAddress, ListenKind, SocketSection};
use agentd_unit::{Unit, UnitName};

use super::plan::chain;
use crate::takeover::handover::{Handover, Item, label, parts};
use crate::units::Taken;
use crate::world::World;

/// What a socket unit listens on, open.
#[derive(Debug)]
struct Held {
    unit: Arc<Unit>,
    token: u64,
    listeners: Vec<Listener>,
}

/// All sockets of all units.
#[derive(Debug)]
pub struct Sockets {
    /// What tells of them, and of path units.
    pub epoll: Epoll,
    units: BTreeMap<UnitName, Held>,
    names: HashMap<u64, UnitName>,
    last_token: u64,
    connections: HashMap<EffectId, Accepted>,
    /// The instances of connections, each with the template whose log it writes to: a file for each client would fill
    /// the disk.
    instances: HashMap<UnitName, (EffectId, UnitName)>,
    /// What the manager before has handed on and nobody has asked for yet.
    handed: Handed,
    /// While a re-execution waits: what is to be armed, and is not.
    held: Option<BTreeSet<UnitName>>,
}

/// Listeners and connections of the manager before.
#[derive(Debug, Default)]
struct Handed {
    listeners: Vec<(UnitName, String, Listener)>,
    connections: HashMap<UnitName, OwnedFd>,
}

/// A descriptor for a service, with its name in `LISTEN_FDNAMES`.
pub type Named = (String, OwnedFd);

impl Sockets {
    /// None yet.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn new() -> io::Result<Self> {
        let (units, names, connections) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        let instances = HashMap::new();
        let handed = Handed::default();
        Ok(Self {
            epoll: Epoll::new()?,
            units,
            names,
            last_token: 0,
            connections,
            instances,
            handed,
            held: None,
        })
    }

    /// Readable when an armed socket is.
    ///
    /// # Errors
    /// EMFILE: no descriptor is left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.epoll.descriptor()
    }

    /// Takes what the manager before has handed on, for units that ask for it.
    pub fn inherit(&mut self, held: &mut Handover<OwnedFd>) {
        self.handed.listeners = held.take(|item, fd| match (item, fd) {
            (Item::Listener { unit, line, node }, Some(fd)) => {
                let node = node.map(|(path, device, inode)| Node { path, device, inode });
                Ok((unit, line, Listener::resumed(fd, node)))
            }
            other => Err(other),
        });
        let connections = held.take(|item, fd| match (item, fd) {
            (Item::Connection { unit }, Some(fd)) => Ok((unit, fd)),
            other => Err(other),
        });
        self.handed.connections = connections.into_iter().collect();
    }

    /// Closes what the manager before has handed on and nobody has asked for.
    pub fn forget_handed(&mut self) {
        self.handed = Handed::default();
    }

    /// All that a successor goes on with.
    pub fn hand_on(&self) -> impl Iterator<Item = (Item, Option<BorrowedFd<'_>>)> {
        let listeners = self.units.iter().flat_map(|(unit, held)| {
            let lines = held.unit.as_socket().map_or(&[][..], |section| &section.listen);
            held.listeners.iter().zip(lines).map(|(listener, line)| {
                let node = listener.node().map(parts);
                (Item::Listener { unit: unit.clone(), line: label(line), node }, Some(listener.as_fd()))
            })
        });
        let connections = self.instances.iter().filter_map(|(unit, (id, _))| {
            let accepted = self.connections.get(id)?;
            Some((Item::Connection { unit: unit.clone() }, Some(accepted.fd.as_fd())))
        });
        listeners.chain(connections)
    }

    /// Goes on with the connection of an instance.
    pub fn reconnect(&mut self, id: EffectId, unit: &UnitName) {
        if let Some(fd) = self.handed.connections.remove(unit) {
            self.connections.insert(id, Accepted::resumed(fd));
        }
        if let Some(template) = unit.template() {
            self.instances.insert(unit.clone(), (id, template));
        }
    }

    /// Makes all that a unit listens on and that was not handed on, or nothing; then nothing of it is left.
    fn listen(&mut self, unit: &Arc<Unit>, owner: Owner) -> Result<(), String> {
        let section = unit.as_socket().ok_or_else(|| format!("{} is no socket", unit.name))?;
        self.unlisten(&unit.name);
        self.last_token += 1;
        self.names.insert(self.last_token, unit.name.clone());
        let mut held = Held { unit: Arc::clone(unit), token: self.last_token, listeners: Vec::new() };
        let made = section.listen.iter().try_for_each(|listen| {
            held.listeners.push(self.listener(unit, section, listen, owner)?);
            Ok(())
        });
        self.units.insert(unit.name.clone(), held);
        if made.is_err() {
            self.unlisten(&unit.name);
        }
        made
    }

    fn listener(
        &mut self,
        unit: &Unit,
        section: &SocketSection,
        listen: &Listen,
        owner: Owner,
    ) -> Result<Listener, String> {
        let listener = match self.handed.listener(&unit.name, &label(listen)) {
            Some(listener) => listener,
            None => open(&unit.name, section, listen, owner)?,
        };
        // What cannot be waited for is found now and not when it is armed.
        let waits = self.epoll.arm(&listener, 0).and_then(|()| self.epoll.remove(&listener));
        waits.map_err(|error| {
            format!("{}={}: cannot be waited for: {error}", listen.kind.key(), listen.address)
        })?;
        Ok(listener)
    }

    /// Closes what a unit listens on, and takes its files away where it says so.
    pub fn unlisten(&mut self, name: &UnitName) {
        let Some(held) = self.units.remove(name) else { return };
        self.names.remove(&held.token);
        let Some(section) = held.unit.as_socket().filter(|section| section.remove_on_stop) else { return };
        for (listener, listen) in held.listeners.iter().zip(&section.listen) {
            let removed = match (listener.node(), &listen.address) {
                (Some(node), _) => node.remove(&section.symlinks),
                (None, ListenAddress::Path(path)) if listen.kind == ListenKind::MessageQueue => {
                    listen::unlink_queue(path)
                }
                (None, _) => Ok(()),
            };
            if let Err(error) = removed {
                tracing::warn!(unit = %name, %error, "{} cannot be removed", listen.address);
            }
        }
    }

    /// Has sockets with `Accept` take no further connections, which wait in the kernel: instances that come and go all the
    /// time would never let a re-execution begin.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Takes connections again.
    pub fn go_on(&mut self) {
        for name in self.held.take().into_iter().flatten() {
            self.arm(&name);
        }
    }

    /// Tells once when something comes in.
    pub fn arm(&mut self, name: &UnitName) {
        let Some(held) = self.units.get(name) else { return };
        let accepts = held.unit.as_socket().is_some_and(|section| section.accept);
        if let (true, Some(waiting)) = (accepts, &mut self.held) {
            waiting.insert(name.clone());
            return;
        }
        for listener in &held.listeners {
            if let Err(error) = self.epoll.arm(listener, held.token) {
                tracing::error!(unit = %name, %error, "a socket cannot be waited for");
            }
        }
    }

    /// Tells no more.
    pub fn disarm(&mut self, name: &UnitName) {
        if let Some(waiting) = &mut self.held {
            waiting.remove(name);
        }
        for listener in self.units.get(name).iter().flat_map(|held| &held.listeners) {
            // An error says that it was not armed.
            let _not_armed = self.epoll.remove(listener);
        }
    }

    /// Throws away what waits.
    pub fn flush(&self, name: &UnitName) {
        for listener in self.units.get(name).iter().flat_map(|held| &held.listeners) {
            if let Err(error) = listen::flush(listener) {
                tracing::warn!(unit = %name, %error, "what waits at a socket cannot be thrown away");
            }
        }
    }

    /// The unit that something came in for, under this name of the set; disarmed.
    #[must_use]
    pub fn woken(&mut self, token: u64) -> Option<UnitName> {
        let name = self.names.get(&token)?.clone();
        self.disarm(&name);
        Some(name)
    }

    /// Takes the first connection that waits at a unit.
    fn take(&self, name: &UnitName) -> io::Result<Option<Accepted>> {
        for listener in self.units.get(name).iter().flat_map(|held| &held.listeners) {
            if let Some(accepted) = listen::accept(listener)? {
                return Ok(Some(accepted));
            }
        }
        Ok(None)
    }

    /// Where a connection comes from.
    #[must_use]
    pub fn origin(&self, connection: EffectId) -> Option<&Origin> {
        self.connections.get(&connection).map(|accepted| &accepted.from)
    }

    /// The unit whose log takes what a unit says.
    #[must_use]
    pub fn log_of<'a>(&'a self, unit: &'a UnitName) -> &'a UnitName {
        self.instances.get(unit).map_or(unit, |(_, template)| template)
    }

    /// Closes a connection.
    pub fn hang_up(&mut self, connection: EffectId) {
        self.connections.remove(&connection);
        self.instances.retain(|_, (id, _)| *id != connection);
    }

    /// Copies of what the socket units of a service listen on, in order. A file that somebody has removed is made anew
    /// first: at the old socket nobody could knock any more.
    fn copies(&mut self, world: &Owners<'_>, names: &[UnitName]) -> io::Result<Vec<Named>> {
        let mut copies = Vec::new();
        for name in names {
            let Some(held) = self.units.get_mut(name) else { continue };
            let Some(section) = held.unit.as_socket() else { continue };
            for (listener, listen) in held.listeners.iter_mut().zip(&section.listen) {
                if listener.node().is_some_and(|node| !node.is_there()) {
                    let owner = world.of(section);
                    match owner.and_then(|owner| open(name, section, listen, owner)) {
                        Ok(anew) => {
                            tracing::warn!(unit = %name, "{} was removed by somebody else and was made anew", listen.address);
                            *listener = anew;
                        }
                        Err(error) => {
                            tracing::error!(unit = %name, "{} was removed by somebody else and cannot be made anew: {error}", listen.address);
                        }
                    }
                }
                let text = section.descriptor_name.clone().unwrap_or_else(|| name.to_string());
                copies.push((text, listener.as_fd().try_clone_to_owned()?));
            }
        }
        Ok(copies)
    }
}

impl Handed {
    fn listener(&mut self, unit: &UnitName, line: &str) -> Option<Listener> {
        let place = self.listeners.iter().position(|(name, its, _)| name == unit && its == line)?;
        Some(self.listeners.remove(place).2)
    }
}

/// Who owns files of sockets.
struct Owners<'a>(&'a agentd_linux::user::Accounts);

impl Owners<'_> {
    fn of(&self, section: &SocketSection) -> Result<Owner, String> {
        let user = section
            .user
            .as_ref()
            .map(|name| self.0.user(name).map_err(|e| format!("SocketUser={name}: {}", chain(&e))));
        let user = user.transpose()?;
        let group = section.group.as_ref();
        let group =
            group.map(|name| self.0.group(name).map_err(|e| format!("SocketGroup={name}: {}", chain(&e))));
        // As systemd has it: a user's own group, where none is named.
        let gid = group.transpose()?.or(user.as_ref().map(|user| user.gid));
        Ok(Owner { uid: user.map(|user| user.uid), gid })
    }
}

/// Makes one listener with its links. A link that cannot be made fails nothing, as in systemd.
fn open(unit: &UnitName, section: &SocketSection, listen: &Listen, owner: Owner) -> Result<Listener, String> {
    let listener = Listener::open(listen, section, owner).map_err(|error| chain(&error))?;
    for error in listener.link(section) {
        tracing::warn!(%unit, "{}", chain(&error));
    }
    Ok(listener)
}

/// Makes what a unit listens on.
///
/// # Errors
/// One sentence: the key, the address, the call and what to do.
pub fn listen(world: &mut World, unit: &Arc<Unit>) -> Result<(), String> {
    let owner = unit.as_socket().map(|section| Owners(&world.accounts).of(section)).transpose()?;
    world.sockets.listen(unit, owner.unwrap_or_default())
}

/// Goes on with what a manager before has made for a unit. What one that was killed has left lives with the service that
/// it was passed to, and is taken back from it.
///
/// # Errors
/// As [`listen`]; the service lives and does not listen there any more.
pub fn relisten(world: &mut World, unit: &Arc<Unit>) -> Result<(), String> {
    let was_handed = world.sockets.handed.listeners.iter().any(|(name, ..)| *name == unit.name);
    if let (false, Some(section)) = (was_handed, unit.as_socket()) {
        let lent = lent(world, unit, &section.listen)?;
        world.sockets.handed.listeners.extend(lent);
    }
    listen(world, unit)
}

/// The listeners of a unit that its service has.
fn lent(world: &World, unit: &Unit, lines: &[Listen]) -> Result<Vec<(UnitName, String, Listener)>, String> {
    let Some(service) = unit.triggered() else { return Ok(Vec::new()) };
    let Some((id, run)) = world.runs.of_unit(&service) else { return Ok(Vec::new()) };
    let mut processes: Vec<u32> = run.processes.values().map(|process| process.pid).collect();
    processes.extend(match &run.cgroup {
        Some(leaf) => leaf.processes().unwrap_or_default(),
        None => super::kill::members(id, run).unwrap_or_default(),
    });
    let mut lent = Vec::new();
    for line in lines.iter().filter(|line| Listener::is_lent(line)) {
        let mut found = processes.iter().filter_map(|pid| Listener::lent(line, *pid).transpose());
        match found.next() {
            Some(Ok(listener)) => lent.push((unit.name.clone(), label(line), listener)),
            None if processes.is_empty() => {}
            other => {
                let why = other.and_then(Result::err).map_or(String::new(), |error| format!(" ({error})"));
                return Err(format!(
                    "its service {service} outlived a manager that was killed, and {}={} cannot be taken back from it{why}; stop it first",
                    line.kind.key(),
                    line.address
                ));
            }
        }
    }
    Ok(lent)
}

/// Takes a connection and has its instance loaded; what there is to say at once: that there is none, or why.
pub fn accept(world: &mut World, id: EffectId, unit: &Arc<Unit>, number: u64) -> Option<Result<(), String>> {
    let accepted = match world.sockets.take(&unit.name) {
        Ok(Some(accepted)) => accepted,
        Ok(None) => return Some(Ok(())),
        Err(error) => return Some(Err(format!("accept: {error}"))),
    };
    let text = format!("{}@{number}-{}.service", unit.name.stem(), accepted.from);
    let instance = match UnitName::parse(&text) {
        Ok(instance) => instance,
        Err(error) => return Some(Err(format!("{text}: {error}"))),
    };
    let taken = Taken { id, socket: unit.name.clone(), instance, source: accepted.from.source() };
    world.sockets.connections.insert(id, accepted);
    if let Some(template) = taken.instance.template() {
        world.sockets.instances.insert(taken.instance.clone(), (id, template));
    }
    world.loading.find_instance(&world.config, world.loaded.clone(), taken);
    None
}

/// The descriptors that a command gets, from 3 up: its connection, else those of its sockets.
///
/// # Errors
/// EMFILE: no descriptor is left.
pub fn of_command(world: &mut World, spawn: &Spawn, non_blocking: bool) -> io::Result<Vec<Named>> {
    let copies = match spawn.connection {
        Some(id) => {
            let accepted = world.sockets.connections.get(&id);
            let copy = accepted.map(|accepted| accepted.fd.try_clone()).transpose()?;
            copy.map(|fd| ("connection".to_owned(), fd)).into_iter().collect()
        }
        None => world.sockets.copies(&Owners(&world.accounts), &spawn.sockets)?,
    };
    for (_, fd) in &copies {
        if non_blocking {
            agentd_linux::descriptor::set_nonblocking(fd)?;
        } else {
            agentd_linux::descriptor::set_blocking(fd)?;
        }
    }
    Ok(copies)
}
