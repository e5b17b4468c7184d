//! sd_notify(3) datagrams: which run they come from, by the sender's process and cgroup, and what they say.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use agentd_engine::{ClaimedMain, Event, InvocationId, Monotonic, Notification};
use agentd_linux::notify::{Datagram, NotifySocket, Received};
use agentd_linux::pidfd::PidFd;
use agentd_protocol::NotifyMessage;
use agentd_protocol::notify::WatchdogSign;
use agentd_unit::words::Words;
use agentd_unit::{NotifyAccess, UnitName};

use crate::perform::store::{self, Attachment};
use crate::world::World;

/// How many datagrams are read in one turn, so that a flood delays nobody.
const TURN: usize = 1024;

/// Reads pending datagrams. Returns whether there may be more.
pub fn drain(socket: &mut NotifySocket, world: &mut World, events: &mut VecDeque<Event>) -> bool {
    for _ in 0..TURN {
        match socket.receive() {
            Ok(Some(Received::Datagram(datagram))) => take(datagram, world, events),
            Ok(Some(Received::Refused { sender })) => {
                match sender.as_ref().and_then(|sender| world.run_of_sender(sender)) {
                    Some((run, _)) => world.complain(run, format_args!("was longer than any may be")),
                    None => tracing::debug!(
                        ?sender,
                        "a notification was longer than any may be, or had no sender"
                    ),
                }
            }
            Ok(None) => return false,
            Err(error) => {
                tracing::error!(%error, "notifications cannot be read");
                return false;
            }
        }
    }
    true
}

fn take(datagram: Datagram, world: &mut World, events: &mut VecDeque<Event>) {
    let Some((run, sender)) = world.run_of_sender(&datagram.sender) else {
        world.notified_by_nobody(&datagram.sender);
        return;
    };
    match NotifyMessage::parse(&datagram.bytes) {
        Ok(message) => {
            for problem in &message.problems {
                world.complain(run, format_args!("has a line that means nothing: {problem}"));
            }
            let main_pid = main_process(world, run, &message, &datagram.fds);
            let attached = attachment(world, run, &message, datagram.fds);
            let waiting = attached.map(|(unit, attached)| world.stores.wait(&unit, attached));
            if waiting.is_some_and(|waiting| waiting.too_many) {
                world.complain(run, format_args!("{}", store::TOO_MANY));
            }
            let attachment = waiting.map(|waiting| waiting.id);
            let privileged = datagram.sender.uid == 0;
            let main = main_pid.map(|pid| ClaimedMain { pid, privileged });
            let notification = Notification { attachment, main, ..notification(message) };
            if notification != Notification::default() {
                events.push_back(Event::Notified { run, sender, notification });
            }
        }
        Err(error) => world.complain(run, format_args!("says nothing: {error}")),
    }
}

/// The main process that the sender names, by descriptor or by number. A descriptor's number is read while it is held, so
/// it is of no other process.
fn main_process(
    world: &mut World,
    run: InvocationId,
    message: &NotifyMessage,
    fds: &[OwnedFd],
) -> Option<u32> {
    if !message.main_pidfd {
        return message.main_pid;
    }
    let pid = match fds {
        [fd] => PidFd::pid_of(fd.as_fd()),
        _ => None,
    };
    if pid.is_none() {
        world.complain(run, format_args!("says MAINPIDFD=1 without one descriptor of a process"));
    }
    pid
}

/// What is done with the descriptors once the engine has heard the notification; what nobody asked to keep is closed here.
fn attachment(
    world: &World,
    run: InvocationId,
    message: &NotifyMessage,
    mut fds: Vec<OwnedFd>,
) -> Option<(UnitName, Attachment)> {
    let unit = &world.runs.get(run)?.unit;
    let attached = if message.barrier {
        // One descriptor and nothing else, sd_notify_barrier(3).
        let fd = fds.pop().filter(|_| fds.is_empty())?;
        Attachment::Barrier { fd }
    } else if message.fd_store_remove {
        Attachment::Remove { name: message.fd_name.clone()? }
    } else if message.fd_store && !fds.is_empty() {
        let life = &unit.as_service()?.service.life;
        Attachment::Store {
            name: message.fd_name.clone(),
            poll: !message.fd_no_poll,
            fds,
            most: usize::try_from(life.descriptor_store_max).unwrap_or(usize::MAX),
            preserve: life.descriptor_store_preserve,
        }
    } else {
        return None;
    };
    Some((unit.name.clone(), attached))
}

/// The fields that decide unit state.
fn notification(message: NotifyMessage) -> Notification {
    Notification {
        ready: message.ready,
        reloading: message.reloading,
        monotonic: message.monotonic.map(Monotonic),
        stopping: message.stopping,
        status: message.status,
        errno: message.errno,
        bus_error: message.bus_error,
        alive: message.watchdog == Some(WatchdogSign::Alive),
        trigger_watchdog: message.watchdog == Some(WatchdogSign::Trigger),
        watchdog: message.watchdog_span,
        extend_timeout: message.extend_timeout,
        access: message.notify_access.as_deref().and_then(NotifyAccess::from_word),
        main: None,
        attachment: None,
    }
}
