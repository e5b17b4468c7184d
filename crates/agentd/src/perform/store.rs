//! Descriptors that services leave with the manager over their restarts: `FDSTORE=1`, sd_pid_notify_with_fds(3).
//!
//! # Invariants
//!
//! - A unit never has more descriptors here, kept or on their way, than `FileDescriptorStoreMax` says.
//! - What is watched for a hang-up is in the epoll set exactly as long as it is in the store.
//! - What came along with a notification waits until the engine has said whether its sender may say so.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use agentd_engine::AttachmentId;
use agentd_linux::descriptor::is_same_open_file;
use agentd_linux::epoll::Epoll;
use agentd_unit::UnitName;
use agentd_unit::sections::Preserve;

use crate::takeover::handover::{Handover, Item};

/// What a descriptor is called that came without a name, sd_pid_notify_with_fds(3).
const UNNAMED: &str = "stored";

/// What is said of a notification with descriptors that find no room.
pub const TOO_MANY: &str = "brought more descriptors than FileDescriptorStoreMax lets its unit store";

/// What came along with a notification.
#[derive(Debug)]
pub enum Attachment {
    /// `FDSTORE=1`.
    Store {
        /// `FDNAME`.
        name: Option<String>,
        /// They go when the other side hangs up: not `FDPOLL=0`.
        poll: bool,
        /// The descriptors.
        fds: Vec<OwnedFd>,
        /// `FileDescriptorStoreMax` of the run that they came from.
        most: usize,
        /// `FileDescriptorStorePreserve` of it.
        preserve: Preserve,
    },
    /// `FDSTOREREMOVE=1` with this name.
    Remove {
        /// `FDNAME`.
        name: String,
    },
    /// `BARRIER=1`: closed once all that was said before was heard.
    Barrier {
        /// What the sender waits for the end of.
        fd: OwnedFd,
    },
}

/// What came along and waits.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Its name.
    pub id: AttachmentId,
    /// Some of the descriptors were closed, as they would not fit in any case.
    pub too_many: bool,
}

impl Attachment {
    fn len(&self) -> usize {
        if let Self::Store { fds, .. } = self { fds.len() } else { 0 }
    }
}

#[derive(Debug)]
struct Stored {
    name: String,
    fd: OwnedFd,
    /// Its name in the epoll set, if it is watched.
    token: Option<u64>,
}

/// What one unit has left.
#[derive(Debug, Default)]
struct Kept {
    stored: Vec<Stored>,
    preserve: Preserve,
}

/// The descriptors of all units, and what is on its way to them.
#[derive(Debug)]
pub struct Stores {
    units: BTreeMap<UnitName, Kept>,
    waiting: BTreeMap<AttachmentId, (UnitName, Attachment)>,
    next: u64,
    watched: Epoll,
}

