//! Main processes that are no children of ours: a manager that was killed began them. Their end is told by their pidfd
//! alone, and how they ended by nobody.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use agentd_engine::{EffectId, Event, ExitStatus, InvocationId};
use agentd_linux::epoll::Epoll;
use agentd_linux::pidfd::PidFd;

use super::groups;
use crate::world::World;

/// Those that live, in one set for all.
#[derive(Debug, Default)]
pub struct Strangers {
    set: Option<Epoll>,
    /// Main processes that had ended before they could be taken over.
    gone: Vec<(InvocationId, EffectId)>,
}

impl Strangers {
    /// The descriptor that is readable while one of them has ended and was not looked at.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn descriptor(&mut self) -> io::Result<OwnedFd> {
        self.set()?.as_fd().try_clone_to_owned()
    }

    fn set(&mut self) -> io::Result<&Epoll> {
        if self.set.is_none() {
            self.set = Some(Epoll::new()?);
        }
        self.set.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Watches one.
    ///
    /// # Errors
    /// The kernel's epoll(7) has no room.
    pub fn watch(&mut self, pid: u32, process: &PidFd) -> io::Result<()> {
        self.set()?.add(process, u64::from(pid))
    }

    /// Notes one that is not there any more.
    pub fn note_gone(&mut self, run: InvocationId, id: EffectId) {
        self.gone.push((run, id));
    }

    /// Those that have ended.
    fn ended(&self) -> Vec<u32> {
        let mut ready = Vec::new();
        if let Some(Err(error)) = self.set.as_ref().map(|set| set.wait(&mut ready, Some(Duration::ZERO))) {
            tracing::error!(%error, "processes that were taken over cannot be waited for");
        }
        ready.into_iter().filter_map(|token| u32::try_from(token).ok()).collect()
    }
}

/// Tells of those that had ended before they could be taken over.
pub fn tell_gone(world: &mut World, events: &mut VecDeque<Event>) {
    let gone = std::mem::take(&mut world.kept.strangers.gone);
    events.extend(gone.into_iter().map(|(run, id)| Event::Exited { id, run, status: ExitStatus::Unknown }));
}

/// Tells of those that have ended.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) {
    loop {
        let ended = world.kept.strangers.ended();
        if ended.is_empty() {
            return;
        }
        for pid in ended {
            // Its pidfd is closed here, and with that out of the set.
            let Some((run, id)) = world.runs.leave(pid) else { continue };
            world.drain_log(run);
            groups::check_oom(run, world, events);
            events.push_back(Event::Exited { id, run, status: ExitStatus::Unknown });
            groups::reaped(run, world, events);
        }
        groups::check_empty_by_walk(world, events);
    }
}