impl Stores {
    /// Stores with nothing in them.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { units: BTreeMap::new(), waiting: BTreeMap::new(), next: 0, watched: Epoll::new()? })
    }

    /// Takes what the manager before has handed on.
    pub fn inherit(&mut self, held: &mut Handover<OwnedFd>) {
        let stored = held.take(|item, fd| match (item, fd) {
            (Item::Stored { unit, name, poll, preserve }, Some(fd)) => Ok((unit, name, poll, preserve, fd)),
            other => Err(other),
        });
        for (unit, name, poll, preserve, fd) in stored {
            // There was room for it.
            self.keep(&unit, &name, fd, poll, usize::MAX);
            if let Some(kept) = self.units.get_mut(&unit) {
                kept.preserve = preserve;
            }
        }
    }

    /// All that a successor goes on with.
    pub fn hand_on(&self) -> impl Iterator<Item = (Item, Option<BorrowedFd<'_>>)> {
        self.units.iter().flat_map(|(unit, kept)| {
            kept.stored.iter().map(|stored| {
                let (unit, name, preserve) = (unit.clone(), stored.name.clone(), kept.preserve);
                let item = Item::Stored { unit, name, poll: stored.token.is_some(), preserve };
                (item, Some(stored.fd.as_fd()))
            })
        })
    }

    /// The descriptor that becomes readable when one that is kept has hung up.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.watched.descriptor()
    }

    /// Keeps what came along with a notification until the engine has heard it. Of descriptors only as many wait as the
    /// unit may still store: a flood of them costs no more.
    pub fn wait(&mut self, unit: &UnitName, mut attachment: Attachment) -> Waiting {
        let mut too_many = false;
        if let Attachment::Store { fds, most, .. } = &mut attachment {
            let own = self.waiting.values().filter(|(name, _)| name == unit);
            let waiting: usize = own.map(|(_, attachment)| attachment.len()).sum();
            let room = most.saturating_sub(waiting);
            too_many = fds.len() > room;
            fds.truncate(room);
        }
        self.next += 1;
        let id = AttachmentId(self.next);
        self.waiting.insert(id, (unit.clone(), attachment));
        Waiting { id, too_many }
    }

    /// Lets go what came along.
    pub fn discard(&mut self, id: AttachmentId) {
        self.waiting.remove(&id);
    }

    /// Does what a notification asked for; how many descriptors were closed for want of room.
    pub fn take(&mut self, id: AttachmentId, unit: &UnitName) -> usize {
        let mut closed = 0;
        match self.waiting.remove(&id).map(|(_, attachment)| attachment) {
            Some(Attachment::Store { name, poll, fds, most, preserve }) => {
                let name = name.unwrap_or_else(|| UNNAMED.to_owned());
                for fd in fds {
                    closed += usize::from(!self.keep(unit, &name, fd, poll, most));
                }
                if let Some(kept) = self.units.get_mut(unit) {
                    kept.preserve = preserve;
                }
            }
            Some(Attachment::Remove { name }) => self.drop_where(unit, |stored| stored.name == name),
            Some(Attachment::Barrier { fd }) => drop(fd),
            None => {}
        }
        closed
    }

    /// Keeps a descriptor, if there is room for it.
    fn keep(&mut self, unit: &UnitName, name: &str, fd: OwnedFd, poll: bool, most: usize) -> bool {
        let kept = self.units.entry(unit.clone()).or_default();
        if kept.stored.iter().any(|stored| is_same_open_file(&stored.fd, &fd)) {
            return true;
        }
        if kept.stored.len() >= most {
            return false;
        }
        let mut token = None;
        if poll {
            self.next += 1;
            // A file cannot hang up: EPERM.
            token = self.watched.add_hangup(&fd, self.next).ok().map(|()| self.next);
        }
        tracing::debug!(unit = %unit, "{unit}: stored a descriptor '{name}'");
        kept.stored.push(Stored { name: name.to_owned(), fd, token });
        true
    }

    /// Closes what has hung up.
    pub fn drain(&mut self) {
        let mut ready = Vec::new();
        if let Err(error) = self.watched.wait(&mut ready, Some(Duration::ZERO)) {
            tracing::error!(%error, "hang-ups of stored descriptors cannot be read");
        }
        if ready.is_empty() {
            return;
        }
        let units: Vec<UnitName> = self.units.keys().cloned().collect();
        for unit in units {
            self.drop_where(&unit, |stored| {
                let gone = stored.token.is_some_and(|token| ready.contains(&token));
                if gone {
                    tracing::debug!(unit = %unit, "{unit}: the stored descriptor '{}' has hung up", stored.name);
                }
                gone
            });
        }
    }

    fn drop_where(&mut self, unit: &UnitName, gone: impl Fn(&Stored) -> bool) {
        let Some(kept) = self.units.get_mut(unit) else { return };
        for stored in kept.stored.extract_if(.., |stored| gone(stored)) {
            // The service may have a copy, by which the set would tell of it for ever.
            if let Some(Err(error)) = stored.token.map(|_| self.watched.remove(&stored.fd)) {
                tracing::error!(unit = %unit, %error, "a stored descriptor is still watched");
            }
        }
        if kept.stored.is_empty() {
            self.units.remove(unit);
        }
    }

    /// A run is over: what `FileDescriptorStorePreserve=no` keeps goes with it.
    pub fn release(&mut self, unit: &UnitName) {
        if self.units.get(unit).is_some_and(|kept| kept.preserve == Preserve::No) {
            self.drop_where(unit, |_| true);
        }
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Closes what is kept for restarts, of units that `rests` says do not run again, and what is kept for ever, of units
    /// that `known` does not say are there.
    pub fn remove_rested(&mut self, rests: impl Fn(&UnitName) -> bool, known: impl Fn(&UnitName) -> bool) {
        let over = |(unit, kept): (&UnitName, &Kept)| {
            let gone = if kept.preserve == Preserve::Yes { !known(unit) } else { rests(unit) };
            gone.then(|| unit.clone())
        };
        let gone: Vec<UnitName> = self.units.iter().filter_map(over).collect();
        for unit in gone {
            self.drop_where(&unit, |_| true);
        }
    }

    /// What a unit has left, in the order in which it came, with its names.
    pub fn of<'a>(&'a self, unit: &UnitName) -> impl Iterator<Item = (&'a str, BorrowedFd<'a>)> {
        let kept = self.units.get(unit).into_iter();
        kept.flat_map(|kept| &kept.stored).map(|stored| (stored.name.as_str(), stored.fd.as_fd()))
    }

    /// How many descriptors a unit has left.
    #[must_use]
    pub fn count(&self, unit: &UnitName) -> usize {
        self.units.get(unit).map_or(0, |kept| kept.stored.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> UnitName {
        UnitName::parse("web.service").unwrap()
    }

    fn pipes(count: usize) -> (Vec<OwnedFd>, Vec<io::PipeWriter>) {
        (0..count).map(|_| io::pipe().unwrap()).map(|(read, write)| (OwnedFd::from(read), write)).unzip()
    }

    fn store(name: &str, fds: Vec<OwnedFd>) -> Attachment {
        let name = Some(name.to_owned());
        Attachment::Store { name, poll: true, fds, most: 2, preserve: Preserve::Restart }
    }

    #[test]
    fn no_more_are_kept_or_wait_than_the_unit_may_store() {
        let mut stores = Stores::new().unwrap();
        let (fds, _writers) = pipes(5);
        let id = stores.wait(&unit(), store("a", fds)).id;
        let (fds, mut late) = pipes(1);
        let second = stores.wait(&unit(), store("b", fds));
        assert!(second.too_many);
        let second = second.id;
        use std::io::Write;
        assert_eq!(late[0].write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe, "closed at once");
        stores.take(id, &unit());
        stores.take(second, &unit());
        assert_eq!(stores.count(&unit()), 2);
        let (fds, _writers) = pipes(1);
        let third = stores.wait(&unit(), store("c", fds)).id;
        assert_eq!(stores.take(third, &unit()), 1);
        assert_eq!(stores.of(&unit()).map(|(name, _)| name).collect::<Vec<_>>(), ["a", "a"]);
    }

    #[test]
    fn what_hangs_up_goes_also_while_a_copy_is_open_elsewhere() {
        let mut stores = Stores::new().unwrap();
        let (fds, mut writers) = pipes(2);
        let _copy = fds[0].try_clone().unwrap();
        let id = stores.wait(&unit(), store("a", fds)).id;
        stores.take(id, &unit());
        stores.drain();
        assert_eq!(stores.count(&unit()), 2);
        drop(writers.remove(0));
        stores.drain();
        assert_eq!(stores.count(&unit()), 1);
        let mut ready = Vec::new();
        stores.watched.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        assert!(ready.is_empty(), "it is told no more");
    }

    #[test]
    fn what_the_sender_may_not_say_is_closed() {
        let mut stores = Stores::new().unwrap();
        let (read, write) = io::pipe().unwrap();
        let id = stores.wait(&unit(), Attachment::Barrier { fd: write.into() }).id;
        let (fds, _writers) = pipes(1);
        let other = stores.wait(&unit(), store("a", fds)).id;
        stores.discard(id);
        stores.discard(other);
        assert_eq!(io::read_to_string(read).unwrap(), "");
        assert!(stores.is_empty());
    }

    #[test]
    fn what_is_kept_goes_as_preserve_says() {
        for (preserve, after_run, at_rest) in
            [(Preserve::No, 0, 0), (Preserve::Restart, 1, 0), (Preserve::Yes, 1, 1)]
        {
            let mut stores = Stores::new().unwrap();
            let (fds, _writers) = pipes(1);
            let id =
                stores.wait(&unit(), Attachment::Store { name: None, poll: true, fds, most: 1, preserve }).id;
            stores.take(id, &unit());
            stores.release(&unit());
            assert_eq!(stores.count(&unit()), after_run, "{preserve:?}");
            stores.remove_rested(|_| true, |_| true);
            assert_eq!(stores.count(&unit()), at_rest, "{preserve:?}");
            stores.remove_rested(|_| true, |_| false);
            assert!(stores.is_empty());
        }
    }
}
